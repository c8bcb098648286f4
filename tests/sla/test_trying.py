"""What the lab teaches of allocations that it did not try, and which it is asked for next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Configuration, Parameter, Sla
from workbench.domain.recommendations import Deployment
from workbench.domain.samples import Estimate
from workbench.models.base import Floats
from workbench.models.forecast import Forecast
from workbench.models.scales import NORMAL_95
from workbench.sla.costs import VcpuHours, allowed
from workbench.sla.profiled import Profiled
from workbench.sla.recommendation import Answer, recommend
from workbench.sla.sla_query import Question, asked
from workbench.sla.trial_selection import LIKELY, around, holding, next_to_try
from workbench.sla.updated_by_trials import (
    LEAST_SD,
    START_SD,
    PerformanceUpdatedByTrials,
    TrialOutlook,
    Tried,
    start_sds,
)

KPI, WL = "p95_ms", 10.0
CORES = (0.5, 0.75, 1.0, 1.5, 2.0)
DEMAND = {"a": 40.0, "b": 60.0}
EVERY = tuple(allowed([Parameter(f"{vnf}.vcpu", CORES) for vnf in DEMAND], VcpuHours()))


@dataclass
class WeakestLink:
    """Each function's KPI is its demand over its cores, wrong by a factor; the worst one counts."""

    wrong: Mapping[str, Mapping[float, float]]
    """Log error by function and cores; forecasts know nothing of it."""
    sd: float = 0.2

    kpis = (KPI,)

    def forecast(self, kpi: str, deployments: Sequence[Deployment], wl: Floats) -> Forecast:
        assert kpi == KPI
        mean = np.array([max(_logs(one).values()) for one in deployments])
        half = NORMAL_95 * self.sd
        return Forecast(mean, mean - half, mean + half, np.zeros(len(wl), dtype=bool))

    def usage(self, deployments: Sequence[Deployment], wl: float) -> Sequence[Mapping[str, float]]:
        return [{} for _ in deployments]

    def truth(self, one: Deployment) -> float:
        logs = _logs(one)
        return max(
            logs[vnf] + self.wrong[vnf][float(one.allocation[f"{vnf}.vcpu"])] for vnf in logs
        )


def _logs(one: Deployment) -> dict[str, float]:
    return {vnf: math.log(d / float(one.allocation[f"{vnf}.vcpu"])) for vnf, d in DEMAND.items()}


EXACT = {vnf: dict.fromkeys(CORES, 0.0) for vnf in DEMAND}


def at(a: float, b: float) -> Deployment:
    return Deployment({"a.vcpu": a, "b.vcpu": b})


def measured(one: Deployment, log: float, sd: float = 0.02) -> Tried:
    ends = (math.exp(log + side * NORMAL_95 * sd) for side in (0.0, -1.0, 1.0))
    return Tried(one, {KPI: Estimate(*ends)})


def question(limit: float) -> Question:
    points = [(Configuration(one.allocation, {}), wl) for one in EVERY for wl in (1.0, 100.0)]
    return asked((Sla(KPI, limit, "<=", WL),), Profiled.of(points, "rate"), (KPI,))


def answer(asked_for: Question, performance: object, every: Sequence[Deployment] = EVERY) -> Answer:
    points = [(Configuration(one.allocation, {}), wl) for one in EVERY for wl in (1.0, 100.0)]
    known = Profiled.of(points, "rate")
    return recommend(asked_for, performance, [every], known, VcpuHours(), runners_up=0)  # type: ignore[arg-type]


def means(performance: PerformanceUpdatedByTrials, *deployments: Deployment) -> Floats:
    return performance.forecast(KPI, deployments, np.full(len(deployments), WL)).mean


def test_what_was_not_tried_teaches_nothing() -> None:
    base = WeakestLink(EXACT)
    taught = PerformanceUpdatedByTrials(base, question(80.0), EVERY, ())
    before, after = (p.forecast(KPI, EVERY, np.full(25, WL)) for p in (base, taught))
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.high, before.high)


