"""Commands that no screen has, as they are typed in a terminal for the session that is open."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from workbench.domain.projection import SessionView


class ShellCommand(NamedTuple):
    """What the palette offers to copy: its name, what it is for, the whole line."""

    name: str
    help: str
    line: str


def shell_commands(view: SessionView | None) -> tuple[ShellCommand, ...]:
    """With the names of that session's own functions; None: no session is open.

    A simulated session has no counters that a running function could be watched by.
    """
    counters, watch = "workbench counters", "workbench watch"
    session = shlex.quote(view.session) if view is not None and view.session else "SESSION"
    targets = [p.target for p in view.campaign.targets] if view and view.campaign else []
    alone = next((shlex.quote(t.name) for t in targets if len(t.vnfs) == 1), "FUNCTION")
    chain = next((shlex.quote(t.name) for t in targets if len(t.vnfs) > 1), "A,B")
    simulated = view is not None and view.host is not None and view.host.is_simulated
    of = f"--chain {chain}" if simulated else f"--function {alone}"
    of_counters = ShellCommand(
        counters,
        "Which counters explain a KPI, and which model predicts it best; enter copies it",
        f"{counters} --session {session} {of} --kpi p95",
    )
    of_watch = ShellCommand(
        watch,
        "A running function's KPI from its counters, shown on Watch; enter copies it",
        f'{watch} {session} {alone} --at container:NAME --kpi "p95<=100ms"',
    )
    return (of_counters,) if simulated else (of_counters, of_watch)
