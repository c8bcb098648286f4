"""Scores: by hand, and what they must do."""

import math

import numpy as np
import pytest

from workbench.domain import kpis
from workbench.models.scores import interval_scores, log_errors, score

TRUE = np.log([10.0, 20.0, 40.0, 80.0])
SAID = np.log([11.0, 18.0, 40.0, 100.0])


def test_scores_by_hand():
    s = score("p95_ms", TRUE, SAID)
    assert s.n == 4
    errors = sorted([math.log(1.1), math.log(20 / 18), 0.0, math.log(1.25)])
    assert s.log_error == pytest.approx((errors[1] + errors[2]) / 2.0)
    assert s.log_error_q1 < s.log_error < s.log_error_q3
    assert s.mae == pytest.approx((1 + 2 + 0 + 20) / 4)
    assert s.mad == pytest.approx(1.5)
    assert s.rmse == pytest.approx(math.sqrt((1 + 4 + 0 + 400) / 4))
    assert s.rmse_trimmed == s.rmse  # of four none is left out
    assert s.mape == pytest.approx((0.1 + 0.1 + 0.0 + 0.25) / 4)
    assert s.r2 == pytest.approx(1.0 - 405.0 / (27.5**2 + 17.5**2 + 2.5**2 + 42.5**2))
    assert (s.coverage, s.width, s.interval_score, s.fit_s) == (None, None, None, None)


def test_the_largest_tenth_of_errors_does_not_count_in_a_trimmed_rmse():
    """Twenty predictions, two of them far off: the RMSE is theirs, the trimmed one is not."""
    true = np.log(np.full(20, 100.0))
    said = np.log(np.r_[np.full(18, 103.0), 100_000.0, 5_000.0])
    s = score("p95_ms", true, said)
    assert s.rmse > 20_000.0
    assert s.rmse_trimmed == pytest.approx(3.0)


def test_a_perfect_prediction_has_no_error():
    s = score("throughput_rps", TRUE, TRUE, (TRUE, TRUE), fit_s=0.5)
    assert (s.log_error, s.rmse, s.mae, s.mad, s.mape, s.r2) == (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert (s.coverage, s.width, s.interval_score, s.fit_s) == (1.0, 0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("kpi", "floor"),
    [("p95_ms", 1.0), ("loss_pct", 0.1), ("lag_pct", 0.1), ("throughput_rps", 1e-3)],
)
def test_below_its_floor_a_figure_is_at_it(kpi, floor):
    assert kpis.of(kpi).score_floor == floor
    low = math.log(floor)
    assert log_errors([low - 5.0], [low - 1.0], floor).tolist() == [0.0]
    assert log_errors([low - 5.0], [low + 0.5], floor) == pytest.approx([0.5])
    # A ratio to a loss of nothing is not infinite.
    assert score(kpi, [low - 9.0], [low + math.log(2.0)]).mape < 2.1


def test_the_interval_score_is_the_width_and_forty_times_the_miss():
    assert interval_scores([0.0, 2.0, -1.5], [-1.0] * 3, [1.0] * 3) == pytest.approx(
        [2.0, 2.0 + 40.0, 2.0 + 20.0]
    )


def test_the_interval_score_is_smallest_for_the_true_quantiles():
    """It is proper (Gneiting & Raftery 2007, 6.2)."""
    x = np.random.default_rng(0).normal(size=20_000)
    means = {
        half: interval_scores(x, np.full(x.size, -half), np.full(x.size, half)).mean()
        for half in (1.2, 1.6, 1.96, 2.4, 3.0)
    }
    assert min(means, key=means.get) == 1.96


def test_intervals_are_judged_in_logs():
    s = score("p95_ms", TRUE, SAID, (TRUE - 0.1, TRUE + np.array([0.1, 0.1, 0.3, -0.05])))
    assert s.coverage == 0.75
    assert s.width == pytest.approx(0.2)
    assert s.interval_score == pytest.approx((0.2 + 0.2 + 0.4 + 0.05 + 40 * 0.05) / 4)


def test_a_kpi_that_does_not_vary_has_no_r2():
    assert math.isnan(score("p95_ms", [1.0, 1.0], [1.0, 1.1]).r2)


def test_an_absurd_prediction_has_scores_and_not_an_overflow():
    s = score("p95_ms", TRUE, TRUE + 1000.0)
    assert math.isfinite(s.rmse)
    assert s.log_error == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("true", "said", "what"),
    [
        ([], [], "one shape"),
        ([1.0], [1.0, 2.0], "one shape"),
        ([math.nan], [1.0], "finite"),
        ([1.0], [math.inf], "finite"),
    ],
)
def test_what_cannot_be_scored_is_named(true, said, what):
    with pytest.raises(ValueError, match=what):
        score("p95_ms", true, said)
    with pytest.raises(ValueError, match="interval"):
        score("p95_ms", [1.0], [1.0], ([math.nan], [1.0]))
