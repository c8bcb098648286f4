"""Beyond what is carried no screen draws a plateau: it says that the time grows without bound."""

from __future__ import annotations

import pytest

from workbench.domain.chains import ChainChart, ChainCurve
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.profiles import Curve
from workbench.domain.recommendations import Choice, Recommendation, Trend
from workbench.domain.samples import OVERLOAD, UNBOUNDED
from workbench.tui.screens.compare import compare_figures
from workbench.tui.screens.recommend.recommend_rows import Allotted, figure

LOADS = (100.0, 200.0, 400.0, 800.0, 1600.0)
TIMES = (1.0, 2.0, 50.0, UNBOUNDED, UNBOUNDED)


def chart(overload: float | None) -> ChainChart:
    none = len(LOADS) * (False,)
    curve = ChainCurve(
        LOADS, TIMES, TIMES, TIMES, ("", *4 * ("tinyproxy",)), none, overload=overload
    )
    return ChainChart(Configuration({}, {}), curve, None, None, (), ())


def test_compare_names_who_is_loaded_beyond_what_it_carries_and_ends_the_curve() -> None:
    beyond = chart(800.0)
    said = [(s.low, s.label) for s in compare_figures.stretches(beyond)]
    assert said == [
        (100.0, compare_figures.NOTHING_LIMITS),
        (200.0, "tinyproxy"),
        (800.0, f"tinyproxy: {OVERLOAD}"),
    ]
    assert f"tinyproxy: {OVERLOAD} from 800" in compare_figures.limits_text(beyond)
    drawn = compare_figures._fit(beyond.predicted, "predicted")
    assert drawn.x == LOADS[:3]
    assert max(drawn.mean) == pytest.approx(50.0)
    assert OVERLOAD not in compare_figures.limits_text(chart(None))


def test_recommend_draws_the_overload_beyond_its_curve() -> None:
    choice = Choice({"tinyproxy.vcpu": 0.25}, {}, 0.25, "vCPU", 0.99, 0.0, {}, {})
    limits = (Sla("p95_ms", 100.0, "<=", 200.0),)
    answer = Recommendation("r1", "t", "tinyproxy", limits, 0.95, True, choice, None, (), 1, 0.0)
    known = Curve("p95_ms", "m", LOADS[:3], TIMES[:3], TIMES[:3], TIMES[:3], overload=800.0)
    drawn = figure(Allotted(choice), (Trend(choice, (known,)),), answer, "/s")
    (along,) = drawn.along
    assert (along.low, along.label) == (800.0, OVERLOAD)
    assert drawn.x_range is not None
    assert drawn.x_range[1] > 800.0, "so that it is seen"
