"""The screen Campaign: settings of a draft by keys, their mistakes, what they cost, the start."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaign_keys import choose, screen_of, shares, write
from fake_link import flashed, opened, redrawn, screen_text, toasts, until
from pricing_link import PricingClient, campaigning, priced
from snapshots import check
from textual.screen import ModalScreen

from workbench.descriptors.drafts import beginning
from workbench.domain.drafts import DiscardDraft, StartDraft
from workbench.domain.events import SessionCreated
from workbench.domain.messages import ListCampaigns, Request, RunCampaign
from workbench.domain.sessions import DescriptorText
from workbench.tui.screens.campaign import campaign_screen
from workbench.tui.screens.campaign.campaign_screen import CampaignScreen
from workbench.tui.screens.dialogs import ConfirmScreen
from workbench.tui.screens.live.live import LiveScreen
from workbench.tui.widgets.field import Cycle


async def test_without_a_draft_it_says_which_key_starts_one(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path), template="") as pilot:
        await until(pilot, lambda: "from a template" in screen_text(pilot.app), "keys are named")
        assert "Press n to start one" in screen_text(pilot.app)
        await pilot.press("enter")
        assert screen_of(pilot).form is None
        await check(pilot, "grid-empty", tmp_path)


async def test_what_is_typed_counts_without_enter_once_typing_stops(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        screen = screen_of(pilot)
        assert screen.form is not None
        screen.form.edit("max_samples")
        await pilot.press("end", "0")
        await until(
            pilot, lambda: pilot.app.draft.at("sampling", "max_samples") == 100, "it is written"
        )
        assert screen.form.field("max_samples").entry.has_focus, "nothing was taken away"


async def test_what_was_typed_goes_where_it_was_typed_though_the_line_is_another_s_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_screen, "TYPING_S", 60.0)
    async with campaigning(PricingClient(tmp_path)) as pilot:
        screen, draft = screen_of(pilot), pilot.app.draft
        assert screen.form is not None

        def shares_of(number: int) -> list[Any]:
            parameters = draft.targets[number]["resource_parameters"]
            return [parameter["values"] for parameter in parameters]

        first, second = shares_of(0), shares_of(1)
        screen.form.edit("line-0")
        await pilot.press("end", *", 50%")
        draft.target = 1  # as by a key on another screen, or a click
        screen.draw()
        screen.write_typed()
        assert shares_of(0) == [[*first[0], "50%"]]
        assert shares_of(1) == second


async def test_what_was_typed_is_not_written_into_another_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_screen, "TYPING_S", 60.0)
    async with campaigning(PricingClient(tmp_path)) as pilot:
        screen, draft = screen_of(pilot), pilot.app.draft
        assert screen.form is not None
        screen.form.edit("max_samples")
        await pilot.press("end", "0")
        await draft.start("other", "demo")
        before = dict(draft.document)
        screen.write_typed()
        assert draft.name == "other"
        assert draft.document == before
        assert any("was not written: the draft was closed" in said for said in toasts(pilot.app))


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_cursor_default_and_unit_are_seen_before_anything_is_typed(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with campaigning(PricingClient(tmp_path), size) as pilot:
        form = screen_of(pilot).form
        assert form is not None
        text = await redrawn(pilot)
        assert "›target " in text, "the cursor"
        assert re.search(r"haproxy +12.5%, 25% +vCPU", text), "what the share is of"
        assert re.search(r"budget +\(none; e.g. 8h\) +clock time", text), (
            "an empty line in brackets"
        )
        assert re.search(r"repetitions +.* per load", text)
        await pilot.press("down", "j")
        assert form.here.label == "load"
        text = await redrawn(pilot)
        assert "›load " in text
        assert "›target " not in text
        assert not form.editing, "the cursor takes no keys"
        await pilot.press("enter")
        assert form.field("load").entry.has_focus, "enter writes where the cursor is"
        await pilot.press("down", "escape")
        assert form.here.name == "range", "it stays where it was left"
        await pilot.press(*["up"] * 9)
        assert form.here.name == "target"
        shown = "".join(str(widget.render()) for widget in form.query(".more"))
        assert shown.startswith("h shows ")
        await pilot.press("h")
        await redrawn(pilot)
        shown = "".join(str(widget.render()) for widget in form.query(".more"))
        assert shown.startswith("h hides ")


async def test_keys_belong_to_the_line_that_is_typed(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "sla", "qRuDn:1")
        assert screen_of(pilot).form is not None
        assert pilot.app.draft.at("sla") == "qRuDn:1"
        assert "⏎ Next  f5 Mistake  ↓ ↑ Field" in screen_text(pilot.app)
        await pilot.press("escape", "1")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, CampaignScreen), "the screen's after escape"


async def test_a_mistake_stands_below_its_line_and_there_is_no_cost(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "line-0", "12.5%, 25x")
        await redrawn(pilot)
        text = screen_text(pilot.app)
        assert "! is '25x'" in text
        assert "unknown until a mistake is fixed" in text
        assert "run_draft" not in {a.method for a in screen_of(pilot).offered()}
        await pilot.press("escape", "enter")
        screen = screen_of(pilot)
        assert screen.form is not None
        assert screen.form.field("line-0").entry.has_focus, "editing begins where it is wrong"
        await check(pilot, "grid-mistake", tmp_path)


async def test_mistakes_that_no_line_shows_stand_beside_them(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        pilot.app.draft.put({"x": 1}, "agent", what="Breaking it")
        await priced(pilot)
        await redrawn(pilot)
        assert "! agent: is not known here" in screen_text(pilot.app)


async def test_every_target_is_set_at_once(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await choose(pilot, "target", "every target")
        screen = screen_of(pilot)
        assert screen.form is not None
        line = screen.form.field("line-0")
        assert (line.label, line.value) == ("haproxy", "")
        assert "differs: 12.5%, 25% | 25%" in screen_text(pilot.app)
        await write(pilot, "line-0", "100%")
        assert shares(pilot) == [
            ["100%"], ["25%", "50%"], ["100%"], ["25%", "50%"], ["25%"], ["100%"],
        ]  # fmt: skip
        assert line.value == "100%"
        await pilot.press("escape", "tab")
        await pilot.pause()
        assert screen.form.field("target").value == "1 haproxy"
        await pilot.press("tab")
        await redrawn(pilot)
        assert [f.label for f in screen.form.fields if f.display][1] == "tinyproxy"
        assert pilot.app.draft.target == 1


async def test_another_load_has_other_lines_and_a_range_of_its_own(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        screen = screen_of(pilot)
        assert screen.form is not None
        assert not screen.form.field("think_time").display
        await choose(pilot, "load", "closed")
        document = pilot.app.draft.document
        assert document["load"] == {"kind": "closed"}
        assert document["primary_workload_parameter"] == {
            "name": "concurrent", "range": [1, 200], "scale": "log",
        }  # fmt: skip
        assert screen.form.field("range").label == "concurrent"
        assert screen.form.field("sla").mistake, "its rate means nothing any more"
        await write(pilot, "sla", "p95<=100ms @ concurrent=40, filesize=10kB")
        await write(pilot, "think_time", "100 ms")
        await write(pilot, "range", "2 to 50")
        assert pilot.app.draft.campaign is not None
        assert pilot.app.draft.campaign.load.key == "closed-think-0.1s"
        assert pilot.app.draft.campaign.targets[0].primary.high == 50


async def test_flavors_are_written_and_named_in_the_lines_of_functions(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await pilot.press("h")
        await redrawn(pilot)
        await write(pilot, "flavors", "small=25% 64MiB, big=1 128MiB")
        await write(pilot, "line-0", "small, big")
        campaign = pilot.app.draft.campaign
        assert campaign is not None
        (parameter,) = campaign.targets[0].resources
        assert parameter.key == "haproxy.flavor"
        assert parameter.flavors["big"] == {"vcpu": 1.0, "memory_bytes": 2**27}
        screen = screen_of(pilot)
        assert screen.form is not None
        assert screen.form.field("flavors").value == "small=25% 64MiB, big=1 128MiB"


async def test_it_runs_after_a_question_and_goes_to_live(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        await choose(pilot, "lab", "sim")
        await write(pilot, "seed", "7")
        await pilot.press("escape", "f5")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ConfirmScreen)
        await until(pilot, lambda: "At most 80" in screen_text(pilot.app), "what it takes")
        text = screen_text(pilot.app)
        assert "Run mine on the lab sim?" in text
        assert "At most 80 samples of 8 configurations, about 8.0 min of simulated" in text
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, LiveScreen), "live is shown")
        await until(pilot, lambda: any(isinstance(r, RunCampaign) for r in client.asked), "it runs")
        command = next(r for r in client.asked if isinstance(r, RunCampaign))
        assert (command.campaign, command.lab, command.seed) == ("draft:mine", "sim", 7)
        assert not command.fit
        assert not command.oversubscribe
        await pilot.press("3")
        await until(pilot, lambda: isinstance(pilot.app.screen, CampaignScreen), "and back")
        assert screen_of(pilot).terms.seed == "7", "what it ran on is kept"


async def test_a_seed_that_is_no_number_is_refused_at_its_line(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "seed", "abc")
        screen = screen_of(pilot)
        assert screen.form is not None
        assert "whole number" in screen.form.field("seed").mistake
        assert "run_draft" not in {a.method for a in screen.offered()}


async def test_a_draft_that_is_gone_leaves_the_empty_state(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        await pilot.press("Z")
        await until(pilot, lambda: not pilot.app.draft.is_open, "it is discarded")
        await redrawn(pilot)
        assert "No draft is open." in screen_text(pilot.app)
        assert any(isinstance(r, DiscardDraft) for r in client.asked)
        await pilot.press("u")
        await until(pilot, lambda: pilot.app.draft.is_open, "it is back")
        await priced(pilot)
        assert "12.5%, 25%" in screen_text(pilot.app)


async def test_more_functions_than_lines_get_a_new_form(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        screen, before = screen_of(pilot), screen_of(pilot).form
        assert before is not None
        parts = [{"vnf": "haproxy", "name": f"ha-{n}"} for n in range(before.lines)]
        pilot.app.draft.edit("Adding many", lambda d: d["targets"][0].update(series=parts))
        pilot.app.draft.edit("Adding many", lambda d: d["targets"][0].pop("vnf"))
        await until(pilot, lambda: screen.form is not before, "a new form")
        await until(pilot, lambda: screen.form is not None and screen.form.made, "it is made")
        await redrawn(pilot)
        assert "ha-0" in screen_text(pilot.app)
        assert not before.is_attached


@pytest.mark.parametrize("size", [(80, 24), (160, 50), (60, 18)])
async def test_it_looks_as_it_did(size: tuple[int, int], tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path), size) as pilot:
        await check(pilot, "grid-priced", tmp_path)


async def test_it_looks_as_it_did_without_colours(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path), theme="mono") as pilot:
        await pilot.press("h", "enter", "down")
        await check(pilot, "grid-all-settings", tmp_path)


async def test_the_screen_is_found_by_its_key_alone(tmp_path: Path) -> None:
    async with opened(PricingClient(tmp_path)) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: isinstance(pilot.app.screen, CampaignScreen), "screen 3")


async def test_keys_that_come_faster_than_drawings_find_their_lines(tmp_path: Path) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await pilot.press("enter", "up", "up", "up", "right", "right", "down", "down", "9")
        await priced(pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.draft.at("lab") == "sim"
        assert screen_of(pilot).terms.seed == "19"


async def test_what_was_entered_outlasts_a_drawing_that_comes_before_it_is_heard(
    tmp_path: Path,
) -> None:
    async with campaigning(PricingClient(tmp_path)) as pilot:
        screen = screen_of(pilot)
        assert screen.form is not None
        lab, samples = screen.form.field("lab").entry, screen.form.field("max_samples").entry
        assert isinstance(lab, Cycle)
        before = lab.value
        lab.choose("sim")
        samples.value = "77"
        screen.draw()  # an answer of the engine, before the message of the key arrives
        await until(pilot, lambda: pilot.app.draft.lab == "sim", f"{before} became sim")
        await until(pilot, lambda: pilot.app.draft.at("sampling", "max_samples") == 77, "written")
        screen.draft.put("docker", "lab", what="Choosing docker")
        await until(pilot, lambda: lab.value == "docker", "what others write is shown again")


async def test_the_campaign_of_a_session_becomes_a_draft(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    created = client.events[0].fact
    assert isinstance(created, SessionCreated)
    texts = (DescriptorText("campaigns/demo.yaml", beginning("demo", client.workspace)),)
    client.events[0] = replace(client.events[0], fact=replace(created, descriptors=texts))
    async with opened(client) as pilot:
        await pilot.press("1")
        await until(pilot, lambda: "demo-1" in screen_text(pilot.app), "the list")
        await pilot.press("N")
        await until(pilot, lambda: isinstance(pilot.app.screen, CampaignScreen), "screen 3")
        draft = pilot.app.draft
        assert (draft.name, draft.at("kpi_max")) == ("demo-1", "1000 ms")
        assert (draft.at("lab"), draft.terms.seed) == ("sim", "7"), "as the session had them"
        draft.put("50 ms", "kpi_max", what="Changing it")
        draft.put("docker", "lab", what="Choosing another")
        draft.terms = draft.terms.with_("seed", "12")
        await until(pilot, lambda: draft.settled, "settled")
        await pilot.press("1", "N")
        said = "was there already: it is as you left it, its own seed 12."
        await until(pilot, lambda: any(said in told for told in toasts(pilot.app)), "said")
        await until(pilot, lambda: draft.name == "demo-1", "open")
        assert draft.at("kpi_max") == "50 ms", "what was changed is not lost"
        assert (draft.at("lab"), draft.terms.seed) == ("docker", "12"), "nor seed and lab"


async def test_a_long_line_shows_its_beginning_until_it_is_typed_into(tmp_path: Path) -> None:
    def line(shown: str) -> str:
        return next(row for row in shown.splitlines() if row.strip(" ›").startswith("SLA"))

    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "sla", "p95<=200ms @ rate=300/s, and so on to the very end")
        await pilot.press("escape")
        shown = line(await redrawn(pilot))
        assert "p95<=200ms" in shown
        assert "very end" not in shown
        form = screen_of(pilot).form
        assert form is not None
        form.edit("sla")
        shown = line(await redrawn(pilot))
        assert "very end" in shown
        assert "p95<=200ms" not in shown


async def test_a_hint_that_its_line_cuts_stands_whole_below_it(tmp_path: Path) -> None:
    """At 80 columns the example of an SLA does not fit beside its label."""
    async with campaigning(PricingClient(tmp_path)) as pilot:
        await write(pilot, "sla", "")
        assert "@ rate=300/s)" not in screen_text(pilot.app)
        screen = screen_of(pilot)
        assert screen.form is not None
        screen.form.edit("sla")
        await until(pilot, lambda: "@ rate=300/s)" in screen_text(pilot.app), "all of the hint")
        await pilot.press("p")
        await until(pilot, lambda: "@ rate=300/s)" not in screen_text(pilot.app), "no hint")


async def test_a_share_that_is_left_out_is_named(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client, (160, 50), template="") as pilot:
        await client.ask(StartDraft("mine"))
        await pilot.app.draft.open("mine")
        await pilot.press("2", "a", *"tinyproxy", "enter")
        await until(pilot, lambda: pilot.app.draft.targets, "a target")
        await pilot.press("3")
        said = "(its template's 25%; e.g. 25%, 50%)"
        await until(pilot, lambda: said in screen_text(pilot.app), "what it is then")


class LateClient(PricingClient):
    """Templates are listed when they are asked to be."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lists = asyncio.Event()

    async def ask(self, request: Request) -> Any:
        if isinstance(request, ListCampaigns):
            await self.lists.wait()
        return await super().ask(request)


