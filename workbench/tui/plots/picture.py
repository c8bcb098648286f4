"""Screens and plots as SVG, for papers, tickets and our own documents."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

from rich.console import Console
from rich.segment import Segment, Segments
from textual.app import App
from textual.geometry import Region
from textual.widget import Widget

from workbench.domain.errors import UsageError

_WEB_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def of_screen(app: App[None], title: str) -> str:
    """The whole terminal as SVG, messages and dialogs included."""
    return _local(app.export_screenshot(title=title))


def of_widget(widget: Widget, title: str) -> str:
    """One widget with its border, in the size that it has on the screen."""
    width, height = widget.outer_size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        legacy_windows=False,
    )
    strips = widget.render_lines(Region(0, 0, width, height))
    lines: list[Segment] = []
    for strip in strips:
        lines += [*strip, Segment.line()]
    console.print(Segments(lines), end="")
    return _local(console.export_svg(title=title))


def _local(svg: str) -> str:
    """A picture fetches nothing from elsewhere."""
    return _WEB_FONTS.sub("", svg)


def write(svg: str, folder: Path, *parts: str) -> Path:
    """A new file in the folder, named by these parts and the time.

    Raises `UsageError` where it cannot be written.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = "-".join(_UNSAFE.sub("_", part).strip("_.") for part in (*parts, stamp) if part)
    path = folder / f"{name}.svg"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(path)) from None
    return path
