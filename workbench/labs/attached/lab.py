"""`AttachedLab`: the protocol of a lab over functions that somebody else runs, here or on hosts
reached by SSH."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import structlog

from workbench.domain.attaching import ATTACH, Attached
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, LabGone, LabStopped, UsageError
from workbench.domain.lab import EMULATED, Check, HostFacts
from workbench.domain.logs import ComponentLog
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.topology import Placement, Target
from workbench.labs.attached.attached_functions import AttachedFunction, RunningFunction
from workbench.labs.attached.command_journal import CommandJournal
from workbench.labs.attached.commanded_function import CommandedFunction
from workbench.labs.attached.domain_function import DomainFunction, FoundDomain, find_domain
from workbench.labs.attached.finding import FoundFunction, find
from workbench.labs.attached.journal import AGAIN, Journal, OwnedJournal
from workbench.labs.attached.load_guard import Guard
from workbench.labs.attached.own_settings import settings_of
from workbench.labs.attached.remote_finding import RemoteFunctionFound
from workbench.labs.attached.remote_hosts import RemoteHosts
from workbench.labs.attached.remote_journal import RemoteJournal
from workbench.labs.attached.source import HostSource, make_source
from workbench.labs.base import DeployedTarget, LabCosts, LabSettings, OnUsage
from workbench.labs.components import competing, driving, preflight, wiring
from workbench.labs.components.preflight import GeneratorChoice
from workbench.labs.components.target import FILE_SIZES, size_of
from workbench.labs.components.watching import DriveWatch
from workbench.labs.netns import groups
from workbench.labs.netns.lab import BASICS, lacking, programs_of
from workbench.labs.netns.packages import layer
from workbench.labs.programs import Listener
from workbench.measuring.records import Drive
from workbench.probes import host, recorders
from workbench.probes.child_ending import uncancelled
from workbench.probes.remote_shell import QUIET_S
from workbench.traffic.base import Offer, PathFacts

log = structlog.get_logger(__name__)

JOURNALS: tuple[type[OwnedJournal], ...] = (Journal, CommandJournal, RemoteJournal)
"""Of what this lab changes: limits here, what commands set, limits of other hosts."""
COSTS = LabCosts(deploy_s=1.0, allocate_s=0.01, drive_overhead_s=0.3)
BY_PROGRAM = ("set-property", "command")
"""How resources are set that a program sets."""
LOOK_S = 0.5
"""Between two looks whether everything is still as it was found, while load is driven."""


class AnySource(Protocol):
    """Where load comes from: a process of this host, or whatever a lab has instead."""

    @property
    def threads(self) -> int:
        """That a generator may use there."""
        ...

    async def remove(self) -> None: ...


@dataclass
class AttachedTarget:
    """What a target is made of while it is measured."""

    target: Target
    functions: list[RunningFunction]
    source: AnySource
    path: PathFacts
    choice: GeneratorChoice

    @property
    def entry(self) -> RunningFunction:
        return self.functions[0]


class AttachedLab:
    """Functions that run already, and a source of ours beside them.

    Nothing of theirs is made, started, configured or removed. Their CPU and memory limits are
    changed where the campaign says so, and put back whenever a target is done with.

    Parameters
    ----------
    campaign : its `attached` says how functions are found.
    settings : `session` is in the names of the source's control group and of the journal.
    """

    name = ATTACH
    placements: tuple[Placement, ...] = ("inline",)

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        self._campaign = campaign
        self._settings = settings
        self._attached = {one.name: one for one in campaign.attached}
        self._cores = os.cpu_count() or 1
        self._packages: Path | None = None
        self._open = False
        self._journal = Journal.new(settings.session)
        self._commands = CommandJournal.new(settings.session)
        self._remote = RemoteHosts(settings.session)
        self._images: dict[str, str] = {}
        self._domains: dict[str, FoundDomain] = {}
        self._source: AnySource | None = None
        self._standing: AttachedTarget | None = None
        self._awaited: Target | None = None
        """A target whose functions were gone when they were last looked for."""
        self._news: list[str] = []
        """What was put back that others had left, or that others had changed."""

    @property
    def costs(self) -> LabCosts:
        return COSTS

    def known_as(self, component: str) -> dict[str, str]:
        """The container that it was found by."""
        one = self._attached.get(component)
        return {"container": one.found_at} if one and one.found_by == "container" else {}

    def clock(self) -> float:
        return time.monotonic()

    async def open(self) -> HostFacts:
        if short := lacking():
            raise LabError(short[0], remedy=short[1])
        competing.refuse(self._campaign, self.name)
        # Sessions of this process are reaped when it is their turn: one may be measuring now.
        await Journal.reap(Journal.sessions_here(), strict=True)
        await CommandJournal.reap(CommandJournal.sessions_here())
        await RemoteJournal.reap(RemoteJournal.sessions_here())
        targets = [plan.target for plan in self._campaign.targets]
        for name in dict.fromkeys(vnf.name for target in targets for vnf in target.vnfs):
            found: FoundFunction | RemoteFunctionFound | FoundDomain
            if self._of(name).found_by == "domain":
                found = self._domains[name] = await find_domain(self._of(name))
            elif self._of(name).host:
                template = self._campaign.template(name)
                found = (await self._remote.function(self._of(name), template)).found
            else:
                found = await find(self._of(name))
            if found.image:
                self._images[name] = found.image
        self._check_cores(self._room)
        await self._unpack()
        return self._host_facts()

    def _room(self, name: str) -> tuple[str, float]:
        """The host of a function, and its cores."""
        if domain := self._domains.get(name):
            return f"{domain.place} (vCPUs are not added: who takes them out again?)", domain.vcpus
        there = self._of(name).host
        return (there, self._remote.facts[there].cores) if there else ("this host", self._cores)

    def _host_facts(self) -> HostFacts:
        """Of this host; of another one where all functions are on that."""
        hosts = {self._of(name).elsewhere for name, _ in self._given()}
        here = HostFacts(
            lab=self.name,
            cores=self._cores,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            kernel=platform.release(),
            cpu_model=host.read_cpu_model(),
            cgroup=groups.version(),
            engine="none",
            image_digests=dict(self._images),
            details={
                **host.read_details(),
                "source": "a process beside the functions, on the same cores and network",
                **self._remote.described(),
                **self._emulated(),
            },
        )
        if len(hosts) > 1 or "" in hosts:
            return here
        name = hosts.pop()
        domains = [one for key, one in self._domains.items() if self._of(key).elsewhere == name]
        if domains:
            return self._of_libvirt(here, domains[0])
        there = self._remote.facts[name]
        source = f"a process on another host: {here.cores} cores, {here.cpu_model}"
        return replace(
            here,
            cores=there.cores,
            memory_bytes=there.memory_bytes,
            kernel=there.kernel,
            cpu_model=there.cpu_model,
            cgroup=there.cgroup,
            details={**self._remote.described(), "source": source},
        )

    def _emulated(self) -> dict[str, str]:
        emulated = [one.place for one in self._domains.values() if one.is_emulated]
        return {EMULATED: f"TCG of QEMU ({', '.join(emulated)})"} if emulated else {}

    def _of_libvirt(self, here: HostFacts, domain: FoundDomain) -> HostFacts:
        """Of another host, by what libvirt tells of it."""
        return replace(
            here,
            cores=domain.host.cores,
            memory_bytes=domain.host.memory_bytes,
            kernel="not told by libvirt",
            cpu_model=domain.host.cpu_model,
            details={
                "source": f"a process on another host: {here.cores} cores, {here.cpu_model}",
                **self._emulated(),
            },
        )

    async def _unpack(self) -> None:
        """The source's programs; the lab is open then."""
        template = self._campaign.template(self._campaign.targets[0].target.source)
        self._packages = await layer(
            (*BASICS, *template.packages, *preflight.packages(self._campaign)),
            Listener(self._settings.say, lambda line: log.info("packages", line=line)),
        )
        self._open = True

    def _given(self) -> Iterator[tuple[str, float]]:
        """Functions, and the cores that configurations give them; 0: those that they have."""
        for plan in self._campaign.targets:
            for configuration in self._campaign.configurations(plan):
                for vnf in plan.target.vnfs:
                    yield vnf.name, configuration.vcpu(vnf.name)

    def _check_cores(self, room: Callable[[str], tuple[str, float]]) -> None:
        """Raise `UsageError`, before any load, for more cores than there are.

        Parameters
        ----------
        room : of a function, the host that it runs on and the cores of that.
        """
        for name, cores in self._given():
            host, has = room(name)
            if cores > has:
                raise UsageError(
                    f"gives {name} {cores:g} cores, and {host} has {has:g}",
                    where=f"campaign {self._campaign.name}",
                    remedy="Lower the resource parameters",
                )

    def _of(self, name: str) -> Attached:
        if name not in self._attached:
            raise UsageError(
                f"{name} does not run already, and nothing is deployed beside what does",
                where=f"campaign {self._campaign.name}",
                remedy="Name it under `attach`",
            )
        return self._attached[name]

    # ------------------------------------------------------------------ a target

    async def deploy(
        self, target: Target, configuration: Configuration, block: int = 0
    ) -> DeployedTarget:
        """Find the functions of a target as they are, and look at the path."""
        del block  # nothing is started again but the source
        if not self._open:
            raise LabError("the lab is not open")
        await self.undeploy()
        try:
            with self._speaking(target):
                return await self._stand(target, configuration)
        except BaseException:
            await self._leave()
            raise

    async def _stand(self, target: Target, configuration: Configuration) -> DeployedTarget:
        functions = [await self._function(vnf.name) for vnf in target.vnfs]
        for function in functions:
            function.claim()
        url = self._url(functions[0], functions[0].attached.url, configuration)
        most = self._campaign.target_plan(target.name).primary.high
        source, path, choice = await self._load_from(target, functions[0], url, most)
        self._standing = AttachedTarget(target, functions, source, path, choice)
        return DeployedTarget(
            target.name,
            choice.title,
            path.keep_alive,
            f"{url} {preflight.describe(path)}",
            (*self._told(), *choice.passed_over, *self._unknown(functions)),
        )

    async def _load_from(
        self, target: Target, entry: RunningFunction, url: str, most: float
    ) -> tuple[AnySource, PathFacts, GeneratorChoice]:
        """Where the load comes from, what it found, and what sends it.

        Parameters
        ----------
        most : the largest `wl`.
        """
        template = self._campaign.template(target.source)
        self._source = source = await make_source(
            self._settings.session, self._packages, template, programs_of(template)
        )
        source.threads = min(wiring.TRAFFIC_CORES, self._cores)
        path = await self._look(source, url, entry, target)
        choice = await preflight.choose(source, path, self._campaign, most, {})
        return source, path, choice

    async def _function(self, name: str) -> RunningFunction:
        attached = self._of(name)
        try:
            if attached.found_by == "domain":
                domain = await find_domain(attached)
                kept: dict[str, Any] = {"address": domain.address, "attached": attached}
                template = self._campaign.template(name)
                kept |= {"found": domain, "commands": self._commands}
                return DomainFunction(name, template, **kept)
            if attached.host:
                remote = await self._remote.function(attached, self._campaign.template(name))
                self._refuse_another_image(name, remote.found)
                return remote
            found = await find(attached)
        except LabStopped:
            raise
        except LabError as error:
            raise as_wanted(attached, error) from error
        self._refuse_another_image(name, found)
        return self._here(name, attached, found)

    def _here(self, name: str, attached: Attached, found: FoundFunction) -> AttachedFunction:
        """A function of this host, whose resources are set as its campaign says."""
        template = self._campaign.template(name)
        kept: dict[str, Any] = {"address": found.address, "pid": found.pid, "probe": found.probe}
        kept |= {"attached": attached, "found": found, "journal": self._journal}
        if attached.resources not in BY_PROGRAM:
            return AttachedFunction(name, template, **kept)
        settings = settings_of(attached, found.place, found.folders.cpu.name)
        return CommandedFunction(name, template, own=settings, commands=self._commands, **kept)

    def _refuse_another_image(self, name: str, found: FoundFunction | RemoteFunctionFound) -> None:
        if found.image != self._images.get(name, ""):
            raise LabStopped(
                "it was made again from another image: what was measured before says nothing of it",
                where=found.place,
                remedy="Profile it in a new session",
            )

    async def _look(
        self, source: HostSource, url: str, entry: RunningFunction, target: Target
    ) -> PathFacts:
        try:
            timeout_s = self._campaign.windows.request_timeout_s
            return await preflight.look(source, url, timeout_s, target.name)
        except LabError as error:
            error.remedy = f"See that {entry.place} serves {url}: `curl -i {url}` on this host"
            raise as_wanted(entry.attached, error) from error

    def _url(self, function: RunningFunction, url: str, configuration: Configuration) -> str:
        size = str(size_of(configuration))
        return url.replace("{address}", function.address).replace("{filesize}", size)

    def _told(self) -> list[str]:
        untold = [said for kind in JOURNALS for said in kind.untold.take()]
        news, self._news = [*untold, *self._news], []
        return news

    def _unknown(self, functions: list[RunningFunction]) -> list[str]:
        """What this lab cannot know of the target, as sentences."""
        said = self._remote.clocks()
        if not all(f.attached.elsewhere for f in functions):
            said.append(
                f"source and functions share this host's {self._cores} cores, and so does whatever "
                "else runs here: they disturb each other"
            )
        if away := [
            f"{f.name} ({f.attached.elsewhere})" for f in functions if f.attached.elsewhere
        ]:
            said.append(
                f"{', '.join(away)} and the source are on different hosts: the network between "
                "them is measured with them, and what else runs there disturbs them"
            )
        if not functions[0].attached.past:
            said.append(
                "nobody said where the load ends (`past`): what lies behind the functions is not "
                "counted, and no sample is blamed on it or cleared of it"
            )
        sharing = [f.name for f in functions if not f.own_network]
        if sharing:
            said.append(
                f"{', '.join(sharing)} and others use the network of their host: what each of "
                "them sends and receives is not known, and stands as 0"
            )
        return said

    async def allocate(self, configuration: Configuration) -> None:
        """Nothing yet: a running system is limited while load is driven, and not while it waits."""
        del configuration

    # ------------------------------------------------------------------ load

    async def drive(self, point: OperatingPoint, seconds: float, on_usage: OnUsage) -> Drive:
        async with self._on_target() as standing:
            if passed := self._exceeded(standing, point.wl):
                raise LabStopped(
                    f"{passed}: nothing was sent",
                    where=standing.entry.place,
                    remedy="Lower the range of the primary workload parameter",
                )
            try:
                for function in standing.functions:
                    await function.allocate(point.configuration)
                url = standing.entry.attached.url
                return await self._offer(standing, url, point, seconds, on_usage)
            finally:
                await self._put_back()

    async def drive_bypass(
        self, point: OperatingPoint, seconds: float, on_usage: OnUsage
    ) -> Drive | None:
        async with self._on_target() as standing:
            past = standing.entry.attached.past
            if not past or self._exceeded(standing, point.wl):
                return None
            return await self._offer(standing, past, point, seconds, on_usage)

    def _exceeded(self, standing: AttachedTarget, wl: float) -> str:
        """Which function would get more than it may ever be loaded with; empty: none."""
        for function in standing.functions:
            most = function.attached.max_load
            if most and wl > most:
                return f"{wl:g} is more than {most:g}, the max_load of {function.name}"
        return ""

    async def _offer(
        self,
        standing: AttachedTarget,
        url: str,
        point: OperatingPoint,
        seconds: float,
        on_usage: OnUsage,
    ) -> Drive:
        sized = FILE_SIZES in point.configuration.workload
        size = size_of(point.configuration) if sized else standing.path.body_bytes
        offer = Offer(
            self._url(standing.entry, url, point.configuration),
            self._campaign.load,
            point.wl,
            seconds,
            standing.path.keep_alive,
            self._campaign.windows.request_timeout_s,
            size,
            driving.RESULT_PATH,
            standing.source.threads,
        )
        load = await self._load(standing, offer, point.configuration, on_usage)
        drive = await self._watched(load, standing, point.configuration)
        for function in standing.functions:
            drive = function.told(drive)
        return drive

    async def _load(
        self,
        standing: AttachedTarget,
        offer: Offer,
        configuration: Configuration,
        on_usage: OnUsage,
    ) -> Coroutine[Any, Any, Drive]:
        """What sends an offer, and counts meanwhile."""
        del configuration
        assert isinstance(standing.source, HostSource)
        allotted = {f.name: f.allotted(self._cores) for f in standing.functions}
        watch = DriveWatch(
            [standing.source, *standing.functions],
            {**allotted, "source": float(self._cores), "host": float(self._cores)},
            {},
            self._settings.own_cpu_s,
            await recorders.asked_for(self._campaign.evidence, self._campaign.windows.warmup_s),
        )
        return driving.drive(watch, standing.choice, offer, on_usage)

    async def _watched(
        self,
        load: Coroutine[Any, Any, Drive],
        standing: AttachedTarget,
        configuration: Configuration,
    ) -> Drive:
        """Drive, and stop as soon as a guard breaks or a function is not what it was."""
        entry = standing.entry
        watchers = [asyncio.create_task(_look_after(standing.functions))]
        if entry.attached.guard is not None and entry.attached.job is None:
            guard = Guard(
                entry.attached.guard,
                self._url(entry, entry.attached.url, configuration),
                entry.place,
                self._campaign.windows.request_timeout_s,
            )
            watchers.append(asyncio.create_task(guard.watch()))
        driven = asyncio.create_task(load)
        try:
            await asyncio.wait((driven, *watchers), return_when=asyncio.FIRST_COMPLETED)
            for watcher in watchers:
                if watcher.done():
                    await _first_cause(watcher, standing.functions)
            return await driven
        finally:
            tasks = (driven, *watchers)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def written(self) -> tuple[ComponentLog, ...]:
        return ()  # logs of a running system may hold what is nobody else's business

    # ------------------------------------------------------------------ the way out

    async def undeploy(self) -> None:
        """Put the limits back and end the source. Where functions were gone, raises `LabGone`
        until they are there again."""
        await self._leave()
        if self._awaited is not None:
            for vnf in self._awaited.vnfs:
                await self._function(vnf.name)
            self._awaited = None

    async def _leave(self) -> None:
        self._standing = None
        source, self._source = self._source, None
        try:
            if source is not None:
                await source.remove()
        finally:
            await self._put_back()

    async def _put_back(self) -> None:
        """Limits as they were; what others changed meanwhile is told with the next deployment.

        Raises `LabGone` or `LabStopped` with what is left changed where another host cannot be
        asked; it is tried again whenever this lab is asked for anything.
        """
        # Not in a thread: who is cancelled must not go before it is done, and it takes 1 ms.
        try:
            said = self._journal.restore()
            self._news += [one for one in said if not one.endswith(AGAIN)]
        finally:
            try:
                await uncancelled(self._put_back_by_commands())
            finally:
                await uncancelled(self._put_back_there())
        for function in self._standing.functions if self._standing else ():
            function.claim()

    async def _put_back_by_commands(self) -> None:
        await self._told_of(self._commands.restore())

    async def _put_back_there(self) -> None:
        await self._told_of(self._remote.put_back())

    async def _told_of(self, way_back: Coroutine[Any, Any, Sequence[str]]) -> None:
        try:
            said = await way_back
        except LabError as error:
            log.error("limits were not put back", error=str(error))
            raise self._as_all_want(error) from error
        self._news += [one for one in said if not one.endswith(AGAIN)]

    def _as_all_want(self, error: LabError) -> LabError:
        """The run waits where any of its functions is to be waited for."""
        waits = any(one.when_wrong == "wait" for one in self._campaign.attached)
        kind = LabGone if waits else LabStopped
        return kind(error.what, where=error.where, remedy=error.remedy)

    async def close(self) -> None:
        self._awaited, self._open = None, False
        try:
            await self._left_for_good()
        finally:
            await self._remote.close()

    async def _left_for_good(self) -> None:
        """A host that was silent a moment ago is asked again."""
        for last in (False, True):
            try:
                return await self._leave()
            except LabError as error:
                log.error("limits were not put back", error=str(error))
            if not last:
                await asyncio.sleep(QUIET_S)
        return None

    @asynccontextmanager
    async def _on_target(self) -> AsyncIterator[AttachedTarget]:
        if self._standing is None:
            raise LabError("no target stands")
        standing = self._standing
        with self._speaking(standing.target):
            try:
                yield standing
            except (LabGone, LabStopped):
                await self._leave()
                raise

    @contextmanager
    def _speaking(self, target: Target) -> Iterator[None]:
        """Remembers that functions are gone, and turns what the kernel refuses into sentences."""
        try:
            yield
        except LabGone:
            self._awaited = target
            raise
        except (OSError, EOFError) as error:
            raise LabError(f"the kernel refused: {error}", where=f"target {target.name}") from error

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        if short := lacking():
            return (Check("running systems", "warning", *short),)
        return (Check("running systems", "ok", "can be attached: see `workbench discover`"),)

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        """Put back the limits that dead sessions left; a sentence about each."""
        return tuple([said for kind in JOURNALS for said in await kind.reap(alive)])


def as_wanted(attached: Attached, error: LabError) -> LabError:
    """The error as its descriptor wants it taken: the campaign waits, or ends."""
    kind = LabGone if attached.when_wrong == "wait" else LabStopped
    return kind(error.what, where=error.where, remedy=error.remedy)


async def _first_cause(watcher: asyncio.Task[None], functions: list[RunningFunction]) -> None:
    """Raise what a watcher has raised, or what it comes of: a guard breaks too where its function
    has just ended."""
    try:
        await watcher  # it ends only by raising
    except LabError:
        for function in functions:
            if trouble := await function.death():
                raise trouble from None
        raise


async def _look_after(functions: list[RunningFunction]) -> None:
    """Look until one of them is not what it was. Raises what `trouble` says."""
    while True:
        await asyncio.sleep(LOOK_S)
        for function in functions:
            if trouble := await function.look():
                raise trouble
