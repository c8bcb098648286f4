"""`SimulatedLab`: the protocol of a lab over a simulated target and a virtual clock."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations, pairwise, product

import numpy as np

from workbench.descriptors.capacity import SIMULATED_HOST, check_fits_host
from workbench.domain import kpis, resources
from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.errors import LabError
from workbench.domain.lab import Check, HostFacts
from workbench.domain.logs import ComponentLog, WrittenLine
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.resources import VCPU
from workbench.domain.topology import Placement, Target
from workbench.labs.base import DeployedTarget, LabCosts, LabSettings, OnUsage
from workbench.labs.components.preflight import wanted_kpis
from workbench.labs.simulated import packet_flow, players, rivals
from workbench.labs.simulated.component_models import describe, stand_in
from workbench.labs.simulated.noise import HostDrift, pass_step, restart, stream
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.packet_flow import PacketFlow
from workbench.labs.simulated.records import (
    HOST_IDLE_CORES,
    counters,
    request_records,
    to_ticks,
    usage_between,
)
from workbench.labs.simulated.scene import Scene, set_scene
from workbench.labs.simulated.stretch import Chance, LoadStretch, run
from workbench.measuring.records import Counters, Drive, RequestRecords

GENERATOR = "simulated 2"
"""The number counts changes of the simulation that change its samples."""
SHARING_GENERATOR = "simulated 3"
"""Where functions are pinned to the same cores, which wait for each other since; of all others the
samples are the same, and so is the name."""


def generator_of(campaign: Campaign) -> str:
    """The definition of a campaign's samples: one for all of a session, whatever is tried in it."""
    pinned = [frozenset(one.cores) for one in campaign.managers if one.cpuset]
    shared = any(one & other for one, other in combinations(pinned, 2))
    return SHARING_GENERATOR if shared else GENERATOR


class Schedule:
    """The nominal instants of a campaign's samples, which drift follows instead of the clock.

    Blocks of all targets lie one after the other, each as long as the longest target takes. Within
    its block a point has a place of its own, drawn from the seed and the point, not the place at
    which it was asked for: only so does a resumed campaign drift like an uninterrupted one.
    """

    def __init__(self, campaign: Campaign, options: SimulationOptions) -> None:
        windows = campaign.windows
        self._visit_s = options.drive_overhead_s + windows.warmup_s + windows.window_s
        self._targets = {plan.target.name: index for index, plan in enumerate(campaign.targets)}
        most = max((len(campaign.configurations(plan)) for plan in campaign.targets), default=1)
        self._block_s = options.deploy_s + most * (
            options.allocate_s + campaign.sampling.max_samples * self._visit_s
        )

    def at(self, target: str, block: int, place: float, visit: int) -> float:
        """Nominal lab seconds of a drive; `place` in [0, 1) is that of its point in the block."""
        blocks = block * len(self._targets) + self._targets.get(target, 0)
        return (blocks + place) * self._block_s + visit * self._visit_s


def _refuse_unsimulated(campaign: Campaign) -> None:
    """Raises `LabError` where memory, or another resource that is not simulated, is varied or
    limited: here no amount of it would ever be too little, and an answer would recommend the least.
    """
    unable = [r for r in resources.known().values() if r is not VCPU and r.simulated_s is None]
    for plan, resource in product(campaign.targets, unable):
        for configuration in campaign.configurations(plan):
            limited = [
                vnf.name
                for vnf in plan.target.vnfs
                if configuration.resource(f"{vnf.name}.{resource.key}")
            ]
            if limited:
                raise LabError(
                    f"{resource.name} is not simulated: nothing would show what too little of it "
                    f"does to {', '.join(limited)}",
                    where=f"campaign {campaign.name}, {plan.target.name}",
                    remedy=f"Leave {resource.name} out of its resource parameters and flavors, or "
                    "profile it on the Docker lab (--lab docker)",
                )


