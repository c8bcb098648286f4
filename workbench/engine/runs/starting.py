"""From a request to a run: campaign, lab, name, capacity, plan - and what a resumed one needs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from workbench import __version__, plugins
from workbench.descriptors.capacity import check_fits_host
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import LabError, SessionError, UsageError, WorkbenchError
from workbench.domain.events import CampaignPlanned, Noted, SessionCreated, TrialsStarted
from workbench.domain.lab import Check, HostFacts, HostNoise
from workbench.domain.messages import PlanCampaign, ResumeSession, RunCampaign
from workbench.domain.projection import SessionView
from workbench.domain.samples import Sample, TrialPurpose
from workbench.domain.sessions import DescriptorText, Plan, SamplerCost
from workbench.domain.topology import VnfTemplate
from workbench.engine.learning.pool import Pool
from workbench.engine.runs import noises
from workbench.engine.runs.fitting import fit_to
from workbench.engine.runs.foretelling import cost_of
from workbench.engine.runs.planning import make_plan
from workbench.engine.runs.profiling import Order
from workbench.engine.runs.trials import TrialsOrder
from workbench.engine.sessions.channel import Channel
from workbench.engine.sessions.clock import now
from workbench.engine.sessions.library import Library
from workbench.labs.base import Lab, LabCosts, LabSettings

SIMULATED = ("sim", "recorded")
"""Labs that load no host: they need neither its cores nor its measuring lock."""
ENDED = ("finished", "stopped", "failed")
"""States of a session in which nothing of its campaign is under way or cut off."""
PAGE = 500
FORETELLING_S = 60.0
"""Seconds after which a sampler that is played for a plan is taken to hang."""


T = TypeVar("T")


@dataclass(frozen=True)
class Ready(Generic[T]):
    """A turn that may begin: its lab is open, its session stored."""

    order: T
    lab: Lab
    channel: Channel
    uses_host: bool


@dataclass(frozen=True)
class _Loaded:
    campaign: Campaign
    descriptors: tuple[DescriptorText, ...]


class Starting:
    """Makes runs ready."""

    def __init__(self, library: Library, pool: Pool) -> None:
        self._library = library
        self._pool = pool
        self._one_at_a_time = asyncio.Lock()
        """Two requests must not choose the same fresh name."""

    async def new(self, request: RunCampaign) -> Ready[Order]:
        """A new session. Raises what stands against it, before anything is left behind."""
        loaded = await self._load(request.campaign)
        campaign = loaded.campaign
        lab_name, why = await choose_lab(request.lab)
        left_out: tuple[str, ...] = ()
        if request.fit:
            campaign, left_out = await self._fitted(campaign, lab_name, request)
        uses_host = _kind(lab_name) not in SIMULATED
        if uses_host and not request.oversubscribe:
            _check_fits_host(campaign)
        async with self._one_at_a_time:
            name = await self._library.new_name(request.session, campaign.name)
            settings = LabSettings(
                session=name,
                seed=request.seed,
                pace=request.pace,
                argument=await self._argument(lab_name),
                oversubscribe=request.oversubscribe,
                own_cpu_s=self._pool.own_cpu_s,
            )
            lab, host = await _opened(lab_name, campaign, settings)
            try:
                plan = await self._pool.run(make_plan, campaign, lab_name, lab.costs)
                noise, foreign = await asyncio.to_thread(_noise, lab_name, campaign, host)
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
        notes = tuple(Noted("warning", text) for text in (why, *left_out, foreign) if text)
        order = Order(campaign, request.seed, (), False, budget_s, 0.0, notes)
        return Ready(order, lab, channel, uses_host)

    async def resume(self, request: ResumeSession) -> Ready[Order]:
        """A stored session, as it was created; its samples are told to the sampler again."""
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
        spent_s = view.lab_s - view.trials_s
        budget_s = _budget(view, spent_s, request.budget_s)
        lab, _ = await self._opened_again(view, campaign, request.pace)
        channel = await self._revived(request.session, lab)
        try:
            samples = await _all_samples(channel)
            if channel.view.plan is None:  # its engine died in the instant between two events
                plan = await self._pool.run(make_plan, campaign, view.lab, lab.costs)
                await channel.record(CampaignPlanned(plan))
        except BaseException:
            await lab.close()
            await self._library.release(channel)
            raise
        notes = tuple(Noted("warning", text) for text in channel.file.warnings)
        own = tuple(sample for sample in samples if sample.purpose == "profile")
        order = Order(campaign, view.seed, own, True, budget_s, spent_s, notes, view.trials_s)
        return Ready(order, lab, channel, _kind(view.lab) not in SIMULATED)

    async def trials(
        self,
        session: str,
        purpose: TrialPurpose,
        *,
        plans: Sequence[TargetPlan] = (),
        budget_s: float | None = None,
        points: int = 0,
        by: str = "",
        pace: float | None = None,
        oversubscribe: bool = False,
    ) -> Ready[TrialsOrder]:
        """A stored session whose campaign has ended; what `Queue.trials` says of the rest."""
        await self._library.resumable(session)
        async with self._library.borrow(session) as stored:
            view = stored.snapshot()
        campaign, host_then = _whole(view)
        if view.state not in ENDED:
            raise UsageError(
                f"is {view.state}: its campaign has not ended",
                where=session,
                remedy=f"Let it end first: see `workbench resume {session}`",
            )
        templates = await self._beyond(view, campaign, plans)
        wider = replace(
            campaign,
            targets=_with_plans(view, campaign, plans),
            templates=(*campaign.templates, *templates),
        )
        lab, host = await self._opened_again(view, wider, pace)
        try:
            changed = _other_host(session, host_then, host)
            if plans and not oversubscribe and _kind(view.lab) != "recorded":
                check_fits_host(replace(wider, targets=tuple(plans)), host.cores)
        except BaseException:
            await lab.close()
            raise
        channel = await self._revived(session, lab)
        try:
            samples = await _all_samples(channel)
        except BaseException:
            await lab.close()
            await self._library.release(channel)
            raise
        names = {template.name for template in templates}
        digests = {name: d for name, d in host.image_digests.items() if name in names}
        started = TrialsStarted(purpose, by, budget_s, tuple(plans), templates, digests)
        notes = tuple(Noted("warning", text) for text in (*channel.file.warnings, *changed))
        order = TrialsOrder(started, wider, samples, points, notes)
        return Ready(order, lab, channel, _kind(view.lab) not in SIMULATED)

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
        self, view: SessionView, campaign: Campaign, pace: float | None
    ) -> tuple[Lab, HostFacts]:
        """The lab of a stored session, refused if one of its images is another now."""
        settings = LabSettings(
            session=view.session,
            seed=view.seed,
            pace=pace,
            argument=await self._argument(view.lab),
            oversubscribe=True,  # it was weighed when the session was created
            own_cpu_s=self._pool.own_cpu_s,
        )
        lab, host = await _opened(view.lab, campaign, settings)
        try:
            _, host_then = _whole(view)
            _refuse_other_images(view.session, host_then, host)
        except BaseException:
            await lab.close()
            raise
        return lab, host

    async def _revived(self, session: str, lab: Lab) -> Channel:
        try:
            return await self._library.revive(session)
        except BaseException:
            await lab.close()
            raise

    async def plan(self, request: PlanCampaign) -> Plan:
        """What a campaign would cost; nothing is opened or stored."""
        loaded = await self._load(request.campaign)
        lab_name, why = await choose_lab(request.lab)
        settings = LabSettings(
            session="plan", seed=request.seed, argument=await self._argument(lab_name)
        )
        campaign, warnings = loaded.campaign, [why] if why else []
        if request.fit:
            campaign, left_out = await self._fitted(campaign, lab_name, request)
            warnings += left_out
        lab = await made_lab(lab_name, campaign, settings)
        if _kind(lab_name) not in SIMULATED:
            try:
                _check_fits_host(campaign)
            except UsageError as error:
                warnings.append(str(error))
        plan = await self._pool.run(make_plan, campaign, lab_name, lab.costs, tuple(warnings))
        if not request.samplers:
            return plan
        found = [
            await self._foretold(campaign, lab_name, lab.costs, request.seed, name)
            for name in request.only or plugins.names("samplers")
        ]
        return replace(plan, samplers=tuple(sorted(found, key=_by_cost)))

    async def _foretold(
        self, campaign: Campaign, lab_name: str, costs: LabCosts, seed: int, sampler: str
    ) -> SamplerCost:
        """One call of the worker each: a run that is under way has its turn in between."""
        told = self._pool.run(cost_of, campaign, lab_name, costs, seed, sampler)
        try:
            return await asyncio.wait_for(told, FORETELLING_S)
        except TimeoutError:
            self._pool.kill()
            chosen = sampler == campaign.sampling.method
            note = f"has not answered for {FORETELLING_S:g} s"
            return SamplerCost(sampler, 0, 0.0, "unknown", chosen, note)

    async def _fitted(
        self, campaign: Campaign, lab_name: str, request: RunCampaign | PlanCampaign
    ) -> tuple[Campaign, tuple[str, ...]]:
        """The part of a campaign that this host and the budget can give; what was left out."""
        settings = LabSettings(session="plan", argument=await self._argument(lab_name))
        lab = await made_lab(lab_name, campaign, settings)
        cores = float(len(os.sched_getaffinity(0)))
        fitted = await self._pool.run(
            fit_to, campaign, cores, request.budget_s, lab_name, lab.costs
        )
        return fitted.campaign, fitted.notes

    async def _load(self, name: str) -> _Loaded:
        from workbench.descriptors.loading import load_campaign

        loaded = await asyncio.to_thread(load_campaign, name, workspace=self._library.workspace)
        return _Loaded(loaded.campaign, tuple(loaded.descriptors))

    async def _argument(self, lab: str) -> str:
        """What follows the colon in `recorded:NAME`, as a path."""
        name = lab.partition(":")[2]
        if _kind(lab) != "recorded":
            return name  # the lab's own options
        return str(await self._library.path_of(name))


async def choose_lab(wanted: str | None) -> tuple[str, str]:
    """The lab's name, and why it is not the one that a user would expect."""
    if wanted is not None:
        if _kind(wanted) == "recorded" and ":" not in wanted:
            raise UsageError(
                "the recorded lab needs a recording", remedy="Write --lab recorded:NAME"
            )
        return wanted, ""
    try:
        docker = await asyncio.to_thread(plugins.load, "labs", "docker")
        checks: tuple[Check, ...] = await docker.examine()
    except WorkbenchError as error:
        return "sim", f"{error.what}: the simulated lab is used instead"
    engine = next((check for check in checks if "engine" in check.name), None)
    if engine is not None and engine.state != "missing":
        return "docker", ""
    found = engine.found if engine else "no Docker engine answers"
    return "sim", f"{found}: the simulated lab is used instead"


