"""What the screen Why asks the engine: about the sample that is chosen, or that departs most."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from workbench.domain.curation import RequestPoint
from workbench.domain.diagnoses import Diagnosis
from workbench.domain.errors import WorkbenchError
from workbench.domain.questions import Diagnose, Diagnosed
from workbench.tui import sample_rows
from workbench.tui.screens.asking import answered, ask, drop
from workbench.tui.screens.session import SessionScreen
from workbench.tui.screens.why.why_rows import configuration_of
from workbench.tui.text import number
from workbench.tui.watch import WATCHED_PACE
from workbench.tui.widgets.waiting import Busy

SETTLE_S = 0.2
"""What is looked at for less is not asked about: who goes over samples wants the last one."""
MOST_KEPT = 64
"""Answers that are kept; the oldest goes."""


class AskingWhyScreen(SessionScreen):
    """One question at a time; what was answered is kept until somebody asks anew.

    Attributes
    ----------
    chosen : the target that was gone to by key; empty for the chain that departs most.
    awaited : the question that is being answered; None where there is none.
    replies : what was answered, or why not, by question.
    asked_at : samples there were when it was asked, by question.
    """

    def __init__(self) -> None:
        super().__init__()
        self.chosen = ""
        self.awaited: Busy | None = None
        self.replies: dict[Diagnose, Diagnosed | str] = {}
        self.asked_at: dict[Diagnose, int] = {}
        self._asking: Diagnose | None = None

    @property
    def unanswered(self) -> bool:
        return self.awaited is not None

    @property
    def targets(self) -> list[str]:
        """Those with samples, chains first."""
        view = self.shown.view
        measured = dict.fromkeys(item.target for item in view.configurations if item.taken)
        sizes = {}
        if view.campaign is not None:
            sizes = {plan.target.name: len(plan.target.vnfs) for plan in view.campaign.targets}
        return sorted(measured, key=lambda name: sizes.get(name, 1) < 2)

    @property
    def question(self) -> Diagnose | None:
        """What is looked at; None where nothing was measured."""
        session, choice, view = self.opened.session, self.choice, self.shown.view
        item = view.configuration(choice.key) if choice.key and choice.sample else None
        if item is not None and any(one.id == choice.sample for one in item.samples):
            return Diagnose(session, item.target, sample=choice.sample)
        if not (targets := self.targets):
            return None
        return Diagnose(session, self.chosen if self.chosen in targets else None)

    @property
    def reply(self) -> Diagnosed | None:
        """What is known of what is looked at."""
        found = self.replies.get(self.question) if self.question is not None else None
        return found if isinstance(found, Diagnosed) else None

    @property
    def found(self) -> Diagnosis | None:
        return self.reply.diagnosis if self.reply is not None else None

    @property
    def came_since(self) -> int:
        """Samples that came after the question; in a replay there are none."""
        question = self.question
        if question is None or self.opened.replay is not None:
            return 0
        taken = self.shown.view.samples_taken
        return max(0, taken - self.asked_at.get(question, taken))

    def go_on(self) -> None:
        """See that what is looked at is asked about."""
        question = self.question
        here = self.opened.connected and not self.opened.lost
        if question is None or not here or question in self.replies or question == self._asking:
            return
        self._asking = question
        self.awaited = Busy.of("looking for the cause", measures=False)
        ask(self, partial(self._ask, question, self.awaited))

    async def _ask(self, question: Diagnose, busy: Busy) -> None:
        said: Diagnosed | str = ""
        taken = self.shown.view.samples_taken
        try:
            await asyncio.sleep(SETTLE_S)
            said = await answered(self.workbench.client, question, busy, self.draw)
        except (WorkbenchError, OSError) as error:
            said = str(error)
        except asyncio.CancelledError:
            if self._asking == question:  # else another question took its place
                said = f"Not waited for any more: {self.key('why.anew')} asks again."
            raise
        finally:
            if said:
                self.replies[question], self.asked_at[question] = said, taken
                while len(self.replies) > MOST_KEPT:
                    self.replies.pop(next(iter(self.replies)))
            if self._asking == question:
                self._asking = self.awaited = None
                self.draw()

    def action_measure(self) -> None:
        """The experiment that tells most, after a question; the answer is asked for anew then."""
        found = self.found
        if found is None or not found.experiments:
            return
        first = found.experiments[0]
        place = first.target, first.configuration
        self.confirm(
            f"Measure {first.what}, at {number(first.wl)}?",
            f"It shows {first.tells}. A campaign that ended resumes for it.",
            RequestPoint(self.opened.session, *place, first.wl, pace=WATCHED_PACE),
            f"it is measured next; {self.key('why.anew')} asks again then",
        )

    def action_drop(self) -> None:
        drop(self)

    def action_anew(self) -> None:
        if self.question is not None:
            self.replies.pop(self.question, None)
        self.draw()

    def action_target(self) -> None:
        targets, found = self.targets, self.found
        here = found.target if found is not None else self.chosen
        at = targets.index(here) if here in targets else -1
        self.chosen = targets[(at + 1) % len(targets)]
        self.choose(replace(self.choice, sample=""))

    def action_sample_left(self) -> None:
        self._step(-1)

    def action_sample_right(self) -> None:
        self._step(1)

    def _step(self, by: int) -> None:
        """To another sample of the configuration, in the order of the loads."""
        found = self.found
        item = configuration_of(self.shown.view, found) if found is not None else None
        if found is None or item is None:
            return
        after = sample_rows.neighbour(item.samples, found.sample, by)
        if after is not None:
            self.choose(replace(self.choice, key=item.key, sample=after.id, span=None))
