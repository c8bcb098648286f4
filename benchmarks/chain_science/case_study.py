"""Paper A's case study through the command line: three SLAs on the same profiles, beside greedy
scaling on the same simulated lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import workbench
from chain_science.stored import LAB, ROOT, SLA, digest, kept

SEEDS = 3
CAMPAIGN = "templates/campaigns/case-study.yaml"
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


def answers(seed: int) -> list[Answer]:
    """All three SLAs, played once."""
    code = digest("case_study.py", CAMPAIGN, *SLA, *LAB)
    return kept("case-study", f"{seed}-{code}", list[Answer], lambda: _played(seed))


def _played(seed: int) -> list[Answer]:
    with tempfile.TemporaryDirectory() as folder:
        session = ("--lab", LAB_OPTIONS, "--seed", str(seed), "--session", "case", "--headless")
        _command(folder, "run", str(ROOT / CAMPAIGN), *session)
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
