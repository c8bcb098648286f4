"""What measured chains have shown goes into the interval of one that nobody has measured."""

from __future__ import annotations

import math

import numpy as np
import pytest
from chain_science.risks import Discrepancy, risk_shown_by

from workbench.chains.handover import (
    AT_MS,
    MEASURED,
    HandoverRisk,
    with_handover,
)
from workbench.domain.parameters import Configuration
from workbench.models.forecast import Forecast, Points

HERE = Configuration({}, {})


class Says:
    """The same time everywhere, without any doubt."""

    def __init__(self, ms: float, kpi: str = "p95_ms") -> None:
        self.kpi, self._log = kpi, math.log(ms)

    def forecast(self, points: Points) -> Forecast:
        said = np.full(len(points), self._log)
        return Forecast(said, said, said, np.zeros(len(points), dtype=bool))


def ends(ms: float, kpi: str = "p95_ms") -> tuple[float, float]:
    said = with_handover(Says(ms, kpi)).forecast([(HERE, 10.0)])
    return math.exp(said.low[0]), math.exp(said.high[0])


def shown(predicted_ms: list[float], measured_ms: list[float], added: float) -> Discrepancy:
    return Discrepancy(np.log(measured_ms), np.log(predicted_ms), added)


def test_the_risk_goes_by_what_is_predicted() -> None:
    """44 ms on top of every request is most of 2 ms and little of a second; beside it, loaded
    chains were off by a third."""
    idle = shown([2.0] * 40, [46.0] * 40, 44.0)
    loaded = shown([1000.0] * 40, [700.0] * 20 + [1300.0] * 20, 0.0)
    risk = risk_shown_by([idle, loaded])
    (_, at_2), (_, at_1000) = (risk.ends(np.log([ms])) for ms in (2.0, 1000.0))
    assert np.exp(at_2) == pytest.approx([46.0], rel=0.1)
    assert np.exp(at_1000) == pytest.approx([1044.0 * 1300 / 1044], rel=0.02)
    assert np.exp(at_1000) < 1.4 * 1000


def test_a_chain_of_a_second_is_not_taken_for_more_than_two() -> None:
    """Limits of 1,000 ms had become 2,200 to 2,500."""
    for kpi in ("mean_ms", "p95_ms"):
        assert ends(1000.0, kpi)[1] < 2000.0
        assert ends(1.5, kpi)[1] > 44.0, "a delayed acknowledgement"


def test_what_is_no_time_has_one_risk_at_every_rate() -> None:
    risk = risk_shown_by([shown([100.0, 1000.0], [90.0, 950.0], -30.0)], adds=False)
    assert risk.added == 0.0
    assert not risk.at
    low, high = risk.ends(np.log([10.0, 10_000.0]))
    assert low[0] - math.log(10.0) == pytest.approx(low[1] - math.log(10_000.0))
    assert high.shape == (2,)


def test_every_risk_that_ships_has_an_end_for_each_predicted_time() -> None:
    for risk in MEASURED.values():
        assert len(risk.below) == len(risk.above) == max(len(risk.at), 1)
        assert max(risk.below) <= 0.0 <= min(risk.above)
    assert HandoverRisk(0.0, (0.0,) * len(AT_MS), (0.0,) * len(AT_MS), AT_MS).at == AT_MS


def test_without_a_risk_the_prediction_stays_what_it_is() -> None:
    prediction = Says(5.0, "jitter_ms")
    assert with_handover(prediction) is prediction
    assert with_handover(Says(5.0), {}).forecast([(HERE, 1.0)]).high[0] == pytest.approx(
        math.log(5.0)
    )
