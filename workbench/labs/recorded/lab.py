"""`RecordedLab`: a `RecallingLab` that answers from a session, a bundle or a CSV file.

Samplers ask for loads that were recorded, and for nothing else (`loads`). What people ask for off
these is answered between its neighbours only where that was asked for, too (`interpolate=1`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError
from workbench.domain.lab import ASSUMED, Check, HostFacts
from workbench.domain.logs import ComponentLog
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Measurement
from workbench.domain.topology import Placement, Target
from workbench.labs.base import DeployedTarget, LabCosts, LabSettings
from workbench.labs.recorded.recall import SAME_WL, RecordedMeasurements
from workbench.labs.recorded.recording import RecordedData, read_recording
from workbench.labs.recorded_options import RecordedOptions
from workbench.measuring.judging import Terms, first_drive_s


class RecordedLab:
    """Answers operating points from what was measured before.

    Its clock counts the lab seconds that the recorded visits cost. Nothing is deployed; allocation
    is part of a visit's cost and free here.
    """

    name = "recorded"
    placements: tuple[Placement, ...] = ("inline",)

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        if not settings.argument:
            raise LabError(
                "no recording is named", remedy="Write --lab recorded:NAME, see workbench ls"
            )
        self._campaign = campaign
        self._options = RecordedOptions.parse(settings.argument)
        self._path = Path(self._options.name)
        self._clock = 0.0
        self._written: tuple[ComponentLog, ...] = ()

    @cached_property
    def _recording(self) -> RecordedData:
        return read_recording(self._path, self._campaign, self._options.spread)

    @cached_property
    def _memory(self) -> RecordedMeasurements:
        return RecordedMeasurements.of(
            self._recording.measurements,
            self._campaign.load.key,
            interpolates=self._options.interpolate,
        )

    @cached_property
    def costs(self) -> LabCosts:
        """What deployments and visits cost in the recording, which is read for it if need be."""
        terms = Terms(
            load=self._campaign.load,
            windows=self._campaign.windows,
            sla=self._campaign.sla,
            kpi=self._campaign.kpi,
        )
        visits = [m.sample for m in self._recording.measurements]
        beyond = (visit.lab_s - first_drive_s(visit.point, terms) for visit in visits)
        return LabCosts(
            deploy_s=self._recording.deploy_s,
            allocate_s=0.0,
            drive_overhead_s=max(0.0, fmean(beyond)) if visits else 0.0,
        )

    def clock(self) -> float:
        return self._clock

    async def open(self) -> HostFacts:
        """Read the recording. Raises `LabError` if nothing in it is of this campaign."""
        recording = await asyncio.to_thread(lambda: self._recording)
        wanted = [
            OperatingPoint(plan.target.name, configuration, plan.primary.low)
            for plan in self._campaign.targets
            for configuration in self._campaign.configurations(plan)
        ]
        missing = [point for point in wanted if not self._memory.knows(point)]
        if len(missing) == len(wanted):
            raise LabError(
                f"holds no sample of campaign {self._campaign.name}'s configurations under load "
                f"model {self._campaign.load.key}; it has {_contents(recording)}",
                where=str(self._path),
                remedy="Choose another recording, or the campaign that it was made by",
            )
        details = {**recording.host.details, "recording": str(self._path)}
        if recording.assumed:
            details[ASSUMED] = recording.assumed
        if missing:
            names = "; ".join(f"{p.target} {p.configuration.key}" for p in missing)
            details["not_recorded"] = names
        return replace(recording.host, details=details)

    async def deploy(
        self,
        target: Target,
        configuration: Configuration,  # noqa: ARG002 - Lab
        block: int = 0,  # noqa: ARG002 - Lab
    ) -> DeployedTarget:
        """Charge what the deployment cost then, and say what its pre-flight saw."""
        self._clock += self._recording.deploy_s
        self._written = self._recording.written.get((target.name, ""), ())
        seen = self._recording.deployments.get(target.name)
        if seen is None:
            return DeployedTarget(target.name, "recorded", True, f"answers come from {self._path}")
        return DeployedTarget(
            target.name, seen.generator, seen.keep_alive, f"recorded: {seen.path}"
        )

    async def allocate(self, configuration: Configuration) -> None:
        """Nothing to do: a recorded visit includes its allocation."""

    def loads(self, target: str) -> Mapping[Configuration, tuple[float, ...]]:
        """The loads in the campaign's range at which each configuration was recorded, rising."""
        plan = self._campaign.target_plan(target)
        low, high = plan.primary.low * (1 - SAME_WL), plan.primary.high * (1 + SAME_WL)
        return {
            configuration: tuple(
                wl for wl in self._memory.loads(target, configuration) if low <= wl <= high
            )
            for configuration in self._campaign.configurations(plan)
        }

    @property
    def repetitions(self) -> int:
        """How often the most often repeated point was recorded."""
        return self._memory.repetitions

    async def recall(self, point: OperatingPoint) -> Measurement:
        measurement = self._memory.recall(point)
        self._clock += measurement.sample.lab_s
        # What was made of neighbours has an id of its own, by which nobody wrote anything.
        self._written = self._recording.written.get((point.target, measurement.sample.id), ())
        return measurement

    async def written(self) -> tuple[ComponentLog, ...]:
        """What was written then, while the target came up or the sample was taken."""
        written, self._written = self._written, ()
        return written

    async def undeploy(self) -> None:
        """Nothing is deployed."""

    async def close(self) -> None:
        """Nothing is held: the recording was closed when it was read."""

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        """The recorded lab needs nothing of the host."""
        return ()

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:  # noqa: ARG004 - LabDoctor
        """The recorded lab leaves nothing behind."""
        return ()


def _contents(recording: RecordedData) -> str:
    points = [m.sample.point for m in recording.measurements]
    places = dict.fromkeys(f"{p.target} at {p.configuration.key}" for p in points)
    models = sorted({m.sample.load_model for m in recording.measurements})
    shown = "; ".join(list(places)[:5]) + (" ..." if len(places) > 5 else "")
    return f"{shown} ({', '.join(models)})" if places else "no samples"
