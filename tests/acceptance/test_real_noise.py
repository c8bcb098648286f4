"""Two points of a lab, measured again and again: what intervals and claims are worth.

Issue 3, "What must hold", 2: interleaved repetitions, each on a deployment of its own. Twenty of
them in `make accept`, by the host's own A/A run; three among the tests, by general figures.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from driving import REPOSITORY, Workbench
from scipy.stats import binom

from workbench.domain.codec import from_plain
from workbench.domain.lab import HostNoise
from workbench.domain.samples import Estimate
from workbench.measuring import contrast

FIGURES = {"throughput_rps": 8000.0, "mean_ms": 1000.0, "p95_ms": 1000.0}
"""Each where the function decides it: far above its capacity, and far below."""


def readings(samples: list[dict[str, Any]], kpi: str) -> list[Estimate]:
    """A KPI's valid samples in the order of their blocks."""
    rows = [s for s in samples if s["wl"] == FIGURES[kpi] and s["valid"] and s[kpi]]
    rows.sort(key=lambda s: s["repetition"])
    return [Estimate(s[kpi], s[f"{kpi}_low"], s[f"{kpi}_high"]) for s in rows]


def missed(found: list[Estimate]) -> int:
    """How many intervals do not hold the median of the others."""
    count = 0
    for number, one in enumerate(found):
        others = sorted(e.value for e in (*found[:number], *found[number + 1 :]))
        middle = math.sqrt(others[(len(others) - 1) // 2] * others[len(others) // 2])
        count += not one.low <= middle <= one.high
    return count


def claimed(pairs: list[tuple[Estimate, Estimate]], floor: float) -> int:
    verdicts = [contrast.verdict(contrast.ratio(*pair), floor) for pair in pairs]
    return sum(verdict != "no_visible_difference" for verdict in verdicts)


@pytest.mark.parametrize("lab", ["sim", pytest.param("docker", marks=pytest.mark.docker)])
def test_intervals_hold_the_others_and_null_pairs_are_not_claimed(
    workbench: Workbench, full_length: bool, lab: str
) -> None:
    noise = None
    repetitions = 20 if full_length else 3
    if full_length:
        workbench.longest_s = 900  # forty samples or visits, most on a deployment of their own
        measured = workbench.json("doctor", "--measure", "--lab", lab, "--json")
        noise = from_plain(measured["noise"], HostNoise)
        print(noise, *measured["checks"], sep="\n")  # noqa: T201 - shown with -s
    campaign = Path(workbench.root / "noise.yaml")
    text = (REPOSITORY / "tests" / "data" / "noise.yaml").read_text(encoding="utf-8")
    text = text.replace("max_samples: 6", f"max_samples: {2 * repetitions}")
    text = text.replace("repetitions: 3", f"repetitions: {repetitions}")
    campaign.write_text(text, encoding="utf-8")
    workbench.run("run", str(campaign), *f"--lab {lab} --session again --json".split())
    samples = workbench.samples("again")
    assert len(samples) == 2 * repetitions
    intervals = outside = pairs = claims = 0
    for kpi in FIGURES:
        found = readings(samples, kpi)
        assert len(found) >= 0.9 * repetitions - 1, [s["reason"] for s in samples]
        floor = contrast.floor(kpi, (noise, noise))
        neighbours = list(pairwise(found))[::2]
        intervals += len(found)
        outside += missed(found)
        pairs += len(neighbours)
        claims += claimed(neighbours, floor)
        spread = [f"{e.value:.4g} [{e.low:.4g}, {e.high:.4g}]" for e in found]
        print(kpi, "floor", f"{floor:.1%}", *spread, sep="  ")  # noqa: T201 - shown with -s
        everyone = [(a, b) for n, a in enumerate(found) for b in found[n + 1 :]]
        told = f"missed {missed(found)} of {len(found)}, claimed {claimed(everyone, floor)}"
        print(told, f"of {len(everyone)} pairs")  # noqa: T201
    allowed = 0.1 * intervals if full_length else binom.ppf(0.999, intervals, 0.1)
    assert outside <= allowed, f"{outside} of {intervals} intervals miss the median of the others"
    # The short form has one pair of deployments, whose luck its three KPIs share.
    most = binom.ppf(0.99, pairs, 0.05) if full_length else pairs - 1
    assert claims <= most, f"{claims} of {pairs} null pairs were claimed"
