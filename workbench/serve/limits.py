"""How much the SSH server grants, to everybody and to one key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerLimits:
    """Defaults hold for a lab's staff; seconds are of a clock that never steps."""

    connections: int = 32
    """Logged in at the same time."""
    connections_per_key: int = 8
    channels: int = 8
    """Screens, commands and transfers of one connection at the same time."""
    half_open: int = 64
    """Not logged in yet; beyond that the oldest is dropped, so that a flood keeps nobody out."""
    attempts: int = 6
    """Keys that a connection may offer."""
    login_s: float = 20.0
    """Until the log-in is done."""
    keep_alive_s: float = 15.0
    keep_alive_count: int = 3
    """Unanswered ones, after which a client counts as gone."""
    idle_s: float = 8 * 3600.0
    """Without a key pressed, a command running or a file read; 0: for ever."""
    slow_s: float = 20.0
    """A client that reads nothing for so long, while there is something to read, is dropped."""
