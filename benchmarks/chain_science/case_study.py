"""Paper A's case study through the command line: three SLAs on the same profiles, beside greedy
scaling on the same simulated lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from science import tables

import workbench
from chain_science.stored import LAB, ROOT, SLA, digest, kept

SEEDS = 3
CAMPAIGN = ROOT / "templates" / "campaigns" / "case-study.yaml"
LAB_OPTIONS = "sim:host_cores=16"
LIMIT = "p95<=5000ms @ concurrent={}, filesize=1MB"
LOADS = (400, 300, 200)
"""Of the three SLAs; the first is paper A's."""


@dataclass(frozen=True)
class Answer:
    """One SLA, by profiles and by greedy scaling; lab seconds without profiling."""

    seed: int
    load: int
    profiling_s: float
    met: bool
    allocation: str
    iterations: int
    lab_s: float
    greedy: str
    greedy_iterations: int
    greedy_s: float


def report(seeds: Sequence[int]) -> str:
    """A row for each SLA, then what all three cost with profiling."""
    code = f"{digest('case_study.py', *SLA, *LAB)}-{digest_of_campaign()}"
    found = [
        answer
        for seed in seeds
        for answer in kept("case-study", f"{seed}-{code}", list[Answer], lambda s=seed: _played(s))
    ]
    rows = [
        [
            str(a.seed),
            str(a.load),
            f"{a.allocation}{'' if a.met else ' (missed)'}",
            str(a.iterations),
            f"{a.lab_s:.0f}",
            a.greedy,
            str(a.greedy_iterations),
            f"{a.greedy_s:.0f}",
        ]
        for a in found
    ]
    head = ["seed", "clients", "profiled", "lab iterations", "lab s"]
    text = tables.table([*head, "greedy", "lab iterations", "lab s"], rows)
    sums = []
    for seed in seeds:
        own = [a for a in found if a.seed == seed]
        profiling = own[0].profiling_s
        ours, greedy = sum(a.lab_s for a in own), sum(a.greedy_s for a in own)
        sums.append(
            [
                str(seed),
                f"{profiling:.0f}",
                f"{ours:.0f}",
                f"{profiling + ours:.0f}",
                f"{greedy:.0f}",
            ]
        )
    head = ["seed", "profiling, s", "three answers, s", "together, s", "greedy, three SLAs, s"]
    return f"{text}\n\n{tables.table(head, sums)}"


def digest_of_campaign() -> str:
    from hashlib import blake2b

    return blake2b(CAMPAIGN.read_bytes(), digest_size=4).hexdigest()


def _played(seed: int) -> list[Answer]:
    with tempfile.TemporaryDirectory() as folder:
        session = ("--lab", LAB_OPTIONS, "--seed", str(seed), "--session", "case", "--headless")
        _command(folder, "run", str(CAMPAIGN), *session)
        profiling_s = float(json.loads(_command(folder, "show", "case", "--json"))["lab_s"])
        return [_asked(folder, seed, load, profiling_s) for load in LOADS]


def _asked(folder: str, seed: int, load: int, profiling_s: float) -> Answer:
    sla = ("--chain", "study", "--sla", LIMIT.format(load))
    how = ("--verify", "--compare", "greedy", "--on-lab", "--json")
    found = json.loads(_command(folder, "recommend", "case", *sla, *how))
    greedy = found["greedy"]
    return Answer(
        seed,
        load,
        profiling_s,
        bool(found["met"] and found["verified"]["met"]),
        _short(found),
        found["lab_iterations"],
        found["lab_s"],
        _short(greedy),
        greedy["lab_iterations"],
        greedy["lab_s"],
    )


def _short(found: dict[str, Any]) -> str:
    """tinyproxy 200 %, haproxy 50 %, 4 firewalls of 100 %."""
    if not found["allocation"]:
        return "nothing"
    parts = []
    for key, value in found["allocation"].items():
        vnf = key.partition(".")[0]
        count = found["replicas"].get(vnf, 1)
        times = f"{count} x " if count > 1 else ""
        parts.append(f"{vnf.removeprefix('study-')} {times}{100 * value:.0f} %")
    return ", ".join(parts)


def _command(folder: str, *words: str) -> str:
    root = str(Path(workbench.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "--workspace", folder, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout or done.returncode > 1:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-500:]}")
    return done.stdout
