"""Reads the counters of all components of a target and of its host while load is driven."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.domain.competitors import COMPETITOR
from workbench.domain.observations import OBSERVABLES, ON_REQUEST
from workbench.domain.samples import Usage
from workbench.labs.components.competing import Rival
from workbench.labs.components.component import Component, Ended
from workbench.labs.components.wiring import SINK, SOURCE
from workbench.measuring.records import (
    ComponentCounters,
    Counters,
    Drive,
    ObservedKey,
    RequestRecords,
)
from workbench.measuring.usage import OWN, Meter
from workbench.probes import host
from workbench.probes.containers import ThreadLedger
from workbench.probes.evidence import ComponentEvidence, HostEvidence, Seen
from workbench.probes.recorders import Recorder, RecorderOf

HOST = "host"
COLLECTED = tuple(
    name
    for name, one in OBSERVABLES.items()
    if one.layer not in ("workbench", "load") and name not in ON_REQUEST
)
"""What is counted of components and hosts by probes on them."""
THREADED = (SOURCE, SINK)
"""Components whose single threads can be a limit; functions are limited by their quota."""


@dataclass
class DriveWatch:
    """Counters of one drive, instant by instant."""

    components: Sequence[Component]
    allotted: Mapping[str, float]
    threads: Mapping[str, int]
    own_cpu_s: Callable[[], float] | None = None
    """What the workbench's own processes burned; counted where they share the host."""
    recorder_of: RecorderOf | None = None
    """Records the functions besides, where a campaign asks for it."""
    rival: Rival | None = None
    """Who competes meanwhile."""
    instants: list[Counters] = field(default_factory=list)
    ledgers: dict[str, ThreadLedger] = field(
        default_factory=lambda: {name: ThreadLedger() for name in THREADED}
    )

    _evidence: dict[str, ComponentEvidence] = field(default_factory=dict)
    _host: HostEvidence = field(default_factory=HostEvidence)
    _looked: Seen = field(default_factory=dict)
    _collecting_s: float = 0.0
    _recorders: dict[str, Recorder] = field(default_factory=dict)

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[None]:
        """With a recorder of every function on this host; it ends on every way out."""
        if self.recorder_of is not None:
            for component in self._here:
                if component.probe and component.template.role == "function":
                    with suppress(OSError):  # it has ended, which its counters tell
                        recorder = self.recorder_of(component.probe.folders)
                        self._recorders[component.name] = recorder
        try:
            for recorder in self._recorders.values():
                await recorder.begin()
            yield
        finally:
            await asyncio.gather(*(recorder.end() for recorder in self._recorders.values()))

    @property
    def local(self) -> bool:
        """Whether load comes from this host; functions may be elsewhere, and tell their own."""
        return any(component.probe for component in self.components)

    @property
    def _here(self) -> list[Component]:
        return [component for component in self.components if component.probe]

    @property
    def _elsewhere(self) -> list[Component]:
        return [component for component in self.components if not component.probe]

    async def read(self) -> Counters:
        """Note the counters now. Raises `Ended`."""
        told = {COMPETITOR: await self.rival.count()} if self.rival else {}
        if self.local:
            told |= {one.name: await one.counters() for one in self._elsewhere}
            seen = self._read_here(told)
        else:
            seen = await self._ask(told)
        self.instants.append(seen)
        return seen

    def usage(self) -> Mapping[str, Usage]:
        """Usage between the last two instants."""
        earlier, later = self.instants[-2:]
        none = np.zeros(0)
        nothing = none.astype(np.int64)
        stretch = Drive(
            earlier.at_s,
            later.at_s,
            RequestRecords(none, none, none, none, nothing, nothing),
            (earlier, later),
            generator="",
            kpi_definition="none",
            connections=0,
            allotted_cores=self.allotted,
            threads=self.threads,
        )
        return Meter(stretch).usage(earlier.at_s, later.at_s)

    def look_round(self) -> None:
        """See who else uses the host, when the load begins and when it stops."""
        if self.local:
            began_s = time.thread_time()
            probes = [component.probe for component in self.components]
            self._looked = self._host.look_round([probe for probe in probes if probe])
            self._collecting_s += time.thread_time() - began_s

    def standing(self) -> dict[ObservedKey, float]:
        """What is known of the whole drive: who else used the host, what collecting cost."""
        found = {(HOST, *key): value for key, value in self._looked.items()}
        seconds = self.instants[-1].at_s - self.instants[0].at_s if self.instants else 0.0
        if self.local and seconds > 0:
            found[OWN, "collecting_cores", ""] = self._collecting_s / seconds
        return found

    def absent(self) -> dict[tuple[str, str], str]:
        """What could not be collected, by component and name, and why."""
        if not self.local:
            return {(HOST, name): "the engine runs on another host" for name in COLLECTED}
        by_component = {name: one.absent for name, one in self._evidence.items()}
        for name, recorder in self._recorders.items():
            by_component[name] = {**by_component.get(name, {}), **recorder.absent}
        by_component[HOST] = self._host.absent
        for component in self._elsewhere:
            by_component[component.name] = dict.fromkeys(COLLECTED, "it runs on another host")
        return {
            (component, name): why
            for component, absent in by_component.items()
            for name, why in absent.items()
        }

    def counters(self) -> tuple[Counters, ...]:
        """All instants, the threads of source and sink in one order throughout."""
        columns = {name: ledger.columns() for name, ledger in self.ledgers.items()}
        at_s = np.array([instant.at_s for instant in self.instants])
        counted = {
            (name, *key): counts
            for name, recorder in self._recorders.items()
            for key, counts in recorder.at(at_s).items()
        }
        return tuple(
            replace(
                instant,
                components={
                    name: replace(own, threads_cpu_s=columns[name][i]) if columns.get(name) else own
                    for name, own in instant.components.items()
                },
                observed={
                    **instant.observed,
                    **{key: float(counts[i]) for key, counts in counted.items()},
                },
            )
            for i, instant in enumerate(self.instants)
        )

    def _read_here(self, told: Mapping[str, ComponentCounters]) -> Counters:
        at_s = time.monotonic()
        counted = dict(told)
        for component in self._here:
            assert component.probe is not None
            try:
                counted[component.name] = component.probe.read()
            except OSError as error:
                raise Ended(component) from error
        if self.own_cpu_s is not None:
            counted[OWN] = ComponentCounters(self.own_cpu_s())
        seen = self._counters(
            at_s, counted, host.read_busy_s(), host.read_softirq_s(), host.read_conntrack()
        )
        rival = self.rival.observed() if self.rival else {}
        return replace(seen, observed={**self._observe(), **rival})

    def _observe(self) -> dict[ObservedKey, float]:
        """Read the evidence of every component and the host, and note what that cost."""
        began_s = time.thread_time()
        observed: dict[ObservedKey, float] = {}
        for component in self._here:
            assert component.probe is not None
            name = component.name
            evidence = self._evidence.setdefault(name, ComponentEvidence(component.probe))
            try:
                threads = component.probe.read_threads() if name in self.ledgers else None
            except OSError as error:
                raise Ended(component) from error
            if threads is not None:
                self.ledgers[name].note({one: count.cpu_s for one, count in threads.items()})
            observed |= {(name, *key): value for key, value in evidence.read(threads).items()}
        observed |= {(HOST, *key): value for key, value in self._host.read().items()}
        self._collecting_s += time.thread_time() - began_s
        return observed

    async def _ask(self, told: Mapping[str, ComponentCounters]) -> Counters:
        at_s = time.monotonic()
        answers = await asyncio.gather(*(component.counters() for component in self.components))
        counted = {**told, **dict(zip((c.name for c in self.components), answers, strict=True))}
        # A container's /proc/stat is its host's; the engine itself does not tell idle time.
        sink = next(c for c in self.components if c.name == SINK)
        uptime, _, stat = (await sink.run(("cat", "/proc/uptime", "/proc/stat"))).stdout.partition(
            "\n"
        )
        return self._counters(
            at_s,
            counted,
            host.parse_busy_s(stat, float(uptime.split()[0])),
            host.parse_softirq_s(stat),
        )

    def _counters(
        self,
        at_s: float,
        counted: Mapping[str, ComponentCounters],
        busy_s: float,
        softirq_s: float,
        conntrack: tuple[int, int] = (0, 0),
    ) -> Counters:
        # Uptime and idle time come in steps of their own; an idle host would seem to go back.
        least_s = self.instants[-1].host_busy_s if self.instants else busy_s
        return Counters(at_s, counted, max(busy_s, least_s), *conntrack, softirq_s)
