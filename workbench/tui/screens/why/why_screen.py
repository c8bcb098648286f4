"""Why a sample is as slow as it is: the sentence, the chain hop by hop, causes and evidence."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from workbench.domain.counts import counted
from workbench.domain.diagnoses import Diagnosis
from workbench.domain.questions import Diagnose, Diagnosed
from workbench.domain.sample_review import RequestPoint
from workbench.tui import sample_rows
from workbench.tui.plots.canvas import GLYPHS
from workbench.tui.plots.plot import terminal_glyphs
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.asking import QuestionScreen
from workbench.tui.screens.base import HasList
from workbench.tui.screens.why import why_rows
from workbench.tui.text import number
from workbench.tui.watch import WATCHED_PACE
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows
from workbench.tui.widgets.waiting import Waiting

SETTLE_S = 0.2
"""What is looked at for less is not asked about: who goes over samples wants the last one."""
MOST_KEPT = 64
"""Answers that are kept; the oldest goes."""
PANES = ("causes", "evidence")
LEAST_PANE = 6
"""Lines that the list keeps; the answer above it gets what is left."""
NOTHING = """Nothing was measured yet that could be explained.

{live} shows what is being measured."""


class WhyScreen(QuestionScreen, HasList):
    """The answer above; below it causes or evidence, in a wide terminal both.

    One question at a time; what was answered is kept until somebody asks anew.

    Attributes
    ----------
    pane : of `PANES`, where the cursor is.
    chosen : the target that was gone to by key; empty for the chain that departs most.
    replies : what was answered, or why not, by question.
    asked_at : samples there were when it was asked, by question.
    """

    NAME: ClassVar[str] = "why"

    def __init__(self) -> None:
        super().__init__()
        self.pane = PANES[0]
        self.chosen = ""
        self.replies: dict[Diagnose, Diagnosed | str] = {}
        self.asked_at: dict[Diagnose, int] = {}
        self._asking: Diagnose | None = None

    def middle(self) -> ComposeResult:
        yield Waiting()
        yield Rows(id="subject")
        yield Rows(id="answer")
        yield Rows(id="hops")
        yield Rows(id="since")
        with Horizontal(id="why-panes"):
            for pane in PANES:
                yield Listing(id=pane)
        yield Static("", id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one(f"#{self.pane}", Listing)

    # ------------------------------------------------------------------------- asking

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
        self.asking.begin(partial(self._ask, question), "looking for the cause")

    async def _ask(self, question: Diagnose) -> None:
        said: Diagnosed | str = ""
        taken = self.shown.view.samples_taken
        try:
            await asyncio.sleep(SETTLE_S)
            said = await self.asking.answer(question) or self.asking.trouble
        except asyncio.CancelledError:
            if self._asking == question:  # else another question took its place
                said = f"Nobody waits for it any more: {self.key('why.anew')} asks again."
            raise
        finally:
            if said:
                self.replies[question], self.asked_at[question] = said, taken
                while len(self.replies) > MOST_KEPT:
                    self.replies.pop(next(iter(self.replies)))
            if self._asking == question:
                self._asking = None

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        del choice
        self.go_on()
        found, question, width = self.found, self.question, self.size.width
        said = self.replies.get(question) if question is not None else None
        trouble = said if isinstance(said, str) else ""
        self.query_one(Waiting).tell(self.asking.busy, trouble, width, self.key("why.drop"))
        empty = self.query_one("#empty", Static)
        empty.display = question is None
        empty.update(NOTHING.format(live=self.key("go.live")))
        self.query_one("#why-panes").display = found is not None
        for id in ("#subject", "#answer", "#hops", "#since"):
            self.query_one(id).display = False
        if found is None:
            return
        subject = why_rows.subject_row(shown.view, found, width)
        self.query_one("#subject", Rows).show_all([subject])
        hops = why_rows.hop_rows(found, width)
        room = self.query_one("#middle").size.height - LEAST_PANE - len(hops) - 2
        self.query_one("#answer", Rows).show_all(why_rows.answer_rows(found, width, max(2, room)))
        self.query_one("#hops", Rows).show_all(hops if room >= 1 else [])
        self.query_one("#since", Rows).show_all(self._since())
        self._draw_panes(found)

    def _since(self) -> list[Row]:
        if self.opened.replay is not None:
            words = " of the whole session, whatever was measured by then"
        elif self.came_since:
            came = counted(self.came_since, "sample")
            words = f" {came} came since: {self.key('why.anew')} asks again"
        else:
            return []
        return [((words, "dim"),)]

    def _draw_panes(self, found: Diagnosis) -> None:
        wide = self.has_class("-wide")
        reply = self.reply
        notes = reply.notes if reply is not None else ()
        ascii_only = GLYPHS[terminal_glyphs()].dots == (1, 1)
        columns = self.size.width
        widths = dict.fromkeys(PANES, columns)
        if wide:
            widths = {"causes": columns - columns * 3 // 5 - 1, "evidence": columns * 3 // 5}
        rows = {
            "causes": why_rows.cause_rows(found, notes, widths["causes"]),
            "evidence": why_rows.evidence_rows(found, widths["evidence"], ascii_only),
        }
        for pane, lines in rows.items():
            listing = self.query_one(f"#{pane}", Listing)
            listing.display = wide or pane == self.pane
            listing.styles.width = widths[pane]
            listing.styles.margin = (0, 1 if wide and pane == "causes" else 0, 0, 0)
            doubted = found.verdicts and not found.answered
            heading = " possible causes" if doubted else " causes"
            if pane == "evidence":
                heading = why_rows.evidence_heading(widths[pane])
            here = pane == self.pane
            self._show(listing, heading, lines, here)

    def _show(self, listing: Listing, heading: str, lines: list[Row], here: bool) -> None:
        def row(index: int, under: bool, width: int) -> Row:
            del width
            if not (under and here):
                return lines[index]
            (words, look), *rest = lines[index]
            return ((f"›{words[1:]}", look), *rest)

        head: Row = ((heading, "strong" if here else "dim"),)
        listing.show_lines(head, len(lines), row, min(listing.cursor, max(0, len(lines) - 1)))

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        found = self.found
        item = why_rows.configuration_of(self.shown.view, found) if found is not None else None
        conditions = {
            "pane": found is not None,
            "target": len(self.targets) > 1,
            "sample_left": item is not None and bool(item.samples),
            "sample_right": item is not None and bool(item.samples),
            "show_live": item is not None and bool(item.samples),
            "measure": found is not None and bool(found.experiments) and self.opened.commandable,
            "anew": self.asking.busy is None and self.question is not None,
            "drop": self.asking.busy is not None,
            "back": self.asking.busy is None,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if said := super().why_not(method):
            return said
        if method == "target":
            return "Samples are of this target alone."
        if method == "measure" and self.found is not None:
            return "No point of this campaign would tell more."
        if method in ("measure", "pane", "show_live", "sample_left", "sample_right"):
            return "There is no answer yet."
        if method == "anew":
            busy = self.asking.busy is not None
            return "The answer is being computed." if busy else "Nothing was measured yet."
        return ""

    def legend(self) -> tuple[str, ...]:
        return (
            "→ what to do, or a function in the order of the chain",
            "≠ the rival explanation, and what tells it apart",
            f"+ what to measure to find out; {self.key('why.measure')} measures the first of them",
            "? what was not collected, and so not judged",
            "◀ the function in which the cause of that number acts",
            "× ratio to the function alone; new: absent when it is alone",
            "curves are over the load, alone and chained on one scale from 0",
            "reversed, in a curve: the sample's load",
        )

    def copied(self) -> tuple[str, str]:
        found, reply = self.found, self.reply
        if found is None or reply is None:
            return "", ""
        width = 100
        rows = [
            why_rows.subject_row(self.shown.view, found, width),
            *why_rows.answer_rows(found, width, 99),
            *why_rows.hop_rows(found, width),
            *why_rows.cause_rows(found, reply.notes, width),
        ]
        return "the answer", "\n".join("".join(t for t, _ in row).rstrip() for row in rows)

    def on_listing_moved(self) -> None:
        self.draw()

    def action_pane(self) -> None:
        self.pane = PANES[(PANES.index(self.pane) + 1) % len(PANES)]
        self.draw()

    def action_show_live(self) -> None:
        found = self.found
        item = why_rows.configuration_of(self.shown.view, found) if found is not None else None
        if found is not None and item is not None:
            self.choose(replace(self.choice, key=item.key, sample=found.sample, span=None))
            self.workbench.go("live")

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
            f"it is measured next; {self.key('why.anew')} then asks again",
        )

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
        item = why_rows.configuration_of(self.shown.view, found) if found is not None else None
        if found is None or item is None:
            return
        after = sample_rows.neighbour(item.samples, found.sample, by)
        if after is not None:
            self.choose(replace(self.choice, key=item.key, sample=after.id, span=None))
