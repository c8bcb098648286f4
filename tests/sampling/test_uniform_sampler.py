"""The papers' even grids: every load of every configuration, repetition after repetition."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from synthetic_function import CLOSED, LATENCY_SLA, TARGET, make_sample

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.sampling.base import Ask, Space
from workbench.sampling.uniform import UniformSampler, even_loads, upper_loads

SMALL, LARGE = (Configuration({"haproxy.vcpu": v}, {"filesize_bytes": 1e6}) for v in (0.25, 0.5))
CLIENTS = PrimaryWorkload("concurrent", 1.0, 1000.0, integer=True)
PLAN = SamplingPlan("uniform", max_samples=12, repetitions=3)


def space(seed: int = 1) -> Space:
    return Space(
        TARGET, (SMALL, LARGE), CLIENTS, CLOSED, "p95_ms", 1000.0, 0.005, LATENCY_SLA, seed
    )


def answer(ask: Ask, reason: str = "") -> Sample:
    return make_sample(
        ask.wl,
        {"p95_ms": 10.0},
        load=CLOSED,
        configuration=ask.configuration,
        repetition=ask.repetition,
        reason=reason,
        block=ask.block,
    )


def run(sampler: UniformSampler, reason: str = "") -> list[Ask]:
    asked = []
    while (ask := sampler.ask()) is not None:
        assert ask == sampler.ask(), "asking again changes nothing"
        asked.append(ask)
        sampler.tell([answer(ask, reason)])
    return asked


def test_thirty_loads_evenly_along_the_log_scale() -> None:
    loads = even_loads(CLIENTS, 30)
    assert loads[0] == 1.0
    assert loads[-1] == 1000.0
    assert all(wl == int(wl) for wl in loads)
    # Whole clients: several of the lowest of 30 values fall together.
    assert len(loads) == len(set(loads)) == 27
    ratios = [high / low for low, high in pairwise(loads) if low > 30]
    assert max(ratios) / min(ratios) < 1.05
    even = even_loads(PrimaryWorkload("rate", 100.0, 400.0, scale="linear"), 4)
    assert even == (100.0, 200.0, 300.0, 400.0)
    assert even_loads(CLIENTS, 1) == (1000.0,)


def test_every_load_once_in_each_block_in_another_order() -> None:
    sampler = UniformSampler(space(), PLAN)
    asked = run(sampler)
    loads = even_loads(CLIENTS, 4)
    wanted = [(c, wl, n) for c in (SMALL, LARGE) for wl in loads for n in range(3)]
    assert {(a.configuration, a.wl, a.repetition) for a in asked} == set(wanted)
    assert len(asked) == len(wanted)
    assert [a.block for a in asked] == [a.repetition for a in asked]
    assert all(later.block >= earlier.block for earlier, later in pairwise(asked))
    orders = [[(a.configuration.key, a.wl) for a in asked if a.block == n] for n in range(3)]
    assert orders[0] != orders[1] != orders[2]
    assert sampler.endings[SMALL].outcome == "max_samples"
    assert run(UniformSampler(space(), PLAN)) == asked
    assert run(UniformSampler(space(seed=2), PLAN)) != asked


def test_a_lost_sampler_goes_on_where_it_stood() -> None:
    whole = run(UniformSampler(space(), PLAN))
    for known in (0, 1, 7, 23):
        sampler = UniformSampler(space(), PLAN)
        sampler.tell([answer(ask) for ask in whole[:known]])
        assert run(sampler) == whole[known:]


def test_skipped_and_unusable_configurations_end() -> None:
    sampler = UniformSampler(space(), PLAN)
    sampler.skip(LARGE)
    asked = run(sampler, reason="host_saturated")
    assert {a.configuration for a in asked} == {SMALL}
    assert sampler.endings[LARGE].outcome == "skipped"
    assert sampler.endings[SMALL].outcome == "unusable"


def test_too_few_samples_for_the_repetitions() -> None:
    with pytest.raises(DataError, match="2 samples are too few for 3 repetitions"):
        UniformSampler(space(), SamplingPlan("uniform", max_samples=2, repetitions=3))


def test_more_loads_in_the_upper_half_where_functions_saturate() -> None:
    rates = PrimaryWorkload("rate", 100.0, 8000.0)
    assert upper_loads(rates, 3) == (5037.5, 6025.0, 7012.5)
    plan = replace(PLAN, max_samples=32, repetitions=2, options={"upper": 6.0})
    asked = run(UniformSampler(replace(space(), primary=rates), plan))
    loads = sorted({ask.wl for ask in asked if ask.configuration == SMALL})
    assert loads == sorted({*even_loads(rates, 10), *upper_loads(rates, 6)})
    assert len(asked) == 2 * 32
    assert [ask.block for ask in asked] == [0] * 32 + [1] * 32


@pytest.mark.parametrize("upper", [-1.0, 4.0])
def test_an_impossible_share_of_upper_loads_is_a_sentence(upper: float) -> None:
    with pytest.raises(DataError, match=r"upper is .*must be 0 to 3"):
        UniformSampler(space(), replace(PLAN, options={"upper": upper}))
