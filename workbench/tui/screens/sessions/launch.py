"""Start a campaign: which one, on which lab, and what it will cost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static

from workbench.domain.counts import counted
from workbench.domain.messages import CampaignChoice, ListCampaigns, PlanCampaign, RunCampaign
from workbench.domain.sessions import Plan
from workbench.tui.screens.asking import EngineQuestion
from workbench.tui.screens.dialogs import ConfirmScreen, ListDialog
from workbench.tui.text import plain, plain_lines
from workbench.tui.watch import WATCHED_PACE, lab_time
from workbench.tui.widgets.filter import FilterLine

AUTOMATIC = "automatic: Docker where an engine answers, else simulated"
LABS: tuple[tuple[str | None, str], ...] = (
    (None, AUTOMATIC),
    ("docker", "docker: real containers on this host"),
    ("sim", "sim: simulated, figures are not of your host"),
)
SETTLE_S = 0.25
"""How long the cursor rests on a campaign before its plan is asked for."""


class LaunchScreen(ListDialog[RunCampaign | None]):
    """Shows the plan of the campaign under the cursor; enter asks whether to start it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("l,tab", "lab", "Lab"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.campaigns: tuple[CampaignChoice, ...] = ()
        self.lab = 0
        self.refused = False
        """What is chosen cannot be run; the plan says why."""
        self.asking = EngineQuestion(self, self._draw_note)
        self._noted = ""
        """What is known of the plan, or why there is none."""
        self._question: ConfirmScreen | None = None
        """Whether to start it, while it is asked."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog launch"):
            yield Static("Start a campaign", classes="dialog-title", markup=False)
            yield FilterLine("words of a campaign")
            yield OptionList(id="campaigns", markup=False)
            yield Static("", id="lab", markup=False)
            yield Static("", id="plan", markup=False)
            yield Static(
                "enter start   l lab   j k choose   esc cancel", classes="dialog-keys", markup=False
            )

    def on_mount(self) -> None:
        self._show_lab()
        self.asking.begin(self._load, "looking for campaigns")

    async def _load(self) -> None:
        reply = await self.asking.answer(ListCampaigns())
        if reply is None:
            self._note(self.asking.trouble)
            return
        self.campaigns = reply.campaigns
        options = self.query_one(OptionList)
        self.list_lines(f"{c.name:<18} {c.summary}" for c in self.campaigns)
        if self.filters:
            keys = "enter start   l lab   j k choose   / filter   esc cancel"
            self.query_one(".dialog-keys", Static).update(keys)
        if self.campaigns:
            options.focus()
        else:
            self._note("No campaigns found. Put one into templates/campaigns/ of the workspace.")

    def on_option_list_option_highlighted(self) -> None:
        self._ask_plan()

    def on_option_list_option_selected(self) -> None:
        """Before it starts it asks, as the screen Campaign does."""
        if (chosen := self._chosen()) is None or self.refused:
            return
        command = RunCampaign(chosen.name, lab=LABS[self.lab][0], pace=WATCHED_PACE)

        def answered(yes: bool | None) -> None:
            self._question = None
            if yes and not self.refused:  # which may have become known meanwhile
                self.dismiss(command)

        lab = f"the lab {command.lab}" if command.lab else "whichever lab is available"
        self._question = ConfirmScreen(f"Run {plain(chosen.name)} on {lab}?", self._consequence)
        self.app.push_screen(self._question, answered)

    @property
    def _consequence(self) -> str:
        """What is known of the plan by now."""
        return plain_lines(self._noted or "The cost is being computed …")

    def action_lab(self) -> None:
        self.lab = (self.lab + 1) % len(LABS)
        self._show_lab()
        self._ask_plan()

    def _chosen(self) -> CampaignChoice | None:
        return None if self.here is None else self.campaigns[self.here]

    def _show_lab(self) -> None:
        self.query_one("#lab", Static).update(f"lab  {plain(LABS[self.lab][1])}")

    def _ask_plan(self) -> None:
        if chosen := self._chosen():
            self.refused, self._noted = False, ""
            self.asking.begin(partial(self._plan, chosen), "planning")

    async def _plan(self, campaign: CampaignChoice) -> None:
        await asyncio.sleep(SETTLE_S)
        asked = PlanCampaign(campaign.name, LABS[self.lab][0])
        # Then its sampler is played, which takes time.
        for request in (asked, replace(asked, chosen=True)):
            reply = await self.asking.answer(request)
            if reply is None:
                self.refused = True
                self._note(f"! {self.asking.trouble}")
                return
            self._note(_plan_text(reply.plan))

    def _note(self, note: str) -> None:
        self._noted = note
        self._draw_note()

    def _draw_note(self) -> None:
        """What is known, and for how long the rest is waited for."""
        if not self.is_attached or self._pruning:
            return  # it was closed meanwhile
        lines = self._noted.splitlines()
        if self.asking.busy is not None:
            lines.append(f"… {self.asking.busy.text}")
        self.query_one("#plan", Static).update("\n".join(map(plain, lines)))
        if self._question is not None:
            self._question.ask(self._question.question, self._consequence)


def _plan_text(plan: Plan) -> str:
    """What the campaign's own sampler will take, as soon as that is known; until then, or where
    nobody can tell, what the plan allows at most."""
    of = f"plan  {counted(len(plan.configurations), 'configuration')} on {plan.lab}"
    at_most = lab_time(plan.lab, plan.lab_s, plan.most_lab_s)
    most = f"at most {counted(plan.samples, 'sample')}, {at_most}"
    own = next((cost for cost in plan.samplers if cost.figure != "unknown"), None)
    if own is None:
        told = f"{of}, {most}"
    else:
        told = (
            f"{of}; {own.sampler} takes about {counted(own.samples, 'sample')}, "
            f"{lab_time(plan.lab, own.lab_s, plan.most_lab_s)} ({most.partition(',')[0]})"
        )
    return "\n".join((told, *(f"!  {warning}" for warning in plan.warnings)))
