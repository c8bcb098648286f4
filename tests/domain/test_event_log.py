"""Lines of the event log that say the same: once, with how often and since when."""

from __future__ import annotations

from workbench.cli.session_words import explain
from workbench.domain.event_log import LogLine, in_a_row, said_once
from workbench.domain.projection import SessionView


def line(seq: int, text: str, level: str = "warning", sample: str = "") -> LogLine:
    return LogLine(seq, 1000.0 + seq, level, text, sample)


LINES = [line(1, "few cores"), line(2, "few cores"), line(3, "retried"), line(4, "few cores")]


def test_lines_in_a_row_that_say_the_same_are_one() -> None:
    found = [(said.line.seq, said.times, said.since) for said in in_a_row(LINES)]
    assert found == [(2, 2, 1001.0), (3, 1, 1003.0), (4, 1, 1004.0)]


def test_lines_of_other_samples_or_levels_stay_apart() -> None:
    lines = [line(1, "x", sample="a"), line(2, "x", sample="b"), line(3, "x", "info", "b")]
    assert [said.times for said in in_a_row(lines)] == [1, 1, 1]


def test_a_text_is_said_once_where_it_was_said_last() -> None:
    found = [(said.line.text, said.times, said.since) for said in said_once(LINES)]
    assert found == [("retried", 1, 1003.0), ("few cores", 3, 1001.0)]


def test_show_says_a_warning_once_with_its_first_and_last_time() -> None:
    view = SessionView("night")
    view.log += LINES
    told = [words for words in explain(view).splitlines() if words.startswith("  ")]
    assert told[0] == "  retried"
    assert told[1].startswith("  few cores (× 3, ")
    assert len(told) == 2
