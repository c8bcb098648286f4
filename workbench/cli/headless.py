"""A campaign without a screen: progress bar, lines or JSON; the engine here or where it runs."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import TYPE_CHECKING, Protocol

from workbench.cli.context import (
    TerminalLine,
    client_of,
    current_workspace,
    harmless,
    http_door,
    identity,
    on_interrupt,
    put,
    put_json,
    say,
    telling,
)
from workbench.cli.notify import tell_terminal
from workbench.domain.codec import event_to_plain
from workbench.domain.durations import duration
from workbench.domain.errors import FINDING, INTERRUPTED, LAB_FAILURE, EngineError, WorkbenchError
from workbench.domain.events import (
    Event,
    Noted,
    Progress,
    RunFinished,
    RunStarted,
    SampleTaken,
    Tick,
)
from workbench.domain.lab import HOST_NOISE, OHA_LATER, HostMeasured, MeasureHost
from workbench.domain.messages import (
    ListEvents,
    ResumeSession,
    RunCampaign,
    StopRun,
)
from workbench.domain.projection import SessionView
from workbench.link.local import LocalClient
from workbench.link.paging import events_between

if TYPE_CHECKING:
    from workbench.engine.core import Engine
    from workbench.link.client import Client

ABOUT_OHA = {
    False: "oha, the better generator, is being built for later sessions: by the engine of this "
    "workspace, while nothing is measured",
    True: "oha, the better generator, is not built yet: `workbench images build` builds it now, "
    "and `workbench` in the background while nothing is measured",
}
"""Said at the end of a run that measured without it: whether the engine ends with the command."""


async def run_headless(
    command: RunCampaign | ResumeSession, *, json: bool, http: str | None
) -> int:
    """Run to the end and return the exit code.

    Takes the workspace and serves its socket, so that screens can attach; where an engine holds
    it already, the campaign is submitted there and followed. What others submit here meanwhile is
    measured to its end.
    """
    async with client_of(lambda: _serving(http)) as client, AsyncExitStack() as until_then:
        if http is not None:
            say(f"/status and /metrics are at http://{await http_door(client)}")
        before = await _last_seq(client, command)
        opening = Opening()
        try:
            async with telling(client, lambda s: s.preparing, opening.tell, again=True):
                accepted = await client.ask(command)
        finally:
            opening.close()
        if accepted.queued_behind:
            say(f"queued: {accepted.queued_behind} is measuring on this host")
        stop = _Interrupts(client, accepted.session)
        on_interrupt(stop.interrupt)
        # Whatever ends it: a bar that is not closed leaves a terminal without its cursor.
        report = until_then.enter_context(closing(_report(accepted.session, json)))
        view, without_oha = SessionView(accepted.session), False
        async for change in _changes(client, accepted.session):
            if isinstance(change, Event):
                view.apply(change)
                if change.seq > before:
                    tell_terminal(change, view)
                without_oha |= isinstance(change.fact, Noted) and OHA_LATER in change.fact.text
                if change.seq > before:
                    if isinstance(change.fact, RunFinished):
                        report.close()
                        # Before how it ended and what to do about that, which are looked for last.
                        if without_oha and not json:
                            say(ABOUT_OHA[isinstance(client, LocalClient)])
                    # Who reads the output may be slow, as a pager is: the engine serves others.
                    await asyncio.to_thread(report.event, change, view)
                    if isinstance(change.fact, RunFinished):
                        return INTERRUPTED if stop.count else _exit_code(change.fact, view)
            else:
                report.tick(change)
        raise EngineError(
            "the engine ended before the run did",
            where=accepted.session,
            remedy=f"Go on with `workbench resume {accepted.session}`",
        )


async def measure_host(command: MeasureHost) -> HostMeasured:
    """Measure the host to the end, its progress on standard error; Ctrl-C ends it at once.

    The engine tears down before it answers, here or where it runs already.
    """
    async with client_of(lambda: _serving(None)) as client:
        stop = _Interrupts(client, HOST_NOISE)
        on_interrupt(stop.interrupt)
        try:
            async with telling(client, lambda status: status.host_measuring, _say_what):
                reply = await client.ask(command)
        except WorkbenchError:
            if stop.count:
                raise KeyboardInterrupt from None
            raise
        return reply


def _say_what(text: str) -> None:
    if text:
        say(text)


@asynccontextmanager
async def _serving(http: str | None) -> AsyncIterator[Engine]:
    """The engine in this process, for as long as the body runs and campaigns of others do."""
    from workbench.engine.process import serving

    async with serving(current_workspace(), http=http) as engine:
        yield engine
        on_interrupt(engine.stopping.set)
        await engine.until_left()
        while engine.queue.unfinished and not engine.stopping.is_set():
            say(f"this engine goes on for {', '.join(engine.queue.unfinished)}; Ctrl-C ends it")
            await engine.until_finished()
            await engine.until_left()


async def _last_seq(client: Client, command: RunCampaign | ResumeSession) -> int:
    """Events up to here were told by an earlier run."""
    if isinstance(command, RunCampaign):
        return 0
    page = await client.ask(ListEvents(command.session, after=0, limit=1))
    return page.last_seq


async def _changes(client: Client, session: str) -> AsyncIterator[Event | Tick]:
    """Every event of the session from its first, each once and in order, and ticks."""
    async with client.follow(session) as feed:
        async for event in events_between(client, session, 0, feed.view.seq):
            yield event
        async for change in feed.changes:
            if not isinstance(change, Event) or change.seq > feed.view.seq:
                yield change


def _exit_code(finished: RunFinished, view: SessionView) -> int:
    if finished.outcome == "failed":
        say(finished.note)
        return LAB_FAILURE
    unusable = [c.key for c in view.configurations if c.state == "unusable"]
    if unusable:
        say(f"no usable result: {', '.join(unusable)}")
        return FINDING
    return 0


class _Interrupts:
    """Ctrl-C once: stop after this sample; twice: at once."""

    def __init__(self, client: Client, session: str) -> None:
        self.client = client
        self.session = session
        self.count = 0
        self._tasks: set[asyncio.Task[object]] = set()

    def interrupt(self) -> None:
        self.count += 1
        if self.count == 1 and self.session != HOST_NOISE:
            say("stopping after this sample; Ctrl-C again stops at once")
        command = StopRun(self.session, abort=self.count > 1, by=identity())
        task: asyncio.Task[object] = asyncio.ensure_future(self._stop(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self, command: StopRun) -> None:
        try:
            await self.client.ask(command)
        except WorkbenchError as error:  # it has ended in this instant, or its engine has
            say(str(error))


# ------------------------------------------------------------------------------- reports


class _Report(Protocol):
    def event(self, event: Event, view: SessionView) -> None: ...
    def tick(self, tick: Tick) -> None: ...
    def close(self) -> None: ...


def _report(session: str, json: bool) -> _Report:
    if json:
        return _JsonLines()
    if sys.stderr.isatty():
        return _ProgressBar(session)
    return _Lines()


class _JsonLines:
    """One event per line; the last is `RunFinished`."""

    def event(self, event: Event, view: SessionView) -> None:
        del view
        put_json(event_to_plain(event))

    def tick(self, tick: Tick) -> None:
        """Ticks are for screens."""

    def close(self) -> None:
        """Nothing is held back."""


class Opening:
    """What a run waits for while its lab is made ready: never silent for long.

    On a terminal one line, with the time that it takes so far; else a line for what is new, and now
    and then one that it goes on.
    """

    NEWS_S, STILL_S = 2.0, 10.0
    """Seconds between lines where no terminal is: for what is new, for what is not."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._told_at = clock()
        self._told = ""
        self._line = TerminalLine() if sys.stderr.isatty() else None

    def tell(self, text: str) -> None:
        if not text:
            return
        now = self._clock()
        if self._line is not None:
            self._line.show(f"{duration(now - self._began)}  {text}")
            return
        since = self.STILL_S if text == self._told else self.NEWS_S
        if not self._told or now - self._told_at >= since:
            self._told, self._told_at = text, now
            say(f"{text} ({duration(now - self._began)} so far)")

    def close(self) -> None:
        if self._line is not None:
            self._line.show("")


