"""Load that varies: when requests are due, and that windows and batches are whole cycles."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from workbench.domain import load_shapes
from workbench.domain.load_shapes import LoadShape
from workbench.domain.parameters import Configuration, LoadModel
from workbench.measuring.cycles import batch_edges, planned_times
from workbench.paths import shipped
from workbench.traffic.steady import written

SHAPES = (
    load_shapes.bursts(0.1, 1.0),
    load_shapes.bursts(0.25, 0.4),
    load_shapes.spikes(5.0, 0.5, 2.0),
    load_shapes.sine(0.9, 1.0),
    load_shapes.steps((1.0, 0.0, 3.0), 0.5),
    load_shapes.trace((3.0, 0.0, 10.0, 7.0, 0.1), 0.3),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.key)
def test_each_stretch_has_its_rate_and_the_mean_is_wl(shape: LoadShape) -> None:
    cycles, wl = 20, 240.0
    due = planned_times(shape, wl, cycles * shape.cycle_s)
    assert (np.diff(due) >= 0).all()
    assert due.size == pytest.approx(wl * cycles * shape.cycle_s, abs=1)
    ends = np.cumsum([seconds for seconds, _ in shape.segments])
    place = np.searchsorted(ends, due % shape.cycle_s + 1e-9, side="right")
    for number, (seconds, factor) in enumerate(shape.segments):
        seen = np.count_nonzero(place == number)
        assert seen == pytest.approx(wl * factor * seconds * cycles, abs=cycles)
        assert factor or not seen


def test_the_first_is_due_at_once_and_none_at_the_end() -> None:
    shape = load_shapes.bursts(0.5, 1.0)
    assert planned_times(shape, 4.0, 2.0).tolist() == [
        0.0,
        0.125,
        0.25,
        0.375,
        1.0,
        1.125,
        1.25,
        1.375,
    ]


@pytest.mark.needs("luajit")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.key)
def test_the_generator_plans_the_same_instants(shape: LoadShape, tmp_path: Path) -> None:
    """Nobody listens, so that each request fails at once; what is due is written all the same."""
    program = shipped("templates") / "vnfs" / "source" / "steady"
    argv = (
        *("luajit", str(program), "--rate", "170.3", "--seconds", "0.9", "--shape", written(shape)),
        *("--connections", "4", "--timeout", "1", "--connection", "close"),
        *("--records", str(tmp_path / "records"), "http://127.0.0.1:9/"),
    )
    subprocess.run(argv, check=True, capture_output=True, timeout=20)
    due = np.fromfile(tmp_path / "records", dtype="<f8").reshape(-1, 6)[:, 0]
    assert np.allclose(due, planned_times(shape, 170.3, 0.9), atol=1e-9)


def test_batches_are_whole_cycles() -> None:
    edges = batch_edges(10.0, 20.35, 0.3, 0.5)
    assert np.diff(edges) == pytest.approx(0.9)
    assert edges[-1] == pytest.approx(20.2)
    assert batch_edges(10.0, 10.2, 0.3, 0.5).size == 0


def test_the_load_model_tells_shapes_apart() -> None:
    keys = {LoadModel("open", shape=shape).key for shape in SHAPES[1:]} | {LoadModel("open").key}
    assert len(keys) == len(SHAPES)
    assert "open-spikes-x5-0.5s-2s" in keys


def test_a_configuration_says_what_bursts_are_like() -> None:
    load = LoadModel("open", shape=LoadShape("bursts"))
    assert load.key == "open-bursts"
    shape = load.shaped(Configuration({}, {"duty": 0.2, "period_s": 2.0}))
    assert shape == load_shapes.bursts(0.2, 2.0)
    assert load.shaped(Configuration({}, {"duty": 0.2})) == load_shapes.bursts(0.2, 1.0)
    assert LoadModel("open").shaped(Configuration({}, {})) is None
