"""Functions on shared cores: what each costs the others, held against made profiles and samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
from known_profiles import named
from synthetic_chain import sample

from workbench.chains.composition import ChainForecaster
from workbench.chains.function_profiles import Part
from workbench.chains.neighbours import (
    BesideNeighbours,
    ChainOnSharedCores,
    Contention,
    ContentionLevel,
    contention_at,
    fair_shares,
    levels_at,
)
from workbench.chains.usage import ExpectedUsage
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate, Sample, Usage
from workbench.domain.topology import Series, Vnf
from workbench.models.forecast import Forecast, Points

SHARES = {"none": 0.0, "cpu:25": 0.25, "cpu:50": 0.5}
"""What each competitor takes of the one core."""
SLOWER = {"none": 1.0, "cpu:25": 1.5, "cpu:50": 3.0}
ALONE_MS, DEMAND_MS, SD = {"a": 2.0, "b": 4.0}, {"a": 0.5, "b": 1.0}, 0.05
CORE = frozenset({1})


class BesideCompetitors:
    """A function's KPI beside competitors, at any load; requests per second are all carried."""

    def __init__(self, kpi: str, vnf: str) -> None:
        self.kpi, self._vnf = kpi, vnf

    def forecast(self, points: Points) -> Forecast:
        mean = np.log([self._figure(c, wl) for c, wl in points])
        half = 1.96 * SD
        return Forecast(mean, mean - half, mean + half, np.zeros(len(mean), dtype=bool))

    def _figure(self, configuration: Configuration, wl: float) -> float:
        if self.kpi == "throughput_rps":
            return wl
        if self.kpi == "cpu_ms_per_request":
            return DEMAND_MS[self._vnf]
        return ALONE_MS[self._vnf] * SLOWER[str(configuration.workload["competitor"])]


def made_part(vnf: str) -> Part:
    told = {kpi: BesideCompetitors(kpi, vnf) for kpi in ("mean_ms", "throughput_rps")}
    return Part(vnf, vnf, vnf, "open-constant", "rate", 10.0, told)


def beside(vnf: str, competitor: str, wl: float, cores: float = 1.0) -> Sample:
    workload = {"filesize_bytes": 1e4, "competitor": competitor}
    at, share = Configuration({f"{vnf}.vcpu": 1.0}, workload), SHARES[competitor]
    usage = {"competitor": Usage(share * cores, share)} if share else {}
    return replace(sample(wl, ALONE_MS[vnf] * SLOWER[competitor], at, target=vnf), usage=usage)


@pytest.fixture
def samples() -> list[Sample]:
    return [
        beside(vnf, competitor, wl)
        for vnf in ("a", "b")
        for competitor in SHARES
        for wl in (50.0, 400.0)
    ]


def shared(samples: list[Sample], cores: Mapping[str, frozenset[int]]) -> ChainOnSharedCores:
    graph = Series(named("a", "b"))
    parts = {vnf: made_part(vnf) for vnf in ("a", "b")}
    demands = {vnf: BesideCompetitors("cpu_ms_per_request", vnf) for vnf in parts}
    chain = ChainForecaster(graph, parts, "mean_ms")
    return ChainOnSharedCores(chain, ExpectedUsage(graph, parts, demands), cores, samples)


def configuration(**workload: str) -> Configuration:
    return Configuration({"a.vcpu": 1.0, "b.vcpu": 1.0}, {"filesize_bytes": 1e4, **workload})


def test_each_function_is_read_off_at_what_its_neighbour_takes(samples: list[Sample]) -> None:
    told = shared(samples, {"a": CORE, "b": CORE}).at(configuration(), 250.0)
    cost = {one.vnf: one for one in told.functions}
    # a takes 250 * 0.5 ms = 0.125 of the core, b 0.25 of it.
    assert cost["b"].share.value == pytest.approx(0.125)
    assert cost["a"].share.value == pytest.approx(0.25)
    assert cost["b"].between == ("none", "cpu:25")
    assert cost["b"].beside.value == pytest.approx(4.0 * np.sqrt(1.0 * 1.5))
    assert cost["a"].beside.value == pytest.approx(2.0 * 1.5)
    assert [cost[vnf].alone.value for vnf in "ab"] == pytest.approx([2.0, 4.0])
    assert told.value.value == pytest.approx(sum(one.beside.value for one in told.functions))
    assert not told.extrapolates


def test_the_interval_holds_both_measured_levels(samples: list[Sample]) -> None:
    told = shared(samples, {"a": CORE, "b": CORE}).at(configuration(), 250.0)
    b = next(one for one in told.functions if one.vnf == "b").beside
    assert b.low <= 4.0 * np.exp(-1.9 * SD)
    assert b.high >= 4.0 * 1.5 * np.exp(1.9 * SD)


def test_who_has_cores_of_its_own_is_as_alone(samples: list[Sample]) -> None:
    told = shared(samples, {"a": CORE, "b": frozenset({2})}).at(configuration(), 250.0)
    assert told.functions == ()
    assert told.value.value == pytest.approx(6.0)


