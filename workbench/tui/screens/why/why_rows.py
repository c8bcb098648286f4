"""The rows of the screen Why: the answer, the chain hop by hop, causes, evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.counts import counted
from workbench.domain.deviations import CARRIED, deviation_lines, other_load
from workbench.domain.diagnoses import Diagnosis, EvidenceRow, Verdict
from workbench.domain.diagnosis_tables import (
    counters_named,
    experiment,
    how_often_right,
    not_judged,
)
from workbench.domain.projection import SessionView
from workbench.tui import text
from workbench.tui.plots.sparkline import bars, column_of, over
from workbench.tui.sample_rows import in_order
from workbench.tui.text import number, percent, sentence, wrapped
from workbench.tui.widgets.rows import Look, Row, Span, fit

VALUE, CHANGE = 7, 7
"""Columns of a figure, and of how many times as much it is here."""
ROOMY = 100
"""Columns from which the response time is said to be a mean."""
LEAST_NAME, MOST_NAME = 40, 46
LEAST_CURVE, MOST_CURVE = 6, 16
ALIKE = 1.05
"""Factor up to which a figure counts as what it is alone."""


def subject_row(view: SessionView, found: Diagnosis, width: int) -> Row:
    """Which sample it is about: target, load, number among those of its configuration, validity."""
    name = text.configuration_name(view.campaign, found.target, found.configuration)
    _, unit = text.primary(view, found.target)
    spans: list[Span] = [
        (f" {name}", "strong"),
        (f" at {number(found.wl)} {unit}".rstrip(), "strong"),
    ]
    item = configuration_of(view, found)
    point = sample_of(item, found.sample)
    if item is not None and point is not None:
        place = [one.id for one in in_order(item.samples)].index(point.id) + 1
        spans.append((f"  sample {place} of {len(item.samples)}", "dim"))
        if not point.valid:
            spans.append((f"  × not valid: {sentence(point.reason)}", "bad"))
    # Compare tells of p95: the mean is named, wherever that does not cost the sample's number.
    mean = "mean " if width >= ROOMY and found.measured_ms is not None else ""
    spans.append((f"  {mean}{_times(found)}", ""))
    while len(spans) > 2 and sum(len(words) for words, _ in spans) > width:
        del spans[2]
    return tuple(spans)


def _times(found: Diagnosis) -> str:
    if found.measured_ms is None:
        return "no response time"
    if found.departure is None or found.alone_ms is None:
        return f"{number(found.measured_ms)} ms"
    times = f"{number(found.measured_ms)} ms, alone {number(found.alone_ms)} ms"
    return f"{times}: ×{number(found.departure)}"


def configuration_of(view: SessionView, found: Diagnosis) -> ConfigurationView | None:
    return view.configuration(f"{found.target}/{found.configuration.key}")


def sample_of(item: ConfigurationView | None, id: str) -> SamplePoint | None:
    samples = item.samples if item is not None else ()
    return next((one for one in samples if one.id == id), None)


def answer_rows(found: Diagnosis, width: int, most: int) -> list[Row]:
    """The sentence, how sure it is, what to do; the end of what has no room is at the causes."""
    rows: list[Row] = [
        ((f" {line}", "strong" if found.answered else "warn"),)
        for line in wrapped(f"{sentence(found.sentence)}.", width - 2)
    ]
    if found.verdicts and found.answered:
        first = found.verdicts[0]
        rows += [
            ((f" {'→' if not i else ' '} {line}", "accent"),)
            for i, line in enumerate(wrapped(sentence(first.remedy), width - 4))
        ]
        rows.append(((fit(f" {_how_sure(first, found)}", width), "dim"),))
    return rows[:most]


def _how_sure(first: Verdict, found: Diagnosis) -> str:
    often = f" · in {found.agree} of {counted(found.samples, 'sample')}"
    return f"{how_often_right(first)}{often * (found.samples > 1)}"


def hop_rows(found: Diagnosis, width: int) -> list[Row]:
    """The chain from the source's side: what limits each function, and where the causes act."""
    acting: dict[str, list[str]] = {}
    for place, verdict in enumerate(found.verdicts, 1):
        acting.setdefault(verdict.component, []).append(str(place))
    bounds = {bound.component: bound for bound in found.bounds}
    functions = list(dict.fromkeys([*(row.component for row in found.rows), *bounds]))
    name = min(16, max((len(one) for one in [*functions, "source"]), default=6))
    rows: list[Row] = []
    for component in ["source", *functions, "sink", "host"]:
        marks = acting.get(component, [])
        mark = f"◀ {', '.join(marks)}" if marks else ""
        if component not in functions and not mark:
            continue
        bound = bounds.get(component)
        said = ""
        if bound is not None:
            waits = "?" if bound.waited is None else _fine(bound.waited)
            said = f"{bound.by} {percent(bound.share)}"
            said = (
                f"{fit(said, 21)} runs {_fine(bound.ran)} waits {waits} "
                f"throttled {percent(bound.throttled)}"
            )
        sign = "→" if component in functions else "·"
        words = f" {sign} {fit(text.plain(component), name)} {said}"
        rows.append(((fit(words, max(0, width - len(mark) - 1)), ""), (f" {mark}", "warn")))
    return rows


