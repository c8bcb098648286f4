"""The screen Recommend: asked, refused at the field, answered, verified, previewed, written."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_link import opened, redrawn, screen_text, toasts, until
from recommending_link import (
    RECORDED,
    RecommendingClient,
    choice,
    greedy,
    held,
    unmet,
    verified,
)
from snapshots import check
from textual.pilot import Pilot
from textual.widgets import OptionList

from workbench.domain.errors import (
    ConfidenceRefused,
    LabError,
    OutsideProfile,
    SlaError,
    UsageError,
    WorkbenchError,
)
from workbench.domain.events import RecommendationVerified
from workbench.domain.export_requests import (
    Previewed,
    PreviewedFile,
    PreviewRecommendation,
)
from workbench.domain.lab_verdicts import lab_verdict
from workbench.domain.messages import ExportRecommendation, GetStatus, Request, StopRun
from workbench.domain.questions import Recommend, VerifyRecommendation
from workbench.domain.recommendations import Recommendation
from workbench.paths import shipped
from workbench.store.session_file import SessionFile
from workbench.tui.screens.recommend import recommend_rows
from workbench.tui.screens.recommend.export_dialog import ExportDialog

SIZES = [(80, 24), (160, 50)]
ALL = [*((size, "dark") for size in SIZES),
       pytest.param((60, 18), "dark", marks=pytest.mark.long),
       pytest.param((80, 24), "mono", marks=pytest.mark.long)]  # fmt: skip


def recommending(
    client: RecommendingClient, size: tuple[int, int] = (80, 24), **others: Any
) -> Any:
    return opened(client, size, screen="recommend", **others)


async def fill(pilot: Pilot[Any], sla: str) -> None:
    """Write the SLA instead of the campaign's, by keys."""
    await pilot.press("e", "down", "end", "ctrl+u", *sla)


def asked(client: RecommendingClient) -> list[Recommend]:
    return [request for request in client.asked if isinstance(request, Recommend)]


async def test_the_question_is_written_by_keys_and_the_answer_is_shown() -> None:
    client = RecommendingClient()
    client.next = held("r1", greedy=greedy())
    async with recommending(client) as pilot:
        shown = await redrawn(pilot)
        assert "No recommendation yet" in shown
        assert "e writes an SLA" in shown
        await fill(pilot, "p95<=200ms @ rate=300/s, filesize=10kB")
        await pilot.press("down", *"throughput>=295/s @ rate=300/s")
        await pilot.press("down", "down", "ctrl+u", *"0.9")  # over a third, empty SLA
        await pilot.press("down", "right", "down", "o", "enter", "ctrl+r")
        await until(pilot, lambda: "holds with 97.3 %" in screen_text(pilot.app), "the answer")
        (request,) = asked(client)
        assert request.slas == (
            "p95<=200ms @ rate=300/s, filesize=10kB", "throughput>=295/s @ rate=300/s",
        )  # fmt: skip
        assert request.chain == "haproxy-tinyproxy", "the campaign's first chain"
        assert request.confidence == pytest.approx(0.9)
        assert (request.cost, request.greedy, request.on_lab) == ("example", True, False)
        shown = await redrawn(pilot)
        assert "r1: tinyproxy 25 %, haproxy 25 % – holds with 97.3 % in steady state" in shown
        assert "✓ 25+25 %" in shown
        assert "50+25 %         0.75     >99.9 %  greedy" in shown
        assert pilot.app.screen.NAME == "recommend"
        assert toasts(pilot.app) == ["r1: an allocation holds."]
        await pilot.press("9")
        assert pilot.app.screen.NAME == "events", "digits are keys again"


async def test_the_form_begins_with_the_question_of_the_answer_that_is_shown() -> None:
    client = RecommendingClient(held(), replace(held("r2"), chain="haproxy", confidence=0.9))
    async with recommending(client) as pilot:
        await redrawn(pilot)
        form = pilot.app.screen.form
        assert form.values()["chain"] == "haproxy"
        assert form.values()["confidence"] == "90 %"
        await pilot.press("o", "down", "enter")
        await redrawn(pilot)
        assert form.values()["chain"] == "tinyproxy-haproxy"
        await pilot.press("e", "down", "end", "x", "escape")
        await redrawn(pilot)
        assert form.values()["sla"].endswith("x")  # what was written stays


