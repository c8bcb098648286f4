"""Tables of answers on a screen: what is left out where there is no room, and what is cut."""

from __future__ import annotations

import pytest

from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.samples import Estimate
from workbench.tui.answer_rows import columns_of, laid_out
from workbench.tui.columns import Sorting

TABLE = AnswerTable.of(
    ("method", AnswerColumn("MAPE", ".1%"), "RMSE", "note"),
    (
        ("pooled", 0.034, Estimate(12.5, 10.0, 15.0), "chosen of 5% of all"),
        ("neighbours", None, 1250.0, ""),
    ),
)


def shown(width: int) -> list[str]:
    laid = laid_out(TABLE, width)
    return [laid.heading, *map("".join, laid.lines)]


def test_figures_stand_to_the_right_and_read_as_on_the_command_line() -> None:
    assert shown(60) == [
        "method       MAPE           RMSE  note                      ",
        "pooled      3.4 %  12.5 [10, 15]  chosen of 5 % of all      ",
        "neighbours      -           1250                            ",
    ]


@pytest.mark.parametrize(
    ("width", "last"),
    [(60, "note"), (44, "note"), (38, "RMSE"), (33, "RMSE"), (20, "MAPE"), (9, "method")],
)
def test_what_does_not_fit_is_cut_or_left_out_from_the_right(width: int, last: str) -> None:
    lines = shown(width)
    assert lines[0].split()[-1] == last
    assert max(map(len, lines)) <= max(width, 12), "the names are never left out"
    assert ("…" in lines[1]) == (width == 44)


def test_a_long_text_is_cut_before_a_column_goes() -> None:
    interval = AnswerColumn("95 % interval", width=20)
    row = ("delay", "tinyproxy.vcpu=0.25,haproxy.vcpu=0.5", 1.25, "[1.2, 1.3] ms per rps")
    laid = laid_out(AnswerTable.of(("term", "of", "after", interval), [row]), 60)
    assert laid.shown == 4
    line = "".join(laid.lines[0])
    assert "tinyproxy.vcpu=0.25,hap…" in line
    assert line.rstrip().endswith("[1.2, 1.3] ms per r…")


def test_a_column_keeps_its_place_before_its_figures_come() -> None:
    column = AnswerColumn("measured", width=18)
    before, after = (
        laid_out(AnswerTable.of(("step", column, "verdict"), [(1, value, "kept")]), 60)
        for value in (None, Estimate(47.2, 45.8, 48.7))
    )
    assert before.heading == after.heading


def test_rows_are_sorted_by_what_they_hold_and_not_by_how_it_reads() -> None:
    columns = columns_of(TABLE)
    assert [column.name for column in columns] == ["MAPE", "RMSE", "note"]
    rows = Sorting("MAPE", falling=True).sort(TABLE.rows, columns)
    assert [row[0] for row in rows] == ["pooled", "neighbours"], "what has none comes last"
