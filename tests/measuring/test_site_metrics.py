"""What is asked of a window, and what becomes of the answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drives import drive, judged, open_loop, terms

from workbench.domain.observations import Observation
from workbench.domain.samples import Measurement
from workbench.measuring.site_metrics import (
    MOST_TOLD,
    NoFigure,
    SiteAnswer,
    SiteQuery,
    figure,
    filled,
    plan,
    with_site,
)


def test_placeholders_are_filled_in_and_quoted() -> None:
    known = {"component": "haproxy", "container": 'a"b\\c'}
    text = 'x{pod="{{ component }}", name="{{container}}"}[{{ window }}]'
    assert filled(text, known) == 'x{pod="haproxy", name="a\\"b\\\\c"}[{{ window }}]'
    with pytest.raises(NoFigure, match="not know what"):
        filled("x{i='{{ interface }}'}", known)


def test_a_level_is_asked_for_at_every_reading_of_the_window() -> None:
    assert plan("node_load1", 10.0, 2.0).figure == SiteQuery("node_load1", 5, 2.0)
    assert plan("node_load1", 5.0, 5.0).figure.count == 1
    assert plan("node_load1", 3600.0, 1.0).figure.count == 120


def test_a_range_does_not_look_back_beyond_the_window() -> None:
    assert plan("rate(x[5s])", 20.0, 1.0).figure == SiteQuery("rate(x[5s])", 4, 5.0)
    assert plan("rate(x[1m])", 60.0, 15.0).figure.count == 1
    with pytest.raises(NoFigure, match=r"looks back 60 s and the window lasted 3 s.*\[{{ window"):
        plan("rate(x[1m])", 3.0, 1.0)
    with pytest.raises(NoFigure, match="looks back 90 s"):
        plan("max_over_time(rate(x[5s])[1m30s:1s])", 30.0, 1.0)


def test_a_rate_over_the_window_has_batches_of_its_own() -> None:
    planned = plan("rate(x[{{ window }}])", 10.0, 1.0)
    assert planned.figure == SiteQuery("rate(x[10000ms])", 1, 10.0)
    assert planned.batches == SiteQuery("rate(x[2500ms])", 4, 2.5)
    assert plan("rate(x[{{ window }}])", 3.0, 1.0).batches is None
    with pytest.raises(NoFigure, match="too few readings; a window of 5 s has enough"):
        plan("rate(x[{{ window }}])", 4.0, 2.0)


def test_a_step_wider_than_the_window_is_no_figure() -> None:
    with pytest.raises(NoFigure, match="read every 15 s and the window lasted 3 s: nothing of it"):
        plan("node_load1", 3.0, 15.0)


def answer(
    column: str, *values: float, component: str = "", window: int = 0, why: str = ""
) -> SiteAnswer:
    if not values:
        return SiteAnswer(window, component, column, None, np.zeros(0), why)
    value, batches = figure(np.array(values))
    return SiteAnswer(window, component, column, value, batches)


@pytest.fixture
def measurement() -> Measurement:
    return judged(drive(open_loop(300, 0.002), 4.5), 300, terms()).measurement


def test_figures_become_columns_with_intervals_and_observations(measurement: Measurement) -> None:
    own = answer("haproxy:opened", 5.0, 5.0, component="haproxy")
    found = with_site(measurement, [answer("heat", 1.0, 2.0, 3.0), own], [], [])
    heat, opened = found.sample.kpis["heat"], found.sample.kpis["haproxy:opened"]
    # Student's t with two degrees of freedom: 4.303 / sqrt(3) standard deviations.
    assert (heat.value, heat.high - heat.value) == pytest.approx((2.0, 2.4843), rel=1e-3)
    assert opened.value == 5.0
    assert found.observations[-2:] == (
        Observation(0, "the site", "heat", 2.0),
        Observation(0, "haproxy", "opened", 5.0),
    )
    assert found.sample.valid == measurement.sample.valid
    assert found.sample.kpis.items() >= measurement.sample.kpis.items()


def test_what_is_missing_is_never_zero(measurement: Measurement) -> None:
    found = with_site(
        measurement, [answer("gone", why="no data"), answer("once", 4.0)], [], ["no alerts known"]
    )
    assert not {"gone", "once"} & found.sample.kpis.keys()
    assert [one.evidence for one in found.sample.remarks if one.label == "site_metric"] == [
        "no alerts known",
        "gone has no figure: no data",
        "once is one reading, which has no interval: it is in the evidence only",
    ]
    assert found.observations[-2:] == (
        Observation(0, "the site", "gone", None, "no data"),
        Observation(0, "the site", "once", 4.0),
    )
    assert "site_metric" in found.sample.labels
    assert found.sample.valid == measurement.sample.valid


def test_one_window_without_a_figure_takes_the_column_away(measurement: Measurement) -> None:
    (window,) = measurement.windows
    twice = replace(measurement, windows=(window, window))
    told = [answer("heat", 1.0, 2.0), answer("heat", window=1, why="NaN")]
    assert "heat" not in with_site(twice, told, [], []).sample.kpis
    told[1] = answer("heat", 4.0, 5.0, window=1)
    assert with_site(twice, told, [], []).sample.kpis["heat"].value == pytest.approx(3.0)


def test_alerts_invalidate_by_name_and_remarks_are_bounded(measurement: Measurement) -> None:
    lacking = [answer(f"m{i}", why="no data") for i in range(50)]
    found = with_site(measurement, lacking, ["alert Full fired"], []).sample
    assert (found.valid, found.findings[-1].reason) == (False, "site_alert")
    assert found.findings[-1].evidence == "alert Full fired"
    own = [one for one in found.remarks if one.label == "site_metric"]
    assert len(own) == MOST_TOLD
    assert own[-1].evidence == "and 31 more of the site's metrics"
