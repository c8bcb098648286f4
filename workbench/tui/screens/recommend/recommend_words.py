"""Allocations, SLAs and verdicts in words, as the screen Recommend writes them."""

from __future__ import annotations

from workbench.domain.parameters import Sla
from workbench.domain.recommendation_tables import allotted, asked, limit
from workbench.domain.recommendations import (
    Choice,
    Deployment,
    Recommendation,
    Verification,
)
from workbench.tui import text


def instances(deployment: Deployment, vnf: str) -> str:
    """`4 × 100 %, 64 MiB`; a dash for a function that is not there."""
    known = vnf in deployment.functions
    return text.sentence(allotted(deployment, vnf)) if known else "–"


def in_words(deployment: Deployment) -> str:
    """`tinyproxy 200 %, firewall 4 × 100 %`."""
    named = (f"{text.plain(vnf)} {instances(deployment, vnf)}" for vnf in deployment.functions)
    return ", ".join(named)


def shares(deployment: Deployment) -> str:
    """vCPU alone, in the order of the chain: `200+50+4×100 %`; flavors by name."""
    parts = []
    for vnf, own in deployment.functions.items():
        names = [v for v in own.values() if isinstance(v, str)]
        cores = own.get(f"{vnf}.vcpu")
        share = f"{100 * cores:.4g}" if isinstance(cores, float | int) else "–"
        part = text.plain(names[0]) if names else share
        count = deployment.instances(vnf)
        parts.append(f"{count}×{part}" if count > 1 else part)
    return "+".join(parts) + " %"


def slas_text(found: Recommendation) -> str:
    return text.plain(asked(found))


def sla_text(sla: Sla) -> str:
    return text.plain(limit(sla))


def probability(value: float) -> str:
    """Never rounded to certainty."""
    if value > 0.999:
        return ">99.9 %"
    return "<0.1 %" if value < 0.001 else f"{100 * value:.1f} %"


def load(found: Recommendation) -> float | None:
    """What was asked."""
    return next((sla.wl for sla in found.slas if sla.wl is not None), None)


def confidence(value: float) -> str:
    return f"{100 * value:.4g} %"


def margin(choice: Choice) -> str:
    """How much more load than asked: `+120`, `≥+900`, `-40`, or that it carries none."""
    if choice.margin_wl is None:
        return "no load"
    least = "≥" if choice.margin_open else ""
    sign = "+" if choice.margin_wl >= 0 else "-"
    return f"{least}{sign}{text.number(abs(choice.margin_wl))}"


def usage(choice: Choice) -> str:
    """CPU of each function as a share of its allocation: `81+43 %`."""
    shares = [choice.usage.get(vnf) for vnf in choice.deployment.functions]
    if not any(share is not None for share in shares):
        return "–"
    return "+".join("–" if s is None else f"{100 * s:.0f}" for s in shares) + " %"


def marks(choice: Choice) -> str:
    if choice.extrapolated:
        return "extrapolated"
    return "" if choice.profiled else "interpolated"


def checked(said: Verification | None) -> str:
    """What the lab said of an allocation."""
    if said is None:
        return "not checked"
    return "confirmed" if said.met else "not confirmed"
