"""What the screen Compare asks the engine for: one question at a time, of what is looked at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from workbench.domain.counts import counted
from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.messages import ListSessions
from workbench.domain.parameters import Configuration
from workbench.domain.sessions import UNDER_WAY
from workbench.domain.topology import Target
from workbench.tui.screens.asking import EngineQuestion, QuestionScreen
from workbench.tui.screens.compare import compare_lines, comparing, session_diff
from workbench.tui.screens.compare.comparing import (
    AT_ONCE,
    ComparedChain,
    ComparisonSoFar,
    Contrast,
)
from workbench.tui.screens.compare.session_diff import Change
from workbench.tui.screens.dialogs import ChoiceScreen
from workbench.tui.text import plain
from workbench.tui.workers import begin

SETTLE_S = 0.3
"""What is looked at for less is not asked about: who goes through KPIs wants the last one."""
SAME = "of this session"
AGAIN_S = 5.0
"""What was refused is asked again, once samples came, no sooner than this; see `_outdated`."""
AGAIN_COSTS = 5.0
"""And no sooner than this many times what its answers took: the rest of the time is the host's."""


class CompareAskingScreen(QuestionScreen):
    """Chooses what is compared, and sees that answers come.

    Attributes
    ----------
    view : of `compare_lines.VIEWS`.
    chain, rule, profiles, insist : as in `ComparedChain`; empty is the default.
    here : the configuration under the cursor.
    contrast, changes, change : the other session, what differs from it, the line of the cursor.
    answer : what is drawn; it stays until that of what is looked at now is there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.view = compare_lines.VIEWS[0]
        self.chain = self.rule = ""
        self.profiles: str | None = None
        self.insist = False
        self.here: Configuration | None = None
        self.contrast: Contrast | None = None
        self.changes: tuple[Change, ...] = ()
        self.change = 0
        self.seeing = EngineQuestion(self, self.draw, "seeing")
        """Another session, which does not wait for what is computed."""
        self.answer: ComparisonSoFar | None = None
        self.answers: dict[ComparedChain, ComparisonSoFar] = {}

    @property
    def unanswered(self) -> bool:
        return super().unanswered or (self.view == "sessions" and self._awaits_other)

    @property
    def _awaits_other(self) -> bool:
        other = self.contrast
        return other is not None and other.compared is None and other.refused is None

    @property
    def rules(self) -> tuple[str, ...]:
        """Those that apply to what is looked at, as soon as any answer has said so."""
        subject = self.subject()
        here = (subject.chain, subject.kpi) if subject is not None else None
        found = (a.rules for s, a in self.answers.items() if (s.chain, s.kpi) == here)
        return next(filter(None, found), ())

    def subject(self) -> ComparedChain | None:
        """What is looked at; None where the session has no chain."""
        target = self.target()
        if target is None:
            return None
        kpi = self.shown.kpi(self.choice)
        session = self.opened.session
        return ComparedChain(session, target.name, kpi, self.rule, self.profiles, self.insist)

    def target(self, name: str = "") -> Target | None:
        """A chain by its name, by default the one that was chosen, else the first."""
        found = comparing.chains(self.shown.view)
        wanted = name or self.chain
        return next((t for t in found if t.name == wanted), found[0] if found else None)

    # ------------------------------------------------------------------------- asking

    def go_on(self) -> None:
        """See that somebody asks what is still to be asked."""
        here = self.opened.connected and not self.opened.lost
        if self.asking.busy is None and here and self._next() is not None:
            self.asking.begin(self._work, "computing")

    def _next(self) -> ComparisonSoFar | None:
        """What lacks something that is looked at now; what was looked at in between is skipped."""
        subject = self.subject() if self.view != "sessions" else None
        if subject is None:
            return None
        answer = self.answers.get(subject)
        if answer is None or self._outdated(answer):
            samples = comparing.valid_samples(self.shown.view, subject.chain)
            measured = comparing.all_valid_samples(self.shown.view)
            basis = comparing.basis_of(self.shown.view, subject)
            answer = ComparisonSoFar(subject, samples, measured=measured, basis=basis)
            answer.asked_at = time.monotonic()
            self.answers[subject] = answer
        return answer if not answer.here or self._wanted(answer) else None

    def came_since(self, answer: ComparisonSoFar) -> int:
        """Valid samples since a question was refused, of any target: they may answer it.

        None in a replay: there the engine answers of the whole session.
        """
        if answer.refused is None or self.opened.replay is not None:
            return 0
        return max(0, comparing.all_valid_samples(self.shown.view) - answer.measured)

    def _outdated(self, answer: ComparisonSoFar) -> bool:
        """Whether a refusal may hold no longer, and it is time to ask again.

        While the run goes on that waits for `AGAIN_S` and `AGAIN_COSTS`; afterwards it does not.
        """
        if not self.came_since(answer):
            return False
        waited = time.monotonic() - answer.asked_at
        over = self.shown.view.state not in UNDER_WAY
        return over or waited >= max(AGAIN_S, AGAIN_COSTS * answer.cost_s)

    def _wanted(self, answer: ComparisonSoFar) -> list[Configuration]:
        """Configurations from the cursor on whose curves nobody asked for yet."""
        if answer.uncharted is not None:
            return []
        target = self.target(answer.subject.chain)
        if target is None:
            return []
        lines = compare_lines.lines_of(self.shown.view, target, answer.compared)
        order = [line.configuration for line in lines]
        at = order.index(self.here) if self.here in order else 0
        if not order or order[at] in answer.asked:
            return []
        return [c for c in (*order[at:], *order[:at]) if c not in answer.asked][:AT_ONCE]

    async def _work(self) -> None:
        """One question at a time, until everything is there that is looked at."""
        try:
            while self._next() is not None:
                await asyncio.sleep(SETTLE_S)
                if (lacking := self._next()) is None:
                    break
                try:
                    await self._ask(lacking)
                except (WorkbenchError, OSError) as error:  # the engine itself does not answer
                    self._fail(lacking, EngineError(str(error)))
                self.draw()
        except asyncio.CancelledError:
            if (lacking := self._next()) is not None:
                dropped = f"cancelled: {self.key('compare.anew')} asks again"
                self._fail(lacking, EngineError(dropped))
                lacking.uncharted = EngineError(dropped)  # curves would be asked for next
            raise

    def _fail(self, lacking: ComparisonSoFar, error: WorkbenchError) -> None:
        """It is asked again as any refusal is."""
        if lacking.here:
            lacking.uncharted = error
        else:
            lacking.refused = error

    async def _ask(self, lacking: ComparisonSoFar) -> None:
        client, began = await self.workbench.client(), time.monotonic()
        if lacking.here:
            await lacking.chart(client, self._wanted(lacking))
        else:
            await lacking.compare(client)
        lacking.cost_s += time.monotonic() - began

    # ------------------------------------------------------------------------- choosing

    def action_chain(self) -> None:
        names = [target.name for target in comparing.chains(self.shown.view)]
        target = self.target()
        at = names.index(target.name) if target is not None else -1
        self.chain, self.rule = names[(at + 1) % len(names)], ""
        self.draw()

    def action_kpi(self) -> None:
        kpis = self.shown.kpis()
        here = self.shown.kpi(self.choice)
        at = kpis.index(here) if here in kpis else -1
        self.rule = ""
        self.choose(replace(self.choice, kpi=kpis[(at + 1) % len(kpis)]))

    def action_rule(self) -> None:
        """The default, which an accepted model answers where there is one; then every rule."""
        rules = ("", *self.rules)
        at = rules.index(self.rule) if self.rule in rules else 0
        self.rule = rules[(at + 1) % len(rules)]
        self.draw()

    def action_anew(self) -> None:
        """Ask again; what there is stays until the answer comes."""
        if self.view == "sessions":
            if self.contrast is not None:
                self._compare_with(self.contrast.other)
        elif (subject := self.subject()) is not None:
            self.answers.pop(subject, None)
        self.draw()

    def action_insist(self) -> None:
        self.insist = True
        self.draw()

    def action_other(self) -> None:
        begin(self, partial(self._choose_session, "Compare this session with", self._compare_with))

    def action_profiles(self) -> None:
        begin(self, partial(self._choose_session, "Take the functions' profiles", self._take, SAME))

    def _compare_with(self, session: str) -> None:
        """Of stored figures alone."""
        self.view, self.contrast = "sessions", Contrast(session)
        self.changes, self.change = (), 0
        self.seeing.begin(partial(self._see, self.contrast), f"comparing with {plain(session)}")

    async def _see(self, contrast: Contrast) -> None:
        try:
            await contrast.ask(await self.workbench.client(), self.opened.session)
        except (WorkbenchError, OSError) as error:  # the engine itself does not answer
            contrast.refused = EngineError(str(error))
        if contrast is self.contrast and contrast.compared is not None:
            self.changes = session_diff.changes_of(contrast.compared)

    def _take(self, session: str) -> None:
        self.profiles, self.insist = session or None, False

    async def _choose_session(
        self, question: str, then: Callable[[str], None], same: str = ""
    ) -> None:
        try:
            reply = await (await self.workbench.client()).ask(ListSessions())
        except (WorkbenchError, OSError) as error:
            self.workbench.say(str(error), "error")
            return
        options = [("", same)] if same else []
        options += [
            (s.name, f"{s.name}  {s.campaign}, {s.lab}, {counted(s.samples, 'sample')}")
            for s in reply.sessions
            if s.name != self.opened.session
        ]
        if not options:
            self.workbench.say("There is no other session in this workspace.", "warning")
            return

        def chosen(session: str | None) -> None:
            if session is not None:
                then(session)
                self.draw()

        self.show_late(ChoiceScreen(question, options), chosen)
