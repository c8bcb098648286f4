"""The statistics of paper E on figures whose answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from evidence_making import alone, chained, known

from workbench.diagnosis.deviating import (
    cooks_distances,
    sigmas_from,
    suspects,
    without_outliers,
)
from workbench.diagnosis.explaining import Known, diagnose
from workbench.diagnosis.readings import Reading
from workbench.domain.deviations import CARRIED, deviation_lines, other_load
from workbench.domain.diagnoses import EvidenceRow
from workbench.domain.samples import Usage


def test_what_the_quartiles_leave_out_is_told() -> None:
    kept = without_outliers([1.0, 1.1, 0.9, 1.0, 1.05, 9.0, math.nan])
    assert kept is not None
    assert kept.mean == pytest.approx(1.01)
    assert kept.count == 5
    assert kept.dropped[0] == 9.0
    assert math.isnan(kept.dropped[1])
    few = without_outliers([1.0, 50.0, 2.0])
    assert few is not None
    assert few.dropped == (), "of three values none can be called an outlier"
    assert without_outliers([math.nan]) is None


def leaving_out(x: list[float], y: list[float]) -> list[float]:
    """Cook's distance by its meaning: how far all fitted values move when one point is left out."""
    whole = np.polyval(np.polyfit(x, y, 1), x)
    mse = float(((np.array(y) - whole) ** 2).sum()) / (len(x) - 2)
    moved = []
    for i in range(len(x)):
        others = [j for j in range(len(x)) if j != i]
        line = np.polyfit([x[j] for j in others], [y[j] for j in others], 1)
        moved.append(float(((whole - np.polyval(line, x)) ** 2).sum()) / (2 * mse))
    return moved


def test_the_distance_is_what_leaving_a_point_out_moves() -> None:
    x = [1.0, 2.0, 3.5, 4.0, 6.0, 9.0]
    y = [2.1, 3.9, 7.2, 12.0, 11.8, 18.4]
    assert cooks_distances(x, y) == pytest.approx(leaving_out(x, y))


def test_points_on_a_line_and_points_of_one_load_are_no_trouble() -> None:
    assert cooks_distances([1, 2, 3, 4, 5], [2, 4, 6, 8, 10]) == pytest.approx(np.zeros(5))
    same = cooks_distances([7, 7, 7, 7, 7], [1, 1, 1, 1, 5])
    assert int(np.argmax(same)) == 4
    assert cooks_distances([7] * 5, [3] * 5) == pytest.approx(np.zeros(5))
    assert np.isfinite(cooks_distances([1, 1, 1, 1, 9], [1, 2, 1, 2, 40])).all()
    with pytest.raises(ValueError, match="5 at least"):
        cooks_distances([1, 2, 3, 4], [1, 2, 3, 4])


def test_suspects_are_ranked_by_their_mean_distance_over_all_features() -> None:
    x = [100.0] * 6
    time = [1.0, 1.1, 0.96, 1.05, 1.03, 44.0]
    cpu = [0.2, 0.21, 0.19, 0.9, 0.2, 0.2]
    ranked = suspects(x, {"time": time, "cpu": cpu, "unknown": [math.nan] * 6})
    assert [(one.point, one.beyond) for one in ranked][:1] == [(5, ("time",))]
    assert {one.point for one in ranked} == {3, 5}
    assert ranked[0].mean_distance >= ranked[1].mean_distance
    assert suspects(x, {}) == []


def test_three_repetitions_are_needed_for_a_boundary() -> None:
    assert sigmas_from(10.0, [1.0, 2.0]) is None
    assert sigmas_from(5.0, [1.0, 2.0, 3.0]) == pytest.approx(3.0)
    assert sigmas_from(2.0, [2.0, 2.0, 2.0]) == 0.0
    assert sigmas_from(1.0, [2.0, 2.0, 2.0]) == -math.inf


def varied(function: str, *cores: float) -> list[Reading]:
    """Repetitions of a function alone that differ in CPU."""
    found = []
    for number, used in enumerate(cores):
        one = alone(function)
        usage = {**one.sample.usage, function: Usage(used, 2 * used, 0.0)}
        sample = replace(one.sample, id=f"{function}/{number}", usage=usage)
        found.append(replace(one, sample=sample))
    return found


def test_a_diagnosis_says_what_is_beyond_three_sigma_and_where_it_cannot() -> None:
    seen = chained((0.0442,))
    seen = replace(seen, by_second={"ha": (0.02, 0.02, 0.021, 0.02, 0.019, 0.4)})
    before = known(seen)
    beside = {"tiny": varied("tiny", 0.04, 0.041, 0.039), "ha": before.alone["ha"]}
    found = diagnose(Known(before.target, before.own, beside, before.names), seen, [])
    tiny, ha, *others = deviation_lines(found)
    assert tiny.startswith("tiny: beyond 3 sigma of 3 samples alone: mean response time (")
    assert "999" not in tiny, "figures that are alike each time have no deviation to count in"
    assert "alone each time, here 44.2)" in tiny
    assert "answered" not in tiny, "that is the load, which nobody found out"
    assert "CPU +10" in tiny, "0.5 ms per request where 0.4 +- 0.01 is its own"
    assert ha == (
        "ha: 1 stand-alone sample at this carried rate, and 3 are needed to hold it against 3 sigma"
    )
    assert "CPU by the second, no outliers of ha: 1 of 6 seconds left out: 0.4" in others
    assert others[-1] == (
        "Influential by Cook's distance: none (5 configurations at about this load are needed, "
        "not 1)"
    )
    row = next(r for r in found.rows if r.component == "ha" and r.unit == "cores")
    assert row.chained == pytest.approx(0.02)


def test_a_configuration_that_stands_out_is_named_with_its_features() -> None:
    own = [chained((0.0012 + 0.0001 * n,), vcpu=0.1 * (1 + n)) for n in range(6)]
    own.append(chained((0.0442,), vcpu=0.9))
    found = diagnose(known(*own), own[0], [])
    first = found.suspects[0]
    assert first.configuration == own[-1].sample.point.configuration
    assert "mean response time" in first.beyond
    assert found.suspects_note.startswith("of 7 configurations by ")
    assert "Influential by Cook's distance, of 7 configurations" in deviation_lines(found)[-1]


def test_figures_of_another_load_are_said_to_be() -> None:
    seen = EvidenceRow("ha", CARRIED, "requests/s", 552.0, 100.0)
    assert other_load("ha", [seen]) == (
        "ha: seen alone at 552 requests/s, here at 100: its figures differ by the load, too, "
        "and are not held against 3 sigma"
    )
    assert other_load("ha", [replace(seen, alone=104.0)]) == ""
    assert other_load("ha", [replace(seen, alone=None)]) == ""
