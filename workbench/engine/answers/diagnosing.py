"""`workbench why`: the cause of what an operating point shows, from the evidence of its sample."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.descriptors.sla_text import parse_point
from workbench.domain.errors import PluginError, SessionError, UsageError
from workbench.domain.parameters import ParameterValue, PrimaryWorkload
from workbench.domain.questions import Diagnose, Diagnosed
from workbench.domain.samples import Measurement
from workbench.engine.answers.parts import chain_of
from workbench.engine.learning.scoring import Say
from workbench.engine.sessions.finishing import to_the_end
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:  # their imports take time, and most questions are about something else
    from workbench.diagnosis.base import Rule
    from workbench.diagnosis.explaining import Known
    from workbench.diagnosis.readings import Reading

PAGE = 200
NEAR = 1.5
"""Factor up to which a sample counts as one at the load that is asked about."""


async def diagnose(library: Library, question: Diagnose, *, say: Say = lambda _: None) -> Diagnosed:
    """Explain one sample: the one that is named, else the slowest beside its functions alone.

    Raises
    ------
    SessionError
        If the session cannot be read, or holds no campaign.
    UsageError
        If there is no such chain or sample, or nothing was measured near the load.
    """
    from workbench.diagnosis.experiments import experiments
    from workbench.diagnosis.explaining import diagnose as explain
    from workbench.diagnosis.explaining import most_departing

    known, notes, primary = await to_the_end(_known(library, question, say))
    rules, broken = load_rules()
    notes += broken
    chosen = _chosen(known, question, primary)
    seen = chosen if chosen is not None else await asyncio.to_thread(most_departing, known)
    if seen is None:
        raise UsageError(
            f"has no samples of {known.target.name}",
            where=question.session,
            remedy="Measure it first, or name another target (--chain)",
        )
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


async def _known(
    library: Library, question: Diagnose, say: Say
) -> tuple[Known, list[str], PrimaryWorkload | None]:
    from workbench.diagnosis.gathering import MOST_SAMPLES, beside, known_of

    async with library.borrow(question.session) as channel:
        campaign = channel.view.campaign
        if campaign is None:
            raise SessionError("does not hold its campaign", where=question.session)
        target = await asyncio.to_thread(chain_of, campaign, question.chain, library.workspace)
        wanted = {target.name, *(one.name for one in beside(campaign, target).values())}
        say(f"{target.name}: reading the evidence of {question.session}")
        readings: dict[str, list[Reading]] = {name: [] for name in wanted}
        offset = 0
        while page := await channel.file.measurements(offset, PAGE):
            offset += len(page)
            for reading in await asyncio.to_thread(_readings, page, wanted):
                found = readings[reading.sample.point.target]
                if len(found) < MOST_SAMPLES:
                    found.append(reading)
    plan = next((p for p in campaign.targets if p.target == target), None)
    known = known_of(campaign, target, readings)
    return known, [], plan.primary if plan is not None else None


def _readings(page: Sequence[Measurement], wanted: set[str]) -> list[Reading]:
    from workbench.diagnosis.readings import read

    return [read(one) for one in page if one.sample.point.target in wanted]


def _chosen(known: Known, question: Diagnose, primary: PrimaryWorkload | None) -> Reading | None:
    """The sample that is asked about; None where nothing says which."""
    if question.sample:
        for one in known.own:
            if one.sample.id == question.sample:
                return one
        raise UsageError(
            f"has no sample {question.sample!r} of {known.target.name}",
            where=question.session,
            remedy="See `workbench show` for the ids of samples",
        )
    if not question.at:
        return None
    wl, workload = parse_point(question.at, primary.name if primary else "rate")
    near = [one for one in known.own if _is_at(one, wl, workload)]
    if not near:
        loads = sorted({one.sample.point.wl for one in known.own})
        raise UsageError(
            f"no sample of {known.target.name} is near {question.at}",
            where=question.session,
            remedy=f"Measured are {', '.join(f'{wl:.4g}' for wl in loads[:12])}",
        )

    def distance(one: Reading) -> tuple[bool, float, float]:
        far = abs(math.log(one.sample.point.wl / wl)) if wl and one.sample.point.wl else 0.0
        return not one.sample.valid, round(far, 3), -(one.mean_s or 0.0)

    return min(near, key=distance)


def _is_at(one: Reading, wl: float | None, workload: dict[str, ParameterValue]) -> bool:
    point = one.sample.point
    if any(point.configuration.workload.get(key) != value for key, value in workload.items()):
        return False
    if wl is None:
        return True
    return point.wl > 0 and wl > 0 and abs(math.log(point.wl / wl)) <= math.log(NEAR)
