"""A function by what others take of its cores and by its own load, held against a formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from known_profiles import named
from published_counters import QuadraticModel
from synthetic_chain import sample

from workbench.chains.composition import ChainForecaster
from workbench.chains.counted_functions import BesideWindow, CountedForecaster, read_beside
from workbench.chains.demand import cpu_demand
from workbench.chains.function_profiles import Part
from workbench.chains.neighbours import ChainOnSharedCores
from workbench.chains.usage import ExpectedUsage
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.samples import Estimate, Sample, Usage
from workbench.domain.topology import Series

SHARES = {"none": 0.0, "cpu:25": 0.25, "cpu:50": 0.5, "cpu:75": 0.75}
DEMAND_MS = {"a": 0.5, "b": 1.0}
LOADS = (50.0, 100.0, 200.0, 400.0)
CORE = frozenset({1})


def taken_ms(vnf: str, wl: float, share: float) -> float:
    """What a request takes: its work on what others leave, twice as long at 400/s."""
    return 4.0 * DEMAND_MS[vnf] / (1.0 - share) * (wl / 50.0) ** (1.0 / 3.0)


def setting(competitor: str, *vnfs: str, size: float = 1e4) -> Configuration:
    workload = {"competitor": competitor, "filesize_bytes": size}
    return Configuration({f"{vnf}.vcpu": 1.0 for vnf in vnfs}, workload)


def windows(vnf: str) -> list[BesideWindow]:
    """Two passes, 2 % apart."""
    return [
        BesideWindow(
            f"{competitor}/{block}",
            setting(competitor, vnf),
            wl,
            share,
            {
                "mean_ms": taken_ms(vnf, wl, share) * (1.0 + 0.02 * block),
                "throughput_rps": wl * (1.0 - 1e-3 * block),
            },
        )
        for competitor, share in SHARES.items()
        for block in (0, 1)
        for wl in LOADS
    ]


def measured(vnf: str) -> list[Sample]:
    found = []
    for window in windows(vnf):
        share = window.share
        one = sample(window.wl, window.kpis["mean_ms"], window.configuration, target=vnf)
        usage = {vnf: Usage(window.wl * DEMAND_MS[vnf] / 1e3, window.wl * DEMAND_MS[vnf] / 1e3)}
        if share:
            usage["competitor"] = Usage(share, share)
        kpis = {**one.kpis, "throughput_rps": Estimate(window.wl, window.wl, window.wl)}
        found.append(replace(one, usage=usage, kpis=kpis, load_model="open-poisson"))
    return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", QuadraticModel)


def part(vnf: str) -> Part:
    told = {
        kpi: CountedForecaster(kpi, windows(vnf), np.inf) for kpi in ("mean_ms", "throughput_rps")
    }
    loads = dict.fromkeys(told, (LOADS[0], LOADS[-1]))
    return Part(vnf, vnf, vnf, measured(vnf)[0].load_model, "rate", LOADS[0], told, loads=loads)


def on_one_core(cores: Mapping[str, frozenset[int]]) -> ChainOnSharedCores:
    graph, wl = Series(named("a", "b")), PrimaryWorkload("rate", LOADS[0], LOADS[-1])
    parts = {vnf: part(vnf) for vnf in ("a", "b")}
    samples = [one for vnf in parts for one in measured(vnf)]
    demands = {vnf: cpu_demand(vnf, vnf, samples, wl) for vnf in parts}
    chain = ChainForecaster(graph, parts, "mean_ms")
    usage = ExpectedUsage(graph, parts, demands)
    return ChainOnSharedCores(chain, usage, cores, samples, read_beside)


def test_between_two_shares_the_model_is_asked_and_not_a_line_between_them() -> None:
    learned = CountedForecaster("mean_ms", windows("a"), np.inf)
    for share in (0.1, 0.4, 0.6):
        told = learned.at_share([(setting("none", "a"), 150.0)], share)
        assert np.exp(told.mean[0]) == pytest.approx(1.01 * taken_ms("a", 150.0, share), rel=0.02)
        assert told.low[0] < told.mean[0] < told.high[0]
        assert not told.extrapolates[0]
    beside = learned.forecast([(setting("cpu:50", "a"), 150.0)])
    assert beside.mean == pytest.approx(learned.at_share([(setting("none", "a"), 150.0)], 0.5).mean)


def test_beyond_what_was_measured_it_says_so() -> None:
    learned = CountedForecaster("mean_ms", windows("a"), np.inf)
    here = setting("none", "a")
    loads = learned.forecast([(here, 49.0), (here, 40.0), (here, 600.0)])
    assert loads.extrapolates.tolist() == [False, True, True]
    assert learned.at_share([(here, 100.0)], 0.9).extrapolates.tolist() == [True]
    with pytest.raises(DataError, match="not measured beside memory at this allocation"):
        learned.forecast([(setting("memory", "a"), 100.0)])
    with pytest.raises(DataError, match=r"was measured at 10000\.0 alone, and is asked at 2000"):
        learned.forecast([(setting("none", "a", size=2e3), 100.0)])


def test_a_parameter_that_varies_by_name_is_refused() -> None:
    named_sizes = [
        replace(one, configuration=Configuration({}, {"page": page}))
        for page in ("small", "large")
        for one in windows("a")
    ]
    with pytest.raises(DataError, match="was measured at large, small, and models from counters"):
        CountedForecaster("mean_ms", named_sizes, np.inf)


def test_neighbours_and_a_competitor_are_one_contention() -> None:
    chain = on_one_core({"a": CORE, "b": CORE})
    told = chain.at(setting("cpu:25", "a", "b"), 200.0)
    cost = {one.vnf: one for one in told.functions}
    # a takes 0.1 of the core and b 0.2 of it; the competitor has a quarter of it.
    assert cost["a"].share.value == pytest.approx(0.45, rel=0.02)
    assert cost["b"].share.value == pytest.approx(0.35, rel=0.02)
    assert cost["a"].between == ("cpu:25", "cpu:50")
    true = taken_ms("a", 200.0, 0.45) + taken_ms("b", 200.0, 0.35)
    assert told.value.value == pytest.approx(1.01 * true, rel=0.03)
    assert told.value.low < true < told.value.high
    alone = chain.at(setting("none", "a", "b"), 200.0)
    assert alone.value.value == pytest.approx(
        1.01 * (taken_ms("a", 200.0, 0.2) + taken_ms("b", 200.0, 0.1)), rel=0.03
    )


def test_all_others_have_no_more_than_a_function_leaves() -> None:
    told = on_one_core({"a": CORE, "b": CORE}).at(setting("cpu:75", "a", "b"), 400.0)
    cost = {one.vnf: one for one in told.functions}
    # b uses 0.4 itself; three quarters beside it are more than there is, yet were measured.
    assert cost["b"].share.value == pytest.approx(0.75)
    with pytest.raises(DataError, match="neighbours and a competitor at once"):
        on_one_core({"a": CORE, "b": CORE}).at(setting("memory", "a", "b"), 100.0)
