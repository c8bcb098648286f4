"""How far off a prediction was: everywhere, by configuration, by KPI, and where it matters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic_chain import CHAIN, CLIENTS, KPI_MAX, SETTINGS, SyntheticChain, sample

from workbench.chains.comparison import Baseline, compare_chain, outliers
from workbench.domain import codec
from workbench.domain.errors import WRONG_USE, DataError
from workbench.domain.retraining import ChainComparison
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Points
from workbench.models.interpolation import LogInterpolation

BASELINE = Baseline("interpolation", LogInterpolation)


class Says:
    """The same for every point, to a tenth."""

    def __init__(self, value: float, kpi: str = "mean_ms") -> None:
        self.kpi, self.value = kpi, math.log(value)

    def forecast(self, points: Points) -> Forecast:
        mean: Floats = np.full(len(points), self.value)
        return Forecast(mean, mean - 0.1, mean + 0.1, np.zeros(len(points), dtype=bool))


def compared(
    samples: list[Sample],
    said: float = 100.0,
    ab_floor: float = 0.1,
    baseline: Baseline | None = None,
) -> ChainComparison:
    return compare_chain(
        CHAIN, samples, Says(said), rule="weakest-link", kpi_max=KPI_MAX, primary=CLIENTS,
        ab_floor=ab_floor, baseline=baseline,
    )  # fmt: skip


def test_errors_are_those_of_paper_a() -> None:
    found = compared([sample(1.0, 50.0), sample(2.0, 100.0), sample(4.0, 200.0)])
    assert found.mae == pytest.approx(50.0)
    assert found.mad == pytest.approx(50.0)
    assert found.rmse == pytest.approx(math.sqrt((50.0**2 + 100.0**2) / 3.0))
    assert found.mape == pytest.approx((1.0 + 0.0 + 0.5) / 3.0)
    assert found.log_error == pytest.approx(math.log(2.0))
    assert found.coverage == pytest.approx(1.0 / 3.0)
    assert found.baseline_rmse is None


def test_the_worst_configuration_comes_first_and_buckets_are_decades() -> None:
    samples = [
        sample(1.0, 90.0, SETTINGS[0]),
        sample(2.0, 110.0, SETTINGS[0]),
        sample(1.0, 9.0, SETTINGS[1]),
        sample(2.0, 1100.0, SETTINGS[1]),
    ]
    found = compared(samples)
    assert [row.configuration for row in found.configurations] == [SETTINGS[1], SETTINGS[0]]
    assert found.configurations[1].ratio == pytest.approx(math.sqrt(0.99))
    assert [(b.low, b.high, b.samples) for b in found.buckets] == [
        (pytest.approx(1.0), pytest.approx(10.0), 1),
        (pytest.approx(10.0), pytest.approx(100.0), 1),
        (pytest.approx(100.0), pytest.approx(1000.0), 1),
        (pytest.approx(1000.0), pytest.approx(10000.0), 1),
    ]


def test_a_model_of_the_chains_own_samples_stands_beside_the_prediction() -> None:
    chain = SyntheticChain(1)
    samples = [
        chain.measure(c, float(wl))
        for c in SETTINGS
        for wl in (1, 4, 8, 16, 24, 32, 48, 64, 96, 128)
    ]
    found = compare_chain(
        CHAIN, samples, chain, rule="weakest-link", kpi_max=KPI_MAX, primary=CLIENTS,
        ab_floor=0.1, baseline=BASELINE,
    )  # fmt: skip
    assert found.baseline == "interpolation"
    assert found.baseline_rmse is not None
    assert found.baseline_rmse < 0.7 * found.rmse
    assert all(row.baseline_mape is not None for row in found.configurations)


def test_a_baseline_that_cannot_be_trained_is_no_error() -> None:
    found = compared([sample(1.0, 50.0)], baseline=BASELINE)
    assert found.baseline_rmse is None
    assert "interpolation could not be trained" in found.note


def test_outliers_lie_beyond_both_intervals_and_beyond_the_hosts_floor() -> None:
    samples = [
        sample(1.0, 130.0, SETTINGS[0]),
        sample(1.0, 115.0, SETTINGS[1]),
        sample(1.0, 40.0, SETTINGS[2]),
    ]
    found = outliers(CHAIN, samples, Says(100.0), ab_floor=0.1)
    assert [(o.configuration, o.verdict) for o in found] == [
        (SETTINGS[2], "better"),
        (SETTINGS[0], "worse"),
    ], "115 lies within what the intervals leave open"
    assert found[1].ratio == pytest.approx(1.3)
    assert found[1].predicted.high < found[1].measured.low
    quiet = outliers(CHAIN, samples, Says(100.0), ab_floor=0.5)
    assert [o.verdict for o in quiet] == ["better"], "a host that differs by 50 % from itself"


def test_a_configuration_may_be_better_at_one_load_and_worse_at_another() -> None:
    samples = [sample(1.0, 40.0), sample(2.0, 30.0), sample(3.0, 100.0), sample(4.0, 300.0)]
    found = outliers(CHAIN, samples, Says(100.0), ab_floor=0.1)
    assert {(o.verdict, o.wl, o.loads, o.points) for o in found} == {
        ("better", 2.0, (1.0, 2.0), 4),
        ("worse", 4.0, (4.0,), 4),
    }


def test_more_throughput_is_better() -> None:
    samples = [sample(1.0, 300.0, kpi="throughput_rps"), sample(2.0, 30.0, kpi="throughput_rps")]
    found = outliers(CHAIN, samples, Says(100.0, "throughput_rps"), ab_floor=0.1)
    assert {(o.wl, o.verdict) for o in found} == {(1.0, "better"), (2.0, "worse")}


def test_a_chain_that_is_overloaded_where_it_should_not_be_is_worse() -> None:
    samples = [sample(1.0, 100.0), sample(2.0, 900.0, overloaded=True)]
    found = compared(samples)
    assert found.samples == 1, "a bound is no figure to take an error of"
    assert [(o.wl, o.verdict, o.bounded) for o in found.outliers] == [(2.0, "worse", True)]
    assert not compared([sample(1.0, 100.0), sample(2.0, 60.0, overloaded=True)]).outliers


def test_a_bound_keeps_its_value_and_its_open_end_whatever_other_samples_state() -> None:
    samples = [sample(1.0, 100.0), sample(2.0, 900.0, overloaded=True)]
    (worse,) = outliers(CHAIN, samples, Says(100.0), ab_floor=0.1)
    assert (worse.measured.value, worse.measured.high) == pytest.approx((900.0, KPI_MAX))
    (capped,) = outliers(CHAIN, [sample(1.0, 900.0)], Says(100.0), ab_floor=0.1, kpi_max=500.0)
    assert (capped.measured.value, capped.bounded) == (pytest.approx(500.0), True)
    higher = [sample(1.0, 900.0, overloaded=True)]
    assert not outliers(CHAIN, higher, Says(2000.0), ab_floor=0.1), "not better: it may be higher"


def test_repetitions_count_once_and_narrow_the_interval() -> None:
    once = [sample(1.0, 116.0, noise=0.05)]
    often = [sample(1.0, 116.0, repetition=k, noise=0.05) for k in range(9)]
    assert not outliers(CHAIN, once, Says(100.0), ab_floor=0.1)
    assert len(outliers(CHAIN, often, Says(100.0), ab_floor=0.1)) == 1


def test_chance_makes_few_outliers_where_the_prediction_is_right() -> None:
    chain = SyntheticChain(5, knee=None, own=0.0, shared=0.0, wrong=0.02)
    samples = [chain.measure(c, float(wl)) for c in SETTINGS for wl in range(1, 101, 2)]
    found = outliers(CHAIN, samples, chain, ab_floor=0.05)
    assert sum(len(o.loads) for o in found) <= 0.05 * len(samples)


def test_nothing_to_compare_is_named_and_a_comparison_can_be_sent() -> None:
    with pytest.raises(DataError, match="has no samples"):
        compared([])
    with pytest.raises(DataError, match="only bound it") as refused:
        compared([sample(1.0, 100.0, overloaded=True)])
    assert refused.value.exit_code == WRONG_USE, "not the code of a chain that deviates"
    with pytest.raises(DataError, match="not finite"):
        compared([sample(1.0, 100.0)], said=math.inf)
    found = compared([sample(1.0, 50.0), sample(2.0, 100.0)], baseline=BASELINE)
    plain = codec.loads(codec.dumps(codec.to_plain(found)))
    assert codec.from_plain(plain, ChainComparison) == found
    wanted = (
        "chain kpi rule buckets ab_floor mae mad rmse mape log_error baseline_rmse "
        "configurations outliers"
    )
    assert set(wanted.split()) <= plain.keys()
