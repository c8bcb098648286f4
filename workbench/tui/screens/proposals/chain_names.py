"""How chains, their loads and their limits are named, also of chains that no campaign has."""

from __future__ import annotations

from workbench.domain.campaign import TargetPlan
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.projection import SessionView
from workbench.tui import text


def plan_of(view: SessionView, chain: str) -> TargetPlan | None:
    """How a chain is measured; of one that the campaign does not have, as its trials had it."""
    plans = [*(view.campaign.targets if view.campaign else ())]
    plans += [plan for trials in reversed(view.trials) for plan in trials.plans]
    return next((plan for plan in plans if plan.target.name == chain), None)


def primary(view: SessionView, chain: str) -> tuple[str, str]:
    """Name and unit of a chain's loads."""
    plan = plan_of(view, chain)
    if plan is None:
        return "wl", ""
    return text.plain(plan.primary.name), text.plain(plan.primary.unit)


def configuration_name(view: SessionView, chain: str, configuration: Configuration | None) -> str:
    plan = plan_of(view, chain)
    if configuration is None:
        return text.plain(chain)
    if plan is None:
        return text.plain(f"{chain} {configuration.key}")
    vnfs = tuple(vnf.name for vnf in plan.target.vnfs)
    return text.plain(f"{chain} {text.shares(configuration, vnfs)}")


def limit_text(limit: Sla) -> str:
    """`p95 ≤ 200 ms`."""
    sign = {"<=": "≤", ">=": "≥"}[limit.direction]
    name, unit = text.kpi_parts(limit.kpi)
    return f"{name} {sign} {text.number(limit.limit)} {unit}".rstrip()


def per(unit: str) -> str:
    """A unit behind a figure: `200/s`, `5 clients`."""
    if unit.startswith("/"):
        return unit
    short = unit.removeprefix("requests").removeprefix("packets")
    return short if short.startswith("/") else f" {unit}" if unit else ""
