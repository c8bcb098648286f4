"""Two points of a lab, measured again and again: what intervals and claims are worth.

Issue 3, "What must hold", 2: twenty interleaved repetitions, each on a deployment of its own, by
the lab's own A/A run. The simulated lab is judged so in every run of the tests, for its noise is
seeded; the real one in `make accept`, on a host that does nothing else.

Three repetitions of a real, shared host say nothing of coverage: their KPIs are of the same
samples, and a host that slows down by a fifth between two of them misses most medians with any
honest interval. The second test asserts what holds whatever the host does.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from driving import REPOSITORY, Workbench
from scipy.stats import binom

from workbench.domain.codec import from_plain
from workbench.domain.lab import HostNoise
from workbench.domain.samples import Estimate, Reason, Sample
from workbench.measuring import ab_test
from workbench.measuring.floor import variance_floor
from workbench.measuring.intervals import WIDEST

FIGURES = {"throughput_rps": 8000.0, "mean_ms": 1000.0, "p95_ms": 1000.0}
"""Each where the function decides it: far above its capacity, and far below."""
DOCKER = pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long])
RESTLESS = "sim:restart_sd=0.2"
"""Where every deployment has a luck of its own, which the windows of a sample cannot see."""


def campaign(workbench: Workbench, repetitions: int) -> str:
    """Path of the campaign with so many repetitions of both points."""
    text = (REPOSITORY / "tests" / "data" / "noise.yaml").read_text(encoding="utf-8")
    text = text.replace("max_samples: 6", f"max_samples: {2 * repetitions}")
    text = text.replace("repetitions: 3", f"repetitions: {repetitions}")
    path = Path(workbench.root / "noise.yaml")
    path.write_text(text, encoding="utf-8")
    return str(path)


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
    verdicts = [ab_test.verdict(ab_test.ratio(*pair), floor) for pair in pairs]
    return sum(verdict != "no_visible_difference" for verdict in verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("lab", ["sim", DOCKER])
def test_intervals_hold_the_others_and_null_pairs_are_not_claimed(
    workbench: Workbench, lab: str
) -> None:
    repetitions = 20
    workbench.longest_s = 900  # forty samples or visits, most on a deployment of their own
    measured = workbench.json("doctor", "--measure", "--lab", lab, "--json")
    noise = from_plain(measured["noise"], HostNoise)
    print(noise, *measured["checks"], sep="\n")  # noqa: T201 - shown with -s
    asked = campaign(workbench, repetitions)
    workbench.run("run", asked, *f"--lab {lab} --session again --json".split())
    samples = workbench.samples("again")
    assert len(samples) == 2 * repetitions
    intervals = outside = pairs = claims = 0
    for kpi in FIGURES:
        found = readings(samples, kpi)
        assert len(found) >= 0.9 * repetitions - 1, [s["reason"] for s in samples]
        floor = ab_test.floor(kpi, (noise, noise))
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
    assert outside <= 0.1 * intervals, f"{outside} of {intervals} miss the median of the others"
    most = binom.ppf(0.99, pairs, 0.05)
    assert claims <= most, f"{claims} of {pairs} null pairs were claimed"


@pytest.mark.parametrize("lab", [RESTLESS, DOCKER])
def test_repetitions_are_of_deployments_of_their_own_and_raise_the_floor_of_those_after(
    workbench: Workbench, lab: str
) -> None:
    asked = campaign(workbench, 3)
    events = workbench.events("run", asked, *f"--lab {lab} --session again --json".split())
    deployed: list[int] = []
    samples: list[Sample] = []
    for event in events:
        if event["event"] == "TargetDeployed":
            deployed.append(event["block"])
        elif event["event"] == "SampleTaken":
            sample = from_plain(event["sample"], Sample)
            assert sample.block == sample.point.repetition == deployed[-1]
            assert_sound(sample)
            assert_as_wide_as_repetitions_scatter(sample, samples)
            samples.append(sample)
    assert set(deployed) == {0, 1, 2}
    taken = sorted((sample.point.wl, sample.block) for sample in samples)
    assert taken == [(wl, block) for wl in (1000.0, 8000.0) for block in range(3)]


def assert_sound(sample: Sample) -> None:
    """A figure is what was counted, has an interval around it, or a reason not to be used."""
    assert sample.valid == (not sample.findings)
    for finding in sample.findings:
        assert finding.reason in get_args(Reason)
        assert finding.evidence, finding
    if not sample.valid:
        return
    assert 0 < sample.usage["haproxy"].cpu_share < 1.3, "its quota holds"
    assert sample.kpi("throughput_rps") == pytest.approx(sample.completed / sample.measured_s)
    for kpi, stated in sample.kpis.items():
        assert 0 <= stated.low <= stated.value <= stated.high < math.inf, kpi
        assert stated.low < stated.high, kpi
    latencies = [sample.kpis[kpi] for kpi in ("p50_ms", "p95_ms", "p99_ms") if kpi in sample.kpis]
    assert all(a.value <= b.value for a, b in pairwise(latencies))
    if "overloaded" in sample.labels:  # it grows for as long as one watches
        assert all(latency.low == latency.value for latency in latencies)


def assert_as_wide_as_repetitions_scatter(sample: Sample, before: list[Sample]) -> None:
    """Batches that agree do not narrow an interval below what earlier visits differed by, be it
    that they differed by more than any interval says."""
    floor = variance_floor(before)
    overloaded = "overloaded" in sample.labels
    decided = ("throughput_rps",) if overloaded else ("mean_ms", "p95_ms")
    for kpi in decided if sample.valid and "censored" not in sample.labels else ():
        stated, least = sample.kpis[kpi], min(WIDEST, floor.half(kpi, sample.windows))
        assert math.log(stated.value / stated.low) >= least - 1e-9, (kpi, sample.id)
        assert math.log(stated.high / stated.value) >= least - 1e-9, (kpi, sample.id)
