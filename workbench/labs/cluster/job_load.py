"""Load that a Job sends from within a cluster: the pre-flight, and one stretch of it.

The generator prints a record of every request, which is read from its container's log whole and by
the parser that every lab has. What is known of when it began: Kubernetes tells whole seconds. The
log's first line is written as soon as the last request has ended, and has a time of its own; so the
load began that much before as the last record ends after its begin. Both clocks are the node's, and
taken for this host's, as for what kubelets count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from workbench.domain.attaching import LoadJob
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, TrafficError
from workbench.domain.parameters import Sla
from workbench.labs.base import OnUsage
from workbench.labs.cluster.cluster_api import ClusterApi
from workbench.labs.cluster.job_guard import FIRST_S, JobGuard, answer_s, guard_argv
from workbench.labs.cluster.job_journal import JobJournal
from workbench.labs.cluster.job_manifest import GUARD, LOAD, LOOK
from workbench.labs.cluster.job_pod import JobPod
from workbench.labs.cluster.job_run import JobRun
from workbench.labs.cluster.kubelet import AHEAD_S, unix_of
from workbench.labs.cluster.pod_function import PodFunction
from workbench.labs.components import preflight
from workbench.labs.components.driving import EVERY_S, GRACE_S
from workbench.labs.components.preflight import GeneratorChoice
from workbench.labs.components.watching import COLLECTED, HOST, DriveWatch
from workbench.labs.components.wiring import SOURCE
from workbench.measuring.records import Counters, Drive, RequestRecords
from workbench.plugins import make
from workbench.traffic.base import Generator, Offer, PathFacts, unable
from workbench.traffic.hey import HEADER
from workbench.traffic.reading import read_records

BY_LOG = "hey"
"""The generator whose log holds every record."""
LATEST_S = 1.2
"""Whole seconds are cut: what is told to have begun at 10 s began before 11; and a program takes a
while to begin."""
EARLIEST_S = 0.2
"""How much before the whole second it may seem to have begun, for clocks and rounding."""
LONGER_S = 1.5
"""By which it sends longer than is asked for, so that the last window lies within the load though
it is not known to the second when that began; what was sent then is not counted."""
BEGIN_S = 120.0
"""How long a pre-flight or a guard may wait for room and its image."""
SOON_S = 30.0
"""How long load may wait for room and its image, which its pre-flight has had already."""
GUARD_LONGER_S = 60.0
"""By which a guard is there for longer than its load may be: servers answer late."""
NOT_HERE = "load and functions are in a cluster, and this host has no part in them"
NOT_ASKED = "it runs on a node of a cluster"


@dataclass
class JobSource:
    """Where the load of a target comes from."""

    api: ClusterApi
    journal: JobJournal
    job: LoadJob
    timeout_s: float
    """Of one request."""
    image_id: str = ""
    """Digest of its image, once it ran."""

    @property
    def threads(self) -> int:
        return max(1, ceil(self.job.cores))

    async def remove(self) -> None:
        """Nothing of it stands between two drives."""

    # ------------------------------------------------------------------ before any load

    async def look(self, url: str) -> PathFacts:
        """Two requests of curl, sent by a Job of their own. Raises `LabError`."""
        argv = preflight.request_argv(url, self.timeout_s)
        longest_s = 2 * self.timeout_s + GRACE_S
        async with self._run([(LOOK, argv)], longest_s, BEGIN_S) as run:
            begun = await run.until_begun(LOOK)
            ended = await run.until_ended(LOOK, time.monotonic() + longest_s)
            text = (await run.log(begun.name, LOOK)).decode(errors="replace")
            self.image_id = ended.image_id
        try:
            facts = preflight.parse_report(text)
        except ValueError:
            facts = None
        if facts is None or ended.exit_code != 0:
            said = " ".join(text.split())[-200:] or "nothing"
            raise LabError(
                f"the first request through it was not answered (curl ended with "
                f"{ended.exit_code}): {said}",
                where=run.place,
            )
        if facts.status >= 400:
            raise LabError(
                f"the first request through it was answered with status {facts.status}",
                where=run.place,
            )
        return facts

    def choose(self, path: PathFacts, campaign: Campaign, most: float) -> GeneratorChoice:
        """The generator that a log can be read of. Raises `TrafficError`."""
        generator: Generator = make("traffic", BY_LOG)
        reason = unable(generator, campaign.load, preflight.wanted_kpis(campaign), most)
        if reason := reason or generator.unfit(path):
            raise TrafficError(
                f"{BY_LOG}, whose records a Job's log can hold, cannot measure this: {reason}",
                remedy="Have the load sent from this host: leave `job` out",
            )
        digest = self.image_id.rpartition("@")[2] or "no digest told"
        return GeneratorChoice(generator, f"of {self.job.image} ({digest[:19]})", ())

    # ------------------------------------------------------------------ load

    async def drive(
        self, driven: JobDrive, functions: Sequence[PodFunction], on_usage: OnUsage
    ) -> Drive:
        """One stretch of load. What the functions used is not in it yet: the kubelets tell that.

        Raises `LabError`, and what a guard raises; the Job is deleted whichever way this ends.
        """
        offer = driven.offer
        longer = replace(offer, seconds=offer.seconds + LONGER_S)
        argv = driven.choice.generator.argv(longer)
        longest_s = longer.seconds + self.timeout_s + GRACE_S
        load = self._run([(LOAD, argv)], longest_s, SOON_S)
        live = _Live(functions, driven, on_usage)
        if driven.guard is None:
            sent = await _send(load, live)
        else:
            answering_s = answer_s(driven.guard, self.timeout_s)
            guarding_s = FIRST_S + SOON_S + longest_s + GUARD_LONGER_S
            asking = guard_argv(driven.guard_url, answering_s, guarding_s)
            async with self._run([(GUARD, asking)], guarding_s, BEGIN_S) as run:
                pod = (await run.until_begun(GUARD)).name
                guard = JobGuard(run, pod, driven.guard, driven.place, answering_s)
                sent = await _guarded(_send(load, live, guard), guard)
        begun, first, output = sent.begun, sent.first, sent.output
        generator = driven.choice.generator
        begin_s, within_s = await asyncio.to_thread(
            _began, generator, longer, first, output, begun.started_s or 0.0
        )
        begin_s -= time.time() - time.monotonic()
        stop_s = begin_s + offer.seconds
        records = await asyncio.to_thread(
            read_records, generator, offer, b"", output, begin_s, stop_s
        )
        notes = _notes(begun, within_s, functions)
        return _driven(driven, records, begin_s, [one.name for one in functions], notes)

    def _run(
        self, containers: list[tuple[str, tuple[str, ...]]], longest_s: float, begin_s: float
    ) -> JobRun:
        return JobRun(self.api, self.journal, self.job, containers, longest_s, begin_s)


@dataclass(frozen=True)
class JobDrive:
    """What one stretch of load is to be."""

    offer: Offer
    choice: GeneratorChoice
    allotted: dict[str, float]
    guard: Sla | None
    guard_url: str
    place: str
    """Of the function that load enters."""


@dataclass(frozen=True)
class _Sent:
    """What is left of a Job that sent load to its end."""

    begun: JobPod
    first: str
    """Line of its log, with its time."""
    output: str


async def _send(load: JobRun, live: _Live, guard: JobGuard | None = None) -> _Sent:
    """One Job's load; with a guard that is heard before it begins and after it has ended."""
    if guard is not None:
        await guard.alive()
    async with load as run:
        begun = await run.until_begun(LOAD)
        if guard is not None:
            guard.load_began(run.unbegun_s)
        ended = await run.until_ended(LOAD, time.monotonic() + run.deadline_s, live.look)
        if guard is not None:
            await guard.outlive()
        if ended.exit_code != 0:
            said = (await run.log(begun.name, LOAD)).decode(errors="replace")
            raise TrafficError(
                f"{BY_LOG} ended with exit code {ended.exit_code}: "
                f"{' '.join(said.split())[-200:] or 'it said nothing'}",
                where=run.place,
                remedy="Run it by hand with that image",
            )
        first = await run.first_line(begun.name, LOAD)
        output = (await run.log(begun.name, LOAD)).decode(errors="replace")
    return _Sent(begun, first, output)


