"""Export screens as SVG, from the real thing: `python scripts/screenshot.py docs/live.svg`.

With `--session NAME` it opens that session of the workspace, which is what `workbench show NAME
--export-svg FILE` does, too. Without, it runs `demo` on the simulated lab through the engine, as
`workbench run demo --lab sim` does, and takes the picture in mid-run once the configuration shown
has a fit, a breakpoint and a point that is asked next.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from workbench.cli.context import settings, started_client
from workbench.domain.messages import RunCampaign, StopRun
from workbench.tui import headless
from workbench.tui.app import WorkbenchApp
from workbench.tui.plots import picture
from workbench.tui.watch import Watch

PATIENCE_S = 120.0
ENOUGH_SAMPLES = 30
"""Taken in the whole run before the picture: some configurations are done by then."""


def worth_a_picture(watch: Watch) -> bool:
    """Whether everything that the screen can show is on it."""
    if not watch.connected or not watch.live.view.configurations:
        return False
    selected = watch.live.selected(watch.choice)
    return bool(
        watch.live.view.samples_taken >= ENOUGH_SAMPLES
        and selected
        and selected.curve
        and selected.asked
        and len(selected.samples) >= 6
        and any(b.state == "found" for b in selected.breakpoints)
        and watch.live.usage
    )


async def take_in_mid_run(size: tuple[int, int], theme: str, keys: list[str]) -> str:
    command = RunCampaign("demo", lab="sim", seed=7, pace=20.0)
    app = WorkbenchApp(started_client, command=command, theme=theme)
    async with app.run_test(size=size) as pilot:
        watch = app.opened
        async with asyncio.timeout(PATIENCE_S):
            while not worth_a_picture(watch):
                await pilot.pause(0.05)
        watch.freeze()
        for key in keys:
            await pilot.press(key)
        watch.frozen, watch.live = None, watch.frozen or watch.live
        app.redraw()
        await pilot.pause()
        taken = picture.of_screen(app, "workbench")
        await (await app.client()).ask(StopRun(watch.session, abort=True))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="where the SVG goes")
    parser.add_argument("--session", help="open this session instead of running demo")
    parser.add_argument("--workspace", type=Path, help="its folder")
    parser.add_argument("--screen", default="live", help="which screen of the session")
    parser.add_argument("--theme", default="dark")
    parser.add_argument("--size", default="100x30", help="columns x rows")
    parser.add_argument("--keys", default="", help="keys to press before, such as j,l")
    given = parser.parse_args()
    settings.workspace = given.workspace
    columns, rows = (int(part) for part in given.size.split("x"))
    keys = [key for key in given.keys.split(",") if key]
    taken = asyncio.run(
        headless.svg_of(
            started_client,
            given.session,
            screen=given.screen,
            size=(columns, rows),
            theme=given.theme,
            keys=keys,
        )
        if given.session
        else take_in_mid_run((columns, rows), given.theme, keys)
    )
    given.out.write_text(taken, encoding="utf-8")
    print(f"{given.out}: {columns}x{rows}")


if __name__ == "__main__":
    main()