def test_a_sample_moves_what_the_same_function_limits_and_hardly_what_another_does() -> None:
    base = WeakestLink(EXACT)
    slow = at(2.0, 0.5)  # b limits: 120 ms
    tried = measured(slow, math.log(120.0) - 0.3)
    taught = PerformanceUpdatedByTrials(base, question(80.0), EVERY, [tried])
    same, other_size, other = at(1.5, 0.5), at(2.0, 1.0), at(0.5, 2.0)
    moved = means(taught, slow, same, other_size, other) - np.array(
        [max(_logs(one).values()) for one in (slow, same, other_size, other)]
    )
    assert moved[0] == pytest.approx(-0.3, abs=0.06)
    assert moved[1] == pytest.approx(moved[0], abs=0.02)
    assert moved[0] + 0.05 < moved[2] < -0.05, "another allotment of b errs alike in part"
    assert abs(moved[3]) < 0.03


def test_a_sample_far_off_every_forecast_is_believed() -> None:
    base = WeakestLink(EXACT, sd=LEAST_SD)
    slow = at(2.0, 0.5)
    tried = measured(slow, math.log(120.0) + 0.5)
    taught = PerformanceUpdatedByTrials(base, question(150.0), EVERY, [tried])
    (mean,) = means(taught, slow)
    assert mean == pytest.approx(math.log(120.0) + 0.5, abs=0.15)


def test_on_a_steady_host_a_sample_says_more() -> None:
    def noise(sd: float) -> HostNoise:
        own = {KPI: sd}
        return HostNoise("sim", "", 0.0, 20, 10, own, own, own, own, 0.0)

    assert start_sds(None) == {}
    steady, rough = (start_sds(noise(sd)) for sd in (0.01, 0.1))
    assert 0.01 * math.sqrt(2.0) < steady[KPI] < START_SD < rough[KPI] < 0.1 * math.sqrt(2.0)
    slow = at(2.0, 0.5)
    tried = measured(slow, math.log(120.0) - 0.3)
    widths = []
    for start_sd in (steady, {}, rough):
        asked_for = replace(question(80.0), start_sd=start_sd)
        taught = PerformanceUpdatedByTrials(WeakestLink(EXACT), asked_for, EVERY, [tried])
        said = taught.forecast(KPI, [slow], np.array([WL]))
        widths.append(float(said.high[0] - said.low[0]))
    assert widths[0] < widths[1] < widths[2]


def test_a_bound_says_only_that_it_is_more() -> None:
    base = WeakestLink(EXACT)
    slow = at(2.0, 0.5)
    low, high = (
        Tried(slow, {KPI: Estimate(bound, bound, bound)}, frozenset({KPI}))
        for bound in (60.0, 150.0)
    )
    expected = math.log(120.0)
    known, raised = (
        means(PerformanceUpdatedByTrials(base, question(80.0), EVERY, [one]), slow)[0]
        for one in (low, high)
    )
    assert known == pytest.approx(expected, abs=0.02)
    assert raised > expected + 0.1


def test_what_the_lab_is_asked_for() -> None:
    base, cost = WeakestLink(EXACT), VcpuHours()
    limit = question(85.0)
    first = answer(limit, base)
    assert first.chosen is not None
    known = around(EVERY, first, cost)
    taught = PerformanceUpdatedByTrials(base, limit, known, ())
    bold = next_to_try(taught, known, cost, first, (), last=False)
    assert bold is not None
    assert sum(map(float, bold.allocation.values())) < first.chosen.cost
    careful = next_to_try(taught, known, cost, first, (), last=True)
    assert careful is not None
    assert careful.key == first.chosen.deployment.key, "what is recommended must be seen at last"

    tried = [measured(bold, math.log(60.0))]
    taught = PerformanceUpdatedByTrials(base, limit, known, tried)
    assert [one.key for one in holding(limit, tried, cost)] == [bold.key]
    settled = answer(limit, taught, holding(limit, tried, cost))
    assert settled.chosen is not None
    assert settled.chosen.deployment.key == bold.key


