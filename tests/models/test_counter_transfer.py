"""A function that was not trained on: answered where it is like the others, and else not."""

from __future__ import annotations

import numpy as np
import pytest
from published_counters import LineModel

from workbench.domain.errors import DataError
from workbench.models.counter_looks import judged_looks
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_transfer import _apart, of_own_experiments, transferred
from workbench.models.counter_watch import CounterWatch


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", LineModel)


def function(seed: int, packets: float = 10.0, cycles: float = 1e4) -> CounterRows:
    """Throughput by packets, which cost cycles: 12 experiments of 6 rows."""
    random = np.random.default_rng(seed)
    throughput = random.uniform(100.0, 1000.0, 72)
    noise = np.exp(0.02 * random.standard_normal((2, 72)))
    x = np.column_stack([packets * throughput * noise[0], cycles * throughput * noise[1]])
    own = 3.0 * random.uniform(size=72)
    return CounterRows(
        ("packets", "cycles", f"own_{seed}"), np.column_stack([x, own]), throughput,
        np.arange(72) // 6,
    )  # fmt: skip


def test_a_function_that_is_like_the_others_is_answered() -> None:
    alike = of_own_experiments({name: function(i) for i, name in enumerate("abc")})
    found = transferred(alike, "c", 0)
    assert (found.function, found.learned_from) == ("c", ("a", "b"))
    assert set(found.features) == {"packets", "cycles"}, "what only one of them counts is left out"
    assert found.rows == 72
    assert found.outside < 10
    assert found.coverage is not None
    assert found.median_error is not None
    assert found.coverage > 0.8
    assert found.median_error < 0.05


def test_a_function_whose_packets_cost_more_is_outside_of_what_was_learned() -> None:
    others = {"a": function(0), "b": function(1), "c": function(2, cycles=3e5)}
    found = transferred(of_own_experiments(others), "c", 0)
    assert (found.outside, found.coverage, found.median_error, found.width) == (
        72,
        None,
        None,
        None,
    )
    assert found.why_outside.startswith("outside of what was learned")
    assert found.unguarded_error > 0.2, "and rightly so"


def test_a_row_that_lacks_a_counter_is_not_outside_of_what_was_learned() -> None:
    rows = function(0)
    known = dict(zip(rows.features, rows.x[0].tolist(), strict=True))
    short = {name: figure for name, figure in known.items() if name != "cycles"}
    asked = [known, {**known, "cycles": 1e12}, short, known]
    found = judged_looks(CounterWatch(rows), asked, [*rows.y[:3].tolist(), 1e9])
    assert (found.rows, found.outside, found.missing, found.held) == (4, 1, 1, 1)
    assert found.true.tolist() == [rows.y[0], 1e9]
    assert found.why.startswith("outside of what was learned: cycles is 1e+12")
    nothing = judged_looks(CounterWatch(rows), [short], [1.0])
    assert (nothing.missing, nothing.held, len(nothing.said)) == (1, 0, 0)


def test_functions_of_one_chain_are_predicted_in_experiments_that_nobody_was_learned_from() -> None:
    """All share their experiments, and throughput is that of the chain."""
    first = function(0)
    chain = dict.fromkeys("abc", first)
    found = transferred(chain, "c", 0)
    assert (found.rows, found.learned) == (36, 72)
    assert found.outside < 10


def test_what_cannot_be_transferred_is_a_sentence() -> None:
    with pytest.raises(DataError, match="counters of z and of another function are needed"):
        transferred({"a": function(0)}, "z", 0)
    with pytest.raises(DataError, match="counters of a and of another function are needed"):
        transferred({"a": function(0)}, "a", 0)
    strange = CounterRows(("else",), np.ones((3, 1)), np.ones(3), np.arange(3))
    with pytest.raises(DataError, match="no counter of a is one of b, too"):
        transferred({"a": function(0), "b": strange}, "a", 0)


def test_a_function_in_one_of_the_experiments_of_others_is_tried_in_it() -> None:
    groups = np.repeat(np.arange(10), 4)
    others = CounterRows(("cycles",), np.ones((40, 1)), np.ones(40), groups)
    own = others.taken(np.flatnonzero(groups == 5))
    tried, (learned,) = _apart(own, [others], 0)
    assert len(tried.y) == 4
    assert 5 not in learned.groups
    assert set(learned.groups) == set(range(10)) - {5}
    with pytest.raises(DataError, match="0 of 1 experiments are left to learn from"):
        _apart(own, [own], 0)
    few = others.taken(np.flatnonzero(groups < 6))
    with pytest.raises(DataError, match="3 of 6 experiments are left to learn from, where 4 are"):
        _apart(few, [few], 0)
