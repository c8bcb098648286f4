"""From what a model was explained by to a plot of its residuals and rows of its coefficients."""

from __future__ import annotations

import math
import statistics

from workbench.domain import canary_tables, kpis
from workbench.domain.profiles import Coefficient, ModelFormula
from workbench.domain.projection import SessionView
from workbench.domain.questions import ModelExplained
from workbench.domain.retraining import Proposal
from workbench.tui import text
from workbench.tui.answer_rows import laid_out
from workbench.tui.plots.figure import Figure, Limit, Mark
from workbench.tui.screens.proposals.chain_names import configuration_name, per, primary
from workbench.tui.widgets.rows import Row, fit


def figure(explained: ModelExplained, over_load: bool, log_x: bool) -> Figure:
    """log(predicted / measured) over the load, or over the predicted KPI."""
    marks = tuple(
        Mark(r.wl if over_load else r.predicted, error, None, None, True)
        for r, error in zip(explained.residuals, _errors(explained), strict=True)
    )
    return Figure(
        marks=marks,
        limit=Limit(0.0, "as measured") if marks else None,
        log_x=log_x,
        log_y=False,
        series=("held-out sample",),
        empty=" ".join(explained.notes) or "no residuals",
    )


def title(view: SessionView, explained: ModelExplained, over_load: bool) -> str:
    name, unit = primary(view, explained.target)
    over = f"{name} ({unit})" if unit else name
    if not over_load:
        over = f"predicted {text.kpi_name(explained.kpi)}"
    return f"log error over {over} · {text.plain(explained.method)}"


def summary(explained: ModelExplained) -> Row:
    """How far off it is, and which way, in one line."""
    errors = _errors(explained)
    if not errors:
        return ((" residuals  ", "dim"), (text.sentence(" ".join(explained.notes)), "warn"))
    middle, size = statistics.median(errors), statistics.median(map(abs, errors))
    worst = max(zip(errors, explained.residuals, strict=True), key=lambda one: abs(one[0]))[1]
    way = "too high" if middle > 0 else "too low"
    words = f"{len(errors)} held out {explained.held_out}: |log error| {text.number(size)}"
    words += f", {text.number(abs(middle))} {way}; worst at {text.number(worst.wl)}"
    return ((" residuals  ", "dim"), (words, ""))


def _errors(explained: ModelExplained) -> list[float]:
    """log(predicted / measured), both at least what a score tells apart: the scores' |log error| is
    of the same figures."""
    least = kpis.of(explained.kpi).score_floor
    return [math.log(max(r.predicted, least) / max(r.measured, least)) for r in explained.residuals]


def coefficient_rows(view: SessionView, explained: ModelExplained, width: int) -> list[Row]:
    """Formula by formula, each coefficient with its standard error."""
    rows: list[Row] = []
    last = ""
    for formula in explained.formulas:
        where = configuration_name(view, explained.target, formula.configuration)
        if where != last:
            rows.append(((f" {where}", "strong"),))
            last = where
        rows.append(_formula_row(view, explained.target, formula, width))
    return rows + [((f" {text.sentence(note)}", "dim"),) for note in explained.notes]


def _formula_row(view: SessionView, target: str, formula: ModelFormula, width: int) -> Row:
    unit = per(primary(view, target)[1])
    span = f"{text.number(formula.low)}–{text.number(formula.high)}{unit}"
    head = f"   {fit(formula.region, 14)} {fit(span, 14)} {text.plain(formula.formula)}  "
    cells = "  ".join(map(coefficient, formula.coefficients))
    return ((head, ""), (fit(cells, max(0, width - len(head))), "accent"))


def coefficient(one: Coefficient) -> str:
    """`b 0.0021 ±0.0004`; without a standard error where the fit states none."""
    value = f"{text.plain(one.name)} {one.value:.3g}"
    return value if one.error is None else f"{value} ±{one.error:.2g}"


def term_rows(view: SessionView, proposal: Proposal, width: int) -> list[Row]:
    """The terms of a chain's retrained model, with their 95 % intervals."""
    places = (
        "all configurations"
        if change.configuration is None
        else configuration_name(view, proposal.chain, change.configuration).partition(" ")[2]
        for change in proposal.changes
    )
    laid = laid_out(canary_tables.terms(proposal, places), width - 1)
    rows: list[Row] = [((f" {laid.heading}", "dim"),)]
    rows += [((f" {''.join(cells)}", ""),) for cells in laid.lines]
    if not proposal.changes:
        method = text.plain(proposal.model.method)
        rows = [((f" {method} learns from the chain's samples alone: it has no terms", "dim"),)]
    return rows