async def test_letters_and_digits_are_text_while_a_field_is_edited() -> None:
    client = RecommendingClient(held())
    async with recommending(client) as pilot:
        await fill(pilot, "qevxos98u?:")
        form = pilot.app.screen.form
        assert form.values()["sla"] == "qevxos98u?:"
        assert pilot.app.screen.NAME == "recommend"
        assert "⏎ Next  ^r Ask" in screen_text(pilot.app)
        await pilot.press("up", "8", "backspace", *"haproxy-", "enter")
        assert form.values()["chain"] == "haproxy-tinyproxy"
        await pilot.press("escape")
        assert not form.editing
        assert pilot.app.screen.NAME == "recommend", "the first escape only leaves the form"
        assert asked(client) == []


@pytest.mark.parametrize(
    ("error", "field", "said"),
    [
        (ConfidenceRefused("a confidence of 1 cannot be given"), "confidence", "cannot be given"),
        (UsageError("the KPI is 'p9'", where="SLA", remedy="Write it so"), "sla", "Write it so."),
        (OutsideProfile("rate 9000 lies outside", where="SLA"), "sla", "lies outside"),
        (OutsideProfile("rate 9000 lies outside"), "sla", "lies outside"),
        (UsageError("no cost is called 'x'", where="cost"), "cost", "no cost is called"),
        (UsageError("needs a profile", where="chain study"), "chain", "needs a profile"),
    ],
)
async def test_what_the_engine_refuses_stands_at_its_field(
    error: WorkbenchError, field: str, said: str
) -> None:
    client = RecommendingClient()
    client.next = error
    async with recommending(client) as pilot:
        await pilot.press("e", "ctrl+r")
        form = pilot.app.screen.form
        await until(pilot, lambda: form.field(field).mistake, "the mistake")
        assert said in form.field(field).mistake
        assert said in " ".join((await redrawn(pilot)).split())
        assert [f.name for f in form.fields if f.mistake] == [field]
        assert not form.editing, "who presses a key of the screen just now types no text"
        await pilot.press("e")
        assert form.field(field).entry.has_focus, "it can be mended at once"


async def test_enter_goes_on_to_the_next_line_and_asks_nothing() -> None:
    client = RecommendingClient()
    async with recommending(client) as pilot:
        await fill(pilot, "p95<=200ms @ rate=300/s")
        await pilot.press("enter", *"loss<=1%", "enter", "enter", *["enter"] * 9)
        form = pilot.app.screen.form
        await redrawn(pilot)
        assert form.values()["sla-2"] == "loss<=1%"
        assert form.field("greedy").entry.has_focus, "the last one"
        assert asked(client) == []


async def test_a_refusal_beside_an_answer_takes_no_keys_and_escape_leaves_it() -> None:
    client = RecommendingClient(held())
    client.gate.clear()
    client.next = SlaError("the KPI is 'p9'", remedy="Write p95")
    async with recommending(client) as pilot:
        await redrawn(pilot)
        await pilot.press("e", "ctrl+r")
        form = pilot.app.screen.form
        await until(pilot, lambda: not form.is_on_screen, "the form is put away")
        client.gate.set()
        await until(pilot, lambda: form.field("sla").mistake, "the mistake")
        await redrawn(pilot)
        before = form.values()["sla"]
        assert form.is_on_screen, "with what is wrong"
        await pilot.press("e", "end", "x", "escape")
        assert form.values()["sla"] == f"{before}x", "keys are the field's once they are asked for"
        await pilot.press("ctrl+r")
        await until(pilot, lambda: form.field("sla").mistake, "refused again")
        await pilot.press("escape")
        await redrawn(pilot)
        assert pilot.app.screen.NAME == "recommend", "escape leaves the refusal alone"
        assert not form.is_on_screen
        await pilot.press("e", "escape", "9")
        assert pilot.app.screen.NAME == "events"