def _driven(
    driven: JobDrive,
    records: RequestRecords,
    begin_s: float,
    functions: Sequence[str],
    notes: tuple[str, ...],
) -> Drive:
    """With instants about a second apart, at which nothing is counted yet."""
    stop_s = begin_s + driven.offer.seconds
    instants = np.append(np.arange(begin_s, stop_s - EVERY_S / 2, EVERY_S), stop_s)
    return Drive(
        begin_s,
        stop_s,
        records,
        tuple(Counters(float(at_s), {}, 0.0) for at_s in instants),
        driven.choice.title,
        driven.choice.generator.kpi_definition,
        round(driven.offer.wl),
        driven.allotted,
        {},
        absent={
            **{(HOST, name): NOT_HERE for name in COLLECTED},
            **{(one, name): NOT_ASKED for one in (SOURCE, *functions) for name in COLLECTED},
        },
        notes=notes,
    )


class _Live:
    """What the kubelets saw last, about once a second, for whoever watches."""

    def __init__(
        self, functions: Sequence[PodFunction], driven: JobDrive, on_usage: OnUsage
    ) -> None:
        self._functions, self._on_usage = functions, on_usage
        self._watch = DriveWatch(functions, driven.allotted, {})
        self._next_s = 0.0

    def look(self) -> None:
        now = time.monotonic()
        if now < self._next_s:
            return
        self._next_s = now + EVERY_S
        counted = {one.name: one.looks.last for one in self._functions}
        self._watch.instants.append(Counters(now, counted, 0.0))
        if len(self._watch.instants) > 1:
            self._on_usage(self._watch.usage())