@dataclass
class Foreseen:
    """A performance whose outlook is given: the last of three is sure."""

    confirmed: Sequence[float]
    both: float
    """Of the first two."""

    def outlook(self, deployments: Sequence[Deployment]) -> TrialOutlook:
        one = np.array(self.confirmed)
        both = np.minimum.outer(one, one)
        np.fill_diagonal(both, one**2)  # as if luck alone decided
        both[0, 1] = both[1, 0] = self.both
        return TrialOutlook(one, both)


LADDER = (at(0.5, 0.5), at(1.0, 1.0), at(2.0, 1.0))
"""Costs 1, 2 and 3 cores."""


def sure_of(asked_for: Question, one: Deployment) -> Answer:
    found = answer(asked_for, WeakestLink(EXACT, sd=LEAST_SD), [one])
    assert found.chosen is not None
    return found


@pytest.mark.parametrize(("likely", "tried"), [(LIKELY + 0.02, 1), (LIKELY - 0.02, 2)])
def test_the_last_goes_to_what_is_cheaper_only_where_it_is_likely_confirmed(
    likely: float, tried: int
) -> None:
    sure, cost = sure_of(question(85.0), LADDER[2]), VcpuHours()
    foreseen = Foreseen((0.1, likely, 0.99), 0.1)
    found = next_to_try(foreseen, LADDER, cost, sure, (), last=True)
    assert found is not None
    assert found.key == LADDER[tried].key


def test_the_first_is_less_bold_than_what_alone_would_save_most() -> None:
    """0.5 of two cores is more than 0.8 of one; but who begins with one core less can still go on
    to the other, and whoever fails at the bold one ends with what is sure."""
    sure, cost = sure_of(question(85.0), LADDER[2]), VcpuHours()
    foreseen = Foreseen((0.5, 0.8, 0.99), 0.5)
    found = next_to_try(foreseen, LADDER, cost, sure, (), last=False)
    assert found is not None
    assert found.key == LADDER[1].key


def test_nothing_is_tried_twice_and_nothing_where_nothing_can_be_saved() -> None:
    base, cost = WeakestLink(EXACT), VcpuHours()
    limit = question(1000.0)  # the smallest of all holds
    first = answer(limit, base)
    assert first.chosen is not None
    taught = PerformanceUpdatedByTrials(base, limit, EVERY, ())
    only = next_to_try(taught, EVERY, cost, first, (), last=False)
    assert only is not None
    assert only.key == first.chosen.deployment.key
    tried = [measured(only, math.log(100.0))]
    taught = PerformanceUpdatedByTrials(base, limit, EVERY, tried)
    assert next_to_try(taught, EVERY, cost, answer(limit, taught), tried, last=True) is None


@pytest.mark.slow
def test_of_what_the_lab_has_confirmed_few_miss_and_it_costs_less() -> None:
    """Errors as wide as they are said to be; a sample scatters by 5 % around its long run."""
    random, cost = np.random.default_rng(3), VcpuHours()
    missed, before, after = 0, [], []
    for _ in range(60):
        wrong = {v: dict(zip(CORES, random.normal(0.0, 0.2, 5), strict=True)) for v in DEMAND}
        base, limit = WeakestLink(wrong), question(float(np.exp(random.uniform(3.9, 4.6))))
        first = found = answer(limit, base)
        if first.chosen is None:
            continue
        known = around(EVERY, first, cost)
        tried: list[Tried] = []
        taught = PerformanceUpdatedByTrials(base, limit, known, tried)
        for last in (False, True):
            following = next_to_try(taught, known, cost, found, tried, last=last)
            if following is None:
                break
            tried.append(measured(following, base.truth(following) + random.normal(0.0, 0.05)))
            taught = PerformanceUpdatedByTrials(base, limit, known, tried)
            found = answer(limit, taught)
        if own := holding(limit, tried, cost):
            confirmed = answer(limit, taught, own)
            found = confirmed if confirmed.chosen else found
        assert len(tried) <= 2
        if found.chosen is None:
            continue
        before.append(first.chosen.cost)
        after.append(found.chosen.cost)
        missed += base.truth(found.chosen.deployment) > math.log(limit.limits[0].limit)
    assert len(after) >= 45
    assert missed <= 0.05 * len(after) + 2
    assert np.mean(after) < 0.9 * np.mean(before)