def _by_cost(cost: SamplerCost) -> tuple[bool, float, str]:
    return cost.figure == "unknown", cost.lab_s, cost.sampler


def _kind(lab: str) -> str:
    return lab.partition(":")[0]


async def made_lab(lab: str, campaign: Campaign, settings: LabSettings) -> Lab:
    """A lab by its entry point's name, not open yet."""
    kind = await asyncio.to_thread(plugins.load, "labs", _kind(lab))
    made: Lab = kind(campaign, settings)
    return made


def _noise(lab: str, campaign: Campaign, host: HostFacts) -> tuple[HostNoise | None, str]:
    """What `doctor --measure` found on this host, or why what is kept says nothing of it.

    A remote engine's host is another one, and home folders may be shared by hosts.
    """
    noise = None if any(agent.url for agent in campaign.agents) else noises.known(lab)
    if noise is None or (noise.cpu_model, noise.cores) == (host.cpu_model, host.cores):
        return noise, ""
    return None, (
        f"what is kept of the noise of lab {lab} is of another host ({noise.cores} cores, "
        f"{noise.cpu_model or 'of unknown model'}): general figures stand in; run "
        "`workbench doctor --measure`"
    )


async def _opened(lab: str, campaign: Campaign, settings: LabSettings) -> tuple[Lab, HostFacts]:
    made = await made_lab(lab, campaign, settings)
    try:
        return made, await made.open()
    except BaseException:
        await made.close()
        raise


