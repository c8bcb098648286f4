"""Two requests on a path decide how it can be measured (METHOD.md 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, TrafficError
from workbench.labs.components.component import Component
from workbench.measuring.copies import CAPTURE_LOSS
from workbench.plugins import make
from workbench.traffic.base import Generator, PathFacts, unable

GENERATORS = ("oha", "steady", "hey", "locust")
"""By preference, where a campaign names none; the first that fits drives."""
PLAYERS = "hls"
"""Of streams."""


REPORT = "%{http_code} %{size_download} %{num_connects} %header{content-encoding} %{redirect_url}"
SEPARATOR = "\n"


@dataclass(frozen=True)
class GeneratorChoice:
    """A generator that is installed beside the source and fits the path."""

    generator: Generator
    version: str
    passed_over: tuple[str, ...]
    """A sentence about the generators that would have been preferred; none where this one is."""

    @property
    def title(self) -> str:
        return f"{self.generator.name} {self.version}"


def request_argv(url: str, timeout_s: float) -> tuple[str, ...]:
    """curl asks twice in one run, so that it shows whether the connection outlives an answer."""
    return (
        *("curl", "--silent", "--show-error", "--max-time", f"{timeout_s:g}"),
        *("--header", "Accept-Encoding: gzip", "--write-out", REPORT + SEPARATOR),
        *("--output", "/dev/null", "--output", "/dev/null", url, url),
    )


def parse_report(text: str) -> PathFacts:
    """Facts from what curl wrote out. Raises `ValueError` if two requests were not answered."""
    first, second = (line.split(" ", 4) for line in text.split(SEPARATOR)[:2])
    status, size, _, encoding, redirect = first
    _, _, connections, _, _ = second
    return PathFacts(
        status=int(status),
        body_bytes=int(size),
        keep_alive=int(connections) == 0,
        redirects=bool(redirect.strip()),
        compresses=bool(encoding.strip()),
    )


def describe(facts: PathFacts) -> str:
    """A sentence for the screen and the session."""
    closing = "keeps the connection open" if facts.keep_alive else "closes the connection"
    more = [" redirects"] * facts.redirects + [" compresses"] * facts.compresses
    return f"answers {facts.status} with {facts.body_bytes} bytes, {closing}{','.join(['', *more])}"


async def look(source: Component, url: str, timeout_s: float, target: str) -> PathFacts:
    """What the path does. Raises `LabError` if it does not serve."""
    outcome = await source.run(request_argv(url, timeout_s))
    try:
        facts = parse_report(outcome.stdout)
    except ValueError:
        facts = None
    if facts is None or outcome.exit_code != 0:
        raise LabError(
            f"the first request through it was not answered: {outcome.said}",
            where=f"target {target}",
            remedy="Look at the configuration files of its functions",
        )
    if facts.status >= 400:
        raise LabError(
            f"the first request through it was answered with status {facts.status}",
            where=f"target {target}",
            remedy="Look at the configuration files of its functions",
        )
    return facts


def generators(campaign: Campaign) -> tuple[Generator, ...]:
    """Those that are asked in turn: the one that the campaign names, else all by preference."""
    able = (PLAYERS,) if campaign.load.unit == "streams" else GENERATORS
    names = (campaign.generator,) if campaign.generator else able
    return tuple(make("traffic", name) for name in names)


def packages(campaign: Campaign) -> tuple[str, ...]:
    """Debian packages of the generators that can offer the load of a target, whatever its path."""
    if campaign.load.unit != "requests":  # the image of a source of packets is made for one program
        return ()
    most = min((plan.primary.high for plan in campaign.targets), default=0.0)
    able = [
        generator
        for generator in generators(campaign)
        if unable(generator, campaign.load, wanted_kpis(campaign), most) is None
    ]
    # A plug-in that was made for 0.1 names none: then the image has what the workbench's own need.
    named = (getattr(generator, "packages", ()) for generator in able)
    return tuple(sorted({package for packages in named for package in packages}))


async def choose(
    source: Component,
    facts: PathFacts,
    campaign: Campaign,
    most: float,
    later: Mapping[str, str],
) -> GeneratorChoice:
    """The generator that the campaign names, or the first that is there and fits.

    `most` is the largest `wl` of the target; `later` says how generators come to be there that
    are not, by name. Raises `TrafficError` with every reason.
    """
    passed_over: list[str] = []
    for generator in generators(campaign):
        name = generator.name
        reason = unable(generator, campaign.load, wanted_kpis(campaign), most)
        reason = reason or generator.unfit(facts)
        if reason is None:
            outcome = await source.run(generator.version_argv())
            if outcome.exit_code == 0:
                version = generator.parse_version(outcome.stdout)
                return GeneratorChoice(generator, version, _instead(name, passed_over))
            reason = f"{name} is not beside the source"
            reason += f", and {later[name]}" if name in later else ""
        passed_over.append(reason)
    if campaign.generator:
        raise TrafficError(
            f"{campaign.generator} cannot measure this: {passed_over[0]}",
            remedy="Name another `generator` in `load`, or none: the pre-flight chooses then",
        )
    raise TrafficError(
        f"no generator can offer {campaign.load.key} load here: {'; '.join(passed_over)}",
        remedy="Change `load`, or build the images again (`workbench images build`), oha with them",
    )


def _instead(name: str, passed_over: list[str]) -> tuple[str, ...]:
    """Why it is not the generator that is preferred, as a sentence for the session."""
    return (f"this session measures with {name}: {'; '.join(passed_over)}",) if passed_over else ()


def wanted_kpis(campaign: Campaign) -> tuple[str, ...]:
    """The KPIs that a generator has to state for a campaign."""
    asked = (campaign.kpi, *((campaign.sla.kpi,) if campaign.sla else ()))
    return tuple(kpi for kpi in asked if kpi != CAPTURE_LOSS)
