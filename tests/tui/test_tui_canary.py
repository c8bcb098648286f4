"""Screen 7 by keys: form, plan, confirmation, the steps as they come, accept, reject, observers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
from canary_story import (
    KPI,
    TRIPPED,
    CanaryClient,
    accepted,
    begun,
    drifted,
    ended,
    proposal,
    proposed,
    rolled_back,
    taken,
    whole,
)
from fake_link import SESSION, flashed, opened, redrawn, screen_text, toasts, until
from snapshots import check
from textual.pilot import Pilot

from workbench.domain import codec
from workbench.domain.canaries import ProposalView
from workbench.domain.errors import SessionError, UsageError
from workbench.domain.events import ControlLock, Fact
from workbench.domain.messages import StopRun, Viewed
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    DecideProposal,
    PlanCanary,
    RetrainChain,
    RollBackModel,
)
from workbench.domain.retraining import CanaryEnding, TermChange
from workbench.tui import parse_input
from workbench.tui.screens.canary.canary import CanaryScreen
from workbench.tui.screens.canary.canary_form import CanaryForm
from workbench.tui.screens.proposals.proposal_rows import proposal_rows
from workbench.tui.widgets.waiting import Busy

SIZES = [(80, 24), (160, 50)]
GUARDED = [
    *begun(),
    *taken(1),
    *taken(2),
    *taken(3, "guard", TRIPPED),
    *ended(3, CanaryEnding("guard", f"{TRIPPED} at 80: back to 45", 45.0), tripped=True),
]
RUNNING = [*begun(), *taken(1), *taken(2), *taken(3)]


async def shows(pilot: Pilot[None], words: str) -> None:
    await until(pilot, lambda: words in screen_text(pilot.app), words)


async def form(pilot: Pilot[None]) -> CanaryForm:
    """The form, with a plan."""
    await pilot.press("n")
    await shows(pilot, "rising loads up to")
    assert isinstance(pilot.app.screen, CanaryForm)
    return pilot.app.screen


# ------------------------------------------------------------------------------- the fold


def test_a_view_that_came_over_the_link_goes_on_to_the_same_as_the_whole_fold() -> None:
    """Wherever it was cut, canaries, proposals, decisions and alarms come out alike."""
    facts = [*GUARDED, *whole(), accepted(), drifted(), rolled_back(0)]
    client = CanaryClient(*facts)
    events, whole_view = client.events, client.view()
    before = len(events) - len(facts)
    for cut in range(before, len(events), 3):
        view = SessionView(SESSION)
        for event in events[:cut]:
            view.apply(event)
        sent = codec.dumps(codec.message_to_plain(Viewed(view)))
        arrived = codec.message_of(sent)
        assert isinstance(arrived, Viewed)
        for event in events[cut:]:
            arrived.view.apply(event)
        assert arrived.view == whole_view
    assert [made.canary for made in whole_view.proposals] == [1]
    assert whole_view.drifts == [], "who goes back has no alarm of what is not in force"


def test_a_canary_whose_engine_died_is_cut_off_and_another_may_follow() -> None:
    view = CanaryClient(*RUNNING).view()
    assert view.under_canary is not None
    view.cut_off()
    assert view.under_canary is None
    assert view.canaries[0].interrupted
    assert [step.verdict for step in view.canaries[0].steps] == ["kept"] * 3


@pytest.mark.parametrize(
    ("parse", "typed_words", "value"),
    [
        (parse_input.seconds, "90", 90.0),
        (parse_input.seconds, "1.5 h", 5400.0),
        (parse_input.share, "50 %", 0.5),
        (parse_input.share, "0.25", 0.25),
        (parse_input.share, "100%", 1.0),
        (parse_input.count, "12", 12),
    ],
)
def test_values_are_typed_with_their_units(
    parse: Callable[[str], float], typed_words: str, value: float
) -> None:
    assert parse(typed_words) == value


@pytest.mark.parametrize("words", ["", "0 %", "-1", "nan", "101 %", "half"])
def test_what_is_no_share_is_a_sentence(words: str) -> None:
    with pytest.raises(ValueError, match="is no share; write it like 50 %"):
        parse_input.share(words)


# ------------------------------------------------------------------------------- the form


async def test_a_form_with_its_defaults_shows_the_plan_and_starts_after_a_yes() -> None:
    client = CanaryClient()
    async with opened(client, screen="canary") as pilot:
        assert "Press n to plan one" in screen_text(pilot.app)
        found = await form(pilot)
        values = found.form.values()
        assert values["sla"] == "p95<=200ms @ rate=300/s"
        assert (values["share"], values["steps"], values["kpi"]) == ("50 %", "10", KPI)
        found.form.field("chain").value = "tinyproxy-haproxy"
        found.form.field("share").value = "40 %"
        found.form.field("steps").value = "4"
        await shows(pilot, "4 rising loads up to 122/s")
        found.form.field("budget").value = "2m"
        await shows(pilot, "at most 2.0 min")
        await pilot.press("f5")
        await shows(pilot, "Load tinyproxy-haproxy with 4 rising loads up to 122/s?")
        assert "20 s of lab time" in screen_text(pilot.app)
        assert client.requests(RetrainChain) == []
        await pilot.press("y")
        await until(pilot, lambda: client.requests(RetrainChain), "the request")
        (request,) = client.requests(RetrainChain)
        assert isinstance(request, RetrainChain)
        assert request.session == SESSION
        assert (request.chain, request.share, request.steps) == ("tinyproxy-haproxy", 0.4, 4)
        assert request.budget_s == 120.0
        await until(pilot, lambda: toasts(pilot.app), "what came of it")
        assert "A proposal waits: Y accepts, d rejects." in toasts(pilot.app)[-1]


async def test_that_a_proposal_shows_no_gain_is_said_with_what_can_be_done() -> None:
    client = CanaryClient()
    client.gain = False
    async with opened(client, screen="canary") as pilot:
        found = await form(pilot)
        found.form.field("chain").value = "tinyproxy-haproxy"
        await pilot.press("f5")
        await shows(pilot, "Load tinyproxy-haproxy with")
        await pilot.press("y")
        await until(pilot, lambda: toasts(pilot.app), "what came of it")
        said = toasts(pilot.app)[-1]
        assert "shows no gain, so it is not in force: Y puts it in force all the same" in said
        assert "d turns it down" in said
        assert "waits" not in said


async def test_a_long_plan_leaves_the_keys_and_the_cursor_in_sight() -> None:
    client = CanaryClient()
    client.plan_notes = tuple(f"Note {number} of what is to be known." for number in range(6))
    async with opened(client, (80, 24), screen="canary") as pilot:
        await form(pilot)
        await shows(pilot, "esc cancel   pgdn more")
        text = screen_text(pilot.app)
        assert "›chain" in text
        assert "Note 5" not in text
        await pilot.press("pagedown")
        await shows(pilot, "Note 5")
        await pilot.press(*["down"] * 8)
        await shows(pilot, "›loads")
        text = screen_text(pilot.app)
        assert "›chain" not in text
        assert "esc cancel   pgdn more" in text


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        ("share", "half", "is no share"),
        ("share", "40", "did you mean 40 %?"),
        ("steps", "many", "is not a whole number"),
        ("budget", "soon", "is not a duration"),
    ],
)
async def test_a_value_that_cannot_be_read_is_said_at_its_field(
    field: str, typed: str, words: str
) -> None:
    client = CanaryClient()
    async with opened(client, screen="canary") as pilot:
        found = await form(pilot)
        asked = len(client.requests(PlanCanary))
        found.form.field(field).value = typed
        await until(pilot, lambda: found.form.field(field).mistake, "the mistake")
        assert words in found.form.field(field).mistake
        await pilot.press("f5")
        assert isinstance(pilot.app.screen, CanaryForm), "nothing is started"
        assert len(client.requests(PlanCanary)) == asked


async def test_what_the_engine_refuses_is_said_at_the_field_that_it_names() -> None:
    client = CanaryClient()
    async with opened(client, screen="canary") as pilot:
        found = await form(pilot)
        client.plan_refused = UsageError("compares with '<'", where="--sla", remedy="Use <=")
        found.form.field("sla").value = "p95<200ms"
        await until(pilot, lambda: found.form.field("sla").mistake, "the mistake")
        assert found.form.field("sla").mistake == "compares with '<'. Use <="
        client.plan_refused = SessionError("is a bundle, and bundles are not changed")
        found.form.field("sla").value = "p95<=200ms"
        await shows(pilot, "is a bundle")
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, CanaryForm)
        assert client.requests(RetrainChain) == []


# ------------------------------------------------------------------------------- the steps


async def test_steps_come_one_by_one_with_expectation_figure_and_margin() -> None:
    client = CanaryClient()
    async with opened(client, screen="canary") as pilot:
        client.tell(*begun())
        text = await redrawn(pilot)
        assert "step 1 of 5 at 10/s" in text
        assert "if violated: back to no load" in text
        assert text.count("planned") >= 4
        client.tell(*taken(1), *taken(2))
        text = await redrawn(pilot)
        assert "step 3 of 5 at 80/s" in text
        assert "2 kept, 3 to do" in text
        assert "holds, 76 % left at worst (45/s)" in text
        assert "else back to 45/s" in text
        assert "47.2 [45.8, 48.7]" in text
        assert "12 times slower than the profiles, as learned  median of 1 load" in text
        assert [s.verdict for s in pilot.app.screen._steps] == [
            "kept", "kept", "measuring", "planned", "planned",
        ]  # fmt: skip


async def test_a_guard_that_trips_says_where_and_what_is_restored() -> None:
    async with opened(CanaryClient(*GUARDED), screen="canary") as pilot:
        text = await redrawn(pilot)
        assert "TRIPPED at 80/s: back to 45/s" in text
        assert "-52 %" in text
        assert text.count("not measured") == 2


async def test_a_canary_is_stopped_after_a_yes_and_only_while_it_runs() -> None:
    client = CanaryClient(*RUNNING)
    async with opened(client, screen="canary") as pilot:
        assert "canary.plan" not in {action.id for action in pilot.app.screen.offered()}
        await pilot.press("s")
        await shows(pilot, "Stop the canary?")
        await pilot.press("y")
        await until(pilot, lambda: client.requests(StopRun), "the request")
        stopped = CanaryEnding("stopped", "the canary was stopped; 3 samples are stored")
        client.tell(*ended(3, stopped))
        text = await redrawn(pilot)
        assert "■ the canary was stopped" in text
        assert not {"canary.stop", "canary.abort"} & {a.id for a in pilot.app.screen.offered()}


# ------------------------------------------------------------------------------- the proposal


async def test_a_proposal_is_accepted_without_a_reason_and_taken_back_by_undo() -> None:
    client = CanaryClient(*whole())
    async with opened(client, screen="canary") as pilot:
        text = await redrawn(pilot)
        assert "waits: Y accepts, d rejects" in text
        assert "handover of all: 0 → 43.9 ms [43.1–44.8]" in text
        await pilot.press("Y")
        await shows(pilot, "Accept proposal 3fa29c?")
        await pilot.press("y", "enter")  # as elsewhere: a yes, and no reason
        await until(pilot, lambda: client.requests(DecideProposal), "the request")
        assert client.requests(DecideProposal) == [
            DecideProposal(SESSION, proposal().id, accept=True)
        ]
        await shows(pilot, "accepted by tester")
        assert "in force model 1" in await redrawn(pilot)
        await pilot.press("u")
        await until(pilot, lambda: client.requests(RollBackModel), "the way back")
        assert client.requests(RollBackModel) == [
            RollBackModel(SESSION, 0, "tinyproxy-haproxy", KPI)
        ]


async def test_rejecting_asks_why_and_does_nothing_without() -> None:
    client = CanaryClient(*whole())
    async with opened(client, screen="canary") as pilot:
        await pilot.press("d")
        await shows(pilot, "Reject proposal 3fa29c?")
        await pilot.press("enter")
        await shows(pilot, "Give a reason")
        assert client.requests(DecideProposal) == []
        await pilot.press(*"noise", "enter")
        await until(pilot, lambda: client.requests(DecideProposal), "the request")
        (request,) = client.requests(DecideProposal)
        assert isinstance(request, DecideProposal)
        assert (request.accept, request.why) == (False, "noise")
        await shows(pilot, "rejected by tester")
        offered = {action.id for action in pilot.app.screen.offered()}
        assert not {"canary.accept", "canary.reject"} & offered


async def test_that_nothing_can_be_gained_is_said_before_it_is_accepted() -> None:
    facts = whole()[: -len(proposed())]
    async with opened(CanaryClient(*facts, *proposed(gain=False)), screen="canary") as pilot:
        text = " ".join((await redrawn(pilot)).split())
        assert "nothing can be gained" in text
        assert "not in force, no gain: Y accepts all the same, d rejects" in text
        await pilot.press("Y")
        await shows(pilot, "it is no better")


async def test_earlier_canaries_are_opened_and_a_drift_is_an_alarm() -> None:
    facts = [*whole(), accepted(), drifted(), *GUARDED]
    async with opened(CanaryClient(*facts), screen="canary") as pilot:
        text = await redrawn(pilot)
        assert "canary 2 of 2" in text
        await pilot.press("o")
        await shows(pilot, "proposal accepted")
        await pilot.press("end", "enter")
        await shows(pilot, "canary 1 of 2")
        assert "DRIFT, n measures again: 12 later samples" in screen_text(pilot.app)
        await pilot.press("tab")
        assert "kept" in await redrawn(pilot)
        assert pilot.app.screen.copied()[1].startswith("step\tload\texpected")


# ------------------------------------------------------------------------------- who may


@pytest.mark.parametrize("facts", [RUNNING, whole(), []])
async def test_observers_see_everything_and_are_offered_nothing(facts: list[Fact]) -> None:
    client = CanaryClient(*facts)
    client.role = "observer"
    async with opened(client, screen="canary") as pilot:
        offered = {action.id for action in pilot.app.screen.offered()}
        commands = {"plan", "accept", "reject", "stop", "abort"}
        assert not {f"canary.{name}" for name in commands} & offered
        text = await redrawn(pilot)
        assert "an operator" in text or "step 4 of 5" in text
        await pilot.press("n", "Y", "d", "s")
        assert client.commands() == []


async def test_who_does_not_drive_cannot_stop_it() -> None:
    client = CanaryClient(*RUNNING)
    async with opened(client, screen="canary") as pilot:
        assert "canary.stop" in {action.id for action in pilot.app.screen.offered()}
        client.tick(ControlLock(SESSION, "bob"))
        await redrawn(pilot)
        assert "canary.stop" not in {action.id for action in pilot.app.screen.offered()}


async def test_a_recording_shows_what_was_and_says_that_nothing_can_be_measured() -> None:
    for facts, words in (([], "is a bundle"), (whole(), "waits for an operator")):
        client = CanaryClient(*facts)
        client.unmeasurable = "demo-1 is a bundle, and bundles are not changed."
        async with opened(client, screen="canary") as pilot:
            await shows(pilot, words)
            offered = {action.id for action in pilot.app.screen.offered()}
            assert not {"canary.plan", "canary.accept", "canary.reject"} & offered


async def test_while_the_campaign_runs_no_canary_can_be_planned() -> None:
    async with opened(CanaryClient(finished=False), screen="canary") as pilot:
        assert "when the campaign has ended" in await redrawn(pilot)
        assert "canary.plan" not in {action.id for action in pilot.app.screen.offered()}


async def test_a_replay_shows_the_steps_and_commands_nothing() -> None:
    client = CanaryClient(*whole())
    async with opened(client, screen="canary", replay_speed=1000.0) as pilot:
        await shows(pilot, "All 5 loads are measured")
        assert not [
            a for a in pilot.app.screen.offered() if a.id in ("canary.plan", "canary.accept")
        ]


async def test_retraining_is_timed_from_the_end_of_its_canary() -> None:
    for facts, told in ((RUNNING, "0 s"), (whole(), "2.0 min")):
        async with opened(CanaryClient(*facts), screen="canary") as pilot:
            screen = pilot.app.screen
            assert isinstance(screen, CanaryScreen)
            screen.asking.busy = Busy("retraining", False, monotonic() - 120.0)
            await redrawn(pilot)
            assert f"({told}, " in screen.waiting_for, "what the canary took is its own"


@pytest.mark.parametrize("key", ["Y", "d"])
async def test_a_decision_before_the_proposal_is_there_says_that_retraining_goes_on(
    key: str,
) -> None:
    async with opened(CanaryClient(*whole()), (100, 30), screen="canary") as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, CanaryScreen)
        screen.asking.busy = Busy.of("retraining", measures=False)
        await redrawn(pilot)
        await pilot.press(key)
        assert flashed(pilot.app) == "The proposal is not there yet: retraining goes on."


# ------------------------------------------------------------------------------- looks


@pytest.mark.parametrize("size", SIZES)
async def test_looks(size: tuple[int, int], tmp_path: Path) -> None:
    async with opened(CanaryClient(), size, screen="canary") as pilot:
        await check(pilot, "canary-empty", tmp_path)
        found = await form(pilot)
        await check(pilot, "canary-form", tmp_path)
        found.form.field("share").value = "half"
        await until(pilot, lambda: found.form.field("share").mistake, "the mistake")
        await check(pilot, "canary-form-mistake", tmp_path)
    async with opened(CanaryClient(*RUNNING), size, screen="canary") as pilot:
        await check(pilot, "canary-running", tmp_path)
    async with opened(CanaryClient(*GUARDED), size, screen="canary") as pilot:
        await check(pilot, "canary-guard", tmp_path)
    client = CanaryClient(*whole())
    async with opened(client, size, screen="canary") as pilot:
        await check(pilot, "canary-proposal", tmp_path)
        await pilot.press("d")
        await check(pilot, "canary-reject", tmp_path)
    async with opened(
        CanaryClient(*whole(), accepted(), drifted()), size, screen="canary"
    ) as pilot:
        await check(pilot, "canary-accepted-drift", tmp_path)


@pytest.mark.parametrize(("size", "theme"), [((60, 18), "dark"), ((80, 24), "mono")])
async def test_looks_where_there_is_little(
    size: tuple[int, int], theme: str, tmp_path: Path
) -> None:
    async with opened(CanaryClient(*RUNNING), size, screen="canary", theme=theme) as pilot:
        await check(pilot, "canary-running", tmp_path)
    async with opened(CanaryClient(*whole()), size, screen="canary", theme=theme) as pilot:
        await check(pilot, "canary-proposal", tmp_path)


@pytest.mark.parametrize(("steps", "ends"), [("0", True), ("4", False)])
async def test_escape_ends_a_retraining_that_measures_nothing(steps: str, ends: bool) -> None:
    client = CanaryClient()
    client.retrained.clear()
    async with opened(client, (100, 30), screen="canary") as pilot:
        found = await form(pilot)
        found.form.field("steps").value = steps
        await pilot.press("f5")
        await shows(pilot, "Retrain the model of" if ends else "Load ")
        await pilot.press("y")
        await until(pilot, lambda: client.requests(RetrainChain), "the request")
        await shows(pilot, "retraining (")
        await pilot.press("escape")
        await pilot.pause()
        if ends:
            await until(pilot, lambda: client.dropped, "the end of it")
            assert client.dropped == client.requests(RetrainChain)
            assert pilot.app.screen.NAME == "canary"
            await until(
                pilot, lambda: "retraining (" not in screen_text(pilot.app), "not waited for"
            )
        else:
            assert not client.dropped, "what is measured is stopped, or goes on"
            assert pilot.app.screen.NAME == "sessions"
        client.retrained.set()


def test_a_term_that_is_not_applied_is_not_shown_beside_an_interval_that_excludes_it() -> None:
    made = proposal()
    withheld = TermChange("delta", None, 0.0, 0.0, -1.14, -0.105, "ms")
    shown = replace(made, changes=(withheld, made.changes[1]))
    rows = proposal_rows(SessionView("x"), ProposalView(shown, 0.0, None), ("", ""), 120)
    text = "\n".join("".join(words for words, _ in row) for row in rows)
    assert "0 → 0 ms, samples say [-1.14, -0.105]: not clear" in text
    assert "1 → 1.02 [0.7–1.5]" in text


async def test_a_proposal_that_is_longer_than_its_room_is_scrolled_and_tab_is_named() -> None:
    async with opened(CanaryClient(*whole()), (80, 24), screen="canary") as pilot:
        before = await redrawn(pilot)
        assert "proposal 3fa29c" in before
        assert "made by" not in before
        assert "tab Switch" in before
        await pilot.press("G")
        assert "made by" in await redrawn(pilot)
        await pilot.press("g")
        assert "made by" not in await redrawn(pilot)
        await pilot.press(*"jjjjjjjj")
        assert await redrawn(pilot) != before
