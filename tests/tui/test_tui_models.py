"""Screen 6 by keys: residuals, coefficients, a chain's versions, rolling back and forward again."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from canary_story import (
    CHAIN,
    KPI,
    CanaryClient,
    accepted,
    explained,
    modelled,
    proposed,
    rolled_back,
    whole,
)
from fake_link import (
    SESSION,
    START,
    FakeClient,
    opened,
    redrawn,
    screen_text,
    story,
    toasts,
    until,
)
from snapshots import check
from textual.pilot import Pilot

from workbench.domain import session_tables
from workbench.domain.errors import DataError
from workbench.domain.events import ProposalDecided, TargetModelled
from workbench.domain.messages import Request
from workbench.domain.questions import (
    ExplainModel,
    ModelsScored,
    RollBackModel,
    ScoreModels,
)
from workbench.domain.retraining import Decision
from workbench.models.scores import score
from workbench.tui.plots.legends import SCORE_COLUMNS
from workbench.tui.screens.dialogs import HELP_WIDTH, HelpScreen
from workbench.tui.screens.models import residual_rows
from workbench.tui.widgets import waiting

SIZES = [(80, 24), (160, 50)]
OTHER = "aaaa11112222"
STORY = [
    *modelled(),
    *whole(),
    accepted(),
    *proposed(False, OTHER),
    ProposalDecided(Decision(OTHER, False, "eve", START + 910, "within the noise")),
]


async def test_versions_say_who_decided_and_when() -> None:
    async with opened(CanaryClient(*STORY, rolled_back(0)), (120, 30), screen="models") as pilot:
        await pilot.press("tab")
        text = " ".join((await redrawn(pilot)).split())
        assert "retrained: correction-two-terms ann 09-21 14:28 as measured" in text
        assert "rejected: correction-two-terms eve 09-21 14:28 within the noise" in text
        assert "✓ 0 the stand-alone profiles" in text
        assert "back to it by bob" in text


async def test_residuals_are_asked_for_once_and_shown_over_load_or_prediction() -> None:
    client = CanaryClient(*STORY)
    async with opened(client, screen="models") as pilot:
        assert client.requests(ExplainModel) == [], "what takes seconds is asked for when looked at"
        await pilot.press("v")
        await until(pilot, lambda: "log error over rate" in screen_text(pilot.app), "the plot")
        assert client.requests(ExplainModel) == [ExplainModel(SESSION, "tinyproxy", KPI, 2)]
        assert "6 held out in 5 folds" in screen_text(pilot.app)
        await pilot.press("J")
        assert "log error over predicted p95 (ms)" in await redrawn(pilot)
        assert pilot.app.screen.copied()[1].startswith("sample\tconfiguration")
        await pilot.press("v")
        assert "a 2.1 ±0.08  b 0.0021 ±0.0004" in await redrawn(pilot)
        assert len(client.requests(ExplainModel)) == 1
        await pilot.press("tab")
        assert "[43.1, 44.8] ms" in await redrawn(pilot), "terms of a chain's model are in the view"
        await pilot.press("v", "v")
        await until(pilot, lambda: len(client.requests(ExplainModel)) == 2, "the chain's")
        assert client.requests(ExplainModel)[-1] == ExplainModel(SESSION, CHAIN, KPI, 1, True)


async def test_scores_are_sorted_by_a_column_and_best_first_again() -> None:
    async def methods() -> list[str]:
        lines = (await redrawn(pilot)).splitlines()
        begin = next(i for i, line in enumerate(lines) if " RMSE" in line)
        rows = lines[begin + 1 : next(i for i, line in enumerate(lines) if "influence" in line)]
        return [line[2:14].strip() for line in rows if line.strip()]

    async with opened(CanaryClient(*STORY), (80, 30), screen="models") as pilot:
        await until(pilot, lambda: "did not converge" in screen_text(pilot.app), "all scores")
        best_first = await methods()
        await pilot.press("f6")
        assert "|log error| ▲" in await redrawn(pilot)
        rising = await methods()
        await pilot.press("O")
        assert "|log error| ▼" in await redrawn(pilot)
        falling = await methods()
        assert falling != rising
        assert falling[-1] == rising[-1], "what failed has no figure"
        await pilot.press("f6", "f6", "f6", "f6")
        assert "MAD ▲" in await redrawn(pilot)
        await pilot.press("f6", "f6", "f6")  # there is no room for all columns
        assert "▲" not in await redrawn(pilot)
        assert await methods() == best_first


async def test_a_model_that_cannot_be_explained_says_why() -> None:
    client = CanaryClient(*STORY)
    async with opened(client, screen="models") as pilot:
        client.refuses = DataError("its samples are gone", where="tinyproxy")
        await pilot.press("v")
        await until(pilot, lambda: "its samples are gone" in screen_text(pilot.app), "why")


async def test_a_chain_is_rolled_back_after_a_yes_and_forward_by_undo() -> None:
    client = CanaryClient(*STORY)
    async with opened(client, screen="models") as pilot:
        await pilot.press("tab")
        assert "models.roll_back" not in {a.id for a in pilot.app.screen.offered()}, "in force"
        await pilot.press("j", "U")
        await until(pilot, lambda: "Predict p95" in screen_text(pilot.app), "it asks")
        assert client.requests(RollBackModel) == []
        await pilot.press("y")
        await until(pilot, lambda: client.requests(RollBackModel), "the request")
        assert client.requests(RollBackModel)[-1] == RollBackModel(SESSION, 0, CHAIN, KPI)
        await until(pilot, lambda: client.view().chain_models[0].current == 0, "it is so")
        await redrawn(pilot)
        await pilot.press("u")
        await until(pilot, lambda: len(client.requests(RollBackModel)) == 2, "forward again")
        assert client.requests(RollBackModel)[-1] == RollBackModel(SESSION, 1, CHAIN, KPI)
        await until(pilot, lambda: client.view().chain_models[0].current == 1, "it is so")


async def test_jump_mode_goes_to_a_version() -> None:
    async with opened(CanaryClient(*STORY), screen="models") as pilot:
        await pilot.press("tab")
        screen = pilot.app.screen
        lines = screen.listing().region
        there = [go for offset, go in screen.jump_targets() if offset.y == lines.y + 2]
        assert screen.listing().cursor == 0
        there[-1]()
        assert "›" in (await redrawn(pilot)).splitlines()[lines.y + 2]
        assert screen.listing().cursor == 1


async def test_observers_roll_nothing_back() -> None:
    client = CanaryClient(*STORY)
    client.role = "observer"
    async with opened(client, screen="models") as pilot:
        await pilot.press("tab", "j")
        await redrawn(pilot)
        assert "models.roll_back" not in {action.id for action in pilot.app.screen.offered()}


@pytest.mark.parametrize("size", SIZES)
async def test_looks(size: tuple[int, int], tmp_path: Path) -> None:
    async with opened(CanaryClient(*STORY, rolled_back(0)), size, screen="models") as pilot:
        await until(pilot, lambda: "neighbours" in screen_text(pilot.app), "the scores")
        await pilot.press("v")
        await until(pilot, lambda: "log error over" in screen_text(pilot.app), "the plot")
        await check(pilot, "models-residuals", tmp_path)
        await pilot.press("v")
        await check(pilot, "models-coefficients", tmp_path)
        await pilot.press("v", "tab")
        await check(pilot, "models-chain", tmp_path)
        await pilot.press("U")
        await check(pilot, "models-roll-back", tmp_path)


# ------------------------------------------------------------------- scoring by a key


class ScoringClient(FakeClient):
    """Scores when `free` is set; stores for operators what it scores."""

    def __init__(self) -> None:
        super().__init__(story(finished=True))
        self.free = asyncio.Event()
        self.refused: DataError | None = None
        self.stores = True

    def questions(self) -> list[ScoreModels]:
        return [request for request in self.asked if isinstance(request, ScoreModels)]

    async def ask(self, request: Request) -> Any:
        if not isinstance(request, ScoreModels):
            return await super().ask(request)
        self.asked.append(request)
        self.status = replace(self.status, scoring="tinyproxy: neighbours, 3 of 9 methods")
        await self.until(self.free, request)
        if self.refused is not None:
            raise self.refused
        facts = modelled()
        stored = next(fact for fact in facts if isinstance(fact, TargetModelled))
        if self.stores:
            self.tell(*facts)
        return ModelsScored(stored.scores, notes=() if self.stores else ("It is not stored.",))


async def scoring(pilot: Pilot[Any], *keys: str) -> None:
    """Asked for, and still computed."""
    await pilot.press("ctrl+r")
    await until(pilot, lambda: "all targets" in screen_text(pilot.app), "which target")
    await pilot.press(*keys, "enter")
    await until(pilot, lambda: "3 of 9 methods" in screen_text(pilot.app), "how far it is")


async def test_escape_ends_the_scoring_and_then_leaves_the_screen() -> None:
    client = ScoringClient()
    async with opened(client, (100, 30), screen="models") as pilot:
        await scoring(pilot, "j")
        await pilot.press("escape")
        await until(pilot, lambda: "3 of 9 methods" not in screen_text(pilot.app), "no wait")
        assert client.dropped == client.questions(), "nor is it computed any further"
        assert pilot.app.screen.NAME == "models"
        await pilot.press("escape")
        assert pilot.app.screen.NAME == "sessions"


async def test_a_target_is_scored_by_a_key_and_its_model_is_shown() -> None:
    client = ScoringClient()
    async with opened(client, (100, 30), screen="models") as pilot:
        assert "^r scores all methods on a target's samples" in screen_text(pilot.app)
        await scoring(pilot, "j")
        assert client.questions() == [ScoreModels(SESSION, "tinyproxy", "p95_ms")]
        assert "models.score" not in {action.id for action in pilot.app.screen.offered()}
        client.free.set()
        await until(pilot, lambda: "gaussian-process, 16 samples" in screen_text(pilot.app), "it")
        text = await redrawn(pilot)
        assert "✓       2" in text
        assert "did not converge" in text, "all methods, the failed ones too"
        assert "3 of 9" not in text
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "all targets" in screen_text(pilot.app), "which target")
        rows = screen_text(pilot.app).splitlines()
        names = [row for row in rows if "valid sample" in row]
        assert "tinyproxy  14" in names[0], "the one that is shown is the first"
        await pilot.press("G", *("down",) * 4, "enter")
        await until(pilot, lambda: len(client.questions()) == 2, "all of them")
        assert client.questions()[-1].target is None


async def test_scores_give_way_to_those_of_a_later_version() -> None:
    client = ScoringClient()
    client.free.set()
    async with opened(client, (100, 30), screen="models") as pilot:
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "all targets" in screen_text(pilot.app), "which target")
        await pilot.press("j", "enter")
        screen = pilot.app.screen
        await until(pilot, lambda: "did not converge" in screen.copied()[1], "what was scored")
        second = [fact for fact in modelled() if isinstance(fact, TargetModelled)][1]
        scores = tuple(replace(each, samples=20) for each in second.scores[:1])
        ids = tuple(f"s{i}" for i in range(20))
        third = replace(second.model, version=3, sample_ids=ids, score=scores[0])
        client.tell(replace(second, model=third, scores=scores))
        await until(pilot, lambda: "gaussian-process, 20 samples" in screen_text(pilot.app), "it")
        await redrawn(pilot)
        assert "gaussian-process" in screen.copied()[1]
        assert "did not converge" not in screen.copied()[1], "that was of 16 samples"


async def test_why_nothing_can_be_scored_is_a_sentence_until_it_can() -> None:
    client = ScoringClient()
    client.refused = DataError("two loads are too few", where="haproxy", remedy="Measure more")
    async with opened(client, (100, 30), screen="models") as pilot:
        await scoring(pilot)
        client.free.set()
        await until(pilot, lambda: "haproxy: two loads are too few" in screen_text(pilot.app))
        assert "Measure more" in screen_text(pilot.app)
        client.refused = None
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "all targets" in screen_text(pilot.app), "which target")
        await pilot.press("enter")
        await until(pilot, lambda: "neighbours" in screen_text(pilot.app), "the scores")
        assert "too few" not in await redrawn(pilot)


@pytest.mark.parametrize("replayed", [False, True])
async def test_what_is_not_stored_is_shown_all_the_same(replayed: bool) -> None:
    client = ScoringClient()
    client.stores, client.role = False, "operator" if replayed else "observer"
    more = {"replay_speed": 1000.0} if replayed else {}
    async with opened(client, (100, 30), screen="models", **more) as pilot:
        await until(pilot, lambda: "^r scores all methods" in screen_text(pilot.app), "the key")
        await scoring(pilot, "j")
        client.free.set()
        await until(pilot, lambda: "did not converge" in screen_text(pilot.app), "the scores")
        text = await redrawn(pilot)
        assert "no version of it is stored" in text
        assert not {"models.pane", "models.over"} & {a.id for a in pilot.app.screen.offered()}
        assert any("not stored" in said for said in toasts(pilot.app))


async def test_nothing_measured_is_said() -> None:
    async with opened(FakeClient(story()[:2]), screen="models") as pilot:
        assert "A model is fitted to samples" in screen_text(pilot.app)


@pytest.mark.parametrize("size", SIZES)
async def test_looks_of_scoring(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "duration", lambda _: "7 s")
    client = ScoringClient()
    client.refused = DataError("two loads are too few", where="haproxy", remedy="Measure more")
    async with opened(client, size, screen="models") as pilot:
        await scoring(pilot)
        await check(pilot, "models-scoring", tmp_path)
        client.free.set()
        await until(pilot, lambda: "too few" in screen_text(pilot.app), "the refusal")
        await check(pilot, "models-refused", tmp_path)


async def test_help_explains_every_column_of_the_scores() -> None:
    async with opened(CanaryClient(*STORY), screen="models") as pilot:
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen), "the help")
        lines = pilot.app.screen._text().splitlines()
        named = {name for line in lines for name in line.partition("  ")[0].split(", ")}
        columns = session_tables.scores(modelled()[0].scores).headings
        assert set(columns) - {"method"} | {"*"} <= named
        assert max(map(len, SCORE_COLUMNS)) <= HELP_WIDTH


def test_residuals_count_what_a_score_tells_apart() -> None:
    """|log error| of the scores and of the residuals is one figure of the same predictions."""
    told = explained(ExplainModel(SESSION, "tinyproxy", KPI, 2))
    said = ((0.4, 0.8), (0.5, 0.2), (4.0, 8.0))
    residuals = tuple(
        replace(told.residuals[i], measured=measured, predicted=predicted)
        for i, (measured, predicted) in enumerate(said)
    )
    true, predicted = (np.log(logs) for logs in zip(*said, strict=True))
    scored = score(KPI, true, predicted).log_error
    assert scored == 0.0, "under a millisecond nothing is told apart"
    words = residual_rows.summary(replace(told, residuals=residuals))[1][0]
    assert "|log error| 0," in words
    assert "worst at 440" in words


async def test_one_version_of_a_chain_is_in_force() -> None:
    """Of a chain that was trained directly, too: that one is held beside what predicts it."""
    trained = next(fact for fact in modelled() if isinstance(fact, TargetModelled))
    direct = replace(trained, model=replace(trained.model, target=CHAIN))
    async with opened(CanaryClient(*STORY, direct), (120, 30), screen="models") as pilot:
        await pilot.press("tab")
        lines = re.findall(r"^.✓ +\d .*$", await redrawn(pilot), re.MULTILINE)
        assert len(lines) == 1, "one predicts"
        assert "retrained: correction-two-terms" in lines[0]
        assert "trained directly: " in screen_text(pilot.app)