async def test_the_second_sla_is_refused_at_the_second_line() -> None:
    client = RecommendingClient()
    client.next = UsageError("the KPI is 'p9'", where="SLA 2")
    async with recommending(client) as pilot:
        await pilot.press("e", "down", "down", *"p9<=1ms", "ctrl+r")
        form = pilot.app.screen.form
        await until(pilot, lambda: form.field("sla-2").mistake, "the mistake")
        assert not form.field("sla").mistake
        await pilot.press("e", "backspace")
        assert not form.field("sla-2").mistake, "what is changed is not wrong any more"


@pytest.mark.parametrize("confidence", ["sure", "nan", "inf"])
async def test_mistakes_that_need_no_engine_are_said_at_once(confidence: str) -> None:
    client = RecommendingClient()
    async with recommending(client) as pilot:
        await fill(pilot, "")
        await pilot.press("down", "ctrl+u", *confidence, "ctrl+r")
        form = pilot.app.screen.form
        assert "Nothing is asked" in form.field("sla").mistake
        assert "Not a number" in form.field("confidence").mistake
        assert asked(client) == []


async def test_what_is_no_field_s_fault_is_said_above_the_answer() -> None:
    client = RecommendingClient(held())
    client.next = LabError("the worker died", remedy="Ask again")
    async with recommending(client) as pilot:
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: "the worker died. Ask again." in screen_text(pilot.app), "it")
        assert "r1: tinyproxy 25 %" in screen_text(pilot.app), "what was known is still there"


async def test_while_it_is_computed_a_line_says_so_and_a_stale_answer_is_dropped() -> None:
    client = RecommendingClient()
    client.gate.clear()
    client.status = replace(client.status, scoring="haproxy: fitting p95_ms")
    client.next = held("r1")
    async with recommending(client) as pilot:
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: "haproxy: fitting p95_ms" in screen_text(pilot.app), "busy")
        assert any(isinstance(request, GetStatus) for request in client.asked)
        client.next = held("r7")
        await pilot.press("e", "ctrl+r")  # asks anew: the first answer is not waited for
        await until(pilot, lambda: len(asked(client)) == 2, "the second question")
        client.gate.set()
        await until(pilot, lambda: "r7: tinyproxy" in screen_text(pilot.app), "its answer")
        assert toasts(pilot.app) == ["r7: an allocation holds."]
        assert client.dropped == asked(client)[:1], "and not the second, which says the same"
        assert "recommending" not in screen_text(pilot.app)


async def test_an_answer_need_not_be_waited_for() -> None:
    client = RecommendingClient()
    client.gate.clear()
    async with recommending(client) as pilot:
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: "recommending" in screen_text(pilot.app), "busy")
        assert not pilot.app.screen.editing, "keys are the screen's while it waits"
        await pilot.press("escape")
        await until(pilot, lambda: "recommending" not in screen_text(pilot.app), "not busy")
        assert client.dropped == asked(client), "nor is it computed any further"
        assert pilot.app.screen.NAME == "recommend"
        await pilot.press("escape")
        assert pilot.app.screen.NAME == "sessions"


async def test_where_nothing_holds_it_says_so_and_what_comes_closest() -> None:
    async with recommending(RecommendingClient(unmet("r1"))) as pilot:
        shown = " ".join((await redrawn(pilot)).split())
        assert "✗ r1: nothing meets the SLA, of 9 allocations" in shown
        assert "what comes closest is tinyproxy 50 %, haproxy 50 %, with 41.0 %" in shown
        assert "≈ 50+50 %" in shown
        assert "-85" in shown
        assert "extrapolated" in shown
        assert "recommend.verify" not in {a.id for a in pilot.app.screen.offered()}


async def test_the_cursor_tells_of_each_allocation() -> None:
    async with recommending(RecommendingClient(held())) as pilot:
        assert "uses 80 % of its 25 %" in await redrawn(pilot)
        await pilot.press("j")
        shown = await redrawn(pilot)
        assert "interpolated: between allocations that were profiled" in shown
        await pilot.press("G")
        assert "at least 1.2k requests/s with 95 %: ≥+900 (+300 %)" in await redrawn(pilot)


