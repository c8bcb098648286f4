"""The costs on the screen Campaign: whose they are, what they stand beside, what they warn of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from campaign_keys import choose, screen_of, shares, write
from fake_link import SESSION, redrawn, screen_text, until
from pricing_link import PricingClient, campaigning, priced
from snapshots import check

from workbench.domain.drafts import StartDraft
from workbench.domain.errors import UsageError
from workbench.domain.messages import RunCampaign
from workbench.domain.sessions import Plan, SamplerCost
from workbench.engine.runs import opening
from workbench.tui.memory import Memory
from workbench.tui.places import Files
from workbench.tui.run_terms import FIT, RunTerms
from workbench.tui.screens.campaign import cost_rows
from workbench.tui.screens.campaign.cost_rows import DraftCosts
from workbench.tui.screens.dialogs import ConfirmScreen
from workbench.tui.screens.draft import DraftScreen


async def test_a_line_is_typed_and_its_cost_follows(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        assert "8 configurations" in screen_text(pilot.app)
        await pilot.press("enter", "down", "end", "comma", "5", "0", "percent_sign", "enter")
        await priced(pilot)
        assert shares(pilot)[0] == ["12.5%", "25%", "50%"]
        text = screen_text(pilot.app)
        assert "9 configurations" in text
        assert "▸ blocks            90" in text, "the chosen sampler is marked"
        assert "uniform        ≤2700" in text
        assert screen_of(pilot).focused is not None, "enter goes on to the next line"
        await pilot.press("escape", "u")
        await priced(pilot)
        assert shares(pilot)[0] == ["12.5%", "25%"]
        assert "8 configurations" in screen_text(pilot.app)


async def test_costs_that_are_late_are_not_shown_for_what_has_changed(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        screen = screen_of(pilot)
        client.holds.clear()
        for samples in ("20", "30"):
            assert screen.form is not None
            before = len(client.plans())
            screen.form.edit("max_samples")
            await pilot.press("end", "backspace", "backspace", *samples, "enter")
            await until(pilot, lambda n=before: len(client.plans()) > n, "its cost is asked for")
        await redrawn(pilot)
        assert "computing" in screen_text(pilot.app)
        await check(pilot, "grid-busy", tmp_path)
        client.holds.set()
        await priced(pilot)
        text = screen_text(pilot.app)
        assert "≤ 240 samples" in text
        assert "computing…" not in text


async def test_a_mistake_that_is_taken_back_has_its_cost_again(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        client.holds.clear()
        before = len(client.plans())
        pilot.app.draft.put(20, "sampling", "max_samples", what="Twenty")
        await until(pilot, lambda: len(client.plans()) > before, "its cost is asked for")
        pilot.app.draft.put("many", "sampling", "max_samples", what="Many")
        await priced(pilot)
        client.holds.set()
        await pilot.press("u")
        await priced(pilot)
        assert "≤ 160 samples" in screen_text(pilot.app)


async def test_what_the_host_cannot_give_is_said_and_may_be_left_out(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        await write(pilot, "line-0", "25%, 300%")
        assert "! its functions need up to 4" in screen_text(pilot.app)
        assert not client.plans()[-1].fit
        await choose(pilot, "too_large", "leave it out")
        assert client.plans()[-1].fit
        await choose(pilot, "lab", "sim")
        assert "its functions need" not in screen_text(pilot.app)


async def test_a_budget_that_does_not_last_is_said(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        await write(pilot, "budget", "4 min")
        assert "! the budget of 4:00 pays for" in screen_text(pilot.app)
        assert client.plans()[-1].budget_s == 240.0


async def test_a_sampler_is_chosen_by_a_click_on_its_cost(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        lines = screen_text(pilot.app).splitlines()
        row = next(i for i, line in enumerate(lines) if "heuristic" in line)
        await pilot.click(offset=(lines[row].index("heuristic"), row))
        await priced(pilot)
        assert pilot.app.draft.at("sampling", "method") == "heuristic"
        assert "▸ heuristic" in screen_text(pilot.app)


async def test_a_plan_that_fails_is_a_sentence(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    client.plan_fails = UsageError("no recording is called x", remedy="Choose another lab")
    async with campaigning(client) as pilot:
        assert "! no recording is called x." in screen_text(pilot.app)


def test_figures_that_come_move_nothing() -> None:
    """While costs are computed every sampler keeps its line, and so does what is below them."""
    names = ("uniform", "blocks", "bisection")
    answers = (("blocks", 30.0), ("uniform", 90.0), ("bisection", 10.0))
    plan = Plan("mine", "sim", (), 80, 480.0, 900.0, ("a warning of this host",), ())
    costs = DraftCosts(plan=plan, order=names, busy=True)
    seen = []
    for name, lab_s in answers:
        costs = costs.told(SamplerCost(name, 8, lab_s, "played", chosen=name == "blocks"))
        seen.append(cost_rows.rows(costs, 50, 20))
    seen.append(cost_rows.rows(replace(costs, busy=False), 50, 20))
    for found in seen:
        lines = ["".join(text for text, _ in row) for row in found]
        assert [line.split()[0] for line in lines[5:8]] == list(names)
        assert lines[8] == "! a warning of this host"
    assert lines[7].endswith("least")


def test_an_error_stands_below_the_samplers_and_pushes_nothing_away() -> None:
    names = tuple(f"sampler-{number}" for number in range(11))
    said = "the engine cannot be reached: " + "a long sentence of the socket. " * 12
    costs = DraftCosts(order=names, trouble=said)
    found = ["".join(t for t, _ in row) for row in cost_rows.rows(costs, 33, 20)]
    assert found[0].startswith("Cost")
    assert [line.split()[0] for line in found[5:16]] == list(names)
    assert found[16].startswith("! the engine cannot be")
    assert len(found) <= 20
    assert found[-1].endswith("…")
    small = ["".join(t for t, _ in row) for row in cost_rows.rows(costs, 33, 14)]
    assert [line.split()[0] for line in small[5:11]] == list(names[:6])
    assert len(small) == 14


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_costs_of_targets_that_are_gone_are_drawn_as_what_they_are_of(
    size: tuple[int, int], tmp_path: Path
) -> None:
    """From nothing: a function, its costs, another function in its place, the costs again."""
    client = PricingClient(tmp_path)
    async with campaigning(client, size, template="") as pilot:
        await client.ask(StartDraft("mine"))
        await pilot.app.draft.open("mine")
        await pilot.press("2", "a", *"tinyproxy", "enter")
        await until(pilot, lambda: pilot.app.draft.targets, "a target")
        await pilot.press("3")
        await until(pilot, lambda: screen_of(pilot).costs.plan is not None, "its cost")
        client.holds.clear()
        await pilot.press("2", "a", *"haproxy", "enter")
        await until(pilot, lambda: "haproxy" in str(pilot.app.draft.targets), "another target")
        await pilot.press("3")
        await redrawn(pilot)
        text = screen_text(pilot.app)
        assert "computing" in text, "what is there is of the campaign before"
        assert screen_of(pilot).costs.old
        client.holds.set()
        await priced(pilot)
        assert "computing…" not in screen_text(pilot.app)


async def test_so_are_those_of_a_target_that_was_dropped(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        count = len(pilot.app.draft.targets)
        client.holds.clear()
        await pilot.press("2", "D")
        await until(pilot, lambda: len(pilot.app.draft.targets) == count - 1, "a target less")
        await pilot.press("3")
        await redrawn(pilot)
        assert "computing" in screen_text(pilot.app)
        assert screen_of(pilot).costs.old
        client.holds.set()
        await priced(pilot)
        assert "computing…" not in screen_text(pilot.app)


async def test_costs_of_another_draft_are_not_shown(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        assert "8 configurations" in screen_text(pilot.app)
        client.holds.clear()
        await client.ask(StartDraft("other", "demo-closed"))
        await pilot.app.draft.open("other")
        await redrawn(pilot)
        assert screen_of(pilot).costs.plan is None
        client.holds.set()


async def test_bare_numbers_are_shown_as_they_are_read_and_asked_about(tmp_path: Path) -> None:
    """`25, 50` are whole cores: a host of two cannot give them, and that is said before a run."""
    client = PricingClient(tmp_path)
    with patch.object(opening, "cores_here", lambda: 2.0):
        async with campaigning(client) as pilot:
            assert "can be run" in screen_text(pilot.app)
            await write(pilot, "line-0", "25, 50")
            text = " ".join(screen_text(pilot.app).split())
            assert "read as 25 and 50 whole cores" in text
            assert "needs more cores than this host has" in text
            assert "can be run" not in text
            await pilot.press("escape", "f5")
            await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
            assert "50 cores" in " ".join(screen_text(pilot.app).split())
            assert not any(isinstance(request, RunCampaign) for request in client.asked)


async def test_a_simulated_lab_needs_no_cores_of_this_host(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    with patch.object(opening, "cores_here", lambda: 2.0):
        async with campaigning(client) as pilot:
            await write(pilot, "line-0", "2, 3")
            assert "needs more cores than this host has" in screen_text(pilot.app)
            await choose(pilot, "lab", "sim")
            assert "can be run" in screen_text(pilot.app)
            await pilot.press("escape", "f5")
            await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
            assert "cores" not in pilot.app.screen.consequence
            await pilot.press("escape")
            await choose(pilot, "lab", "docker")
            assert "needs more cores than this host has" in screen_text(pilot.app)


async def test_what_is_asked_before_a_run_is_of_the_draft_as_it_is(tmp_path: Path) -> None:
    """Asked while the costs are computed: nothing of the draft before, then what is known."""
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        assert "8 configurations" in screen_text(pilot.app)
        await choose(pilot, "lab", "sim")
        screen = screen_of(pilot)
        assert screen.form is not None
        screen.form.edit("line-0")
        client.holds.clear()
        await pilot.press("end", "ctrl+u", "2", "5", "percent_sign", "enter", "escape")
        await until(pilot, lambda: screen.costs.old and screen.draft.settled, "another draft")
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
        question = pilot.app.screen
        assert isinstance(question, ConfirmScreen)
        assert question.question == "Run mine on the lab sim?"
        assert question.consequence.splitlines()[0] == "The cost is being computed …"
        client.holds.set()
        await until(pilot, lambda: "At most" in question.consequence, "what it costs")
        assert "8 configurations" not in question.consequence
        said = question.consequence.split(",")[0]
        await until(pilot, lambda: said in " ".join(screen_text(pilot.app).split()), "drawn")


async def test_the_lab_is_kept_with_the_draft_and_is_that_of_chain(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await choose(pilot, "lab", "sim")
    client = PricingClient(tmp_path)
    async with campaigning(client, template="") as pilot:  # the screens are opened again
        await until(pilot, lambda: pilot.app.draft.is_open, "the draft is gone on with")
        await pilot.press("2", "f5")
        await until(pilot, lambda: "of simulated" in screen_text(pilot.app), "its plan")
        assert "Run mine on the lab sim?" in screen_text(pilot.app)
        await pilot.press("y")
        await until(pilot, lambda: any(isinstance(r, RunCampaign) for r in client.asked), "it runs")
        assert [r.lab for r in client.asked if isinstance(r, RunCampaign)] == ["sim"]


async def test_seed_and_session_are_kept_with_their_draft(tmp_path: Path) -> None:
    files = Files(memory=tmp_path / "memory.json")
    client = PricingClient(tmp_path)
    async with campaigning(client, files=files) as pilot:
        await write(pilot, "seed", "7")
        draft = pilot.app.draft
        draft.terms = draft.terms.with_("session", "monday")
        await client.ask(StartDraft("other", "demo"))
        await draft.open("other")
        assert draft.terms == RunTerms(), "those of another draft"
        await draft.open("mine")
        assert (draft.terms.seed, draft.terms.session) == ("7", "monday")
        await draft.discard()
        assert draft.terms == RunTerms()
        await draft.start("mine", "demo")
        assert draft.terms == RunTerms(), "of the draft that is gone"
        draft.terms = RunTerms("9", FIT, "tuesday")
    async with campaigning(PricingClient(tmp_path), template="", files=files) as pilot:
        await until(pilot, lambda: pilot.app.draft.is_open, "the draft is gone on with")
        assert pilot.app.draft.terms == RunTerms("9", FIT, "tuesday")
        await until(pilot, lambda: screen_of(pilot).form.made, "the form")
        assert screen_of(pilot).form.field("seed").value == "9"


def test_terms_that_nobody_can_read_are_the_usual_ones() -> None:
    assert RunTerms.remembered({"seed": "2", "too_large": "explode", "x": "y"}) == RunTerms("2")
    memory = Memory()
    for number in range(120):
        memory.keep_terms(f"/w/{number}", RunTerms(str(number + 2)).changed)
    assert memory.terms("/w/119") == {"seed": "121"}
    assert memory.terms("/w/0") == {}, "of the drafts that were changed last"


async def test_a_chain_is_drawn_whole_once_it_has_its_room(tmp_path: Path) -> None:
    """A screen of a draft is made anew after a session was opened; its first drawing comes before
    its layout, and the engine's answer, which draws again, may come before that, too."""
    async with campaigning(PricingClient(tmp_path), (80, 24)) as pilot:
        pilot.app.open_session(SESSION)
        await redrawn(pilot)
        with patch.object(DraftScreen, "look", lambda self: None):
            await pilot.press("2")
            await pilot.pause()
        await until(pilot, lambda: "│ haproxy │" in screen_text(pilot.app), "its boxes")
        assert screen_text(pilot.app).count("▎") > 1, "and more than a line of its text"


def test_the_headline_is_what_the_chosen_sampler_comes_to() -> None:
    plan = Plan("mine", "sim", (), 80, 480.0, 900.0)
    costs = DraftCosts(plan=plan, order=("blocks", "pooled"), busy=True)

    def headline(costs: DraftCosts) -> list[str]:
        found = cost_rows.rows(costs, 50, 20, method="pooled")
        return ["".join(text for text, _ in row) for row in found]

    assert headline(costs)[1:3] == ["0 configurations, ≤ 80 samples", "about 8:00 on sim, ≤ 15:00"]
    costs = costs.told(SamplerCost("blocks", 60, 300.0, "played"))
    assert "about 8:00" in headline(costs)[2], "of another sampler"
    costs = costs.told(SamplerCost("pooled", 40, 240.0, "scaled", chosen=True))
    lines = headline(costs)
    assert lines[1:3] == ["0 configurations, ≈40 of ≤ 80 samples", "about 4:00 on sim, ≤ 15:00"]
    assert next(line for line in lines if line.startswith("▸")).split()[1:] == [
        "pooled", "≈40", "4:00",
    ]  # fmt: skip
