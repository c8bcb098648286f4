"""Compare, by keys: what is asked and when, what stays, what is said where nothing can be."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from canary_story import accepted, proposed, rolled_back
from comparing_link import (
    NOT_PROFILED,
    NOTE,
    WORSE,
    ComparingClient,
    chart,
    compared,
    more_samples,
    of_chain,
)
from fake_link import (
    SESSION,
    FakeClient,
    campaign,
    configurations,
    opened,
    redrawn,
    screen_text,
    story,
    until,
)
from snapshots import check
from textual.pilot import Pilot

from workbench.domain.chains import CpuContrast
from workbench.domain.errors import UsageError
from workbench.domain.events import SampleTaken
from workbench.domain.messages import CompareSessions
from workbench.domain.questions import ChainQuery, ChartChain, CompareChain
from workbench.domain.sample_review import SampleDecided
from workbench.domain.samples import Estimate
from workbench.tui import headless
from workbench.tui.plots.canvas import GLYPHS
from workbench.tui.screens.compare import compare_asking, compare_lines, compare_tables
from workbench.tui.screens.compare.compare import CompareScreen
from workbench.tui.screens.compare.comparing import ComparedChain, ComparisonSoFar
from workbench.tui.screens.dialogs import HelpScreen
from workbench.tui.widgets.listing import Listing

SIZES = [(80, 24), (160, 50)]
LOOKS = [*((size, "dark") for size in SIZES),
         *(pytest.param(*look, marks=pytest.mark.long)
           for look in (((60, 18), "dark"), ((80, 24), "mono"), ((80, 24), "safe")))]  # fmt: skip


def shown(pilot: Pilot) -> CompareScreen:
    screen = pilot.app.screen
    assert isinstance(screen, CompareScreen)
    return screen


async def settled(pilot: Pilot) -> str:
    """Everything that is asked for has come and is drawn."""
    await until(
        pilot, lambda: shown(pilot).answer and shown(pilot).asking.busy is None, "an answer"
    )
    return await redrawn(pilot)


async def of_worse(pilot: Pilot) -> str:
    """The second chain, which is not as predicted."""
    await settled(pilot)
    await pilot.press("tab")
    await until(pilot, lambda: WORSE in screen_text(pilot.app), WORSE)
    return await settled(pilot)


# ------------------------------------------------------------------- what is asked, and when


async def test_a_chain_is_compared_when_the_screen_is_opened_then_its_curves_are_fetched() -> None:
    client = ComparingClient()
    async with opened(client, screen="compare") as pilot:
        text = await settled(pilot)
        first, second = client.questions()
        assert isinstance(first, CompareChain)
        assert (first.query.session, first.query.chain, first.query.kpi) == (
            SESSION,
            "haproxy-tinyproxy",
            "p95_ms",
        )
        assert isinstance(second, ChartChain)
        assert second.configurations == tuple(reversed(of_chain("haproxy-tinyproxy"))) or (
            set(second.configurations) == set(of_chain("haproxy-tinyproxy"))
        )
        assert "none of 2 deviates" in text
        assert "noise alone up to 31 %" in text
        await pilot.press("9", "5")
        await settled(pilot)
        assert len(client.questions()) == 2, "nothing is asked twice"


@pytest.mark.parametrize(
    ("width", "taken"), [(160, "R compares all with the functions' profiles"), (80, "")]
)
def test_it_is_said_that_a_model_is_held_against_what_it_has_not_learned(
    width: int, taken: str
) -> None:
    told = compared(CompareChain(ChainQuery(SESSION, WORSE, "p95_ms")))
    found = replace(told.comparison, samples=3, model_version=1, outliers=())
    answer = ComparisonSoFar(
        ComparedChain(SESSION, WORSE, "p95_ms"), 33, replace(told, comparison=found)
    )
    row = compare_lines.notes_row(answer, "", ("n", "R"), width, tall=False, replay=False)
    words = "".join(part for part, _ in row)
    assert "3 of 33 samples are compared: those that model 1 has not learned from" in words
    assert taken in words
    assert "…" not in words
    row = compare_lines.notes_row(answer, "", ("n", "R"), width, tall=False, replay=True)
    assert "of the whole session" in "".join(part for part, _ in row)
    verdict = "".join(part for part, _ in compare_lines.verdict_row(answer, 80))
    assert "3 of 33 samples" in verdict


def test_a_chain_that_departs_in_places_is_typically_as_predicted() -> None:
    told = compared(CompareChain(ChainQuery(SESSION, WORSE, "p95_ms")))
    scores = tuple(replace(s, ratio=1.0, log_error=0.001) for s in told.comparison.configurations)
    found = replace(told.comparison, log_error=0.001, configurations=scores)
    subject = ComparedChain(SESSION, WORSE, "p95_ms")
    answer = ComparisonSoFar(subject, 16, replace(told, comparison=found))
    words = "".join(part for part, _ in compare_lines.verdict_row(answer, 80))
    assert "▼ typically as predicted  worse in 2 of 2" in words
    words = "".join(part for part, _ in compare_lines.verdict_row(answer, 160))
    assert "mean error 76 %" in words
    answer.compared = replace(told, comparison=replace(found, outliers=()))
    words = "".join(part for part, _ in compare_lines.verdict_row(answer, 80))
    assert "✓ as predicted  none of 2 deviates" in words


async def test_outliers_stand_first_and_the_plot_follows_the_cursor() -> None:
    client = ComparingClient()
    async with opened(client, (100, 30), screen="compare") as pilot:
        text = await of_worse(pilot)
        assert "worse in 2 of 2" in text
        assert re.search(r"▼ .* times slower than predicted", text), "the plain words first"
        assert re.search(r"deviates at loads *\n.*worse at 8 of 8", text), "of what is said"
        assert "tinyproxy ─" in text, "who limits is named along the axis"
        assert "?┤" in text, "a guess is marked"
        assert "25+25 %" in text.split("╭")[1].splitlines()[0]
        await pilot.press("j")
        text = await settled(pilot)
        assert "50+25 %" in text.split("╭")[1].splitlines()[0]


async def test_a_load_is_read_out() -> None:
    async with opened(ComparingClient(), (100, 30), screen="compare") as pilot:
        text = await of_worse(pilot)
        assert "at 120  predicted 2" in text, "where the departure is largest"
        assert re.search(r"times slower  ▸tinyproxy", text)
        await pilot.press("right")
        text = await redrawn(pilot)
        assert "at 440  predicted" in text
        await pilot.press("left", "left", "left", "left")
        assert "at 10  predicted" in await redrawn(pilot)


async def test_what_is_shown_stays_until_the_new_answer_is_there() -> None:
    client = ComparingClient()
    async with opened(client, (100, 30), screen="compare") as pilot:
        await settled(pilot)
        client.holds = True
        await pilot.press("y")
        await until(pilot, lambda: "cancels) · shown" in screen_text(pilot.app), "what is computed")
        text = screen_text(pilot.app)
        assert "computing" in text
        assert "shown: haproxy-tinyproxy p95 (ms), as before" in text
        assert "none of 2 deviates" in text
        client.holds = False
        client.let_go()
        text = await settled(pilot)
        assert "computing" not in text
        assert "p50 (ms) by convolved" in text


async def test_escape_ends_what_is_computed_and_does_not_leave() -> None:
    client = ComparingClient()
    async with opened(client, (100, 30), screen="compare") as pilot:
        await settled(pilot)
        client.holds, before = True, len(client.questions())
        await pilot.press("y")
        await until(pilot, lambda: "cancels) · shown" in screen_text(pilot.app), "what is computed")
        await until(pilot, lambda: len(client.questions()) > before, "the question")
        await pilot.press("escape")
        await until(pilot, lambda: client.dropped, "the end of it")
        await until(pilot, lambda: "cancelled: " in screen_text(pilot.app), "that it is told")
        assert client.dropped == client.questions()[-1:]
        assert pilot.app.screen.NAME == "compare"
        client.holds = False
        await redrawn(pilot)
        assert client.dropped == client.questions()[-1:], "it is not asked again by itself"
        await pilot.press("ctrl+r")
        assert "p50 (ms) by convolved" in await settled(pilot)


async def test_escape_before_anything_was_asked_asks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = ComparingClient()
    async with opened(client, (100, 30), screen="compare") as pilot:
        await settled(pilot)
        asked = client.questions()
        monkeypatch.setattr(compare_asking, "SETTLE_S", 60.0)  # however busy the host is
        await pilot.press("y", "escape")
        await until(pilot, lambda: "cancelled: " in screen_text(pilot.app), "that it is told")
        await redrawn(pilot)
        assert client.questions() == asked


async def test_an_answer_that_comes_late_is_kept_and_not_drawn_in_anothers_place() -> None:
    client = ComparingClient()
    client.holds = True
    async with opened(client, (100, 30), screen="compare") as pilot:
        await until(pilot, lambda: client.questions(), "the first question")
        await pilot.press("y", "y", "tab")
        client.holds = False
        client.let_go()
        text = await settled(pilot)
        assert f"{WORSE} throughput" in text
        kinds = [
            (q.query.chain, q.query.kpi) for q in client.questions() if isinstance(q, CompareChain)
        ]
        assert kinds == [("haproxy-tinyproxy", "p95_ms"), (WORSE, "throughput_rps")], (
            "one at a time"
        )
        await pilot.press("tab", "y")
        assert "none of 2 deviates" in await settled(pilot)
        again = [q for q in client.questions() if isinstance(q, CompareChain)]
        assert [(q.query.chain, q.query.kpi) for q in again].count(kinds[0]) == 1, "it was kept"


async def test_every_rule_can_be_asked_for() -> None:
    client = ComparingClient()
    async with opened(client, (100, 30), screen="compare") as pilot:
        await settled(pilot)
        await pilot.press("f9", "f9")
        text = await settled(pilot)
        assert "by weakest-link" in text
        asked = client.questions()[-1]
        assert isinstance(asked, ChartChain)
        assert asked.query.rule == "weakest-link"
        await pilot.press("f9")
        assert "by convolved" in await settled(pilot), "the default again"


async def test_samples_that_come_later_are_counted_and_compared_when_asked() -> None:
    client = ComparingClient()
    async with opened(client, screen="compare") as pilot:
        await settled(pilot)
        before = len(client.questions())
        more_samples(client, "haproxy-tinyproxy")
        await until(pilot, lambda: "1 sample came since" in screen_text(pilot.app), "the note")
        assert len(client.questions()) == before
        await pilot.press("ctrl+r")
        assert "came since" not in await settled(pilot)
        assert len(client.questions()) == before + 2


def rejected(client: ComparingClient, target: str) -> SampleDecided:
    """The first valid sample of a target."""
    samples = (e.fact.sample for e in client.events if isinstance(e.fact, SampleTaken))
    first = next(s for s in samples if s.valid and s.point.target == target)
    return SampleDecided(first.id, "rejected", "ann", "a backup ran")


async def test_what_a_comparison_rests_on_has_changed_is_said() -> None:
    client, changed = ComparingClient(), "what it rests on has changed: ^r compares again"
    client.tell(*proposed())
    changes = (rejected(client, WORSE), rejected(client, "tinyproxy"), accepted(), rolled_back(0))
    async with opened(client, screen="compare") as pilot:
        await of_worse(pilot)
        for change in changes:
            assert changed not in await settled(pilot)
            client.tell(change)
            await until(pilot, lambda: changed in screen_text(pilot.app), f"the note of {change}")
            await pilot.press("ctrl+r")
            await until(pilot, lambda: changed not in screen_text(pilot.app), "the new answer")


async def test_what_was_refused_is_asked_again_when_the_samples_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = ComparingClient(story()[:2])
    client.refuses_chains["haproxy-tinyproxy"] = NOT_PROFILED
    async with opened(client, (100, 30), screen="compare") as pilot:
        assert "no sample of haproxy" in await settled(pilot)
        offered = {action.id for action in pilot.app.screen.offered()}
        assert not offered & {"compare.right", "compare.left", "compare.live", "compare.log"}
        before = len(client.questions())
        client.tell(*(event.fact for event in story()[2:9]))
        await until(pilot, lambda: "came since: ^r compares" in screen_text(pilot.app), "the line")
        await redrawn(pilot)
        assert len(client.questions()) == before, "not at every sample"
        monkeypatch.setattr(compare_asking, "AGAIN_S", 0.0)
        client.tell(*(event.fact for event in story()[9:11]))
        await until(pilot, lambda: len(client.questions()) > before, "it is asked again")
        assert "no sample of haproxy" in await settled(pilot), "refused once more"
        monkeypatch.setattr(compare_asking, "AGAIN_S", 1e9)
        client.refuses_chains.clear()
        client.tell(*(event.fact for event in story(finished=True)[11:]))
        await until(pilot, lambda: "none of 2" in screen_text(pilot.app), "the run is over")
        assert "compare.right" in {action.id for action in pilot.app.screen.offered()}
        await settled(pilot)
        asked = len(client.questions())
        await pilot.press("9", "5")
        await settled(pilot)
        assert len(client.questions()) == asked


async def test_a_refusal_does_not_stand_there_while_it_is_asked_anew() -> None:
    client = ComparingClient(story(finished=True))
    client.refuses_chains["haproxy-tinyproxy"] = NOT_PROFILED
    async with opened(client, (100, 30), screen="compare") as pilot:
        assert "no sample of haproxy" in await settled(pilot)
        client.refuses_chains.clear()
        client.holds = True
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "comparing again" in screen_text(pilot.app), "it is asked")
        assert "no sample of haproxy" not in screen_text(pilot.app)
        client.holds = False
        client.let_go()
        assert "none of 2" in await settled(pilot)


async def test_a_replay_asks_nothing_again_because_its_samples_pass() -> None:
    client = ComparingClient()
    client.refuses_chains["haproxy-tinyproxy"] = NOT_PROFILED
    async with opened(client, (100, 30), screen="compare", replay_speed=1000.0) as pilot:
        await settled(pilot)
        await until(pilot, lambda: pilot.app.opened.replay.ended, "its end")
        assert "no sample of haproxy" in await settled(pilot)
        assert "came since" not in screen_text(pilot.app)
        assert len([q for q in client.questions() if isinstance(q, CompareChain)]) == 1


# ------------------------------------------------------------------- the other views


async def test_errors_by_configuration_and_by_bucket() -> None:
    async with opened(ComparingClient(), (100, 40), screen="compare") as pilot:
        await of_worse(pilot)
        await pilot.press("v")
        text = await redrawn(pilot)
        assert "error of each configuration in %, sorted" in text
        assert "10 to 100" in text
        assert re.search(r"\ball +16 +76\.0 %", text), "what the verdict's error is of"
        assert "weakest-link" in text
        assert "interpolation, trained directly" in text
        assert "noise alone 24 %" in text.split("╭")[1]


async def test_functions_alone_and_chained() -> None:
    async with opened(ComparingClient(), (100, 30), screen="compare") as pilot:
        await of_worse(pilot)
        await pilot.press("v", "v")
        text = await redrawn(pilot)
        assert "⠤⠤ ⠤ tinyproxy alone" in text
        assert "⠤ ⠤  haproxy alone" in text
        assert "▸tinyproxy" in text
        assert "1.03×" in text, "as much CPU as alone"
        assert "1.90×!" in text, "and nearly twice as much"


async def test_a_series_is_switched_off_and_on_and_the_legend_says_which() -> None:
    async with opened(ComparingClient(), (100, 30), screen="compare") as pilot:
        before = await of_worse(pilot)
        assert "off:" not in before
        for keys, off in ((("j",) * 2, "measured"), ((), "sample of the chain, measured")):
            await pilot.press("h")
            await until(pilot, lambda: "Switch off" in screen_text(pilot.app), "which")
            await pilot.press(*keys, "enter")
            await until(pilot, lambda off=off: f"off: {off}" in screen_text(pilot.app), off)
        text = await redrawn(pilot)
        assert text.split("╭")[1] != before.split("╭")[1]
        valid = GLYPHS["braille"].valid
        assert valid in before.split("╭")[1]
        assert valid not in text.split("╭")[1], "no sample, and none in the key"
        assert "predicted" in text.split("╰")[1].splitlines()[0]
        await pilot.press("j")
        assert "off: sample of the chain, measured" in await settled(pilot), "in the next plot too"
        await pilot.press("k")
        for keys in (("j",) * 2, ()):
            await pilot.press("h")
            await until(
                pilot,
                lambda: (
                    "off  measured" in screen_text(pilot.app)
                    or "on   measured" in screen_text(pilot.app)
                ),
                "which",
            )
            await pilot.press(*keys, "enter")
            await redrawn(pilot)
        assert await settled(pilot) == before


async def test_two_sessions_against_each_other_what_got_worse_first() -> None:
    client = ComparingClient()
    async with opened(client, (100, 30), screen="compare") as pilot:
        await settled(pilot)
        await pilot.press("v", "v", "v")
        assert "o chooses the session" in await redrawn(pilot)
        await pilot.press("o")
        await until(pilot, lambda: "closed-loop" in screen_text(pilot.app), "the choice")
        await pilot.press("enter")
        await until(pilot, lambda: "1 worse" in screen_text(pilot.app), "the changes")
        text = await redrawn(pilot)
        assert client.questions()[-1] == CompareSessions("night", SESSION)
        rows = text[text.index("before    after") :].splitlines()[1:5]
        assert [row[1] for row in rows] == ["▼", "▲", "?", " "]
        assert "p95" in rows[0]
        assert "1.90 [1.77–2.03]" in rows[0]
        assert "not valid, or only" in rows[2]
        assert "◆ before" in text


async def test_in_a_replay_it_says_that_it_is_of_the_whole_session() -> None:
    client = ComparingClient()
    async with opened(client, (100, 30), screen="compare", replay_speed=1000.0) as pilot:
        await until(pilot, lambda: "of the whole session" in screen_text(pilot.app), "the note")


async def test_enter_shows_the_configuration_on_live() -> None:
    async with opened(ComparingClient(), screen="compare") as pilot:
        await of_worse(pilot)
        await pilot.press("j", "enter")
        await until(pilot, lambda: pilot.app.screen.NAME == "live", "Live")
        assert f"{WORSE} 50+25 %" in await redrawn(pilot)


# ------------------------------------------------------------------- where nothing can be said


async def test_a_refusal_is_a_sentence_with_what_to_do() -> None:
    client = ComparingClient()
    client.refuses_chains["haproxy-tinyproxy"] = NOT_PROFILED
    async with opened(client, screen="compare") as pilot:
        text = await settled(pilot)
        assert "no sample of haproxy states p95_ms" in text
        assert "^r tries again; Q takes the profiles of another session" in text
        client.refuses_chains.clear()
        await pilot.press("ctrl+r")
        assert "none of 2 deviates" in await settled(pilot)


async def test_profiles_of_another_host_are_insisted_on() -> None:
    client = ComparingClient()
    async with opened(client, screen="compare") as pilot:
        await settled(pilot)
        client.refuses_chains["haproxy-tinyproxy"] = UsageError("night was measured elsewhere")
        await pilot.press("Q")
        await until(pilot, lambda: "of this session" in screen_text(pilot.app), "the choice")
        await pilot.press("j", "enter")
        await until(pilot, lambda: "elsewhere" in screen_text(pilot.app), "the refusal")
        asked = next(q for q in reversed(client.questions()) if isinstance(q, CompareChain))
        assert (asked.query.profiles, asked.query.insist) == ("night", False)
        assert "I uses them" in await settled(pilot)
        client.refuses_chains.clear()
        await pilot.press("I")
        assert "none of 2 deviates" in await settled(pilot)
        asked = next(q for q in reversed(client.questions()) if isinstance(q, CompareChain))
        assert (asked.query.profiles, asked.query.insist) == ("night", True)


async def test_an_engine_that_knows_no_such_question_is_said() -> None:
    async with opened(FakeClient(story(finished=True)), screen="compare") as pilot:
        assert "knows no ChartChain" in await settled(pilot)


async def test_help_explains_the_marks_and_tells_all_notes() -> None:
    async with opened(ComparingClient(), (100, 90), screen="compare") as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        help = pilot.app.screen
        assert isinstance(help, HelpScreen)
        assert "worse, ▲ better than predicted" in help._text()
        assert "at 2 of its 10 measured loads" in help._text()
        assert "error: mean of |predicted - measured| / measured" in help._text()
        assert NOTE in help._text()


async def test_a_picture_waits_for_what_is_computed() -> None:
    client = ComparingClient()

    async def connect() -> ComparingClient:
        return client

    svg = await headless.svg_of(connect, SESSION, screen="compare", keys=("tab", "v"))
    assert "weakest-link" in svg
    assert "computing" not in svg
    assert {q.query.chain for q in client.questions() if isinstance(q, ChartChain)} == {
        "haproxy-tinyproxy",
        WORSE,
    }


async def test_the_list_can_be_copied() -> None:
    async with opened(ComparingClient(), screen="compare") as pilot:
        await of_worse(pilot)
        name, table = shown(pilot).copied()
        assert name == "the configurations and their errors"
        assert table.splitlines()[1].split("\t")[:2] == ["25+25 %", "8"]


# ------------------------------------------------------------------- looks


@pytest.mark.parametrize(("size", "theme"), LOOKS)
async def test_looks(size: tuple[int, int], theme: str, tmp_path: Path) -> None:
    async with opened(ComparingClient(), size, theme=theme, screen="compare") as pilot:
        await of_worse(pilot)
        await check(pilot, "compare-curves", tmp_path)
        await pilot.press("v")
        await check(pilot, "compare-errors", tmp_path)
        await pilot.press("v")
        await check(pilot, "compare-functions", tmp_path)
        await pilot.press("o")
        await until(pilot, lambda: "closed-loop" in screen_text(pilot.app), "the choice")
        await pilot.press("enter")
        await until(pilot, lambda: "1 worse" in screen_text(pilot.app), "the changes")
        await check(pilot, "compare-sessions", tmp_path)


@pytest.mark.parametrize("size", SIZES)
async def test_looks_of_states(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tui.widgets.waiting.monotonic", lambda: 0.0)
    client = ComparingClient()
    client.holds = True
    async with opened(client, size, screen="compare") as pilot:
        await until(pilot, lambda: "model of p95_ms" in screen_text(pilot.app), "busy")
        await check(pilot, "compare-busy", tmp_path)
        client.refuses_chains["haproxy-tinyproxy"] = NOT_PROFILED
        client.holds = False
        client.let_go()
        await settled(pilot)
        await check(pilot, "compare-error", tmp_path)
        await pilot.press("v", "v", "v")
        await check(pilot, "compare-no-other", tmp_path)
    async with opened(ComparingClient(story()[:2]), size, screen="compare") as pilot:
        await settled(pilot)
        assert pilot.app.screen.query_one(Listing).count == 2
        await check(pilot, "compare-planned", tmp_path)


def test_who_limits_is_said_of_which_allocation_and_by_what() -> None:
    """Of another one that is recommended, by an accepted model, it says nothing."""
    configuration = next(c for t, c in configurations(campaign()) if t == WORSE)
    told = chart(WORSE, configuration)
    said = "".join(words for words, _ in compare_tables.limits_row(told, 120))
    assert re.match(r" limits at [\d.+]+ %: (tiny|ha)proxy limits to", said)
    of_model = replace(told, profiles=told.predicted)
    said = "".join(words for words, _ in compare_tables.limits_row(of_model, 120))
    assert " %, by the profiles alone: " in said


async def test_what_is_being_compared_is_told_with_its_time_and_the_key_that_ends_it() -> None:
    client = ComparingClient()
    client.holds = True
    async with opened(client, (120, 36), screen="compare") as pilot:
        await until(pilot, lambda: "being compared" in screen_text(pilot.app), "the list")
        assert re.search(r"… computing \(\d+ s, esc cancels\)", screen_text(pilot.app))
        client.holds = False
        client.let_go()
        assert "being compared" not in await settled(pilot)


def test_what_is_predicted_at_a_load_is_of_that_load() -> None:
    """And not of the point of the curve that is nearest to it: the scores are of the load."""
    configuration = next(c for t, c in configurations(campaign()) if t == WORSE)
    told = chart(WORSE, configuration)
    points = range(2)
    curve = replace(
        told.predicted, wl=(100.0, 200.0), mean=(10.0, 20.0), low=(8.0, 18.0), high=(12.0, 22.0),
        limiting=tuple(told.predicted.limiting[i] for i in points),
        extrapolates=tuple(told.predicted.extrapolates[i] for i in points),
    )  # fmt: skip
    for at, said in ((100.0, "10 [8–12]"), (140.0, "14 [12–16]"), (200.0, "20 [18–22]")):
        row = compare_tables.readout(replace(told, predicted=curve), (), "p95_ms", at, 120)
        assert f"predicted {said}" in "".join(words for words, _ in row)
        moved = replace(told, predicted=curve, profiles=told.predicted)
        row = compare_tables.readout(moved, (), "p95_ms", at, 120)
        assert f" corrected {said}" in "".join(words for words, _ in row), "by the chain's samples"


def test_the_cpu_ratio_is_that_of_the_load_under_the_cursor() -> None:
    """Of the two figures that stand beside it, and not one over all loads."""
    configuration = next(c for t, c in configurations(campaign()) if t == WORSE)
    told = chart(WORSE, configuration)
    cpu = (
        CpuContrast("haproxy", 100.0, Estimate(0.05, 0.04, 0.06), 0.12),
        CpuContrast("haproxy", 200.0, Estimate(0.10, 0.09, 0.11), 0.10),
        CpuContrast("haproxy", 300.0, Estimate(0.0, 0.0, 0.0), 0.10),
    )
    said = {}
    for at in (100.0, 200.0, 300.0):
        rows = compare_tables.function_rows(replace(told, cpu=cpu), at, "p95_ms", 120)
        lines = ["".join(words for words, _ in row) for row in rows]
        said[at] = next(line for line in lines if "haproxy" in line).split()[-1]
    assert said == {100.0: "2.40×!", 200.0: "1.00×", 300.0: "–"}
