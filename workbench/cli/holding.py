"""A command that does nothing but be there."""

from __future__ import annotations

import signal


def until_interrupted() -> None:
    """Return at SIGINT, SIGTERM or when the terminal is gone."""
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    signal.sigwait(ends)
