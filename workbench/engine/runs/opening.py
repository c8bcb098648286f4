"""The lab of a run: which one it is, opened, and whether it is still what a session knew."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable
from dataclasses import replace

from workbench import plugins
from workbench.descriptors.capacity import SIMULATED_HOST, THIS_HOST, check_fits_host
from workbench.domain.attaching import ATTACHING
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, UsageError, WorkbenchError
from workbench.domain.lab import OPTIONS, SIMULATION, Check, HostFacts, HostNoise, short_digest
from workbench.domain.messages import PlanCampaign, RunCampaign
from workbench.domain.samples import Sample
from workbench.engine.runs import noises
from workbench.engine.sessions.library import Library
from workbench.labs.base import DefinedLab, Lab, LabSettings
from workbench.labs.recorded_options import RecordedOptions
from workbench.paths import SHIPPED_TEMPLATE, Workspace

SIMULATED = (SIMULATION, "recorded")
"""Labs that load no host: they need neither its cores nor its measuring lock."""


def loads_host(lab: str) -> bool:
    """Whether a lab of that name needs this host's cores to itself."""
    return kind_of(lab) not in SIMULATED


def kind_of(lab: str) -> str:
    """The entry point's name: `recorded` of `recorded:demo-real`."""
    return lab.partition(":")[0]


async def argument_of(library: Library, lab: str) -> str:
    """What follows the colon: of `recorded:NAME` as a path, else the lab's own options."""
    text = lab.partition(":")[2]
    if kind_of(lab) != "recorded":
        return text
    options = RecordedOptions.parse(text)
    return replace(options, name=str(await library.path_of(options.name))).text


async def choose_lab(wanted: str | None, own: str = "") -> tuple[str, str]:
    """The lab's name, and why it is not the one that a user would expect.

    `own` is the campaign's: it is meant where nobody names a lab, and its options are where
    somebody names that kind of lab without any.
    """
    if own and wanted in (None, kind_of(own)):
        return own, ""
    if wanted is not None:
        if kind_of(wanted) == "recorded" and ":" not in wanted:
            raise UsageError(
                "the recorded lab needs a recording", remedy="Write --lab recorded:NAME"
            )
        return wanted, ""
    try:
        docker = await asyncio.to_thread(plugins.load, "labs", "docker")
        checks: tuple[Check, ...] = await docker.examine()
    except WorkbenchError as error:
        return SIMULATION, why_simulated(error.what, error.remedy)
    engine = next((check for check in checks if "engine" in check.name), None)
    if engine is None:
        return SIMULATION, why_simulated("no Docker engine answers", "")
    if engine.state != "missing":
        return "docker", ""
    return SIMULATION, why_simulated(engine.found, engine.remedy)


def why_simulated(what: str, remedy: str | None) -> str:
    """Why nobody's choice was the simulated lab, and how to get the real one: a sentence."""
    said = f"{what.rstrip('.')}: the simulated lab is used instead"
    return f"{said}. For the real one: {remedy}" if remedy else said


def is_users_own(error: LabError, campaign: Campaign) -> bool:
    """Whether a template of the user's own does not build: a mistake to be told, not a host that
    lacks something, for which the simulated lab may stand in."""
    return any(
        error.where == f"template {template.name}"
        and not template.build.startswith(SHIPPED_TEMPLATE)
        for template in campaign.templates
    )


async def made_lab(lab: str, campaign: Campaign, settings: LabSettings) -> Lab:
    """A lab by its entry point's name, not open yet.

    Raises `UsageError` where the campaign places a function as that lab cannot, or names functions
    that run already to a lab that deploys them, and the other way round.
    """
    if kind_of(lab) != "recorded" and (kind_of(lab) in ATTACHING) != bool(campaign.attached):
        raise UsageError(
            f"its functions run already, and the lab {kind_of(lab)} would make others"
            if campaign.attached
            else "names no function that runs already (`attach`), which that lab needs",
            where=f"campaign {campaign.name}",
            remedy="Leave --lab out"
            if campaign.attached
            else "Let `workbench discover --write FILE NAME` write one",
        )
    kind = await asyncio.to_thread(plugins.load, "labs", kind_of(lab))
    made: Lab = kind(campaign, settings)
    for plan in campaign.targets:
        for vnf in plan.target.vnfs:
            if vnf.placement not in made.placements:
                raise UsageError(
                    f"{vnf.name} is placed {vnf.placement}: it wants a copy of the traffic, and "
                    f"the lab {kind_of(lab)} mirrors none. It would be measured in the path, "
                    "as what it is not",
                    where=f"campaign {campaign.name}, {plan.target.name}",
                    remedy="Leave it out; or profile it as an inline function (placement: inline)",
                )
    return made


