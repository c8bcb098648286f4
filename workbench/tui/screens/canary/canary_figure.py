"""The figure of the screen Canary: samples, the curve they taught, where it is only guessed."""

from __future__ import annotations

from workbench.domain.canary_tables import StepLine
from workbench.domain.counts import counted
from workbench.domain.profiles import Curve
from workbench.domain.projection import SessionView
from workbench.tui import text
from workbench.tui.plots.figure import Asked, BreakpointLine, Figure, Fit, Limit, Mark
from workbench.tui.screens.canary.canary_rows import Record, steps_of
from workbench.tui.screens.proposals.chain_names import limit_text, plan_of, primary


def figure(view: SessionView, record: Record, chosen: str, log_y: bool) -> Figure:
    """Samples of the canary, and what the model says from the lowest load to the SLA's."""
    canary, made = record.canary, record.proposal
    plan = plan_of(view, record.chain)
    log_x = plan is None or plan.primary.scale == "log"
    curve, before = _curve(record), _before(record)
    changed = curve is not None and before is not None and curve != before
    marks = tuple(
        _mark(step, step.sample == chosen)
        for step in (steps_of(view, canary) if canary is not None else ())
        if step.sample
    )
    here = record.configuration
    known = made.proposal.reach if made is not None else ()
    reach = [r.wl for r in known if r.configuration == here]
    if not reach and canary is not None:
        reach = [step.wl for step in canary.steps if step.verdict == "kept"]
    lines: tuple[BreakpointLine, ...] = ()
    if reach and curve is not None and curve.wl[-1] > max(reach):
        edge = max(reach)
        lines = (BreakpointLine(edge, edge, edge, f"seen up to {text.number(edge)}"),)
    guards = canary.plan.guards if canary is not None else ()
    limit = next((guard for guard in guards if guard.kpi == record.kpi), None)
    asked = canary.ask if canary is not None and canary.under_way else None
    return Figure(
        x_range=(curve.wl[0], curve.wl[-1]) if curve else None,
        marks=marks,
        fit=Fit(curve.wl, curve.mean, curve.low, curve.high, label=_named(record))
        if curve
        else None,
        more=(Fit(before.wl, before.mean, (), (), "dashed", "second", "before"),)
        if before is not None and changed
        else (),
        series=("canary sample",),
        asked=Asked(asked.point.wl, asked.point.wl, asked.point.wl) if asked else None,
        lines=lines,
        limit=Limit(limit.limit, f"guard {limit_text(limit)}") if limit else None,
        log_x=log_x,
        log_y=log_y,
        empty="no curve: this session's canaries were stored without theirs",
    )


def _curve(record: Record) -> Curve | None:
    made, canary = record.proposal, record.canary
    if made is not None and made.learned is not None:
        return made.learned
    if canary is None:
        return None
    return canary.learned or canary.in_force


def _before(record: Record) -> Curve | None:
    """What the model says that is to be replaced."""
    if record.proposal is not None and record.proposal.in_force is not None:
        return record.proposal.in_force
    return record.canary.in_force if record.canary is not None else None


def _named(record: Record) -> str:
    """Whose curve is drawn."""
    made, canary = record.proposal, record.canary
    if made is not None and made.learned is not None:
        accepted = made.decision is not None and made.decision.accepted
        return "accepted model" if accepted else "proposed model"
    if canary is not None and canary.learned is not None:
        kept = sum(step.verdict == "kept" for step in canary.steps)
        return f"learned from {counted(kept, 'load')}"
    return "model in force"


def plot_title(view: SessionView, record: Record) -> str:
    """What is drawn over what, and whose curve it is."""
    name, unit = primary(view, record.chain)
    over = f"{name} ({unit})" if unit else name
    kpi = text.kpi_name(record.kpi) if record.kpi else "KPI"
    return f"{kpi} over {over} · {_named(record)}"


def _mark(step: StepLine, chosen: bool) -> Mark:
    valid = step.verdict in ("kept", "restored")
    if step.value is None:
        return Mark(step.wl, None, None, None, valid, chosen)
    value = step.value
    return Mark(step.wl, value.value, value.low, value.high, valid, chosen)
