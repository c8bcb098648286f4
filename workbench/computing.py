"""What is computed beside a loop, and does not keep the process from its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def computed(compute: Callable[..., T], *arguments: object) -> T:
    """As `asyncio.to_thread`, but who stops the process does not wait until it has ended.

    `asyncio.run` joins the threads of its executor however long they compute; this one ends with
    the process.
    """
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # its waiter may leave, and it is answered all the same

    def compute_it() -> None:
        try:
            answer.set_result(compute(*arguments))
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            answer.set_exception(error)

    thread = threading.Thread(target=compute_it, name=COMPUTING, daemon=True)
    thread.start()
    return await asyncio.wrap_future(answer)


COMPUTING = "computing"


def still_computes() -> bool:
    """Whether something computes whose answer nobody waits for any more."""
    return any(thread.name == COMPUTING for thread in threading.enumerate())
