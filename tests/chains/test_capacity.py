"""CPU per request says what a function carries in a chain, before anything queues."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from known_profiles import OPEN, Formula, Known, carried, named, overload, part
from synthetic_chain import sample

from workbench.chains.alignment import Measured, measured
from workbench.chains.capacity import CpuScale, carried_to, pooled, scales_of
from workbench.chains.composition import ChainForecaster, TwoTerms
from workbench.chains.correction import CorrectedForecaster
from workbench.chains.demand import DEMAND, CpuAlone
from workbench.chains.function_profiles import Part
from workbench.chains.proposal import (
    CPU,
    Method,
    correction,
    correction_by_cpu,
    propose,
    refitted,
)
from workbench.chains.usage import ExpectedUsage
from workbench.domain import codec
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.retraining import Proposal
from workbench.domain.samples import Estimate, Sample, Usage
from workbench.domain.topology import Series, Vnf
from workbench.engine.answers.chain_models import cpu_scales, of_several

A, B = named("a", "b")
LINE = Series((A, B))
LOADS = (1.0, 200.0)
CLIENTS = PrimaryWorkload("concurrent", *LOADS, integer=True)
THINK_MS = 100.0
THINKING = "closed-think-0.1s"
ONE = Configuration({"a.vcpu": 1.0, "b.vcpu": 1.0}, {})
CAPACITY = {"a": 1000.0, "b": 600.0}
"""Requests per second of a core; CPU per request is its inverse."""
SERVICE_MS = 2.0


def response_ms(capacity: float, clients: float) -> float:
    """Flat, then n/X - Z."""
    return max(SERVICE_MS, 1000.0 * clients / capacity - THINK_MS)


def cpu(vnf: str, fixed: float = 0.0) -> CpuAlone:
    ms = 1000.0 / CAPACITY[vnf]
    known = Known(DEMAND, vnf, lambda _, rate: ms + 1000.0 * fixed / rate, 0.05, (1.0, 1e4))
    return CpuAlone(known, fixed)


def alone(vnf: str, load: str = THINKING, fixed: float = 0.0) -> Part:
    capacity = CAPACITY[vnf]

    def time(_: float, n: float) -> float:
        return response_ms(capacity, n)

    def rate(_: float, n: float) -> float:
        return 1000.0 * n / (response_ms(capacity, n) + THINK_MS)

    kpis = {"mean_ms": time, "p95_ms": lambda v, n: 2.0 * time(v, n), "throughput_rps": rate}
    made = part(vnf, kpis, load=load, loads=LOADS)
    return replace(made, cpu=cpu(vnf, fixed), primary="concurrent")


PARTS = {"a": alone("a"), "b": alone("b")}


def taken(
    clients: float,
    ratios: Mapping[str, float],
    *,
    ms: float = 2.0 * SERVICE_MS,
    luck: float = 1.0,
    fixed: float = 0.0,
    configuration: Configuration = ONE,
    lost: float = 0.0,
) -> Sample:
    """A sample of the chain: what it carried, and the CPU of its functions by ratios to alone."""
    rate = 1000.0 * clients / (ms + THINK_MS)
    used = {v: luck * s * rate / CAPACITY[v] + fixed for v, s in ratios.items()}
    one = sample(clients, ms, configuration, noise=0.02, target="chain")
    kpis = {**one.kpis, "throughput_rps": Estimate(rate, rate, rate)}
    kpis["p95_ms"] = Estimate(2.0 * ms, 1.9 * ms, 2.1 * ms)
    kpis["error_pct"] = Estimate(lost, lost, lost)
    usage = {v: Usage(cores, cores) for v, cores in used.items()}
    return replace(one, kpis=kpis, usage=usage, load_model=THINKING)


def canaries(ratios: Mapping[str, float], **details: float) -> list[Sample]:
    """Ten of the lower half, where nothing queues; CPU scatters by 4 %."""
    luck = np.exp(0.04 * np.random.default_rng(3).standard_normal(10))
    loads = (3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0, 24.0, 27.0, 30.0)
    return [
        taken(n, ratios, luck=float(more), **details)  # type: ignore[arg-type]
        for n, more in zip(loads, luck, strict=True)
    ]


def seen(samples: list[Sample], kpi: str = "mean_ms") -> Measured:
    return measured("chain", samples, kpi=kpi, kpi_max=math.inf, primary=CLIENTS)


def chain(kpi: str = "mean_ms", scales: Mapping[str, CpuScale] | None = None) -> ChainForecaster:
    return ChainForecaster(LINE, PARTS, kpi, scales=scales or {})


# ------------------------------------------------------------------------- what CPU says


@pytest.mark.parametrize("true", [0.7, 0.87, 4.2])
def test_the_ratio_is_read_off_a_few_samples_whatever_one_of_them_says(true: float) -> None:
    samples = canaries({"a": 1.0, "b": true})
    samples[4] = taken(15.0, {"a": 1.0, "b": true}, luck=2.0)
    found = scales_of(LINE, PARTS, seen(samples))
    assert found["b"].factor == pytest.approx(true, rel=0.06)
    low, high = found["b"].interval
    assert low < true < high
    assert found["b"].sd < 0.08
    assert found["b"].differs_from(1.0)
    assert not found["a"].differs_from(1.0), "it needs what it needs alone"


def test_every_kpi_of_the_same_samples_says_the_same() -> None:
    samples = canaries({"a": 1.0, "b": 0.8})
    mean, p95 = (scales_of(LINE, PARTS, seen(samples, kpi)) for kpi in ("mean_ms", "p95_ms"))
    assert mean == p95


def test_what_a_function_always_uses_is_no_part_of_a_request() -> None:
    """Ten times what requests take at the lowest load: as a plain ratio it would say 1."""
    fixed = 0.3
    parts = {"a": PARTS["a"], "b": alone("b", fixed=fixed)}
    samples = [taken(n, {"a": 1.0, "b": 2.0}, fixed=fixed) for n in (20, 40, 80, 120, 160, 190)]
    found = scales_of(LINE, parts, seen(samples))
    assert found["b"].factor == pytest.approx(2.0, rel=0.05)
    drowned = [taken(n, {"b": 2.0}, fixed=fixed) for n in (2, 4, 6, 8)]
    assert "b" not in scales_of(LINE, parts, seen(drowned)), "lost in what it always uses"


def test_what_was_not_measured_says_nothing() -> None:
    samples = canaries({"a": 1.0, "b": 0.8})
    assert scales_of(LINE, {**PARTS, "b": replace(PARTS["b"], cpu=None)}, seen(samples)).keys() == {
        "a"
    }
    unseen = [replace(s, usage={"a": s.usage["a"]}) for s in samples]
    assert scales_of(LINE, PARTS, seen(unseen)).keys() == {"a"}
    assert scales_of(LINE, PARTS, seen(samples[:2])) == {}, "two may be luck"
    failed = [taken(n, {"a": 1.0, "b": 0.8}, lost=20.0) for n in (3, 6, 9, 12)]
    assert scales_of(LINE, PARTS, seen(failed)) == {}, "errors cost CPU, too"


def test_a_ratio_that_fades_with_the_rate_is_that_of_the_highest_rates() -> None:
    """On real hosts CPU per request falls with the rate, in a chain from higher up."""
    rates = np.tile(np.log(np.geomspace(40.0, 1000.0, 12)), 3)
    fading = 0.12 * (rates.max() - rates)
    found = pooled(fading, rates, np.repeat([0, 1, 2], 12))
    assert not found.differs_from(1.0)
    assert found.factor < math.exp(0.5 * fading.mean())


def test_configurations_that_disagree_make_it_less_sure() -> None:
    rates, groups = np.zeros(12), np.repeat([0, 1, 2], 4)
    together = pooled(np.full(12, 0.2), rates, groups)
    apart = pooled(np.repeat([0.0, 0.2, 0.4], 4), rates, groups)
    assert apart.sd > 2.0 * together.sd


# ------------------------------------------------------------------------- what becomes of it


def test_a_function_is_asked_at_the_load_at_which_it_was_as_busy() -> None:
    scales = {"b": CpuScale(math.log(0.8), 0.0)}
    points = [(ONE, n) for n in (10.0, 80.0, 150.0)]
    figures = chain(scales=scales).outlook(points).functions["b"]
    assert np.exp(figures.mean) == pytest.approx(
        [response_ms(CAPACITY["b"] / 0.8, n) for _, n in points]
    )
    rate = chain("throughput_rps", scales).outlook([(ONE, 150.0)]).functions["b"]
    assert float(np.exp(rate.mean[0])) == pytest.approx(CAPACITY["b"] / 0.8)


def test_clients_beyond_those_it_was_profiled_with_take_what_it_carries() -> None:
    scales = {"b": CpuScale(math.log(4.0), 0.0)}
    said = chain(scales=scales).outlook([(ONE, 150.0)])
    assert float(np.exp(said.functions["b"].mean[0])) == pytest.approx(
        response_ms(CAPACITY["b"] / 4.0, 150.0)
    )
    assert not said.chain.extrapolates[0]
    terms = TwoTerms(LINE, PARTS, "mean_ms", scales)
    assert float(np.exp(terms.bottleneck([(ONE, 150.0)])[0])) == pytest.approx(
        response_ms(CAPACITY["b"] / 4.0, 150.0), rel=1e-3
    )


def test_under_a_planned_load_it_loses_and_carries_by_its_cpu() -> None:
    kpis = {"loss_pct": overload(600.0), "throughput_rps": carried(600.0)}
    parts = {"a": part("a", {"loss_pct": overload(5000.0)}, load=OPEN), "b": part("b", kpis)}
    scales = {"b": CpuScale(math.log(2.0), 0.0)}
    loss = ChainForecaster(LINE, parts, "loss_pct", scales=scales).forecast([(ONE, 400.0)])
    assert float(np.exp(loss.mean[0])) == pytest.approx(25.0)
    single = ChainForecaster(B, parts, "throughput_rps", scales=scales)
    assert np.exp(single.forecast([(ONE, 200.0), (ONE, 400.0)]).mean) == pytest.approx([200, 300])


def test_beyond_the_rates_that_were_profiled_cpu_to_spare_says_that_nothing_queues() -> None:
    """b carries 600/s alone, 240/s here, and was profiled up to 200/s."""
    kpis: dict[str, Formula | float] = {"mean_ms": 2.0, "throughput_rps": carried(600.0)}
    parts = {v: replace(part(v, kpis, loads=(1.0, 200.0)), cpu=cpu(v)) for v in ("a", "b")}
    scales = {"b": CpuScale(math.log(2.5), 0.02)}
    line = ChainForecaster(LINE, parts, "mean_ms", scales=scales)
    said = line.forecast([(ONE, 60.0), (ONE, 150.0), (ONE, 190.0)])
    assert said.extrapolates.tolist() == [False, False, True]
    blind = {**parts, "b": replace(parts["b"], cpu=None)}
    unknown = ChainForecaster(LINE, blind, "mean_ms", scales=scales)
    assert unknown.forecast([(ONE, 60.0), (ONE, 150.0)]).extrapolates.tolist() == [False, True]


def test_what_is_not_sure_of_the_ratio_widens_the_interval() -> None:
    sure, unsure = (
        chain(scales={"b": CpuScale(math.log(0.8), sd)}).forecast([(ONE, 150.0)])
        for sd in (0.0, 0.1)
    )
    assert unsure.mean == pytest.approx(sure.mean)
    assert unsure.high - unsure.low > 1.3 * (sure.high - sure.low)


def test_usage_is_expected_by_it() -> None:
    demands = {vnf: cpu(vnf).per_request for vnf in CAPACITY}
    said = ExpectedUsage(LINE, PARTS, demands, {"b": CpuScale(math.log(0.5), 0.0)})
    plain = ExpectedUsage(LINE, PARTS, demands)
    points = [(ONE, 10.0)]
    for name, ratio in (("a", 1.0), ("b", 0.5)):
        gap = said.forecast(points)[name].mean - plain.forecast(points)[name].mean
        assert float(np.exp(gap[0])) == pytest.approx(ratio)


# ------------------------------------------------------------------------- what is proposed


def by_cpu(kpi: str = "mean_ms") -> Method:
    return correction_by_cpu(chain(kpi), two_terms=True)


def proposed(samples: list[Sample], method: Method | None = None) -> Proposal:
    return propose(
        "chain", samples, method or by_cpu(), chain(), kpi_max=math.inf, primary=CLIENTS
    )  # fmt: skip


def test_capacity_that_response_times_cannot_show_is_a_gain_and_says_so() -> None:
    samples = canaries({"a": 1.0, "b": 0.75})
    found = proposed(samples)
    assert found.gain
    assert "b needs 0.7" in found.statement
    assert "times the CPU per request that it needs alone: it carries 3" in found.statement
    assert "more than was predicted before" in found.statement
    assert found.statement.endswith("Response times cannot show it at loads where nothing queues.")
    rows = {change.name: change for change in found.changes if change.configuration is None}
    row = rows["CPU per request of b"]
    assert (row.before, row.unit) == (1.0, "")
    assert row.low < row.after < row.high < 1.0
    assert rows["CPU per request of a"].low < 1.0 < rows["CPU per request of a"].high
    model = by_cpu().train(seen(samples))
    above = [(ONE, 150.0)]
    true = response_ms(CAPACITY["b"] / 0.75, 150.0)
    assert float(np.exp(model.forecast(above).mean[0])) == pytest.approx(true, rel=0.15)
    assert float(np.exp(chain().forecast(above).mean[0])) > 1.25 * true


def test_without_another_need_of_cpu_nothing_can_be_gained() -> None:
    found = proposed(canaries({"a": 1.0, "b": 1.0}))
    assert not found.gain
    assert "nothing can be gained" in found.statement
    model = by_cpu().train(seen(canaries({"a": 1.0, "b": 1.0})))
    points = [(ONE, n) for n in (10.0, 150.0)]
    assert model.forecast(points).mean == pytest.approx(chain().forecast(points).mean, abs=0.05)


def test_response_times_that_contradict_it_are_heard() -> None:
    """CPU says that b carries a quarter, while nothing queues at loads far above that."""
    samples = [taken(n, {"a": 1.0, "b": 4.0}) for n in (20, 26, 30, 34, 38, 42, 46, 50)]
    found = proposed(samples, replace(by_cpu(), train=without_terms))
    assert not found.gain
    assert "Their CPU says otherwise: b needs" in found.statement


def without_terms(seen: Measured) -> CorrectedForecaster:
    """A model that takes CPU at its word."""
    model = by_cpu().train(seen)
    assert isinstance(model, CorrectedForecaster)
    model.applied = False
    return model


def test_it_survives_storing_and_is_checked_when_fitted_again() -> None:
    samples = canaries({"a": 1.0, "b": 0.75})
    found = proposed(samples)
    stored = codec.from_plain(codec.loads(codec.dumps(codec.to_plain(found))), Proposal)
    assert stored == found
    assert stored.model.parameters[CPU] == "per request"

    def again(samples: list[Sample]) -> object:
        return refitted(stored, samples, by_cpu(), kpi_max=math.inf, primary=CLIENTS)

    again(samples[::-1])
    busier = [
        replace(s, usage={v: replace(u, cpu_cores=1.2 * u.cpu_cores) for v, u in s.usage.items()})
        for s in samples
    ]
    with pytest.raises(DataError, match="other coefficients"):
        again(busier)


def test_what_the_model_in_force_says_already_is_no_gain() -> None:
    samples = canaries({"a": 1.0, "b": 0.75})
    accepted = by_cpu().train(seen(samples))
    found = propose(
        "chain", samples, by_cpu(), accepted, kpi_max=math.inf, primary=CLIENTS, based_on=1
    )
    assert not found.gain
    row = next(c for c in found.changes if c.name == "CPU per request of b")
    assert row.before == row.after < 1.0


def test_a_correction_of_before_is_fitted_as_it_was() -> None:
    plain = chain()
    method = correction(plain, TwoTerms(LINE, PARTS, "mean_ms"))
    assert CPU not in method.parameters
    trained = method.train(seen(canaries({"a": 1.0, "b": 0.75})))
    assert isinstance(trained, CorrectedForecaster)
    assert not trained.applied


def test_several_instances_need_what_one_needs() -> None:
    more = Series((A, Vnf("b-1", "b"), Vnf("b-2", "b")))
    scale = CpuScale(math.log(0.75), 0.02)
    assert carried_to({"b": scale}, LINE, more) == {"b-1": scale, "b-2": scale}
    model = by_cpu().train(seen(canaries({"a": 1.0, "b": 0.75})))
    parts = {"a": PARTS["a"], "b-1": PARTS["b"], "b-2": PARTS["b"]}
    several = of_several(model, ChainForecaster(more, parts, "mean_ms"))
    assert several is not None
    assert cpu_scales(model, more).keys() == {"a", "b-1", "b-2"}
    settings = Configuration({"a.vcpu": 1.0, "b-1.vcpu": 1.0, "b-2.vcpu": 1.0}, {})
    said = several.forecast([(settings, 150.0)]).mean
    single = model.forecast([(ONE, 150.0)]).mean
    assert said == pytest.approx(single, abs=0.05)
