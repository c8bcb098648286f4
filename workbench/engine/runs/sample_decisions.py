"""What people decide while they look: samples rejected or pinned, points and budget asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.domain.durations import duration
from workbench.domain.errors import UsageError
from workbench.domain.events import Fact, ModelFitted
from workbench.domain.messages import Done
from workbench.domain.parameters import OperatingPoint
from workbench.domain.projection import SessionView
from workbench.domain.sample_review import (
    BudgetExtended,
    DecideSample,
    ExtendBudget,
    PointRequested,
    RequestPoint,
    SampleDecided,
)
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.sampler_worker import refit
from workbench.engine.sessions.library import Library
from workbench.engine.sessions.recording import recorded

if TYPE_CHECKING:
    from workbench.engine.runs.lab_job import LabJob

LONGEST_WHY = 500
"""Characters of a reason; who writes more writes elsewhere."""
MOST_REQUESTED = 100
"""Points that wait to be measured; a loop that asks for ever is stopped here."""


async def decide(
    library: Library, pool: Pool, run: LabJob | None, request: DecideSample, by: str
) -> Done:
    """Record a decision on a sample; what was fitted with it, or without, is fitted anew."""
    if len(request.why) > LONGEST_WHY:
        raise UsageError(f"a reason has at most {LONGEST_WHY} characters", where=request.session)
    if request.verdict == "rejected" and not request.why.strip():
        raise UsageError("a sample is not rejected without a reason", where=request.sample)
    async with library.borrow(request.session) as channel:
        found = await channel.file.detail(request.sample)
    if found is None or found.sample.purpose != "profile":
        raise UsageError(f"has no sample {request.sample!r} of its campaign", where=request.session)
    counts_otherwise = False

    def made(view: SessionView) -> Fact | None:
        nonlocal counts_otherwise
        before = view.decisions.get(request.sample)
        verdicts = {request.verdict, before.verdict if before else "open"}
        counts_otherwise = len(verdicts) > 1 and "rejected" in verdicts
        if len(verdicts) == 1:
            return None
        return SampleDecided(request.sample, request.verdict, by, request.why.strip())

    if await recorded(library, request.session, made) is None:
        return Done("nothing changes: that is so already")
    if counts_otherwise:
        if run is not None:
            run.control.revise()
        await _fit_anew(library, pool, request.session, found.sample.point)
    words = {"rejected": "is rejected", "pinned": "is pinned", "open": "counts as measured"}
    return Done(f"{request.sample} {words[request.verdict]}")


async def _fit_anew(library: Library, pool: Pool, session: str, place: OperatingPoint) -> None:
    """The curve and the breakpoints of a configuration, from its samples as they count now.

    Like the run's own fit it rests on what was taken up to the configuration's last sample: what
    came later says something of the capacity of all configurations, and would move figures that
    the decision is no reason for.
    """
    async with library.borrow(session) as channel:
        view = channel.view
        campaign, seed, noise = view.campaign, view.seed, view.noise
        samples = [
            sample
            for sample in await channel.file.all_samples()
            if sample.point.target == place.target and sample.purpose == "profile"
        ]
    if campaign is None:
        return
    own = [n for n, s in enumerate(samples) if s.point.configuration == place.configuration]
    samples = samples[: own[-1] + 1]
    fit = await pool.run(
        refit, campaign, place.target, seed, tuple(samples), place.configuration, noise
    )
    fitted = ModelFitted(
        place.target, place.configuration, fit.curve, fit.breakpoints, fit.model, fit.cpu_s
    )
    await recorded(library, session, lambda _: fitted)


async def request_point(library: Library, request: RequestPoint, by: str) -> PointRequested:
    """Record that somebody wants a point; who measures looks for it there.

    Raises
    ------
    UsageError
        If the campaign has no such configuration, or its load is out of its range.
    """

    def made(view: SessionView) -> Fact | None:
        campaign = view.campaign
        plan = (
            next((p for p in campaign.targets if p.target.name == request.target), None)
            if campaign
            else None
        )
        if (
            campaign is None
            or plan is None
            or (request.configuration not in campaign.configurations(plan))
        ):
            raise UsageError(
                f"its campaign has no configuration {request.configuration.key} of "
                f"{request.target}",
                where=request.session,
            )
        primary = plan.primary
        wl = float(round(request.wl)) if primary.integer else request.wl
        if not primary.low <= wl <= primary.high:
            raise UsageError(
                f"{wl:g} is not in the range of {request.target}: {primary.low:g} to "
                f"{primary.high:g} {primary.unit}".rstrip(),
                where=request.session,
                remedy="Choose a load in that range",
            )
        if len(view.requested) >= MOST_REQUESTED:
            raise UsageError(
                f"{len(view.requested)} points wait to be measured already",
                where=request.session,
                remedy="Wait for some of them",
            )
        place = view.configuration(f"{request.target}/{request.configuration.key}")
        taken = [p.repetition for p in (place.samples if place else ()) if p.wl == wl]
        taken += [
            r.repetition
            for r in view.requested
            if (r.target, r.configuration, r.wl) == (request.target, request.configuration, wl)
        ]
        if place is not None and place.left_out:  # one of them may be any that could be by now
            taken.append(campaign.sampling.repetitions - 1 + place.taken)
        # Beyond those that the sampler may still ask for itself.
        repetition = max([campaign.sampling.repetitions - 1, *taken]) + 1
        return PointRequested(request.target, request.configuration, wl, repetition, by)

    fact = await recorded(library, request.session, made)
    assert isinstance(fact, PointRequested)
    return fact


async def extend(library: Library, run: LabJob, request: ExtendBudget, by: str) -> Done:
    """More time for a campaign that runs; it is in force before the next sample."""

    def made(view: SessionView) -> Fact | None:
        if view.under_trial is not None:
            raise UsageError(
                f"the budget of a {view.under_trial.purpose} is not extended",
                where=request.session,
            )
        if view.budget_s is None:
            raise UsageError("has no budget that could end it", where=request.session)
        return BudgetExtended(view.budget_s + request.more_s, by)

    fact = await recorded(library, request.session, made)
    assert isinstance(fact, BudgetExtended)
    run.control.ring()
    return Done(f"its budget is {duration(fact.budget_s)} now")
