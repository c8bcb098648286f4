"""Export the live screen as SVG, from the real thing: `python scripts/screenshot.py docs/live.svg`.

With `--session NAME` it opens that session of the workspace. Without, it runs `demo` on the
simulated lab through the engine, as `workbench run demo --lab sim` does, and takes the picture in
mid-run once the configuration shown has a fit, a breakpoint and a point that is asked next.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path

from workbench.cli.context import settings, started_client
from workbench.domain.messages import RunCampaign, StopRun
from workbench.tui.app import WorkbenchApp
from workbench.tui.screens.live import LiveScreen

PATIENCE_S = 120.0
ENOUGH_SAMPLES = 30
"""Taken in the whole run before the picture: some configurations are done by then."""

WEB_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
"""A picture in our documents fetches nothing from elsewhere."""


def worth_a_picture(screen: LiveScreen, running: bool) -> bool:
    """Whether everything that the screen can show is on it."""
    if not screen.connected or not screen.live.view.configurations:
        return False
    if not running:
        return True
    selected = screen.live.selected(screen.choice)
    return bool(
        screen.live.view.samples_taken >= ENOUGH_SAMPLES
        and selected
        and selected.curve
        and selected.asked
        and len(selected.samples) >= 6
        and any(b.state == "found" for b in selected.breakpoints)
        and screen.live.usage
    )


async def take(session: str | None, size: tuple[int, int], keys: list[str]) -> str:
    command = None if session else RunCampaign("demo", lab="sim", seed=7, pace=20.0)
    app = WorkbenchApp(started_client, session=session, command=command)
    async with app.run_test(size=size) as pilot:
        async with asyncio.timeout(PATIENCE_S):
            while not (
                isinstance(app.screen, LiveScreen)
                and worth_a_picture(app.screen, running=command is not None)
            ):
                await pilot.pause(0.05)
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        screen.action_freeze()
        for key in keys:
            await pilot.press(key)
        screen.frozen, screen.live = None, screen.frozen or screen.live
        screen.draw()
        await pilot.pause()
        picture = WEB_FONTS.sub("", app.export_screenshot(title="workbench"))
        if command is not None:
            client = await app.client()
            await client.ask(StopRun(screen.session, abort=True))
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="where the SVG goes")
    parser.add_argument("--session", help="open this session instead of running demo")
    parser.add_argument("--workspace", type=Path, help="its folder")
    parser.add_argument("--size", default="100x30", help="columns x rows")
    parser.add_argument("--keys", default="", help="keys to press before, such as j,l")
    given = parser.parse_args()
    settings.workspace = given.workspace
    columns, rows = (int(part) for part in given.size.split("x"))
    keys = [key for key in given.keys.split(",") if key]
    given.out.write_text(asyncio.run(take(given.session, (columns, rows), keys)), encoding="utf-8")
    print(f"{given.out}: {columns}x{rows}")


if __name__ == "__main__":
    main()
