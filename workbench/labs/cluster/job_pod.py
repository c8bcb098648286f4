"""What an API server says of the one pod of a Job: whether it runs, how it ended, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.labs.cluster.cluster_api import QUOTED, Json
from workbench.labs.cluster.found_pod import status_of
from workbench.labs.cluster.kubelet import unix_of

NO_IMAGE = {"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ErrImagePull"}
NOT_STARTED = {
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
    "ContainerCannotRun",
}
SEE_IMAGE = "See that the nodes may pull it: `kubectl describe pod` names what they were told"


@dataclass(frozen=True)
class Trouble:
    """Why a pod of ours does not do what it is to do."""

    said: str
    remedy: str


@dataclass(frozen=True)
class JobPod:
    """One container of it, at one look."""

    name: str
    node: str
    image_id: str
    started_s: float | None = None
    """When it began, by the clock of its node, cut to whole seconds; None: it has not."""
    exit_code: int | None = None
    """None: it has not ended."""
    trouble: Trouble | None = None
    waits: str = ""
    """Why it has not begun, as a clause; that may pass."""


def seen_in(pod: Json, container: str) -> JobPod:
    """What is said of a container. Raises `KeyError`, `TypeError` or `ValueError` for no pod."""
    told = status_of(pod, container)
    state: Mapping[str, Any] = told.get("state") or {}
    ended: Mapping[str, Any] = state.get("terminated") or {}
    started = (state.get("running") or ended).get("startedAt")
    return JobPod(
        str(pod["metadata"]["name"]),
        str((pod.get("spec") or {}).get("nodeName") or ""),
        str(told.get("imageID") or ""),
        unix_of(str(started)) if started else None,
        int(ended["exitCode"]) if ended else None,
        _trouble(pod, told, state),
        _waits(pod, state),
    )


def _trouble(pod: Json, told: Mapping[str, Any], state: Mapping[str, Any]) -> Trouble | None:
    status = pod.get("status") or {}
    disrupted = _condition(pod, "DisruptionTarget", "True")
    if status.get("reason") == "Evicted" or disrupted:
        why = _words(status.get("message") or (disrupted or {}).get("message"))
        return Trouble(
            f"its pod was evicted{why}",
            "Choose other nodes (`node_selector`), or request what it needs (`cpu`, `memory`)",
        )
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return Trouble("somebody deleted its pod", "Find out who, and `workbench resume`")
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or {}
    reason = str(waiting.get("reason") or ended.get("reason") or "")
    why = _words(waiting.get("message") or ended.get("message"))
    if reason in NO_IMAGE - {"ErrImagePull"}:  # which is tried again at once
        return Trouble(
            f"its image {told.get('image', '')} cannot be had ({reason}){why}", SEE_IMAGE
        )
    if reason in NOT_STARTED:
        return Trouble(
            f"its program cannot be started ({reason}){why}",
            "The image has to hold the generator and curl, for a user that is not root",
        )
    if reason == "OOMKilled":
        return Trouble("it was ended for want of memory (OOMKilled)", "Give it more `memory`")
    if status.get("phase") == "Failed" and not ended:
        return Trouble(
            f"its pod has failed ({status.get('reason', 'for no reason told')})"
            f"{_words(status.get('message'))}",
            "See `kubectl describe pod`",
        )
    return None


def _waits(pod: Json, state: Mapping[str, Any]) -> str:
    if unplaced := _condition(pod, "PodScheduled", "False"):
        return (
            f"no node takes it ({unplaced.get('reason', 'Unschedulable')})"
            f"{_words(unplaced.get('message'))}"
        )
    if waiting := state.get("waiting"):
        return (
            f"it waits ({waiting.get('reason', 'no reason told')}){_words(waiting.get('message'))}"
        )
    return ""


def _condition(pod: Json, kind: str, value: str) -> Mapping[str, Any] | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind and c.get("status") == value), None)


def _words(message: Any) -> str:
    """A server's own words, bounded, behind a colon."""
    text = " ".join(str(message or "").split())[:QUOTED].rstrip(".")
    return f": {text}" if text else ""
