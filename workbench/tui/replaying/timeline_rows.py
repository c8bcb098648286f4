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
NEAR = (0, 1, -1, 2, -2)
"""By how many cells a mark may move where others stand already."""


def timeline(replay: Replay, view: SessionView, glyphs: Glyphs, width: int) -> Row:
    """One row: begin, line with marks and position, end, and which sample it is.

    Cells are of the time that playing takes, so that the nights of a session have no room in it.
    """
    line = replay.line
    if line is None:
        return ((" …", "dim"),)
    named = day if line.ended_at - line.started_at > LONG_S else clock
    begin, end = f" {named(line.started_at)} ", f" {named(line.ended_at)}"
    taken = number(view.samples_taken + view.trial_samples)
    if width >= 80:
        count = f"  sample {taken} of {number(line.samples)} · event {replay.seq} "
    else:
        count = f"  {taken}/{number(line.samples)} #{replay.seq} "
    room = width - len(begin) - len(end) - len(count)
    if room < 10:
        begin, end = " ", ""
        room = width - len(begin) - len(count)
    room = max(4, room)
    places = _places(line, room)
    if len(places) < len(line.marks) and room > 10:
        room -= 4
        places = _places(line, room)
        end = f" +{len(line.marks) - len(places)}".ljust(4) + end
    return ((begin, "dim"), *_bar(replay, line, places, glyphs, room), (end, "dim"), (count, ""))


def marks_row(line: TimeLine | None, room: int) -> Row:
    """What the letters on the line mean: of those that stand there, as many as fit."""
    spans: list[Span] = []
    kinds = {mark.kind for mark in line.marks} if line is not None else set()
    for kind in sorted(kinds, key=lambda kind: MARKS[kind][2]):
        letter, look, _ = MARKS[kind]
        word = f" {kind.replace('_', ' ')}  "
        if letter.isalpha() and not any(letter == known for known, _ in spans):
            if sum(len(words) for words, _ in spans) + len(letter + word) > room:
                break
            spans += [(letter, look), (word, "dim")]
    return tuple(spans)


def _bar(
    replay: Replay, line: TimeLine, places: dict[int, TimeMark], glyphs: Glyphs, width: int
) -> tuple[Span, ...]:
    at_mark = (column for column, mark in places.items() if mark.seq == replay.seq)
    here = next(at_mark, _column(line, replay.at, width))
    ascii_only = glyphs.dots == (1, 1)
    done, ahead, position = ("=", "-", "#") if ascii_only else ("━", "─", "┃")
    cells: list[Span] = [
        (done, "accent") if column < here else (ahead, "dim") for column in range(width)
    ]
    for column, mark in places.items():
        letter, look, _ = MARKS[mark.kind]
        if ascii_only:
            letter = {"▸": ">", "■": "."}.get(letter, letter)
        cells[column] = (letter, look)
    letter, _ = cells[here]
    cells[here] = (
        letter if letter.isalpha() else position,
        "badge" if letter.isalpha() else "accent",
    )
    return tuple(cells)


def _places(line: TimeLine, width: int) -> dict[int, TimeMark]:
    """Which mark stands in which cell: in their order, each near its time.

    Where there are more than fit there, the less important have none.
    """
    kept: list[TimeMark] = []
    free = set(range(width))
    for mark in sorted(line.marks, key=_rank):
        wanted = _column(line, mark.at, width)
        cell = next((wanted + by for by in NEAR if wanted + by in free), None)
        if cell is not None:
            free.discard(cell)
            kept.append(mark)
    taken = sorted(set(range(width)) - free)
    return dict(zip(taken, sorted(kept, key=lambda mark: mark.seq), strict=True))


def _rank(mark: TimeMark) -> int:
    return MARKS[mark.kind][2]


def _column(line: TimeLine, at: float, width: int) -> int:
    return min(width - 1, max(0, round(line.share_at(at) * (width - 1))))


def timeline_marks(g: Glyphs) -> tuple[str, ...]:
    """Lines for the help page."""
    del g
    return (
        "",
        "Time line of a replay",
        "Its cells are of the time that playing takes; long gaps are cut.",
        "A accepted   X rejected   R recommendation   V verified   B rolled back",
        "C canary or proposal   M model stored   P paused   S stopped",
        "+3: so many more marks than there is room for; the brackets go to them all.",
    )
