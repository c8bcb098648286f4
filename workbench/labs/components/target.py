"""A deployed target: its containers from the sink back to the source, and how they change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TypeVar

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError
from workbench.domain.logs import ComponentLog, quoted
from workbench.domain.parameters import Configuration, ParameterValue
from workbench.domain.topology import Readiness, Target, VnfTemplate
from workbench.labs.components import allotments, forwarding, mirroring, wiring
from workbench.labs.components.component import (
    Component,
    ComponentMaker,
    Limits,
    Outcome,
    run_within,
)
from workbench.labs.components.wiring import SINK, SOURCE

FILE_SIZES = "filesize_bytes"
"""Workload parameter that selects the file; its values become files in the sink."""
DEFAULT_SIZE = 10_000
MOVIES, QUALITY = "movies", "quality_mbps"
USUAL_QUALITY_MBPS = 1.0
"""Of movies, where a campaign does not say."""
SHARED_MEMORY = 64 << 20
READY_POLL_S = 0.05
RELOAD_S = 60.0
"""For which a function may take to read its files again."""
INITIALIZATION_S = 600.0
"""For which one command of a campaign may take: it may fill a cache or load rules."""

T = TypeVar("T")
Upstreams = Sequence[tuple[tuple[str, int], float]]
"""Host and port of what traffic goes on to, each with its share."""


@dataclass
class Deployed:
    """The containers of one target on a session's networks."""

    campaign: Campaign
    target: Target
    maker: ComponentMaker
    networks: Sequence[str]
    """From the source's side to the sink's; one more than there are routers."""
    host_cores: int
    pins: Mapping[str, tuple[int, ...]]
    """Cores by component; empty where the host has too few to keep them apart."""
    stages: list[list[Component]] = field(default_factory=list)
    """From the sink back to the source, the order in which they are started; instances that the
    next stage balances over stand side by side."""
    passive: list[Component] = field(default_factory=list)
    """Functions that get a copy of what reaches another component; they are started first."""
    uncharged: dict[str, str] = field(default_factory=dict)
    """By router: a sentence why its quota does not hold for what it forwards; empty where it does.
    """
    made: list[Component] = field(default_factory=list)
    """All that were made, so that those of a target that does not come up are removed, too."""

    @property
    def components(self) -> list[Component]:
        """All of them: passive ones, then from the sink back to the source."""
        return [*self.passive, *(component for stage in self.stages for component in stage)]

    def component(self, name: str) -> Component:
        return next(c for c in self.components if c.name == name)

    @property
    def entry(self) -> Component:
        """The component that the source speaks to."""
        return self.stages[-2][0]

    @property
    def mirrors(self) -> list[tuple[Component, Component]]:
        """Each passive function and the component whose ingress is copied to it."""
        behind = {vnf.name: to.name if to else SINK for vnf, to in self.target.copies}
        return [(c, self.component(behind[c.name])) for c in self.passive]

    def url(self, entry: Component, configuration: Configuration) -> str:
        host, port = entry.endpoint
        if self.campaign.load.unit == "streams":
            movies = round(configuration.parameter(MOVIES, 1))
            kbps = round(1e3 * configuration.parameter(QUALITY, USUAL_QUALITY_MBPS))
            return f"http://{host}:{port}/hls/?movies={movies}&kbps={kbps}"
        return f"http://{host}:{port}/bytes/{size_of(configuration)}"

    def allotted(self) -> dict[str, float]:
        cores = {
            c.name: wiring.allotted(c.cores, c.pinned, self.host_cores) for c in self.components
        }
        return {**cores, "host": float(self.host_cores)}

    def threads(self) -> dict[str, int]:
        return {c.name: c.threads for c in self.components if c.template.role == "function"}

    async def bring_up(self, configuration: Configuration) -> None:
        """Make, configure and start every container, sink first; each is ready in the end."""
        templates = {t.name: t for t in self.campaign.templates}
        stages = wiring.stages(self.target, templates)
        sizes = [DEFAULT_SIZE, *_sizes(self.campaign)]
        rows = [[(vnf.name, vnf.template) for vnf, _ in self.target.copies]]
        rows += [[(SINK, self.target.sink)]]
        rows += [[(vnf.name, vnf.template) for vnf in stage] for stage in reversed(stages)]
        rows += [[(SOURCE, self.target.source)]]
        # A passive function is on the first network, so that it can be asked whether it is ready.
        places = [(0,), *reversed(wiring.segments(stages, templates))]
        made = iter(
            await _together(
                *(
                    self._make(*named, [self.networks[place] for place in on], configuration, sizes)
                    for row, on in zip(rows, places, strict=True)
                    for named in row
                )
            )
        )
        self.stages = [[next(made) for _ in row] for row in rows]
        self.passive, self.stages = self.stages[0], self.stages[1:]
        # A source whose files name nobody starts beside the others.
        source = self.component(SOURCE)
        apart = [] if source.template.files else [source]
        await _together(
            self._begin_onward(configuration, apart),
            *(self._begin(component, (), configuration) for component in apart),
        )
        await self._mirror(self.components)
        await self._all_ready(self.components)
        await self._initialize()

    async def _begin_onward(
        self, configuration: Configuration, besides: Sequence[Component]
    ) -> None:
        """Start all but these from the sink on: files name the addresses that lie behind."""
        for component, upstreams in self._with_upstreams():
            if component not in besides:
                await self._begin(component, upstreams, configuration)

    async def _begin(
        self, component: Component, upstreams: Upstreams, configuration: Configuration
    ) -> None:
        component.settings = wiring.settings(configuration, component.name, component.template)
        component.files = _files(component, upstreams, component.settings)
        if component.files:
            await component.put(component.files)
        await self._start(component)

    async def allocate(self, configuration: Configuration) -> None:
        """Change quotas in place. A function whose files change by that reads them again where
        its parameters say so, and starts again otherwise."""
        changed: list[Component] = []
        for component, upstreams in self._with_upstreams():
            await self._limit(component, configuration)
            settings = wiring.settings(configuration, component.name, component.template)
            files = _files(component, upstreams, settings)
            if files != component.files:
                # Files that only other settings change, all of which are read again on the go.
                same = _files(component, upstreams, component.settings) == component.files
                reloads = same and _reloads(component, settings)
                component.files, component.settings = files, settings
                await component.put(files)
                if reloads:
                    await self._reload(component)
                else:
                    await self._start(component, again=True)
                changed.append(component)
        await self._mirror(changed)
        await self._all_ready(changed)
        await self._initialize()

    async def _mirror(self, started: Sequence[Component]) -> None:
        """Copy what is to be copied, where an end of a mirror has started: it is a new one then."""
        for copied, passive in mirroring.groups(self.mirrors):
            if any(component in started for component in (copied, *passive)):
                await mirroring.mirror(copied, passive)

    def _with_upstreams(self) -> Iterator[tuple[Component, Upstreams]]:
        """Every component, sink first, with the endpoints behind it and their shares.

        These are read when it is the component's turn: what lies behind it has started by then.
        """
        onward = dict(self.target.onward)
        onward[SOURCE] = ((self.entry.name, 1.0),)
        for component in self.components:
            behind = onward.get(component.name, ())  # of the sink and of passive ones: nothing
            yield component, [(self.component(name).endpoint, share) for name, share in behind]

    async def written(self) -> tuple[ComponentLog, ...]:
        """What its components wrote since this was asked last, from the source's side."""
        logs = await asyncio.gather(*(c.written() for c in reversed(self.components)))
        return tuple(log for log in logs if log.lines)

    async def last_words(self) -> str:
        """The latest line of its functions' logs, for a sentence."""
        functions = [c for c in self.components if c.template.role == "function"]
        lines = await asyncio.gather(*(c.last_line() for c in functions))
        said = [(ln.at or 0.0, c.name, ln) for c, ln in zip(functions, lines, strict=True) if ln]
        if not said:
            return "its functions wrote no log"
        _, name, line = max(said, key=itemgetter(0))
        return f"the last line of {name}'s log: {quoted(line.whole)}"

    async def remove(self) -> None:
        every = {id(component): component for component in (*self.components, *self.made)}
        await _together(*(component.remove() for component in every.values()))
        self.passive, self.stages, self.made = [], [], []

    async def _make(
        self,
        name: str,
        template_name: str,
        networks: Sequence[str],
        configuration: Configuration,
        sizes: Sequence[int],
    ) -> Component:
        template = self.campaign.template(template_name)
        cores = wiring.vcpu(configuration, name, template)
        pinned = self._pinned(name, template, cores)
        memory_bytes = allotments.memory(configuration, name)
        component = await self.maker.make(
            name,
            template,
            networks,
            Limits(cores, pinned, memory_bytes),
            {"FILESIZES": " ".join(map(str, sorted(set(sizes))))} if name == SINK else {},
            SHARED_MEMORY + 2 * sum(sizes),
        )
        self.made.append(component)
        component.cores, component.pinned = cores, pinned
        component.memory_bytes = memory_bytes
        component.bandwidth_mbps = allotments.bandwidth(configuration, name)
        component.disk_mbps = allotments.disk(configuration, name)
        component.threads = self._threads(component)
        return component

    async def _start(self, component: Component, *, again: bool = False) -> None:
        await component.start(again=again)
        await allotments.hold(component)
        if component.template.passage == "router":
            self.uncharged[component.name] = await forwarding.charge(component)

    async def _reload(self, component: Component) -> None:
        outcome = await run_within(component, component.template.reload, RELOAD_S)
        given = ", ".join(f"{name}={value}" for name, value in component.settings.items())
        where = f"container {component.name} ({component.template.name})"
        if outcome is None:
            raise LabError(
                f"its `reload` has not ended in {RELOAD_S:g} s, for {given}",
                where=where,
                remedy="Correct `reload` in the template: it ends, and what it starts lets go of "
                "its output",
            )
        if outcome.exit_code != 0:
            raise LabError(
                f"it did not take {given}: {outcome.said}",
                where=where,
                remedy="Leave these values out of the campaign's function_parameters",
            )

    async def _limit(self, component: Component, configuration: Configuration) -> None:
        cores = wiring.vcpu(configuration, component.name, component.template)
        if cores != component.cores:
            pinned = self._pinned(component.name, component.template, cores)
            await component.limit_cpu(cores, pinned)
            component.cores, component.pinned = cores, pinned
            component.threads = self._threads(component)
        await allotments.change(component, configuration)

    def _pinned(self, name: str, template: VnfTemplate, cores: float) -> tuple[int, ...]:
        pinned = tuple(self.pins.get(name, ()))
        # Of the cores that its largest allotment needs, a function gets those that this one does.
        return pinned[: wiring.worker_threads(cores)] if template.role == "function" else pinned

    def _threads(self, component: Component) -> int:
        if component.template.role == "function":
            known = wiring.uses_threads(component.template)
            return wiring.worker_threads(component.cores) if known else 0
        return len(component.pinned) or min(wiring.TRAFFIC_CORES, self.host_cores)

    async def _all_ready(self, components: Sequence[Component]) -> None:
        await _together(*(self._ready(component) for component in components))

    async def _ready(self, component: Component) -> None:
        readiness = component.template.readiness
        deadline = time.monotonic() + readiness.timeout_s
        inside = readiness.kind == "command"
        asked = component if inside else self.component(SOURCE)
        argv = probe_argv(readiness, *component.endpoint)
        said = f"{argv[0]} has not ended"
        while True:
            outcome = await run_within(asked, argv, deadline - time.monotonic())
            if outcome is not None:
                if outcome.exit_code == 0:
                    return
                said = outcome.said
            if death := await component.death():
                raise death
            if time.monotonic() > deadline:
                raise LabError(
                    f"it was not ready in {readiness.timeout_s:g} s: {said}; "
                    f"{await component.last_words()}",
                    where=f"{component.place} ({component.template.name})",
                    remedy="Check its readiness and its port in the template",
                )
            await asyncio.sleep(READY_POLL_S)

    async def _initialize(self) -> None:
        """The campaign's commands for each new configuration, in the containers they name."""
        for initialization in self.campaign.initialization:
            for component in self.components:
                if component.name == initialization.manager:
                    outcome = await run_within(component, initialization.command, INITIALIZATION_S)
                    if outcome is None or outcome.exit_code != 0:
                        raise LabError(
                            f"its initialization command {' '.join(initialization.command)!r} "
                            f"{_failure(outcome, INITIALIZATION_S)}",
                            where=component.place,
                            remedy="Correct it in the campaign",
                        )