def _check_fits_host(campaign: Campaign) -> None:
    check_fits_host(campaign, float(len(os.sched_getaffinity(0))))


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


def _other_host(session: str, then: HostFacts, now: HostFacts) -> tuple[str, ...]:
    """Sentences on what has changed of a host. Raises `LabError` where it is another one.

    A profile says nothing of a host that it was not measured on (DESIGN.md, decision 5).
    """
    for name, what in (("cpu_model", "CPU"), ("cores", "number of cores"), ("cgroup", "cgroup")):
        before, here = getattr(then, name), getattr(now, name)
        if before != here:
            raise LabError(
                f"was measured on another host: its {what} was {before} and is {here} here",
                where=session,
                remedy="Measure on the host of the session, or profile on this one",
            )
    return tuple(
        f"the host's {name} was {before} when the session began and is {here} now"
        for name in ("kernel", "engine")
        if (before := getattr(then, name)) != (here := getattr(now, name))
    )


def _refuse_other_images(session: str, then: HostFacts, now: HostFacts) -> None:
    """A session never mixes two digests of one image (decision 5)."""
    for template, digest in then.image_digests.items():
        other = now.image_digests.get(template, digest)
        if other != digest:
            raise LabError(
                f"the image of {template} is {_short(other)} now and was {_short(digest)} "
                "when the session began",
                where=session,
                remedy="Bring the old image back, or start a new session",
            )


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]


def _budget(view: SessionView, spent_s: float, more_s: float | None) -> float | None:
    """Lab time of the session at which it ends: `more_s` from now; else what was left of its own.

    Who resumes a session whose budget is spent, and names no other, wants it finished.
    """
    if more_s is not None:
        return spent_s + more_s
    is_spent = view.finished is not None and view.finished.outcome == "budget"
    return None if is_spent else view.budget_s


async def _all_samples(channel: Channel) -> tuple[Sample, ...]:
    samples: list[Sample] = []
    while page := await channel.file.samples(len(samples), PAGE):
        samples.extend(page)
    return tuple(samples)
