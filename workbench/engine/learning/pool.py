"""One worker process for CPU-heavy science: spawned, nice 19, replaceable at any time.

It keeps what it can rebuild and nothing else, so a worker that dies costs one repeated call.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from typing import ParamSpec, TypeVar

from workbench.domain.errors import EngineError, PluginError
from workbench.engine.learning.advice import Advice, Question, advise, warm
from workbench.log import logger
from workbench.probes.process import PROC, parse_stat_cpu_s

P = ParamSpec("P")
T = TypeVar("T")

NICE = 19
"""The functions under test come first."""

log = logger("engine.pool")


class WorkerLost(EngineError):
    """The worker process died over a call, and its successor over the same call, too."""


class Pool:
    """The worker process, started with the first call."""

    def __init__(self) -> None:
        self._executor: ProcessPoolExecutor | None = None
        self._warming: asyncio.Future[None] | None = None
        self.losses = 0
        """How often a worker died and was replaced."""
        self._worker_cpu_s: dict[int, float] = {}
        """By process, dead ones included: what they burned does not un-burn."""

    def warm(self) -> None:
        """Start the worker and its imports; returns at once."""
        if self._warming is None:
            self._warming = asyncio.ensure_future(self.run(warm))
            self._warming.add_done_callback(_look_at)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work` in the worker. A worker that dies is replaced and asked again, once."""
        loop = asyncio.get_running_loop()
        for attempt in (1, 2):
            executor = self._worker()
            try:
                future = executor.submit(_called, partial(work, *args, **kwargs))
                return await asyncio.wrap_future(future, loop=loop)
            except BrokenProcessPool:
                log.warning("worker died", work=work.__name__, attempt=attempt)
                self._discard(executor)
        raise WorkerLost(
            f"the worker process died twice over {work.__name__!r}",
            remedy="See whether the host runs out of memory (`dmesg`) or a plugin ends it, then "
            "try again, or resume the session",
        )

    async def advise(self, question: Question, everything: Callable[[], Question]) -> Advice:
        """Ask the worker; where it has lost its state, ask again with `everything`."""
        advice = await self.run(advise, question)
        if advice is None:
            advice = await self.run(advise, everything())
        if advice is None:
            raise EngineError("the worker process does not take a question in full")
        return advice

    def kill(self) -> None:
        """End a worker that does not answer; the next call gets another."""
        executor = self._executor
        if executor is not None:
            for process in list(getattr(executor, "_processes", {}).values()):
                process.kill()
            self._discard(executor)

    async def close(self) -> None:
        """End the worker; what it was doing is of no use any more."""
        executor, self._executor = self._executor, None
        if executor is None:
            return
        processes = list(getattr(executor, "_processes", {}).values())
        for process in processes:
            process.terminate()
        await asyncio.to_thread(executor.shutdown, cancel_futures=True)

    def worker_pid(self) -> int | None:
        """Of the running worker, for tests and the doctor."""
        processes = getattr(self._executor, "_processes", None) or {}
        return next(iter(processes), None)

    def own_cpu_s(self) -> float:
        """CPU seconds of this process and of its workers so far; it only ever grows."""
        pid = self.worker_pid()
        if pid is not None:
            with suppress(OSError):  # it died just now
                stat = (PROC / str(pid) / "stat").read_text()
                self._worker_cpu_s[pid] = parse_stat_cpu_s(stat)
        return time.process_time() + sum(self._worker_cpu_s.values())

    def _worker(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                max_workers=1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_begin,
            )
        return self._executor

    def _discard(self, executor: ProcessPoolExecutor) -> None:
        executor.shutdown(wait=False, cancel_futures=True)
        if self._executor is executor:  # not yet replaced by another call that saw it die
            self._executor = None
            self.losses += 1


def _called(work: partial[T]) -> T:
    """`work`, in the worker. A plugin that exits is an error: the engine would obey it."""
    try:
        return work()
    except SystemExit as error:
        raise PluginError(
            f"something that {work.func.__name__!r} called exits with {error.code}"
        ) from None


def _look_at(future: asyncio.Future[None]) -> None:
    """A warm-up that failed is no failure: the call that needs the imports will say so."""
    if not future.cancelled() and (error := future.exception()):
        log.warning("worker could not warm up", error=str(error))


def _begin() -> None:
    """First thing in the worker: low priority, no Ctrl-C, and no life after the engine's."""
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def watch() -> None:
            wait([sentinel])
            os._exit(1)

        threading.Thread(target=watch, name="parent-watch", daemon=True).start()
