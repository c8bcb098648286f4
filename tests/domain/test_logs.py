"""What functions write: bounded, decoded, and never taken for anything but text."""

from __future__ import annotations

import pytest

from workbench.domain import codec
from workbench.domain.event_log import LOG_LINES, lines_written
from workbench.domain.events import Event, LogWritten, Noted
from workbench.domain.logs import (
    KEPT_LINES,
    LONGEST_LINE,
    ComponentLog,
    WrittenLine,
    quoted,
)
from workbench.domain.projection import SessionView

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x00\x9b31m\u202eok\r\ufffd"


def written(seq: int, *texts: str, sample: str = "") -> Event:
    log = ComponentLog.of("haproxy", map(WrittenLine, texts))
    return Event(seq, 100.0 + seq, "s", LogWritten("haproxy", log, sample))


def test_of_a_chatty_component_the_last_lines_are_kept_and_the_others_counted() -> None:
    log = ComponentLog.of("haproxy", (WrittenLine(f"line {i}") for i in range(1000)))
    assert [line.text for line in log.lines] == [f"line {i}" for i in range(980, 1000)]
    assert log.dropped == 1000 - KEPT_LINES
    assert log.gap == "(980 lines before are not kept)"
    assert ComponentLog.of("haproxy", log.lines).gap == ""
    assert "more than 0 lines" in ComponentLog.of("haproxy", log.lines, uncounted=True).gap


@pytest.mark.parametrize(
    ("begin", "text"),
    [
        (b"plain", "plain"),
        (b"\xff\xfe\x80", "\ufffd\ufffd\ufffd"),
        (HOSTILE.encode(), HOSTILE),
        ("é".encode()[:1], "\ufffd"),
    ],
)
def test_bytes_are_decoded_and_nothing_is_taken_from_them(begin: bytes, text: str) -> None:
    assert WrittenLine.decoded(begin, len(begin)) == WrittenLine(text)


def test_a_line_of_a_megabyte_is_cut_between_characters() -> None:
    begin = b"x" + "é".encode() * LONGEST_LINE
    line = WrittenLine.decoded(begin, 1 << 20)
    assert line.text == "x" + "é" * ((LONGEST_LINE - 1) // 2)
    assert line.cut == (1 << 20) - LONGEST_LINE
    assert line.whole.endswith(f"… ({line.cut} bytes more)")


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("[ALERT]    (1) : config : unknown keyword", "error"),
        ("[WARNING]  (1) : Server web/s is DOWN", "warning"),
        ("2026/11/22 04:00:00 [error] 12#12: *1 connect() failed", "error"),
        ("ERROR     Nov 22 04:00:00.123 [1]: opensock: no connection", "error"),
        ("\x1b[1;31mERROR\x1b[0m no upstream", "error"),
        ("GET /terror/errors.html HTTP/1.1 200", "info"),
        ("x" * 200 + " error", "info"),
    ],
)
def test_a_line_has_the_level_that_it_names(text: str, level: str) -> None:
    assert WrittenLine(text).level == level


def test_a_quotation_has_nothing_that_a_terminal_obeys() -> None:
    assert quoted(f" {HOSTILE} ") == '"·]0;owned··[2J··31m·ok·\ufffd"'


def test_hostile_lines_cross_the_link_and_come_back_as_they_were() -> None:
    event = written(1, HOSTILE)
    line = codec.dumps(codec.event_to_plain(event))
    assert b"\n" not in line
    assert b"\x1b" not in line
    assert codec.event_of(line) == event


def test_lines_are_folded_beside_the_events_and_lead_to_their_sample() -> None:
    view = SessionView("s")
    view.apply(Event(1, 101.0, "s", Noted("info", "an event")))
    view.apply(written(2, "one", "error: two", sample="x"))
    assert [line.text for line in view.log] == ["an event"]
    assert [(w.text, w.level, w.component, w.sample, w.place, w.at) for w in view.written] == [
        ("one", "info", "haproxy", "x", 0, 102.0),
        ("error: two", "error", "haproxy", "x", 1, 102.0),
    ]


def test_what_is_missing_is_said_before_the_lines() -> None:
    event = written(2, *(f"{i}" for i in range(25)))
    assert isinstance(event.fact, LogWritten)
    lines = lines_written(event.seq, event.at, event.fact)
    assert lines[0].text == "(5 lines before are not kept)"
    assert [line.place for line in lines] == list(range(KEPT_LINES + 1))


def test_the_view_keeps_the_last_lines_and_no_event_in_part() -> None:
    view = SessionView("s")
    for seq in range(1, 101):
        view.apply(written(seq, *(f"{seq} {i}" for i in range(7))))
    assert len(view.written) <= LOG_LINES
    assert view.written_since > 1
    assert view.written[0].text == f"{view.written_since} 0"
    assert len(view.written) == 7 * (101 - view.written_since)
