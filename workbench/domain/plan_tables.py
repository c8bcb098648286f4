"""What a campaign would cost, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.durations import duration
from workbench.domain.sessions import HostsPlan, Plan, SamplerCost
from workbench.domain.topology import Target


def configurations(plan: Plan) -> AnswerTable:
    """A line for each configuration of each block, with what it costs at most."""
    return AnswerTable.of(
        ("block", "target", "configuration", "samples", AnswerColumn("lab s", ".0f")),
        (
            (p.block, p.target, p.configuration.key, p.samples, float(p.lab_s))
            for p in plan.configurations
        ),
    )


def samplers(costs: Iterable[SamplerCost]) -> AnswerTable:
    """What each sampler would take, and where that figure comes from."""
    return AnswerTable.of(
        ("sampler", "samples", "lab time", "figure"),
        (
            (
                f"{cost.sampler} (chosen)" if cost.chosen else cost.sampler,
                _about(cost, str(cost.samples)),
                _about(cost, duration(cost.lab_s)),
                cost.figure.replace("_", " ") + (f": {cost.note}" if cost.note else ""),
            )
            for cost in costs
        ),
    )


def over_hosts(plans: Iterable[HostsPlan]) -> AnswerTable:
    """What a fleet of so many equal hosts would take until the last of them has ended, and their
    efficiency: how many times sooner than one host, by their number."""
    return AnswerTable.of(
        ("hosts", "shards", "lab time", "efficiency"),
        (
            (plan.hosts, plan.shards, duration(plan.lab_s), f"{plan.share_s / plan.lab_s:.0%}")
            for plan in plans
            if plan.lab_s > 0
        ),
    )


def chains(found: Sequence[Target]) -> AnswerTable:
    """Chains of a policy by number, their functions in order."""
    return AnswerTable.of(
        ("", "chain"),
        (
            (number, " → ".join(vnf.template for vnf in chain.vnfs))
            for number, chain in enumerate(found, 1)
        ),
    )


def _about(cost: SamplerCost, figure: str) -> str | None:
    if cost.figure == "unknown":
        return None
    return f"about {figure}" if cost.figure == "scaled" else figure
