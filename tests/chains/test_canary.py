"""Small loads first, each checked before the next; what goes wrong ends it and is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from synthetic_chain import (
    CHAIN,
    CLIENTS,
    KPI_MAX,
    SETTINGS,
    SyntheticChain,
    sample,
)

from workbench.chains.alignment import measured
from workbench.chains.canary import Canary, canary_plan
from workbench.chains.correction import CorrectedForecaster
from workbench.domain import codec
from workbench.domain.errors import DataError
from workbench.domain.parameters import PrimaryWorkload, Sla
from workbench.domain.retraining import CanaryAsk, CanaryPlan, CanaryTerms
from workbench.domain.samples import Sample
from workbench.models.forecast import Forecast, Forecaster, Points

RATE = PrimaryWorkload("rate", 10.0, 410.0, unit="/s")
SLA = Sla("mean_ms", 100.0, wl=100.0)
HERE = SETTINGS[0]


def plan(**options: object) -> CanaryPlan:
    options = {"sla": SLA, **options}
    return canary_plan(CHAIN, HERE, CLIENTS, CanaryTerms(**options))  # type: ignore[arg-type]


def answer(ask: CanaryAsk, value: float, **options: object) -> Sample:
    point = ask.point
    return sample(
        point.wl,
        value,
        point.configuration,
        repetition=point.repetition,
        **options,  # type: ignore[arg-type]
    )


def walk(canary: Canary, says: Callable[[CanaryAsk], Sample]) -> list[CanaryAsk]:
    asks = []
    while (ask := canary.ask()) is not None:
        assert canary.ask() is ask, "asking again changes nothing"
        asks.append(ask)
        canary.tell([says(ask)])
    return asks


# ------------------------------------------------------------------------- the plan


def test_ten_steps_rise_to_the_share_of_the_slas_load() -> None:
    assert plan().loads == (1, 6, 12, 17, 23, 28, 34, 39, 45, 50), "clients come whole"
    assert plan().guards == (SLA,)
    free = canary_plan(CHAIN, HERE, RATE, CanaryTerms(share=0.5, steps=5))
    assert free.loads == pytest.approx((10.0, 60.0, 110.0, 160.0, 210.0)), "half of the range"
    assert free.guards == ()


def test_steps_of_paper_a_go_up_by_five_clients() -> None:
    assert plan(increment=5.0).loads == tuple(range(1, 51, 5))


def test_a_small_range_has_fewer_steps_and_none_twice() -> None:
    small = canary_plan(CHAIN, HERE, CLIENTS, CanaryTerms(Sla("mean_ms", 9.0, wl=8.0)))
    assert small.loads == (1, 2, 3, 4)


def test_random_loads_stay_in_the_allowed_range_and_follow_the_seed() -> None:
    one, same, other = (plan(mode="online", seed=seed, steps=30).loads for seed in (1, 1, 2))
    assert one == same != other
    assert min(one) >= 1
    assert max(one) <= 50
    assert list(one) != sorted(one)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"share": 0.0}, "share of 0"),
        ({"share": 1.5}, "share of 1.5"),
        ({"steps": 0}, "above zero"),
        ({"sla": Sla("mean_ms", 9.0, wl=1.0)}, "below the lowest load"),
    ],
)
def test_a_plan_that_allows_nothing_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        plan(**options)


def test_loads_stand_apart_from_their_unit_in_a_refusal() -> None:
    rate = PrimaryWorkload("rate", 500.0, 4000.0, unit="requests/s")
    with pytest.raises(DataError, match=r"200 requests/s, lies below .*, 500 requests/s\."):
        canary_plan(CHAIN, HERE, rate, CanaryTerms(Sla("p95_ms", 9.0, wl=400.0)))


# ------------------------------------------------------------------------- the walk


def test_all_steps_are_kept_where_nothing_goes_wrong() -> None:
    canary = Canary(plan())
    asks = walk(canary, lambda ask: answer(ask, 20.0))
    assert [ask.point.wl for ask in asks] == list(plan().loads)
    assert len(canary.kept) == 10
    assert canary.spent_s == 50.0
    assert canary.ending is not None
    assert canary.ending.state == "done"
    assert "All 10 loads" in canary.ending.note


def test_a_guard_that_trips_stops_and_restores_the_previous_step() -> None:
    canary = Canary(plan())
    asks = walk(canary, lambda ask: answer(ask, 150.0 if ask.point.wl > 30 else 20.0))
    assert [ask.kind for ask in asks] == ["step"] * 7 + ["restore"]
    assert [ask.point.wl for ask in asks[-3:]] == [28, 34, 28]
    assert asks[-1].point.repetition == 1
    assert [step.verdict for step in canary.steps][-2:] == ["guard", "restored"]
    assert canary.ending is not None
    assert (canary.ending.state, canary.ending.restored_wl) == ("guard", 28)
    assert "mean 150 ms is past the guard of mean <= 100 ms at 34: back to 28" in canary.ending.note
    assert all(s.point.wl <= 28 for s in canary.kept)


def test_a_guard_that_trips_at_the_first_load_leaves_no_load() -> None:
    canary = Canary(plan())
    assert len(walk(canary, lambda ask: answer(ask, 150.0))) == 1
    assert canary.ending is not None
    assert canary.ending.restored_wl is None
    assert "no load" in canary.ending.note


def test_a_chain_that_is_overloaded_or_that_breaks_past_the_guard_is_not_tried_again() -> None:
    overloaded = Canary(plan())
    walk(overloaded, lambda ask: answer(ask, 50.0, overloaded=ask.point.wl > 20))
    assert overloaded.ending is not None
    assert overloaded.ending.state == "guard"
    assert "grew for as long" in overloaded.ending.note
    broken = Canary(plan())
    asks = walk(
        broken, lambda ask: answer(ask, 150.0, reason="errors") if ask.point.wl > 20
        else answer(ask, 20.0)
    )  # fmt: skip
    assert [ask.kind for ask in asks][-2:] == ["step", "restore"]


def test_a_guard_from_below_trips_too() -> None:
    guard = Sla("throughput_rps", 10.0, ">=")
    canary = Canary(plan(guards=(guard,)))
    walk(canary, lambda ask: answer(ask, 20.0 - ask.point.wl / 2.0, kpi="throughput_rps"))
    assert canary.ending is not None
    assert canary.ending.state == "guard"
    assert [s.point.wl for s in canary.kept] == [1, 6, 12, 17]


def test_an_invalid_sample_is_asked_for_again_up_to_the_limit() -> None:
    flaky = iter([True, False] * 10)
    canary = Canary(plan())
    asks = walk(canary, lambda ask: answer(ask, 20.0, reason="little" if next(flaky) else ""))
    assert [ask.point.repetition for ask in asks] == [0, 1] * 10
    assert len(canary.kept) == 10
    assert "attempt 2 of 3" in asks[1].why

    never = Canary(plan())
    assert len(walk(never, lambda ask: answer(ask, 20.0, reason="little"))) == 3
    assert never.ending is not None
    assert never.ending.state == "invalid"
    assert never.ending.note.startswith("3 samples at 1 are invalid: little")


def test_the_cost_cap_is_not_overspent() -> None:
    canary = Canary(plan(budget_s=32.0))
    asks = walk(canary, lambda ask: answer(ask, 20.0, lab_s=7.0))
    assert len(asks) == 4
    assert canary.spent_s == 28.0
    assert canary.ending is not None
    assert canary.ending.state == "budget"


def test_repetitions_that_exist_are_not_measured_again() -> None:
    earlier = [sample(1.0, 20.0, HERE, repetition=k) for k in range(3)]
    ask = Canary(plan(), earlier=earlier).ask()
    assert ask is not None
    assert ask.point.repetition == 3


# ------------------------------------------------------------------------- the model's own word


class Proportional:
    """KPI proportional to the load, by what the samples say so far."""

    kpi = "mean_ms"

    def __init__(self, samples: Sequence[Sample], ms_per_client: float = 1.0) -> None:
        logs = [math.log(s.kpis["mean_ms"].value / s.point.wl) for s in samples]
        self.level = float(np.mean(logs)) if logs else math.log(ms_per_client)

    def forecast(self, points: Points) -> Forecast:
        mean = np.log([wl for _, wl in points]) + self.level
        return Forecast(mean, mean - 0.2, mean + 0.2, np.zeros(len(points), dtype=bool))


def test_a_load_that_would_pass_the_guard_by_the_model_is_not_tried() -> None:
    canary = Canary(plan(), Proportional)
    walk(canary, lambda ask: answer(ask, 3.0 * ask.point.wl))
    assert [s.point.wl for s in canary.kept] == [1, 6, 12, 17, 23, 28]
    assert canary.ending is not None
    assert canary.ending.state == "foreseen"
    assert "mean 102 ms" in canary.ending.note
    forecasts = [step.forecast for step in canary.steps]
    assert forecasts[0] is not None
    assert forecasts[0].value == pytest.approx(1.0), "before anything is known"
    assert forecasts[1] is not None
    assert forecasts[1].value == pytest.approx(18.0), "and learned from the first step"


def test_online_such_loads_are_left_out() -> None:
    canary = Canary(plan(mode="online", steps=20, seed=5), partial(Proportional, ms_per_client=3.0))
    walk(canary, lambda ask: answer(ask, 3.0 * ask.point.wl))
    assert canary.ending is not None
    assert canary.ending.state == "done"
    assert "left out" in canary.ending.note
    assert max(s.point.wl for s in canary.kept) <= 33


# ------------------------------------------------------------------------- resuming


def learner(chain: SyntheticChain) -> Callable[[Sequence[Sample]], Forecaster]:
    def learn(samples: Sequence[Sample]) -> Forecaster:
        if len(samples) < 2:
            return chain
        seen = measured(CHAIN, samples, kpi="mean_ms", kpi_max=KPI_MAX, primary=CLIENTS)
        return CorrectedForecaster(chain, seen, chain)

    return learn


def test_stored_samples_told_again_lead_to_the_same_ask() -> None:
    chain = SyntheticChain(3)
    canary = Canary(plan(budget_s=60.0), learner(chain))
    told: list[Sample] = []
    while (ask := canary.ask()) is not None:
        again = Canary(plan(budget_s=60.0), learner(chain))
        again.tell(told)
        assert again.ask() == ask
        told.append(chain.measure(HERE, ask.point.wl, ask.point.repetition))
        canary.tell(told[-1:])
    assert len(canary.kept) == 10
    step = canary.steps[-1]
    assert step.forecast is not None
    assert step.forecast.low < canary.kept[-1].kpis["mean_ms"].value < step.forecast.high
    plain = codec.loads(codec.dumps(codec.to_plain(canary.plan)))
    assert codec.from_plain(plain, CanaryPlan) == canary.plan


def test_a_sample_that_nobody_asked_for_is_refused() -> None:
    canary = Canary(plan())
    with pytest.raises(DataError, match="was asked for"):
        canary.tell([sample(1.0, 20.0, SETTINGS[1])])
    walk(canary, lambda ask: answer(ask, 20.0))
    with pytest.raises(DataError, match="had ended"):
        canary.tell([sample(1.0, 20.0)])
