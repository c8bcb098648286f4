"""`SimulatedLab`: the protocol of a lab over a simulated target and a virtual clock."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import asdict
from itertools import pairwise

import numpy as np

from workbench.descriptors.capacity import check_fits_host
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError
from workbench.domain.lab import Check, HostFacts
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.topology import Target
from workbench.labs.base import Deployment, LabCosts, LabSettings, OnUsage
from workbench.labs.simulated.noise import drift, restart
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.records import counters, request_records, to_ticks, usage_between
from workbench.labs.simulated.scene import Chance, Scene, Stretch, run, set_scene
from workbench.labs.simulated.stand_ins import describe, stand_in
from workbench.measuring.records import Drive

GENERATOR = "simulated 1"
"""The number counts changes of the simulation that change its samples."""


class SimulatedLab:
    """Targets that exist as queueing networks only, on a virtual clock.

    Parameters
    ----------
    campaign : what is to be profiled; its templates say what stands in for each function.
    settings : `argument` may hold options as text (`source_cap=0.7,noise=0`).
    options : go over the text.
    """

    name = "sim"

    def __init__(
        self,
        campaign: Campaign,
        settings: LabSettings,
        *,
        options: SimulationOptions | None = None,
    ) -> None:
        self.options = options or SimulationOptions.parse(settings.argument)
        self._campaign = campaign
        self._settings = settings
        self._clock_s = 0.0
        self._scene: Scene | None = None
        self._point: OperatingPoint | None = None
        self._visit = 0
        keys = (
            (plan.target.name, configuration.key)
            for plan in campaign.targets
            for configuration in campaign.configurations(plan)
        )
        self._blocks = {key: block for block, key in enumerate(keys)}

    @property
    def costs(self) -> LabCosts:
        options = self.options
        return LabCosts(options.deploy_s, options.allocate_s, options.drive_overhead_s)

    def clock(self) -> float:
        return self._clock_s

    async def open(self) -> HostFacts:
        """Check stand-ins and the host's size; nothing is there to be built."""
        templates = {template.name: template for template in self._campaign.templates}
        cores = self.options.host_cores
        if not self._settings.oversubscribe:
            check_fits_host(self._campaign, cores)
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

    async def deploy(self, target: Target, configuration: Configuration) -> Deployment:
        scene = set_scene(self._campaign, target, configuration, self.options)
        self._scene, self._point = scene, None
        await self._spend(self.options.deploy_s)
        closes = any(function.part.closes for function in scene.functions)
        return Deployment(
            target=target.name,
            generator=GENERATOR,
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

    async def allocate(self, configuration: Configuration) -> None:
        target = self._deployed().target
        self._scene = set_scene(self._campaign, target, configuration, self.options)
        self._point = None
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
        seconds = float(to_ticks(np.float64(seconds)))
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        stretch = await asyncio.to_thread(
            run,
            scene,
            self._campaign.load,
            point.wl,
            seconds,
            self._campaign.windows.request_timeout_s,
            self._chance(scene, point),
        )
        await self._spend(self.options.drive_overhead_s, loop.time() - asked_at)
        return await self._play(scene, stretch, seconds, on_usage)

    async def _play(
        self, scene: Scene, stretch: Stretch, seconds: float, on_usage: OnUsage
    ) -> Drive:
        """Let a simulated stretch pass on the lab's clock, its usage second by second."""
        begin_s = self._clock_s
        seen = counters(scene, stretch, begin_s, seconds)
        allotted = {component.name: component.cores for component in scene.components}
        allotted["host"] = float(self.options.host_cores)
        threads = {function.name: function.threads for function in scene.functions}
        for earlier, later in pairwise(seen):
            await self._spend(later.at_s - earlier.at_s)
            on_usage(usage_between(earlier, later, allotted, threads))
        return Drive(
            begin_s=begin_s,
            stop_s=self._clock_s,
            records=request_records(scene, stretch, begin_s, self._clock_s),
            counters=seen,
            generator=GENERATOR,
            kpi_definition="request" if stretch.due_s is None else "planned",
            connections=stretch.connections,
            allotted_cores=allotted,
            threads=threads,
        )

    async def undeploy(self) -> None:
        self._scene = self._point = None

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

    def _chance(self, scene: Scene, point: OperatingPoint) -> Chance:
        """Randomness as a function of seed, point and visit alone: a resumed campaign takes the
        samples that an uninterrupted one takes."""
        seed, options = self._settings.seed, self.options
        sampling, windows = self._campaign.sampling, self._campaign.windows
        visit_s = options.drive_overhead_s + windows.warmup_s + windows.window_s
        block = self._blocks.get((point.target, point.configuration.key), len(self._blocks))
        block += point.repetition * (len(self._blocks) + 1)
        drifted = drift(options, seed, block, visit_s * sampling.max_samples)
        started = {
            function.name: restart(
                options, seed, point.target, function.name, function.threads, point.repetition
            )
            for function in scene.functions
        }
        return Chance(
            seed,
            (
                point.target,
                point.configuration.key,
                f"{point.wl:.12g}",
                point.repetition,
                self._visit,
            ),
            {name: drifted + factor for name, factor in started.items()},
        )

    async def _spend(self, seconds: float, passed_s: float = 0.0) -> None:
        """Let lab time pass; with a pace wall time as well, of which some has passed already."""
        self._clock_s += float(to_ticks(np.float64(seconds)))
        pace = self._settings.pace
        await asyncio.sleep(max(0.0, seconds / pace - passed_s) if pace else 0.0)
