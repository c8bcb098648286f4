"""A fake `Client` that tells a real story: events of domain objects, folded by the real view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fake_recording import told
from textual._context import visible_screen_stack
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from workbench import plugins
from workbench.domain.campaign import Campaign, SamplingPlan, TargetPlan
from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.events import (
    CampaignPlanned,
    ConfigurationFinished,
    ConfigurationStarted,
    Event,
    Fact,
    InfluenceMeasured,
    LogWritten,
    ModelFitted,
    Noted,
    PointAsked,
    Progress,
    RunContinued,
    RunFinished,
    RunPaused,
    RunStarted,
    SampleTaken,
    SessionCreated,
    StopRequested,
    TargetDeployed,
    TargetModelled,
    Tick,
    UsageTick,
)
from workbench.domain.export_requests import ExportFormat, ListFormats, SessionFormats
from workbench.domain.housekeeping import (
    DeleteSession,
    DuplicateSession,
    RenameSession,
    RestoreSession,
    Trashed,
)
from workbench.domain.lab import HostFacts
from workbench.domain.logs import ComponentLog, WrittenLine
from workbench.domain.messages import (
    CampaignChoice,
    CampaignList,
    ContinueRun,
    Done,
    EngineStatus,
    EventPage,
    Exported,
    ExportSession,
    GetStatus,
    ListCampaigns,
    ListEvents,
    ListSessions,
    PauseRun,
    PlanCampaign,
    Planned,
    Request,
    ResumeSession,
    RunAccepted,
    RunCampaign,
    SessionList,
    SkipConfiguration,
    StopRun,
    ViewSession,
)
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
    Sla,
)
from workbench.domain.profiles import (
    Breakpoint,
    Curve,
    ModelScore,
    ParameterInfluence,
    TargetModel,
)
from workbench.domain.projection import SessionView
from workbench.domain.samples import Estimate, Finding, Sample, Usage
from workbench.domain.sessions import Plan, PlannedConfiguration, SamplerCost, SessionSummary
from workbench.domain.timeline import FindMoment, GetTimeLine
from workbench.domain.topology import Series, Target, Vnf
from workbench.link.client import Feed
from workbench.tui.app import WorkbenchApp
from workbench.tui.screens.session import SessionScreen

SESSION = "demo-1"
LONGEST_S = 60
"""For anything to come on a machine that is busy with other things."""
START = 1_790_000_000.0
WLS = (10.0, 1600.0, 120.0, 440.0, 760.0, 900.0, 1100.0, 830.0)


def target(*names: str) -> Target:
    vnfs = tuple(Vnf(name, name) for name in names)
    return Target("-".join(names), vnfs[0] if len(vnfs) == 1 else Series(vnfs))


def target_plan(shares: tuple[tuple[float, ...], ...], *names: str) -> TargetPlan:
    resources = tuple(
        Parameter(f"{name}.vcpu", values) for name, values in zip(names, shares, strict=True)
    )
    return TargetPlan(target(*names), resources, PrimaryWorkload("rate", 10, 1600, unit="/s"))


def campaign(lab_target: str = "haproxy") -> Campaign:
    return Campaign(
        "demo",
        (
            target_plan(((0.125, 0.25),), lab_target),
            target_plan(((0.25, 0.5),), "tinyproxy"),
            target_plan(((0.25,), (0.25, 0.5)), lab_target, "tinyproxy"),
            target_plan(((0.25, 0.5), (0.25,)), "tinyproxy", lab_target),
        ),
        (),
        (Parameter("filesize_bytes", (10_000.0,), "B"),),
        LoadModel("open"),
        sla=Sla("p95_ms", 200.0, wl=300.0, text="p95<=200ms @ rate=300/s"),
        sampling=SamplingPlan(max_samples=10),
    )


def configurations(of: Campaign) -> list[tuple[str, Configuration]]:
    return [(p.target.name, c) for p in of.targets for c in of.configurations(p)]


def truth(wl: float, vcpu: float) -> float:
    return 2 + 0.0005 * wl + (max(0.0, wl - 2900 * vcpu) / 60) ** 2


def sample(
    at: OperatingPoint, number: int, *, valid: bool = True, stated: bool = True, vcpu: float = 0.25
) -> Sample:
    p95 = truth(at.wl, vcpu)
    kpis = {
        "p95_ms": Estimate(p95, 0.85 * p95, 1.2 * p95),
        "p50_ms": Estimate(p95 / 2, 0.45 * p95, 0.55 * p95),
        "throughput_rps": Estimate(min(at.wl, 3000 * vcpu), 0.97 * at.wl, 1.03 * at.wl),
    }
    share = min(1.0, at.wl / (3000 * vcpu))
    usage = {
        **{key.partition(".")[0]: Usage(share * v, share, 0.37 * (share > 0.9))
           for key, v in at.configuration.resources.items()},
        "source": Usage(0.2, 0.4),
        "sink": Usage(0.1, 0.2),
        "host": Usage(1.2, 0.61),
    }  # fmt: skip
    findings = () if valid else (Finding("source_saturated", 0.93, 0.9, "thread 1 at 93 %"),)
    return Sample(
        f"{at.target}/c/{at.wl:g}/{at.repetition}", at, kpis if stated else {}, usage, valid,
        findings, ("throttled",) if share > 0.9 else (), "open-constant", "planned", "simulated 1",
        1000, 1000, 0, 0, 1, 6, 0.37 * (share > 0.9), 0.02, START + 5 * number, 3.0, 5.0,
    )  # fmt: skip


def fitted(name: str, configuration: Configuration, vcpu: float, samples: int) -> ModelFitted:
    wls = tuple(10 * 160 ** (i / 99) for i in range(100))
    mean = tuple(truth(wl, vcpu) for wl in wls)
    low, high = tuple(0.8 * m for m in mean), tuple(1.25 * m for m in mean)

    def breakpoint(rule: str, wl: float, width: float) -> Breakpoint:
        return Breakpoint(
            name, configuration, rule, "p95_ms", "found", wl, wl * (1 - width), wl * (1 + width)
        )  # fmt: skip

    found: tuple[Breakpoint, ...] = ()
    if samples >= 3:
        found = (
            breakpoint("capacity", 3000 * vcpu, 0.08),
            breakpoint("sla", 2900 * vcpu + 844 * vcpu, 0.05),
            Breakpoint(name, configuration, "cpu", "p95_ms", "none_in_range"),
        )
    curve = Curve("p95_ms", "gaussian-process", wls, mean, low, high) if samples >= 2 else None
    return ModelFitted(name, configuration, curve, found, None, 0.05)


def story(lab: str = "sim", lab_target: str = "haproxy", finished: bool = False) -> list[Event]:
    """A run of `demo` that stands in the middle of its third configuration, or is over."""
    chosen = campaign(lab_target)
    cells = configurations(chosen)
    host = HostFacts(lab, 2, 4 << 30, "6.1", "cpu", "v1", "none", {}, {})
    plan = Plan(
        "demo", lab, tuple(PlannedConfiguration(0, t, c, 10, 60.0) for t, c in cells), 80, 480.0
    )
    facts: list[Fact] = [
        SessionCreated(chosen, (), lab, 7, host, "0.1.0"),
        CampaignPlanned(plan),
        RunStarted(False, 1800.0),
        TargetDeployed(lab_target, "simulated 1", True, "answers 200 with 10 kB"),
        Noted("warning", "source and haproxy share core 1: no disjoint cores"),
    ]
    number = 0
    for index, (name, configuration) in enumerate(cells):
        vcpu = min(float(v) for v in configuration.resources.values())
        facts.append(ConfigurationStarted(name, configuration))
        count = len(WLS) if index < 2 or finished else 5
        for taken, wl in enumerate(WLS[:count]):
            low, high = (wl * 0.8, wl * 1.25)
            facts.append(PointAsked(name, configuration, wl, 0, low, high, "largest dx·dy"))
            at = OperatingPoint(name, configuration, wl)
            bad = wl == 1600.0
            facts.append(
                SampleTaken(sample(at, number, valid=not bad, stated=index != 1, vcpu=vcpu))
            )
            facts.append(fitted(name, configuration, vcpu, taken + 1))
            number += 1
        if index == 2 and not finished:
            facts.append(PointAsked(name, configuration, 830.0, 0, 760.0, 900.0, "largest dx·dy"))
            break
        outcome = "converged" if index else "max_samples"
        facts.append(ConfigurationFinished(name, configuration, outcome, count, 1))
    if finished:
        facts.append(RunFinished("done", number, 8, 100.0, number * 5.0, ()))
    return [Event(i, START + i, SESSION, fact) for i, fact in enumerate(facts, 1)]


def written() -> list[Fact]:
    """What the functions of a chain wrote while a sample was taken: some of it is hostile."""
    taken = next(e.fact.sample for e in reversed(story()) if isinstance(e.fact, SampleTaken))
    lines = (
        WrittenLine("[NOTICE]   (1) : New worker (8) forked", "stderr", START + 5.0),
        WrittenLine("[WARNING]  (1) : Server web/s1 is DOWN, L4 timeout", "stderr", START + 6.0),
    )
    hostile = "\x1b]0;owned\x07\x1b[2J[error] 7#7: connect() failed [bold]" + "x" * 230
    return [
        LogWritten("tinyproxy", ComponentLog("haproxy", lines, 180, True), taken.id),
        LogWritten("tinyproxy", ComponentLog("sink", (WrittenLine(hostile, cut=4711),)), taken.id),
    ]


def modelled() -> list[Fact]:
    """Two versions of the model of tinyproxy, the second of which is in force, and influence."""
    scores = (
        ModelScore("tinyproxy", "p95_ms", "gaussian-process", 16, 12.5, 8.1, 4.0, 0.11, 0.07,
                   0.94, 0.31, 0.42, best=True),
        ModelScore("tinyproxy", "p95_ms", "neighbours", 16, 40.2, 31.0, 22.0, 0.38, 0.21,
                   None, None, 0.01),
        ModelScore("tinyproxy", "p95_ms", "neural-network", 16, trouble="did not converge"),
    )  # fmt: skip
    samples = tuple(f"s{i}" for i in range(16))
    models = (
        TargetModel("tinyproxy", "p95_ms", version, "profile", method, {}, 1e4, samples[:count],
                    (0.1,), 1, scores[0], {"scikit-learn": "1.9"})
        for version, method, count in ((1, "neighbours", 8), (2, "gaussian-process", 16))
    )  # fmt: skip
    influence = ParameterInfluence(
        "tinyproxy", ("tinyproxy.vcpu", "rate"), ("p95_ms",), ((0.62, 0.38),), 16
    )
    return [*(TargetModelled(m, scores, 1.2) for m in models), InfluenceMeasured(influence)]


class FakeClient:
    """Remembers what it was asked; tells the story, then whatever `tell` is given."""

    def __init__(self, events: list[Event] | None = None, sessions: bool = True) -> None:
        self.events = story() if events is None else events
        self.listed = summaries() if sessions else []
        self.trash: dict[str, SessionSummary] = {}
        self.status = EngineStatus("0.1.0", "home", 42, START, "", (), 1)
        self.asked: list[Request] = []
        self.dropped: list[Request] = []
        """What was asked and is not waited for any more."""
        self.refuses: WorkbenchError | None = None
        self.closed = False
        self.role, self.person, self.remote = "operator", "ann", False
        self.share: float | None = None
        self.campaigns: tuple[CampaignChoice, ...] = (
            CampaignChoice("demo", "haproxy and tinyproxy, alone and chained", ""),
            CampaignChoice("demo-closed", "the same with concurrent requests", ""),
        )
        self.warning = "two cores only"
        """Of every plan."""
        self.lab_opens = asyncio.Event()
        """Cleared: a run that is asked for waits."""
        self.lab_opens.set()
        self._changes: asyncio.Queue[Event | Tick | WorkbenchError | None] = asyncio.Queue()

    # ------------------------------------------------------------------ what tests do to it

    def tell(self, *facts: Fact) -> None:
        for fact in facts:
            seq = self.events[-1].seq + 1
            event = Event(seq, self.events[-1].at + 1, SESSION, fact)
            self.events.append(event)
            self._changes.put_nowait(event)

    def tick(self, tick: Tick) -> None:
        self._changes.put_nowait(tick)

    def die(self, why: WorkbenchError | None = None) -> None:
        """End the feed, as the engine does when it goes away, or because of one session."""
        self._changes.put_nowait(why)

    def commands(self) -> list[Request]:
        queries = ListSessions | ListCampaigns | ListEvents | PlanCampaign | GetStatus
        queries |= GetTimeLine | FindMoment | ViewSession | ListFormats
        return [request for request in self.asked if not isinstance(request, queries)]

    def view(self) -> SessionView:
        view = SessionView(SESSION)
        for event in self.events:
            view.apply(event)
        return view

    async def until(self, gate: asyncio.Event, request: Request) -> None:
        """What is asked takes as long as the gate is closed."""
        try:
            await gate.wait()
        except asyncio.CancelledError:
            self.dropped.append(request)
            raise

    # ------------------------------------------------------------------ Client

    async def ask(self, request: Request) -> Any:
        self.asked.append(request)
        if self.refuses is not None:
            raise self.refuses
        match request:
            case ListSessions():
                return SessionList(tuple(self.listed))
            case GetStatus():
                return self.status
            case RenameSession(session=name, name=new):
                self._replace(name, replace(self._listed(name), name=new))
                return RunAccepted(new)
            case DuplicateSession(session=name):
                self.listed.append(replace(self._listed(name), name=f"{name}-1"))
                return RunAccepted(f"{name}-1")
            case DeleteSession(session=name):
                self.trash[f"{name}@1"] = self._listed(name)
                self._replace(name)
                return Trashed(name, f"{name}@1")
            case RestoreSession(ticket=ticket):
                self.listed.append(self.trash.pop(ticket))
                return RunAccepted(self.listed[-1].name)
            case ExportSession(session=name, format=format):
                return Exported(f"exports/{name}.{format}", ())
            case ListFormats():
                found = plugins.meanings("exports").items()
                return SessionFormats(tuple(ExportFormat(*item) for item in found))
            case ListCampaigns():
                return CampaignList(self.campaigns)
            case PlanCampaign(campaign=name, lab=lab, chosen=chosen):
                plan = Plan(name, lab or "docker", (), 80, 480.0, 600.0, (self.warning,))
                own = SamplerCost("bisection", 31, 200.0, "played", chosen=True)
                return Planned(replace(plan, samplers=(own,)) if chosen else plan)
            case ListEvents(after=after, limit=limit):
                page = [event for event in self.events if event.seq > after][:limit]
                return EventPage(tuple(page), self.events[-1].seq)
            case GetTimeLine() | FindMoment() | ViewSession():
                return told(self.events, request)
            case PauseRun():
                self.tell(RunPaused("tester"))
            case ContinueRun():
                self.tell(RunContinued("tester"))
            case StopRun(abort=abort):
                self.tell(StopRequested("tester", abort))
            case SkipConfiguration(target=name, configuration=configuration):
                assert name
                assert configuration
                self.tell(ConfigurationFinished(name, configuration, "skipped", 5, 1))
            case RunCampaign() | ResumeSession():
                await self.lab_opens.wait()
                return RunAccepted(SESSION)
            case _:
                raise EngineError(f"the fake engine knows no {type(request).__name__}")
        return Done()

    def _listed(self, name: str) -> SessionSummary:
        return next(s for s in self.listed if s.name == name)

    def _replace(self, name: str, *by: SessionSummary) -> None:
        self.listed = [*by, *(s for s in self.listed if s.name != name)]

    @asynccontextmanager
    async def follow(self, session: str) -> AsyncIterator[Feed]:
        assert session == SESSION
        yield Feed(self.view(), self._follow())

    async def _follow(self) -> AsyncIterator[Event | Tick]:
        while (change := await self._changes.get()) is not None:
            if isinstance(change, WorkbenchError):
                raise change
            yield change

    async def close(self) -> None:
        self.closed = True


def summaries() -> list[SessionSummary]:
    def summary(name: str, state: str, age: float) -> SessionSummary:
        return SessionSummary(
            name, state, "demo", "sim", ("haproxy", "tinyproxy-haproxy"), 21, 3, START,
            START - age, 1 << 20, f"sessions/{name}.duckdb",
        )  # fmt: skip

    return [
        summary(SESSION, "running", 0),
        summary("night", "interrupted", 5000),
        summary("closed-loop", "finished", 90000),
    ]


def usage_tick(**shares: float) -> UsageTick:
    return UsageTick(SESSION, START, {name: Usage(s / 4, s, 0.21) for name, s in shares.items()})


def progress_tick() -> Progress:
    return Progress(SESSION, "measuring", "tinyproxy", None, 830.0, 21, 80, 105.0, 355.0)


# ---------------------------------------------------------------------- driving the screens


def screen_text(app: App[Any]) -> str:
    """What the terminal shows."""
    return "\n".join(strip.text for strip in strips(app))


def strips(app: App[Any]) -> list[Strip]:
    """The lines of the terminal, what lies behind a dialog included."""
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()


def toasts(app: Any) -> list[str]:
    """What the user was told, whole; also where its line is gone."""
    return [message.text for message in app.messages]


def flashed(app: Any) -> str:
    """What stands in the line of keys in place of them; empty: they do."""
    return "".join(words for words, _ in app.said).strip()


async def until(pilot: Pilot[Any], condition: Callable[[], object], what: str = "") -> None:
    """Let the app work until the condition holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LONGEST_S
    while loop.time() < deadline:
        if condition():
            return
        await asyncio.sleep(0.04)  # each look costs a drawing
    raise AssertionError(f"never came: {what}\n{screen_text(pilot.app)}")


@asynccontextmanager
async def opened(
    client: FakeClient, size: tuple[int, int] = (80, 24), **arguments: Any
) -> AsyncIterator[Pilot[Any]]:
    """The app with its live screen on the fake session, connected and drawn."""

    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, **({"session": SESSION, "theme": "dark"} | arguments))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.opened.connected)
        await redrawn(pilot)
        yield pilot


async def redrawn(pilot: Pilot[Any]) -> str:
    """Everything that was told so far is folded and drawn; what the terminal shows then."""
    screen = pilot.app.screen
    await pilot.pause()
    if isinstance(screen, SessionScreen) and screen.opened.frozen is None:
        screen.draw()
    await pilot.pause()
    return screen_text(pilot.app)
