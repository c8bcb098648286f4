"""Principal components of counters: what varies, and how a KPI goes with it."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.models.counter_components import components_of
from workbench.models.counter_rows import CounterRows


def test_two_causes_behind_five_counters_are_two_components() -> None:
    random = np.random.default_rng(0)
    load, wait = np.linalg.qr(random.standard_normal((400, 2)))[0].T * 20.0  # uncorrelated
    x = np.column_stack([load, load, load, wait, -wait]) + 0.01 * random.standard_normal((400, 5))
    rows = CounterRows(
        ("in", "out", "cycles", "waits", "idle"), 10.0 + x, 50.0 + wait, np.arange(400) // 10
    )
    first, second, *rest = components_of(rows, 0)
    assert first.share == pytest.approx(0.6, abs=0.02)
    assert second.share == pytest.approx(0.4, abs=0.02)
    assert sum(one.share for one in rest) < 0.001
    assert abs(first.pearson) < 0.2
    assert first.low <= first.pearson <= first.high
    assert abs(second.pearson) > 0.95
    assert second.low <= second.pearson <= second.high
    assert set(first.counters) == {"in", "out", "cycles"}
    assert set(second.counters[:2]) in ({"waits", "-idle"}, {"-waits", "idle"})
    assert second.told > 0.99 > first.told + 0.9


def test_their_shares_are_all_of_the_variance_and_what_they_tell_is_that_of_a_line() -> None:
    random = np.random.default_rng(1)
    x = np.exp(random.standard_normal((60, 4)))
    y = x @ np.array([1.0, -0.2, 0.5, 0.1]) + 3.0 + random.standard_normal(60)
    found = components_of(CounterRows(("a", "b", "c", "d"), x, y, np.arange(60)), 0)
    assert sum(one.share for one in found) == pytest.approx(1.0)
    design = np.column_stack([np.ones(60), x])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert found[-1].told == pytest.approx(1.0 - left.var() / y.var())


def test_where_nothing_varies_there_is_none() -> None:
    still = CounterRows(("a", "b"), np.ones((5, 2)), np.arange(5) + 1.0, np.arange(5))
    assert components_of(still, 0) == []
    assert components_of(still.taken(np.array([0])), 0) == []
