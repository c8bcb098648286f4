"""Seconds until a question about models is answered: cold, on stored models, and asked again.

    python benchmarks/answers.py [--folder DIR] [--json]

Sessions are made on the simulated lab first, which takes a minute or two; in DIR they are kept for
the next time. Cold is a session without models and an engine without a worker: models are chosen by
cross-validation. On stored models another engine answers, whose worker fits them again. Asked again
is the same engine. Beside each stand the CPU seconds of the engine and its workers: what a busy
machine does not change much. `--json` prints what has a target alone, for `make bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.domain.events import RunFinished
from workbench.domain.messages import Failed, Hello, Request, RunAccepted, RunCampaign
from workbench.domain.questions import ChainQuery, CompareChain, Recommend, RetrainChain
from workbench.engine.core import Engine
from workbench.paths import Workspace, shipped, workspace
from workbench.probes.process import PROC, parse_stat_cpu_s

ASKER = Hello(0, "", "benchmark", "operator")
CHAIN = "tinyproxy-haproxy"
SLA = ("p95<=100ms @ rate=400/s, filesize=10kB",)


@dataclass(frozen=True)
class Asked:
    """A question with what it may take on two quiet cores; None: no target."""

    what: str
    session: str
    question: Callable[[str], Request[Any]]
    cold_s: float | None
    stored_s: float | None


@dataclass(frozen=True)
class Answered:
    """Seconds until an answer, and of them those of CPU, engine and workers together."""

    took_s: float
    burned_s: float

    def __str__(self) -> str:
        return f"{self.took_s:.1f} ({self.burned_s:.1f} CPU)"


@dataclass(frozen=True)
class Row:
    """How long one question took: first of all, of another engine, and of that again."""

    asked: Asked
    cold: Answered
    stored: Answered
    again: Answered

    def text(self) -> str:
        first, second = (f"<= {s:g}" if s else "" for s in (self.asked.cold_s, self.asked.stored_s))
        return (
            f"| {self.asked.what} | {self.cold} | {first} | {self.stored} | {second} "
            f"| {self.again} |"
        )

    def figures(self) -> list[tuple[str, float, float]]:
        """What is asked, its seconds and its target, of what has one."""
        found = (
            (f"{self.asked.what}, cold", self.cold.took_s, self.asked.cold_s),
            (f"{self.asked.what}, on stored models", self.stored.took_s, self.asked.stored_s),
        )
        return [(what, took_s, target) for what, took_s, target in found if target is not None]


QUESTIONS = (
    Asked(
        "`compare --chain`, 80 samples",
        "demo",
        lambda s: CompareChain(ChainQuery(s, CHAIN)),
        5.0,
        2.0,
    ),
    Asked("retraining, 80 samples", "demo", lambda s: RetrainChain(s, CHAIN, steps=0), None, 10.0),
    Asked("`recommend`, 32 allocations", "few", lambda s: Recommend(s, SLA, CHAIN), None, 3.0),
    Asked("`recommend`, 1,024 allocations", "many", lambda s: Recommend(s, SLA, CHAIN), 20.0, None),
)


def campaigns(folder: Path) -> dict[str, Path]:
    """The shipped demo, and its functions with more allotments, as files in `folder`."""
    demo = shipped("templates") / "campaigns" / "demo.yaml"
    text = demo.read_text().replace("method: blocks", "method: uniform")
    begin, end = text.index("targets:"), text.index("workload_parameters:")

    def wider(haproxy: int, tinyproxy: int, samples: int) -> str:
        targets = ["targets:"]
        for vnf, count in (("haproxy", haproxy), ("tinyproxy", tinyproxy)):
            values = ", ".join(f"{100 * k / count:g}%" for k in range(1, count + 1))
            targets.append(f"  - vnf: {vnf}\n    resource_parameters:")
            targets.append(f"      - {{vnf: {vnf}, name: vcpu, values: [{values}]}}")
        every = f"{text[:begin]}{chr(10).join(targets)}\n\n{text[end:]}"
        return every.replace("max_samples: 10", f"max_samples: {samples}")

    found = {"demo": demo}
    for name, written in (("few", wider(4, 8, 8)), ("many", wider(32, 32, 4))):
        found[name] = folder / f"{name}.yaml"
        found[name].write_text(written)
    return found


def session_file(own: Workspace, name: str) -> Path:
    return own.sessions / f"{name}.duckdb"


async def made(own: Workspace, name: str, campaign: Path) -> None:
    engine = Engine(own)
    await engine.start()
    try:
        command = RunCampaign(str(campaign), session=name, lab="sim", seed=1)
        accepted = await engine.handle(command, ASKER)
        assert isinstance(accepted, RunAccepted), accepted
        async with engine.follow(name) as following:
            async for change in following.changes:
                if isinstance(getattr(change, "fact", None), RunFinished):
                    break
    finally:
        await engine.close()


async def seconds(own: Workspace, asked: Asked, session: str, times: int) -> list[Answered]:
    """Of the same question so many times to one engine."""
    found = []
    engine = Engine(own)
    await engine.start()
    try:
        for _ in range(times):
            begin, burned = time.perf_counter(), cpu_s()
            reply = await engine.handle(asked.question(session), ASKER)
            assert not isinstance(reply, Failed), reply
            found.append(Answered(time.perf_counter() - begin, cpu_s() - burned))
    finally:
        await engine.close()
    return found


def cpu_s() -> float:
    """Of this process, which holds the engine, and of its workers that live."""
    stats = [PROC / str(child.pid) / "stat" for child in multiprocessing.active_children()]
    return time.process_time() + sum(parse_stat_cpu_s(stat.read_text()) for stat in stats)


async def rows(folder: Path) -> AsyncIterator[Row]:
    """Of every question, as it is answered."""
    own = workspace(folder)
    own.sessions.mkdir(parents=True, exist_ok=True)
    for name, campaign in campaigns(own.root).items():
        if not session_file(own, name).exists():
            await made(own, name, campaign)
    for number, asked in enumerate(QUESTIONS):
        session = f"{asked.session}-{number}"
        shutil.copy(session_file(own, asked.session), session_file(own, session))
        try:
            (cold,) = await seconds(own, asked, session, 1)
            stored, again = await seconds(own, asked, session, 2)
        finally:
            session_file(own, session).unlink()
        yield Row(asked, cold, stored, again)


async def measure(folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps([figure async for row in rows(folder) for figure in row.figures()]))
        return
    print("| question | cold | target | on stored models | target | asked again |")
    print("|---|---|---|---|---|---|")
    async for row in rows(folder):
        print(row.text(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="a workspace whose sessions are kept")
    parser.add_argument("--json", action="store_true", help="what has a target alone, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        asyncio.run(measure(given.folder or Path(folder), given.json))


if __name__ == "__main__":
    main()