def refusals(samples: list[Sample]) -> Iterator[tuple[str, str]]:
    both = {"a": CORE, "b": CORE}
    small = [s for s in samples if s.point.target == "a"]
    wide = [beside("a", "cpu:25", s.point.wl, 2.0) for s in small]
    for given, cores, at, wl in (
        (samples, both, configuration(competitor="memory"), 250.0),
        (small, both, configuration(), 250.0),
        (wide, both, configuration(), 250.0),
        (samples, both, Configuration({"a.vcpu": 0.5, "b.vcpu": 1.0}, {}), 250.0),
        (samples, both, configuration(), 600.0),
        (samples, both, configuration(), 401.0),
        ([s for s in samples if s.point.wl < 300.0], both, configuration(), 390.0),
    ):
        with pytest.raises(DataError) as caught:
            shared(given, cores).at(at, wl)
        yield caught.value.what, caught.value.remedy


def test_what_was_not_measured_is_refused_by_a_sentence(samples: list[Sample]) -> None:
    told = list(refusals(samples))
    assert [what for what, _ in told] == [
        "neighbours and a competitor at once were not measured",
        "b was not measured beside a competitor for its cores at this allocation",
        "a was measured beside a competitor on 2 of its cores, and shares 1",
        "a was not measured beside a competitor for its cores at this allocation",
        "neighbours take 0.6 of its cores, and at that load it was measured beside no competitor",
        "neighbours take 0.401 of its cores, and at that load it was measured beside no competitor",
        "neighbours take 0.39 of its cores, and at that load it was measured beside no competitor",
    ]
    assert all(remedy for _, remedy in told)


def test_more_than_the_strongest_competitor_took_is_refused() -> None:
    levels = [ContentionLevel(name, share) for name, share in SHARES.items()]
    with pytest.raises(DataError, match=r"take 0.6 .* at most 0.5 were measured \(cpu:50\)"):
        contention_at("a", Estimate(0.6, 0.5, 0.7), levels)


def test_neighbours_that_may_take_more_than_was_measured_extrapolate() -> None:
    levels = [ContentionLevel(name, share) for name, share in SHARES.items()]
    inside = contention_at("a", Estimate(0.3, 0.2, 0.4), levels)
    assert (inside.around, inside.beyond) == (("none", "cpu:25", "cpu:50"), False)
    beyond = contention_at("a", Estimate(0.4, 0.3, 0.6), levels)
    assert (beyond.around, beyond.beyond) == (("cpu:25", "cpu:50"), True)
    point = [(configuration(), 100.0)]
    for contention in (inside, beyond):
        told = BesideNeighbours(BesideCompetitors("mean_ms", "a"), contention).forecast(point)
        assert bool(told.extrapolates[0]) is contention.beyond


def test_competitors_that_took_the_same_are_one_level() -> None:
    same = [ContentionLevel("none", 0.0), *(ContentionLevel(c, 0.5) for c in ("cpu:50", "cpu"))]
    at: Contention = contention_at("a", Estimate(0.5, 0.5, 0.5), same)
    assert at.weight == 0.0
    assert set(at.around) == {"cpu:50", "cpu"}


def test_the_share_is_interpolated_over_loads_and_repetitions() -> None:
    taken = {100.0: (0.9, 0.7), 400.0: (0.4,)}
    given = [
        replace(one, usage={"competitor": Usage(share, share)})
        for wl, shares in taken.items()
        for share in shares
        for one in [beside("a", "cpu:50", wl)]
    ]
    own = Configuration({"a.vcpu": 1.0}, {"filesize_bytes": 1e4, "competitor": "none"})
    found = levels_at(made_part("a"), own, 200.0, given, 1)
    assert [(one.competitor, one.share) for one in found] == [
        ("none", 0.0),
        ("cpu:50", pytest.approx(0.6)),
    ]


def test_two_instances_of_a_profile_may_have_unlike_neighbours(samples: list[Sample]) -> None:
    graph = Series((Vnf("a", "a"), Vnf("b", "b"), Vnf("c", "a")))
    parts = {"a": made_part("a"), "b": made_part("b")}
    parts["c"] = parts["a"]
    demands = {vnf: BesideCompetitors("cpu_ms_per_request", vnf) for vnf in ("a", "b")}
    chain = ChainForecaster(graph, parts, "mean_ms")
    usage = ExpectedUsage(graph, parts, demands)
    told = ChainOnSharedCores(chain, usage, {"a": CORE, "b": CORE}, samples).at(
        Configuration({f"{vnf}.vcpu": 1.0 for vnf in "abc"}, {"filesize_bytes": 1e4}), 250.0
    )
    beside_each_other = sum(one.beside.value for one in told.functions)
    assert told.value.value == pytest.approx(beside_each_other + ALONE_MS["a"])


@pytest.mark.parametrize(
    ("wanted", "shares"),
    [
        ([0.2, 0.3, 0.4], [0.2, 0.3, 0.4]),
        ([0.2, 0.9, 0.9], [0.2, 0.4, 0.4]),
        ([0.4, 0.3, 0.5], [0.35, 0.3, 0.35]),
        ([1.0, 0.05], [0.95, 0.05]),
    ],
)
def test_a_core_is_shared_evenly_among_those_that_want_more(
    wanted: list[float], shares: list[float]
) -> None:
    assert fair_shares(wanted, 1) == pytest.approx(shares)
    assert fair_shares([2 * one for one in wanted], 2) == pytest.approx([2 * s for s in shares])
