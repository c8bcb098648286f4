"""The time line of a replay: where it is, and what was decided when."""

from __future__ import annotations

from workbench.domain.projection import SessionView
from workbench.domain.timeline import MarkKind, TimeLine, TimeMark
from workbench.tui.plots.canvas import Glyphs
from workbench.tui.replaying.replay import Replay
from workbench.tui.text import clock, day, number
from workbench.tui.widgets.rows import Look, Row, Span

MARKS: dict[MarkKind, tuple[str, Look, int]] = {
    "accepted": ("A", "good", 0),
    "rejected": ("X", "bad", 0),
    "verified": ("V", "good", 1),
    "recommended": ("R", "strong", 2),
    "rolled_back": ("B", "warn", 3),
    "canary": ("C", "strong", 4),
    "proposed": ("C", "strong", 5),
    "modelled": ("M", "", 6),
    "stopped": ("S", "warn", 7),
    "paused": ("P", "warn", 8),
    "begun": ("▸", "dim", 9),
    "ended": ("■", "dim", 10),
}
"""Letter, look, and which of several in one place is seen."""
LONG_S = 20 * 3600.0
"""From here on the ends of the line name their day."""


def timeline(replay: Replay, view: SessionView, glyphs: Glyphs, width: int) -> Row:
    """One row: begin, line with marks and position, end, and which sample it is."""
    line = replay.line
    if line is None:
        return ((" …", "dim"),)
    named = day if line.ended_at - line.started_at > LONG_S else clock
    begin, end = f" {named(line.started_at)} ", f" {named(line.ended_at)}"
    taken = view.samples_taken + view.trial_samples
    count = f"  sample {number(taken)} of {number(line.samples)} " if width >= 80 else "  "
    if width >= 80:
        count += f"· event {replay.seq} "
    room = width - len(begin) - len(end) - len(count)
    if room < 10:
        begin, end = " ", ""
        room = width - len(begin) - len(count)
    return ((begin, "dim"), *_bar(replay, line, glyphs, max(4, room)), (end, "dim"), (count, ""))


def _bar(replay: Replay, line: TimeLine, glyphs: Glyphs, width: int) -> tuple[Span, ...]:
    here = _column(line, replay.at, width)
    ascii_only = glyphs.dots == (1, 1)
    done, ahead, position = ("=", "-", "#") if ascii_only else ("━", "─", "┃")
    cells: list[Span] = [
        (done, "accent") if column < here else (ahead, "dim") for column in range(width)
    ]
    for mark in sorted(line.marks, key=_rank, reverse=True):
        letter, look, _ = MARKS[mark.kind]
        if ascii_only:
            letter = {"▸": ">", "■": "."}.get(letter, letter)
        cells[_column(line, mark.at, width)] = (letter, look)
    letter, _ = cells[here]
    cells[here] = (
        letter if letter.isalpha() else position,
        "badge" if letter.isalpha() else "accent",
    )
    return tuple(cells)


def _rank(mark: TimeMark) -> int:
    return MARKS[mark.kind][2]


def _column(line: TimeLine, at: float, width: int) -> int:
    whole = line.ended_at - line.started_at
    share = (at - line.started_at) / whole if whole > 0 else 0.0
    return min(width - 1, max(0, round(share * (width - 1))))


def timeline_marks(g: Glyphs) -> tuple[str, ...]:
    """Lines for the help page."""
    del g
    return (
        "",
        "Time line of a replay",
        "A accepted   X rejected   R recommendation   V verified   B rolled back",
        "C canary or proposal   M model stored   P paused   S stopped",
    )
