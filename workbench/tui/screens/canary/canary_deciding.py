"""What the screen Canary asks of the engine: plan, end, accept, reject; and what came of it."""

from __future__ import annotations

from functools import partial

from workbench.domain.canaries import CanaryView
from workbench.domain.errors import WorkbenchError
from workbench.domain.export_requests import GetRecommendOptions, RecommendOptions
from workbench.domain.messages import StopRun
from workbench.domain.questions import (
    ChainRetrained,
    DecideProposal,
    RetrainChain,
    RollBackModel,
    measures,
)
from workbench.domain.sessions import AT_REST
from workbench.tui.present import Shown
from workbench.tui.screens.asking import QuestionScreen
from workbench.tui.screens.canary import canary_rows
from workbench.tui.screens.canary.canary_form import CanaryForm
from workbench.tui.screens.canary.canary_rows import Record
from workbench.tui.screens.reason import ReasonScreen
from workbench.tui.text import plain
from workbench.tui.undo import Undo
from workbench.tui.workers import begin

COMMANDS = ("plan", "accept", "reject", "end_canary", "abort_canary")
"""Actions that somebody may not take: observers, on a recording, while another one drives."""


class DecidingScreen(QuestionScreen):
    """Knows which canary is looked at, and commands it; `CanaryScreen` draws.

    Attributes
    ----------
    record : which of `canary_rows.records` is shown; None: the latest.
    chains : that a canary can be of; empty until the engine has said so.
    unmeasurable : why nothing can be measured or decided in this session, as a sentence.
    """

    def __init__(self) -> None:
        super().__init__()
        self.record: int | None = None
        self.chains: tuple[str, ...] = ()
        self.unmeasurable = ""
        self._asked_for = ""
        """The session that chains and reason are of."""

    # ------------------------------------------------------------------------- state

    def records(self, shown: Shown) -> list[Record]:
        return canary_rows.records(shown.view)

    def here(self, shown: Shown) -> Record | None:
        """The one that is looked at."""
        found = self.records(shown)
        if not found:
            return None
        place = len(found) - 1 if self.record is None else min(self.record, len(found) - 1)
        return found[place]

    @property
    def _under_way(self) -> CanaryView | None:
        return self.opened.live.view.under_canary

    @property
    def may_command(self) -> bool:
        """Whether we may, and nobody else drives what is being measured."""
        watch = self.opened
        if not watch.commandable or self.unmeasurable:
            return False
        measured = watch.live.view.under_trial is not None or self._under_way is not None
        return not measured or watch.drives or not watch.control_lock.driver

    def _why_no_canary(self) -> str:
        if why := self.why_no_command() or self.unmeasurable:
            return why
        driver = self.opened.control_lock.driver
        return f"{plain(driver)} drives what is being measured." if not self.may_command else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        record = self.here(self.shown)
        under_way, may = self._under_way is not None, self.may_command
        view = self.opened.live.view
        idle = view.state in AT_REST and view.under_trial is None and not under_way
        idle = idle and not self.opened.live.queued
        waits = record is not None and record.waits and self.asking.busy is None
        conditions = {
            "plan": may and idle and self.asking.busy is None,
            "accept": may and waits,
            "reject": may and waits,
            "drop": self.asking.waits,
            "back": not self.asking.waits,
            "end_canary": may and under_way,
            "abort_canary": may and under_way,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if method in COMMANDS and (why := self._why_no_canary()):
            return why
        if method in ("accept", "reject") and (
            self.asking.busy is not None or self._under_way is not None
        ):
            return "The proposal is not there yet: retraining goes on."
        if method in ("accept", "reject"):
            return "No proposal waits for a decision."
        if method == "plan" and (self.asking.busy is not None or self._under_way is not None):
            return "A canary is under way: its end comes first."
        if method == "plan":
            return self._why_not_planned()
        if method in ("end_canary", "abort_canary"):
            return "No canary is under way."
        return super().why_not(method)

    def _why_not_planned(self) -> str:
        view = self.opened.live.view
        if self.opened.live.queued:
            return "A run of it waits for its turn: that comes first."
        if view.state != "interrupted" or view.under_trial is not None:
            return "The lab measures for this session: that comes first."
        goes_on = f"`{view.fleet_command}`" if view.on_hosts else self.key("run.resume")
        return f"Its campaign has not ended: {goes_on} goes on with it."

    # ------------------------------------------------------------------------- commands

    def action_plan(self) -> None:
        record = self.here(self.shown)

        def planned(request: RetrainChain | None) -> None:
            if request is not None:
                work = partial(self._retrain, request)
                self.asking.begin(work, "retraining", measures=measures(request))

        view = self.opened.live.view
        self.app.push_screen(CanaryForm(view, self.chains, record.chain if record else ""), planned)

    def action_end_canary(self) -> None:
        self.confirm(
            "Stop the canary?",
            "It ends after the sample that is being measured; what was measured is kept.",
            StopRun(self.opened.session),
            "the canary ends after this sample",
        )

    def action_abort_canary(self) -> None:
        self.confirm(
            "Abort the canary?",
            "It ends now; the sample that is being measured is lost, the others are kept.",
            StopRun(self.opened.session, abort=True),
            "the canary ends now",
        )

    def action_accept(self) -> None:
        self._decide(accept=True)

    def action_reject(self) -> None:
        self._decide(accept=False)

    # ------------------------------------------------------------------------- requests

    def ask_once(self) -> None:
        """Have what the engine offers for this session, as soon as there is an engine."""
        if self.opened.connected and self._asked_for != self.opened.session:
            self._asked_for = self.opened.session
            begin(self, self._ask_options)

    async def _ask_options(self) -> None:
        """Which chains there are, and whether anything can be measured."""
        try:
            client = await self.workbench.client()
            options = await client.ask(GetRecommendOptions(self.opened.session))
        except (WorkbenchError, OSError):
            return  # the form says what is wrong
        if isinstance(options, RecommendOptions):
            self.chains = options.chains
            self.unmeasurable = plain(options.unmeasurable)
            self.draw()

    async def _retrain(self, request: RetrainChain) -> None:
        """Ask, and say what came of it; steps come as events meanwhile."""
        reply = await self.asking.answer(request)
        if reply is None:
            self.workbench.say(self.asking.trouble, "error")
        else:
            self.workbench.say(self._told(reply))

    def _told(self, reply: ChainRetrained) -> str:
        ended = f"{reply.canary.ending.note}. " if reply.canary is not None else ""
        if reply.proposal is None:
            notes = " ".join(reply.notes)
            return f"{ended}{notes}"
        accept, reject = self.key("canary.accept"), self.key("canary.reject")
        if not reply.proposal.gain:
            return (
                f"{ended}The proposal shows no gain, so it is not in force: {accept} puts it in "
                f"force all the same, {reject} turns it down."
            )
        return f"{ended}A proposal waits: {accept} accepts, {reject} rejects."

    @property
    def waiting_for(self) -> str:
        """What is computed for our request, for how long; empty where none is awaited."""
        busy = self.asking.busy
        if busy is None or busy.measures:
            return busy.text if busy else ""
        return busy.ended_by(self.key("canary.drop"))

    def _decide(self, accept: bool) -> None:
        record = self.here(self.shown)
        if record is None or record.proposal is None:
            return
        proposal = record.proposal.proposal
        verb = "Accept" if accept else "Reject"
        consequence = (
            f"From now on it predicts {plain(proposal.kpi)} of {plain(proposal.chain)}."
            if accept
            else "The model in force stays; the same samples are not proposed again."
        )
        if accept and not proposal.gain:
            consequence += " On held-out samples it is no better."

        def answered(why: str | None) -> None:
            if why is not None:
                begin(self, partial(self._decided, record, accept, why))

        self.app.push_screen(
            ReasonScreen(f"{verb} proposal {proposal.id[:6]}?", consequence, needed=not accept),
            answered,
        )

    async def _decided(self, record: Record, accept: bool, why: str) -> None:
        assert record.proposal is not None
        proposal, session = record.proposal.proposal, self.opened.session
        models = self.opened.live.view.chain_model(proposal.chain, proposal.kpi)
        before = models.current if models is not None else 0
        request = DecideProposal(session, proposal.id, accept, why)
        try:
            await (await self.workbench.client()).ask(request)
        except (WorkbenchError, OSError) as error:
            self.workbench.say(str(error), "error")
            return
        if not accept:
            self.workbench.say(f"Proposal {proposal.id[:6]} is rejected.")
            return

        async def back() -> str:
            client = await self.workbench.client()
            await client.ask(RollBackModel(session, before, proposal.chain, proposal.kpi))
            what = f"model {before}" if before else "the stand-alone profiles"
            return f"{proposal.chain}: {proposal.kpi} is predicted by {what} again."

        self.workbench.say(
            f"{proposal.chain}: {proposal.kpi} is predicted by the accepted model.",
            undo=Undo("Accepting", back),
        )
