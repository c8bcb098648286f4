"""A recording, whatever it is kept in: session file, bundle or CSV."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError
from workbench.domain.events import (
    Fact,
    LogWritten,
    RunFinished,
    RunStarted,
    SampleTaken,
    SessionCreated,
    TargetDeployed,
    TrialsFinished,
    TrialsStarted,
)
from workbench.domain.lab import HostFacts
from workbench.domain.logs import ComponentLog
from workbench.domain.samples import Measurement


@dataclass(frozen=True)
class RecordedData:
    """What a recorded lab knows.

    Attributes
    ----------
    deployments : what the pre-flight saw, by target.
    deploy_s : lab seconds that one deployment cost on average.
    written : what components wrote, by target and sample; of no sample: while the target came up.
    assumed : what its figures rest on that nobody measured, as a sentence; empty if nothing.
    """

    measurements: tuple[Measurement, ...]
    host: HostFacts
    deployments: Mapping[str, TargetDeployed]
    deploy_s: float
    written: Mapping[tuple[str, str], tuple[ComponentLog, ...]] = field(default_factory=dict)
    assumed: str = ""


def read_recording(path: Path, campaign: Campaign, spread: float | None = None) -> RecordedData:
    """Read a recording; `spread` as in `read_table`. Blocks.

    Raises `SessionError`, or `DescriptorError` for a wrong CSV.
    """
    if path.suffix.lower() == ".csv":
        return _table(path, campaign, spread)
    return _session(path)


def _session(path: Path) -> RecordedData:
    from workbench.store.recordings import read_whole

    events, measurements = read_whole(path)
    facts = [event.fact for event in events]
    created = next((fact for fact in facts if isinstance(fact, SessionCreated)), None)
    if created is None:
        raise LabError("holds no events", where=str(path), remedy="Choose another recording")
    deployed = [fact for fact in facts if isinstance(fact, TargetDeployed)]
    of_campaign = sum(isinstance(fact, TargetDeployed) for fact in _of_the_campaign(facts))
    runs = [fact for fact in facts if isinstance(fact, RunFinished)]
    visits_s = sum(m.sample.lab_s for m in measurements if m.sample.purpose == "profile")
    beyond_s = runs[-1].measured_s - visits_s if runs else 0.0
    return RecordedData(
        measurements,
        created.host,
        {fact.target: fact for fact in deployed},
        max(0.0, beyond_s / of_campaign) if of_campaign else 0.0,
        _written(facts),
    )


def _written(facts: Sequence[Fact]) -> dict[tuple[str, str], tuple[ComponentLog, ...]]:
    """Of the deployments of a target, what was written during the first that came up."""
    written: dict[tuple[str, str], list[ComponentLog]] = defaultdict(list)
    up: set[str] = set()
    measured: set[str] = set()
    for fact in facts:
        match fact:
            case TargetDeployed(target=target):
                up.add(target)
            case SampleTaken(sample=sample):
                measured.add(sample.point.target)
            case LogWritten(target=target, log=log, sample=sample):
                if sample or (target in up and target not in measured):
                    written[target, sample].append(log)
    return {place: tuple(logs) for place, logs in written.items()}


def _of_the_campaign(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Without what was measured after it: that is not in what its run says it cost."""
    on_trial = False
    for fact in facts:
        on_trial = isinstance(fact, TrialsStarted) or (
            on_trial and not isinstance(fact, TrialsFinished | RunStarted)
        )
        if not on_trial:
            yield fact


def _table(path: Path, campaign: Campaign, spread: float | None) -> RecordedData:
    from workbench.labs.recorded.table import read_table

    host = HostFacts("recorded", 0, 0, "unknown", "unknown", "none", "none", {}, {})
    table = read_table(path, campaign, spread)
    measurements = tuple(Measurement(sample, (), ()) for sample in table.samples)
    return RecordedData(measurements, host, {}, 0.0, assumed=table.says)
