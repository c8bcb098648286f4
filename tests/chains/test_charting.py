"""Curves of one configuration: predicted, measured, and each function beside them."""

from __future__ import annotations

import numpy as np
import pytest
from known_profiles import CLOSED, Known, named, part
from synthetic_function import make_sample

from workbench.chains.charting import LOADS, chart
from workbench.chains.composition import ChainForecaster
from workbench.chains.rules import WeakestLink
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.domain.topology import Series

LINE = Series(named("a", "b"))
CLIENTS = PrimaryWorkload("concurrent", 1.0, 500.0, integer=True)
HERE = Configuration({"a.vcpu": 1.0, "b.vcpu": 0.5}, {})
CHAIN = ChainForecaster(
    LINE,
    {
        "a": part("a", {"p95_ms": 20.0}, load=CLOSED),
        "b": part("b", {"p95_ms": lambda vcpu, wl: 0.1 * wl / vcpu}, load=CLOSED),
    },
    "p95_ms",
    WeakestLink(),
)
TWICE = Known("p95_ms", "a", lambda _, wl: 40.0 + wl, 0.1, (1.0, 1000.0))


def taken(wl: float) -> Sample:
    return make_sample(wl, {"p95_ms": 40.0 + wl}, configuration=HERE)


def test_a_chart_says_the_chain_and_each_function_at_the_same_loads() -> None:
    drawn = chart(CHAIN, HERE, primary=CLIENTS)
    loads = np.array(drawn.predicted.wl)
    assert (loads[0], loads[-1]) == (1.0, 500.0)
    assert len(loads) <= LOADS
    assert drawn.predicted.mean == pytest.approx(np.maximum(20.0, 0.2 * loads))
    assert [(t.vnf, pytest.approx(t.wl, rel=0.1)) for t in drawn.takeovers] == [("b", 100.0)]
    first, second = drawn.functions
    assert (first.vnf, second.vnf) == ("a", "b")
    assert second.mean == pytest.approx(0.2 * loads)
    assert (first.effect[0], second.effect[0]) == pytest.approx((1.0, 0.0))
    assert (first.effect[-1], second.effect[-1]) == pytest.approx((0.0, 1.0))
    assert (drawn.profiles, drawn.measured, drawn.cpu) == (None, None, ())


def test_what_was_measured_is_drawn_as_far_as_it_was_measured() -> None:
    samples = [taken(wl) for wl in (10.0, 80.0, 80.0, 600.0)]
    drawn = chart(
        CHAIN, HERE, primary=CLIENTS, samples=samples, model=TWICE, direct=TWICE, method="known"
    )
    assert drawn.predicted.wl[-1] == 600.0, "the range is widened to hold all samples"
    assert drawn.measured is not None
    assert drawn.measured.model == "known"
    assert (drawn.measured.wl[0], drawn.measured.wl[-1]) == (10.0, 600.0)
    assert drawn.measured.mean == pytest.approx([40.0 + wl for wl in drawn.measured.wl])
    assert drawn.predicted.mean == pytest.approx([40.0 + wl for wl in drawn.predicted.wl])
    assert drawn.profiles is not None
    assert drawn.profiles.mean[0] == pytest.approx(20.0), "the profiles beside the model"
    other = Configuration({"a.vcpu": 1.0, "b.vcpu": 1.0}, {})
    elsewhere = chart(CHAIN, other, primary=CLIENTS, samples=samples, direct=TWICE)
    assert elsewhere.measured is None, "one load or none makes no curve"


def test_measured_loads_are_points_of_the_curve() -> None:
    """Between two points it says something else than the scores, which are of the load itself."""
    seen = (37.0, 111.0, 123.0)
    drawn = chart(CHAIN, HERE, primary=CLIENTS, samples=[taken(wl) for wl in seen])
    for wl in seen:
        assert drawn.predicted.mean[drawn.predicted.wl.index(wl)] == pytest.approx(
            max(20.0, 0.2 * wl)
        )
    many = [taken(1.0 + wl) for wl in range(400)]
    assert len(chart(CHAIN, HERE, primary=CLIENTS, samples=many).predicted.wl) <= 200
