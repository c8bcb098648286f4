"""The list of watches: trouble first, a column for each thing that is known; plain functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.domain import kpis
from workbench.domain.function_watches import FunctionLook, FunctionWatch, LookState, badge
from workbench.tui import text
from workbench.tui.widgets.rows import Look, Row, fit

LATE_S = 5.0
"""Without a report, after which the last look is no longer taken for now."""
STATE, RATE, TIME, LEAST_NAME, LEAST_PLACE = 20, 5, 6, 12, 14
"""Cells that a state takes, the number of a rate (`1.25k`) or time (`0.0123`), and that names and
places have at least."""
RANKS: Mapping[Look, int] = {"bad": 0, "warn": 1, "good": 2}
"""In which order watches stand: trouble first, what begins or has ended last."""
LOOKS: Mapping[LookState, Look] = {
    "predicted to break": "bad",
    "others' load": "bad",
    "drifted": "warn",
    "unknown": "warn",
    "may break": "warn",
    "predicted to hold": "good",
    "predicted": "good",
}
_MEANINGS: Mapping[LookState, str] = {
    "predicted to break": "the alarm of the SLA: its probability to break is 80 % in two looks of "
    "three; five in a row whose figure holds it clear that",
    "others' load": "others take its cores, or slow it; two looks of three raise that, five in a "
    "row clear it",
    "drifted": "its counters have been far from what was learned for a while; measure it again",
    "unknown": "no figure: its counters lie outside of what was learned, or one is missing",
    "may break": "the figure breaks the SLA, and is not sure enough, or not for long, for an alarm",
    "predicted to hold": "the figure holds the SLA",
    "predicted": "a figure, and no SLA is held against it",
}


def ordered(watches: Iterable[FunctionWatch], now: float) -> tuple[FunctionWatch, ...]:
    """Trouble first; within it as they began, so that a figure that wavers moves no line."""

    def rank(watch: FunctionWatch) -> tuple[int, bool, bool]:
        state, look = state_of(watch, now)
        breaks = state == badge("predicted to break")
        return RANKS.get(look, len(RANKS)), not breaks, watch.ended

    return tuple(sorted(watches, key=rank))


@dataclass(frozen=True)
class ListColumns:
    """Widths in cells; they rest on what does not change from look to look, so that no column
    moves. Nothing is cut but names that are longer than the line: the interval gives way first,
    then the SLA; both stand in the plot.
    """

    name: int
    now: int
    sla: int
    place: int
    intervals: bool

    @classmethod
    def of(cls, watches: Iterable[FunctionWatch], width: int) -> ListColumns:
        watched = [watch.watched for watch in watches]
        longest = max((len(text.plain(one.function)) for one in watched), default=0)
        name = max(len("function"), longest)
        sla = max((len(_limit(one.sla)) for one in watched), default=0)
        if sla:
            sla = max(sla, len("SLA")) + 1
        for intervals in (True, False):
            now = max((_room(one.kpi, intervals) for one in watched), default=0)
            left = width - 2 - (now + 1) - sla - (STATE + 2)
            if left >= min(name, LEAST_NAME):
                break
        else:
            left, sla = left + sla, 0
        place = left - name - 1
        if place < LEAST_PLACE:
            return cls(max(left, 1), now, sla, 0, intervals)
        return cls(name, now, sla, place, intervals)

    def line(self, name: str, now: str, sla: str, state: str) -> tuple[str, str]:
        """What stands before the state, and the state with what parts it from the place."""
        cells = ((name, self.name), (now, self.now), (sla, self.sla - 1))
        before = "".join(f" {fit(text.plain(words), width)}" for words, width in cells if width > 0)
        return before, f"  {fit(state, STATE)} "


def heading(columns: ListColumns) -> Row:
    now = "KPI now [95 %]" if columns.intervals else "KPI now"
    before, state = columns.line("function", now, "SLA", "state")
    return ((before + state + "where" * (columns.place > 0), "strong"),)


def watch_row(watch: FunctionWatch, now: float, columns: ListColumns) -> Row:
    """A function, what its KPI is now, and whether anything is wrong with it."""
    state, look = state_of(watch, now)
    last = watch.looks[-1] if watch.looks else None
    told = figure_of(last, watch.watched.kpi, columns.intervals) if last is not None else "-"
    watched = watch.watched
    before, after = columns.line(watched.function, told, _limit(watched.sla), state)
    place = fit(text.plain(watched.place), columns.place) if columns.place else ""
    return ((before, "bad" if look == "bad" else ""), (after, look), (place, "dim"))


def figure_of(look: FunctionLook, kpi: str, interval: bool = True) -> str:
    """`p95 0.43 ms [0.2–0.9]`, or `p95 ?`; of a rate its unit says which."""
    name, unit = text.kpi_parts(kpi)
    if look.value is None or look.low is None or look.high is None:
        return f"{name} ?"
    ends = f" {text.interval(look.low, look.high)}" if interval else ""
    return f"{_named(kpi)}{text.number(look.value)} {unit}{ends}"


def _named(kpi: str) -> str:
    return "" if kpis.of(kpi).carried else f"{text.kpi_parts(kpi)[0]} "


def _room(kpi: str, interval: bool) -> int:
    """That any figure of a KPI takes."""
    _, unit = text.kpi_parts(kpi)
    number = RATE if kpis.of(kpi).carried else TIME
    return len(_named(kpi)) + number + 1 + len(unit) + (2 * number + 4) * interval


def _limit(sla: str) -> str:
    """`<=5ms` of `p95 <= 5 ms`: the KPI stands beside it."""
    words = text.plain(sla).replace(" ", "")
    at = next((i for i, sign in enumerate(words) if sign in "<>=≤≥"), 0)
    return words[at:]


def state_of(watch: FunctionWatch, now: float) -> tuple[str, Look]:
    """The worst that is known, in a word or two."""
    if watch.ended:
        return "· ended", "dim"
    if now - watch.heard_at > LATE_S:
        return f"· silent {text.duration(now - watch.heard_at)}", "warn"
    last = watch.looks[-1] if watch.looks else None
    if last is None:
        return "· begins", "dim"
    return badge(last.state), LOOKS[last.state]


def meanings() -> tuple[str, ...]:
    """Every badge of the list, and what it says."""
    told = (f"{badge(state)}: {words}" for state, words in _MEANINGS.items())
    silent = "· silent: no report from `workbench watch` for 5 s; ended: it was ended"
    return (*told, silent)
