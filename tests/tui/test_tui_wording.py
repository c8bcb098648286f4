"""Remedies at a screen name its fields and keys, where commands have options."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from driving import REPOSITORY
from fake_link import FakeClient, screen_text, until
from pricing_link import PricingClient, campaigning

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import PROFILE_FARTHER, UsageError
from workbench.domain.messages import EngineStatus, PlanCampaign, Planned
from workbench.paths import Workspace
from workbench.tui import present, text
from workbench.tui.commands import keymap
from workbench.tui.remedies import ON_SCREENS, RemedyClient, on_screen
from workbench.tui.widgets.waiting import Busy


def key(id: str) -> str:
    """As in the registry, where nothing is bound anew."""
    return next(a.first_key for a in keymap.load(None).actions if a.id == id)


@pytest.mark.parametrize(
    ("remedy", "said"),
    [
        (
            "Lower them, or oversubscribe the host (--oversubscribe)",
            "Lower them, or oversubscribe the host (host too small, on Campaign: 3)",
        ),
        ("Use the simulated lab (--lab sim)", "Use the simulated lab (lab, on Campaign: 3)"),
        ("Measure it (workbench canary s --chain c)", "Measure it (n on Canary: 7)"),
        ("Resume it (workbench resume s)", "Resume it (r on Sessions: 1)"),
        ("Name one (--profiles)", "Name one (on the command line: --profiles)"),
        ("Name one (a, b)", "Name one (a, b)"),
    ],
)
def test_brackets_name_what_a_screen_has(remedy: str, said: str) -> None:
    assert on_screen(remedy, key) == said
    assert on_screen(said, key) == said


def test_what_a_screen_has_is_what_some_remedy_names() -> None:
    sources = [path.read_text("utf-8") for path in (REPOSITORY / "workbench").rglob("*.py")]
    for named in ON_SCREENS:
        assert any(re.search(rf"\({re.escape(named)}\b", source) for source in sources), named


async def test_a_refusal_says_at_which_line_it_can_be_mended(tmp_path: Path) -> None:
    client = PricingClient(tmp_path)
    client.plan_fails = UsageError("too large", remedy="Oversubscribe it (--oversubscribe)")
    async with campaigning(client) as pilot:
        await until(pilot, lambda: "too large" in screen_text(pilot.app), "the refusal")
        words = " ".join(screen_text(pilot.app).split())
        assert "--oversubscribe" not in words
        assert "host too small" in words


async def test_so_does_the_warning_of_a_plan() -> None:
    client = FakeClient()
    client.warning = "this host has 2. Lower them, or oversubscribe the host (--oversubscribe)"
    worded = RemedyClient(client, key)
    reply = await worded.ask(PlanCampaign("demo"))
    assert isinstance(reply, Planned)
    assert reply.plan.warnings[0].endswith(
        "oversubscribe the host (host too small, on Campaign: 3)"
    )


def test_a_load_outside_of_the_profile_names_the_key_that_begins_the_next_one() -> None:
    told = on_screen(PROFILE_FARTHER, key)
    assert "over a wider range, and not with the sampler breakpoints" in told
    assert told.endswith(f"({key('session.draft')} on Sessions makes the draft: 1)")


@pytest.mark.parametrize(
    ("lab", "known", "said"),
    [
        ("sim", "chosen", "simulated lab (chosen): figures"),
        ("sim:host_cores=16", "chosen", "simulated lab (chosen): figures"),
        ("sim", "stands in", "simulated lab (Docker could not be used): figures"),
        ("sim", "", "simulated lab (chosen, or no Docker engine): figures"),
        ("docker", "", ""),
    ],
)
def test_whose_figures_these_are_and_why(lab: str, known: str, said: str) -> None:
    view = FakeClient().view()
    assert view.host is not None
    view.lab, view.host = lab, replace(view.host, details={"why_this_lab": known})
    assert present.notice(view, 80).startswith(said)
    assert present.notice(view, 80).endswith("figures are not of your host") is bool(said)
    assert len(present.notice(view, 60)) < 60


def test_what_is_waited_for_says_how_long_first_and_which_key_ends_it() -> None:
    busy = Busy.of("recommending", measures=False)
    busy.hear(
        EngineStatus(
            "", "", 1, 0.0, "", (), 0, scoring="chain: judging", scoring_s=4.0, scoring_eta_s=12.0
        )
    )
    said = busy.ended_by("esc")
    assert said == "recommending (0 s, about 12 s to go, esc cancels): chain: judging"


def test_percentages_of_stored_sentences_have_the_gap_of_the_screens() -> None:
    assert text.sentence("it carries 10% more, +5% of 30 %") == "it carries 10 % more, +5 % of 30 %"


def test_a_configuration_is_called_by_its_workload_as_it_is_typed() -> None:
    told = load_campaign("bursts", workspace=Workspace(Path("/nowhere"))).campaign
    (plan,) = told.targets
    first = told.configurations(plan)[0]
    assert text.configuration_name(told, "tinyproxy", first) == "tinyproxy 25 % duty=10%"
