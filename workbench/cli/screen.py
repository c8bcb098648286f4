"""Opening the screen: it paints first, and meets its engine while it is up already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.domain.messages import ResumeSession, RunCampaign
    from workbench.link.client import Client
    from workbench.tui.places import Files


DUMB = ("dumb", "unknown")
"""Terminals without a cursor that could be moved."""


def open_screen(
    *,
    session: str | None = None,
    command: RunCampaign | ResumeSession | None = None,
    http: str | None = None,
    replay_speed: float | None = None,
    first: str = "",
) -> None:
    """Run the screen until the user leaves it; the engine goes on without it.

    `command` is sent once the engine answers, and its session opened; `session` alone is opened
    as it is, or replayed at `replay_speed`, on the screen of the name `first`: Live by default.
    """
    import traceback
    from contextlib import suppress

    must_show_screens()
    from workbench.cli.context import is_guest, log_unexpected, say, settings, started_client
    from workbench.tui.app import WorkbenchApp
    from workbench.tui.leaving import farewell

    failures: list[Exception] = []

    def log(error: Exception) -> str:
        failures.append(error)
        path = log_unexpected(error)
        return "the log of the host's workspace" if is_guest() else str(path or "")

    app = WorkbenchApp(
        lambda: started_client(http),
        session=session,
        command=command,
        replay_speed=replay_speed,
        screen=first,
        files=files_of_guest() if is_guest() else files_of_user(),
        log=log,
    )
    app.run()
    if settings.debug:
        for error in failures:
            traceback.print_exception(error)
    if app.boundary.fatal is not None:
        raise app.boundary.fatal
    going, watch = app.going_on, app.opened
    by_fleet = watch.live.view.fleet is not None and going[:1] == ((watch.session, "running"),)
    if said := farewell(going, _workspace_option(), guest=is_guest(), by_fleet=by_fleet):
        with suppress(OSError):  # the terminal may be what went away
            say(said)
    if app.return_code:
        raise typer.Exit(app.return_code)


def must_show_screens() -> None:
    """Raise `UsageError` where this terminal can show no screen; one that can says its size."""
    import os
    import sys

    from workbench.domain.errors import UsageError

    if "TEXTUAL_DRIVER" not in os.environ:  # else `workbench web` draws for a browser
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(
                "the screen needs a terminal", remedy="Use `workbench run --headless` without one"
            )
        if os.environ.get("TERM") in DUMB:
            raise UsageError(
                f"this terminal can show no screen (TERM={os.environ['TERM']})",
                remedy="Use `workbench run --headless`, or set TERM to what it is, such as xterm",
            )
        for variable in ("COLUMNS", "LINES"):
            os.environ.pop(variable, None)  # the terminal knows its size, and tells when it changes


def _workspace_option() -> str:
    """Names the workspace of the screens where `workbench` alone would mean another one."""
    import shlex

    from workbench.cli.context import settings

    return f"--workspace {shlex.quote(str(settings.workspace))}" if settings.workspace else ""


def export_picture(
    session: str, file: Path, screen: str, size: str, theme: str, *, plot: bool
) -> None:
    """Write a screen of a session, or its plot, as SVG; no terminal is needed."""
    import re
    from multiprocessing import resource_tracker

    from workbench.cli.context import any_client, execute, say
    from workbench.domain.errors import UsageError
    from workbench.tui.headless import svg_of

    shape = re.fullmatch(r"(\d{1,4})x(\d{1,4})", size)
    if shape is None:
        raise UsageError(f"{size!r} is no size", where="--size", remedy="Write it as 120x36")
    columns, rows = int(shape[1]), int(shape[2])

    async def draw() -> str:
        # An engine of ours may start workers later, while Textual's stand-in for standard error
        # has no descriptor: the tracker that comes before the first of them would trip over that.
        resource_tracker.ensure_running()
        async with any_client() as client:

            async def connect() -> Client:
                return client

            return await svg_of(
                connect, session, screen=screen, size=(columns, rows), theme=theme, plot=plot
            )

    drawn = execute(draw())
    try:
        file.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(file)) from None
    say(f"wrote {file}")


def files_of_guest() -> Files:
    """For who came through a server: the keys of this account, and nothing is written."""
    from workbench import paths
    from workbench.tui.places import Files

    return Files(keys=paths.keys_file())


def files_of_user() -> Files:
    """Settings, pictures and workspaces of who sits at this terminal."""
    from pathlib import Path

    from workbench import paths
    from workbench.cli.context import current_workspace, settings
    from workbench.tui.memory import Memory
    from workbench.tui.places import Files

    memory = Memory(paths.screen_memory())
    memory.opened(str(current_workspace().root))

    def others() -> tuple[str, ...]:
        here = str(current_workspace().root)
        known = (folder for folder in Memory(memory.path).workspaces if folder != here)
        return tuple(folder for folder in known if (Path(folder) / "sessions").is_dir())

    def choose(folder: str) -> None:
        settings.workspace = Path(folder)
        memory.opened(folder)

    return Files(
        keys=paths.keys_file(),
        memory=memory.path,
        pictures=lambda: current_workspace().exports,
        workspaces=others,
        choose_workspace=choose,
    )
