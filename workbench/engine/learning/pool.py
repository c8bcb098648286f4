"""One worker process for CPU-heavy science: spawned, nice 19 once anything is measured, replaceable
at any time.

It keeps what it can rebuild and nothing else, so a worker that dies costs one repeated call. Beside
it a second one may compute what needs nothing that the first keeps (`Pool.lane`).
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager, suppress
from functools import partial
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakSet

from workbench.domain.errors import EngineError, PluginError
from workbench.log import logger
from workbench.probes.process import PROC, parse_stat_cpu_s

if TYPE_CHECKING:  # its imports take longer than a command that only asks
    from workbench.engine.learning.sampler_worker import Advice, SamplerQuestion

P = ParamSpec("P")
T = TypeVar("T")

NICE = 19
"""The functions under test come first."""
HARDLY_NICE = 1
"""While nothing is measured yet: beside whatever else keeps a host busy, a worker at nice 19 takes
minutes for the imports that a plan waits for."""
LOOK_AT_OTHERS_S = 2.0
"""How often it is looked, while it computes, whether anybody else has begun to measure."""
MOST_KNOWN = 1000
"""Answers that are kept."""

START_METHOD = "spawn"
"""How a worker comes to be; the engine has threads, so it is never forked from it."""

UNWANTED_S = 5.0
"""How long the worker may go on with what nobody waits for any more, before it is replaced: a new
one takes some seconds to be as far."""

log = logger("engine.pool")


class WorkerLost(EngineError):
    """The worker process died over a call, and its successor over the same call, too."""


def _never() -> bool:
    return False


class Pool:
    """The worker process, started with the first call.

    Parameters
    ----------
    may_spread : whether a second process may compute just now, too.
    gives_way : whether it is nice from its start; else once `give_way` says so.

    Attributes
    ----------
    known : what was computed before, by a digest of all that it rests on. Whoever asks for it fills
        it (`scoring.compared`), and `remember` bounds it.
    others_measure : whether another workspace measures on this host.
    """

    def __init__(self, may_spread: Callable[[], bool] = _never, *, gives_way: bool = True) -> None:
        self._gives_way = gives_way
        self.known: dict[str, Any] = {}
        self._may_spread = may_spread
        self.others_measure: Callable[[], bool] = _never
        self._second: Pool | None = None
        self._lanes, self._first_lane = asyncio.Semaphore(2), asyncio.Lock()
        self._calls: list[Future[Any]] = []
        """Of the worker that is, in their order; the first is what it does."""
        self._executor: ProcessPoolExecutor | None = None
        self._warming: asyncio.Future[None] | None = None
        self._killed: WeakSet[ProcessPoolExecutor] = WeakSet()
        """Whose worker was ended by us."""
        self.losses = 0
        """How often a worker died of itself and was replaced."""
        self._worker_cpu_s: dict[int, float] = {}
        """By process, dead ones included: what they burned does not un-burn."""

    def warm(self) -> None:
        """Start the worker and its imports; returns at once."""
        from workbench.engine.learning.sampler_worker import warm

        if self._warming is None:
            self._warming = asyncio.ensure_future(self.run(warm))
            self._warming.add_done_callback(_look_at)

    def give_way(self) -> None:
        """Something is about to be measured: the worker is nice from now on, and so are those that
        come after it. For good, as only root may take that back."""
        self._gives_way = True
        for thread in (PROC / str(self.worker_pid()) / "task").glob("*"):  # Linux ranks each alone
            with suppress(OSError):  # it ended just now
                os.setpriority(os.PRIO_PROCESS, int(thread.name), NICE)

    def remember(self, key: str, value: Any) -> None:
        self.known[key] = value
        while len(self.known) > MOST_KNOWN:
            del self.known[next(iter(self.known))]

    @asynccontextmanager
    async def lane(self) -> AsyncIterator[Pool]:
        """A worker for work that rests on nothing that one keeps; the body is alone in its lane.

        The second is started where the first is taken, if there may be one.
        """
        async with self._lanes:
            if not (self._first_lane.locked() and self._may_spread()):
                async with self._first_lane:
                    yield self
                return
            if self._second is None:
                self._second = Pool()
            yield self._second

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work` in the worker. A worker that dies is replaced and asked again, once."""
        if self._gives_way:
            return await self._run(work, *args, **kwargs)
        considerate = asyncio.ensure_future(self._consider_others())
        try:
            return await self._run(work, *args, **kwargs)
        finally:
            considerate.cancel()

    async def _consider_others(self) -> None:
        while not self._gives_way:
            if self.others_measure():
                self.give_way()
            await asyncio.sleep(LOOK_AT_OTHERS_S)

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        attempt = 0
        while attempt < 2:
            executor = self._worker()
            future: Future[T] | None = None
            try:
                future = executor.submit(_called, partial(work, *args, **kwargs))
                self._calls = [call for call in self._calls if not call.done()] + [future]
                return await asyncio.wrap_future(future, loop=loop)
            except asyncio.CancelledError:
                if future is not None and future.running():
                    loop.call_later(UNWANTED_S, self._end_unwanted, future)
                raise
            except BrokenProcessPool:
                if executor in self._killed:  # over what another had asked
                    continue
                attempt += 1
                log.warning("worker died", work=work.__name__, attempt=attempt)
                self._discard(executor)
        raise WorkerLost(
            f"the worker process died twice over {work.__name__!r}",
            remedy="See whether the host runs out of memory (`dmesg`) or a plugin ends it, then "
            "try again, or resume the session",
        )

    async def advise(
        self, question: SamplerQuestion, everything: Callable[[], SamplerQuestion]
    ) -> Advice:
        """Ask the worker; where it has lost its state, ask again with `everything`."""
        from workbench.engine.learning.sampler_worker import advise

        advice = await self.run(advise, question)
        if advice is None:
            advice = await self.run(advise, everything())
        if advice is None:
            raise EngineError("the worker process does not take a question in full")
        return advice

    def _end_unwanted(self, future: Future[Any]) -> None:
        """Replace a worker that is still busy with what nobody waits for."""
        self._calls = [call for call in self._calls if not call.done()]
        if self._calls[:1] == [future]:
            log.info("the worker is replaced: nobody waits for what it does")
            self.kill()
        elif future in self._calls:  # it is handed to the worker, and not begun
            asyncio.get_running_loop().call_later(UNWANTED_S, self._end_unwanted, future)

    def kill(self) -> None:
        """End a worker that does not answer; calls that wait behind get another, as does the next.

        It is no loss, and none of theirs.
        """
        executor, self._executor = self._executor, None
        if executor is not None:
            self._killed.add(executor)
            for process in list(getattr(executor, "_processes", {}).values()):
                process.kill()
            executor.shutdown(wait=False)

    async def close(self) -> None:
        """End the worker; what it was doing is of no use any more."""
        if self._second is not None:
            await self._second.close()
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
                mp_context=multiprocessing.get_context(START_METHOD),
                initializer=_begin,
                initargs=(NICE if self._gives_way else min(HARDLY_NICE, NICE),),
            )
        return self._executor

    def _discard(self, executor: ProcessPoolExecutor) -> None:
        executor.shutdown(wait=False)  # calls that wait end with the worker, and are made again
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


def _take_one_core() -> None:
    """Linear algebra in one thread: on a busy host others spin for longer than they compute, and
    the functions under test need the cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    for library in ("OPENBLAS", "OMP"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # for what is imported later
    threadpool_limits(limits=1)  # and for what is here already


def _begin(nice: int) -> None:
    """First thing in the worker: low priority, one core, no Ctrl-C, no life after the engine's."""
    os.nice(nice)
    _take_one_core()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def watch() -> None:
            wait([sentinel])
            os._exit(1)

        threading.Thread(target=watch, name="parent-watch", daemon=True).start()
