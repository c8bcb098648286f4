"""The surfaces of the science benchmark are what they say, and cannot flatter a sampler."""

from dataclasses import replace

import numpy as np
import pytest
from science import judging, plays
from science.families import value
from science.surfaces import BACKGROUND_PCT, BY_NAME, SURFACES, TEST, Surface

from workbench.domain.campaign import SamplingPlan
from workbench.models.table import table_of
from workbench.sampling.uniform import UniformSampler


def loads(surface: Surface) -> np.ndarray:
    return np.geomspace(surface.primary.low, surface.primary.high, 200)


@pytest.mark.parametrize("surface", SURFACES, ids=lambda s: s.name)
def test_the_grid_is_the_papers(surface: Surface) -> None:
    expected = (288, 50) if surface.target == "pfsense" else (275, 80)
    assert (len(surface.configurations), surface.loads) == expected
    # Whole streams fall together at the low end of the range.
    assert len(surface.grid_loads()) >= 0.95 * surface.loads


@pytest.mark.parametrize("surface", SURFACES, ids=lambda s: s.name)
def test_only_expiry_is_not_monotone(surface: Surface) -> None:
    falls = [
        bool(np.any(np.diff(surface.truth(c, loads(surface))) < -1e-6))
        for c in surface.configurations[::7]
    ]
    assert any(falls) == (surface.name == "firewall-expiry")


@pytest.mark.parametrize("surface", SURFACES, ids=lambda s: s.name)
def test_only_creeping_has_no_breakpoint(surface: Surface) -> None:
    """A breakpoint is a decade of load within which the KPI passes from 7 % to its ceiling."""
    breaks = []
    for configuration in surface.configurations[::7]:
        kpi = surface.truth(configuration, loads(surface))
        low, high = loads(surface)[kpi < 7.0], loads(surface)[kpi >= surface.kpi_max]
        breaks.append(bool(high.size) and high.min() / low.max() < 10.0)
    share = np.mean(breaks)
    assert share == 0.0 if surface.name == "streaming-creeping" else share > 0.5


def test_more_than_three_vcpus_gain_nothing() -> None:
    surface = BY_NAME["firewall-law"]
    by_vcpu: dict[float, list[np.ndarray]] = {}
    for configuration in surface.configurations:
        kpi = surface.truth(configuration, loads(surface))
        by_vcpu.setdefault(value(configuration, "vcpu"), []).append(kpi)
    assert np.allclose(by_vcpu[3.0], by_vcpu[5.0])
    assert not np.allclose(by_vcpu[2.0], by_vcpu[3.0])


def test_flavors_that_share_a_bandwidth_overlap() -> None:
    surface = BY_NAME["streaming-law"]
    best = [c for c in surface.configurations if value(c, "quality") == 1.0]
    curves = {
        c.resources["nginx.flavor"]: surface.truth(c, loads(surface))
        for c in best
        if value(c, "movies") == 1.0
    }
    assert np.allclose(curves["f02"], curves["f04"]), "1 and 2 vCPUs behind 1 Gbit/s"
    assert not np.allclose(curves["f02"], curves["f03"]), "1 vCPU behind 1 and 2 Gbit/s"


@pytest.mark.parametrize("surface", SURFACES, ids=lambda s: s.name)
def test_draws_are_independent_and_repeat_themselves(surface: Surface) -> None:
    configuration = surface.configurations[17]
    wl = loads(surface)
    one = surface.observe(configuration, wl, draw="train-0")[0]
    assert np.array_equal(one, surface.observe(configuration, wl, draw="train-0")[0])
    other = surface.observe(configuration, wl, draw=TEST)[0]
    again = surface.observe(configuration, wl, draw="train-0", repetition=1)[0]
    low = surface.truth(configuration, wl) < 1.5 * BACKGROUND_PCT  # there noise is all there is
    for second in (other, again):
        assert not np.any((one == second) & (one < 100.0))
        if low.sum() > 30:
            assert abs(np.corrcoef(np.log(one[low]), np.log(second[low]))[0, 1]) < 0.4


def test_a_sample_is_what_was_observed() -> None:
    surface = BY_NAME["firewall-scalability"]
    configuration = surface.configurations[100]
    sample = surface.measure(configuration, 12_345.6, draw="train-3", repetition=2)
    seen = surface.observe(configuration, np.array([12_345.6]), draw="train-3", repetition=2)
    estimate = sample.kpis["loss_pct"]
    assert (estimate.value, estimate.low, estimate.high) == tuple(seen[:, 0])
    assert estimate.low < estimate.value < estimate.high


def test_the_noise_is_as_large_as_its_interval_says() -> None:
    surface = BY_NAME["streaming-creeping"]
    configuration = surface.configurations[0]
    wl = np.full(4000, 4000.0)
    seen = surface.observe(configuration, wl, draw="x", repetition=np.arange(4000))
    truth = surface.truth(configuration, wl[:1])[0]
    assert np.mean((seen[1] <= truth) & (truth <= seen[2])) == pytest.approx(0.95, abs=0.04)


@pytest.mark.parametrize("name", ["firewall-law", "streaming-steps"])
def test_the_short_way_to_a_table_is_the_long_one(name: str) -> None:
    surface = BY_NAME[name]
    judged = judging.judge_of(small(surface))
    given = judged.problem
    points = [(c, wl, 0) for c in given.configurations for wl in given.grid_loads()]
    short = judged.table(points, "train-0")
    samples = [given.measure(c, wl, draw="train-0") for c, wl, _ in points]
    long = table_of(
        given.target, samples, kpi=given.kpi, kpi_max=given.kpi_max, primary=given.primary
    )
    assert short.columns == long.columns
    for field in ("X", "y", "noise", "points"):
        assert np.allclose(getattr(short, field), getattr(long, field)), field
    assert np.array_equal(short.configurations[:-1] == short.configurations[1:],
                          long.configurations[:-1] == long.configurations[1:])  # fmt: skip


def test_uniform_points_are_what_the_sampler_asks() -> None:
    surface = small(BY_NAME["firewall-law"])
    space = surface.space(5)
    sampler = UniformSampler(space, SamplingPlan("uniform", max_samples=4))
    asked = []
    while (ask := sampler.ask()) is not None:
        asked.append((ask.configuration, ask.wl, ask.repetition))
        sampler.tell([surface.measure(ask.configuration, ask.wl, draw="train-5")])
    assert asked == plays.uniform_points(surface, surface.configurations, 4, 5)


def small(surface: Surface) -> Surface:
    """A few of its configurations and loads."""
    cut = [replace(p, values=p.values[::3]) for p in surface.workload]
    return replace(surface, workload=tuple(cut), loads=6)
