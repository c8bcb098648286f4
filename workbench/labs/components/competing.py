"""Somebody who competes with the functions while load is driven: stress-ng, in a component of its
own.

It begins before the load and ends after it on every way out. What it really used is read from its
own control group; where it does not start, or ends early, the drive says so and the sample is none.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from workbench.domain.campaign import Campaign
from workbench.domain.competitors import COMPETITOR, FULL, STRESSOR, Competitor, CompetitorPlace
from workbench.domain.errors import LabError, LabGone, WorkbenchError
from workbench.domain.topology import Target
from workbench.labs.components.component import Component, Ended, Limits, Outcome
from workbench.labs.components.target import Deployed
from workbench.labs.components.wiring import SINK, SOURCE
from workbench.measuring.records import Competition, ComponentCounters, Drive, ObservedKey

STARTING_S = 10.0
"""For which it may take to use its first CPU time."""
BEGUN_S = 0.02
"""CPU seconds from which on it is at work."""
OUTLIVING_S = 120.0
"""After which it ends by itself, should nobody be left to end it; beyond the load."""
LONGEST_STEP_S = 30.0
"""For which making, starting or ending it may take."""
POLL_S = 0.02
SHARED_MEMORY_BYTES = 64 << 20
WORKERS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("--cpu-method", "loop"),
    "cache": ("--cache-no-affinity",),
    "memory": ("--vm-bytes", "256M", "--vm-method", "write64", "--vm-keep"),
    "disk": ("--hdd-bytes", "64M"),
}
STRESSORS = {"cpu": "cpu", "cache": "cache", "memory": "vm", "disk": "hdd"}
"""Of stress-ng, by what they take."""


def argv(competitor: Competitor, workers: int, seconds: float) -> tuple[str, ...]:
    """stress-ng with that many workers; it ends by itself some time after `seconds`."""
    load = ("--cpu-load", str(competitor.intensity)) if competitor.kind == "cpu" else ()
    return (
        "stress-ng",
        *(f"--{STRESSORS[competitor.kind]}", str(workers)),
        *WORKERS[competitor.kind],
        *load,
        *("--temp-path", "/tmp"),  # noqa: S108 - in the competitor's own component
        *("--timeout", f"{math.ceil(seconds + OUTLIVING_S)}s"),
    )


def quota(competitor: Competitor, cores: int) -> float:
    """Of its control group, in cores; 0 is none. CPU workers pause by themselves, in milliseconds
    and not in quota periods."""
    whole = competitor.kind == "cpu" or competitor.intensity == FULL
    return 0.0 if whole else cores * competitor.intensity / FULL


def cores_at(
    place: CompetitorPlace, pins: Mapping[str, Sequence[int]], target: Target, host_cores: int
) -> tuple[int, ...]:
    """Cores of a place beside a target; components that are pinned nowhere have all of them.

    Raises `LabError` where the place has none.

    Parameters
    ----------
    pins : cores by component; who is missing runs on any.
    """
    every = tuple(range(host_cores))
    ends = {core for name in (SOURCE, SINK) for core in pins.get(name, every)}
    if place == "neighbours":
        return tuple(sorted(ends))
    own = {core for vnf in target.vnfs for core in pins.get(vnf.name, every)}
    if place == "function":
        return tuple(sorted(own))
    others = tuple(core for core in every if core not in own | ends)
    if not others:
        raise LabError(
            f"a competitor is to run on cores that nobody else has, and this host's {host_cores} "
            "are all in use",
            remedy="Pin source, sink and functions (`managers.NAME.cpuset`), or let it compete "
            "@function or @neighbours",
        )
    return others


def asked_for(campaign: Campaign) -> tuple[Competitor, ...]:
    """Everybody who competes somewhere in a campaign."""
    values = [v for p in campaign.workload if p.key == COMPETITOR for v in p.values]
    return tuple(one for v in values if (one := Competitor.parse(str(v))) is not None)


def refuse(campaign: Campaign, lab: str) -> None:
    """Raises `LabError` where a campaign has competitors, of a lab that makes none."""
    if asked_for(campaign):
        raise LabError(
            f"the {lab} lab sets no competitor beside functions that serve others as well",
            where=f"campaign {campaign.name}",
            remedy=f"Leave {COMPETITOR} out of its workload parameters, or use the Docker lab",
        )


@dataclass
class Rival:
    """Who competes during one drive."""

    competitor: Competitor
    cores: tuple[int, ...]
    began_s: float = math.inf
    ended_s: float = math.inf
    failure: str = ""
    component: Component | None = None
    _counted: ComponentCounters = field(default_factory=lambda: ComponentCounters(0.0))
    _running: asyncio.Task[Outcome] | None = None

    async def count(self) -> ComponentCounters:
        """What its group has counted; once it has ended, what it had counted last."""
        if self.component is not None:
            with suppress(OSError, Ended):
                probe = self.component.probe
                self._counted = probe.read() if probe else await self.component.counters()
        return self._counted

    def observed(self) -> dict[ObservedKey, float]:
        """What it has used, as it was counted last."""
        key = (COMPETITOR, "competitor_cpu_s", self.competitor.text)
        return {key: self._counted.cpu_s}

    async def begin(self, component: Component, seconds: float) -> None:
        """Start it, and wait until it is at work; where it does not come to that, note why."""
        self.component, many = component, len(self.cores)
        await component.limit_cpu(quota(self.competitor, many), self.cores)
        before = (await self.count()).cpu_s
        program = await component.begin(argv(self.competitor, many, seconds))
        self._running = running = asyncio.create_task(program.finish())
        latest_s = time.monotonic() + STARTING_S
        while not running.done() and time.monotonic() < latest_s:
            if (await self.count()).cpu_s > before + BEGUN_S:
                self.began_s = time.monotonic()
                return
            await asyncio.sleep(POLL_S)
        self.failure = await self._why(component, f"it did nothing for {STARTING_S:g} s")

    async def end(self) -> None:
        """End it, and note whether it had ended before."""
        component, running = self.component, self._running
        if component is None or running is None:
            return
        if not self.failure and (running.done() or await component.death()):
            self.failure = await self._why(component, "it ended")
        self.ended_s = time.monotonic()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await component.halt()

    async def _why(self, component: Component, otherwise: str) -> str:
        if death := await component.death():
            return death.what
        running = self._running
        if running is None or not running.done():
            return otherwise
        if (error := running.exception()) is not None:
            return f"it was lost: {error}"
        outcome = running.result()
        return f"stress-ng ended with exit code {outcome.exit_code}: {outcome.said}"

    def told(self, drive: Drive) -> Drive:
        """The drive with what it was driven beside."""
        competition = Competition(
            self.competitor.text, len(self.cores), self.began_s, self.ended_s, self.failure
        )
        standing = {**drive.standing, **competition.standing(drive)}
        return replace(drive, competition=competition, standing=standing)


@dataclass
class Rivals:
    """Makes a deployed target's competitor when it is first needed, and keeps it for later drives.

    Parameters
    ----------
    speaking : turns what goes wrong below into `LabError`s.
    """

    deployed: Deployed
    speaking: Callable[[str], AbstractContextManager[None]]
    _component: Component | None = None

    @asynccontextmanager
    async def beside(
        self, competitor: Competitor | None, seconds: float
    ) -> AsyncIterator[Rival | None]:
        """Somebody competes within; nobody where `competitor` is None.

        What goes wrong with a competitor is the sample's fault and not the run's. Raises `LabGone`.
        """
        if competitor is None:
            yield None
            return
        deployed = self.deployed
        cores = cores_at(competitor.place, deployed.pins, deployed.target, deployed.host_cores)
        rival = Rival(competitor, cores)
        try:
            await self._safely(rival, self._begin(rival, seconds))
            yield rival
        finally:
            await self._safely(rival, rival.end())
            if rival.failure:
                await self._safely(rival, self.remove())

    async def _safely(self, rival: Rival, step: Awaitable[None]) -> None:
        try:
            with self.speaking(COMPETITOR):
                async with asyncio.timeout(LONGEST_STEP_S):
                    await step
        except LabGone:
            raise
        except (WorkbenchError, TimeoutError) as error:
            rival.failure = rival.failure or f"{error or 'it hangs'}"

    async def _begin(self, rival: Rival, seconds: float) -> None:
        if self._component is None:
            deployed = self.deployed
            template = deployed.campaign.template(STRESSOR)
            self._component = await deployed.maker.make(
                COMPETITOR,
                template,
                deployed.networks[:1],
                Limits(0.0, rival.cores),
                {},
                SHARED_MEMORY_BYTES,
            )
            await self._component.start()
        await rival.begin(self._component, seconds)

    async def remove(self) -> None:
        """End it; gone already is no error."""
        made, self._component = self._component, None
        if made is not None:
            await made.remove()
