"""From a request to a run: a new session, one that goes on, one whose lab is asked for trials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from workbench import __version__
from workbench.descriptors.capacity import check_fits_host
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.counts import counted
from workbench.domain.drafts import PREFIX
from workbench.domain.errors import LabError, SessionError, Stopped, UsageError
from workbench.domain.events import CampaignPlanned, Noted, SessionCreated, TrialsStarted
from workbench.domain.lab import ASSUMED, SIMULATION, WHY_THIS_LAB, HostFacts
from workbench.domain.messages import ResumeSession, RunCampaign
from workbench.domain.projection import SessionView
from workbench.domain.topology import VnfTemplate
from workbench.engine.learning.pool import Pool
from workbench.engine.runs.budget import budget_after_s, spent_before_s
from workbench.engine.runs.costing import Costing
from workbench.engine.runs.opening import (
    argument_of,
    choose_lab,
    is_users_own,
    kind_of,
    loads_host,
    noise_of,
    opened,
    refuse_other_definition,
    refuse_other_images,
    what_changed,
    why_simulated,
    why_too_small,
)
from workbench.engine.runs.planning import make_plan
from workbench.engine.runs.profiling import RunOrder
from workbench.engine.runs.trials import TrialsOrder, TrialsRequest
from workbench.engine.sessions.channel import Channel
from workbench.engine.sessions.clock import now
from workbench.engine.sessions.library import Library
from workbench.labs.base import Lab, LabSettings, RecallingLab

ENDED = ("finished", "stopped", "failed")
"""States of a session in which nothing of its campaign is under way or cut off."""
LONGEST_LINE = 200
"""Characters that are kept of what a lab says while it opens."""

T = TypeVar("T")
Tell = Callable[[str], None]
"""Hears what is done now."""


@dataclass(frozen=True)
class Ready(Generic[T]):
    """A turn that may begin: its lab is open, its session stored."""

    order: T
    lab: Lab
    channel: Channel
    uses_host: bool


@dataclass(eq=False)
class _UnderWay:
    """A run that is made ready."""

    session: str
    task: asyncio.Future[Any]
    doing: str = "reading its campaign"
    stopped: bool = False


class Starting:
    """Makes runs ready."""

    def __init__(self, library: Library, pool: Pool, costing: Costing) -> None:
        self._library = library
        self._pool = pool
        self._costing = costing
        self._one_at_a_time = asyncio.Lock()
        """Two requests must not choose the same fresh name."""
        self._under_way: list[_UnderWay] = []  # one session may be asked for twice at once

    @property
    def preparing(self) -> str:
        """What a run that is being started waits for, as `NAME: WHAT`; empty if none is."""
        names = ((one.session.removeprefix(PREFIX), one.doing) for one in self._under_way)
        return next((f"{name}: {doing}" for name, doing in names), "")

    def stop(self, session: str) -> bool:
        """Give up what is made ready under that name; whether anything was."""
        meant = [one for one in self._under_way if one.session == session]
        for one in meant:
            one.stopped = True
            one.task.cancel()
        return bool(meant)

    async def new(self, request: RunCampaign) -> Ready[RunOrder]:
        """A new session. Raises what stands against it, before anything is left behind.

        Where nobody named a lab and the real one cannot be made ready, the simulated one stands in;
        for a campaign that ships also where this host has too few cores for it.
        """
        self._pool.warm()  # the plan needs it, once the lab is open
        name = request.session or request.campaign
        return await self._made_ready(name, lambda tell: self._new(request, tell))

    async def _new(self, request: RunCampaign, tell: Tell) -> Ready[RunOrder]:
        from workbench.descriptors.loading import load_campaign

        tell("reading the campaign")
        workspace = self._library.workspace
        loaded = await asyncio.to_thread(load_campaign, request.campaign, workspace=workspace)
        campaign = loaded.campaign
        lab_name, why = await choose_lab(request.lab, campaign.lab)
        left_out: tuple[str, ...] = ()
        if request.fit:
            campaign, left_out = await self._costing.fitted(campaign, lab_name, request)
        if not request.oversubscribe and (
            small := why_too_small(request, campaign, lab_name, workspace)
        ):
            lab_name, why = SIMULATION, small
        async with self._one_at_a_time:
            name = await self._library.new_name(request.session, campaign.name)
            settings = LabSettings(
                session=name,
                seed=request.seed,
                pace=request.pace,
                argument=await argument_of(self._library, lab_name),
                oversubscribe=request.oversubscribe,
                own_cpu_s=self._pool.own_cpu_s,
            )
            try:
                lab, host = await self._opened(lab_name, campaign, settings, tell)
            except LabError as error:
                wanted = request.lab is not None or bool(campaign.attached)
                if wanted or is_users_own(error, campaign):
                    raise
                lab_name, why = SIMULATION, why_simulated(error.what, error.remedy)
                lab, host = await self._opened(lab_name, campaign, settings, tell)
            host = _why_there(host, lab_name, why)
            campaign, fewer = _recorded_so_often(campaign, lab)
            tell("planning")
            try:
                plan = await self._pool.run(make_plan, campaign, lab_name, lab.costs)
                noise, foreign = await asyncio.to_thread(noise_of, lab_name, campaign, host)
                created = SessionCreated(
                    campaign,
                    loaded.descriptors,
                    lab_name,
                    request.seed,
                    host,
                    __version__,
                    noise,
                )
                channel = await self._library.create(name, created, now())
            except BaseException:
                await lab.close()
                raise
        try:
            await channel.record(CampaignPlanned(plan))
            await self._library.note(channel)
        except BaseException:
            await lab.close()
            await self._library.release(channel)
            raise
        budget_s = request.budget_s if request.budget_s is not None else campaign.budget_s
        said = (why, *left_out, foreign, fewer, host.details.get(ASSUMED))
        notes = tuple(Noted("warning", text) for text in said if text)
        order = RunOrder(campaign, request.seed, (), False, budget_s, 0.0, 0.0, notes)
        return Ready(order, lab, channel, loads_host(lab_name))

    async def resume(self, request: ResumeSession) -> Ready[RunOrder]:
        """A stored session, as it was created; its samples are told to the sampler again."""
        self._pool.warm()
        return await self._made_ready(request.session, lambda tell: self._resume(request, tell))

    async def _resume(self, request: ResumeSession, tell: Tell) -> Ready[RunOrder]:
        await self._library.resumable(request.session)
        async with self._library.borrow(request.session) as stored:
            view = stored.snapshot()
        campaign, _ = _whole(view)
        if view.state == "finished" and view.finished and view.finished.outcome == "done":
            unusable = any(c.state == "unusable" for c in view.configurations)
            if not unusable and not view.requested:
                raise UsageError(
                    "is finished: nothing is left to measure",
                    where=request.session,
                    remedy=f"See `workbench show {request.session}`",
                )
        spent_s = spent_before_s(view, by_clock=loads_host(view.lab))
        budget_s = budget_after_s(view, spent_s, request.budget_s)
        lab, _ = await self._opened_again(view, campaign, request.pace, tell)
        tell("reading the samples")
        channel = await self._revived(request.session, lab)
        try:
            samples = await channel.file.all_samples()
            refuse_other_definition(request.session, samples, lab)
            if channel.view.plan is None:  # its engine died in the instant between two events
                plan = await self._pool.run(make_plan, campaign, view.lab, lab.costs)
                await channel.record(CampaignPlanned(plan))
        except BaseException:
            await lab.close()
            await self._library.release(channel)
            raise
        notes = tuple(Noted("warning", text) for text in channel.file.warnings)
        own = tuple(sample for sample in samples if sample.purpose == "profile")
        lab_s = view.lab_s - view.trials_s
        order = RunOrder(
            campaign, view.seed, own, True, budget_s, spent_s, lab_s, notes, view.trials_s
        )
        return Ready(order, lab, channel, loads_host(view.lab))

    async def trials(self, request: TrialsRequest) -> Ready[TrialsOrder]:
        """A stored session whose campaign has ended; what `Queue.trials` says of the rest."""
        return await self._made_ready(request.session, lambda tell: self._trials(request, tell))

    async def _trials(self, request: TrialsRequest, tell: Tell) -> Ready[TrialsOrder]:
        session, plans = request.session, request.plans
        await self._library.resumable(session)
        async with self._library.borrow(session) as stored:
            view = stored.snapshot()
        campaign, host_then = _whole(view)
        if view.state not in ENDED:
            raise UsageError(
                f"is {view.state}: its campaign has not ended",
                where=session,
                remedy=f"Resume it and let it end (workbench resume {session})",
            )
        templates = await self._beyond(view, campaign, plans)
        wider = replace(
            campaign,
            targets=_with_plans(view, campaign, plans),
            templates=(*campaign.templates, *templates),
        )
        lab, host = await self._opened_again(view, wider, request.pace, tell)
        try:
            changed = what_changed(session, host_then, host)
            if plans and not request.oversubscribe and kind_of(view.lab) != "recorded":
                check_fits_host(replace(wider, targets=plans), host.cores)
        except BaseException:
            await lab.close()
            raise
        channel = await self._revived(session, lab)
        try:
            samples = await channel.file.all_samples()
            refuse_other_definition(session, samples, lab)
        except BaseException:
            await lab.close()
            await self._library.release(channel)
            raise
        names = {template.name for template in templates}
        digests = {name: d for name, d in host.image_digests.items() if name in names}
        started = TrialsStarted(
            request.purpose, request.by, request.budget_s, plans, templates, digests
        )
        notes = tuple(Noted("warning", text) for text in (*channel.file.warnings, *changed))
        order = TrialsOrder(started, wider, samples, request.points, notes)
        return Ready(order, lab, channel, loads_host(view.lab))

    async def _beyond(
        self, view: SessionView, campaign: Campaign, plans: Sequence[TargetPlan]
    ) -> tuple[VnfTemplate, ...]:
        """Templates that plans name and the campaign does not have: as earlier trials had them,
        else from the library. Raises `UsageError`."""
        from workbench.descriptors.loading import load_vnf_templates

        targets = [plan.target for plan in plans]
        named = {name for t in targets for name in (t.source, t.sink)}
        named |= {vnf.template for t in targets for vnf in t.vnfs}
        missing = named - {template.name for template in campaign.templates}
        if not missing:
            return ()
        found = {t.name: t for trials in view.trials for t in trials.templates}
        if not missing <= found.keys():
            known = await asyncio.to_thread(load_vnf_templates, workspace=self._library.workspace)
            found = {template.name: template for template in known} | found
        if unknown := missing - found.keys():
            raise UsageError(
                f"no VNF template is called {', '.join(sorted(unknown))}",
                where=view.session,
                remedy=f"Choose among: {', '.join(sorted(found))}",
            )
        return tuple(found[name] for name in sorted(missing))

    async def _opened_again(
        self, view: SessionView, campaign: Campaign, pace: float | None, tell: Tell
    ) -> tuple[Lab, HostFacts]:
        """The lab of a stored session, refused if one of its images is another now."""
        _, host_then = _whole(view)
        settings = LabSettings(
            session=view.session,
            seed=view.seed,
            pace=pace,
            argument=await argument_of(self._library, view.lab),
            oversubscribe=True,  # it was weighed when the session was created
            own_cpu_s=self._pool.own_cpu_s,
            images=host_then.image_digests,
        )
        lab, host = await self._opened(view.lab, campaign, settings, tell)
        try:
            refuse_other_images(view.session, host_then, host)
        except BaseException:
            await lab.close()
            raise
        return lab, host

    async def _opened(
        self, lab: str, campaign: Campaign, settings: LabSettings, tell: Tell
    ) -> tuple[Lab, HostFacts]:
        """`opening.opened`; `preparing` says how far it is, since images may have to be built."""
        tell(f"opening the lab {lab}")
        return await opened(lab, campaign, replace(settings, say=tell))

    async def _made_ready(
        self, session: str, work: Callable[[Tell], Coroutine[Any, Any, Ready[T]]]
    ) -> Ready[T]:
        """What `work` makes ready, which tells what it does; `preparing` says it meanwhile.

        Raises `Stopped` where somebody asked for that, and as `work` does.
        """

        def tell(what: str) -> None:
            here.doing = what[:LONGEST_LINE]

        task = asyncio.ensure_future(work(tell))
        here = _UnderWay(session, task)
        self._under_way.append(here)
        try:
            return await task
        except asyncio.CancelledError:
            if here.stopped:
                raise Stopped("was given up before anything was measured", where=session) from None
            raise
        finally:
            self._under_way.remove(here)

    async def _revived(self, session: str, lab: Lab) -> Channel:
        try:
            return await self._library.revive(session)
        except BaseException:
            await lab.close()
            raise


def _why_there(host: HostFacts, lab: str, why: str) -> HostFacts:
    """With whether the simulated lab was chosen, or why it stands in; any other is as it was."""
    if kind_of(lab) != SIMULATION:
        return host
    known = {**host.details, WHY_THIS_LAB: "stands in" if why else "chosen"}
    return replace(host, details=known)


def _recorded_so_often(campaign: Campaign, lab: Lab) -> tuple[Campaign, str]:
    """The campaign with no more repetitions than a recorded lab has, and a sentence on that."""
    recorded = lab.repetitions if isinstance(lab, RecallingLab) else 0
    sampling = campaign.sampling
    if not 0 < recorded < sampling.repetitions:
        return campaign, ""
    said = f"{counted(recorded, 'repetition')} of {sampling.repetitions} that the campaign asks for"
    return (
        replace(campaign, sampling=replace(sampling, repetitions=recorded)),
        f"the recording has {said}: no point is asked for more often",
    )


def _whole(view: SessionView) -> tuple[Campaign, HostFacts]:
    if view.campaign is None or view.host is None:
        raise SessionError("holds no campaign to go on with", where=view.session)
    return view.campaign, view.host


def _with_plans(
    view: SessionView, campaign: Campaign, plans: Sequence[TargetPlan]
) -> tuple[TargetPlan, ...]:
    """The campaign's targets with what plans say of them, and those that only plans have.

    A plan of a target of the campaign goes beyond its range and its allocations.
    Raises `UsageError` where one name would mean two targets.
    """
    known = [*campaign.targets, *(plan for trials in view.trials for plan in trials.plans)]
    merged = {plan.target.name: plan for plan in campaign.targets}
    for plan in plans:
        if any(k.target.name == plan.target.name and k.target != plan.target for k in known):
            raise UsageError(
                f"has another target {plan.target.name!r} already",
                where=view.session,
                remedy="Choose another name for this one",
            )
        own = merged.get(plan.target.name, plan).primary
        primary = replace(
            plan.primary, low=min(own.low, plan.primary.low), high=max(own.high, plan.primary.high)
        )
        merged[plan.target.name] = replace(plan, primary=primary)
    return tuple(merged.values())