@pytest.mark.parametrize(("then", "dialogs"), [("n", 1), ("ctrl+s", 1), ("2", 0)])
async def test_a_dialog_that_comes_late_lies_over_no_other(
    then: str, dialogs: int, tmp_path: Path
) -> None:
    """Pressed while the engine is busy: twice, before another dialog, before another screen."""
    client = LateClient(tmp_path)
    async with campaigning(client) as pilot:
        await pilot.press("n", then)
        await pilot.pause()
        if then == "n":
            await until(pilot, lambda: flashed(pilot.app).startswith("The engine looks"), "a word")
        client.lists.set()
        await until(pilot, lambda: client.asked, "the list")
        await redrawn(pilot)
        await pilot.pause()
        assert sum(isinstance(s, ModalScreen) for s in pilot.app.screen_stack) == dialogs


async def test_a_chain_without_its_functions_alone_is_told_before_it_runs(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    async with campaigning(client, template="") as pilot:
        await client.ask(StartDraft("mine"))
        await pilot.app.draft.open("mine")
        for keys in (("2", "a", *"tinyproxy"), ("a", *"haproxy"), ("A", *"haproxy")):
            before = pilot.app.draft.text
            await pilot.press(*keys, "enter")
            await until(pilot, lambda old=before: pilot.app.draft.text != old, "one more")
        await pilot.press("3")
        await until(pilot, lambda: pilot.app.draft.settled, "it is checked")
        campaign = pilot.app.draft.campaign
        assert campaign is not None
        assert campaign.unprofiled == {"tinyproxy-haproxy": ("tinyproxy",)}
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "it asks")
        question = pilot.app.screen
        assert isinstance(question, ConfirmScreen)
        said = "No prediction to compare the chain with: tinyproxy must be a target too. A on Chain"
        assert said in question.consequence
        assert "No prediction to compare" in screen_text(pilot.app)
