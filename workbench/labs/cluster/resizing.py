"""A container's CPU, changed in place: what is asked for, and what the kubelet made of it.

A resize is a wish: the API server takes it, and the kubelet gives it, gives it later (`Deferred`)
or never (`Infeasible`). Those are answers, and shown as such; nothing is restarted to have it.
Source: KEP-1287 (in-place update of pod resources), stable in Kubernetes 1.35.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Literal

from workbench.domain.errors import LabError
from workbench.labs.cluster.cluster_api import (
    CONFLICT,
    NOT_FOUND,
    QUOTED,
    ApiRefused,
    ClusterApi,
    Json,
)
from workbench.labs.cluster.cpu_amounts import CpuGiven, amount_of, cores_of
from workbench.labs.cluster.found_pod import FoundPod, generation_of, spec_of, status_of

State = Literal["given", "in progress", "Deferred", "Infeasible", "Error"]

GIVEN_S = 30.0
"""How long a kubelet may take to give what was asked for."""
POLL_S = 0.25
TRIES = 3
"""Patches, where somebody changes the pod at the same time."""


@dataclass(frozen=True)
class ResizeAnswer:
    """What the kubelet says of a resize."""

    state: State
    said: str = ""
    """In its own words."""

    @property
    def clause(self) -> str:
        return f"{self.state} ({self.said})" if self.said else self.state


def refusal(found: FoundPod) -> str:
    """Why its CPU may not be changed, as a clause; empty where it may."""
    if not found.in_place:
        return (
            "its resizePolicy restarts the container when its CPU is changed, and nothing is "
            "restarted here"
        )
    if not found.cpu.limit:
        return (
            "it has no CPU limit; one that is set in place can never be taken away again, so it "
            "could not be left as it was"
        )
    return ""


def wanted(found: FoundPod, cores: float) -> CpuGiven:
    """What a share of CPU means for it, so that its quality of service stays.

    A guaranteed pod keeps what it may use; of another, no more is kept than it may use.
    """
    limit = amount_of(cores)
    kept = cores_of(found.cpu.request)
    if found.guaranteed or kept > cores_of(limit):
        return CpuGiven(limit, limit)
    return CpuGiven(limit, found.cpu.request)


async def ask_for(
    api: ClusterApi, namespace: str, pod: str, uid: str, container: str, cpu: CpuGiven
) -> Json:
    """Ask for a container's CPU; the pod as the server has it then.

    The uid goes along, so that a pod that was made again is never touched. Raises `LabError`.
    """
    body: dict[str, Any] = {
        "metadata": {"uid": uid},
        "spec": {"containers": [{"name": container, "resources": cpu.plain()}]},
    }
    for left in reversed(range(TRIES)):
        try:
            return await api.resize(namespace, pod, body)
        except ApiRefused as refused:
            if refused.status == NOT_FOUND:
                refused.remedy = (
                    "See that the pod is there, and that the server is of 1.33 or later: earlier "
                    "ones cannot resize a pod in place"
                )
            if refused.status != CONFLICT or not left:
                raise
            if (await api.pod(namespace, pod))["metadata"].get("uid") != uid:
                raise
            await asyncio.sleep(POLL_S)
    raise AssertionError("the last try returns or raises")


def answer_of(pod: Json, container: str, cpu: CpuGiven) -> ResizeAnswer:
    """What the kubelet has made of a wish, as the pod says it."""
    status = pod.get("status") or {}
    generation = generation_of(pod)
    for condition in status.get("conditions") or ():
        kind = condition.get("type")
        seen = int(condition.get("observedGeneration") or generation)
        if condition.get("status") != "True" or seen < generation:
            continue
        said = " ".join(str(condition.get("message") or "").split())[:QUOTED]
        if kind == "PodResizePending":
            deferred = condition.get("reason") != "Infeasible"
            return ResizeAnswer("Deferred" if deferred else "Infeasible", said)
        if kind == "PodResizeInProgress":
            failed = condition.get("reason") == "Error"
            return ResizeAnswer("Error" if failed else "in progress", said)
    if not CpuGiven.of(spec_of(pod, container).get("resources")).same(cpu):
        return ResizeAnswer("in progress", "the pod's spec says otherwise")
    actual = CpuGiven.of(status_of(pod, container).get("resources"))
    return ResizeAnswer("given" if actual.same(cpu) else "in progress")


async def until_given(api: ClusterApi, found: FoundPod, cpu: CpuGiven) -> ResizeAnswer:
    """Wait for what the kubelet makes of a wish; `Infeasible` is not waited for.

    Raises `LabError` where the pod is another one, or the server is away.
    """
    latest_s = time.monotonic() + GIVEN_S
    while True:
        pod = await api.pod(found.namespace, found.pod)
        if gone := found.departure(pod):
            raise LabError(f"{gone}, while its CPU was changed", where=found.place)
        answer = answer_of(pod, found.container, cpu)
        if answer.state in ("given", "Infeasible") or time.monotonic() > latest_s:
            return answer
        await asyncio.sleep(POLL_S)
