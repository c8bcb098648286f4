"""Take the pictures of docs/screens.md and README.md: `python scripts/screenshot.py [NAME ...]`.

Each is a screen of a recording that ships with the workbench, reached by keys, and is taken once
it shows what it is there for; where it does not come to that, nothing is written. A picture of any
session is had more simply: `workbench show NAME --export-svg FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import re
import tempfile
from pathlib import Path

from textual.pilot import Pilot

from workbench.cli.context import settings, started_client
from workbench.domain.messages import StopEngine
from workbench.tui import headless
from workbench.tui.app import WorkbenchApp
from workbench.tui.plots import picture

IMAGES = Path(__file__).parents[1] / "docs" / "images"
RECORDING = "chain-real"
PATIENCE_S = 120.0

Step = tuple[str, str]
"""Keys with blanks between them, and what the screen says then."""
CHOSEN: tuple[Step, ...] = (("", "{recording}"), ("slash {recording} enter", "{recording}"))
OPENED: tuple[Step, ...] = (*CHOSEN, ("enter", "valid"))

PICTURES: dict[str, tuple[Step, ...]] = {
    "sessions": (("", "{recording}"),),
    "chain": (*CHOSEN, ("N", "can be run"), ("2 j j j f8", "can be run")),
    "campaign": (*CHOSEN, ("N", "can be run"), ("", "bisection")),
    "live": (*OPENED, ("j", "breakpoints")),
    "overview": (*OPENED, ("V", "8 configurations")),
    "compare": (*OPENED, ("5 tab", "measured")),
    "models": (*OPENED, ("6", "cross-validated")),
    "canary": (*OPENED, ("7", "accepted")),
    "recommend": (*OPENED, ("8", "the lab confirms it")),
    "events": (*OPENED, ("9", "holds on the lab")),
    "why": (*OPENED, ("0", "Delayed acknowledgements")),
    "hosts": (*OPENED, ("ctrl+n", "one host")),
    "watch": (*OPENED, ("ctrl+l", "No running function")),
    "replay": (*CHOSEN, ("R", "REPLAY"), ("p ctrl+g", "Go to"), ("4 0 percent_sign enter", "held")),
}
"""From the list of sessions on."""


async def take(name: str, recording: str, size: tuple[int, int], theme: str) -> str:
    """A screen as SVG. Raises `SystemExit` with what it shows instead of what it should."""
    app = WorkbenchApp(started_client, theme=theme)
    async with app.run_test(size=size) as pilot:
        for keys, shown in PICTURES[name]:
            for key in keys.replace("{recording}", " ".join(recording)).split():
                await pilot.press(key)
            await until(pilot, app, shown.replace("{recording}", recording))
        await headless.computed(pilot, app)
        await pilot.pause(headless.SETTLE_S)
        return picture.of_screen(app, f"workbench {app.opened.session}".rstrip())


async def until(pilot: Pilot[None], app: WorkbenchApp, shown: str) -> None:
    """Wait until the screen says that."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while shown not in (text := words(picture.of_screen(app, ""))) or "computing" in text:
                await headless.computed(pilot, app)
                await pilot.pause(0.1)
    except TimeoutError:
        raise SystemExit(f"{shown!r} never came; there is\n{text}") from None


def words(svg: str) -> str:
    """What a picture says, line by line."""
    lines = re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)
    return html.unescape("\n".join(lines)).replace("\xa0", " ")


async def take_all(given: argparse.Namespace) -> None:
    columns, rows = (int(part) for part in given.size.split("x"))
    try:
        for name in given.names or PICTURES:
            taken = await take(name, given.recording, (columns, rows), given.theme)
            path = given.folder / f"{name}.svg"
            path.write_text(taken, encoding="utf-8")
            print(f"{path}: {columns}x{rows}")
    finally:
        await (await started_client()).ask(StopEngine())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PICTURES)}; default: all")
    parser.add_argument("--recording", default=RECORDING, help="the session that they show")
    parser.add_argument("--workspace", type=Path, help="where that is; default: an empty one")
    parser.add_argument("--folder", type=Path, default=IMAGES)
    parser.add_argument("--size", default="120x36", help="columns x rows")
    parser.add_argument("--theme", default="dark")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wb-") as empty:
        settings.workspace = given.workspace or Path(empty)
        asyncio.run(take_all(given))


if __name__ == "__main__":
    main()
