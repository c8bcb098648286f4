"""Reads the counters of all containers of a target and of its host while load is driven."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import aiodocker
import numpy as np

from workbench.domain.errors import LabError
from workbench.domain.samples import Usage
from workbench.labs.docker.containers import Component
from workbench.labs.docker.wiring import SINK, SOURCE
from workbench.measuring.records import ComponentCounters, Counters, Drive, RequestRecords
from workbench.measuring.usage import OWN, Meter
from workbench.probes import host
from workbench.probes.containers import ThreadLedger, from_engine

HOST = "host"
THREADED = (SOURCE, SINK)
"""Components whose single threads can be a limit; functions are limited by their quota."""


@dataclass
class Watch:
    """Counters of one drive, instant by instant."""

    components: Sequence[Component]
    allotted: Mapping[str, float]
    threads: Mapping[str, int]
    own_cpu_s: Callable[[], float] | None = None
    """What the workbench's own processes burned; counted where they share the host."""
    instants: list[Counters] = field(default_factory=list)
    ledgers: dict[str, ThreadLedger] = field(
        default_factory=lambda: {name: ThreadLedger() for name in THREADED}
    )

    @property
    def local(self) -> bool:
        """Whether the engine runs its containers on this host."""
        return all(component.probe for component in self.components)

    async def read(self) -> Counters:
        """Note the counters now. Raises `LabError` for a container that has ended."""
        seen = self._read_here() if self.local else await self._ask_engine()
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

    def counters(self) -> tuple[Counters, ...]:
        """All instants, the threads of source and sink in one order throughout."""
        columns = {name: ledger.columns() for name, ledger in self.ledgers.items()}
        return tuple(
            replace(
                instant,
                components={
                    name: replace(counted, threads_cpu_s=columns[name][i])
                    if columns.get(name)
                    else counted
                    for name, counted in instant.components.items()
                },
            )
            for i, instant in enumerate(self.instants)
        )

    def _read_here(self) -> Counters:
        at_s = time.monotonic()
        counted: dict[str, ComponentCounters] = {}
        for component in self.components:
            assert component.probe is not None
            try:
                counted[component.name] = component.probe.read()
                if component.name in self.ledgers:
                    self.ledgers[component.name].note(component.probe.read_threads())
            except OSError as error:
                raise Ended(component) from error
        if self.own_cpu_s is not None:
            counted[OWN] = ComponentCounters(self.own_cpu_s())
        return self._counters(
            at_s, counted, host.read_busy_s(), host.read_softirq_s(), host.read_conntrack()
        )

    async def _ask_engine(self) -> Counters:
        at_s = time.monotonic()
        answers = await asyncio.gather(*map(_statistics, self.components))
        counted = dict(zip((c.name for c in self.components), answers, strict=True))
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


class Ended(LabError):
    """A container's counters are gone; `Component.death` knows why."""

    def __init__(self, component: Component) -> None:
        super().__init__("it ended while load was driven", where=f"container {component.name}")
        self.component = component


async def _statistics(component: Component) -> ComponentCounters:
    try:
        stats = await component.container.docker._query_json(
            f"containers/{component.container.id}/stats",
            params={"stream": "false", "one-shot": "true"},
        )
    except aiodocker.DockerError as error:
        if error.status in (404, 409):
            raise Ended(component) from error
        raise
    if not stats.get("cpu_stats", {}).get("system_cpu_usage"):
        # The engine answers for a stopped container too, with nothing in it.
        raise Ended(component)
    return from_engine(stats)
