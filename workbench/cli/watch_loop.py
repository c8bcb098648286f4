"""The loop behind `watch`: a look each second, what is said of it, and how it ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.chains.drift import Cusum, threshold
from workbench.cli.context import interruptible, put, put_json, say
from workbench.cli.metrics_file import kept_alone
from workbench.cli.watch_learning import Learned, learned
from workbench.cli.watch_reporting import LookReporter
from workbench.computing import computed
from workbench.domain import kpis
from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError, UsageError
from workbench.domain.function_watches import (
    FunctionLook,
    HeldOutRates,
    WatchedFunction,
    badge,
)
from workbench.domain.lab import short_digest
from workbench.domain.parameters import Sla
from workbench.labs.attached.finding import FoundFunction, find
from workbench.labs.attached.live_counters import LiveCounters, busiest_beside

if TYPE_CHECKING:
    from workbench.engine.answers.counter_learning import CountedRows
    from workbench.models.counter_contention import ContentionLook
    from workbench.models.counter_rows import CounterRows
    from workbench.models.counter_watch import CounterLook

AWAITED_S = 60
"""How long a function that is gone is looked for; one that is known by its process ends at once."""
FINDING_S = 10.0
"""For which one look for a function that is gone may take."""
WINDOWS_PER_FALSE_DRIFT = 86_400.0
"""If its counters stayed as far as nine of ten held-out windows are at most, each scattering by
itself; in windows, which take 1 to 4 s each. One side: who comes nearer does not drift."""
SHORTEST_S, LONGEST_S = 1.0, 4.0
"""Of what a look spans: as long as the windows that were learned from, within these."""


@dataclass(frozen=True)
class Orders:
    """What is watched, and how it is told."""

    function: str
    kpi: str
    attached: Attached
    sla: Sla | None
    seconds: int | None
    textfile: Path | None
    json: bool
    session: str = ""
    """Whose samples are learned from; empty: screens are told nothing."""
    image: str = ""
    """Digest of the image that these samples are of; empty: not known."""


async def follow(orders: Orders, counted: CountedRows) -> None:
    """Learn, then look each second until the time is over, the function is gone, or Ctrl-C."""
    found = await find(orders.attached)
    if orders.image and found.image and orders.image != found.image:
        say(
            f"{found.place} runs another image than the one that {orders.session} measured "
            f"({short_digest(found.image)}, measured {short_digest(orders.image)}): what is told "
            "supposes that they behave alike"
        )
    with _metrics_file(orders, found):
        await _follow(orders, counted, found)


@contextmanager
def _metrics_file(orders: Orders, found: FoundFunction) -> Iterator[None]:
    """It is there from before anything is learned, so that one that cannot be written is told at
    once, until the watch ends."""
    if (path := orders.textfile) is None:
        yield
        return
    with kept_alone(path):
        _write(path, _watched(orders, found), FunctionLook(time.time(), why="learning"))
        yield


async def _follow(orders: Orders, counted: CountedRows, found: FoundFunction) -> None:
    live = LiveCounters(found, min(max(counted.window_s, SHORTEST_S), LONGEST_S))
    rows = await _read_here(live, counted)
    say(f"learning from {len(rows.y)} windows and {len(rows.features)} counters")
    with interruptible():
        known = await computed(learned, rows, orders.sla, orders.kpi, live.over_s)
    accuracy = (_origin(orders, counted, found), *known.accuracy)
    for sentence in accuracy:
        say(sentence)
    following = LiveWatch(orders, known, live)
    if orders.session:
        following.reporter = LookReporter(_watched(orders, found, accuracy, known.rates))
    try:
        await following.run()
    finally:
        following.finish()
        if following.reporter is not None:
            await following.reporter.close()


def _write(path: Path, watched: WatchedFunction, look: FunctionLook) -> None:
    """Metrics in Prometheus' text format, whole or not at all."""
    from workbench.engine.watch_metrics import write_look

    try:
        write_look(path, watched, look)
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}", where=str(path), remedy="Choose another"
        ) from None


def _watched(
    orders: Orders,
    found: FoundFunction,
    accuracy: tuple[str, ...] = (),
    rates: HeldOutRates | None = None,
) -> WatchedFunction:
    sla = orders.sla
    return WatchedFunction(
        orders.session, orders.function, orders.kpi, found.place, os.getpid(),
        sla.text if sla else "", sla.limit if sla else None, accuracy, rates,
    )  # fmt: skip


def _origin(orders: Orders, counted: CountedRows, found: FoundFunction) -> str:
    return (
        f"{orders.function} at {found.place}, by {counted.samples} of {counted.of} samples of "
        f"{orders.session or 'its session'}"
    )