async def opened(lab: str, campaign: Campaign, settings: LabSettings) -> tuple[Lab, HostFacts]:
    """A lab that is open, and what it says of its host; closed again where it cannot open."""
    made = await made_lab(lab, campaign, settings)
    try:
        return made, await made.open()
    except BaseException:
        await made.close()
        raise


def check_fits(campaign: Campaign, lab: str) -> None:
    """Raises `UsageError` where a campaign needs more cores than the host of that lab has."""
    check_fits_host(campaign, *host_of(lab))


def why_too_small(
    request: RunCampaign | PlanCampaign, campaign: Campaign, lab: str, workspace: Workspace
) -> str:
    """Why the simulated lab stands in for one whose host has too few cores; empty if it has them.

    It does for a campaign that ships, where nobody named a lab. Raises `UsageError` where it does
    not, or has too few as well.
    """
    from workbench.descriptors.loading import is_shipped

    try:
        check_fits(campaign, lab)
    except UsageError as error:
        if request.lab is not None or not is_shipped(request.campaign, workspace=workspace):
            raise
        check_fits(campaign, SIMULATION)
        return why_simulated(error.what, error.remedy)
    return ""


def host_of(lab: str) -> tuple[float, str]:
    """Cores that the functions of a lab share, endless where it needs none, and what has them.

    Raises `UsageError` for options that the simulated lab does not know.
    """
    if loads_host(lab):
        return cores_here(), THIS_HOST
    if kind_of(lab) == SIMULATION:
        from workbench.labs.simulated.options import SimulationOptions  # with all of its queues

        return SimulationOptions.parse(lab.partition(":")[2]).host_cores, SIMULATED_HOST
    return math.inf, THIS_HOST


def cores_here() -> float:
    """Cores that this process may use."""
    return float(len(os.sched_getaffinity(0)))


# ------------------------------------------------------------------- the host


def noise_of(lab: str, campaign: Campaign, host: HostFacts) -> tuple[HostNoise | None, str]:
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


def what_changed(session: str, then: HostFacts, now: HostFacts) -> tuple[str, ...]:
    """Sentences on what has changed of a host. Raises `LabError` where it is another one.

    A profile says nothing of a host that it was not measured on (DESIGN.md, decision 5).
    """
    if then.lab != now.lab or _options(then) != _options(now):
        raise LabError(
            f"was measured on the lab {_shown_lab(then)}, and this is {_shown_lab(now)}",
            where=session,
            remedy="Begin a new session",
        )
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


def _options(facts: HostFacts) -> tuple[str, bool]:
    return facts.details.get(OPTIONS, ""), facts.is_emulated


def _shown_lab(facts: HostFacts) -> str:
    options, emulated = _options(facts)
    return f"{facts.lab}{options and f':{options}'}{' (emulated)' if emulated else ''}"


def refuse_other_images(session: str, then: HostFacts, now: HostFacts) -> None:
    """A session never mixes two digests of one image (decision 5)."""
    for template, digest in then.image_digests.items():
        other = now.image_digests.get(template, digest)
        if other != digest:
            raise LabError(
                f"the image of {template} is {short_digest(other)} now and was "
                f"{short_digest(digest)} when the session began",
                where=session,
                remedy="Bring the old image back, or start a new session",
            )


def refuse_other_definition(session: str, samples: Iterable[Sample], lab: Lab) -> None:
    """A session never mixes two definitions of a sample. Raises `LabError`."""
    if not isinstance(lab, DefinedLab):
        return
    others = sorted({one.generator for one in samples} - {lab.definition})
    if others:
        raise LabError(
            f"its samples are of {', '.join(others)}, and this version measures {lab.definition}: "
            "the simulation has changed, and figures of both do not belong together",
            where=session,
            remedy="What it holds can be read and asked as before; measure the rest in a new "
            "session of its campaign",
        )
