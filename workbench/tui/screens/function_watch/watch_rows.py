"""From watches of running functions to rows and a plot; plain functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from workbench.domain.function_watches import (
    FunctionLook,
    FunctionWatch,
    FunctionWatches,
    LookState,
    badge,
)
from workbench.tui import text
from workbench.tui.plots.figure import Figure, Fit, Limit
from workbench.tui.widgets.rows import Look, Row, fit

SPAN_S, LEAST_SPAN_S = 600.0, 60.0
"""That the plot shows at most, and at least."""
LATE_S = 5.0
"""Without a report, after which the last look is no longer taken for now."""
APART_S = 2.5
"""Between two looks, beyond which no line joins them: a look in between had no answer."""
NAME, STATE, KPI, NOW = 12, 20, 11, 24
"""Widths of columns, in cells."""
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
    "others' load": "another's load slows the function; two looks of three raise that, five in a "
    "row clear it",
    "drifted": "its counters have been far from what was learned for a while; measure it again",
    "unknown": "no figure: its counters lie outside of what was learned, or one is missing",
    "may break": "the figure breaks the SLA, and is not sure enough, or not for long, for an alarm",
    "predicted to hold": "the figure holds the SLA",
    "predicted": "a figure, and no SLA is held against it",
}


def merged(known: FunctionWatches | None, news: FunctionWatches) -> FunctionWatches:
    """What was known of the same watches with the looks that came since, as far as plotted."""
    before = {w.watched: w.looks for w in known.watches} if known is not None else {}
    least = news.now - SPAN_S

    def whole(watch: FunctionWatch) -> FunctionWatch:
        looks = {look.at: look for look in (*before.get(watch.watched, ()), *watch.looks)}
        known = (looks[at] for at in sorted(looks) if least <= at <= news.now + LATE_S)
        return replace(watch, looks=tuple(known))  # later ones are of a clock that was set back

    return FunctionWatches(news.now, tuple(whole(watch) for watch in news.watches))


def missing_since(known: FunctionWatches | None) -> float:
    """After which looks are not known yet. Watches report at different instants, so that some of
    those that are known come again."""
    living = [w for w in known.watches if w.looks and not w.ended] if known is not None else []
    looks = [w.looks[-1].at for w in living]
    return min(looks, default=0.0 if known is None or not known.watches else known.now - LATE_S)


def heading(width: int) -> Row:
    words = _columns("function", "state", "KPI", "now (95 % interval)") + "where"
    return ((fit(words, width), "strong"),)


def _columns(name: str, state: str, kpi: str, now: str) -> str:
    cells = ((name, NAME), (state, STATE), (kpi, KPI), (now, NOW))
    return "".join(f" {fit(text.plain(words), width)}" for words, width in cells) + " "


def watch_row(watch: FunctionWatch, now: float, width: int) -> Row:
    """A function, what its KPI is now, and whether anything is wrong with it."""
    state, look = state_of(watch, now)
    last = watch.looks[-1] if watch.looks else None
    told = figure_of(last, watch.watched.kpi) if last is not None else "-"
    kpi, _ = text.kpi_parts(watch.watched.kpi)
    head = _columns(watch.watched.function, state, kpi, told)
    place = fit(text.plain(watch.watched.place), max(0, width - len(head)))
    return ((head, look), (place, "dim"))


def figure_of(look: FunctionLook, kpi: str) -> str:
    """`0.43 ms (0.2 to 0.9)`, or `?`."""
    if look.value is None or look.low is None or look.high is None:
        return "?"
    _, unit = text.kpi_parts(kpi)
    value, low, high = (text.number(x) for x in (look.value, look.low, look.high))
    return f"{value} {unit} ({low} to {high})"


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


def title(watch: FunctionWatch) -> str:
    kpi = text.kpi_name(watch.watched.kpi)
    function = text.plain(watch.watched.function)
    return f"{kpi} of {function}, predicted from its counters, over seconds before now"


def figure(watch: FunctionWatch, now: float) -> Figure:
    """The KPI over the seconds until now, with its band; gaps where nothing was said."""
    curves = [_curve(part, now) for part in _stretches(watch.looks)]
    if curves:
        curves[-1] = replace(curves[-1], label="predicted")
    first = min((look.at - now for look in watch.looks), default=0.0)
    limit = None
    if watch.watched.limit is not None:
        limit = Limit(watch.watched.limit, f"SLA {text.plain(watch.watched.sla)}")
    return Figure(
        x_range=(min(first, -LEAST_SPAN_S), 0.0),
        fit=curves[-1] if curves else None,
        more=tuple(curves[:-1]),
        limit=limit if curves else None,
        log_x=False,
        log_y=True,
        empty=_silent(watch),
        y_range=_spanned(watch),
    )


def _spanned(watch: FunctionWatch) -> tuple[float, float] | None:
    """The whole band and the SLA's limit: whether the one reaches the other is to be seen."""
    ends = [end for look in watch.looks for end in (look.low, look.high) if end]
    if not ends:
        return None
    limit = watch.watched.limit or ends[0]
    return min(*ends, limit), max(*ends, limit)


def _silent(watch: FunctionWatch) -> str:
    why = watch.looks[-1].why if watch.looks else ""
    return f"no prediction: {text.plain(why)}" if why else "no look yet"


def _stretches(looks: Iterable[FunctionLook]) -> list[list[FunctionLook]]:
    """Looks with an answer, cut where there was none."""
    found: list[list[FunctionLook]] = []
    for look in looks:
        if look.value is None or look.value <= 0.0:
            continue
        if not found or look.at - found[-1][-1].at > APART_S:
            found.append([])
        found[-1].append(look)
    return found


def _curve(looks: Sequence[FunctionLook], now: float) -> Fit:
    return Fit(
        tuple(look.at - now for look in looks),
        tuple(look.value or 0.0 for look in looks),
        tuple(look.low or look.value or 0.0 for look in looks),
        tuple(look.high or look.value or 0.0 for look in looks),
    )


def detail_rows(watch: FunctionWatch, width: int, room: int) -> list[Row]:
    """Why nothing is told, what others take, how sure the model is, and what changed last."""
    rows: list[Row] = []
    last = watch.looks[-1] if watch.looks else None
    if last is not None and last.value is None:
        rows += _wrapped(f"?: {last.why}", width, "warn")
    if last is not None and last.unsure:
        rows += _wrapped(
            f"may break the SLA, with a probability of {last.breach:.0%}; an alarm takes 80 % in "
            "two looks of three",
            width, "warn",
        )  # fmt: skip
    if last is not None and last.sign:
        rows += _wrapped(f"beside others: {last.sign}", width, "bad" if last.contention else "")
    for note in reversed(watch.notes):
        rows += _wrapped(f"{text.clock(note.at)} {note.text}", width, "")
    accuracy: list[Row] = []
    for sentence in watch.watched.accuracy:
        accuracy += _wrapped(sentence, width, "dim")
    kept = max(0, room - len(accuracy)) if room > len(accuracy) + 2 else room
    return [*rows[:kept], *accuracy][:room]


def _wrapped(words: str, width: int, look: Look) -> list[Row]:
    return [((f" {part}", look),) for part in text.wrapped(text.plain(words), max(10, width - 2))]
