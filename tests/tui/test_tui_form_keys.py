"""Keys of the form on Campaign: where they lead, what they take back, that the cursor is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from campaign_keys import choose, line_of, screen_of, write
from drafting import settled
from fake_link import redrawn, screen_text, until
from pricing_link import PricingClient, SlowClient, campaigning
from textual.events import Paste
from textual.pilot import Pilot

from workbench.domain.errors import UsageError
from workbench.domain.messages import RunCampaign
from workbench.tui.places import Files
from workbench.tui.screens.campaign import campaign_screen
from workbench.tui.screens.campaign.campaign_screen import CampaignScreen
from workbench.tui.screens.chain.chain import ChainScreen
from workbench.tui.screens.dialogs import ConfirmScreen, MessageScreen

WHOLE = "must be a whole number"


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


@pytest.mark.parametrize(("budget", "runs"), [("9 min", [540.0]), ("9 bananas", [])])
async def test_a_run_is_of_what_was_typed_before_it_was_asked_for(
    budget: str, runs: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered before the engine has seen the new budget, or said that it is none."""
    monkeypatch.setattr(campaign_screen, "TYPING_S", 3600.0)
    client = SlowClient(tmp_path)
    async with campaigning(client) as pilot:
        screen = screen_of(pilot)
        assert screen.form is not None
        screen.form.edit("budget")
        client.takes.clear()
        await pilot.press("end", "ctrl+u")
        pilot.app.post_message(Paste(budget))
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
        await pilot.press("y")
        await pilot.pause()
        assert not any(isinstance(request, RunCampaign) for request in client.asked)
        client.takes.set()
        if runs:
            await until(pilot, lambda: any(isinstance(r, RunCampaign) for r in client.asked), "run")
        else:
            await until(pilot, lambda: line_of(pilot, "budget").mistake, "it is wrong")
            await until(pilot, lambda: line_of(pilot, "budget").entry.has_focus, "its line")
        await redrawn(pilot)
        asked = [r for r in client.asked if isinstance(r, RunCampaign)]
        assert [request.budget_s for request in asked] == runs


async def test_a_run_that_is_refused_late_leaves_what_is_done_meanwhile(tmp_path: Path) -> None:
    client = SlowClient(tmp_path)
    client.lab_opens.clear()
    client.refuses_late = UsageError("its functions need 50 cores", where="campaign mine")
    async with campaigning(client) as pilot:
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
        await pilot.press("y")
        await until(pilot, lambda: any(isinstance(r, RunCampaign) for r in client.asked), "asked")
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChainScreen), "Chain")
        chain = pilot.app.screen
        await until(pilot, lambda: "│ haproxy │" in screen_text(pilot.app), "its boxes")
        await pilot.press("a")
        await until(pilot, lambda: pilot.app.screen is not chain, "a dialog")
        dialog = pilot.app.screen
        client.lab_opens.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, MessageScreen), "why not")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is dialog, "the dialog as it was left")
        assert pilot.app.full_screen is chain


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
        assert "← → choose: no p95" in await redrawn(pilot), (
            "what is typed is seen, and what to press"
        )
        await pilot.press("enter")
        assert form.field("sampler").entry.has_focus, "it was not known what was meant"
        await pilot.press("right")
        await settled(pilot)
        await pilot.press(*"he", "enter")
        await settled(pilot)
        assert draft.at("sampling", "method") == "heuristic", "letters, once they are taken"


async def test_letters_look_for_a_value_and_enter_takes_it(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        form = screen_of(pilot).form
        assert form is not None
        lab = form.field("lab")
        before = lab.value
        form.edit("lab")
        await pilot.press("s")
        assert lab.value == before, "it is looked for, and not chosen"
        assert "sim?  ⏎ takes it" in await redrawn(pilot)
        await pilot.press("z")
        assert "← → choose: no sz" in await redrawn(pilot)
        await pilot.press("backspace", "enter")
        assert lab.value == "sim"
        form.edit("lab")
        await pilot.press("d", "down")
        form.edit("lab")
        assert lab.value == "sim", "who goes on without enter has chosen nothing"
        assert "‹ sim ›" in await redrawn(pilot)


@pytest.mark.parametrize(
    ("written", "named"),
    [('preset = "vim"', True), ('[keys]\n"draft.run" = ["R"]', False), ("", True)],
)
async def test_a_form_names_no_key_that_is_text_in_it(
    written: str, named: bool, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(written)
    async with campaigning(PricingClient(tmp_path), files=Files(keys=keys)) as pilot:
        form = screen_of(pilot).form
        assert form is not None
        form.edit("seed")
        line = (await redrawn(pilot)).splitlines()[-1]
        assert "Leave" in line
        assert ("f5 Run" in line) is named
        assert (" Run" in line) is named


async def test_one_visit_of_a_line_is_one_step_to_take_back(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        form, draft = screen_of(pilot).form, pilot.app.draft
        assert form is not None
        before = draft.at("sampling", "method")
        form.edit("sampler")
        for key in ("right", "right", "left", "h", "e", "enter"):
            await pilot.press(key)
            await settled(pilot)
        assert draft.at("sampling", "method") == "heuristic"
        await pilot.press("0", "up", "right")
        await settled(pilot)
        await pilot.press("escape", "u", "u")
        await settled(pilot)
        assert draft.at("sampling", "method") == "heuristic", "what was done on later visits"
        await pilot.press("u")
        await settled(pilot)
        assert draft.at("sampling", "method") == before, "all of the first visit"
