"""What a kubelet counts of a container: its summary, or its metrics where that lacks it.

A kubelet looks at its containers every ten seconds or so and says when it did. What lies between
two looks is taken as even: a window that is shorter shows the mean over the step, and is said to.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from workbench.domain.errors import LabError
from workbench.labs.cluster.cluster_api import FORBIDDEN, ApiRefused, ClusterApi, Json
from workbench.labs.cluster.found_pod import FoundPod
from workbench.measuring.records import ComponentCounters

NANO = 1e-9
EVERY_S = 1.0
AHEAD_S = 2.0
"""How far a node's clock may be ahead of this host's."""
OLDEST_S = 60.0
"""A look that is older is of a kubelet that stands still, or of a clock that is behind."""
SETTLE_S = 30.0
"""How long the look after the load is waited for."""
SAMPLE = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)(?: (?P<ms>\d+))?$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
UNCOUNTED: Mapping[str, str] = {
    "throttled_s": "no kubelet tells how long a container waited for its quota",
    "rx_packets": "the kubelet counts bytes of a pod, and no packets",
    "tx_packets": "the kubelet counts bytes of a pod, and no packets",
}
"""What a function of a cluster cannot be asked for, by name."""


@dataclass(frozen=True)
class KubeletLook:
    """What a kubelet saw of a container, and when, by the clock of its node."""

    at_s: float
    """Unix time."""
    cpu_s: float
    memory_bytes: float
    rx_bytes: float = 0.0
    tx_bytes: float = 0.0
    pressure_cpu_s: float | None = None
    """Seconds in which some thread waited for CPU (PSI); None where the kubelet does not tell."""


def of_summary(summary: Json, found: FoundPod) -> KubeletLook | None:
    """From `/stats/summary`; None where the container, or its CPU, is not in it.

    Raises `ValueError`, `KeyError` or `TypeError` for what is no summary.
    """
    for pod in summary.get("pods") or ():
        if pod["podRef"].get("uid") != found.uid:
            continue
        for one in pod.get("containers") or ():
            cpu = one.get("cpu") or {}
            if one["name"] == found.container and "usageCoreNanoSeconds" in cpu:
                network = pod.get("network") or {}
                waited = ((cpu.get("psi") or {}).get("some") or {}).get("total")
                return KubeletLook(
                    unix_of(cpu["time"]),
                    float(cpu["usageCoreNanoSeconds"]) * NANO,
                    float((one.get("memory") or {}).get("workingSetBytes", 0)),
                    float(network.get("rxBytes", 0)),
                    float(network.get("txBytes", 0)),
                    None if waited is None else float(waited) * NANO,
                )
    return None


def of_metrics(text: str, found: FoundPod) -> KubeletLook | None:
    """From `/metrics/resource`; None where the container is not in it. Raises `ValueError`."""
    wanted = {"namespace": found.namespace, "pod": found.pod, "container": found.container}
    seen: dict[str, float] = {}
    at_s = 0.0
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match is None or dict(LABEL.findall(match["labels"])) != wanted:
            continue
        seen[match["name"]] = float(match["value"])
        if match["name"] == "container_cpu_usage_seconds_total" and match["ms"]:
            at_s = int(match["ms"]) / 1000
    if not at_s:
        return None
    memory = seen.get("container_memory_working_set_bytes", 0.0)
    return KubeletLook(at_s, seen["container_cpu_usage_seconds_total"], memory)


def unix_of(text: str) -> float:
    """Seconds of a time as Kubernetes writes it (RFC 3339, up to nanoseconds)."""
    moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text.replace("Z", "+00:00")))
    return moment.timestamp()


async def look_at(api: ClusterApi, found: FoundPod) -> KubeletLook:
    """What the kubelet saw last. Raises `LabError` where it does not tell."""
    try:
        look = of_summary(await api.summary(found.node), found)
        if look is None:
            look = of_metrics(await api.resource_metrics(found.node), found)
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(
            f"what its kubelet counts is not understood ({type(error).__name__})",
            where=f"node {found.node}",
        ) from None
    except ApiRefused as refused:
        if refused.status == FORBIDDEN:
            refused.remedy = (
                "Ask for `get` on `nodes/proxy` (docs/attach.md has the role): without it nothing "
                "that the pod uses can be counted"
            )
        raise
    if look is None:
        raise LabError(
            "its kubelet counts nothing of it",
            where=found.place,
            remedy=f"See `kubectl get --raw /api/v1/nodes/{found.node}/proxy/stats/summary`",
        )
    ahead_s = look.at_s - time.time()
    if ahead_s > AHEAD_S:
        raise LabError(
            f"its clock is {ahead_s:.0f} s ahead of this host's, so that what it counts cannot be "
            "laid beside the load",
            where=f"node {found.node}",
            remedy="Set both clocks by the same source (NTP)",
        )
    if ahead_s < -OLDEST_S:
        raise LabError(
            f"what its kubelet saw last is {-ahead_s:.0f} s old: it stands still, or its clock is "
            "behind this host's",
            where=f"node {found.node}",
            remedy="See the kubelet's log, and both clocks",
        )
    return look


@dataclass
class KubeletLooks:
    """What a kubelet saw of one container during a drive."""

    found: FoundPod
    seen: list[KubeletLook] = field(default_factory=list)
    offset_s: float = field(default_factory=lambda: time.time() - time.monotonic())
    """From the lab's clock to Unix time; the node's clock is taken for this host's."""

    def begin(self) -> None:
        """Of another drive: this host's clock may have been set since the last."""
        self.seen.clear()
        self.offset_s = time.time() - time.monotonic()

    async def follow(self, api: ClusterApi) -> None:
        """Ask until this is cancelled. A kubelet that is away for a while is no error here:
        `settle` misses what it did not tell."""
        while True:
            with suppress(LabError):
                self.note(await look_at(api, self.found))
            await asyncio.sleep(EVERY_S)

    def note(self, look: KubeletLook) -> None:
        """One that is not newer is the same."""
        if not self.seen or look.at_s > self.seen[-1].at_s:
            self.seen.append(look)

    async def settle(self, api: ClusterApi, stop_s: float) -> None:
        """Wait for a look after the load, on the lab's clock. Raises `LabError` in vain."""
        latest_s = time.monotonic() + SETTLE_S
        while not self.seen or self.seen[-1].at_s < stop_s + self.offset_s:
            if time.monotonic() > latest_s:
                raise LabError(
                    f"its kubelet did not look at it again within {SETTLE_S:g} s after the load: "
                    "what it used is not known",
                    where=self.found.place,
                    remedy="See the kubelet's log, and both clocks",
                )
            self.note(await look_at(api, self.found))
            await asyncio.sleep(EVERY_S / 4)

    @property
    def last(self) -> ComponentCounters:
        """What it saw last, while load is driven: some seconds old."""
        return _counters(self.seen[-1]) if self.seen else ComponentCounters(0.0)

    @property
    def step_s(self) -> float:
        """The longest time between two looks; 0 with one."""
        times = [look.at_s for look in self.seen]
        return max(np.diff(times), default=0.0)

    def at(self, at_s: float) -> ComponentCounters:
        """Counters at an instant of the lab's clock, even between two looks."""
        times = [look.at_s - self.offset_s for look in self.seen]

        def then(column: Callable[[KubeletLook], float]) -> float:
            return float(np.interp(at_s, times, [column(look) for look in self.seen]))

        return ComponentCounters(
            then(lambda look: look.cpu_s),
            memory_bytes=then(lambda look: look.memory_bytes),
            rx_bytes=then(lambda look: look.rx_bytes),
            tx_bytes=then(lambda look: look.tx_bytes),
        )

    def pressure_at(self, at_s: float) -> float | None:
        """PSI at an instant; None where the kubelet does not tell."""
        told = [(look.at_s - self.offset_s, look.pressure_cpu_s) for look in self.seen]
        times = [at for at, waited in told if waited is not None]
        if not times or len(times) < len(told):
            return None
        return float(np.interp(at_s, times, [waited or 0.0 for _, waited in told]))


def _counters(look: KubeletLook) -> ComponentCounters:
    return ComponentCounters(
        look.cpu_s,
        memory_bytes=look.memory_bytes,
        rx_bytes=look.rx_bytes,
        tx_bytes=look.tx_bytes,
    )