async def test_it_is_verified_after_it_was_said_what_that_means() -> None:
    client = RecommendingClient(held())
    client.gate.clear()
    async with recommending(client) as pilot:
        await pilot.press("f5")
        asks = " ".join(screen_text(pilot.app).split())
        assert "Verify r1 on the lab sim?" in asks
        assert "tinyproxy 25 %, haproxy 25 %" in asks
        assert "sampled up to 5 times" in asks
        await pilot.press("n")
        assert client.commands() == []
        await pilot.press("f5", "y")
        await until(pilot, lambda: "verifying r1 on the lab" in screen_text(pilot.app), "busy")
        offered = {action.id for action in pilot.app.screen.offered()}
        assert "recommend.stop" in offered
        assert "recommend.verify" not in offered
        await pilot.press("s", "y")
        await until(pilot, lambda: any(isinstance(r, StopRun) for r in client.asked), "the stop")
        client.gate.set()
        await until(pilot, lambda: "the lab confirms it" in screen_text(pilot.app), "the verdict")
        assert "✓ the lab confirms it: p95 151 [140–162] ms" in await redrawn(pilot)
        request = next(r for r in client.asked if isinstance(r, VerifyRecommendation))
        assert (request.session, request.recommendation) == ("demo-1", "r1")


async def test_what_the_lab_does_not_confirm_is_plain() -> None:
    client = RecommendingClient(held())
    client.tell(RecommendationVerified("r1", verified(met=False), "ann"))
    async with recommending(client) as pilot:
        shown = " ".join((await redrawn(pilot)).split())
        assert "✗ the lab does NOT confirm it: p95 262 [244–280] ms" in shown
        assert "where 143 [122–179] was expected" in shown
        assert "! r1:" in shown


async def test_a_lab_that_fails_leaves_the_recommendation_and_a_sentence() -> None:
    client = RecommendingClient(held())
    client.verdict = LabError("r1 is stored, and was not verified: no core is free")
    async with recommending(client) as pilot:
        await pilot.press("f5", "y")
        await until(pilot, lambda: "no core is free" in screen_text(pilot.app), "the sentence")
        assert "r1: tinyproxy 25 %" in screen_text(pilot.app)


async def test_a_recording_measures_nothing_and_says_so() -> None:
    client = RecommendingClient(held())
    client.options = replace(client.options, unmeasurable=RECORDED)
    client.next = held("")
    client.notes = ("computed, not stored: science-open is a bundle",)
    async with recommending(client) as pilot:
        await redrawn(pilot)
        await pilot.press("f5")
        await until(pilot, lambda: toasts(pilot.app), "the toast")
        assert "bundles are not changed" in toasts(pilot.app)[0]
        assert pilot.app.screen.NAME == "recommend"
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: "not stored:" in screen_text(pilot.app), "the answer")
        await pilot.press("x")
        await until(pilot, lambda: "Only what is stored" in toasts(pilot.app)[-1], "the toast")


async def test_observers_ask_what_is_not_measured_and_look_at_exports() -> None:
    client = RecommendingClient(held())
    client.role = "observer"
    client.next = held("")
    async with recommending(client) as pilot:
        offered = {action.id for action in pilot.app.screen.offered()}
        assert "recommend.ask" in offered
        assert "recommend.verify" not in offered
        assert pilot.app.screen.form.field("greedy").entry.options == ("no", "on the model")
        await pilot.press("x")
        await until(pilot, lambda: "# r1.compose of r1" in screen_text(pilot.app), "the preview")
        assert "observers may preview, not write" in screen_text(pilot.app)
        await pilot.press("enter", "escape")
        assert client.commands() == []


async def test_greedy_scaling_on_the_lab_is_asked_about_first() -> None:
    client = RecommendingClient()
    async with recommending(client) as pilot:
        await redrawn(pilot)
        await pilot.press("e", "up", "left", "ctrl+r")
        await until(pilot, lambda: pilot.app.screen.is_modal, "the question")
        assert "one allocation after the other" in " ".join(screen_text(pilot.app).split())
        assert asked(client) == []
        await pilot.press("y")
        await until(pilot, lambda: asked(client), "the question to the engine")
        assert (asked(client)[0].greedy, asked(client)[0].on_lab) == (True, True)


