"""What Kustomize and Helm have in common: resources and annotations as Kubernetes writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.domain.resources import BANDWIDTH, MEBIBYTE, MEMORY, VCPU
from workbench.exports.recommendation.functions import FunctionAllocation, without_words

PREFIX = "workbench/"
"""Of annotation keys; a DNS name, as Kubernetes wants it."""


def prefixed(facts: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}{key}": text for key, text in facts.items()}


def resources(function: FunctionAllocation) -> dict[str, dict[str, str]]:
    """Requests equal to limits: what was profiled is neither lent out nor exceeded."""
    quantities = {}
    if function.millicores is not None:
        quantities["cpu"] = f"{function.millicores}m"
    if function.memory_bytes is not None:
        whole = function.memory_bytes % MEBIBYTE == 0
        memory = function.memory_bytes
        quantities["memory"] = f"{memory // MEBIBYTE}Mi" if whole else f"{memory}"
    return {"requests": dict(quantities), "limits": dict(quantities)} if quantities else {}


def unsaid(functions: Sequence[FunctionAllocation]) -> list[str]:
    """Remarks on what these do not hold."""
    return without_words("Kubernetes", functions, VCPU, MEMORY, BANDWIDTH)


def pod_annotations(function: FunctionAllocation) -> dict[str, str]:
    """The bandwidth limit, which the CNI's bandwidth plugin reads off the pod."""
    if function.egress_bps is None:
        return {}
    megabits, rest = divmod(function.egress_bps, 1_000_000)
    rate = f"{function.egress_bps}" if rest else f"{megabits}M"
    return {"kubernetes.io/egress-bandwidth": rate}
