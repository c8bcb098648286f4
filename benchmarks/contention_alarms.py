"""`python benchmarks/contention_alarms.py`: contention injected beside a function that is watched.

Records the campaign that is given on the Docker lab (`--session` takes one instead), deploys its
function, drives a constant load through it and has `workbench watch` look at it as a process of its
own. A competitor comes on the function's core at a time that the watch does not know, again and
again. Told are alarms that were missed or late, their delays, false ones before the injection, and
looks without an answer. Needs root, an engine, stress-ng and taskset on this host; and a quiet one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from counted_sessions import CEILING_MS, measurements

from workbench.descriptors.loading import load_campaign
from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.competitors import COMPETITOR, NONE, Competitor
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.engine.answers.counter_learning import counted_rows
from workbench.labs.base import LabSettings
from workbench.labs.components.competing import argv
from workbench.labs.docker import DockerLab
from workbench.labs.netns.groups import version
from workbench.paths import Workspace

HERE = Path(__file__).parent
WITHIN_S = 5.0
"""In which contention is to be alarmed (issue 23)."""
LASTS_S = 10.0
"""For which a competitor stays."""
QUIET_S = (8.0, 16.0)
"""Before each injection, drawn evenly; without an alarm at its end, or it is waited for."""
CLEARING_S = 40.0
"""For which an alarm may take to clear before the next injection."""
LEARNING_S = 180.0
DRIVE_S = 240.0
"""Of one stretch of load; the next begins half a second after it."""
WORST = "cpu"


@dataclass(frozen=True)
class Injection:
    """One competitor that came, in seconds since the epoch.

    Attributes
    ----------
    delay_s : until the alarm; None where there was none as long as it stayed.
    false : the alarm was there already, though nobody competed.
    silent : of the looks while it stayed, those without an answer.
    """

    began_at: float
    delay_s: float | None
    false: bool
    looks: int
    silent: int

    @property
    def in_time(self) -> bool:
        return not self.false and self.delay_s is not None and self.delay_s <= WITHIN_S


class Watched:
    """The lines of a running `workbench watch --json`."""

    def __init__(self) -> None:
        self.looks: list[dict[str, object]] = []

    async def read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            with suppress(ValueError):
                self.looks.append(json.loads(line))

    @property
    def alarmed(self) -> bool:
        return bool(self.looks and self.looks[-1]["alarm"])

    def since(self, at: float) -> list[dict[str, object]]:
        return [look for look in self.looks if float(str(look["at"])) >= at]


def record(campaign: Path, workspace: Path) -> Path:
    """The session of a campaign that was run to its end; it does not wait for a quiet host."""
    program = (
        "import sys; from workbench.engine.runs import busy_host; busy_host.STREAK = 1_000_000\n"
        "from workbench.cli import main; main()"
    )
    run = [sys.executable, "-c", program, "run", str(campaign), "--lab", "docker", "--headless"]
    environment = {**os.environ, "WORKBENCH_WORKSPACE": str(workspace)}
    done = subprocess.run([*run, "--session", "learned"], env=environment)
    if done.returncode not in (0, 1):  # 1: a configuration without a usable sample
        sys.exit(f"the campaign ended with exit code {done.returncode}")
    return workspace / "sessions" / "learned.duckdb"


def limit_ms(session: Path, function: str) -> float:
    """Between p95 alone and p95 beside `WORST`, in the middle of their logs."""
    taken = [m for m in asyncio.run(measurements(session)) if m.sample.point.target == function]

    def usual(competitor: str) -> float:
        those = [
            m for m in taken if m.sample.point.configuration.workload.get(COMPETITOR) == competitor
        ]
        return median(counted_rows(those, function, kpis.P95, CEILING_MS).rows.y.tolist())

    alone, beside = usual(NONE), usual(WORST)
    print(f"p95 of {function}: {alone:.3g} ms alone, {beside:.3g} ms beside {WORST}", flush=True)
    if beside <= alone:
        sys.exit("a competitor does not raise p95 here: there is nothing to be alarmed of")
    return float((alone * beside) ** 0.5)


@contextmanager
def contention(core: int) -> Iterator[float]:
    """stress-ng on a core; when it began, in seconds since the epoch. It ends on every way out."""
    competitor = Competitor("cpu")
    program = ["taskset", "-c", str(core), *argv(competitor, 1, LASTS_S)]
    quiet = subprocess.DEVNULL
    began_at = time.time()
    running = subprocess.Popen(program, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield began_at
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


@asynccontextmanager
async def loaded(
    campaign: Campaign, function: str, wl: float
) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """The function under a constant load: the id of its container, and the task that drives."""
    lab = DockerLab(campaign, LabSettings(f"alarms-{os.getpid()}"))
    try:
        await lab.open()
        plan = campaign.target_plan(function)
        first = campaign.configurations(plan)[0]
        alone = Configuration(first.resources, {**first.workload, COMPETITOR: NONE})
        await lab.deploy(plan.target, alone)
        point = OperatingPoint(function, alone, wl)

        async def drive() -> None:
            while True:
                await lab.drive(point, DRIVE_S, lambda _: None)

        driving = asyncio.create_task(drive())
        try:
            yield lab.known_as(function)["container"], driving
        finally:
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
    finally:
        await lab.close()


@asynccontextmanager
async def watching(
    workspace: Path, session: str, function: str, at: str, kpi: str
) -> AsyncIterator[Watched]:
    """`workbench watch` as a process; its lines, from the first look on."""
    program = [sys.executable, "-m", "workbench", "watch", session, function]
    running = await asyncio.create_subprocess_exec(
        *program, "--at", at, "--kpi", kpi, "--json",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "WORKBENCH_WORKSPACE": str(workspace)},
    )  # fmt: skip
    assert running.stdout is not None
    watched = Watched()
    reading = asyncio.create_task(watched.read(running.stdout))
    try:
        latest = time.monotonic() + LEARNING_S
        while not (watched.looks or reading.done() or time.monotonic() > latest):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        if not watched.looks:
            sys.exit(f"the watch ended, or took over {LEARNING_S:g} s, before its first look")
        yield watched
    finally:
        with suppress(ProcessLookupError):
            running.send_signal(signal.SIGINT)
        await running.wait()
        await reading


async def inject(watched: Watched, core: int, draw: random.Random) -> Injection:
    """Wait, let a competitor come, and see what the watch says."""
    await asyncio.sleep(draw.uniform(*QUIET_S))
    cleared = time.monotonic() + CLEARING_S
    while watched.alarmed and time.monotonic() < cleared:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    false = watched.alarmed
    with contention(core) as began_at:
        await asyncio.sleep(LASTS_S)
    seen = watched.since(began_at)
    alarmed = next((float(str(look["at"])) for look in seen if look["alarm"]), None)
    return Injection(
        began_at,
        None if alarmed is None or false else alarmed - began_at,
        false,
        len(seen),
        sum(look["value"] is None for look in seen),
    )


def core_of(campaign: Campaign, function: str) -> int:
    cpuset = next((m.cpuset for m in campaign.managers if m.name == function), "")
    return int(cpuset.replace("-", ",").split(",")[0]) if cpuset else 0


async def play(
    campaign: Campaign, function: str, session: Path, wl: float, times: int, limit: float
) -> list[Injection]:
    workspace = session.parent.parent
    draw, found = random.Random(1), list[Injection]()
    kpi = f"p95<={limit:.4g}ms"
    async with loaded(campaign, function, wl) as (container, driving):
        at = f"container:{container}"
        async with watching(workspace, session.stem, function, at, kpi) as watched:
            for number in range(1, times + 1):
                if driving.done():
                    driving.result()  # why there is no load any more
                one = await inject(watched, core_of(campaign, function), draw)
                found.append(one)
                told = "false alarm before it" if one.false else f"alarm after {one.delay_s} s"
                if one.delay_s is None and not one.false:
                    told = "no alarm"
                silent = f"{one.silent} of {one.looks} looks without an answer"
                print(f"injection {number} of {times}: {told}; {silent}", flush=True)
    return found


def summary(found: Sequence[Injection]) -> str:
    delays = [one.delay_s for one in found if one.delay_s is not None]
    return (
        f"{sum(one.in_time for one in found)} of {len(found)} alarmed within {WITHIN_S:g} s; "
        f"{sum(one.delay_s is None and not one.false for one in found)} without an alarm, "
        f"{sum(one.false for one in found)} alarmed before; delays "
        + (f"{min(delays):.1f} to {max(delays):.1f} s, median {median(delays):.1f} s"
           if delays else "none")
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaign", type=Path, default=HERE / "contention_alarms.yaml")
    parser.add_argument("--session", type=Path, help="FOLDER/sessions/NAME.duckdb of it")
    parser.add_argument("--function", default="haproxy")
    parser.add_argument("--wl", type=float, default=800.0)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "alarms.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="alarms-") as folder:
        session = given.session.resolve() if given.session else record(given.campaign, Path(folder))
        campaign = load_campaign(
            str(given.campaign), workspace=Workspace(session.parent.parent)
        ).campaign
        limit = limit_ms(session, given.function)
        played = play(campaign, given.function, session, given.wl, given.times, limit)
        found = asyncio.run(played)
    kept = {
        "function": given.function,
        "limit_p95_ms": limit,
        "wl": given.wl,
        "cgroup": version(),
        "summary": summary(found),
        "injections": [{**asdict(one), "in_time": one.in_time} for one in found],
    }
    given.results.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{kept['summary']}; {given.results}")


if __name__ == "__main__":
    main()
