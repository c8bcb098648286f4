"""Tables that a terminal has no room for: folded, then without what is spare, never wider."""

from __future__ import annotations

import pytest

from workbench.cli.tables import laid_out, prose, whole
from workbench.domain.answer_tables import AnswerColumn, AnswerTable

TABLE = AnswerTable.of(
    (
        "model",
        "mean absolute error",
        AnswerColumn("what it counts", wraps=True),
        AnswerColumn("half width", spare=1),
        AnswerColumn("by row: within 10 %", spare=2),
    ),
    (
        (
            "linear in cache references",
            "12.3 %",
            "waiting for CPU, over all threads",
            "3.4 %",
            "9 %",
        ),
        ("ours", "1.3 %", "host: deferred work, by kind (NET_RX)", "1.4 %", "99 %"),
    ),
)


@pytest.mark.parametrize("columns", [32, 40, 60, 72, 80, 100, 140])
def test_a_table_is_never_wider_than_its_terminal(columns: int) -> None:
    lines = laid_out(TABLE, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert any("12.3 %" in line for line in lines), "figures that say most stay"


def test_what_is_spare_goes_first_and_is_named() -> None:
    shown = " ".join(laid_out(TABLE, 72).split())
    assert "(no room here for: by row: within 10 %. A wider terminal" in shown
    assert "half" in shown.partition("no room")[0]
    both = " ".join(laid_out(TABLE, 60).split())
    assert "no room here for: half width; by row: within 10 %" in both
    assert "no room" not in laid_out(TABLE, 90)


def test_words_are_folded_and_none_is_lost() -> None:
    shown = laid_out(TABLE, 80)
    for word in "waiting for CPU, over all threads host: deferred work, by kind (NET_RX)".split():
        assert word in shown


def test_where_there_is_room_and_in_a_pipe_it_is_whole() -> None:
    assert laid_out(TABLE, None) == whole(TABLE)
    assert laid_out(TABLE, 200) == whole(TABLE)
    assert prose("some words " * 20, None) == "some words " * 20
    assert max(map(len, prose("some words " * 20, 60).splitlines())) <= 60
