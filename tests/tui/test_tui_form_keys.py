"""Keys of the form on Campaign: where they lead, what they take back, that the cursor is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from campaign_keys import choose, screen_of, write
from drafting import settled
from fake_link import redrawn, screen_text, toasts, until
from pricing_link import PricingClient, campaigning
from textual.pilot import Pilot

from workbench.domain.drafts import ChangeDraft, DiscardDraft, ReadDraft
from workbench.domain.errors import UsageError
from workbench.domain.messages import RunCampaign
from workbench.tui.screens import draft as draft_screen
from workbench.tui.screens.campaign.campaign_screen import CampaignScreen
from workbench.tui.screens.dialogs import ConfirmScreen, MessageScreen
from workbench.tui.widgets.field import Field

WHOLE = "must be a whole number"


def line_of(pilot: Pilot[Any], name: str) -> Field:
    form = screen_of(pilot).form
    assert form is not None
    return form.field(name)


async def test_a_wrong_seed_is_counted_seen_and_led_to(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "seed", "abc")
        shown = await redrawn(pilot)
        assert line_of(pilot, "seed").entry.has_focus, "enter leaves no line that is wrong"
        assert WHOLE in shown, "the mistake is in sight"
        assert "1 mistake" in shown
        assert "can be run" not in shown
        assert "unknown until a mistake is fixed" in shown
        assert "≤ 80 samples" not in shown, "no figures of what stood there before"
        await pilot.press("escape", *["up"] * 20)
        shown = await redrawn(pilot)
        assert "f5 Mistake" in shown
        assert WHOLE not in shown
        await pilot.press("f5")
        assert line_of(pilot, "seed").entry.has_focus
        assert WHOLE in await redrawn(pilot)


async def test_undo_takes_a_wrong_seed_back(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "seed", "abc")
        await pilot.press("escape", "u")
        await until(pilot, lambda: screen_of(pilot).terms.seed == "1", "it is as it was")
        shown = await redrawn(pilot)
        assert "can be run" in shown
        assert line_of(pilot, "seed").value == "1"


async def test_a_wrong_seed_holds_up_a_run_from_chain_and_leads_to_its_line(
    tmp_path: Path,
) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "seed", "abc")
        await pilot.press("escape", "2")
        assert "1 mistake" in await redrawn(pilot)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(pilot.app.screen, CampaignScreen), "Campaign")
        await until(pilot, lambda: line_of(pilot, "seed").entry.has_focus, "the line of the seed")


async def test_a_run_from_chain_asks_as_campaign_does_and_has_its_terms(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        await write(pilot, "seed", "7")
        await pilot.press("escape", "2", "f5")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
        await until(pilot, lambda: "seed 7" in screen_text(pilot.app), "what it takes")
        await pilot.press("y")
        await until(pilot, lambda: any(isinstance(r, RunCampaign) for r in client.asked), "it runs")
        assert [r.seed for r in client.asked if isinstance(r, RunCampaign)] == [7]


async def test_a_mistake_of_another_target_is_led_to(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await pilot.press("tab")
        await redrawn(pilot)
        await write(pilot, "line-0", "25x")
        await pilot.press("escape", "tab")
        await redrawn(pilot)
        assert not line_of(pilot, "line-0").mistake
        await pilot.press("f5")
        await redrawn(pilot)
        assert pilot.app.draft.target == 1
        assert line_of(pilot, "line-0").entry.has_focus


async def test_a_refused_run_leads_back_to_the_form(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        await choose(pilot, "lab", "sim")
        await write(pilot, "line-0", "5000%")
        shown = " ".join((await redrawn(pilot)).split())
        assert "needs more cores than the simulated host has" in shown
        await pilot.press("escape", "f5")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
        assert "simulated host has 4" in pilot.app.screen.consequence
        client.refuses = UsageError("its functions need 50 cores", where="campaign mine")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, MessageScreen), "why not")
        client.refuses = None
        assert "its functions need 50 cores" in screen_text(pilot.app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, CampaignScreen), "the form")
        await until(pilot, lambda: "5000%" in screen_text(pilot.app), "as it was left")
        assert not pilot.app.is_open, "no session of that name is left"


def in_sight(pilot: Pilot[Any]) -> str:
    """The line of the form that has the cursor, as the terminal shows it; empty: none does."""
    lines = (line.strip() for line in screen_text(pilot.app).splitlines())
    return next((line[1:].split()[0] for line in lines if line.startswith("›")), "")


async def test_the_cursor_is_always_in_sight_and_goes_to_both_ends(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        form = screen_of(pilot).form
        assert form is not None
        await pilot.press("end")
        await redrawn(pilot)
        assert in_sight(pilot) == form.here.label == "seed"
        for _ in range(6):
            await pilot.press("tab")  # another target has other lines above the cursor
            await redrawn(pilot)
            assert in_sight(pilot) == "seed"
        await pilot.press("home")
        await redrawn(pilot)
        assert in_sight(pilot) == "target"


async def test_shift_tab_goes_back_to_the_target_before(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await pilot.press("tab", "tab")
        await redrawn(pilot)
        assert pilot.app.draft.target == 2
        await pilot.press("shift+tab")
        await redrawn(pilot)
        assert pilot.app.draft.target == 1
        assert not screen_of(pilot).form.editing


async def test_a_text_typed_into_a_choice_changes_nothing(tmp_path: Path) -> None:
    """Such as an SLA, one line too low: letters chose whatever began with the last of them."""
    async with campaigning(PricingClient(tmp_path)) as pilot:
        form, draft = screen_of(pilot).form, pilot.app.draft
        assert form is not None
        before = form.field("sampler").value
        form.edit("sampler")
        await pilot.press(*"p95<=200ms", "at", *"rate=300/s")
        await settled(pilot)
        assert form.field("sampler").value == before
        await pilot.press("right")
        await settled(pilot)
        await pilot.press(*"he")
        await settled(pilot)
        assert draft.at("sampling", "method") == "heuristic", "letters, once they mean something"


async def test_one_visit_of_a_line_is_one_step_to_take_back(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        form, draft = screen_of(pilot).form, pilot.app.draft
        assert form is not None
        before = draft.at("sampling", "method")
        form.edit("sampler")
        for key in ("right", "right", "left", "h", "e"):
            await pilot.press(key)
            await settled(pilot)
        assert draft.at("sampling", "method") == "heuristic"
        await pilot.press("down", "0", "up", "right")
        await settled(pilot)
        await pilot.press("escape", "u", "u")
        await settled(pilot)
        assert draft.at("sampling", "method") == "heuristic", "what was done on later visits"
        await pilot.press("u")
        await settled(pilot)
        assert draft.at("sampling", "method") == before, "all of the first visit"


async def by_another(client: PricingClient, samples: int) -> None:
    """What another screen writes into the same draft."""
    shown = await client.ask(ReadDraft("mine"))
    document = {**shown.document}
    document["sampling"] = {**document["sampling"], "max_samples": samples}
    await client.ask(ChangeDraft("mine", document))


async def test_what_another_screen_writes_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_screen, "REFRESH_S", 0.05)
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        await by_another(client, 33)
        await until(pilot, lambda: line_of(pilot, "max_samples").value == "33", "it is shown")
        assert "Somebody else changed the draft: it is shown as it is now." in toasts(pilot.app)
        await client.ask(DiscardDraft("mine"))
        await until(pilot, lambda: not pilot.app.draft.is_open, "it is gone")
        assert "is not there any more" in toasts(pilot.app)[-1]


async def test_what_was_refused_gives_way_to_what_is_there_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_screen, "REFRESH_S", 3600.0)
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        screen = screen_of(pilot)
        assert screen.form is not None
        screen.form.edit("max_samples")
        await by_another(client, 33)
        await pilot.press("0")
        screen.write_typed()
        await until(pilot, lambda: any("somebody else" in said for said in toasts(pilot.app)), "no")
        await settled(pilot)
        assert pilot.app.draft.at("sampling", "max_samples") == 33
        assert line_of(pilot, "max_samples").value == "33", "also where it is typed into"
