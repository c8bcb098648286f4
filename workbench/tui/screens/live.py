"""One session, live or replayed: profile, configurations, usage, progress, event log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.widgets import RichLog

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Event, Progress, Tick, UsageTick
from workbench.domain.messages import (
    ContinueRun,
    Done,
    PauseRun,
    Request,
    ResumeSession,
    RunAccepted,
    RunCampaign,
    SkipConfiguration,
    StopRun,
)
from workbench.domain.projection import LOG_LINES, LogLine, SessionView
from workbench.link.client import Client
from workbench.tui import present
from workbench.tui.actions import Action, Place, bindings
from workbench.tui.plot import ProfilePlot
from workbench.tui.present import Choice, Shown
from workbench.tui.replay import Replay
from workbench.tui.screens.base import RESUMABLE, WATCHED_PACE, WorkbenchScreen
from workbench.tui.screens.dialogs import ConfirmScreen, MessageScreen
from workbench.tui.text import clock, number, plain
from workbench.tui.widgets.configurations import ConfigurationList
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.rows import Rows

REDRAW_S = 1 / 3
"""Drawing three times a second is as fast as a person reads figures."""
BURST = 200
"""Events folded before other work gets its turn: attaching late must not hold the keys up."""
ZOOMS = ("", "plot", "configurations", "usage", "log")


class LiveScreen(WorkbenchScreen):
    """Follows a session, or starts one by `command` first, or replays one."""

    PLACE: ClassVar[Place] = "live"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("live")]

    def __init__(
        self,
        session: str = "",
        *,
        command: RunCampaign | ResumeSession | None = None,
        replay: Replay | None = None,
    ) -> None:
        super().__init__()
        self.session = session
        self.command = command
        self.replay = replay
        self.live = Shown(SessionView(session or _named(command)))
        self.frozen: Shown | None = None
        self.choice = Choice()
        self.lost = ""
        self.connected = False
        self.zoomed = 0
        self._dirty = True
        self._logged = 0

    def compose(self) -> ComposeResult:
        yield self.too_small_note()
        yield Rows(id="header")
        yield Rows(id="notice")
        yield Rows(id="banner")
        with Container(id="middle"):
            yield ProfilePlot(id="plot")
            yield Rows(id="breakpoints")
            yield Rows(id="sample")
            with Container(id="panels"):
                yield ConfigurationList(id="configurations")
                yield Rows(id="usage")
            yield RichLog(id="log", max_lines=LOG_LINES, wrap=False, markup=False, min_width=20)
        yield Rows(id="progress")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        self.query_one(RichLog).can_focus = False  # until it is zoomed
        self.run_worker(self._follow(), group="follow", exclusive=True)
        self.set_interval(REDRAW_S, self._redraw_if_due)
        self.call_after_refresh(self.draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.draw)

    # ------------------------------------------------------------------------- what happens

    async def _follow(self) -> None:
        """Fold what happens into the view until the engine or the screen goes away."""
        try:
            client = await self.workbench.client()
            if self.command is not None:
                await self._start(client, self.command)
            if self.replay is not None:
                self.live = Shown(SessionView(self.session))
                self._logged = 0
                self._now_connected()
                await self._consume(self.replay.events(client, self.session))
                return
            async with client.follow(self.session) as feed:
                self.live = Shown(feed.view)
                self._now_connected()
                await self._consume(feed.changes)
            self._lose("it closed the connection")
        except WorkbenchError as error:
            self._lose(error.what.rstrip("."))
            if not self.connected:
                self.app.push_screen(MessageScreen(error.title, plain_lines(str(error))))
        except Exception as error:  # noqa: BLE001  # a lost link must never take the screen down
            self._lose(f"{type(error).__name__}: {error}")

    async def _start(self, client: Client, command: RunCampaign | ResumeSession) -> None:
        reply = await client.ask(command)
        if isinstance(reply, RunAccepted):
            self.command, self.session = None, reply.session
            if reply.queued_behind:
                self._say(f"queued behind {reply.queued_behind}")

    def _now_connected(self) -> None:
        self.connected, self.lost, self._dirty = True, "", True
        self.draw()

    def _lose(self, why: str) -> None:
        self.lost, self._dirty = plain(why.removeprefix("the engine is gone; ")), True
        self.draw()

    async def _consume(self, changes: AsyncIterator[Event | Tick] | AsyncIterator[Event]) -> None:
        count = 0
        async for change in changes:
            match change:
                case Event():
                    self.live.view.apply(change)
                case UsageTick():
                    self.live.usage = change
                case Progress():
                    self.live.progress = change
            self._dirty = True
            count += 1
            if count % BURST == 0:
                await asyncio.sleep(0)

    # ------------------------------------------------------------------------- drawing

    @property
    def shown(self) -> Shown:
        return self.frozen or self.live

    def _redraw_if_due(self) -> None:
        moving = self.replay is not None and not self.replay.ended
        if (self._dirty or moving) and self.is_current and self.frozen is None:
            self.draw()

    def draw(self) -> None:
        """Bring every panel up to date; panels draw only what changed."""
        if not self.is_mounted or not self.is_current or self.too_small:
            return
        self._dirty = False
        shown, choice = self.shown, self.choice
        with self.app.batch_update():
            self._draw_lines(shown, choice)
            self._draw_list(shown, choice)
            plot = self.query_one(ProfilePlot)
            title = present.plot_title(shown, choice, plot.size.width - 4)
            plot.show(present.figure(shown, choice), title)
            usage = self.query_one("#usage", Rows)
            usage.show(present.usage_rows(shown, choice, usage.size.width, usage.size.height))
            self._draw_log(shown)
            self.offer_keys()

    def _draw_lines(self, shown: Shown, choice: Choice) -> None:
        width = self.size.width
        if self.connected:
            head = present.header(shown, self.frozen is not None, self._replay_badge(), width)
        else:
            waiting = "no engine" if self.lost else "connecting…"
            head = ((f" {plain(shown.view.session)} ", "strong"), (f" {waiting}", "dim"))
        self.query_one("#header", Rows).show([head])
        notice = self.query_one("#notice", Rows)
        notice.display = shown.view.lab == "sim"
        notice.show([((f" {present.notice(width)}", "warn"),)])
        banner = self.query_one("#banner", Rows)
        banner.display = bool(self.lost)
        banner.show([((f" engine gone: {self.lost}, r to reconnect ", "alert"),)])
        self.query_one("#breakpoints", Rows).show([present.breakpoints(shown, choice, width)])
        self.query_one("#sample", Rows).show([present.last_sample(shown, choice)])
        self.query_one("#progress", Rows).show([present.progress(shown, width)])

    def _draw_list(self, shown: Shown, choice: Choice) -> None:
        panel = self.query_one(ConfigurationList)
        selected, items, width = shown.selected(choice), shown.view.configurations, panel.size.width
        index = next((i for i, item in enumerate(items) if item is selected), 0)
        rows = [present.list_row(shown, item, i == index, width) for i, item in enumerate(items)]
        panel.show_list(present.list_heading(shown, width), rows, index)

    def _draw_log(self, shown: Shown) -> None:
        log = self.query_one(RichLog)
        if not log.size or self.frozen:
            return
        for line in shown.view.log:
            if line.seq > self._logged:
                log.write(_log_text(line, present.log_line(shown.view, line)))
                self._logged = line.seq

    def _replay_badge(self) -> str:
        if self.replay is None:
            return ""
        replay = self.replay
        passed, whole = replay.at - replay.started_at, replay.ends_at - replay.started_at
        state = "ended" if replay.ended else "held" if replay.paused else f"×{number(replay.speed)}"
        return f"REPLAY {state} {clock(replay.at)} ({passed:.0f} of {whole:.0f} s)"

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which actions make sense now; the others are neither named nor carried out."""
        view, lost, replayed = self.live.view, bool(self.lost), self.replay is not None
        runs = self.connected and not lost and not replayed
        conditions = {
            "pause": runs and view.state == "running",
            "continue": runs and view.state == "paused",
            "stop": runs and view.state in ("running", "paused"),
            "abort": runs and view.state in ("running", "paused"),
            "skip": runs and view.state in ("running", "paused") and bool(view.configurations),
            "resume": runs and view.state in RESUMABLE,
            "replay_pause": replayed and not lost and not self._held and not self._over,
            "replay_play": replayed and not lost and self._held,
            "faster": replayed and not lost,
            "slower": replayed and not lost,
            "reconnect": lost,
            "follow": self.choice.key is not None,
            "freeze": self.frozen is None,
            "unfreeze": self.frozen is not None,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def explained(self) -> tuple[Action, ...]:
        """A replay measures nothing, and only a replay has a pace."""
        other = "run" if self.replay is not None else "replay"
        return tuple(action for action in super().explained() if action.area != other)

    @property
    def _held(self) -> bool:
        return self.replay is not None and self.replay.paused

    @property
    def _over(self) -> bool:
        return self.replay is not None and self.replay.ended

    def action_pause(self) -> None:
        self._tell(PauseRun(self.session), "will pause after this sample")

    def action_continue(self) -> None:
        self._tell(ContinueRun(self.session), "goes on")

    def action_stop(self) -> None:
        self._confirm(
            "Stop the run?",
            "It ends after the sample that is being measured. It can be resumed.",
            StopRun(self.session),
            "will stop after this sample",
        )

    def action_abort(self) -> None:
        self._confirm(
            "Abort the run?",
            "It ends now; the sample that is being measured is lost. It can be resumed.",
            StopRun(self.session, abort=True),
            "ends now",
        )

    def action_skip(self) -> None:
        selected = self.shown.selected(self.choice)
        if selected is not None:
            self._confirm(
                f"Skip {present.name_of(self.live.view, selected)}?",
                f"Its {len(selected.samples)} samples stay; no more are taken.",
                SkipConfiguration(self.session, selected.target, selected.configuration),
                "skipped",
            )

    def action_resume(self) -> None:
        self._tell(ResumeSession(self.session, pace=WATCHED_PACE), "resumed")

    def action_reconnect(self) -> None:
        self.lost, self.connected = "", False
        self.workbench.reconnect()
        self.run_worker(self._follow(), group="follow", exclusive=True)
        self.draw()

    def action_replay_pause(self) -> None:
        if self.replay:
            self.replay.pause()
        self.draw()

    def action_replay_play(self) -> None:
        if self.replay:
            self.replay.play()
        self.draw()

    def action_faster(self) -> None:
        if self.replay:
            self.replay.faster()
        self.draw()

    def action_slower(self) -> None:
        if self.replay:
            self.replay.slower()
        self.draw()

    def action_next_configuration(self) -> None:
        self._step(1)

    def action_previous_configuration(self) -> None:
        self._step(-1)

    def action_follow(self) -> None:
        self._choose(replace(self.choice, key=None))

    def action_freeze(self) -> None:
        self.frozen = self.live.frozen()
        self.draw()

    def action_unfreeze(self) -> None:
        self.frozen = None
        self.draw()

    def action_log_y(self) -> None:
        self._choose(replace(self.choice, log_y=not self.choice.log_y))

    def action_log_x(self) -> None:
        now = present.figure(self.shown, self.choice).log_x
        self._choose(replace(self.choice, log_x=not now))

    def action_kpi(self) -> None:
        kpis = self.shown.kpis()
        now = self.shown.kpi(self.choice)
        following = kpis[(kpis.index(now) + 1) % len(kpis)] if now in kpis else kpis[0]
        self._choose(replace(self.choice, kpi=following))

    def action_zoom(self) -> None:
        self._zoom((self.zoomed + 1) % len(ZOOMS))

    def action_back(self) -> None:
        if self.zoomed:
            self._zoom(0)
        else:
            self.workbench.show_sessions()

    def on_configuration_list_picked(self, message: ConfigurationList.Picked) -> None:
        items = self.shown.view.configurations
        self._choose(replace(self.choice, key=items[message.index].key))

    def _step(self, by: int) -> None:
        items = self.shown.view.configurations
        selected = self.shown.selected(self.choice)
        if selected is not None:
            index = next(i for i, item in enumerate(items) if item is selected)
            self._choose(replace(self.choice, key=items[(index + by) % len(items)].key))

    def _choose(self, choice: Choice) -> None:
        self.choice = choice
        self.draw()

    def _zoom(self, zoomed: int) -> None:
        for name in ZOOMS[1:]:
            self.set_class(name == ZOOMS[zoomed], f"zoom-{name}")
        self.zoomed = zoomed
        log = self.query_one(RichLog)
        log.can_focus = ZOOMS[zoomed] == "log"
        self.set_focus(log if log.can_focus else None)
        self.call_after_refresh(self.draw)

    def _confirm(self, question: str, consequence: str, request: Request, done: str) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._tell(request, done)

        self.app.push_screen(ConfirmScreen(question, consequence), answered)

    def _tell(self, request: Request, done: str) -> None:
        """Send a command without holding up the keys; say what came of it."""

        async def send() -> None:
            try:
                client = await self.workbench.client()
                reply = await client.ask(request)
            except (WorkbenchError, OSError) as error:
                self._say(str(error), severity="error")
                return
            self._say(reply.note if isinstance(reply, Done) and reply.note else done)

        self.run_worker(send())

    def _say(self, message: str, severity: str = "information") -> None:
        level = "error" if severity == "error" else "information"
        self.notify(plain(message), severity=level, markup=False)  # type: ignore[arg-type]


def _named(command: RunCampaign | ResumeSession | None) -> str:
    """What to call a session that has no name yet."""
    if command is None:
        return ""
    return command.session or (command.campaign if isinstance(command, RunCampaign) else "")


_LEVELS = {"warning": ("!", "yellow"), "error": ("×", "bold red")}


def _log_text(line: LogLine, words: str) -> Text:
    sign, style = _LEVELS.get(line.level, (" ", ""))
    return Text(f"{clock(line.at)} {sign} {words}", style=style, end="")


def plain_lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.splitlines())