class _Lines:
    """One line per sample, what else the event log says, what a run waits for and, after a silence,
    how far it is."""

    NEWS_S, SILENCE_S = 2.0, 10.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at = clock()
        self._waits = False
        """Whether it was said that the run waits."""

    def event(self, event: Event, view: SessionView) -> None:
        self._said_at = self._clock()
        if view.log and view.log[-1].seq == event.seq:
            line = view.log[-1]
            taken = f"[{view.samples_taken}] " if isinstance(event.fact, SampleTaken) else ""
            prefix = "" if line.level == "info" else f"{line.level}: "
            put(f"{taken}{prefix}{line.text}")

    def tick(self, tick: Tick) -> None:
        if not isinstance(tick, Progress):
            return
        silent_s = self._clock() - self._said_at
        waits = tick.phase == "waiting"
        if waits and not self._waits and silent_s >= self.NEWS_S:
            self._waits, self._said_at = True, self._clock()
            put(f"warning: {tick.note}")
        elif silent_s >= self.SILENCE_S:
            self._said_at = self._clock()
            put(how_far(tick))
        self._waits = self._waits and waits

    def close(self) -> None:
        """Nothing is held back."""


def how_far(tick: Progress, phase: str = "") -> str:
    """Phase, sample of how many, time so far and to go, by the clock and of the lab.

    `phase` stands in place of that of the tick.
    """
    point = f" {tick.target}" if tick.target else ""
    point += f" at {tick.wl:g}" if tick.target and tick.wl is not None else ""
    parts = [f"{phase or tick.phase}{point}"]
    if tick.samples_planned:
        parts.append(f"{tick.samples} of {tick.samples_planned} samples")
    parts.append(f"{duration(tick.wall_s)} so far")
    if tick.eta_s is not None:
        lab = f"{duration(tick.eta_s)} of lab time"
        about = "" if tick.eta_wall_s is None else f"about {duration(tick.eta_wall_s)}, "
        parts.append(f"{about}{lab} to go")
    if tick.note:
        parts.append(tick.note)
    return ", ".join(parts)


class _ProgressBar:
    """A Rich bar with how far it is, by the clock and of the lab, and the event log above it."""

    def __init__(self, session: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[eta]}", markup=False),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(session, total=None, eta="")
        self._pausing = False
        self._bar.start()

    def event(self, event: Event, view: SessionView) -> None:
        from rich.text import Text

        self._pausing = view.state == "pausing"
        if isinstance(event.fact, RunStarted) and view.plan:
            self._bar.update(self._task, total=view.plan.samples)
        if isinstance(event.fact, SampleTaken):
            self._bar.update(self._task, completed=view.samples_taken)
        if view.log and view.log[-1].seq == event.seq:
            line = view.log[-1]
            style = {"warning": "bold", "error": "bold reverse"}.get(line.level, "")
            self._bar.console.print(Text(harmless(line.text), style=style))

    def tick(self, tick: Tick) -> None:
        if isinstance(tick, Progress):
            phase = "pausing after this sample" if self._pausing else ""
            self._bar.update(self._task, eta=harmless(how_far(tick, phase)))

    def close(self) -> None:
        self._bar.stop()
