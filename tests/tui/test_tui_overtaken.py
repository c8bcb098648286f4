"""A draft that another person, or another screen, changes while it is open here."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign_keys import line_of, screen_of
from drafting import settled
from fake_link import toasts, until
from pricing_link import PricingClient, SlowClient, campaigning

from workbench.domain.drafts import (
    ChangeDraft,
    DiscardDraft,
    GetDraftRevision,
    ReadDraft,
    StartDraft,
)
from workbench.domain.errors import SessionError
from workbench.tui.screens import draft as draft_screen


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


async def test_what_was_before_is_not_written_over_what_somebody_else_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_screen, "REFRESH_S", 3600.0)
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        draft = pilot.app.draft
        draft.put(20, "sampling", "max_samples", what="Twenty")
        await settled(pilot)
        await by_another(client, 33)
        await draft.look()
        assert draft.at("sampling", "max_samples") == 33
        assert not pilot.app.undos, "of a text that is gone"
        draft.put(40, "sampling", "max_samples", what="Forty")
        await settled(pilot)
        await pilot.press("u")
        await settled(pilot)
        assert draft.at("sampling", "max_samples") == 33, "what comes after it is taken back"


async def test_nor_where_another_draft_is_open_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_screen, "REFRESH_S", 3600.0)
    client = PricingClient(tmp_path)
    async with campaigning(client) as pilot:
        draft = pilot.app.draft
        for samples in (20, 30, 40):
            draft.put(samples, "sampling", "max_samples", what=f"Choosing {samples}")
            await settled(pilot)
        await client.ask(StartDraft("other", "demo"))
        await draft.open("other")
        await pilot.press("u")
        await until(pilot, lambda: "Choosing 40 is taken back." in toasts(pilot.app), "back")
        await by_another(client, 33)
        await pilot.press("u")
        await until(pilot, lambda: "cannot be taken back" in toasts(pilot.app)[-1], "refused")
        await draft.open("mine")
        assert draft.at("sampling", "max_samples") == 33
        assert not pilot.app.undos


async def test_a_look_that_fails_closes_no_draft_and_one_that_finds_it_checks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_screen, "REFRESH_S", 3600.0)
    client = SlowClient(tmp_path)
    async with campaigning(client) as pilot:
        draft = pilot.app.draft
        client.broken = SessionError("cannot be written: Too many open files")
        await draft.look()
        assert draft.is_open
        client.broken = None
        client.asked.clear()
        await draft.look()
        assert [request for request in client.asked if isinstance(request, ReadDraft)] == []
        assert GetDraftRevision("mine") in client.asked
