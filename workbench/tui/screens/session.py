"""What all screens of the open session share: head, banner, progress, commands, freezing, replay.

A screen of a session says what stands in the middle and how that is drawn from `Shown` and
`ViewChoice`; everything around it is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual.app import ComposeResult
from textual.containers import Container

from workbench.domain.errors import WorkbenchError
from workbench.domain.housekeeping import RescueSession
from workbench.domain.messages import (
    AnswerControl,
    AskControl,
    ContinueRun,
    PauseRun,
    Request,
    ResumeSession,
    StopRun,
)
from workbench.domain.sessions import UNDER_WAY
from workbench.domain.timeline import FindMoment
from workbench.tui import present
from workbench.tui.commands.action import Action
from workbench.tui.plots.canvas import GLYPHS
from workbench.tui.plots.plot import terminal_glyphs
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.replaying.replay import Replay
from workbench.tui.replaying.seeking import HINT, place_of
from workbench.tui.replaying.timeline_rows import marks_row, timeline
from workbench.tui.screens.base import CONNECTING, NO_ENGINE, OBSERVING, WorkbenchScreen
from workbench.tui.screens.dialogs import ConfirmScreen, NameScreen
from workbench.tui.text import clock, number, plain
from workbench.tui.watch import RESUMABLE, WATCHED_PACE, Loss, Watch
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.rows import Rows, spread
from workbench.tui.widgets.tabs import TabLine
from workbench.tui.workers import begin

DECISIONS = ("reject", "restore", "pin", "unpin", "repeat", "point", "measure")
"""What is asked of a single sample."""
CONTROL = ("ask_control", "give_control", "keep_control")
COMMANDS = (
    "pause", "continue", "stop", "abort", "resume", "skip", "budget", "rescue", *CONTROL, *DECISIONS
)  # fmt: skip
"""What is told to a run, or changes the session."""

WITHOUT: Mapping[Loss, str] = {"engine": "no engine", "session": "no session", "refused": "refused"}
"""What the head says in place of the state where nothing was ever shown."""


class SessionScreen(WorkbenchScreen):
    """Shows the open session; subclasses give `middle` and `draw_middle`."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn = -1

    def compose(self) -> ComposeResult:
        yield self.too_small_note()
        with Container(id="top"):
            yield TabLine(id="tabs")
            yield Rows(id="header")
        yield Rows(id="notice")
        yield Rows(id="banner")
        with Container(id="middle"):
            yield from self.middle()
        yield Rows(id="progress")
        yield Rows(id="timeline")
        yield Rows(id="tour")
        yield KeyLine(id="keys")

    def middle(self) -> ComposeResult:
        """The widgets of this screen."""
        raise NotImplementedError

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        """Bring these widgets up to date; called as often as `DrawThrottle` allows."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.call_after_refresh(self.draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.draw)

    @property
    def ready(self) -> bool:
        return super().ready and self.has_its_parts

    # ------------------------------------------------------------------------- state

    @property
    def opened(self) -> Watch:
        return self.workbench.opened

    @property
    def shown(self) -> Shown:
        return self.opened.shown

    @property
    def choice(self) -> ViewChoice:
        return self.opened.choice

    def choose(self, choice: ViewChoice) -> None:
        """Look at something else; every screen of the session then does."""
        self.opened.choose(choice)
        self.draw()

    def tell_zoom(self, panels: Sequence[str], zoomed: int) -> None:
        """Where one is among the panels that are shown alone; `panels` begins with all of them."""
        key, names = self.key("view.zoom"), ["all panels", *(f"{name} alone" for name in panels)]
        place = f" ({zoomed} of {len(panels)})" if zoomed else ""
        following = names[(zoomed + 1) % len(names)]
        self.workbench.say_shortly(f"{names[zoomed]}{place}; {key}: {following}")

    # ------------------------------------------------------------------------- drawing

    def draw_news(self) -> None:
        """Draw what has happened, unless that was drawn for another reason meanwhile."""
        due = self.opened.changed != self._drawn or self.opened.moving
        if due and self.opened.frozen is None:
            self.draw()

    def draw(self) -> None:
        """Bring every panel up to date; panels draw only what changed."""
        if not self.ready or not self.in_sight or self.too_small:
            return
        self._drawn = self.opened.changed
        with self.app.batch_update():
            self._draw_frame(self.shown)
            self.draw_middle(self.shown, self.choice)
            self.offer_keys()

    def _draw_frame(self, shown: Shown) -> None:
        watch, width = self.opened, self.query_one("#header").size.width
        frozen = watch.frozen is not None
        if watch.connected:
            head = present.header(shown, frozen, _badge(watch), width)
        else:
            waiting = WITHOUT.get(watch.loss, plain(watch.awaited))
            name = "preview" if watch.previewing else plain(shown.view.session)
            head = ((f" {name} ", "strong"), (f" {waiting}", "dim"))
        self.query_one("#header", Rows).show([head])
        notice = self.query_one("#notice", Rows)
        words = present.notice(shown.view, self.size.width)
        notice.display = bool(words)
        notice.show([((f" {words}", "warn"),)])
        banner = self.query_one("#banner", Rows)
        said = self._banner(shown)
        banner.display = bool(said)
        banner.show([((f" {said} ", "alert"),)])
        line, replay = self.query_one("#timeline", Rows), watch.replay
        done = present.progress(shown, self.size.width)
        if replay is not None:
            room = self.size.width - sum(len(words) for words, _ in done) - 2
            done = spread(done, marks_row(replay.line, room), self.size.width)
        self.query_one("#progress", Rows).show([done])
        line.display = replay is not None
        self.set_class(replay is not None, "-replay")
        if replay is not None:
            glyphs = GLYPHS[terminal_glyphs()]
            line.show([timeline(replay, shown.view, glyphs, self.size.width)])
        roomy = self.has_class("-normal") or self.has_class("-tall")
        tour = self.workbench.tour.rows(self.NAME, self.key, self.size.width) if roomy else []
        self.query_one("#tour", Rows).show_all(tour)

    def _banner(self, shown: Shown) -> str:
        watch = self.opened
        if watch.loss == "session":
            return f"{watch.lost}; {self.key('go.sessions')} lists the sessions"
        if watch.loss == "refused":
            return f"{watch.lost}; {self.key('link.reconnect')} tries again"
        if watch.lost:
            return f"engine gone: {watch.lost}, {self.key('link.reconnect')} to reconnect"
        if watch.previewing:
            return (
                f"PREVIEW: the recording {watch.previewing}, while the lab is made ready; "
                "your run takes its place by itself"
            )
        if watch.queued_behind and (shown.queued or shown.view.state == "planned"):
            return f"queued behind {plain(watch.queued_behind)}"
        if watch.drives and watch.control_lock.asked_by:
            give, keep = self.key("control.give"), self.key("control.keep")
            asks = plain(watch.control_lock.asked_by)
            return f"{asks} asks for control: {give} gives it, {keep} keeps it"
        return ""

    # ------------------------------------------------------------------------- actions

    @property
    def _waits(self) -> bool:
        """Whether a run waits for its turn; a canary that does is ended on its own screen."""
        live = self.opened.live
        return live.queued and live.view.under_canary is None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which actions make sense now; the others are neither named nor carried out."""
        watch = self.opened
        state, runs = watch.live.view.state, watch.commandable
        replay = watch.replay if not watch.lost else None
        asked = runs and watch.drives and bool(watch.control_lock.asked_by)
        other = runs and watch.control_lock.driver != "" and not watch.drives
        left = state in RESUMABLE and not (watch.live.queued or watch.live.view.on_hosts)
        conditions = {
            "ask_control": other and watch.control_lock.asked_by != watch.person,
            "give_control": asked,
            "keep_control": asked,
            "pause": runs and state == "running" and not self.opened.live.view.on_hosts,
            "continue": runs and state in ("pausing", "paused"),
            "stop": runs and (state in UNDER_WAY or self._waits),
            "abort": bool(watch.starting) or (runs and (state in UNDER_WAY or self._waits)),
            "rescue": runs and watch.displaced,
            "resume": runs and left,
            "replay_pause": replay is not None and not replay.paused and not replay.ended,
            "replay_play": replay is not None and (replay.paused or replay.ended),
            "faster": replay is not None,
            "slower": replay is not None,
            "step": replay is not None and not replay.ended,
            "step_back": replay is not None and replay.seq > 0,
            "seek": replay is not None and replay.line is not None,
            "next_mark": replay is not None and replay.mark(1) is not None,
            "previous_mark": replay is not None and replay.mark(-1) is not None,
            "replay_from": not watch.lost and watch.connected,
            "reconnect": watch.loss in ("engine", "refused"),
            "freeze": watch.frozen is None,
            "unfreeze": watch.frozen is not None,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_no_command(self) -> str:
        """Why nothing can be told to a run, or changed in the session; empty where it can."""
        watch = self.opened
        if watch.lost:
            return NO_ENGINE if watch.loss == "engine" else f"{watch.lost}."
        if not watch.connected:
            starting = watch.command is not None or watch.preparing
            gives_up = f": {self.key('run.abort')} gives it up" if watch.starting else ""
            return f"The lab is still being made ready{gives_up}." if starting else CONNECTING
        if watch.bundle:
            return "This is a recording: nothing is measured, and nobody changes it."
        if watch.role == "observer":
            return OBSERVING
        if watch.replay is not None:
            return "This is a replay: nothing is measured or changed in it."
        return ""

    def why_not(self, method: str) -> str:
        watch = self.opened
        state = watch.live.view.state
        told = watch.lost or not watch.connected or method in COMMANDS
        if told and (why := self.why_no_command()):
            return why
        if method in ("pause", "continue", "skip", "resume") and watch.live.queued:
            return "It waits for its turn."
        if method in ("stop", "abort") and (elsewhere := self._where_it_is_stopped()):
            return elsewhere
        if method in ("pause", "continue", "stop", "abort", "skip") and state not in UNDER_WAY:
            return f"No run goes on: the session is {state}."
        if method in ("pause", "resume") and watch.live.view.on_hosts:
            goes_on = f"`{watch.live.view.fleet_command}` goes on where it stood."
            return f"A fleet measures it: {'stop it, and ' * (state in UNDER_WAY)}{goes_on}"
        if method == "pause":
            return "The run has not begun yet."
        if method == "resume":
            return f"There is nothing to go on with: the session is {state}."
        if method in CONTROL:
            return self._why_no_control(method)
        return {
            "rescue": "The session's file is in its place: there is nothing to write again.",
            "reconnect": "The engine answers.",
            "seek": "The time line is not there yet.",
            "step": "The replay has ended.",
            "step_back": "This is the beginning.",
            "next_mark": "No decision comes after this.",
            "previous_mark": "No decision comes before this.",
        }.get(method, "")

    def _where_it_is_stopped(self) -> str:
        """Of what is measured, or waits for that, without a campaign; empty where nothing is."""
        view = self.opened.live.view
        name, purpose = "recommend", view.under_trial.purpose if view.under_trial else ""
        if view.under_canary is not None:
            name = purpose = "canary"
        if not purpose:
            return ""
        key, at = self.key(f"{name}.stop"), self.key(f"go.{name}")
        return f"No campaign runs, but a {purpose} does: {key} on {name.title()} ({at}) stops it."

    def _why_no_control(self, method: str) -> str:
        lock = self.opened.control_lock
        if method != "ask_control":
            return "Nobody asks for control."
        if not lock.driver:
            return "Nobody drives a run here."
        return "Control is yours." if self.opened.drives else "You have asked for control already."

    def explained(self) -> tuple[Action, ...]:
        """A replay measures nothing, and only a replay has a pace."""
        other = "run" if self.opened.replay is not None else "replay"
        return tuple(action for action in super().explained() if action.area != other)

    def action_pause(self) -> None:
        self.tell(PauseRun(self.opened.session), "will pause after this sample")

    def action_continue(self) -> None:
        self.tell(ContinueRun(self.opened.session), "goes on")

    def action_stop(self) -> None:
        if self._waits:
            self._leave_queue()
            return
        if self.opened.live.view.on_hosts:
            self._stop_hosts("Stop", StopRun(self.opened.session))
            return
        self.confirm(
            "Stop the run?",
            "It ends after the sample that is being measured. It can be resumed.",
            StopRun(self.opened.session),
            f"will stop after this sample; {self.key('run.resume')} resumes it then",
        )

    def _leave_queue(self) -> None:
        self.confirm(
            "Take it out of the queue?",
            "It waits for its turn: nothing of it was measured yet. It can be asked for again.",
            StopRun(self.opened.session),
            "is taken out of the queue",
        )

    def action_abort(self) -> None:
        if self.opened.starting:
            self.confirm(
                "Give it up?",
                "Its lab is still being made ready: nothing was measured.",
                StopRun(self.opened.starting, abort=True),
                "is given up",
            )
            return
        if self._waits:
            self._leave_queue()
            return
        if self.opened.live.view.on_hosts:
            self._stop_hosts("Abort", StopRun(self.opened.session, abort=True))
            return
        self.confirm(
            "Abort the run?",
            "It ends now; the sample that is being measured is lost. It can be resumed.",
            StopRun(self.opened.session, abort=True),
            f"ends now; {self.key('run.resume')} resumes it then",
        )

    def _stop_hosts(self, how: str, request: StopRun) -> None:
        self.confirm(
            f"{how} the run?",
            "The hosts end now and keep what they have measured. The same command goes on with it.",
            request,
            f"its hosts are told to end; `workbench show {self.opened.session}` says how to go on",
        )

    def action_rescue(self) -> None:
        self.tell(RescueSession(self.opened.session), "is written to its place again and goes on")

    def action_ask_control(self) -> None:
        self.tell(AskControl(self.opened.session), "control is asked for")

    def action_give_control(self) -> None:
        self.tell(AnswerControl(self.opened.session), "you no longer drive it")

    def action_keep_control(self) -> None:
        self.tell(AnswerControl(self.opened.session, give=False), "you drive on")

    def action_resume(self) -> None:
        self.tell(ResumeSession(self.opened.session, pace=WATCHED_PACE), "resumed")

    def action_reconnect(self) -> None:
        self.workbench.reconnect()
        self.draw()

    def action_replay_pause(self) -> None:
        self._turn(Replay.pause)

    def action_replay_play(self) -> None:
        self._turn(Replay.play)

    def action_faster(self) -> None:
        self._turn(Replay.faster)

    def action_slower(self) -> None:
        self._turn(Replay.slower)

    def action_step(self) -> None:
        self._turn(lambda replay: replay.step(1))

    def action_step_back(self) -> None:
        self._turn(lambda replay: replay.step(-1))

    def action_next_mark(self) -> None:
        self._go_to_mark(1)

    def action_previous_mark(self) -> None:
        self._go_to_mark(-1)

    def _go_to_mark(self, direction: int) -> None:
        replay = self.opened.replay
        if replay is not None and (mark := replay.mark(direction)) is not None:
            replay.pause()
            replay.go_to(mark.seq)
            self.workbench.say_shortly(f"{clock(mark.at)} {mark.text}")

    def action_seek(self) -> None:
        replay = self.opened.replay
        if replay is None or replay.line is None:
            return

        found: list[int] = []

        async def carry_out(written: str) -> None:
            if replay.line is not None:
                place = place_of(written, replay.line, replay.at, self.opened.live.view)
                found.append(place if isinstance(place, int) else await self._event_at(place))

        def answered(written: str | None) -> None:
            if written is not None and found:
                self.go_to_moment(found[-1])

        self.app.push_screen(NameScreen("Go to", "", HINT, carry_out=carry_out), answered)

    def go_to_moment(self, place: FindMoment | int) -> None:
        """Replay from there: in this replay, or in one that is opened for it."""

        async def go() -> None:
            try:
                seq = place if isinstance(place, int) else await self._event_at(place)
            except (WorkbenchError, OSError) as error:
                self.workbench.say(str(error), "error")
                return
            if self.opened.replay is not None:
                self.opened.replay.go_to(seq)
                return
            choice, session = self.choice, self.opened.session
            self.workbench.open_session(session, replay=Replay(start=seq))
            self.workbench.opened.choose(replace(choice, sample=""))

        begin(self, go, group="seek", exclusive=True)

    async def _event_at(self, place: FindMoment) -> int:
        found = await (await self.workbench.client()).ask(place)
        return found.seq

    def action_freeze(self) -> None:
        self.opened.freeze()
        self.draw()

    def action_unfreeze(self) -> None:
        self.opened.unfreeze()
        self.draw()

    def action_back(self) -> None:
        self.workbench.go("sessions")

    def _turn(self, knob: Callable[[Replay], None]) -> None:
        if self.opened.replay is not None:
            knob(self.opened.replay)
        self.draw()

    def tell(self, request: Request[Any], done: str) -> None:
        """Send a command; say what came of it."""
        self.workbench.tell(request, done)

    def confirm(self, question: str, consequence: str, request: Request[Any], done: str) -> None:
        """Ask before a command that cannot be taken back."""

        def answered(yes: bool | None) -> None:
            if yes:
                self.tell(request, done)

        self.app.push_screen(ConfirmScreen(question, consequence), answered)


def _badge(watch: Watch) -> str:
    """What else the head says: a replay's pace, our role, who drives in place of us."""
    if watch.replay is not None:
        return replay_badge(watch.replay)
    driver = "" if watch.drives else plain(watch.control_lock.driver)
    role = "OBSERVER" if watch.role == "observer" else ""
    return ", ".join(filter(None, (role, f"{driver} drives" if driver else "")))


def replay_badge(replay: Replay | None) -> str:
    if replay is None:
        return ""
    state = "ended" if replay.ended else "held" if replay.paused else f"×{number(replay.speed)}"
    return f"REPLAY {state} {clock(replay.at)}"
