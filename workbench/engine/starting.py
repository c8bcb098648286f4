"""From a request to a run: campaign, lab, name, capacity, plan - and what a resumed one needs."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass

from workbench import __version__, plugins
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, SessionError, UsageError, WorkbenchError
from workbench.domain.events import CampaignPlanned, Noted, SessionCreated
from workbench.domain.lab import Check, HostFacts
from workbench.domain.messages import PlanCampaign, ResumeSession, RunCampaign
from workbench.domain.projection import SessionView
from workbench.domain.samples import Sample
from workbench.domain.sessions import DescriptorText, Plan
from workbench.engine.channel import Channel
from workbench.engine.library import Library
from workbench.engine.planning import make_plan
from workbench.engine.pool import Pool
from workbench.engine.profiling import Order
from workbench.labs.base import Lab, LabSettings

SIMULATED = ("sim", "recorded")
"""Labs that load no host: they need neither its cores nor its measuring lock."""
PAGE = 500


@dataclass(frozen=True)
class Ready:
    """A run that may begin: its lab is open, its session stored."""

    order: Order
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

    async def new(self, request: RunCampaign) -> Ready:
        """A new session. Raises what stands against it, before anything is left behind."""
        loaded = await self._load(request.campaign)
        campaign = loaded.campaign
        lab_name, why = await choose_lab(request.lab)
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
            )
            lab, host = await _opened(lab_name, campaign, settings)
            try:
                plan = await self._pool.run(make_plan, campaign, lab_name, lab.costs)
                created = SessionCreated(
                    campaign, loaded.descriptors, lab_name, request.seed, host, __version__
                )
                channel = await self._library.create(name, created, time.time())
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
        notes = (Noted("warning", why),) if why else ()
        order = Order(campaign, request.seed, (), False, budget_s, 0.0, notes)
        return Ready(order, lab, channel, uses_host)

    async def resume(self, request: ResumeSession) -> Ready:
        """A stored session, as it was created; its samples are told to the sampler again."""
        await self._library.resumable(request.session)
        async with self._library.borrow(request.session) as stored:
            view = stored.snapshot()
        campaign, host_then = view.campaign, view.host
        if campaign is None or host_then is None:
            raise SessionError("holds no campaign to go on with", where=request.session)
        if view.state == "finished" and view.finished and view.finished.outcome == "done":
            unusable = any(c.state == "unusable" for c in view.configurations)
            if not unusable:
                raise UsageError(
                    "is finished: nothing is left to measure",
                    where=request.session,
                    remedy=f"See `workbench show {request.session}`",
                )
        budget_s = _budget(view, view.lab_s, request.budget_s)
        settings = LabSettings(
            session=request.session,
            seed=view.seed,
            pace=request.pace,
            argument=await self._argument(view.lab),
            oversubscribe=True,  # it was weighed when the session was created
        )
        lab, host = await _opened(view.lab, campaign, settings)
        try:
            _refuse_other_images(request.session, host_then, host)
            channel = await self._library.revive(request.session)
        except BaseException:
            await lab.close()
            raise
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
        order = Order(campaign, view.seed, samples, True, budget_s, view.lab_s, notes)
        return Ready(order, lab, channel, _kind(view.lab) not in SIMULATED)

    async def plan(self, request: PlanCampaign) -> Plan:
        """What a campaign would cost; nothing is opened or stored."""
        loaded = await self._load(request.campaign)
        lab_name, why = await choose_lab(request.lab)
        settings = LabSettings(
            session="plan", seed=request.seed, argument=await self._argument(lab_name)
        )
        lab = await _made(lab_name, loaded.campaign, settings)
        warnings = [why] if why else []
        if _kind(lab_name) not in SIMULATED:
            try:
                _check_fits_host(loaded.campaign)
            except UsageError as error:
                warnings.append(str(error))
        return await self._pool.run(
            make_plan, loaded.campaign, lab_name, lab.costs, tuple(warnings)
        )

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


def _kind(lab: str) -> str:
    return lab.partition(":")[0]


async def _made(lab: str, campaign: Campaign, settings: LabSettings) -> Lab:
    kind = await asyncio.to_thread(plugins.load, "labs", _kind(lab))
    made: Lab = kind(campaign, settings)
    return made


async def _opened(lab: str, campaign: Campaign, settings: LabSettings) -> tuple[Lab, HostFacts]:
    made = await _made(lab, campaign, settings)
    try:
        return made, await made.open()
    except BaseException:
        await made.close()
        raise


def _check_fits_host(campaign: Campaign) -> None:
    from workbench.descriptors.capacity import check_fits_host

    check_fits_host(campaign, float(len(os.sched_getaffinity(0))))


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
