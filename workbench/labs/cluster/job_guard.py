"""Watches a running system from within its cluster: a Job of its own, before the load's.

curl asks ten times a second and tells each answer in a line; the lines are followed and judged here
as those of the guard of this host are (`labs.attached.load_guard`). No load begins before it has
been heard, none counts that it did not outlive, and one that says nothing, ends, or tells late
stops the load like one that is broken.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil, inf

from workbench.domain import kpis
from workbench.domain.errors import LabError, LabStopped
from workbench.domain.parameters import Sla
from workbench.labs.attached.load_guard import EVERY_S, WINDOW, GuardRequest, broken, stopped
from workbench.labs.cluster.cluster_api import FORBIDDEN, UNAUTHORIZED, ApiRefused
from workbench.labs.cluster.job_manifest import GUARD
from workbench.labs.cluster.job_run import POLL_S, JobRun
from workbench.labs.cluster.kubelet import unix_of

SILENT_S = 2.0
"""Beyond the longest answer: how long it may say nothing while there is load."""
FIRST_S = 10.0
"""The same before its first answers, while there is none."""
FIRST = 3
"""Answers that are heard before any load."""
LEAST_ANSWER_S, SHARE_ANSWER_S = 1.0, 3.0
LOOK_S = 0.1


def answer_s(sla: Sla, timeout_s: float) -> float:
    """How long a request of it may take; what takes longer has failed.

    It asks one after another: a system that hangs is seen after two of them. For response times
    twice the limit (in ms), a second at least.
    """
    timed = kpis.of(sla.kpi).kind == "response_time"
    return min(timeout_s, max(LEAST_ANSWER_S, 2e-3 * sla.limit) if timed else SHARE_ANSWER_S)


def guard_argv(url: str, longest_s: float, seconds: float) -> tuple[str, ...]:
    """One request after another on a connection of its own, for at least so many seconds.

    The fragment makes them different to curl, and is not sent. What is written to standard error
    is not held back until there is a buffer full of it.
    """
    count = ceil(seconds / EVERY_S)
    return (
        *("curl", "--silent", "--rate", f"{round(1 / EVERY_S)}/s", "--max-time", f"{longest_s:g}"),
        *("--header", "Connection: close", "--output", "/dev/null"),
        *("--write-out", "%{stderr}%{http_code} %{time_total}\\n", f"{url}#[1-{count}]"),
    )


@dataclass
class JobGuard:
    """Of one drive; its container has begun."""

    run: JobRun
    pod: str
    sla: Sla
    place: str
    """Of the function that load enters."""
    answer_s: float
    _seen: deque[tuple[float, GuardRequest]] = field(default_factory=lambda: deque(maxlen=WINDOW))
    """With when each was written, by its node's clock."""
    _offset_s: float = inf
    """From that to this host's monotonic clock, by the line that came soonest: one that comes
    later than that says nothing of now."""
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    """By each answer."""
    _loaded: bool = False
    """Whether there may be load."""
    _written_s: float = 0.0
    """Of the latest of all."""
    _answers: int = 0
    _last: str = ""
    _lines: int = 0
    """Read of the log so far: who begins to follow it anew is told all of it."""

    async def watch(self) -> None:
        """Until it is broken, silent, gone, or this is cancelled.

        Raises `LabStopped`, and `LabError` with what has become of its pod.
        """
        begun_s = time.monotonic()
        tasks = [asyncio.create_task(one) for one in (self._follow(), self._look_after())]
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                for task in tasks:
                    if task.done():
                        task.result()
                self._judge()
                silent_s = self.answer_s + (SILENT_S if self._loaded else FIRST_S)
                if time.monotonic() > max(self.heard_s, begun_s) + silent_s:
                    raise self._lost(f"told nothing for {silent_s:g} s")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # What follows waits for what it says; what it does not say ends `watch`.

    async def alive(self) -> None:
        """Wait for its first answers: before that there is no load. Raises as `watch` does."""
        while self._answers < FIRST:
            self._told.clear()
            await self._told.wait()
        self._judge()
        self._loaded = True

    def load_began(self, after_s: float) -> None:
        """Forget what was answered before that instant: there was no load."""
        those = (one for one in self._seen if one[0] + self._offset_s >= after_s)
        self._seen = deque(those, maxlen=WINDOW)

    async def outlive(self) -> None:
        """Wait for an answer that was written after now, when the load is over."""
        over_s = time.monotonic()
        while self.heard_s <= over_s:
            self._told.clear()
            await self._told.wait()

    @property
    def heard_s(self) -> float:
        """Monotonic: when its latest answer was written."""
        return self._written_s + self._offset_s if self._answers else -inf

    def _judge(self) -> None:
        clause = broken(self.sla, [asked for _, asked in self._seen])
        if clause and not self._loaded:
            raise LabStopped(
                f"its guard {self.sla.text} is broken before any load: {clause}",
                where=self.place,
                remedy="Look at the system first, or loosen the guard",
            )
        if clause:
            raise stopped(self.sla, clause, self.place)

    # ------------------------------------------------------------------ how it is heard

    async def _look_after(self) -> None:
        while True:
            seen = await self.run.look(GUARD)
            if seen is None or seen.started_s is None:
                raise self._lost("does not run any more")
            if seen.exit_code is not None:
                said = f"ended with exit code {seen.exit_code}"
                raise self._lost(said, await self._first_words())
            await asyncio.sleep(POLL_S)

    async def _first_words(self) -> str:
        """Of a program that ended at once; there is no load yet."""
        if not self._last:
            with suppress(LabError):
                said = await self.run.first_line(self.pod, GUARD)
                return said.partition(" ")[2]
        return self._last

    def _lost(self, what: str, last: str = "") -> LabStopped:
        last = last or self._last
        said = f" (its last line: {last[:120]})" if last else ""
        return LabStopped(
            f"its guard {what}{said}; no load is sent without it",
            where=self.place,
            remedy="The image has to hold curl 7.84 or later; see that the API server lets you "
            "read `pods/log`",
        )

    async def _follow(self) -> None:
        while True:
            number = 0
            try:
                lines = self.run.api.log_lines(
                    self.run.job.namespace, self.pod, GUARD, timestamps=True
                )
                async for line in lines:
                    number += line.endswith(b"\n")  # a torn one is told whole when it is read anew
                    if number > self._lines:
                        self._lines = number
                        self._hear(line.decode(errors="replace").strip())
            except ApiRefused as refused:
                if refused.status in (UNAUTHORIZED, FORBIDDEN):
                    raise
            except LabError:
                pass  # the connection broke
            await asyncio.sleep(LOOK_S)

    def _hear(self, line: str) -> None:
        """A line, with its node's time before it."""
        written, _, self._last = line.partition(" ")
        status, _, seconds = self._last.partition(" ")
        try:
            written_s = unix_of(written)
            asked = GuardRequest(float(seconds) * 1e3, 100 <= int(status) < 400)
        except ValueError:
            return  # what is no answer is no sign of life either
        self._offset_s = min(self._offset_s, time.monotonic() - written_s)
        self._written_s = written_s
        self._seen.append((written_s, asked))
        self._answers += 1
        self._told.set()
