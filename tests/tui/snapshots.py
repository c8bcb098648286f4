"""Screens as text with their looks, compared with what was looked at and stored.

A screen has one file in `tests/tui/snapshots/`, with a section for each state, size and theme: a
line `##### NAME`, what the terminal shows, which look each cell has (one letter a look, `.` for the
first), then the looks. It is plain text, so that a change is read in a diff. `UPDATE_SNAPSHOTS=1
pytest tui/...` writes them anew; then look at them, or at the SVG that a failing test leaves in its
folder.
"""

from __future__ import annotations

import difflib
import fcntl
import os
import re
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

from fake_link import redrawn, strips
from rich.style import Style
from textual.pilot import Pilot

FOLDER = Path(__file__).with_name("snapshots")
_LETTERS = "." + ascii_letters + digits
_SECTION = re.compile(r"^##### (\S+)\n", re.MULTILINE)


def rendered(pilot: Pilot[Any]) -> str:
    """Text and looks of the terminal, filters of the theme applied."""
    app = pilot.app
    names: dict[str, str] = {}
    texts, looks = [], []
    for strip in strips(app):
        for filter in app._filters:
            if filter.enabled:
                strip = strip.apply_filter(filter, app.screen.background_colors[1])
        texts.append(strip.text.rstrip())
        line = ""
        for segment in strip:
            look = _look(segment.style)
            names.setdefault(look, _LETTERS[min(len(names), len(_LETTERS) - 1)])
            line += names[look] * segment.cell_length
        looks.append(line.rstrip("."))
    legend = [f"{letter} {look}" for look, letter in names.items()]
    return "\n".join((*texts, "=" * 20, *looks, "=" * 20, *legend)) + "\n"


def _look(style: Style | None) -> str:
    if style is None:
        return "default"
    colours = [c.name if c else "default" for c in (style.color, style.bgcolor)]
    attributes = ("bold", "dim", "italic", "underline", "reverse", "strike")
    return " ".join((colours[0], "on", colours[1], *(a for a in attributes if getattr(style, a))))


async def check(pilot: Pilot[Any], name: str, tmp_path: Path) -> None:
    """The terminal shows what is stored as `name`, with its size and theme."""
    await redrawn(pilot)
    width, height = pilot.app.size
    name = f"{name}-{width}x{height}-{pilot.app.theme.removeprefix('workbench-')}"
    now = rendered(pilot)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        renew(name, now)
        return
    stored = sections(pack_of(name)).get(name, "")
    if now != stored:
        picture = tmp_path / f"{name}.svg"
        picture.write_text(pilot.app.export_screenshot(), encoding="utf-8")
        diff = difflib.unified_diff(stored.splitlines(), now.splitlines(), lineterm="", n=1)
        raise AssertionError("\n".join((f"{name} differs; see {picture}", *diff)))


def pack_of(name: str) -> Path:
    """The file of a screen: the first word of its snapshots."""
    return FOLDER / f"{name.partition('-')[0]}.txt"


def sections(pack: Path) -> dict[str, str]:
    """Snapshots of a file by name."""
    text = pack.read_text(encoding="utf-8") if pack.exists() else ""
    _, *parts = _SECTION.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def renew(name: str, text: str) -> None:
    """Put a snapshot in the place of the one of that name; a file of its own, as they were once,
    goes out. Two processes may renew at once."""
    FOLDER.mkdir(exist_ok=True)
    pack = pack_of(name)
    with pack.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = sections(pack) | {name: text}
        file.truncate(0)
        file.writelines(f"##### {one}\n{own}" for one, own in sorted(known.items()))
    pack.with_name(f"{name}.txt").unlink(missing_ok=True)
