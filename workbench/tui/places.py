"""Where things are: the files of the screen, and the engine that it talks to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.messages import GetStatus
from workbench.link.client import Client
from workbench.tui.commands.keymap import Preset
from workbench.tui.plots.plot import GLYPHS_VARIABLE, terminal_glyphs


@dataclass(frozen=True)
class Files:
    """What the door hands to its screens; a screen over SSH gets less than one on the desk."""

    keys: Path | None = None
    """`keys.toml`."""
    memory: Path | None = None
    """Theme, tour and workspaces; None: nothing is remembered, and there is no tour."""
    pictures: Callable[[], Path] | None = None
    """The folder for SVG pictures now; None: none are written."""
    workspaces: Callable[[], tuple[str, ...]] = field(default=tuple)
    """Other folders that sessions may be in."""
    choose_workspace: Callable[[str], None] = field(default=lambda _: None)
    """The next connection is made to the engine of this one."""


async def places_text(
    connected: Callable[[], Awaitable[Client]], files: Files, preset: Preset, theme: str
) -> str:
    """Workspace, engine, files and settings in force, a line each."""
    try:
        reply = await (await connected()).ask(GetStatus())
    except (WorkbenchError, OSError) as error:
        lines = [("engine", str(error))]
    else:
        clients = counted(reply.clients, "client")
        lines = [
            ("workspace", reply.workspace),
            ("engine", f"process {reply.pid}, version {reply.version}, {clients}"),
            ("measuring", reply.running or "nothing"),
            ("queue", ", ".join(reply.queued) or "empty"),
        ]
    lines += [
        ("keys", f"{preset} preset, {_file(files.keys)}"),
        ("theme", f"{theme}, remembered in {_file(files.memory)}"),
        ("pictures", str(files.pictures() if files.pictures else "not written here")),
        ("characters", f"{terminal_glyphs()}, by locale, TERM and {GLYPHS_VARIABLE}"),
    ]
    return "\n".join(f"{name:<11} {value}" for name, value in lines)


def _file(path: Path | None) -> str:
    if path is None:
        return "no file"
    return str(path) if path.exists() else f"{path} (not there)"
