"""A terminal that vanishes and a signal end their screen, even one stuck in writing to it.

The event loop cannot be trusted with this: Textual's writer thread dies on the closed terminal, its
queue fills up, and the loop waits for it for ever while the input thread spins on end-of-file
(dolphie #101 is the same). So a thread of its own waits for the hang-up, which costs nothing.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable

GRACE_S = 2.0
"""What the screen gets to end by itself. It holds nothing that could be lost: the engine does."""


def watch_terminal(leave: Callable[[], object]) -> None:
    """Call `leave`, from another thread, once the terminal is gone; then see to it that we are."""
    stdin = sys.__stdin__
    if stdin is None or stdin.closed:
        leave()
        return
    hang_up = select.poll()
    hang_up.register(stdin.fileno(), 0)  # only hang-up and error are reported, no input

    def wait() -> None:
        hang_up.poll()
        leave_surely(leave)

    threading.Thread(target=wait, name="terminal-watch", daemon=True).start()


def leave_surely(leave: Callable[[], object]) -> None:
    """Call `leave`; what it has not ended after a grace ends then.

    A terminal that is there and that nobody reads holds up the writer, too, and Textual's end with
    it.
    """
    end = threading.Timer(GRACE_S, os._exit, (0,))
    end.daemon = True
    end.start()
    leave()
