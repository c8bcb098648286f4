"""Every screen in its states, as it was looked at: two sizes, and small, without colour, safe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fake_link import (
    SESSION,
    FakeClient,
    modelled,
    opened,
    progress_tick,
    redrawn,
    screen_text,
    story,
    until,
    usage_tick,
    written,
)
from snapshots import check
from textual.pilot import Pilot

from workbench.domain.errors import EngineError
from workbench.tui.app import WorkbenchApp

SIZES = [(80, 24), (160, 50)]
LARGE_AND_SMALL = [*((size, "dark") for size in SIZES), ((60, 18), "dark"),
                   ((80, 24), "mono"), ((80, 24), "safe"), ((80, 24), "ansi"),
                   ((80, 24), "light")]  # fmt: skip


@asynccontextmanager
async def listed(client: FakeClient, size: tuple[int, int], shown: str) -> AsyncIterator[Pilot]:
    async def connect() -> FakeClient:
        return client

    app = WorkbenchApp(connect, theme="dark")
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: shown in screen_text(app), shown)
        yield pilot


@pytest.mark.parametrize("size", SIZES)
async def test_sessions(size: tuple[int, int], tmp_path: Path) -> None:
    client = FakeClient()
    client.status = replace(client.status, running=SESSION, queued=("night",))
    async with listed(client, size, "measuring") as pilot:
        await pilot.press("down")
        await check(pilot, "sessions-list", tmp_path)
        await pilot.press("slash", *"zzz")
        await until(pilot, lambda: "No session has" in screen_text(pilot.app), "none")
        await check(pilot, "sessions-none-match", tmp_path)
        await pilot.press("escape", "T")
        await check(pilot, "sessions-tour", tmp_path)
        await pilot.press("e")
        await check(pilot, "sessions-rename", tmp_path)
    async with listed(FakeClient(sessions=False), size, "No sessions") as pilot:
        await check(pilot, "sessions-empty", tmp_path)
    client.refuses = EngineError("no engine answered")
    async with listed(client, size, "No engine") as pilot:
        await check(pilot, "sessions-no-engine", tmp_path)


@pytest.mark.parametrize(("size", "theme"), LARGE_AND_SMALL)
async def test_live(size: tuple[int, int], theme: str, tmp_path: Path) -> None:
    client = FakeClient()
    client.tick(usage_tick(tinyproxy=0.93, source=0.4, host=0.6))
    client.tick(progress_tick())
    async with opened(client, size, theme=theme) as pilot:
        await check(pilot, "live-measuring", tmp_path)
        if theme != "dark":
            return
        await pilot.press("f")
        await check(pilot, "live-frozen", tmp_path)
        await pilot.press("f", "ctrl+o")
        await check(pilot, "live-jump", tmp_path)
        await pilot.press("escape")
        client.die()
        await until(pilot, lambda: "engine gone" in screen_text(pilot.app), "the banner")
        await check(pilot, "live-engine-gone", tmp_path)
    if size not in SIZES:
        return
    async with opened(FakeClient(story()[:2]), size) as pilot:
        await check(pilot, "live-planned", tmp_path)
    async with opened(FakeClient(story(finished=True)), size) as pilot:
        await pilot.press("question_mark")
        await check(pilot, "live-help", tmp_path)
        await pilot.press("escape")
        await check(pilot, "live-finished", tmp_path)


@pytest.mark.parametrize("size", SIZES)
async def test_events_and_models(size: tuple[int, int], tmp_path: Path) -> None:
    async with opened(FakeClient(story(finished=True)), size, screen="events") as pilot:
        await check(pilot, "events-following", tmp_path)
        await pilot.press("h")
        await check(pilot, "events-warnings", tmp_path)
        await pilot.press("slash", *"nothing")
        await check(pilot, "events-none-match", tmp_path)
        await pilot.press("escape", "6")
        await check(pilot, "models-empty", tmp_path)
    client = FakeClient()
    client.tell(*written())
    async with opened(client, size, screen="events") as pilot:
        await check(pilot, "events-logs-between", tmp_path)
        await pilot.press("v", "v")
        await check(pilot, "events-logs", tmp_path)
    client = FakeClient(story(finished=True))
    client.tell(*modelled())
    async with opened(client, size, screen="models") as pilot:
        await until(pilot, lambda: "neighbours" in screen_text(pilot.app), "the scores")
        await redrawn(pilot)
        await check(pilot, "models-scored", tmp_path)