def _failure(outcome: Outcome | None, seconds: float) -> str:
    return f"has not ended in {seconds:g} s" if outcome is None else f"failed: {outcome.said}"


async def _together(*steps: Awaitable[T]) -> list[T]:
    """Raises the first error of them once all have ended: none goes on behind whoever hears it."""
    outcomes = await asyncio.gather(*steps, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


def _files(
    component: Component,
    upstreams: Upstreams,
    settings: Mapping[str, ParameterValue],
) -> dict[str, str]:
    endpoints = [endpoint for endpoint, _ in upstreams]
    shares = [share for _, share in upstreams]
    return wiring.render(component.template, endpoints, component.threads, settings, shares)


def _reloads(component: Component, settings: Mapping[str, ParameterValue]) -> bool:
    """Whether no setting that differs needs a new start."""
    return all(
        parameter.change == "reload"
        for parameter in component.template.function_parameters
        if settings[parameter.name] != component.settings[parameter.name]
    )


def probe_argv(readiness: Readiness, host: str, port: int) -> tuple[str, ...]:
    """A program whose exit code says whether a component serves."""
    match readiness.kind:
        case "command":
            return readiness.command
        case "tcp":
            return ("nc", "-z", "-w", "1", host, str(port))
        case "http":
            url = f"http://{host}:{port}{readiness.path}"
            return (
                *("curl", "--silent", "--show-error", "--fail", "--max-time", "2"),
                *("--output", "/dev/null", url),
            )


def size_of(configuration: Configuration) -> int:
    """Bytes of the file that a configuration asks for."""
    return int(configuration.parameter(FILE_SIZES, DEFAULT_SIZE))


def _sizes(campaign: Campaign) -> list[int]:
    return [int(value) for p in campaign.workload if p.key == FILE_SIZES for value in p.values]
