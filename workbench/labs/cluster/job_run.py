"""One Job in a cluster, from its creation until it is deleted, whichever way that goes."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from workbench.domain.attaching import LoadJob
from workbench.domain.errors import LabError, TrafficError
from workbench.labs.cluster.cluster_api import CONFLICT, FORBIDDEN, ApiRefused, ClusterApi, Json
from workbench.labs.cluster.job_journal import JobJournal
from workbench.labs.cluster.job_manifest import JOB, RUN, Containers, manifest
from workbench.labs.cluster.job_pod import JobPod, seen_in
from workbench.labs.cluster.kubelet import AHEAD_S
from workbench.probes.child_ending import uncancelled

LATE_S = 10.0
"""How long a Job of which no answer said whether it was created is looked for."""
GONE_S = 15.0
"""How long its pod may take to end after it was deleted."""
POLL_S = 0.25
MOST_LOG = 64 << 20
"""Bytes of a log that are read. Most kubelets keep 10 MiB."""
TAIL_S, TRIES = 0.2, 5
"""Between two looks at a log's end: what was written last may arrive after the end is told."""
FIND_OUT = "Find out who, and `workbench resume`"
FIRST_BYTES = 400
"""Of a log, with times: its first line."""


@dataclass
class JobRun:
    """As a context: it is created when that is entered and deleted when it is left."""

    api: ClusterApi
    journal: JobJournal
    job: LoadJob
    containers: Containers
    deadline_s: float
    """From when it begins until it has to have ended."""
    begin_s: float
    """How long it may wait for room and its image."""
    name: str = field(default_factory=lambda: f"workbench-{secrets.token_hex(5)}")
    _uid: str = ""
    _seen: JobPod | None = None
    _created_s: float = 0.0
    _created_unix_s: float = 0.0
    unbegun_s: float = 0.0
    """Monotonic: when it was last asked for and had not begun."""

    @property
    def place(self) -> str:
        return f"Job {self.job.namespace}/{self.name}"

    @property
    def selector(self) -> str:
        return f"{RUN}={self.journal.run},{JOB}={self.name}"

    async def __aenter__(self) -> JobRun:
        body = manifest(
            self.job,
            self.name,
            self.journal.labels,
            self.containers,
            self.begin_s + self.deadline_s,
        )
        # Before it is asked for: an answer may come long after it has begun, or never.
        self._created_s, self._created_unix_s = time.monotonic(), time.time()
        try:
            await uncancelled(self._create(body))
        except BaseException:
            await uncancelled(self._deleted_at_last())
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await uncancelled(self.end())
        else:
            await uncancelled(self._deleted_at_last())

    async def _create(self, body: Json) -> None:
        self.journal.add(self.job.namespace, self.name)
        self.journal.unsure.add(self.name)
        try:
            self._uid = await self._created(body)
        except ApiRefused as refused:
            if refused.status < 500 and refused.status != CONFLICT:
                self.journal.unsure.discard(self.name)
            if refused.status == FORBIDDEN and "quota" in refused.what:  # which may pass
                raise LabError(
                    refused.what,
                    where=refused.where,
                    remedy=f"See `kubectl describe quota -n {self.job.namespace}`; give it less "
                    "(`cpu`, `memory` of the job), or have the quota raised",
                ) from refused
            raise
        self.journal.unsure.discard(self.name)

    async def _created(self, body: Json) -> str:
        try:
            made = await self.api.create_job(self.job.namespace, body)
        except ApiRefused as refused:
            if refused.status == CONFLICT:  # created, and the answer was lost
                for made in await self.api.jobs(self.job.namespace, self.selector):
                    return str(made["metadata"]["uid"])
            raise
        return str(made["metadata"]["uid"])

    async def end(self) -> None:
        """Delete it, and see that what it sends has stopped. Raises `LabError`."""
        await self.journal.remove(self.api, self.name)
        latest_s = time.monotonic() + LATE_S
        while self.name in self.journal.unsure:  # the server may still be storing it
            if time.monotonic() > latest_s:
                raise LabError(
                    "no answer said whether it was created, and it is not there yet: should it "
                    "come, `workbench reap` deletes it",
                    where=self.place,
                )
            await asyncio.sleep(POLL_S)
            await self.journal.remove(self.api, self.name)
        latest_s = time.monotonic() + GONE_S
        told: set[str] = set()
        while True:
            pods = await self.api.pods(self.job.namespace, self.selector)
            running = [pod["metadata"] for pod in pods if not _is_over(pod)]
            if not running:
                return
            if time.monotonic() > latest_s:
                raise LabError(
                    f"it was deleted, and its pod still runs after {GONE_S:g} s: it may send on "
                    "until its drive is over",
                    where=self.place,
                    remedy=f"See `kubectl get pods -n {self.job.namespace} -l {RUN}`",
                )
            for one in running:  # garbage collection, which does the same, takes its time
                if (uid := str(one["uid"])) not in told:
                    told.add(uid)
                    await self.api.delete_pod(self.job.namespace, str(one["name"]), uid)
            await asyncio.sleep(POLL_S)

    async def _deleted_at_last(self) -> None:
        """What brought it to its end is told; what is left is in the journal."""
        try:
            await self.end()
        except LabError as left:
            self.journal.left = f"{left.where}: {left.what}"

    # ------------------------------------------------------------------ how it is about

    async def look(self, container: str) -> JobPod | None:
        """The pod now; None while there is none yet. Raises `LabError` with what is wrong."""
        pods = await self.api.pods(self.job.namespace, self.selector)
        if not pods:
            await self._why_none()
            return None
        try:
            self._seen = seen = seen_in(pods[0], container)
        except (KeyError, TypeError, ValueError) as error:
            raise LabError(
                f"what the API server says of its pod is not understood ({error})",
                where=self.place,
            ) from None
        if seen.trouble is not None:
            raise LabError(seen.trouble.said, where=self.place, remedy=seen.trouble.remedy)
        return seen

    async def _why_none(self) -> None:
        jobs = await self.api.jobs(self.job.namespace, self.selector)
        if not jobs:
            raise LabError(
                "somebody deleted it",
                where=self.place,
                remedy=FIND_OUT,
            )
        if failed := _failed(jobs[0]):
            raise LabError(failed, where=self.place, remedy="See `kubectl describe job`")
        if self._seen is not None:
            raise LabError(
                "somebody deleted its pod",
                where=self.place,
                remedy=FIND_OUT,
            )

    async def until_begun(self, container: str) -> JobPod:
        """Wait for room and the image. Raises `LabError` with what it waits for."""
        while True:
            asked_s = time.monotonic()
            seen = await self.look(container)
            if seen is not None and seen.started_s is not None:
                self._check_clock(seen.node, seen.started_s)
                return seen
            self.unbegun_s = asked_s
            if time.monotonic() > self._created_s + self.begin_s:
                raise LabError(
                    f"it did not begin within {self.begin_s:g} s: "
                    f"{seen.waits if seen and seen.waits else await self._said_of_it()}",
                    where=self.place,
                    remedy="Make room, request less (`cpu`, `memory` of the job), or choose other "
                    "nodes (`node_selector`)",
                )
            await asyncio.sleep(POLL_S)

    def _check_clock(self, node: str, started_s: float) -> None:
        """It began after it was created, and before now. Raises `LabError` where its node says
        otherwise: what is counted could not be laid beside the load."""
        ahead_s = started_s - time.time()
        behind_s = self._created_unix_s - (started_s + 1)  # whole seconds are cut
        if max(ahead_s, behind_s) > AHEAD_S:
            off = f"{ahead_s:.0f} s ahead of" if ahead_s > 0 else f"{behind_s:.0f} s behind"
            raise LabError(
                f"its clock is {off} this host's, so that the load cannot be laid beside what is "
                "counted",
                where=f"node {node}",
                remedy="Set both clocks by the same source (NTP)",
            )

    async def _said_of_it(self) -> str:
        """The last event of it, such as that a quota lets no pod be made."""
        try:
            events = await self.api.events(self.job.namespace, self._uid)
        except LabError:  # who may not read events is told the rest
            events = []
        texts = [" ".join(str(one.get("message", "")).split()) for one in events]
        return next(
            (text[:300].rstrip(".") for text in reversed(texts) if text), "no pod was made for it"
        )

    async def until_ended(
        self, container: str, latest_s: float, meanwhile: Callable[[], None] = lambda: None
    ) -> JobPod:
        """Wait for its end. Raises `LabError`, `TrafficError` where it does not come."""
        while True:
            seen = await self.look(container)
            if seen is not None and seen.exit_code is not None:
                return seen
            if time.monotonic() > latest_s:
                raise TrafficError(
                    "it did not end with its load", where=self.place, remedy="Lower the load"
                )
            meanwhile()
            await asyncio.sleep(POLL_S)

    # ------------------------------------------------------------------ what it wrote

    async def log(self, pod: str, container: str) -> bytes:
        """All of it. Raises `TrafficError` where it is longer than is read, or has no end."""
        for _ in range(TRIES):
            whole = await self._part(pod, container, MOST_LOG)
            if len(whole) >= MOST_LOG:
                raise TrafficError(
                    f"its log is longer than the {MOST_LOG >> 20} MiB that are read",
                    where=self.place,
                    remedy="Lower the load, or shorten the windows",
                )
            await asyncio.sleep(TAIL_S)
            if whole.endswith(await self._part(pod, container, FIRST_BYTES, tail_lines=1)):
                return whole
        raise TrafficError("its log still grows after its end", where=self.place)

    async def first_line(self, pod: str, container: str) -> str:
        """With the time at which it was written before it, by its node's clock."""
        text = await self._part(pod, container, FIRST_BYTES, timestamps=True)
        return text.decode(errors="replace").partition("\n")[0]

    async def _part(self, pod: str, container: str, most: int, **options: Any) -> bytes:
        return await self.api.log(self.job.namespace, pod, container, most, **options)


def _is_over(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _failed(job: Mapping[str, Any]) -> str:
    """How a Job has failed, as a clause; empty where it has not."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            return (
                f"it has failed ({condition.get('reason', 'no reason told')}): "
                f"{str(condition.get('message', ''))[:200]}"
            )
    return ""
