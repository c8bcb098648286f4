"""A pod that runs already: which one is meant, and whether it is still the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError
from workbench.labs.cluster.cluster_api import ClusterApi, Json
from workbench.labs.cluster.cpu_amounts import CpuGiven

SEE_PODS = "See `kubectl get pods --show-labels`"
STARTED_AGAIN = "RestartContainer"


@dataclass(frozen=True)
class FoundPod:
    """One container of a pod, as it ran when it was found."""

    namespace: str
    pod: str
    uid: str
    container: str
    container_id: str
    restarts: int
    node: str
    address: str
    image: str
    """Digest of the container's image."""
    guaranteed: bool
    """Its quality of service: what is kept for it is what it may use, and has to stay so."""
    cpu: CpuGiven
    in_place: bool
    """Whether its CPU is changed without a restart of the container."""

    @property
    def place(self) -> str:
        return f"pod {self.namespace}/{self.pod}, container {self.container}"

    def departure(self, now: Json | None) -> str:
        """What has become of it, as a clause; empty while it runs as it was found."""
        if now is None:
            return f"the pod {self.pod} was deleted"
        metadata = now.get("metadata") or {}
        if metadata.get("uid") != self.uid:
            return f"the pod {self.pod} was made again (its uid is another)"
        if metadata.get("deletionTimestamp"):
            return f"the pod {self.pod} is being deleted"
        status = status_of(now, self.container)
        if int(status.get("restartCount", 0)) != self.restarts:
            return (
                f"the container was restarted ({self.restarts} restarts before, "
                f"{status.get('restartCount')} now{_last_end(status)})"
            )
        if status.get("containerID", "") != self.container_id:
            return "the container is another one"
        phase = (now.get("status") or {}).get("phase")
        if phase != "Running":
            return f"the pod {self.pod} is {phase}"
        return ""


def _last_end(status: Mapping[str, Any]) -> str:
    reason = ((status.get("lastState") or {}).get("terminated") or {}).get("reason")
    return f": {str(reason)[:60]}" if reason else ""


def generation_of(pod: Json) -> int:
    """Counts what was wanted of a pod; 0 where the server does not tell."""
    return int((pod.get("metadata") or {}).get("generation") or 0)


def spec_of(pod: Json, container: str) -> Mapping[str, Any]:
    """What is wanted of a container; empty where the pod has none of that name."""
    return _named((pod.get("spec") or {}).get("containers"), container)


def status_of(pod: Json, container: str) -> Mapping[str, Any]:
    """What the kubelet says of a container; empty where it says nothing."""
    return _named((pod.get("status") or {}).get("containerStatuses"), container)


def _named(containers: Any, name: str) -> Mapping[str, Any]:
    return next((one for one in containers or () if one.get("name") == name), {})


async def find_pod(api: ClusterApi, attached: Attached) -> FoundPod:
    """The one pod that runs and is meant. Raises `LabError` with what is not as was said."""
    namespace, _, selector = attached.found_at.partition("/")
    pods = [one for one in await api.pods(namespace, selector) if _runs(one)]
    if len(pods) != 1:
        names = ", ".join(sorted(str(one["metadata"]["name"]) for one in pods)[:5])
        raise LabError(
            f"{len(pods)} pods run that are meant by it ({names}), one is needed"
            if pods
            else "no pod that is meant by it runs",
            where=attached.found,
            remedy=SEE_PODS,
        )
    pod = pods[0]
    name = _container(pod, attached)
    try:
        return _found(namespace, pod, name)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(
            f"what the API server says of it is not understood ({error})", where=attached.found
        ) from None


def _runs(pod: Json) -> bool:
    running = (pod.get("status") or {}).get("phase") == "Running"
    return running and not (pod.get("metadata") or {}).get("deletionTimestamp")


def _container(pod: Json, attached: Attached) -> str:
    names = [str(one.get("name")) for one in pod["spec"]["containers"]]
    if attached.container in names:
        return attached.container
    if not attached.container and len(names) == 1:
        return names[0]
    raise LabError(
        f"it has no container {attached.container}" if attached.container
        else "it has several containers",
        where=f"pod {attached.found_at.partition('/')[0]}/{pod['metadata']['name']}",
        remedy=f"Write `container:` beside `pod:`, one of: {', '.join(names)}",
    )  # fmt: skip


def _found(namespace: str, pod: Json, container: str) -> FoundPod:
    spec, status = spec_of(pod, container), status_of(pod, container)
    place = f"pod {namespace}/{pod['metadata']['name']}, container {container}"
    if "running" not in (status.get("state") or {}):
        raise LabError("it does not run", where=place, remedy="See `kubectl describe pod`")
    policies = {
        one.get("resourceName"): one.get("restartPolicy") for one in spec.get("resizePolicy") or ()
    }
    found = FoundPod(
        namespace,
        str(pod["metadata"]["name"]),
        str(pod["metadata"]["uid"]),
        container,
        str(status["containerID"]),
        int(status["restartCount"]),
        str(pod["spec"]["nodeName"]),
        str(pod["status"].get("podIP", "")),
        str(status.get("imageID", "")),
        pod["status"].get("qosClass") == "Guaranteed",
        CpuGiven.of(spec.get("resources")),
        policies.get("cpu") != STARTED_AGAIN,
    )
    found.cpu.same(found.cpu)  # amounts that can be read
    return found