async def _read_here(live: LiveCounters, counted: CountedRows) -> CounterRows:
    """The rows over counters that are read here, too; what is left out is said."""
    _read(live)
    await asyncio.sleep(live.over_s)
    seen = _read(live)
    lacking = [name for name in counted.rows.features if name not in seen]
    if lacking:
        reasons: dict[str, list[str]] = {}
        for name in lacking:
            reasons.setdefault(live.missing.get(name, "not read of a running function"), []).append(
                name
            )
        for why, names in reasons.items():
            say(f"learned without {', '.join(names)}: {why}")
    kept = tuple(name for name in counted.rows.features if name in seen)
    if not kept:
        raise LabError(
            "none of the counters that the session has is read here",
            where=live.found.place,
            remedy="Measure on the host on which the function runs, as root",
        )
    return counted.rows.only(kept)


def _read(live: LiveCounters) -> Mapping[str, float]:
    try:
        return live.read()
    except OSError:
        gone = live.found.departure() or "its counters cannot be read"
        raise LabError(gone, where=live.found.place) from None


@dataclass
class LiveWatch:
    """One watch: what it has seen so far, and its alarm."""

    orders: Orders
    learned: Learned
    live: LiveCounters
    reporter: LookReporter | None = None
    """Tells screens; None: nobody is told."""
    looks: int = 0
    silent: int = 0
    _drift: Cusum = field(default_factory=lambda: Cusum(threshold(WINDOWS_PER_FALSE_DRIFT, 1)))
    _began_s: float = field(default_factory=time.monotonic)
    _began_cpu_s: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        from workbench.models.counter_watch import Alarm

        self.alarm, self.contention = Alarm(), Alarm()
        self.drifted = self._unwritten = False
        self._naming: asyncio.Task[None] | None = None

    async def run(self) -> None:
        due_s = time.monotonic()
        while self.orders.seconds is None or self.looks < self.orders.seconds:
            due_s = max(due_s + 1.0, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())
            if gone := self.live.found.departure():
                await self._again(gone)
                continue
            await self._look()

    async def _look(self) -> None:
        """One look, told to everybody."""
        try:
            seen = self.live.read()
        except OSError as error:  # it ended this instant, or a file is refused
            await self._tell_nothing(f"its counters cannot be read: {error.strerror or error}")
            return
        look, beside = self._answer(seen), self._beside(seen)
        known = self.contention.raised
        self._take(look, beside)
        if self.contention.raised and not known:
            self._naming = asyncio.create_task(self._name_others())
        if self.reporter is not None:
            await self.reporter.tell(self._reported(look, beside))

    async def _name_others(self) -> None:
        """Who is busy while others slow the function; whether it is they is not known."""
        try:
            names = await busiest_beside(self.live.found)
        except (OSError, ValueError) as error:
            self._note(f"who is busiest cannot be read: {error}")
            return
        if names:
            self._note(f"busiest beside {self.orders.function} meanwhile: {', '.join(names)}")

    async def _again(self, gone: str) -> None:
        """Wait until the function is there again. Raises `LabError` where it is not."""
        place = self.live.found.place
        self._note(f"{place}: {gone}")
        waits = 0 if self.orders.attached.found_by == "pid" else AWAITED_S
        for _ in range(waits):
            await self._tell_nothing(gone)
            await asyncio.sleep(1.0)
            try:
                async with asyncio.timeout(FINDING_S):
                    found = await find(self.orders.attached)
            except (LabError, TimeoutError):
                continue
            if found.image != self.live.found.image:
                raise LabError(
                    "another image runs there now, of which nothing was learned",
                    where=found.place,
                    remedy="Measure it, and watch it with that session",
                )
            self.live = LiveCounters(found, self.live.over_s)
            self._note(f"{found.place} runs again as process {found.pid}: the watch goes on")
            return
        raise LabError(
            f"{gone}" + (f", and it did not come back within {waits} s" if waits else ""),
            where=place,
            remedy="Start it, and watch it again",
        )

    async def _tell_nothing(self, why: str) -> None:
        """A look without an answer: an old figure is none, and an alarm does not outlive it."""
        from workbench.models.counter_contention import ContentionLook
        from workbench.models.counter_watch import CounterLook

        self.live.spanned_s = None
        look, beside = CounterLook(why=why), ContentionLook(why=why)
        self._take(look, beside)
        if self.reporter is not None:
            await self.reporter.tell(self._reported(look, beside))

    def _answer(self, seen: Mapping[str, float]) -> CounterLook:
        if seen:
            return self.learned.model.look(seen, self.live.missing)
        from workbench.models.counter_watch import CounterLook

        return CounterLook(why=f"it has not been watched for {self.live.over_s:g} s yet")

    def _beside(self, seen: Mapping[str, float]) -> ContentionLook:
        from workbench.models.counter_contention import ContentionLook

        test = self.learned.test
        return test.look(seen) if test is not None and seen else ContentionLook()

    def _take(self, look: CounterLook, beside: ContentionLook) -> None:
        self.looks += 1
        self.silent += look.value is None
        function, sla = self.orders.function, self.orders.sla
        if sla is not None and self.alarm.look(look.held(sla, self.alarm.raised)):
            state = "is predicted to break" if self.alarm.raised else "holds again"
            if self.alarm.withdrawn:
                state = f"is without an answer ({look.why}), and no longer predicted to break"
            self._note(f"alarm: {function} {state} {sla.text}")
        if self.contention.look(None if beside.contended is None else not beside.contended):
            self._note(f"alarm: {function} {self._turn(look, beside)}")
        self._watch_drift(look)
        self._say(look, beside)
        if (path := self.orders.textfile) is not None:
            self._write_again(path, self._reported(look, beside))

    def _write_again(self, path: Path, look: FunctionLook) -> None:
        """A disk that is full for a while ends no watch: it is said once, and tried again."""
        try:
            _write(path, _watched(self.orders, self.live.found, (), self.learned.rates), look)
            self._unwritten = False
        except UsageError as error:
            if not self._unwritten:
                self._unwritten = True
                self._note(str(error))

    def _note(self, text: str) -> None:
        """A change, for those who read along and those at a screen."""
        say(f"{_clock()} {text}")
        if self.reporter is not None:
            self.reporter.note(text)

    def _reported(self, look: CounterLook, beside: ContentionLook) -> FunctionLook:
        sla = self.orders.sla
        return FunctionLook(
            time.time(), look.value, look.low, look.high, look.why,
            self.alarm.raised if sla is not None else None,
            self.contention.raised if self.learned.test is not None else None,
            beside.why, self.drifted, beside.times,
            look.breach(sla) if sla is not None else None,
        )  # fmt: skip

    def _turn(self, look: CounterLook, beside: ContentionLook) -> str:
        if self.contention.withdrawn:
            return f"may or may not compete with others' load now: {beside.why}"
        if not self.contention.raised:
            return f"no longer competes with others' load: {beside.why}"
        leaves = "" if look.value is not None else "; its counters leave what was learned"
        return f"competes with others' load: {beside.why}{leaves}"

    def _watch_drift(self, look: CounterLook) -> None:
        # Looks overlap; every whole window counts once.
        far = self.learned.model.strayed(look)
        if far is None or self.looks % max(1, round(self.live.over_s)):
            return
        if self._drift.add(far) and not self.drifted:
            self.drifted = True
            self._note(
                f"drift: the counters of {self.orders.function} have been far from what was "
                "learned for a while; measure it again"
            )

    def _say(self, look: CounterLook, beside: ContentionLook) -> None:
        kpi, told_look = kpis.of(self.orders.kpi), self._reported(look, beside)
        if self.orders.json:
            put_json(self.plain(told_look, beside))
            return
        told = f"? ({look.why})"
        if look.value is not None:
            told = f"{look.value:.4g} {kpi.unit} ({look.low:.4g} to {look.high:.4g})"
        sla = self.orders.sla.text if self.orders.sla else ""
        mark = f"  {badge('predicted to break')} {sla}" if self.alarm.raised else ""
        if told_look.unsure:
            mark = f"  {badge('may break')} {sla} ({told_look.breach:.0%})"
        if self.contention.raised:
            mark += "  " + badge("others' load") + f": {beside.why}"
        put(f"{_clock()}  {kpi.short} {told}{mark}")

    def plain(self, look: FunctionLook, beside: ContentionLook) -> dict[str, Any]:
        span_s = self.live.spanned_s
        return {
            "at": round(look.at, 3),
            "window_s": None if span_s is None else round(span_s, 3),
            "function": self.orders.function,
            "kpi": self.orders.kpi,
            "value": look.value,
            "low": look.low,
            "high": look.high,
            "why": look.why,
            "state": look.state,
            "alarm": look.alarm,
            "breach": look.breach,
            "contention": look.contention,
            "contended": beside.contended,
            "times": beside.times,
            "sign": beside.why,
            "drift": look.drifted,
            "held_out": asdict(self.learned.rates),
        }

    def finish(self) -> None:
        """What the watch was and cost."""
        if self._naming is not None:
            self._naming.cancel()
        seconds = max(1e-3, time.monotonic() - self._began_s)
        share = (time.process_time() - self._began_cpu_s) / seconds
        say(
            f"{self.looks} looks, {self.silent} of them without an answer; the watch took "
            f"{share:.2%} of a core"
        )


def _clock() -> str:
    return time.strftime("%H:%M:%S")
