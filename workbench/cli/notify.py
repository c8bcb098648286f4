"""`notify`: who is told of campaigns that end, tried out; and notifications of this terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workbench.domain.events import Event
    from workbench.domain.notices import Notice
    from workbench.domain.projection import SessionView


def register(app: typer.Typer) -> None:
    app.command("notify")(notify)


def notify(
    test: Annotated[
        bool, typer.Option("--test", help="Send a test notice to each of them now.")
    ] = False,
) -> None:
    """List who is told when a campaign finishes, fails or drifts (notify.toml).

    Example: workbench notify --test
    """
    from workbench.cli.context import execute

    raise typer.Exit(execute(_notify(test)))


async def _notify(test: bool) -> int:
    import time

    from workbench import paths
    from workbench.cli.context import put
    from workbench.domain.errors import FINDING
    from workbench.domain.notices import Notice
    from workbench.engine import notifying

    path = paths.notify_file()
    asked = notifying.read(path)
    if not asked:
        put(f"nobody is told: {path} asks for nothing")
    failed = False
    for one in asked:
        put(f"{one.title}: {', '.join(one.on)}")
        if not test:
            continue
        notice = Notice("finished", "try", "", "workbench notify --test: a try", time.time())
        if one.terminal:
            why = "" if _shown(notice) else "standard error is no terminal here"
        else:
            why = await notifying.tell(one, notice)
        put(f"  {why or 'told'}")
        failed |= bool(why)
    return FINDING if failed else 0


def tell_terminal(event: Event, view: SessionView) -> None:
    """Notify by the terminal, if this is one and somebody asked for that."""
    from workbench.domain.notices import notice_of

    notice = notice_of(event, view)
    if notice is not None and _in_file(notice.event):
        _shown(notice)


def _in_file(occasion: str) -> bool:
    from workbench import paths
    from workbench.domain.errors import UsageError
    from workbench.engine import notifying

    try:
        return any(
            one.terminal and occasion in one.on for one in notifying.read(paths.notify_file())
        )
    except UsageError:  # the engine says so in the session's log
        return False


def _shown(notice: Notice) -> bool:
    """Whether there is a terminal; what it makes of it is not known."""
    from workbench.domain.notices import terminal_sequence

    if not sys.stderr.isatty():
        return False
    text = terminal_sequence(notice, os.environ.get("TERM", ""), in_tmux="TMUX" in os.environ)
    sys.stderr.write(text)
    sys.stderr.flush()
    return True
