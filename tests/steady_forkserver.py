"""Preloaded by the process that forks workers: it outlives engines that are killed as they ask it.

multiprocessing's own ends with an EOFError where who asked dies before it has handed over its
pipes; that a connection was aborted it takes in its stride.
"""

from __future__ import annotations

import errno
import multiprocessing.reduction
import socket

_received = multiprocessing.reduction.recvfds


def _recvfds(sock: socket.socket, size: int) -> list[int]:
    try:
        return _received(sock, size)
    except EOFError:
        raise OSError(errno.ECONNABORTED, "who asked for a process is gone") from None


multiprocessing.reduction.recvfds = _recvfds  # type: ignore[assignment]
