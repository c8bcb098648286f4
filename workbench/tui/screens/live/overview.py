"""Many configurations at once: a sparkline each, or a plot for each target."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from workbench.domain.configurations import ConfigurationView
from workbench.domain.counts import counted
from workbench.domain.projection import SessionView
from workbench.tui import present, profile_figure, text
from workbench.tui.plots.figure import Figure, on_one_scale
from workbench.tui.plots.sparkline import sparkline
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.widgets.rows import Row, Span, fit

LEAST_POINTS, MOST_POINTS = 12, 40
"""Columns of a sparkline; the names beside it get theirs first."""
BESIDE = 10
"""Columns of cursor, state and number of samples."""
CELL = 44
"""Columns of a configuration in the overview, where there is room."""


def beside(shown: Shown, choice: ViewChoice) -> tuple[list[ConfigurationView], str]:
    """All that could stand side by side, and what one of them is: a target, or a configuration of
    the only one."""
    view, selected = shown.view, shown.selected(choice)
    by_target: dict[str, ConfigurationView] = {}
    for item in view.configurations:
        if item.taken or item.target not in by_target:
            by_target[item.target] = item
    if selected is not None:
        by_target[selected.target] = selected
    if len(by_target) < 2 and selected is not None:
        start = view.configurations.index(selected)
        return [*view.configurations[start:], *view.configurations[:start]], "configuration"
    return list(by_target.values()), "target"


def multiples(shown: Shown, choice: ViewChoice, most: int) -> list[tuple[Figure, str]]:
    """Figure and title of what stands side by side: one configuration of each target, the one
    shown or measured last; of a campaign with one target its configurations, from the one shown.
    All have one scale, so that they can be compared. Before anything is planned it is one figure
    that says so.
    """
    view, selected = shown.view, shown.selected(choice)
    items, _ = beside(shown, choice)
    if not items:
        return [(profile_figure.figure(shown, choice), profile_figure.plot_title(shown, choice, 0))]
    at = next((i for i, item in enumerate(items) if item is selected), 0)
    if at >= most:  # the one shown is always among them
        items = [*items[at:], *items[:at]]
    figures, titles = [], []
    for item in items[:most]:
        own = replace(choice, key=item.key, sample=choice.sample if item is selected else "")
        kpi = text.kpi_parts(shown.kpi(choice))[0]
        state = present.STATES.get(item.state, ("", item.state, ""))[1]
        title = f"{present.name_of(view, item)} · {kpi} · {_breakpoint(view, item) or state}"
        figures.append(profile_figure.figure(shown, own))
        titles.append(title)
    return list(zip(on_one_scale(figures), titles, strict=True))


def _breakpoint(view: SessionView, item: ConfigurationView) -> str:
    """Where it saturates, by the rule that the list names first; empty where that is not found."""
    found = next(iter(profile_figure.ranked(view, item)), None)
    if found is None or found.wl is None:
        return ""
    return text.plain(text.breakpoint_text(found))


def overview(
    shown: Shown, choice: ViewChoice, width: int, height: int, ascii_only: bool
) -> tuple[list[Row], list[tuple[int, int, int]]]:
    """Rows of sparklines, column by column, and line, column and index of each that is seen.

    All of one KPI share one scale, and all of a target one axis of loads, so that they can be
    compared; the page with the one shown is drawn.
    """
    items, selected = shown.view.configurations, shown.selected(choice)
    kpi = shown.kpi(choice)
    columns = max(1, width // CELL)
    cell = width // columns
    page = max(1, (height - 1) * columns)
    at = next((i for i, item in enumerate(items) if item is selected), 0)
    begin = at // page * page
    seen = items[begin : begin + page]
    named = max((cell_len(present.name_of(shown.view, item)) for item in seen), default=0) + 1
    points = min(MOST_POINTS, max(LEAST_POINTS, cell - BESIDE - named))
    values = [_values(shown.view, item, kpi, points) for item in items]
    scale = _scale(values)
    lines = max(1, height - 1)
    which = counted(len(items), "configuration")
    if len(seen) < len(items):
        which = f"{begin + 1}–{begin + len(seen)} of {len(items)}"
    about = f" {which} · {_range(kpi, scale)} over the load"
    rows: list[Row] = [((fit(about, width), "strong"),)]
    places: list[tuple[int, int, int]] = []
    for line in range(min(lines, len(seen))):
        spans: list[Span] = []
        for column in range(columns):
            index = column * lines + line
            if index < len(seen):
                item = seen[index]
                places.append((line + 1, column * cell, begin + index))
                drawn = sparkline(values[begin + index], scale, ascii_only)
                spans += _cell(shown, item, drawn, item is selected, cell)
        rows.append(tuple(spans))
    return rows, places


def _cell(shown: Shown, item: ConfigurationView, line: str, here: bool, width: int) -> list[Span]:
    sign, _, look = present.STATES.get(item.state, ("?", item.state, ""))
    name = fit(present.name_of(shown.view, item), width - len(line) - BESIDE)
    return [
        ("›" if here else " ", "accent"),
        (f"{sign} ", look),
        (name, "badge" if here else ""),
        (f" {line}", "accent"),
        (f"{item.taken:>5} ", "bad" if item.invalid * 2 > item.taken else "dim"),
    ]


def _values(
    view: SessionView, item: ConfigurationView, kpi: str, points: int
) -> list[float | None]:
    """The KPI at so many places of the target's range of loads: of the fit where it reaches, else
    of valid samples. A fit ends where saturation begins, which only samples show.
    """
    curve = item.curve if item.curve is not None and item.curve.kpi == kpi else None
    first, last = (curve.wl[0], curve.wl[-1]) if curve and curve.wl else (math.inf, -math.inf)
    measured = sorted(
        (sample.wl, sample.kpis[kpi].value)
        for sample in item.samples
        if sample.valid and kpi in sample.kpis
    )
    loads = _loads(view, item, [*(wl for wl, _ in measured), *(curve.wl if curve else ())], points)
    found: list[float | None] = [None] * points
    if not loads:
        return found
    for wl, value in measured:
        if not first <= wl <= last:
            found[_nearest(loads, wl)] = value
    for at, wl in enumerate(loads):
        if curve and first <= wl <= last and found[at] is None:
            found[at] = curve.mean[_nearest(curve.wl, wl)]
    return found


def _loads(
    view: SessionView, item: ConfigurationView, known: Sequence[float], points: int
) -> list[float]:
    """So many loads over the range of the target; over those known where no campaign says it."""
    if view.campaign is not None:
        primary = view.campaign.target_plan(item.target).primary
        low, high, log = primary.low, primary.high, primary.scale == "log"
    elif known:
        low, high, log = min(known), max(known), True
    else:
        return []
    if log and low > 0:
        return [low * (high / low) ** (i / (points - 1)) for i in range(points)]
    return [low + (high - low) * i / (points - 1) for i in range(points)]


def _nearest(rising: Sequence[float], value: float) -> int:
    """Index of the number that is nearest."""
    after = bisect_left(rising, value)
    if after == 0 or (after < len(rising) and rising[after] - value <= value - rising[after - 1]):
        return after
    return after - 1


def _range(kpi: str, scale: tuple[float, float] | None) -> str:
    """`p95 0.233–240 ms`."""
    name, unit = text.kpi_parts(kpi)
    ends = f"{text.number(scale[0])}–{text.number(scale[1])}" if scale else ""
    return " ".join(part for part in (name, ends, unit) if part)


def _scale(values: Sequence[Sequence[float | None]]) -> tuple[float, float] | None:
    known = [value for line in values for value in line if value is not None and value > 0]
    return (min(known), max(known)) if known else None