def _fine(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.1 else percent(share)


def cause_rows(found: Diagnosis, notes: Sequence[str], width: int) -> list[Row]:
    """Every verdict with evidence, what to do, rival, what tells them apart; then what to measure
    to tell, and what is missing.

    A rule that failed stands in the notes.
    """
    rows: list[Row] = []
    for place, verdict in enumerate(found.verdicts, 1):
        rows += _verdict_rows(place, verdict, found, width)
    if not found.verdicts:
        rows.append(((" No rule finds a cause.", "dim"),))
    for one in found.experiments:
        rows += _indented(f"to find out, measure {experiment(one)}", width, "accent", "+")
    for reason, names in not_judged(found.missing).items():
        many = f"Not judged: {reason}. It would take {counters_named(names)}."
        rows += _indented(many, width, "dim", "?")
    for note in notes:
        rows += _indented(note, width, "warn", "!")
    return rows


def _verdict_rows(place: int, verdict: Verdict, found: Diagnosis, width: int) -> Iterator[Row]:
    head = f" {place} {text.plain(verdict.cause)} at {text.plain(verdict.component)}"
    strength = f"  strength {percent(verdict.strength)}"
    yield ((head, "strong"), (strength, "dim"))
    if place > 1 or not found.answered:
        yield from _indented(verdict.sentence, width, "", "")
    for evidence in verdict.evidence:
        yield from _indented(evidence, width, "", "·")
    if place > 1:
        yield from _indented(how_often_right(verdict), width, "dim", "·")
    if place > 1 or not found.answered:
        yield from _indented(verdict.remedy, width, "accent", "→")
    apart = f"rival: {verdict.rival}; told apart by {verdict.tells_apart}"
    yield from _indented(apart, width, "dim", "≠")


def _indented(words: str, width: int, look: Look, sign: str) -> list[Row]:
    lines = wrapped(sentence(words), width - 6)
    return [((f"   {'' if i else sign:1} {line}", look),) for i, line in enumerate(lines)]


def evidence_heading(width: int) -> str:
    name, curve = _columns(width)
    figures = f"{'alone':>{VALUE}} {'load':{curve}} {'chained':>{VALUE}} {'load':{curve}}"
    return f"{fit(' evidence', name)}{figures}{'×':>{CHANGE}}"


def _columns(width: int) -> tuple[int, int]:
    """Columns of the name and of each curve."""
    room = width - 2 * (VALUE + 2) - CHANGE
    curve = max(LEAST_CURVE, min(MOST_CURVE, (room - LEAST_NAME) // 2))
    return min(MOST_NAME, room - 2 * curve), curve


def evidence_rows(found: Diagnosis, width: int, ascii_only: bool) -> list[Row]:
    """Function by function, what changed most first: alone, here, and both over the load.

    The two curves of a figure share both axes; the column of the sample's load stands out.
    """
    by_component: dict[str, list[EvidenceRow]] = {}
    for row in found.rows:
        if row.alone is not None or row.chained is not None:
            by_component.setdefault(row.component, []).append(row)
    rates = [rate for row in found.rows for rate, _ in (*row.alone_by_load, *row.chained_by_load)]
    low, high = (min(rates), max(rates)) if rates else (1.0, 1.0)
    rows: list[Row] = []
    for component, own in by_component.items():
        rows.append(((f" → {text.plain(component)}", "strong"),))
        own.sort(key=lambda row: -_changed(row))
        here = next((row.chained for row in own if row.what == CARRIED), None)
        rows += [_evidence_row(row, (low, high), here, width, ascii_only) for row in own]
    if not rows:
        rows.append(((" No figure is known.", "dim"),))
    if said := deviation_lines(found):
        rows.append(((" statistics", "strong"),))
        rows += [line for one in said for line in _indented(one, width, "", "·")]
    lacking = sorted({row.what for row in found.rows if row.chained is None and row.note})
    if lacking:
        reason = next(row.note for row in found.rows if row.chained is None and row.note)
        rows += _indented(f"{', '.join(lacking)}: {reason}", width, "dim", "?")
    return rows


def _changed(row: EvidenceRow) -> float:
    """How much a figure differs from that alone, as a factor's logarithm; unknown is least,
    and the load, which no chain changes, nothing."""
    if row.alone is None or row.chained is None:
        return -1.0
    if row.what == CARRIED:
        return 0.0
    if row.alone <= 0 or row.chained <= 0:
        return 0.0 if row.alone == row.chained else math.inf
    return abs(math.log(row.chained / row.alone))


def _evidence_row(
    row: EvidenceRow,
    loads: tuple[float, float],
    here: float | None,
    width: int,
    ascii_only: bool,
) -> Row:
    name, curve = _columns(width)
    curves = (row.alone_by_load, row.chained_by_load)
    most = max((value for points in curves for _, value in points), default=0.0)
    change = _changed(row)
    times = ""
    if other_load(row.component, [row]):
        times, change = "≠ load", math.inf
    elif math.isfinite(change) and row.alone and row.chained is not None:
        times = f"×{number(row.chained / row.alone)}"
    elif change > 0:
        times = "new" if row.chained else "gone"
    look: Look = "warn" if change > math.log(2) else "" if change > math.log(ALIKE) else "dim"
    at = column_of(here, *loads, curve) if here and here > 0 else -1
    spans: list[Span] = [(fit(f"   {row.what}, {row.unit}", name - 1) + " ", "")]
    for value, points in zip((row.alone, row.chained), curves, strict=True):
        drawn = bars(over(points, *loads, curve), most, ascii_only)
        spans.append((f"{'–' if value is None else number(value):>{VALUE}} ", ""))
        spans += [(drawn[: max(0, at)], "accent")] if at > 0 else []
        if at >= 0:
            spans.append((drawn[at], "badge" if drawn[at] != " " else ""))
        spans += [(drawn[at + 1 :], "accent"), (" ", "")]
    return (*spans[:-1], (f"{times:>{CHANGE}}", look))
