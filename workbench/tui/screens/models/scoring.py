"""What the screen Models asks the engine for by a key: the scores of all methods on a target."""

from __future__ import annotations

from functools import partial

from workbench.domain.counts import counted
from workbench.domain.profiles import ModelScore
from workbench.domain.questions import ModelsScored, ScoreModels
from workbench.tui.screens.asking import QuestionScreen
from workbench.tui.screens.dialogs import ChoiceScreen
from workbench.tui.text import plain, sentence

ALL = "all targets"


class ScoringScreen(QuestionScreen):
    """Asks for scores beside the drawing; one question at a time.

    Attributes
    ----------
    scored : what was answered, by target and KPI. A version in force says only by what it was
        chosen, and an observer's question, or one in a replay, leaves no version in sight.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scored: dict[tuple[str, str], tuple[ModelScore, ...]] = {}

    @property
    def about(self) -> tuple[str, str]:
        """Target and KPI that are shown; the target is empty where there is none."""
        raise NotImplementedError

    def show_scored(self, target: str, kpi: str) -> None:
        """Show this one from now on: its scores have come."""
        raise NotImplementedError

    @property
    def can_score(self) -> bool:
        """Whether there is an engine that could, and something to score."""
        watch = self.opened
        here = watch.connected and not watch.lost and self.asking.busy is None
        measured = self._measured()
        # In a replay the engine scores the whole session, whatever was measured by then.
        return here and bool(measured if watch.replay is not None else any(measured.values()))

    def why_not(self, method: str) -> str:
        if said := super().why_not(method):
            return said
        if method == "score":
            busy = self.asking.busy is not None
            return "Scores are being computed." if busy else "No valid sample was measured yet."
        return ""

    def _measured(self) -> dict[str, int]:
        """Valid samples by target of the campaign, the one that is shown first."""
        view = self.shown.view
        names = [plan.target.name for plan in view.campaign.targets] if view.campaign else []
        names.sort(key=lambda name: name != self.about[0])
        found = dict.fromkeys(names, 0)
        for item in view.configurations:
            if item.target in found:
                found[item.target] += item.taken - item.invalid
        return found

    def action_score(self) -> None:
        """Of the only target, or of one that is chosen, or of all."""
        measured = self._measured()
        if len(measured) == 1:
            self._begin(next(iter(measured)))
            return
        options = [
            (name, f"{name}  {counted(samples, 'valid sample')}")
            for name, samples in measured.items()
        ]

        def chosen(target: str | None) -> None:
            if target is not None:
                self._begin(target or None)

        question = "Score all methods on the samples of"
        self.app.push_screen(ChoiceScreen(question, [*options, ("", ALL)]), chosen)

    def _begin(self, target: str | None) -> None:
        if self.asking.busy is None:
            request = ScoreModels(self.opened.session, target, self.about[1])
            words = f"scoring {plain(target or ALL)}"  # the engine says of which KPI
            self.asking.begin(partial(self._score, request), words)

    async def _score(self, request: ScoreModels) -> None:
        reply = await self.asking.answer(request)
        if reply is not None:
            self._keep(reply)

    def _keep(self, reply: ModelsScored) -> None:
        found: dict[tuple[str, str], list[ModelScore]] = {}
        for score in reply.scores:
            found.setdefault((score.target, score.kpi), []).append(score)
        self.scored |= {pair: tuple(scores) for pair, scores in found.items()}
        if found and self.about not in found:
            self.show_scored(*next(iter(found)))
        said = [f"{plain(s.target)}: {plain(s.method)} is best." for s in reply.scores if s.best]
        notes = [sentence(note) for note in reply.notes]
        self.workbench.say(" ".join([*said, *notes]), "warning" if notes else "information")
