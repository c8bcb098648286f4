"""Of one watch of a running function: what is plotted and told below it; plain functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from workbench.domain.function_watches import FunctionLook, FunctionWatch, FunctionWatches
from workbench.tui import text
from workbench.tui.plots.figure import Figure, Fit, Limit
from workbench.tui.screens.function_watch.watch_list import LATE_S, figure_of, state_of
from workbench.tui.widgets.rows import Look, Row

SPAN_S, LEAST_SPAN_S = 600.0, 60.0
"""That the plot shows at most, and at least."""
NOTES = 3
"""Changes that are told before how sure the model is."""
BORDERS = 6
"""Cells beside the title of a plot."""
APART_S = 2.5
"""Between two looks, beyond which no line joins them: a look in between had no answer."""


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


def title(watch: FunctionWatch, width: int) -> str:
    """Above the plot of a screen of that width: as much as is read whole there."""
    kpi = text.kpi_name(watch.watched.kpi)
    words = f"{kpi} of {text.plain(watch.watched.function)}"
    told = ", predicted from its counters, over seconds before now", ", over seconds before now"
    return next((words + more for more in told if len(words + more) <= width - BORDERS), words)


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


def told(watch: FunctionWatch) -> list[tuple[str, Look]]:
    """Why nothing is said, what others take, what changed last, how sure the model is: sentences,
    what is urgent first."""
    found: list[tuple[str, Look]] = []
    last = watch.looks[-1] if watch.looks else None
    if last is not None and last.contention and last.sign:
        found.append((f"beside others: {last.sign}", "bad"))
    if last is not None and last.value is None:
        found.append((f"?: {last.why}", "warn"))
    if last is not None and last.unsure:
        words = f"may break the SLA, with a probability of {last.breach:.0%}; an alarm takes 80 %"
        found.append((f"{words} in two looks of three", "warn"))
    if last is not None and last.sign and not last.contention:
        found.append((f"beside others: {last.sign}", ""))
    notes: list[tuple[str, Look]] = [
        (f"{text.clock(note.at)} {note.text}", "") for note in reversed(watch.notes)
    ]
    accuracy: list[tuple[str, Look]] = [(words, "dim") for words in watch.watched.accuracy]
    return [*found, *notes[:NOTES], *accuracy, *notes[NOTES:]]


def detail_rows(watch: FunctionWatch, width: int, room: int, key: str) -> list[Row]:
    """Whole sentences, as many as there is room for; `key` is said to tell the rest."""
    sentences = [_wrapped(words, width, look) for words, look in told(watch)]
    if sum(map(len, sentences)) <= room:
        return [row for rows in sentences for row in rows]
    shown: list[Row] = []
    for rows in sentences:
        if len(shown) + len(rows) > room - 1:
            break
        shown += rows
    if not shown and sentences:  # not even one: as much of it as there is room for
        shown = sentences[0][: room - 1]
    return [*shown, ((f" {key} tells the rest", "dim"),)]


def whole_text(watch: FunctionWatch, now: float) -> str:
    """All that is known of a watch, for a page of its own."""
    watched, last = watch.watched, watch.looks[-1] if watch.looks else None
    lines = [f"{watched.function}: {state_of(watch, now)[0]}", f"where: {watched.place}"]
    if last is not None:
        lines.append(f"now: {figure_of(last, watched.kpi)}, with its 95 % interval")
    if watched.sla:
        lines.append(f"SLA: {watched.sla}")
    return "\n".join(text.plain(line) for line in (*lines, "", *(w for w, _ in told(watch))))


def _wrapped(words: str, width: int, look: Look) -> list[Row]:
    return [((f" {part}", look),) for part in text.wrapped(text.plain(words), max(10, width - 2))]