async def _guarded(sending: Coroutine[Any, Any, _Sent], guard: JobGuard) -> _Sent:
    """What was sent, or what its guard says before that is read."""
    watching, sent = asyncio.create_task(guard.watch()), asyncio.create_task(sending)
    try:
        await asyncio.wait((watching, sent), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():  # a guard that breaks with the end has broken
            watching.result()
        return sent.result()
    finally:
        for task in (watching, sent):
            task.cancel()
        await asyncio.gather(watching, sent, return_exceptions=True)


def _began(
    generator: Generator, offer: Offer, first: str, output: str, started_s: float
) -> tuple[float, float]:
    """When the generator began to send, in Unix time, and within how many seconds that is known.

    Raises `TrafficError` for a log that is not whole, or whose times contradict each other.
    """
    written, _, head = first.partition(" ")
    if head != ",".join(HEADER) or not output.startswith(head) or not output.endswith("\n"):
        raise TrafficError(
            f"its log is cut off ({len(output)} characters came)",
            where="the load's container",
            remedy="Kubelets keep 10 MiB of a log unless containerLogMaxSize says more: lower the "
            "load, or shorten the windows",
        )
    rows = read_records(generator, offer, b"", output, 0.0, offer.seconds + BEGIN_S)
    ended = rows.end_s[np.isfinite(rows.end_s)]
    try:
        latest_s = unix_of(written) - (float(ended.max()) if ended.size else offer.seconds)
    except ValueError:
        raise TrafficError(f"its log has no times: {first[:80]!r}") from None
    if latest_s < started_s - EARLIEST_S:
        raise TrafficError(
            f"its log's first line has a time {started_s - latest_s:.1f} s before it can have",
            where="the load's container",
            remedy="See the clock of its node",
        )
    # Where the last requests got no answer it was over later than its last record.
    begin_s = min(max(latest_s, started_s), started_s + LATEST_S)
    return begin_s, begin_s - started_s


def _notes(begun: JobPod, within_s: float, functions: Sequence[PodFunction]) -> tuple[str, ...]:
    said = [
        f"the load began at most {within_s:.1f} s earlier than is taken here (Kubernetes tells "
        f"whole seconds, the log of {BY_LOG} when it was over), by clocks of nodes that may be "
        f"{AHEAD_S:g} s off: what functions used in a window may be shifted by both"
    ]
    beside = [one.name for one in functions if one.found.node == begun.node]
    if beside:
        said.append(
            f"the Job that sent the load ran on node {begun.node}, as {', '.join(beside)} did: "
            "they disturb each other"
        )
    return tuple(said)
