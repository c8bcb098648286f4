"""The profile of a configuration: its samples, fit and breakpoints as a figure with a title."""

from __future__ import annotations

from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.tui import text
from workbench.tui.plots.figure import Asked, BreakpointLine, Figure, Fit, Limit, Mark
from workbench.tui.present import STATES, Shown, ViewChoice, name_of
from workbench.tui.sample_rows import within


def figure(shown: Shown, choice: ViewChoice) -> Figure:
    return within(_whole_figure(shown, choice), choice.span)


def _whole_figure(shown: Shown, choice: ViewChoice) -> Figure:
    selected = shown.selected(choice)
    if selected is None:
        return Figure(empty="nothing planned yet")
    view, kpi = shown.view, shown.kpi(choice)
    plan = view.campaign.target_plan(selected.target) if view.campaign else None
    log_x = choice.log_x if choice.log_x is not None else not plan or plan.primary.scale == "log"
    curve = selected.curve if selected.curve and selected.curve.kpi == kpi else None
    asked = selected.asked
    return Figure(
        x_range=(plan.primary.low, plan.primary.high) if plan else None,
        marks=tuple(mark(sample, kpi, choice.sample) for sample in selected.samples),
        fit=Fit(curve.wl, curve.mean, curve.low, curve.high) if curve else None,
        asked=Asked(asked.wl, asked.low, asked.high) if asked else None,
        lines=tuple(
            BreakpointLine(b.wl, b.low or b.wl, b.high or b.wl, text.plain(text.breakpoint_text(b)))
            for b in ranked(view, selected)
            if b.state == "found" and b.wl is not None
        ),
        limit=sla_limit(view, kpi),
        log_x=log_x,
        log_y=choice.log_y,
        empty=f"no samples yet: {STATES.get(selected.state, ('', selected.state, ''))[1]}",
    )


def mark(sample: SamplePoint, kpi: str, chosen: str = "") -> Mark:
    estimate, this = sample.kpis.get(kpi), sample.id == chosen
    if estimate is None:
        return Mark(sample.wl, None, None, None, sample.valid, this)
    pinned = sample.verdict == "pinned"
    return Mark(
        sample.wl,
        estimate.value,
        estimate.low,
        estimate.high,
        sample.valid,
        this,
        pinned=pinned,
    )


def sla_limit(view: SessionView, kpi: str) -> Limit | None:
    sla = view.campaign.sla if view.campaign else None
    if sla is None or sla.kpi != kpi:
        return None
    sign = {"<=": "≤", ">=": "≥"}[sla.direction]
    name, unit = text.kpi_parts(kpi)
    return Limit(sla.limit, f"SLA {name} {sign} {text.number(sla.limit)} {unit}".rstrip())


def plot_title(shown: Shown, choice: ViewChoice, width: int) -> str:
    selected = shown.selected(choice)
    if selected is None:
        return "no configuration"
    name, unit = text.primary(shown.view, selected.target)
    over = f"{name} ({unit})" if unit else name
    kpi = text.kpi_name(shown.kpi(choice))
    title = f"{name_of(shown.view, selected)} · {kpi} over {over}"
    state = STATES.get(selected.state, ("", selected.state, ""))[1]
    return f"{title} · {state}" if len(title) + len(state) + 3 <= width else title


def ranked(view: SessionView, item: ConfigurationView) -> list[Breakpoint]:
    """The breakpoints, the one that the list names first."""
    return sorted(item.breakpoints, key=lambda b: b.rule != headline_rule(view))


def headline_rule(view: SessionView) -> str:
    """The breakpoint that the list names: the SLA's where load breaks it, else capacity, knee."""
    campaign = view.campaign
    if campaign and campaign.sla and campaign.sla.direction == "<=":
        return "sla"
    return "knee" if campaign and campaign.load.kind == "closed" else "capacity"
