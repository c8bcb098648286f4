"""`ClusterLab`: the protocol of a lab over pods that somebody else runs in a Kubernetes cluster.

Load enters by URL from this host, as with other attached functions, or is sent by a Job in the
cluster where the campaign says so; limits are resizes in place, and counters are the kubelet's.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from workbench.domain.attaching import KUBERNETES, Attached
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, LabGone, LabStopped, TrafficError
from workbench.domain.lab import Check, HostFacts
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.topology import Target
from workbench.labs.attached.attached_functions import RunningFunction
from workbench.labs.attached.journal import AGAIN, OwnedJournal
from workbench.labs.attached.lab import AnySource, AttachedLab, AttachedTarget, as_wanted
from workbench.labs.base import LabCosts, LabSettings, OnUsage
from workbench.labs.cluster import cluster_api
from workbench.labs.cluster.cluster_api import (
    FORBIDDEN,
    UNAUTHORIZED,
    ApiRefused,
    ClusterApi,
    Json,
    the_kubeconfig,
)
from workbench.labs.cluster.cpu_amounts import bytes_of, cores_of
from workbench.labs.cluster.found_pod import FoundPod, find_pod
from workbench.labs.cluster.job_journal import JobJournal
from workbench.labs.cluster.job_load import JobDrive, JobSource
from workbench.labs.cluster.kubelet import UNCOUNTED, look_at
from workbench.labs.cluster.pod_function import PodFunction
from workbench.labs.cluster.pod_journal import PodJournal
from workbench.labs.cluster.resizing import refusal
from workbench.labs.components import competing
from workbench.labs.components.preflight import GeneratorChoice
from workbench.labs.netns import groups
from workbench.labs.netns.lab import lacking
from workbench.measuring.records import Drive, ObservedKey
from workbench.probes import host
from workbench.probes.child_ending import uncancelled
from workbench.traffic.base import Offer, PathFacts

log = structlog.get_logger(__name__)

JOURNALS: tuple[type[OwnedJournal], ...] = (JobJournal, PodJournal)
"""Of what this lab changes: Jobs that send load, which end first, and CPU of pods."""
COSTS = LabCosts(deploy_s=2.0, allocate_s=2.0, drive_overhead_s=18.0)
"""A resize takes a second or two each way; the kubelet's look after the load ten or so; a Job's
guard is there before the load."""
DEAD_S = 1.0
"""How long a server that was away a moment ago is tried again on the way out."""


class ClusterLab(AttachedLab):
    """Pods that run already, and a source of ours on this host or Jobs of ours in the cluster.

    Nothing else is created, restarted or removed there. The CPU of containers is changed in place
    where the campaign says so, and put back whenever a target is done with.
    """

    name = KUBERNETES

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        super().__init__(campaign, settings)
        context = next((one.context for one in campaign.attached if one.context), "")
        self._pods = PodJournal.new(settings.session, context, the_kubeconfig())
        self._jobs = JobJournal.new(settings.session, context, the_kubeconfig())
        self._connection = AsyncExitStack()
        self._api: ClusterApi | None = None
        self._nodes: dict[str, Json] = {}

    @property
    def costs(self) -> LabCosts:
        return COSTS

    async def open(self) -> HostFacts:
        if self._from_here and (short := lacking()):
            raise LabError(short[0], remedy=short[1])
        competing.refuse(self._campaign, self.name)
        for kind in JOURNALS:
            # Sessions of this process are reaped when it is their turn: one may be measuring now.
            self._news += await kind.reap(kind.sessions_here())
            kind.untold.take()
        self._api = await self._connection.enter_async_context(
            ClusterApi.connected(self._pods.context, self._pods.kubeconfig)
        )
        targets = [plan.target for plan in self._campaign.targets]
        found = {}
        for name in dict.fromkeys(vnf.name for target in targets for vnf in target.vnfs):
            found[name] = pod = await find_pod(self._server, self._of(name))
            self._images[name] = pod.image
            self._nodes[pod.node] = await self._server.node(pod.node)
            await look_at(self._server, pod)  # what cannot be counted is not measured
        self._check_resizes(found)
        self._check_cores(
            lambda name: (f"its node {found[name].node}", self._node_cores(found[name].node))
        )
        if self._from_here:
            await self._unpack()
        self._open = True
        return self._facts(found)

    @property
    def _from_here(self) -> bool:
        """Whether this host sends the load of any target."""
        return any(
            self._of(plan.target.vnfs[0].name).job is None for plan in self._campaign.targets
        )

    @property
    def _server(self) -> ClusterApi:
        if self._api is None:
            raise LabError("the lab is not open")
        return self._api

    def _check_resizes(self, found: Mapping[str, FoundPod]) -> None:
        """What may not be changed in place is said before any load."""
        for name, cores in self._given():
            if cores and (why := refusal(found[name])):
                raise LabError(
                    why,
                    where=found[name].place,
                    remedy="Change its manifest, or write `resources: fixed`",
                )

    def _node_cores(self, node: str) -> float:
        status = self._nodes.get(node, {}).get("status") or {}
        try:
            return cores_of(str((status.get("allocatable") or {})["cpu"]))
        except (KeyError, ValueError):
            raise LabError("it does not say how many cores it has", where=f"node {node}") from None

    def _facts(self, found: Mapping[str, FoundPod]) -> HostFacts:
        infos = {name: node["status"].get("nodeInfo") or {} for name, node in self._nodes.items()}
        nodes = ", ".join(
            f"{name} ({self._node_cores(name):g} cores, kernel {info.get('kernelVersion', '?')}, "
            f"{info.get('containerRuntimeVersion', '?')})"
            for name, info in infos.items()
        )
        versions = {str(info.get("kubeletVersion", "unknown")) for info in infos.values()}
        details = {
            "source": self._senders(),
            "cluster": self._server.place,
            "nodes": nodes,
            "pods": ", ".join(f"{name}: {pod.place}" for name, pod in found.items()),
        }
        here = HostFacts(
            lab=self.name,
            cores=self._cores,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            kernel=platform.release(),
            cpu_model=host.read_cpu_model(),
            cgroup=groups.version(),
            engine=f"kubelet {', '.join(sorted(versions))}",
            image_digests=dict(self._images),
            details={**host.read_details(), **details},
        )
        if len(self._nodes) > 1:
            said = "of this host (cores, memory, kernel, CPU): functions are on several nodes"
            return replace(here, details={**here.details, "facts": said})
        (node,) = self._nodes.values()
        return replace(_of_node(here, node), details=details)

    def _senders(self) -> str:
        """Where load comes from, by target where that differs."""
        by_job = {
            plan.target.name: self._of(plan.target.vnfs[0].name).job is not None
            for plan in self._campaign.targets
        }
        here = f"a process on this host: {self._cores} cores, {host.read_cpu_model()}"
        if not any(by_job.values()):
            return f"{here}; functions are pods of a cluster"
        jobs = "Jobs in the cluster, where functions are pods"
        if all(by_job.values()):
            return f"{jobs}; this host takes no part"
        names = [", ".join(n for n, job in by_job.items() if job == which) for which in (0, 1)]
        return f"{here} (targets: {names[0]}); {jobs} (targets: {names[1]})"

    async def _function(self, name: str) -> RunningFunction:
        attached = self._of(name)
        try:
            found = await find_pod(self._server, attached)
            if found.node not in self._nodes:
                self._nodes[found.node] = await self._server.node(found.node)
        except LabError as error:
            raise _as_wanted(attached, error) from error
        if found.image != self._images.get(name, found.image):
            raise LabStopped(
                "it was made again from another image: what was measured before says nothing of it",
                where=found.place,
                remedy="Profile it in a new session",
            )
        return PodFunction(
            name,
            self._campaign.template(name),
            address=found.address,
            attached=attached,
            found=found,
            api=self._server,
            journal=self._pods,
            node_cores=self._node_cores(found.node),
        )

    def _told(self) -> list[str]:
        untold = [said for kind in JOURNALS for said in kind.untold.take()]
        news, self._news = [*untold, *self._news], []
        return news

    def _unknown(self, functions: list[RunningFunction]) -> list[str]:
        """What this lab cannot know of the target, as sentences."""
        said = [
            "load is sent by Jobs in the cluster: what the generator itself uses there is not "
            "counted, so that no sample is called `source_saturated`, and what else runs on the "
            "nodes is not known"
            if functions[0].attached.job
            else "the source is on this host and the functions are in a cluster: the network "
            "between them is measured with them, and what else runs on their nodes is not known",
            "a kubelet looks at its containers every ten seconds or so: CPU of a shorter window is "
            "the mean between two looks, by a node's clock that is taken for this host's",
        ]
        if not functions[0].attached.past:
            said.append(
                "nobody said where the load ends (`past`): what lies behind the functions is not "
                "counted, and no sample is blamed on it or cleared of it"
            )
        return said

    # ------------------------------------------------------------------ load

    async def _load_from(
        self, target: Target, entry: RunningFunction, url: str, most: float
    ) -> tuple[AnySource, PathFacts, GeneratorChoice]:
        job = entry.attached.job
        if job is None:
            return await super()._load_from(target, entry, url, most)
        timeout_s = self._campaign.windows.request_timeout_s
        source = JobSource(self._server, self._jobs, job, timeout_s)
        try:
            path = await source.look(url)
        except LabError as error:
            error.remedy = error.remedy or f"See that {entry.place} serves {url} in its cluster"
            raise _as_wanted(entry.attached, error) from error
        finally:
            self._note_left()
        return source, path, source.choose(path, self._campaign, most)

    async def _load(
        self,
        standing: AttachedTarget,
        offer: Offer,
        configuration: Configuration,
        on_usage: OnUsage,
    ) -> Coroutine[Any, Any, Drive]:
        source, entry = standing.source, standing.entry
        if not isinstance(source, JobSource):
            return await super()._load(standing, offer, configuration, on_usage)
        driven = JobDrive(
            offer,
            standing.choice,
            {f.name: f.allotted(self._cores) for f in standing.functions},
            entry.attached.guard,
            self._url(entry, entry.attached.url, configuration),
            entry.place,
        )
        pods = [one for one in standing.functions if isinstance(one, PodFunction)]
        return self._by_job(source, driven, pods, entry.attached, on_usage)

    async def _by_job(
        self,
        source: JobSource,
        driven: JobDrive,
        pods: list[PodFunction],
        attached: Attached,
        on_usage: OnUsage,
    ) -> Drive:
        """What becomes of a Job is taken as its campaign wants it; what its log lacks is of this
        point alone."""
        try:
            return await source.drive(driven, pods, on_usage)
        except (TrafficError, LabStopped):
            raise
        except LabError as error:
            raise _as_wanted(attached, error) from error
        finally:
            self._note_left()

    def _note_left(self) -> None:
        if self._jobs.left:
            self._news.append(self._jobs.left)
            self._jobs.left = ""

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        """As of every lab; what the server says ends the run, or has it wait."""
        try:
            return await super().drive(point, seconds, on_usage)
        except ApiRefused as error:
            kind = LabStopped if _is_for_good(error) else LabError
            raise kind(error.what, where=error.where, remedy=error.remedy) from error
        except LabGone as error:
            raise self._as_all_want(error) from error

    async def _offer(
        self,
        standing: AttachedTarget,
        url: str,
        point: OperatingPoint,
        seconds: float,
        on_usage: OnUsage,
    ) -> Drive:
        """Drive, with a watch and a follower of the kubelet for every pod."""
        pods = [one for one in standing.functions if isinstance(one, PodFunction)]
        for pod in pods:
            pod.looks.begin()
            pod.looks.note(await look_at(self._server, pod.found))
        tasks = [asyncio.create_task(pod.looks.follow(self._server)) for pod in pods]
        tasks += [asyncio.create_task(pod.watch()) for pod in pods]
        try:
            drive = await super()._offer(standing, url, point, seconds, on_usage)
            for pod in pods:
                await pod.looks.settle(self._server, drive.counters[-1].at_s)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return _counted(drive, pods)

    # ------------------------------------------------------------------ the way out

    async def _put_back(self) -> None:
        """CPU as it was. Raises `LabGone` or `LabStopped` with what is left changed where the
        server cannot be asked; it is tried again whenever this lab is asked for anything."""
        await uncancelled(self._restored())

    async def _restored(self) -> None:
        if self._api is None or not (self._pods.before or self._jobs.names):
            return
        try:
            try:  # load first: what it sends is for other limits
                await self._jobs.remove(self._api)
            finally:
                said = await self._pods.restore(self._api)
        except LabError as error:
            self._api.patience_s = DEAD_S
            log.error("a cluster was not left as it was", error=str(error))
            raise self._as_all_want(error) from error
        self._api.patience_s = cluster_api.PATIENCE_S
        self._news += [one for one in said if not one.endswith(AGAIN)]
        for function in self._standing.functions if self._standing else ():
            function.claim()

    async def close(self) -> None:
        await super().close()
        self._api = None
        await self._connection.aclose()

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        if not cluster_api.installed():
            return (Check("kubernetes", "warning", *cluster_api.MISSING),)
        where = the_kubeconfig()
        if where and not _is_there(where):
            return (
                Check(
                    "kubernetes",
                    "warning",
                    f"no kubeconfig at {where}: no pods can be attached",
                    "Set KUBECONFIG where there is a cluster (docs/attach.md)",
                ),
            )
        return (Check("kubernetes", "ok", "pods can be attached (docs/attach.md); none is asked"),)

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        """Put back the CPU, and delete the Jobs, that dead sessions left; a sentence about each."""
        return tuple([said for kind in JOURNALS for said in await kind.reap(alive)])


def _of_node(facts: HostFacts, node: Json) -> HostFacts:
    """Facts of the node that all functions are on, as far as it tells them."""
    status = node.get("status") or {}
    capacity, info = status.get("capacity") or {}, status.get("nodeInfo") or {}
    try:
        cores, size = cores_of(str(capacity["cpu"])), bytes_of(str(capacity["memory"]))
    except (KeyError, ValueError):
        name = (node.get("metadata") or {}).get("name")
        raise LabError("it does not say what it has", where=f"node {name}") from None
    return replace(
        facts,
        cores=max(1, int(cores)),
        memory_bytes=size,
        kernel=str(info.get("kernelVersion", "not told")),
        cpu_model=f"not told by its kubelet ({info.get('architecture', '?')})",
        cgroup="none",
    )


def _is_for_good(error: LabError) -> bool:
    """Whether no waiting helps: nobody gets a role by that."""
    return isinstance(error, ApiRefused) and error.status in (UNAUTHORIZED, FORBIDDEN)


def _as_wanted(attached: Attached, error: LabError) -> LabError:
    """As its campaign wants it, except for what would be waited for in vain."""
    if _is_for_good(error):
        return LabStopped(error.what, where=error.where, remedy=error.remedy)
    return as_wanted(attached, error)


def _is_there(kubeconfig: str) -> bool:
    return any(Path(one).is_file() for one in kubeconfig.split(os.pathsep))


def _counted(drive: Drive, pods: list[PodFunction]) -> Drive:
    """A drive with what the kubelets saw, laid beside the instants at which others were counted."""
    instants = []
    for instant in drive.counters:
        counted = {pod.name: pod.looks.at(instant.at_s) for pod in pods}
        observed: dict[ObservedKey, float] = {}
        for pod in pods:
            if (waited := pod.looks.pressure_at(instant.at_s)) is not None:
                observed[pod.name, "pressure_cpu_s", ""] = waited
        instants.append(
            replace(
                instant,
                components={**instant.components, **counted},
                observed={**instant.observed, **observed},
            )
        )
    absent = dict(drive.absent)
    for pod in pods:
        absent |= {(pod.name, name): why for name, why in UNCOUNTED.items()}
        if pod.looks.pressure_at(drive.begin_s) is not None:
            absent.pop((pod.name, "pressure_cpu_s"), None)
    notes = tuple(
        f"the kubelet looked at {pod.name} every {pod.looks.step_s:.0f} s: CPU in shorter windows "
        "is the mean between two looks"
        for pod in pods
    )
    return replace(drive, counters=tuple(instants), absent=absent, notes=(*drive.notes, *notes))