class SimulatedLab:
    """Targets that exist as queueing networks only, on a virtual clock.

    Parameters
    ----------
    campaign : what is to be profiled; its templates say what stands in for each function.
    settings : `argument` may hold options as text (`source_cap=0.7,noise=0`).
    options : go over the text.
    """

    name = "sim"
    placements: tuple[Placement, ...] = ("inline",)

    def __init__(
        self,
        campaign: Campaign,
        settings: LabSettings,
        *,
        options: SimulationOptions | None = None,
    ) -> None:
        self.options = options or SimulationOptions.parse(settings.argument)
        self._campaign = campaign
        self.definition = generator_of(campaign)
        self._settings = settings
        self._clock_s = 0.0
        self._scene: Scene | None = None
        self._point: OperatingPoint | None = None
        self._visit = 0
        self._block = 0
        self._degraded = False
        self._written: dict[str, list[WrittenLine]] = {}
        self._bypasses: dict[OperatingPoint, int] = {}
        self._drift = HostDrift(self.options, settings.seed)
        self._schedule = Schedule(campaign, self.options)

    @property
    def costs(self) -> LabCosts:
        options = self.options
        return LabCosts(options.deploy_s, options.allocate_s, options.drive_overhead_s)

    def clock(self) -> float:
        return self._clock_s

    async def open(self) -> HostFacts:
        """Check stand-ins and the host's size; nothing is there to be built."""
        _refuse_unsimulated(self._campaign)
        templates = {template.name: template for template in self._campaign.templates}
        cores = self.options.host_cores
        if not self._settings.oversubscribe:
            check_fits_host(self._campaign, cores, SIMULATED_HOST)
        described = {name: describe(stand_in(template)) for name, template in templates.items()}
        # Options shape the source and the sink: a session never mixes two sets of them.
        options = repr(sorted(asdict(self.options).items()))
        return HostFacts(
            lab=self.name,
            cores=cores,
            memory_bytes=8 * 2**30,
            kernel="simulated",
            cpu_model="simulated",
            cgroup="none",
            engine="none",
            image_digests={
                name: "sim:" + hashlib.blake2b(f"{text};{options}".encode()).hexdigest()[:32]
                for name, text in described.items()
            },
            details={"seed": str(self._settings.seed), "options": options},
        )

    async def deploy(
        self, target: Target, configuration: Configuration, block: int = 0
    ) -> DeployedTarget:
        scene = self._scene_of(target, configuration)
        self._scene, self._point, self._block = scene, None, block
        self._degraded = False
        self._introduce(scene)
        await self._spend(self.options.deploy_s)
        if self._campaign.load.unit == "packets":
            path = f"passes packets of {scene.answer_bytes:g} bytes on"
            return DeployedTarget(target.name, self.definition, False, path, self._warnings())
        closes = any(function.part.closes for function in scene.functions)
        return DeployedTarget(
            target=target.name,
            generator=self.definition,
            keep_alive=not closes,
            path=f"answers 200 with {scene.answer_bytes:g} bytes and "
            + ("closes the connection" if closes else "keeps the connection open"),
            warnings=self._warnings(),
        )

    def _warnings(self) -> tuple[str, ...]:
        caps = {"source": self.options.source_cap, "sink": self.options.sink_cap}
        return tuple(
            f"the {name} is capped at {cap:.0%} of what the functions carry"
            for name, cap in caps.items()
            if cap
        )

    def _scene_of(self, target: Target, configuration: Configuration) -> Scene:
        return rivals.beside(set_scene(self._campaign, target, configuration, self.options))

    async def allocate(self, configuration: Configuration) -> None:
        target = self._deployed().target
        self._scene = self._scene_of(target, configuration)
        self._point = None
        self._introduce(self._scene)
        await self._spend(self.options.allocate_s)

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        scene = self._deployed()
        if point.target != scene.target.name or point.configuration != scene.configuration:
            raise LabError(
                f"{scene.target.name} at {scene.configuration.key} is deployed",
                where=f"{point.target} at {point.configuration.key}",
                remedy="Deploy and allocate before driving",
            )
        if point.wl <= 0.0 or seconds <= 0.0:
            raise LabError(
                f"no load can be driven at wl {point.wl:g} for {seconds:g} s",
                where=f"{point.target} at {point.configuration.key}",
                remedy="Give both above zero",
            )
        # A further drive at the same point must not repeat the first one's luck.
        self._visit = self._visit + 1 if point == self._point else 0
        self._point = point
        chance = self._chance(scene, point, "load", self._visit)
        before, self._degraded = self._degraded, self._stays_degraded(scene, point.wl)
        if self._degraded != before:
            self._say_degraded(scene)
        return await self._drive(scene, point.wl, seconds, chance, on_usage)

    def _stays_degraded(self, scene: Scene, wl: float) -> bool:
        """Whether a function that decays under overload will be down from this drive on."""
        remembering = [
            (offered, component.part.recovers_below)
            for offered, component in zip(
                scene.loads(self._campaign.load, wl), scene.components, strict=True
            )
            if component.part.recovers_below
        ]
        if any(offered > 1.0 for offered, _ in remembering):
            return True
        return self._degraded and any(offered >= below for offered, below in remembering)

    async def _drive(
        self, scene: Scene, wl: float, seconds: float, chance: Chance, on_usage: OnUsage
    ) -> Drive:
        seconds = float(to_ticks(np.float64(seconds)))
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        load, rate = players.offered(self._campaign.load, wl)
        if scene.functions:
            scene = rivals.sharing(scene, self._campaign.cores_of(scene.target), load, rate)
        if self._campaign.load.unit == "packets":
            flow = await asyncio.to_thread(packet_flow.send, scene, load, wl, seconds, chance)
            await self._spend(self.options.drive_overhead_s, loop.time() - asked_at)
            return rivals.told(scene, await self._play_packets(scene, flow, seconds, on_usage))
        stretch = await asyncio.to_thread(
            run,
            scene,
            load,
            rate,
            seconds,
            self._campaign.windows.request_timeout_s,
            chance,
        )
        await self._spend(self.options.drive_overhead_s, loop.time() - asked_at)
        return rivals.told(scene, await self._play(scene, stretch, seconds, on_usage, wl))

    async def _play(
        self, scene: Scene, stretch: LoadStretch, seconds: float, on_usage: OnUsage, wl: float
    ) -> Drive:
        """Let a simulated stretch pass on the lab's clock, its usage second by second."""
        begin_s = self._clock_s
        seen = rivals.counted(scene, counters(scene, stretch, begin_s, seconds))
        allotted, threads = await self._pass(scene, seen, on_usage)
        records, streams = request_records(scene, stretch, begin_s, self._clock_s), False
        if self._campaign.load.unit == "streams":
            records, streams = players.played(records, round(wl)), True
        return Drive(
            begin_s=begin_s,
            stop_s=self._clock_s,
            records=records,
            counters=seen,
            generator=self.definition,
            kpi_definition="request" if stretch.due_s is None or streams else "planned",
            connections=stretch.connections,
            allotted_cores=allotted,
            threads=threads,
            splits=scene.target.splits if scene.functions else (),
        )

    async def _play_packets(
        self, scene: Scene, flow: PacketFlow, seconds: float, on_usage: OnUsage
    ) -> Drive:
        begin_s, nothing = self._clock_s, np.zeros(0)
        seen = packet_flow.counters(scene, flow, begin_s, seconds, HOST_IDLE_CORES)
        seen = rivals.counted(scene, seen)
        shape = self._campaign.load.shaped(scene.configuration)
        timed = any(kpis.of(k).kind == "response_time" for k in wanted_kpis(self._campaign))
        counted = packet_flow.counts(
            flow, begin_s, seconds, cycle_s=shape.cycle_s if shape else 0.0, timed=timed
        )
        allotted, threads = await self._pass(scene, seen, on_usage)
        none = nothing.astype(np.int64)
        return Drive(
            begin_s=begin_s,
            stop_s=self._clock_s,
            records=RequestRecords(nothing, nothing, nothing, nothing, none, none),
            counters=seen,
            generator=self.definition,
            kpi_definition="one-way" if timed else "none",
            connections=0,
            allotted_cores=allotted,
            threads=threads,
            packets=counted,
            routers=tuple(function.name for function in scene.functions),
        )

    async def _pass(
        self, scene: Scene, seen: Sequence[Counters], on_usage: OnUsage
    ) -> tuple[dict[str, float], dict[str, int]]:
        """Let the time of these instants pass; cores and threads of the components."""
        allotted = {component.name: component.cores for component in scene.components}
        allotted |= {"host": float(self.options.host_cores), **rivals.allotted(scene)}
        threads = {function.name: function.threads for function in scene.functions}
        for earlier, later in pairwise(seen):
            await self._spend(later.at_s - earlier.at_s)
            on_usage(usage_between(earlier, later, allotted, threads))
        return allotted, threads

    async def drive_bypass(
        self, point: OperatingPoint, seconds: float, on_usage: OnUsage
    ) -> Drive | None:
        if self._campaign.load.unit != "requests":
            return None  # as in the Docker lab, whose networks only the routers join
        scene = self._deployed().bypass
        self._bypasses[point] = visit = self._bypasses.get(point, -1) + 1
        chance = self._chance(scene, point, "bypass", visit)
        return await self._drive(scene, point.wl, seconds, chance, on_usage)

    async def written(self) -> tuple[ComponentLog, ...]:
        written, self._written = self._written, {}
        return tuple(ComponentLog.of(name, lines) for name, lines in written.items())

    def _introduce(self, scene: Scene) -> None:
        """Each function says what it is, so that nobody takes it for the program it stands for."""
        for function in scene.functions:
            self._write(
                function.name,
                f"simulated: a queue with {counted(function.threads, 'worker')} on "
                f"{function.cores:g} vCPU, no program runs",
            )

    def _say_degraded(self, scene: Scene) -> None:
        words = "warning: decayed in overload" if self._degraded else "recovered from overload"
        for function in scene.functions:
            if function.part.recovers_below:
                self._write(function.name, f"simulated: {words}")

    def _write(self, component: str, text: str) -> None:
        self._written.setdefault(component, []).append(WrittenLine(text))

    async def undeploy(self) -> None:
        if self._scene is not None:
            await self._spend(self.options.undeploy_s)
        self._scene = self._point = None
        self._written = {}

    async def close(self) -> None:
        await self.undeploy()

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        return (Check("simulated lab", "ok", f"always there (numpy {np.__version__})"),)

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        """Nothing: what is simulated leaves no strays."""
        del alive
        return ()

    def _deployed(self) -> Scene:
        if self._scene is None:
            raise LabError("no target is deployed", where="sim", remedy="Deploy one first")
        return self._scene

    def _chance(self, scene: Scene, point: OperatingPoint, what: str, visit: int) -> Chance:
        """Randomness as a function of seed, block, point and visit alone: a resumed campaign takes
        the samples that an uninterrupted one takes."""
        seed, options, block = self._settings.seed, self.options, self._block
        words = (
            point.target,
            point.configuration.key,
            f"{point.wl:.12g}",
            point.repetition,
            block,
        )
        place = float(stream(seed, "schedule", *words).random())
        slow = self._drift.at(self._schedule.at(point.target, block, place, visit))
        slow += pass_step(options, seed, block)
        return Chance(
            seed,
            (what, *words, visit),
            {
                function.name: slow
                + restart(options, seed, point.target, function.name, function.threads, block)
                for function in scene.functions
            },
            cold=visit == 0,
            degraded=self._degraded,
        )

    async def _spend(self, seconds: float, passed_s: float = 0.0) -> None:
        """Let lab time pass; with a pace wall time as well, of which some has passed already."""
        self._clock_s += float(to_ticks(np.float64(seconds)))
        pace = self._settings.pace
        await asyncio.sleep(max(0.0, seconds / pace - passed_s) if pace else 0.0)
