"""SHAP values of counters: exact in their sum, right where the truth is known, bounded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from workbench.domain.errors import DataError
from workbench.models import counter_effects, counter_models
from workbench.models.counter_effects import company_effects, effects_of, row_effects
from workbench.models.counter_models import CounterModel, OwnCounterModel
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_scores import held_out_models


class _Power:
    """y = a² / b whatever it is taught: its SHAP values are known."""

    def predict(self, x: Any) -> Any:
        return x[:, 0] ** 2 / x[:, 1]


class PowerModel(CounterModel):
    def _made(self, x: Any, y: Any, groups: Any) -> Any:
        return _Power()


def drawn(count: int = 60) -> CounterRows:
    random = np.random.default_rng(0)
    x = np.exp(random.standard_normal((count, 3)))
    return CounterRows(("a", "b", "idle"), x, x[:, 0] ** 2 / x[:, 1], np.arange(count) // 6)


def test_values_and_base_add_up_to_the_prediction_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_models, "INNER_FOLDS", 2)  # whichever family is chosen
    told: list[tuple[int, int]] = []
    rows = drawn()
    found = row_effects(
        rows, held_out_models(rows, OwnCounterModel, 0), 0, lambda done, of: told.append((done, of))
    )
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base, found.predicted, rtol=0.0, atol=1e-9
    )
    assert np.abs(found.values).max() > 0.1
    assert told[-1] == (60, 60)
    assert len(told) >= 5, "each fold tells how far it is"


def test_values_are_those_of_a_model_whose_truth_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """In logs it is a sum: the value of `a` is twice how far its log is from the mean."""
    monkeypatch.setattr(counter_effects, "BACKGROUND", 1_000)
    monkeypatch.setattr(counter_effects, "MOST_ASKED", 10_000_000)
    rows = drawn()
    found = row_effects(rows, held_out_models(rows, PowerModel, 0), 0, lambda done, of: None)
    logs = np.log(rows.x)
    truth = (logs - logs.mean(axis=0)) * [2.0, -1.0, 0.0]
    np.testing.assert_allclose(found.values, truth, rtol=0.0, atol=1e-9)
    first, second, last = effects_of(found)
    assert (first.name, second.name, last.name) == ("a", "b", "idle")
    assert first.factor == pytest.approx(np.exp(np.abs(found.values[:, 0]).mean()))
    assert first.rises is not None
    assert second.rises is not None
    assert first.rises > 0.9
    assert second.rises < -0.9
    assert (last.factor, last.rises) == (pytest.approx(1.0), None)


@pytest.mark.long
def test_loops_that_are_compiled_say_the_truth_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other runs have them interpreted, which users have not (`NUMBA_DISABLE_JIT`)."""
    import numba

    assert not numba.config.DISABLE_JIT
    test_values_are_those_of_a_model_whose_truth_is_known(monkeypatch)


def test_what_a_competitor_does_is_told_by_counter_at_the_same_load() -> None:
    """`wait` is ten times as much beside it, at loads that are higher: most of that is none of the
    competitor's doing, and the two counters of load are one."""
    random = np.random.default_rng(1)
    beside = np.repeat([0, 1], 40)
    load = np.exp(random.uniform(0.0, 2.0, 80)) * 100.0 * np.where(beside, 1.6, 1.0)
    wait = np.where(beside, 0.1, 0.01) * np.exp(0.05 * random.standard_normal(80))
    rows = CounterRows(
        ("rx_packets", "tx_packets", "cpu_wait_s"), np.column_stack([load, 2.0 * load, wait]),
        load, np.arange(80) // 8, beside, ("none", "cpu"),
    )  # fmt: skip

    class Waiting(CounterModel):
        def _made(self, x: Any, y: Any, groups: Any) -> Any:
            class By:
                def predict(self, x: Any) -> Any:
                    return np.sqrt(x[:, 2]) * np.sqrt(x[:, 0] * x[:, 1])

            return By()

    by = company_effects(
        row_effects(rows, held_out_models(rows, Waiting, 0), 0, lambda done, of: None)
    )
    assert (by[0].competitor, by[0].name) == ("cpu", "cpu_wait_s")
    assert by[0].factor == pytest.approx(np.sqrt(10.0), rel=0.1)
    assert by[0].moved == pytest.approx(10.0, rel=0.1)
    assert (len(by), len(by[1].alike)) == (2, 1), "packets in and out go together"
    assert 1.0 < by[1].factor < 1.3, "1.6, were it not for the nearest load"


def test_who_competed_is_not_told_where_that_is_not_known() -> None:
    rows = drawn(24)
    models = held_out_models(rows, PowerModel, 0)
    assert company_effects(row_effects(rows, models, 0, lambda done, of: None)) == []


def test_rows_are_bounded_where_counters_are_many() -> None:
    random = np.random.default_rng(2)
    x = np.exp(random.standard_normal((400, 80)))
    rows = CounterRows(tuple(f"c{i}" for i in range(80)), x, x[:, 0], np.arange(400) // 10)
    found = row_effects(rows, held_out_models(rows, PowerModel, 0), 0, lambda done, of: None)
    assert 20 <= len(found.base) < 60


def test_without_the_package_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(DataError, match="'shap', which is not installed") as caught:
        row_effects(drawn(), [], 0, lambda done, of: None)
    assert caught.value.remedy == "Install it with `pip install 'vnf-workbench[explain]'`"
