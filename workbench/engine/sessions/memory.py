"""Memory that an engine of many sessions leaves behind in the allocator."""

from __future__ import annotations

import ctypes
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Of `mallopt` in glibc's malloc.h."""
LARGE_BYTES = 128 * 1024
"""What glibc begins with, and raises with the blocks that are freed."""


def keep_little_free() -> None:
    """Let all threads allocate from one place, and large blocks be the system's again once they are
    freed; where the C library is glibc. Before there are threads.

    Each session is opened, written and read by threads that come and go, each in an arena of its
    own; what is freed in one serves no other thread, and they grow with not one object more. What a
    long run grows by, then and now, is in docs/reliability.md.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_ARENA_MAX, 1)
        libc.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        libc.mallopt(M_TRIM_THRESHOLD, LARGE_BYTES)


def give_back() -> None:
    """Return free pages to the system, where the C library is glibc; elsewhere nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
