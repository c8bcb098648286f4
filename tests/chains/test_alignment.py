"""Training data that fit the target, by named rules."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_chain import CHAIN, CLIENTS, KPI_MAX, SETTINGS, SyntheticChain, sample, setting

from workbench.chains.alignment import (
    DEFAULT_RULES,
    LAW_RULES,
    Goal,
    align,
    measured,
)
from workbench.chains.trend import trained
from workbench.domain.errors import DataError
from workbench.domain.samples import Sample
from workbench.models.interpolation import LogInterpolation


def rising(*values: float) -> list[Sample]:
    return [sample(float(k + 1), value) for k, value in enumerate(values)]


def kpis(samples: tuple[Sample, ...]) -> list[float]:
    return [s.kpis["mean_ms"].value for s in samples]


def test_low_kpis_are_left_out_as_in_paper_a() -> None:
    samples = rising(1.0, 50.0, 99.0, 100.0, 500.0, 1000.0, 9000.0)
    found = align(samples, Goal("mean_ms", limit=1000.0), ["low-kpi"])
    assert kpis(found.samples) == [100.0, 500.0, 1000.0, 9000.0]
    assert found.left_out == {"low-kpi": 3}
    assert not found.notes


def test_the_band_lies_around_the_limit_and_is_widened_until_it_holds_a_trend() -> None:
    samples = rising(1.0, 50.0, 90.0, 100.0, 120.0, 250.0, 900.0)
    found = align(samples, Goal("mean_ms", limit=100.0), ["sla-band"])
    assert kpis(found.samples) == [50.0, 90.0, 100.0, 120.0, 250.0]
    few = align(samples, Goal("mean_ms", limit=1000.0), ["sla-band"])
    assert kpis(few.samples) == [90.0, 100.0, 120.0, 250.0, 900.0]
    assert "widened" in few.notes[0]


def test_a_limit_that_nothing_comes_near_uses_everything() -> None:
    found = align(rising(1.0, 2.0), Goal("mean_ms", limit=1e5), ["low-kpi"])
    assert kpis(found.samples) == [1.0, 2.0]


def test_inputs_that_production_fixes_are_dropped() -> None:
    samples = [
        sample(wl, 10.0 * wl * size / 1e4, setting(size=size))
        for size in (1e4, 1e5)
        for wl in (1.0, 2.0, 4.0)
    ]
    fixed = {"filesize_bytes": 10_000}
    found = align(samples, Goal("mean_ms", fixed=fixed), LAW_RULES)
    assert found.left_out == {"fixed-inputs": 3}
    assert len(found.samples) == 3

    seen = measured(CHAIN, found.samples, kpi="mean_ms", kpi_max=KPI_MAX, primary=CLIENTS)
    model = trained(LogInterpolation, seen, fixed)
    assert "filesize_bytes" in {column.key for column in seen.table.columns}
    assert "filesize_bytes" not in {column.key for column in model.table.columns}
    said = model.forecast([(setting(), 2.0), (setting(size=1e5), 2.0)])
    assert np.exp(said.mean) == pytest.approx([20.0, 20.0])
    assert said.extrapolates.tolist() == [False, True], "it only knows files of 10 kB"


def test_without_a_limit_the_rules_of_the_limit_have_no_say_and_say_so() -> None:
    found = align(rising(1.0, 2.0, 3.0), Goal("mean_ms"), DEFAULT_RULES)
    assert len(found.samples) == 3
    assert "no SLA limit" in found.notes[0]


def test_bad_data_are_named() -> None:
    goal = Goal("mean_ms", limit=100.0, fixed={"filesize_bytes": 5.0})
    with pytest.raises(DataError, match="filesize_bytes=5"):
        align(rising(1.0), goal)
    with pytest.raises(DataError, match="invalid, overloaded or lack it"):
        align([sample(1.0, 5.0, overloaded=True), sample(2.0, 5.0, reason="errors")], goal)
    with pytest.raises(DataError, match=r"'nearest'.*low-kpi"):
        align(rising(1.0), goal, ["nearest"])


def test_noise_is_that_of_repetitions_where_there_are_enough() -> None:
    chain = SyntheticChain(0, noise=0.2)
    samples = [chain.measure(SETTINGS[0], 8.0, k) for k in range(40)]
    quiet = [sample(8.0, s.kpis["mean_ms"].value, repetition=k) for k, s in enumerate(samples)]
    seen = measured(CHAIN, quiet, kpi="mean_ms", kpi_max=KPI_MAX, primary=CLIENTS)
    assert seen.noise == pytest.approx(0.2, rel=0.4), "the intervals claimed 0.05"
    few = seen.take(np.arange(40) < 3)
    assert few.noise == pytest.approx(0.05, rel=0.01)
    assert len(few.points) == 3
