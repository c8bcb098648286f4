"""`workbench why`: the cause of what an operating point shows, from the evidence of its sample."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from workbench import plugins
from workbench.descriptors.sla_text import parse_point
from workbench.domain.campaign import Campaign
from workbench.domain.errors import PluginError, SessionError, UsageError
from workbench.domain.parameters import ParameterValue, PrimaryWorkload
from workbench.domain.questions import Diagnose, Diagnosed
from workbench.domain.samples import Measurement
from workbench.domain.topology import Target
from workbench.engine.answers.chain_profiles import chain_of
from workbench.engine.learning.scoring import Say
from workbench.engine.sessions.finishing import to_the_end
from workbench.engine.sessions.library import Library
from workbench.exports.base import measurement_pages
from workbench.paths import Workspace

if TYPE_CHECKING:  # their imports take time, and most questions are about something else
    from workbench.diagnosis.base import Rule
    from workbench.diagnosis.explaining import Known
    from workbench.diagnosis.readings import Reading

    _Candidate: TypeAlias = tuple[Known, PrimaryWorkload | None]
    """A target with its samples, and what its load is called."""

NEAR = 1.5
"""Factor up to which a sample counts as one at the load that is asked about."""


async def diagnose(library: Library, question: Diagnose, *, say: Say = lambda _: None) -> Diagnosed:
    """Explain one sample: the one that is named, else the slowest beside its functions alone, of
    the chain that is named or of all.

    Raises
    ------
    SessionError
        If the session cannot be read, or holds no campaign.
    UsageError
        If there is no such chain or sample, or nothing was measured near the load.
    """
    from workbench.diagnosis.experiments import experiments
    from workbench.diagnosis.explaining import diagnose as explain

    candidates = await to_the_end(_known(library, question, say))
    rules, notes = load_rules()
    known, seen = await asyncio.to_thread(_chosen, candidates, question)
    say(f"{known.target.name}: {len(rules)} rules on the evidence of {seen.sample.id}")
    found = await asyncio.to_thread(explain, known, seen, rules)
    notes += [f"rule {cause!r} failed: {why}" for cause, why in found.failed.items()]
    async with library.borrow(question.session) as channel:
        found = replace(found, experiments=experiments(found, channel.view))
    return Diagnosed(found, tuple(notes))


def load_rules() -> tuple[list[Rule], list[str]]:
    """Every rule that is registered, and a sentence for each that does not load or is none."""
    from workbench.diagnosis.base import Rule

    parts, errors = plugins.load_all("diagnosis")
    broken = [str(error) for error in errors]
    rules = []
    for name, part in parts.items():
        if isinstance(part, Rule):
            rules.append(part)
        else:
            broken.append(str(PluginError(f"{name!r} is no rule", where="workbench.diagnosis")))
    return rules, broken


async def _known(library: Library, question: Diagnose, say: Say) -> list[_Candidate]:
    """What is known of the target that is asked about, or of each chain where none is named."""
    from workbench.diagnosis.gathering import MOST_SAMPLES, beside, known_of

    async with library.borrow(question.session) as channel:
        campaign = channel.view.campaign
        if campaign is None:
            raise SessionError("does not hold its campaign", where=question.session)
        measured = {one.target for one in channel.view.configurations if one.taken}
        targets = await asyncio.to_thread(_asked, campaign, question, measured, library.workspace)
        alone = (one.name for target in targets for one in beside(campaign, target).values())
        wanted = {*(target.name for target in targets), *alone}
        say(f"{', '.join(t.name for t in targets)}: reading the evidence of {question.session}")
        readings: dict[str, list[Reading]] = {name: [] for name in wanted}
        async for page in measurement_pages(channel.file):
            for reading in await asyncio.to_thread(_readings, page, wanted):
                found = readings[reading.sample.point.target]
                if len(found) < MOST_SAMPLES:
                    found.append(reading)
    primaries = {plan.target.name: plan.primary for plan in campaign.targets}
    return [(known_of(campaign, t, readings), primaries.get(t.name)) for t in targets]


def _asked(
    campaign: Campaign, question: Diagnose, measured: Collection[str], workspace: Workspace
) -> list[Target]:
    """The target that is named; else the chains that were measured, else all that was."""
    taken = [plan.target for plan in campaign.targets if plan.target.name in measured]
    if question.chain is not None or not taken:
        return [chain_of(campaign, question.chain, workspace)]
    if question.sample:
        return taken
    return [target for target in taken if len(target.vnfs) > 1] or taken


def _readings(page: Sequence[Measurement], wanted: set[str]) -> list[Reading]:
    from workbench.diagnosis.readings import read

    return [read(one) for one in page if one.sample.point.target in wanted]


def _chosen(candidates: Sequence[_Candidate], question: Diagnose) -> tuple[Known, Reading]:
    """The sample that is asked about, and what is known of its target."""
    from workbench.diagnosis.explaining import departing

    names = ", ".join(known.target.name for known, _ in candidates)
    every = [(known, one) for known, _ in candidates for one in known.own]
    if question.sample:
        for known, one in every:
            if one.sample.id == question.sample:
                return known, one
        raise UsageError(
            f"has no sample {question.sample!r} of {names}",
            where=question.session,
            remedy="See `workbench show` for the ids of samples",
        )
    if not every:
        raise UsageError(
            f"has no samples of {names}",
            where=question.session,
            remedy="Measure it first, or name another target (--chain)",
        )
    if not question.at:
        return max(every, key=lambda pair: departing(*pair))
    near = [(known, _nearest(known, question.at, primary)) for known, primary in candidates]
    found = [(known, one) for known, one in near if one is not None]
    if not found:
        loads = sorted({one.sample.point.wl for _, one in every})
        raise UsageError(
            f"no sample of {names} is near {question.at}",
            where=question.session,
            remedy=f"Measured are {', '.join(f'{wl:.4g}' for wl in loads[:12])}",
        )
    return max(found, key=lambda pair: departing(*pair))


def _nearest(known: Known, at: str, primary: PrimaryWorkload | None) -> Reading | None:
    """Its sample at about that load and workload; None where there is none."""
    wl, workload = parse_point(at, primary.name if primary else "rate")

    def distance(one: Reading) -> tuple[bool, float, float]:
        far = abs(math.log(one.sample.point.wl / wl)) if wl and one.sample.point.wl else 0.0
        return not one.sample.valid, round(far, 3), -(one.mean_s or 0.0)

    return min((r for r in known.own if _is_at(r, wl, workload)), key=distance, default=None)


def _is_at(one: Reading, wl: float | None, workload: dict[str, ParameterValue]) -> bool:
    point = one.sample.point
    if any(point.configuration.workload.get(key) != value for key, value in workload.items()):
        return False
    if wl is None:
        return True
    return point.wl > 0 and wl > 0 and abs(math.log(point.wl / wl)) <= math.log(NEAR)