async def test_an_export_is_looked_at_before_it_is_written() -> None:
    client = RecommendingClient(held())
    async with recommending(client) as pilot:
        await redrawn(pilot)
        await pilot.press("x", "j", "j")
        await until(pilot, lambda: "# r1.helm of r1" in screen_text(pilot.app), "the preview")
        shown = screen_text(pilot.app)
        assert "Kubernetes: requests and limits as Helm values" in shown
        listed = [option.prompt for option in pilot.app.screen.query_one(OptionList).options]
        assert [p for p in listed if "Kubernetes" in str(p)] == [
            "helm\n Kubernetes",
            "kustomize\n Kubernetes",
        ]
        assert "/home/ann/exports/r1.helm" in shown
        await pilot.press("space")
        await until(pilot, lambda: "line: 20" in screen_text(pilot.app), "the next page")
        assert client.commands() == [], "nothing was written"
        await pilot.press("j", "j", "j")
        await until(pilot, lambda: "file 1 of 2" in screen_text(pilot.app), "kustomize")
        await pilot.press("tab")
        assert "# tinyproxy.yaml of r1" in await redrawn(pilot)
        await pilot.press("c")
        assert "kustomize of r1" in toasts(pilot.app)[-1]
        await pilot.press("enter")
        await until(pilot, lambda: "Wrote" in toasts(pilot.app)[-1], "the toast")
        assert toasts(pilot.app)[-1] == "Wrote /home/ann/exports/kustomization.yaml (2 files)."
        (request,) = client.commands()
        assert request == ExportRecommendation("demo-1", "r1", "kustomize")


async def test_enter_before_the_text_has_come_writes_it_when_it_is_there() -> None:
    client = RecommendingClient(held())
    async with recommending(client) as pilot:
        await redrawn(pilot)
        await pilot.press("x", "j", "enter")
        await until(pilot, lambda: any("Wrote" in said for said in toasts(pilot.app)), "written")
        (request,) = client.commands()
        assert isinstance(request, ExportRecommendation)
        assert not isinstance(pilot.app.screen, ExportDialog)


class ToldOfVerdicts(RecommendingClient):
    """Whose exports say whether the lab was asked."""

    async def ask(self, request: Request) -> Any:
        if not isinstance(request, PreviewRecommendation):
            return await super().ask(request)
        found = self.view().recommendation("r1")
        assert found is not None
        text = f"verified: {'held' if found.recommendation.verified else 'not yet'}"
        return Previewed((PreviewedFile("/home/ann/exports/r1", text, len(text)),))


async def test_a_verdict_that_comes_while_an_export_is_looked_at_is_in_its_text() -> None:
    client = ToldOfVerdicts(held())
    async with recommending(client) as pilot:
        await redrawn(pilot)
        await pilot.press("x")
        await until(pilot, lambda: "verified: not yet" in screen_text(pilot.app), "the preview")
        client.tell(RecommendationVerified("r1", verified(), "ann"))
        await until(pilot, lambda: "verified: held" in screen_text(pilot.app), "the verdict")
        assert isinstance(pilot.app.screen, ExportDialog)


async def test_a_format_that_has_nothing_to_write_says_why() -> None:
    client = RecommendingClient(unmet("r1"))
    client.refuses_preview = UsageError("r1: nothing meets the SLA, so there is nothing to deploy")
    async with recommending(client) as pilot:
        await redrawn(pilot)
        await pilot.press("x", "enter")
        await until(pilot, lambda: "! r1: nothing meets" in screen_text(pilot.app), "the sentence")
        assert "enter write" not in screen_text(pilot.app)
        await pilot.press("enter")
        assert client.commands() == []


async def test_its_note_names_a_key_where_commands_have_another_command() -> None:
    noted = replace(held(), note="3 canaries would tell (workbench canary).")
    async with recommending(RecommendingClient(noted)) as pilot:
        shown = " ".join((await redrawn(pilot)).split())
        assert "3 canaries would tell (n on Canary: 7)." in shown
        assert "workbench canary" not in pilot.app.screen.copied()[1]


