"""Screen 3, the campaign: grid, load, KPI, SLA, sampler, budget; what it costs; its start."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.timer import Timer

from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.errors import Mistake, WorkbenchError
from workbench.domain.messages import PlanCampaign
from workbench.domain.resources import allotted_words
from workbench.domain.sessions import Plan
from workbench.tui.draft import Draft
from workbench.tui.run_terms import TOO_LARGE, RunTerms
from workbench.tui.screens.campaign import cost_rows
from workbench.tui.screens.campaign.allocation_settings import (
    EVERY,
    allocation,
    combination,
    most_lines,
)
from workbench.tui.screens.campaign.campaign_settings import campaign_settings
from workbench.tui.screens.campaign.cost_rows import DraftCosts
from workbench.tui.screens.campaign.settings import Document, Setting, placed
from workbench.tui.screens.campaign.settings_form import FLEXIBLE, SettingsForm, name_of
from workbench.tui.screens.dialogs import ConfirmScreen
from workbench.tui.screens.draft import DraftScreen, titles_of
from workbench.tui.text import plain, sentence
from workbench.tui.watch import lab_time
from workbench.tui.widgets.field import Cycle, Field
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.rows import Rows
from workbench.tui.workers import begin

TYPING_S = 0.5
"""How long nobody types before a line counts as written."""
SETTLE_S = 0.3
"""How long nothing changes before its cost is asked for."""
SPARE_LINES = 6
"""Of functions that may come, so that the form need not be made anew for each."""
EVERY_TARGET = "every target"
ALLOCATION, RUN = "allocation: vCPU shares or flavors", "run"
TERMS = ("too_large", "seed", "session")

Sections = dict[str, tuple[Setting, ...]]
Line = tuple[str, Setting, str, bool]
"""Field, setting, its mistake, whether it is to be seen."""


@dataclass(frozen=True)
class Typed:
    """What was entered into a line of the form, and what it was about at that moment."""

    draft: str
    field: str
    setting: Setting
    text: str
    visit: int
    """How often somebody had come to that line by then: what is entered meanwhile is one step."""


class CampaignScreen(DraftScreen):
    """A form of what the campaign says, and beside it what that costs."""

    NAME: ClassVar[str] = "campaign"

    def __init__(self) -> None:
        super().__init__()
        self.every = False
        """Whether the lines of allocations are about all targets at once."""
        self.all_settings = False
        self.costs = DraftCosts()
        self.form: SettingsForm | None = None
        self._priced: object = None
        """The state whose cost is known, or is being asked for."""
        self._read: tuple[object, Sections] | None = None
        """The settings of a state, since to look through hundreds of targets takes a while."""
        self._settings: dict[str, Setting] = {}
        """By the field that shows each now."""
        self._elsewhere: tuple[Mistake, ...] = ()
        self._typed: Typed | None = None
        """What was typed and is not written yet."""
        self._visits: Counter[str] = Counter()
        """How often the keys came to each field."""
        self._overtaken = ("", 0)
        """Draft, and how often it was overtaken, when it was drawn last."""
        self._typing: Timer | None = None
        self._question: ConfirmScreen | None = None
        """Whether to run, while it is asked."""

    def middle(self) -> ComposeResult:
        yield VerticalScroll(id="settings", can_focus=False)
        yield Rows(id="costs")

    @property
    def terms(self) -> RunTerms:
        return self.draft.terms

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, draft: Draft) -> None:
        sections = self._sections(draft)
        self._make_form(sections, most_lines(draft.document, draft.palette))
        if self.form is not None and self.form.made:
            lines = self._lines(sections, draft)
            self._settings = {name: setting for name, setting, _, _ in lines}
            typed = self._typed.field if self._typed is not None else ""
            now = (draft.name, draft.overtaken)
            overtaken, self._overtaken = now != self._overtaken, now
            self.form.show(draft.document, lines, typed, self._more(lines), anew=overtaken)
            if draft.wanted:
                self.call_after_refresh(self._do_wanted)
        self._price(draft)
        self._draw_costs(draft)

    def _do_wanted(self) -> None:
        """What was asked of it on another screen of the draft."""
        wanted, self.draft.wanted = self.draft.wanted, ""
        if wanted == "mistake" or (wanted and self.draft.to_correct):
            self.action_mistake()
        elif wanted:
            self.action_run_draft()

    def _more(self, lines: Sequence[Line]) -> str:
        """Which key shows the settings that are hidden, or hides them again."""
        rare = sum(setting.here and setting.rare for _, setting, _, _ in lines)
        verb = "hides" if self.all_settings else "shows"
        return (
            f"{self.key('campaign.settings')} {verb} {counted(rare, 'more setting')}"
            if rare
            else ""
        )

    def offer_keys(self) -> None:
        super().offer_keys()
        if self.form is not None and self.form.editing:
            does = (a for a in self.offered() if a.method in ("run_draft", "mistake"))
            self.query_one(KeyLine).offer_form(does)

    def _sections(self, draft: Draft) -> Sections:
        """All settings by heading; those of functions are the last ones of theirs."""
        state = (draft.changed, draft.name, draft.target, self.every, self.terms)
        if self._read is None or self._read[0] != state:
            self._read = state, self._sections_now(draft)
        return self._read[1]

    def _sections_now(self, draft: Draft) -> Sections:
        document, palette = draft.document, draft.palette
        chosen = EVERY if self.every else draft.target
        rest = campaign_settings(document, palette, chosen)
        return {
            ALLOCATION: (
                self._target(draft),
                combination(chosen),
                *allocation(document, palette, chosen),
            ),
            "load": rest["load"],
            "objective": rest["objective"],
            "sampling": rest["sampling"],
            RUN: (
                *rest["run"],
                self._term("too_large", "host too small", TOO_LARGE),
                self._term("seed", "seed"),
                self._term("session", "session", hint="the campaign's name", rare=True),
            ),
            "timing": rest["timing"],
        }

    def _target(self, draft: Draft) -> Setting:
        titles = [f"{number} {title}" for number, title in enumerate(titles_of(draft), 1)]
        chosen = EVERY_TARGET if self.every or not titles else titles[draft.target]
        options = (*titles, EVERY_TARGET) if len(titles) > 1 else tuple(titles)
        fields = ("targets", *(() if self.every else (f"targets[{draft.target}]",)))
        return Setting(
            "target", "target", fields, lambda _: chosen, _unwritten, options=options,
            here=bool(titles),
        )  # fmt: skip

    def _term(
        self,
        name: str,
        label: str,
        options: tuple[str, ...] | None = None,
        *,
        hint: str = "",
        rare: bool = False,
    ) -> Setting:
        value = str(getattr(self.terms, name))
        return Setting(name, label, (), lambda _: value, _unwritten, hint, options, rare=rare)

    def _make_form(self, sections: Mapping[str, Sequence[Setting]], functions: int) -> None:
        """Once, and again where targets have more functions than it has lines for."""
        if self.form is not None and self.form.lines >= functions:
            return
        fixed = {title: settings for title, settings in sections.items() if title != ALLOCATION}
        form = SettingsForm(
            {ALLOCATION: sections[ALLOCATION][:2], **fixed},
            (ALLOCATION, functions + SPARE_LINES),
        )
        before, self.form = self.form, form
        if before is not None:
            before.remove()
        self.query_one("#settings").mount(form)

    def on_settings_form_made(self) -> None:
        self.draw()

    def _lines(self, sections: Mapping[str, Sequence[Setting]], draft: Draft) -> list[Line]:
        settings = [setting for found in sections.values() for setting in found]
        mistakes, self._elsewhere = placed(draft.own_mistakes, settings)
        self._elsewhere += tuple(m for m in draft.mistakes if m not in draft.own_mistakes)
        mistakes |= self.terms.mistakes
        lines: list[Line] = []
        for title, found in sections.items():
            for number, setting in enumerate(found):
                flexible = title == ALLOCATION and number >= 2
                name = f"{FLEXIBLE}{number - 2}" if flexible else setting.name
                wrong = mistakes.get(setting.name, "")
                visible = setting.here and (self.all_settings or not setting.rare or bool(wrong))
                lines.append((name, setting, wrong, visible))
        return lines

    def _draw_costs(self, draft: Draft) -> None:
        panel = self.query_one("#costs", Rows)
        width, height = panel.size.width - 1, panel.size.height
        mistakes = draft.to_correct if draft.settled else 0
        method = draft.campaign.sampling.method if draft.campaign else ""
        panel.show(cost_rows.rows(self.costs, width, height, mistakes, self._elsewhere, method))
        if self._question is not None:
            self._question.ask(*self._whether_to_run())

    # ------------------------------------------------------------------------- cost

    def _price(self, draft: Draft) -> None:
        """Ask for the cost of what stands there now, unless it is known or being asked for."""
        if self.is_priced and (draft.settled or not self.costs.busy):
            return
        # Whatever is still to come is of another state, and the engine plans the latest one.
        self.workers.cancel_group(self, "costs")
        self._priced = None
        known = draft.palette.samplers if draft.palette else ()
        busy = not draft.to_correct
        before = self.costs if self.costs.draft == draft.name else DraftCosts()
        self.costs = DraftCosts(
            draft.name, before.campaign, before.plan, order=known, busy=busy, old=True
        )
        if not draft.settled or draft.campaign is None or self.terms.mistakes:
            return
        self._priced = self._state
        request = self.terms.plan(draft.name, draft.lab, draft.campaign.budget_s)
        chosen = draft.campaign.sampling.method
        names = (chosen, *(name for name in known if name != chosen))
        asking = partial(self._ask_costs, draft.name, draft.campaign, request, names)
        begin(self, asking, group="costs", exclusive=True)

    @property
    def _state(self) -> object:
        """What a cost is of."""
        return self.draft.name, self.draft.text, self.terms

    @property
    def is_priced(self) -> bool:
        """Whether the cost of what stands there was asked for."""
        return self._priced == self._state

    async def _ask_costs(
        self, draft: str, campaign: Campaign, request: PlanCampaign, names: tuple[str, ...]
    ) -> None:
        """The plan, then one sampler after the other: newer questions end this one in between."""
        await asyncio.sleep(SETTLE_S)
        try:
            plan = await self._plan(request)
            order = self.costs.order
            self._tell_costs(DraftCosts(draft, campaign, plan, order=order, busy=True))
            for name in names:
                plan = await self._plan(replace(request, samplers=True, only=(name,)))
                for cost in plan.samplers:
                    self._tell_costs(self.costs.told(cost))
        except (WorkbenchError, OSError) as error:
            self._tell_costs(
                DraftCosts(draft, campaign, order=self.costs.order, trouble=str(error))
            )
            self.workbench.say(str(error), "error")  # whole, where the panel is narrow
        else:
            self._tell_costs(replace(self.costs, busy=False))

    async def _plan(self, request: PlanCampaign) -> Plan:
        reply = await self.request(request)
        return reply.plan

    def _tell_costs(self, costs: DraftCosts) -> None:
        self.costs = costs
        if self.ready and self.in_sight and self.draft.is_open:
            self._draw_costs(self.draft)

    # ------------------------------------------------------------------------- writing

    def on_field_changed(self, event: Field.Changed) -> None:
        event.stop()
        event.field.hear()
        name = name_of(event.field)
        setting = self._settings.get(name)
        if setting is None or event.field.value == plain(setting.read(self.draft.document)):
            return  # it shows what the draft says
        typed = Typed(self.draft.name, name, setting, event.field.value, self._visits[name])
        chosen = isinstance(event.field.entry, Cycle)
        if chosen or (self._typed is not None and self._typed.field != name):
            self.write_typed()  # another line is gone on with already
        if chosen:
            self._write(typed)
            return
        self._typed = typed
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(TYPING_S, self.write_typed)

    def write_typed(self) -> None:
        """What was typed into a line, into the draft."""
        typed, self._typed = self._typed, None
        if typed is not None:
            self._write(typed)

    def _write(self, typed: Typed) -> None:
        """By then the line may be another setting's, or another draft may be open."""
        setting, text = typed.setting, typed.text
        visit = (typed.draft, typed.field, setting.name, typed.visit)
        if typed.draft != self.draft.name:
            said = f"{setting.label.strip()} {text} was not written: the draft was closed first."
            self.workbench.say(plain(said), "warning")
        elif typed.field == "target":
            self._choose_target(text)
        elif typed.field in TERMS:
            terms = self.terms.with_(typed.field, text)
            self.draft.set_terms(f"Setting {setting.label.strip()}", terms, visit)
        else:
            what = f"Setting {setting.label.strip()}"
            self.draft.edit(what, lambda document: setting.write(document, text), visit)

    def _choose_target(self, text: str) -> None:
        self.every = text == EVERY_TARGET
        number = text.partition(" ")[0]
        if not self.every and number.isdigit():
            self.draft.target = int(number) - 1
        self.draw()

    def on_form_submitted(self) -> None:
        """Enter goes on to the next line; not from one that is wrong, nor beyond the last."""
        self.write_typed()
        if self.form is not None:
            self.form.go_on()

    def on_form_left(self) -> None:
        self.write_typed()
        self.draw()

    def on_descendant_blur(self) -> None:
        self.write_typed()
        self.call_after_refresh(self.draw)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(field := event.widget.parent and event.widget.parent.parent, Field):
            self._visits[name_of(field)] += 1
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """A sampler in the table of costs is chosen by the mouse."""
        panel = self.query_one("#costs", Rows)
        if not panel.display or not panel.region.contains(*event.screen_offset):
            return
        row = event.screen_y - panel.region.y
        name = cost_rows.sampler_of(panel.rows[row]) if row < len(panel.rows) else ""
        if self.draft.palette and name in self.draft.palette.samplers:
            self.draft.put(name, "sampling", "method", what=f"Choosing {name}")

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        ready = self.draft.is_open and self.form is not None
        conditions = {
            "edit": ready,
            "settings": ready,
            "move_cursor": ready,
            "next_target": ready and len(self.draft.targets) > 1,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if said := super().why_not(method):
            return said
        if method == "next_target":
            return "There is no other target."
        return ""

    def action_edit(self) -> None:
        if self.form is not None:
            self.form.edit()

    def action_settings(self) -> None:
        """All settings, or only those that are used most."""
        self.all_settings = not self.all_settings
        self.draw()

    def action_move_cursor(self, by: int) -> None:
        if self.form is not None:
            self.form.move_cursor(by)

    def action_next_target(self, by: int) -> None:
        if self.form is not None and isinstance(entry := self.form.field("target").entry, Cycle):
            entry.action_turn(by)

    def action_mistake(self) -> None:
        """To the line that is wrong; of what no line shows, the sentence and what edits it."""
        if self.form is None:
            return
        numbers = [*filter(None, map(_target_of, self.draft.own_mistakes))]
        if self.form.field("target").mistake and numbers:
            self._choose_target(numbers[0])  # its lines are hidden while another one is chosen
        if self.form.wrong:
            self.form.edit()
        elif self._elsewhere:
            first, edit = self._elsewhere[0], self.key("draft.editor")
            self.workbench.say(f"{plain(str(first))} ({edit} edits the text.)", "warning")

    def action_run_draft(self) -> None:
        self.write_typed()  # it is asked of the draft with what stands in its line
        if self.draft.to_correct:
            self.action_mistake()
            return

        def answered(yes: bool | None) -> None:
            self._question = None
            if yes and self.draft.settled:
                self._run()
            elif yes:
                self.do_latest(self._run_settled)

        self._question = ConfirmScreen(*self._whether_to_run())
        self.app.push_screen(self._question, answered)

    async def _run_settled(self) -> None:
        """Once the engine has what was typed last: until then the draft's campaign is the one
        before. Where somebody else's draft has taken its place, nobody said yes to that."""
        draft, asked = self.draft, (self.draft.name, self.draft.overtaken)
        if not await draft.until_settled():
            self.workbench.say("It was not started: no engine answers.", "warning")
        elif (draft.name, draft.overtaken) == asked:
            self._run()

    def _run(self) -> None:
        draft = self.draft
        if draft.to_correct:  # the engine has said so meanwhile
            self.action_mistake()
            return
        budget_s = draft.campaign.budget_s if draft.campaign else None
        command = self.terms.run(draft.name, draft.lab, budget_s)
        self.workbench.open_session(command=command)

    def _whether_to_run(self) -> tuple[str, str]:
        """The question, and what a yes would take as far as it is known of the draft as it is."""
        plan = None if self.costs.old else self.costs.plan
        beyond = self.draft.beyond_host
        words = self._consequence(plan)
        if beyond and not (plan and beyond in " ".join(plan.warnings)):
            words += f"\n! {plain(beyond)}"
        words += self._unpredicted() + self._beyond_alone()
        lab = plain(plan.lab) if plan else plain(self.draft.lab or "")
        which = f"the lab {lab}" if lab else "whichever lab is available"
        return f"Run {plain(self.draft.name)} on {which}?", words

    def _unpredicted(self) -> str:
        """That a chain's functions are not profiled alone, which nobody wants to learn later."""
        unprofiled = self.draft.campaign.unprofiled if self.draft.campaign else {}
        missing = dict.fromkeys(name for names in unprofiled.values() for name in names)
        if not missing:
            return ""
        chains = "the chain" if len(unprofiled) == 1 else "chains"
        each = "a target" if len(missing) == 1 else "targets"
        return (
            f"\n· No prediction to compare {chains} with: {' and '.join(map(plain, missing))} "
            f"must be {each} too. {self.key('chain.target')} on Chain adds one."
        )

    def _beyond_alone(self) -> str:
        """That chains get what their functions are not profiled with."""
        beyond = self.draft.campaign.beyond_alone() if self.draft.campaign else {}
        if not beyond:
            return ""
        return (
            f"\n· Not measured alone, so that no recommendation reaches there: "
            f"{plain(allotted_words(beyond))}. {self.key('campaign.target')} goes to the targets: "
            "give them the same."
        )

    def _consequence(self, plan: Plan | None) -> str:
        """What a run will take, in lines that a dialog of any width can hold."""
        if plan is None:
            return self.costs.trouble or "The cost is being computed …"
        configurations = counted(len(plan.configurations), "configuration")
        lines = [
            f"At most {counted(plan.samples, 'sample')} of {configurations}, about "
            f"{lab_time(plan.lab, self.costs.lab_s, plan.most_lab_s)}; seed {self.terms.seed}.",
            *(f"! {sentence(warning)}" for warning in plan.warnings),
        ]
        return "\n".join(lines)

    def legend(self) -> tuple[str, ...]:
        return (
            "▸ the sampler that the campaign names; a click on another one chooses it",
            "samples and lab time: the sampler, simulated on a noise-free stand-in",
            "≤ upper bound: simulating it takes too long   – cannot sample this campaign",
        )


def _target_of(mistake: Mistake) -> str:
    """The number of the target that a mistake is in, from 1; empty: it is in none."""
    found = re.match(r"targets\[(\d{1,6})\]", mistake.field)
    return str(int(found[1]) + 1) if found else ""


def _unwritten(document: Document, text: str) -> None:
    """Of settings that are not the draft's."""
