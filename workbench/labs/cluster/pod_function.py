"""A container of a pod that runs already, as a component: its CPU may change, and nothing else."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

from workbench.domain.errors import LabError
from workbench.domain.parameters import Configuration
from workbench.labs.attached.attached_functions import RunningFunction
from workbench.labs.cluster import pod_journal
from workbench.labs.cluster.cluster_api import NOT_FOUND, ApiRefused, ClusterApi, Json
from workbench.labs.cluster.cpu_amounts import CpuGiven
from workbench.labs.cluster.found_pod import FoundPod, generation_of, spec_of
from workbench.labs.cluster.kubelet import KubeletLooks
from workbench.labs.cluster.pod_journal import PodJournal
from workbench.labs.cluster.resizing import refusal, until_given, wanted
from workbench.measuring.records import ComponentCounters

AWAY_S = 10.0
"""How long a pod may go unseen while it is loaded."""
AGAIN_S = 0.5
"""Between two tries to watch it."""


@dataclass
class PodFunction(RunningFunction):
    """What is done to it goes through the journal and the API server."""

    found: FoundPod = field(kw_only=True)
    api: ClusterApi = field(kw_only=True)
    journal: PodJournal = field(kw_only=True)
    node_cores: float = field(kw_only=True)
    looks: KubeletLooks = field(init=False)
    _expected: CpuGiven = field(init=False)
    """What it is to have."""
    _generation: int = 0
    """Of the pod's spec, since it was asked for last."""
    _wrong: LabError | None = None
    """What the watch saw."""
    watched: int = 0
    """How often a watch of it began."""

    def __post_init__(self) -> None:
        self.looks = KubeletLooks(self.found)
        self._expected = self.found.cpu

    @property
    def place(self) -> str:
        return self.found.place

    @property
    def own_network(self) -> bool:
        return True

    def claim(self) -> None:
        """Raises `LabError` where another lab changes it."""
        self._expected, self.cores, self._wrong = self.found.cpu, 0.0, None
        self.journal.refuse(pod_journal.in_use(self.found), self.place)

    async def allocate(self, configuration: Configuration) -> None:
        """Give it the CPU of a configuration, in place; without one it keeps what it has.

        Raises `LabError`: it is another pod, or its kubelet gives that later or never.
        """
        self.see(await self.now())
        if trouble := self.trouble():
            raise trouble
        cores = configuration.vcpu(self.name)
        if cores and cores != self.cores:
            await self.limit_cpu(cores, ())
            self.cores = cores

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        del pinned  # which cores it runs on is its node's affair
        if why := refusal(self.found):
            raise self.gone(why, "Change its manifest, or write `resources: fixed`")
        cpu = wanted(self.found, cores)
        self._expected = cpu
        asked = await self.journal.change(self.api, self.found, cpu)
        self._generation = generation_of(asked)
        answer = await until_given(self.api, self.found, cpu)
        if answer.state == "given":
            return
        remedy = {
            "Infeasible": "Ask for less: its node can never give that",
            "Deferred": "Make room on its node, or ask for less; `when_wrong: wait` asks again",
        }.get(answer.state, f"See `kubectl describe pod {self.found.pod}`")
        raise self.gone(
            f"asked for {cores:g} cores ({cpu}), its kubelet says {answer.clause}; nothing was "
            "restarted for it, and what it had is asked for again",
            remedy,
        )

    async def limit_memory(self, memory_bytes: int) -> None:
        self.refuse("memory", str(memory_bytes))

    def allotted(self, host_cores: int) -> float:
        """Cores that it may use; its node's where it has no limit."""
        del host_cores
        return self._expected.cores or self.node_cores

    # ------------------------------------------------------------------ is it still the same?

    async def now(self) -> Json | None:
        """The pod; None where there is none of its name. Raises `LabGone` and others."""
        try:
            return await self.api.pod(self.found.namespace, self.found.pod)
        except ApiRefused as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def see(self, pod: Json | None) -> None:
        """Look at what the server says of it."""
        if gone := self.found.departure(pod):
            self._wrong = self.gone(f"{gone}, while it was measured")
            return
        cpu = CpuGiven.of(spec_of(pod or {}, self.found.container).get("resources"))
        older = generation_of(pod or {}) < self._generation  # than what was asked for last
        if not older and not cpu.same(self._expected):
            self._wrong = self.gone(
                f"somebody set its CPU from {self._expected} to {cpu} while it was measured; that "
                "stays"
            )

    def trouble(self) -> LabError | None:
        return self._wrong

    async def death(self) -> LabError | None:
        """Asks the server, whatever the watch has seen."""
        try:
            self.see(await self.now())
        except LabError as error:
            return self.gone(f"{error.where}: {error.what}", error.remedy)
        return self.trouble()

    async def watch(self) -> None:
        """Follow what the server says of it until this is cancelled.

        A watch that ends or breaks begins anew with a look at the pod; where that fails for
        `AWAY_S`, it is gone.
        """
        seen_s = time.monotonic()
        lost: LabError | None = None
        while True:
            try:
                pod = await self.now()
                self.see(pod)
                seen_s = time.monotonic()
                version = ((pod or {}).get("metadata") or {}).get("resourceVersion", "")
                self.watched += 1
                lost = None
            except LabError as error:
                lost = error
            else:
                with suppress(LabError):  # what becomes of it the look after it says
                    await self._follow(str(version))
                seen_s = time.monotonic()
            if lost is not None and time.monotonic() - seen_s > AWAY_S:
                self._wrong = self.gone(
                    f"nobody could see for {AWAY_S:g} s what becomes of it, so the load was "
                    f"stopped: {lost.where}: {lost.what}",
                    lost.remedy,
                )
            await asyncio.sleep(AGAIN_S)

    async def _follow(self, version: str) -> None:
        events = self.api.changes(self.found.namespace, self.found.pod, version)
        with suppress(KeyError, TypeError):
            async for event in events:
                if event["type"] == "ERROR":  # such as 410: too old to go on from
                    return
                if event["type"] != "BOOKMARK":
                    self.see(None if event["type"] == "DELETED" else event["object"])

    async def counters(self) -> ComponentCounters:
        return self.looks.last

    def gone(self, what: str, remedy: str | None = None) -> LabError:
        """As its campaign wants it taken: it waits, or ends."""
        error = self.as_wanted(what)
        return type(error)(what, where=self.place, remedy=remedy or error.remedy)