async def test_earlier_recommendations_are_opened_again_with_their_question() -> None:
    async with recommending(RecommendingClient(held(), unmet())) as pilot:
        assert "r2: nothing meets" in await redrawn(pilot)
        await pilot.press("o")
        assert "r1" in screen_text(pilot.app)
        await pilot.press("j", "enter")
        assert "r1: tinyproxy 25 %" in await redrawn(pilot)
        await pilot.press("o", "enter")
        await redrawn(pilot)
        values = pilot.app.screen.form.values()
        assert values["sla-2"] == "throughput>=295/s @ rate=300/s"
        assert values["confidence"] == "95 %"


async def test_the_recommendation_is_copied_as_text() -> None:
    async with recommending(RecommendingClient(held(greedy=greedy()))) as pilot:
        await redrawn(pilot)
        what, text = pilot.app.screen.copied()
        assert what == "the recommendation"
        for words in ("p95<=200ms @ rate=300/s", "97.3 %", "interpolated", "greedy", "uses 80 %"):
            assert words in text


async def test_a_replay_shows_what_was_recommended_and_asks_nothing() -> None:
    client = RecommendingClient(held())
    async with recommending(client, replay_speed=100_000.0) as pilot:
        await until(pilot, lambda: "r1: tinyproxy" in screen_text(pilot.app), "the end")
        offered = {action.id for action in pilot.app.screen.offered()}
        assert not offered & {"recommend.ask", "recommend.verify", "recommend.export"}


# ------------------------------------------------------------------- as it looks


@pytest.mark.parametrize(("size", "theme"), ALL)
async def test_looks(size: tuple[int, int], theme: str, tmp_path: Path) -> None:
    client = RecommendingClient(held(greedy=greedy(8)))
    client.tell(RecommendationVerified("r1", verified(), "ann"))
    async with recommending(client, size, theme=theme) as pilot:
        await redrawn(pilot)
        await check(pilot, "recommend-answered", tmp_path)
        client.next = UsageError(
            "the KPI is 'p9', which is no KPI; allowed: p50, p95, p99, mean, throughput, loss",
            where="SLA",
            remedy="Write it as p95<=200ms @ rate=300/s, filesize=10kB",
        )
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: pilot.app.screen.form.field("sla").mistake, "the mistake")
        await check(pilot, "recommend-refused", tmp_path)


@pytest.mark.parametrize("size", SIZES)
async def test_looks_of_other_states(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tui.widgets.waiting.monotonic", lambda: 0.0)
    client = RecommendingClient()
    async with recommending(client, size) as pilot:
        await check(pilot, "recommend-empty", tmp_path)
        client.gate.clear()
        client.status = replace(client.status, scoring="haproxy: fitting p95_ms")
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: "fitting" in screen_text(pilot.app), "busy")
        await check(pilot, "recommend-busy", tmp_path)
    client = RecommendingClient(held(), unmet())
    async with recommending(client, size) as pilot:
        await check(pilot, "recommend-unmet", tmp_path)
        client.next = LabError("the worker that answers died", remedy="Ask again")
        await pilot.press("e", "ctrl+r")
        await until(pilot, lambda: "worker" in screen_text(pilot.app), "the error")
        await check(pilot, "recommend-error", tmp_path)
        await pilot.press("o", "j", "enter", "x")
        await until(pilot, lambda: "line: 3" in screen_text(pilot.app), "the preview")
        await check(pilot, "recommend-export", tmp_path)
        await pilot.press("escape", "f5")
        await check(pilot, "recommend-verify", tmp_path)


async def test_greedys_answer_loses_its_tick_where_the_lab_refuted_it() -> None:
    refuted = held("r1", chosen=choice((0.5, 0.25), 0.97, 120.0), verified=verified(met=False))
    client = RecommendingClient(refuted, held("r2", greedy=greedy()))
    async with recommending(client) as pilot:
        shown = await redrawn(pilot)
        assert "✗ 50+25 %         0.75     >99.9 %  greedy" in shown
        assert "the lab does NOT confirm it: p95" in shown


