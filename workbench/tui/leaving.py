"""What is said in the terminal when the screens are closed: closing them ends nothing."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.domain.counts import counted
from workbench.domain.sessions import UNDER_WAY, SessionSummary
from workbench.tui.text import plain
from workbench.tui.watch import Watch


def under_way(watch: Watch, known: Iterable[SessionSummary]) -> tuple[tuple[str, str], ...]:
    """Name and state of the sessions that go on, the open one first; as far as is known."""
    found = {s.name: s.state for s in known if s.kind == "session"}
    if watch.session and watch.replay is None and not watch.bundle and not watch.lost:
        state = watch.live.view.state
        starting = state == "planned" and watch.command is not None and watch.refused is None
        found = {watch.session: "running" if starting else state} | {
            name: state for name, state in found.items() if name != watch.session
        }
    return tuple((plain(name), state) for name, state in found.items() if state in UNDER_WAY)


def farewell(
    going: tuple[tuple[str, str], ...],
    option: str = "",
    *,
    guest: bool = False,
    by_fleet: bool = False,
) -> str:
    """One line; empty where nothing is under way. `option`: which workspace to name; `by_fleet`:
    the first of them is measured by hosts, which no engine's end stops."""
    if not going:
        return ""
    name, state = going[0]
    words = f"{name} stays paused" if state in ("pausing", "paused") else f"{name} goes on"
    if len(going) > 1:
        words = f"{counted(len(going), 'run')} go on"
    if guest:
        return f"{words}; connect again to see {'them' if len(going) > 1 else 'it'}."
    command = f"workbench {option}".rstrip()
    again = "opens them again" if len(going) > 1 else "opens it again"
    if by_fleet:
        rest = f", `{command} engine stop` ends the others" if len(going) > 1 else ""
        return f"{words}; `{command}` {again}; `s` on the screens of {name} stops it{rest}."
    ends = "ends them" if len(going) > 1 else "ends it"
    return f"{words}; `{command}` {again}; `{command} engine stop` {ends}."
