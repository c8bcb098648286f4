"""CSV: every allocation that was considered, one row each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from workbench.domain.recommendations import Choice, Deployment, Recommendation
from workbench.domain.samples import OVERLOAD, Estimate, is_unbounded
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.naming import one_line
from workbench.exports.recommendation.provenance import provenance, stem

Cell = str | float | bool | None

_FORMULA = ("=", "+", "-", "@")

_OF_THE_CHOSEN = ("probability", "cost", "extrapolated", "allocation-profiled")
"""Of these every row has a figure of its own."""


def export_csv(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """CSV: the allocations as a table.

    Where it comes from in every row, then role, allocation, cost, chances and KPIs.
    `role` is `chosen`, `closest`, `runner_up`, `verified` (the chosen one, measured) or `greedy`
    (a step of greedy scaling); `none` where not one allocation could be judged. A cell is empty
    where nothing is known.
    """
    facts: dict[str, Cell] = {
        key.replace("-", "_"): text
        for key, text in provenance(recommendation, context).items()
        if key not in _OF_THE_CHOSEN
    }
    rows = [{**facts, **row} for row in _rows(recommendation)]
    if not rows:
        rows = [{**facts, "role": "none", "met": False}]
    columns = dict.fromkeys((*facts, *(name for row in rows for name in row)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_cell, columns))
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return {f"{stem(recommendation)}.csv": text.getvalue()}


def _rows(recommendation: Recommendation) -> Iterator[dict[str, Cell]]:
    chosen, verified, greedy = (
        recommendation.chosen,
        recommendation.verified,
        recommendation.greedy,
    )
    if chosen:
        yield _choice("chosen", chosen, met=True)
    for runner_up in recommendation.runners_up:
        yield _choice("runner_up", runner_up, met=True)
    if recommendation.closest:
        yield _choice("closest", recommendation.closest, met=False)
    if verified:
        allocated = _allocated(chosen.deployment) if chosen else {}
        yield {"role": "verified", "met": verified.met, **allocated, **_kpis(verified.kpis)}
    for step in greedy.steps if greedy else ():
        last = greedy is not None and step is greedy.steps[-1]
        yield {
            "role": "greedy",
            "met": step.met,
            "probability": greedy.probability if greedy is not None and last else None,
            "wl": step.wl,
            **_allocated(step.deployment),
            **step.kpis,
            **_usage(step.usage),
        }


def _choice(role: str, choice: Choice, *, met: bool) -> dict[str, Cell]:
    return {
        "role": role,
        "met": met,
        **_allocated(choice.deployment),
        "cost": choice.cost,
        "cost_unit": choice.cost_unit,
        "probability": choice.probability,
        "margin_wl": choice.margin_wl,
        "margin_open": choice.margin_open,
        **_kpis(choice.kpis),
        **_usage(choice.usage),
        "profiled": choice.profiled,
        "extrapolated": ", ".join(choice.extrapolated),
    }


def _allocated(deployment: Deployment) -> dict[str, Cell]:
    replicas = {f"{name}.replicas": count for name, count in deployment.replicas.items()}
    return {**dict(deployment.allocation), **replicas}


def _kpis(kpis: Mapping[str, Estimate]) -> dict[str, Cell]:
    return {
        f"{name}{suffix}": OVERLOAD if is_unbounded(figure) else figure
        for name, e in kpis.items()
        for suffix, figure in (("", e.value), ("_low", e.low), ("_high", e.high))
    }


def _usage(usage: Mapping[str, float]) -> dict[str, Cell]:
    return {f"{name}.cpu_share": share for name, share in usage.items()}


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = one_line(value)
        # A spreadsheet takes these for formulas, and runs them; numbers are none of its text.
        return f"'{text}" if text.startswith(_FORMULA) else text
    return str(value)