@pytest.mark.parametrize(
    ("probability", "sign", "said"),
    [
        (0.97, "✓", ""),
        (0.62, "✗", "holds with 62.0 % only, not with 95 %"),
        (None, "?", "its chance of holding was not computed"),
    ],
)
async def test_greedys_answer_has_the_tick_that_its_probability_earns(
    probability: float | None, sign: str, said: str
) -> None:
    elsewhere = held(chosen=choice((0.25, 0.5), 0.97, 120.0), runners_up=())
    found = replace(elsewhere, greedy=replace(greedy(), probability=probability))
    async with recommending(RecommendingClient(found)) as pilot:
        shown = " ".join((await redrawn(pilot)).split())
        chance = "–" if probability is None else f"{probability:.1%}".replace("%", " %")
        assert f"{sign} 50+25 % 0.75 {chance} greedy" in shown
        assert said in shown
        assert ("Greedy scaling's answer" in shown) is bool(said)


async def test_what_the_lab_measured_of_an_allocation_is_known_beside_it() -> None:
    """Of the recording: greedy scaling's answer was tried, and does not hold."""
    session = await SessionFile.open(shipped("sessions") / "chain-first")
    view = await session.view()
    await session.close()
    found = view.recommendations[-1].recommendation
    assert found.greedy is not None
    assert found.chosen is not None
    theirs = lab_verdict(view, found, found.greedy.steps[-1].deployment)
    assert theirs is not None
    assert not theirs.met
    assert theirs.kpis["p95_ms"].value > 100.0
    rows = recommend_rows.ways_rows(found, 100, partial(lab_verdict, view, found))
    told = ["".join(words for words, _ in row) for row in rows]
    assert told[1].startswith(" ✓ 50+12.5 %")
    assert told[2].startswith(" ✗ 25+25 %")
    assert "costs less, but the lab does NOT confirm it: p95 101" in told[3]
    unheard = replace(found.chosen.deployment, allocation={"tinyproxy.vcpu": 4.0})
    assert lab_verdict(view, found, unheard) is None


@pytest.mark.parametrize("width", [58, 60, 70, 80, 120])
def test_what_the_ways_cost_is_whole_in_every_width(width: int) -> None:
    rows = recommend_rows.ways_rows(held(greedy=greedy(8)), width)[:3]
    told = ["".join(words for words, _ in row) for row in rows]
    assert all(len(line) <= width for line in told)
    assert told[0].endswith("+ profiling")
    assert told[1].endswith(" 8:00")


def test_a_heading_is_whole_over_a_column_of_which_nothing_is_known() -> None:
    found = held()
    assert found.chosen is not None
    bare = replace(found, chosen=replace(found.chosen, usage={}), runners_up=())
    columns = recommend_rows.Columns.within(bare, 160)
    assert "  CPU " in recommend_rows.heading(columns)[0][0]


@pytest.mark.parametrize("width", [80, 111])
def test_greedy_scaling_stands_in_the_columns_of_the_list_above_it(width: int) -> None:
    """What either way gives, costs and how probably it holds is read down, in one column each."""
    run = greedy(8)
    many = replace(run, steps=(*run.steps, replace(run.steps[-1], replicas={"tinyproxy": 12})))
    for found in (held(greedy=run), held(greedy=many), unmet(), replace(unmet(), greedy=run)):
        listed, ways = recommend_rows.whole(found, (), None, width), found.greedy
        told = ["".join(words for words, _ in row) for row in listed]
        above, *below = [line for line in told if "   allocation  " in line]
        assert bool(below) == (ways is not None)
        end = above.index("probability") + len("probability")
        for line in below:
            assert line[:end] == above[:end]
            row = told[told.index(line) + 1]
            assert row[end : end + 12].strip() in {"profiles", "greedy"}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replace(held(), judged=9), "the 4 cheapest that hold; the other 5 do not hold or cost"),
        (replace(held(), judged=9, runners_up=()), "the cheapest that holds; the other 8 do not"),
        (replace(unmet(), runners_up=()), "what comes closest; the other 8 do not hold either."),
        (held(), ""),
    ],
)
def test_what_is_judged_and_not_listed_is_said(found: Recommendation, said: str) -> None:
    rows = recommend_rows.note_rows(found, (), 400)
    words = " ".join(text for row in rows for text, _ in row)
    assert said in words
    assert ("Listed" in words) == bool(said)
