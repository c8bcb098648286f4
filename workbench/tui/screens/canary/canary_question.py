"""The form of the screen Canary: its fields, what they ask for, and where mistakes belong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from workbench.domain.durations import duration
from workbench.domain.errors import WorkbenchError
from workbench.domain.projection import SessionView
from workbench.domain.questions import CanaryPlanned, RetrainChain
from workbench.tui import parse_input, text
from workbench.tui.screens.canary.canary_rows import chains
from workbench.tui.screens.proposals.chain_names import configuration_name, limit_text, per
from workbench.tui.widgets.field import Field

T = TypeVar("T")

RISING, RANDOM = "rising", "random"
PLACES = {
    "--chain": "chain",
    "--kpi": "kpi",
    "kpi": "kpi",
    "--sla": "sla",
    "--share": "share",
    "--steps": "steps",
    "--guard": "guard",
    "--budget": "budget",
    "--allocate": "allocation",
    "allocate": "allocation",
}
"""The field that a mistake is of, by how the engine names it."""


def fields(view: SessionView, offered: Sequence[str], chain: str) -> list[Field]:
    """With the defaults; `chain` is the one that is looked at, empty where none is."""
    campaign = view.campaign
    known = tuple(dict.fromkeys((*offered, *chains(view), *([chain] if chain else ()))))
    sla = campaign.sla if campaign else None
    limit = limit_text(sla) if sla else "none"
    return [
        Field("chain", "chain", chain, options=known),
        Field("kpi", "KPI", campaign.kpi if campaign else ""),
        Field("sla", "SLA", sla.text if sla else "", hint="p95<=200ms @ rate=300/s"),
        Field("share", "share", "50 %", hint="of the SLA's load, else of the range"),
        Field("steps", "steps", "10", hint="0 retrains from stored samples alone"),
        Field("guard", "guard", "", hint=f"the SLA's: {limit}; or p95<=100ms"),
        Field("budget", "budget", "", hint="no cap; or 5m, 90s"),
        Field("allocation", "allocation", "", hint="the largest; or haproxy=25%, tinyproxy=50%"),
        Field("loads", "loads", RISING, options=(RISING, RANDOM)),
    ]


def request_of(
    session: str, values: Mapping[str, str], pace: float | None
) -> tuple[RetrainChain | None, dict[str, str]]:
    """What the fields ask for, or the mistakes in them by field."""
    mistakes: dict[str, str] = {}

    def read(name: str, parse: Callable[[str], T], default: T) -> T:
        words = values[name]
        if not words:
            return default
        try:
            return parse(words)
        except ValueError as error:
            mistakes[name] = str(error)
            return default

    guards = tuple(part.strip() for part in values["guard"].split(";") if part.strip())
    budget: float | None = read("budget", parse_input.seconds, 0.0) or None
    request = RetrainChain(
        session,
        values["chain"] or None,
        values["kpi"] or None,
        values["sla"],
        read("share", parse_input.share, 0.5),
        read("steps", parse_input.count, 10),
        guards,
        budget,
        values["allocation"],
        values["loads"] == RANDOM,
        pace=pace,
    )
    return (None if mistakes else request), mistakes


def mistake_of(error: WorkbenchError) -> dict[str, str]:
    """The field that the engine's refusal is about, with its sentence; nothing where it is none."""
    name = PLACES.get(error.where or "")
    if name is None:
        return {}
    remedy = f". {error.remedy}" if error.remedy else ""
    return {name: f"{error.what}{remedy}"}


# ------------------------------------------------------------------------------- the plan


def plan_lines(view: SessionView, planned: CanaryPlanned, budget_s: float | None) -> list[str]:
    """What it would do, as sentences."""
    if not planned.plan.loads:
        return ["Nothing is measured: the model is retrained with what is stored."]
    plan, unit = planned.plan, per(planned.unit)
    where = configuration_name(view, plan.chain, plan.configuration)
    loads = ", ".join(text.number(wl) for wl in plan.loads)
    lines = [
        f"{where}, {text.kpi_name(planned.kpi)}: {steps(planned)}",
        f"{planned.primary} {loads}{unit}",
        f"about {cost(planned, budget_s)}; {guarded(planned)}",
    ]
    return lines + [f"!  {note}" for note in planned.notes]


def steps(planned: CanaryPlanned) -> str:
    plan, unit = planned.plan, per(planned.unit)
    count, top = len(plan.loads), f"{text.number(max(plan.loads))}{unit}"
    how = "rising" if plan.mode == "canary" else "random"
    return f"{count} {how} loads up to {top}" if count > 1 else f"one load of {top}"


def cost(planned: CanaryPlanned, budget_s: float | None) -> str:
    cap = f", at most {duration(budget_s)}" if budget_s else ""
    return f"{duration(planned.lab_s)} of lab time{cap}"


def guarded(planned: CanaryPlanned) -> str:
    guards = planned.plan.guards
    if not guards:
        return "nothing stops it: it has neither an SLA nor a guard"
    named = ", ".join(map(limit_text, guards))
    return f"it stops where {named} does not hold, and goes back a step"
