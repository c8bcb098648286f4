"""Who measures which shard: one at a time on each host, each shard once.

Dask is asked who is there, and carries orders. A shard stays with the host that began it as long as
that may come back; a host that comes back is first asked what it has finished, held or not.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench import __version__
from workbench.domain import codec
from workbench.domain.counts import counted
from workbench.domain.durations import duration
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import STARTED_ELSEWHERE, LabHost, ShardOrder, ShardResult
from workbench.engine.sessions.clock import now
from workbench.fleet import tasks
from workbench.fleet.dispatched import Gathered
from workbench.fleet.fetched_bundles import NotFetched, NotStoredHere, NotWhole, store_fetched
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.hearing import Hearing
from workbench.fleet.host_doubts import REST_S, HostDoubts
from workbench.fleet.host_engine import lab_of
from workbench.fleet.host_waits import hear_waits
from workbench.fleet.ledger import Ledger, LedgerLine
from workbench.fleet.named_scheduler import ANSWER_S, workers_of
from workbench.log import logger
from workbench.store.bundle import is_whole

if TYPE_CHECKING:
    from distributed import Client, Future

TICK_S = 0.2
RETURN_S = 120.0
"""How long a shard waits for the host that began it, once that is gone: longer than a keeper pauses
before it starts a worker again (`keeper.LONGEST_PAUSE_S`), reaches it (`remote_shell.CONNECT_S`)
and has it checked (`lab_checks.CHECKING_S`). It may have finished the shard, and nobody but itself
can say so; others have other shards to measure meanwhile. What is meant for a host that waits for
its turn waits as long.
"""
ABSENT_S = 180.0
"""How long a fleet may be without any host."""
TRIES = 3
"""Hosts on which a shard may fail before it is set aside, or all that the fleet has; those that
fail whatever they are given do not count."""
KEPT_PAUSE_S = 30.0
"""Before a host is asked again for a shard that it has measured and that could not be had."""
KEPT_S = 120.0
"""For how long that is tried once nothing else is left."""
OWN_TRIES, OWN_PAUSE_S = 3, 30.0
"""How often a host tries what no other can measure for it, and after which pause: its own anchor
points, before which it measures nothing else, and points that were planned for it."""
MOST_NAMED = 3
"""Configurations that are named of a shard."""
STOPPING_S = 30.0
SENDING_S = 600.0
"""How long a host may take to send a piece of a bundle, 16 MiB at most, once it measures nothing:
its disk may hang."""
CLOCK_OFF_S = 2.0
"""By less the clocks of hosts may differ without a word."""

log = logger("fleet")
Tell = Callable[[str], None]


class SchedulerLost(FleetError):
    """The fleet's own process ended while a campaign was measured."""


class HostLost(Exception):
    """The host of a task is gone."""


@dataclass
class OpenShard:
    """A shard that is not measured: which host has begun it, and where it failed."""

    order: ShardOrder
    host: str = ""
    """That has begun it, and may have finished it; empty: none."""
    bound: str = ""
    """The host that alone may measure it; empty: any."""
    meant_for: str = ""
    """A host that is to begin it, which is waited for where it comes late; empty: any."""
    failures: dict[str, str] = field(default_factory=dict)
    tries: int = 0
    """How often it failed on the host whose own it is."""
    kept: WorkbenchError | None = None
    """Why it is not here, though `host` has measured it: no other host measures it again."""
    again: float = 0.0
    """When that is tried again."""
    result: ShardResult | None = None
    """What `host` said of it then."""
    is_damaged: bool = False
    """Whether its bundle is: `host`, which has the session, exports it again."""
    wall_s: float = 0.0
    alone: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)
    """Two hosts may have it: one bundle is fetched at a time."""

    def __str__(self) -> str:
        """What is missing of it, and why."""
        shard = self.order.shard
        why = next(iter(self.failures.values()), "no host has begun it")
        return f"{shard.target} {', '.join(shard.configurations)}: {why}"

    def give_to(self, host: str) -> None:
        """Forget what another one has of it, which is lost."""
        if self.host != host:
            self.kept, self.result, self.wall_s = None, None, 0.0

    @property
    def named(self) -> str:
        """Its target and the first of its configurations."""
        shard = self.order.shard
        more = len(shard.configurations) - MOST_NAMED
        first = ", ".join(shard.configurations[:MOST_NAMED])
        return f"{shard.target} {first}" + (f" and {more} more" if more > 0 else "")


@dataclass
class Hand:
    """A host that is there."""

    name: str
    address: str
    waiting: OpenShard | None = None
    task: asyncio.Task[None] | None = None
    asked: bool = False
    """Whether it has said what it has finished."""
    began: float = 0.0
    """Seconds since the epoch when it was given what it measures."""
    waits_since: float | None = None
    """Since when it waits for its turn there, or is asked what it has finished, by the loop's
    clock; None: it does neither."""
    waits_for: str = ""
    """Who measures there before it may, or may say what it has, as words; empty: nobody that is
    known."""
    asked_at: float = math.inf
    """When it was asked what it has finished, or said last whom it measures for first, by the
    loop's clock; infinite: it has answered, or was not asked yet."""
    ahead_s: float = 0.0
    """By how much its clock is ahead of this host's, at least; negative: behind."""
    losses: int = 0
    """How often what it measured was lost in a row, though its worker stayed."""

    def waited_s(self, now: float) -> float:
        """For how long it has waited so, seconds; somebody else may have the host for hours."""
        return now - self.waits_since if self.waits_since is not None else 0.0


class Dispatch:
    """Hands shards to hosts until all are measured or set aside.

    Parameters
    ----------
    client : of the fleet's scheduler.
    orders : shards that any host may measure.
    own : shards that one host is to measure, by its name; it begins with them.
    ledger : what is known of who began and finished what, of runs before as well.

    Attributes
    ----------
    hosts : of the fleet, by name; who else is at the scheduler is none of ours.
    share : hosts that may measure at the same time, without those that wait for too long for their
        turn there; None: all that are there.
    held : hosts that are to be given nothing now, with the reason.
    told_held : those as of the last look.
    queued : whether a host is to come that Slurm has in its queue, however long.
    in_rounds : whether more is planned from what this comes to: as soon as any of it is measured,
        it ends without what hosts wait for too long for their turn to measure.
    passed : by key of a shard that it ended without, the host that waits.
    unsteady : hosts that disagree with themselves by what is gathered, with the reason; asked in a
        thread whenever something was gathered since, and given nothing more from then on.
    gathered : by key.
    set_aside : shards that failed on every host that tried, with the failures by host.
    cut_short : by key, of shards that are gathered and not whole, what is missing and why.
    """

    def __init__(
        self,
        client: Client,
        orders: Sequence[ShardOrder],
        own: Mapping[str, ShardOrder],
        ledger: Ledger,
        tell: Tell,
    ) -> None:
        self._client, self._ledger, self._tell = client, ledger, tell
        self._hearing = Hearing()
        self._waiting = [OpenShard(order) for order in orders]
        self._own = {name: OpenShard(order) for name, order in own.items()}
        self._hands: dict[str, Hand] = {}
        self._stopping = False
        self.told_held: dict[str, str] = {}
        every = (*self._waiting, *self._own.values())
        self._known = {waiting.order.shard.key for waiting in every}
        self._unfit: dict[str, str] = {}
        self._only_asked: set[str] = set()
        """Of these, hosts that hand over what they have and measure nothing more, as their own
        deployments disagree or their lab cannot."""
        self._doubts = HostDoubts()
        self._began = 0.0
        self._seen: dict[str, float] = {}
        """When each host was there last."""
        self._held_at: dict[str, float] = {}
        """When each was held last: what it alone may measure waits for it."""
        self._asks_lost: dict[str, int] = {}
        """How often each went away while it was asked, in a row."""
        self._told_silent: set[str] = set()
        self._stuck_at = self._kept_at = 0.0
        self._judged = 0
        self._before = 0
        """How many shards another one had gathered and set aside."""
        self._passed: set[str] = set()
        """Hosts that the round before ended without, until they have their turn."""
        self.in_rounds = False
        self.passed: dict[str, str] = {}
        self.hosts: Mapping[str, LabHost] = {}
        self.share: int | None = None
        self.held: Callable[[], Mapping[str, str]] = dict
        self.queued: Callable[[], bool] = lambda: False
        self.unsteady: Callable[[Mapping[str, Gathered]], Mapping[str, str]] = lambda _: {}
        self.gathered: dict[str, Gathered] = {}
        self.set_aside: dict[str, OpenShard] = {}
        self.cut_short: dict[str, str] = {}

    def bind(self, hosts: Mapping[str, str]) -> None:
        """Shards, by key, that go to this host and no other: where it does not come back they are
        set aside."""
        for waiting in self._waiting:
            waiting.bound = hosts.get(waiting.order.shard.key, "")

    def mean_for(self, hosts: Mapping[str, str]) -> None:
        """Shards, by key, that are better begun by this host; where it is not there within
        `RETURN_S`, or does something else, any other begins them."""
        for waiting in self._waiting:
            waiting.meant_for = hosts.get(waiting.order.shard.key, "")

    def carry_on(self, before: Dispatch) -> None:
        """Count what another one has gathered and set aside for the same campaign; a host that is
        given nothing there is given nothing here."""
        self.gathered |= before.gathered
        self.set_aside |= before.set_aside
        self._doubts, self._unfit, self._only_asked = (
            before._doubts,
            before._unfit,
            before._only_asked,
        )
        self._known |= before._known
        self.told_held = dict(before.told_held)
        self._before = len(self.gathered) + len(self.set_aside)
        self._passed = set(before.passed.values()) | before._passed
        for host in self._unfit.keys() & self._own.keys():
            del self._own[host]

    @property
    def _left(self) -> bool:
        now = asyncio.get_running_loop().time()
        return bool(self._to_come(now) or self._under_way(now))

    def _to_come(self, now: float) -> list[OpenShard]:
        """What it does not end without, but for what is under way."""
        needless = {hand.name for hand in self._needless(now)}
        late = {id(waiting) for waiting, _ in self._late(now)}
        hosts = self._hands.keys() - self.told_held.keys() - needless
        own = [w for host, w in self._own.items() if host in hosts]
        return [w for w in self._waiting if id(w) not in late] + own

    def _under_way(self, now: float) -> list[OpenShard]:
        """What hosts measure or are asked for, but for those whose turn there is not waited for."""
        needless = {hand.name for hand in self._needless(now)}
        late = {id(waiting) for waiting, _ in self._late(now)}
        busy = {hand.name: hand.waiting for hand in self.hands if hand.waiting is not None}
        return [w for host, w in busy.items() if host not in needless and id(w) not in late]

    def _needless(self, now: float) -> list[Hand]:
        """Hosts that wait for too long for their turn to measure what is their own, by which
        nothing would be compared: of them nothing else is measured."""
        late = [
            hand
            for hand in self.hands
            if (own := self._own.get(hand.name)) is not None
            and (hand.waiting is None or hand.waiting is own)
            and hand.waited_s(now) >= RETURN_S
        ]
        have = {gathered.result.host for gathered in self.gathered.values()} if late else set()
        return [hand for hand in late if hand.name not in have or _is_silent(hand, now)]

    def _speaking(self) -> list[Hand]:
        """Hosts that are there and say what they have, or why they do not yet."""
        now = asyncio.get_running_loop().time()
        return [hand for hand in self.hands if not _is_silent(hand, now)]

    def _late(self, now: float) -> list[tuple[OpenShard, str]]:
        """What a round goes on without, and the host that waits for too long to measure it."""
        if not self.in_rounds or len(self.gathered) + len(self.set_aside) == self._before:
            return []  # it would go on with nothing
        late = {
            hand.name: hand.waiting
            for hand in self.hands
            if hand.waited_s(now) >= RETURN_S or hand.name in self._passed
        }
        found = [(w, w.bound) for w in self._waiting if w.bound in late]
        found += [
            (waiting, host)
            for host, waiting in late.items()
            if waiting is not None and waiting is not self._own.get(host)
        ]
        return found

    @property
    def hands(self) -> tuple[Hand, ...]:
        """The hosts that are there."""
        return tuple(self._hands.values())

    @property
    def total(self) -> int:
        """Shards, anchor points included."""
        return len(self._known)

    @property
    def unbegun(self) -> tuple[ShardOrder, ...]:
        """What no host measures now and somebody has to."""
        busy = {id(hand.waiting) for hand in self._hands.values()}
        open_ = (*self._own.values(), *self._waiting)
        return tuple(each.order for each in open_ if id(each) not in busy)

    def missing(self, orders: Sequence[ShardOrder]) -> list[str]:
        """Of these, what was not measured, and why."""
        return [
            self.cut_short.get(order.shard.key)
            or str(self.set_aside.get(order.shard.key) or OpenShard(order))
            for order in orders
            if order.shard.key not in self.gathered or order.shard.key in self.cut_short
        ]

    async def run(self) -> None:
        """Until nothing is left.

        Raises `FleetError` where no host is there any more, or nothing is left but what hosts have
        measured and this host cannot store, or has to have before more is planned.
        """
        loop = asyncio.get_running_loop()
        await self._recall()
        seen_at = self._began = self._stuck_at = self._kept_at = loop.time()
        try:
            while self._left or not self._hands:
                present = await self._present()
                self._note(present)
                late = loop.time() - seen_at > ABSENT_S
                if self._speaking() or (late and self.queued()):
                    seen_at = loop.time()
                elif late:
                    silent = ", or said what it has finished," if self._hands else ""
                    raise FleetError(
                        f"no host was there{silent} for {ABSENT_S:g} s",
                        remedy="See `workbench fleet status`; what was measured is kept, and the "
                        "same command goes on",
                    )
                self._hear_held()
                self._seen |= dict.fromkeys(self._hands, loop.time())
                self._held_at |= dict.fromkeys(self.told_held, loop.time())
                await self._judge()
                self._tell_who_is_silent(loop.time())
                self._employ_all(loop.time())
                self._give_up_bound(loop.time())
                self._give_up(loop.time())
                self._give_up_kept(loop.time())
                await asyncio.sleep(TICK_S)
            self._tell_who_is_left(loop.time())
        finally:
            await self._stop()

    def _tell_who_is_left(self, now: float) -> None:
        """Who is not waited for any more."""
        for hand in self._needless(now):
            self._tell(
                f"{hand.name} still waits for its turn there and has measured nothing here: "
                "it is not waited for"
            )
        self.passed = {waiting.order.shard.key: host for waiting, host in self._late(now)}
        for host in dict.fromkeys(self.passed.values()):
            if host not in self._passed:
                self._tell(f"{host} still waits for its turn there: the rounds go on without it")

    async def _recall(self) -> None:
        """What earlier runs have finished counts; what a host had begun waits for it."""
        for waiting in (*self._own.values(), *self._waiting):
            found = await asyncio.to_thread(self._ledger.recalled, waiting.order)
            if found is not None:
                self._count(waiting, found)
                continue
            host = waiting.bound or self._ledger.begun.get(waiting.order.shard.key, "")
            if host in self.hosts:  # one that was taken off the hosts file does not come back
                waiting.host = host

    async def _present(self) -> dict[str, str]:
        """Addresses of the hosts that are there, by name."""
        try:
            known = await workers_of(self._client, self._hearing)
        except TimeoutError:  # it may still be there
            raise SchedulerLost(f"its scheduler did not answer within {ANSWER_S:g} s") from None
        except OSError as error:
            raise SchedulerLost(f"its scheduler is gone: {error}") from None
        return {name: address for name, address in known.items() if name in self.hosts}

    def _note(self, present: Mapping[str, str]) -> None:
        for name, hand in list(self._hands.items()):
            if present.get(name) != hand.address:
                del self._hands[name]
                if hand.task is not None:
                    hand.task.cancel()
                    self._asks_lost[name] = self._asks_lost.get(name, 0) + (not hand.asked)
                waits = ""
                if hand.waiting is not None:
                    waits = f"; {hand.waiting.named} waits {RETURN_S:g} s for it"
                    self._wait_for(hand, hand.waiting)
                self._tell(f"{name} is gone{waits}")
        for name, address in present.items():
            if name not in self._hands:
                now = asyncio.get_running_loop().time()
                self._hands[name] = Hand(name, address, waits_since=now)

    def _hear_held(self) -> None:
        held = dict(self.held())
        for name, why in held.items():
            if self.told_held.get(name) != why:
                self._tell(f"{name} is given nothing: {why}")
        for name in self.told_held.keys() - held.keys():
            self._tell(f"{name} is free again")
        self.told_held = held

    async def _judge(self) -> None:
        """Take hosts out of service that disagree with themselves; what they measured stays."""
        if len(self.gathered) == self._judged:
            return
        self._judged = len(self.gathered)
        found = await asyncio.to_thread(self.unsteady, dict(self.gathered))
        for host, why in found.items():
            if host in self.hosts and host not in self._unfit:
                self._unusable(host, f"disagrees with itself: {why}")
                self._only_asked.add(host)

    def _give_up(self, now: float) -> None:
        """Set aside what failed on as many hosts as are asked; once nobody measures any more, also
        what failed on all that are there, when others have had time to come back."""
        for waiting in [each for each in self._waiting if self._has_failed(each)]:
            self._put_aside(waiting)
        stuck = [w for w in self._waiting if self._is_stuck(w) and not self._may_be_had(w, now)]
        if not stuck:
            self._stuck_at = now
        for waiting in stuck:
            speak = {hand.name for hand in self._speaking()}
            tried = speak | self._unfit.keys() | waiting.failures.keys()
            if self.hosts.keys() <= tried or now - self._stuck_at >= RETURN_S:
                waiting.failures |= self._unfit
                self._put_aside(waiting)

    def _tell_who_is_silent(self, now: float) -> None:
        for hand in self.hands:
            if _is_silent(hand, now) and hand.name not in self._told_silent:
                self._told_silent.add(hand.name)
                self._tell(
                    f"{hand.name} has not said for {RETURN_S:g} s what it has finished, and "
                    "measures nothing: others may measure what it had begun"
                )

    def _is_stuck(self, waiting: OpenShard) -> bool:
        """Whether nobody measures, and no host that is there can be given it any more; what is
        measured and only asked for again is not waited for."""
        busy = [hand.waiting for hand in self.hands if hand.waiting is not None]
        if any(each.kept is None for each in busy):
            return False
        speak = {hand.name for hand in self._speaking()}
        return bool(speak) and speak <= waiting.failures.keys() | self._unfit.keys()

    def _may_be_had(self, waiting: OpenShard, now: float) -> bool:
        """Whether a host that is given nothing more may have it, and say so."""
        return waiting.host in self._only_asked and not self._is_free(waiting, now)

    def _has_failed(self, waiting: OpenShard) -> bool:
        """Whether it failed on as many hosts as are asked, by no fault of theirs."""
        tried = waiting.failures.keys()
        against = tried - self._doubts.of(self._able | tried)
        most = min(TRIES, len(self.hosts.keys() - self._unfit.keys()))
        return len(against) >= max(1, most)

    def _put_aside(self, waiting: OpenShard) -> None:
        self._waiting = [each for each in self._waiting if each is not waiting]
        self.set_aside[waiting.order.shard.key] = waiting
        self._tell(f"{waiting.named} is set aside: {next(iter(waiting.failures.values()))}")

    def _give_up_bound(self, now: float) -> None:
        """Set aside what is bound to a host that may not measure, or that did not come back. A
        host that somebody holds, or that measures for another campaign first, is waited for."""
        for waiting in [each for each in self._waiting if each.bound]:
            host, is_known = waiting.bound, waiting.bound in self.hosts
            away_s = min(self._away_s(host, now), now - self._held_at.get(host, self._began))
            hand = self._hands.get(host)
            silent = hand is not None and _is_silent(hand, now)
            is_away = silent or away_s >= RETURN_S
            if not is_known or host in self._unfit or is_away:
                self._waiting.remove(waiting)
                why = "is gone" if is_known else "is in the hosts file no more"
                if silent:
                    why = "does not say what it has finished"
                waiting.failures[host] = self._unfit.get(host, why)
                self.set_aside[waiting.order.shard.key] = waiting

    def _away_s(self, host: str, now: float) -> float:
        """For how long it has been gone, seconds."""
        return now - self._seen.get(host, self._began)

    def _give_up_kept(self, now: float) -> None:
        """End it where nothing is left but what hosts have measured and cannot be had."""
        left, busy = self._to_come(now), self._under_way(now)
        able = self._able | self._handing
        either = left + busy
        if not either or any(w.kept is None or w.host not in able for w in either):
            self._kept_at = now
        if now - self._kept_at < KEPT_S or busy:
            return
        for waiting in left:
            error = waiting.kept
            # Planned points that are set aside are measured again, with all that they go on with.
            if error is not None and (isinstance(error, NotStoredHere) or waiting.bound):
                raise FleetError(
                    f"{counted(len(left), 'shard')} measured and not here: {error.what}",
                    where=error.where,
                    remedy="Make room there; the hosts keep what they measured, and the same "
                    "command goes on",
                )
        for waiting in left:
            host = waiting.host
            waiting.failures[host] = f"measured on {host} and not here: {waiting.kept}"
            self._own.pop(host, None)
            self._put_aside(waiting)

    def _wait_for(self, hand: Hand, waiting: OpenShard) -> None:
        """Put back what a host has begun, for that host until it has been away for too long."""
        hand.waiting, hand.asked = None, False
        hand.waits_since = asyncio.get_running_loop().time()
        waiting.host, waiting.result = hand.name, None
        known = (*self._own.values(), *self._waiting)
        if waiting.order.shard.key not in self.gathered and not any(w is waiting for w in known):
            self._waiting.insert(0, waiting)

    @property
    def out(self) -> dict[str, str]:
        """Hosts that are given nothing because of what came of them here, with the reason."""
        resting = self._doubts.resting(self._able, asyncio.get_running_loop().time())
        failed = {host: counted(self._doubts.row(host), "shard") for host in resting}
        rests = {host: f"rests: {many} failed there in a row" for host, many in failed.items()}
        return rests | self._unfit

    @property
    def given(self) -> set[str]:
        """Hosts that are there and are given what is left."""
        return self._able - self.out.keys()

    @property
    def _able(self) -> set[str]:
        """Hosts that are there and may be given something, those that rest among them."""
        return set(self._hands.keys() - self._unfit.keys() - self.told_held.keys())

    @property
    def _handing(self) -> set[str]:
        """Hosts that are there, are given nothing more and hand over what they have measured."""
        return self._only_asked & self._hands.keys() - self.told_held.keys()

    def _employ_all(self, now: float) -> None:
        """Those first that have failed least: they tell a bad shard from a bad host."""
        able = self._able
        able -= self._doubts.resting(able, now)
        able |= self._handing
        for hand in sorted(self._hands.values(), key=lambda hand: self._doubts.row(hand.name)):
            if hand.task is not None or hand.name in self._unfit.keys() - self._only_asked:
                continue
            if not hand.asked:
                hand.task = asyncio.create_task(self._ask(hand))
            elif hand.name in able:
                self._employ(hand, now)

    def _employ(self, hand: Hand, now: float) -> None:
        # One that waits for its turn for hours keeps no other idle.
        busy = [w for w in self.hands if w.waiting is not None and w.waited_s(now) < RETURN_S]
        if self.share is not None and len(busy) >= self.share:
            return
        own = self._own.get(hand.name)
        if own is not None and now < own.again:
            if own.kept is None:  # without them what it measures cannot be compared
                return
            own = None
        waiting = own or self._next(hand.name, now)
        if waiting is None:
            return
        if waiting is not own:
            self._waiting.remove(waiting)
        waiting.give_to(hand.name)
        hand.waiting, hand.began = waiting, time.time()
        hand.task = asyncio.create_task(self._measure(hand, waiting))

    def _next(self, host: str, now: float) -> OpenShard | None:
        """What a host is to measure: what it began, else what waits for nobody else; of one that is
        given nothing more, what it is to hand over."""
        fit = [w for w in self._waiting if host not in w.failures and w.bound in ("", host)]
        mine = [w for w in fit if w.host == host and now >= w.again]
        if host in self._only_asked:
            return next((w for w in mine if w.kept is not None), None)
        begun = next(iter(mine), None)
        free = [w for w in fit if self._is_free(w, now)]
        own = next((w for w in free if w.meant_for == host), None)
        return begun or own or next((w for w in free if not self._is_awaited(w, now)), None)

    def _is_awaited(self, waiting: OpenShard, now: float) -> bool:
        """Whether the host that it is meant for may still come, or come to it."""
        host = waiting.meant_for
        if host not in self.hosts or host in self._unfit or host in self.told_held:
            return False
        if self._asks_lost.get(host, 0) >= TRIES:
            return False
        hand = self._hands.get(host)
        if hand is None:
            return self._away_s(host, now) < RETURN_S
        if host in waiting.failures or host in self._doubts.resting(self._able, now):
            return False
        if hand.waited_s(now) >= RETURN_S:
            return False
        return hand.waiting is None or hand.waiting is self._own.get(host)

    def _is_free(self, waiting: OpenShard, now: float) -> bool:
        """Whether it waits for no host: the one that began it cannot go on, and has said that it
        has not finished it, or has been away for too long."""
        host = waiting.host
        if not host or host in self._unfit.keys() - self._only_asked:
            return True
        if self._asks_lost.get(host, 0) >= TRIES:
            return True
        hand = self._hands.get(host)
        if hand is None:
            return self._away_s(host, now) >= RETURN_S
        if waiting.kept is not None:
            return False
        if not hand.asked:
            return _is_silent(hand, now)
        able = self._able
        return hand.task is not None or host not in able - self._doubts.resting(able, now)

    async def _ask(self, hand: Hand) -> None:
        """What a host has finished of what is not gathered yet."""
        try:
            await self._hear_finished(hand)
            await self._see_lab(hand)
            hand.asked = True
            hand.waits_since = None
            self._asks_lost.pop(hand.name, None)
        except HostLost:
            self._asks_lost[hand.name] = self._asks_lost.get(hand.name, 0) + 1
            log.info("host lost while it was asked", host=hand.name)
        except WorkbenchError as error:
            self._unusable(hand.name, str(error))
        except Exception as error:  # else it would be asked again for ever
            log.error("a host's answer cannot be used", host=hand.name, exc_info=error)
            self._unusable(hand.name, f"answers what cannot be used ({type(error).__name__})")
        finally:
            hand.task = None

    async def _hear_finished(self, hand: Hand) -> None:
        """Gather what it has finished. Raises `HostLost`, `FleetError`."""
        hand.asked_at = asyncio.get_running_loop().time()
        try:
            async with self._hearing_waits(hand, "", self._hear_busy):
                await self._post(hand)
                await self._compare_clocks(hand)
                begun = [other.waiting for other in self._hands.values()]
                open_ = [*self._waiting, *filter(None, [self._own.get(hand.name), *begun])]
                # Of planned points a finished session does not say whether it has them.
                keys = {w.order.session: w.order.shard.key for w in open_ if not w.order.points}
                said = await self._remote(hand, tasks.find_shards, codec.dumps(keys))
        finally:
            hand.asked_at = math.inf  # a bundle may take its time
        for each in codec.loads(said):
            result = codec.from_plain(each, ShardResult)
            waiting = next((w for w in open_ if w.order.shard.key == result.key), None)
            if waiting is not None and result.key not in self.gathered:
                await self._gather_found(hand, waiting, result)

    @asynccontextmanager
    async def _hearing_waits(
        self, hand: Hand, session: str, heard: Callable[[Hand, str], None]
    ) -> AsyncIterator[None]:
        """Hear meanwhile whom a host waits for before it does what it was asked to."""
        waits = asyncio.create_task(
            hear_waits(self._client, hand.address, session, lambda who: heard(hand, who))
        )
        try:
            yield
        finally:
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
            hand.waits_for = ""

    def _hear_busy(self, hand: Hand, who: str) -> None:
        """What a worker measures before it answers what it is asked; empty: nothing."""
        if hand.waits_for != who:
            hand.asked_at = asyncio.get_running_loop().time()
            if who:
                self._tell(f"{hand.name} answers once it has measured {who}")
        hand.waits_for = who

    async def _gather_found(self, hand: Hand, waiting: OpenShard, result: ShardResult) -> None:
        """What cannot be gathered now stays open: it is asked of the host as any other shard, which
        has it at once, and where that fails again it has failed there."""
        try:
            await self._gather(hand, waiting, result)
            hand.losses = 0
            others = [other for other in self._hands.values() if other.waiting is waiting]
            if others:
                self._tell(f"{waiting.named} was finished on {hand.name}: no other goes on with it")
                await self._have_stop(others)
        except (NotFetched, NotStoredHere) as error:
            if not any(other.waiting is waiting for other in self._hands.values()):
                waiting.give_to(hand.name)
                waiting.result = result
                self._keep(hand.name, waiting, error)
        except (WorkbenchError, OSError) as error:
            log.warning("shard not gathered", host=hand.name, shard=result.key, why=str(error))

    async def _post(self, hand: Hand) -> None:
        """See that a worker that was started elsewhere has this version. Raises `FleetError`."""
        host = self.hosts[hand.name]
        if host.kind in STARTED_ELSEWHERE:
            said = await self._remote(hand, tasks.be_posted, codec.dumps(codec.to_plain(host)))
            if said != __version__:
                raise FleetError(
                    f"has workbench {said}, this is {__version__}; install the same there",
                    where=hand.name,
                )

    async def _see_lab(self, hand: Hand) -> None:
        """Give a host nothing where the campaign's lab cannot measure there. It has handed over
        what it has before. Raises `HostLost`, `FleetError`."""
        host = self.hosts[hand.name]
        orders = [each.order for each in (*self._own.values(), *self._waiting)]
        if host.kind == "simulated" or hand.name in self._unfit or not orders:
            return
        lab = lab_of(host, orders[0].lab) or "docker"
        hand.asked_at = asyncio.get_running_loop().time()
        try:
            async with self._hearing_waits(hand, "", self._hear_busy):
                why = await self._remote(hand, tasks.see_lab, lab)
        finally:
            hand.asked_at = math.inf
        if why:
            self._unusable(hand.name, why)
            self._only_asked.add(hand.name)

    def _unusable(self, host: str, why: str) -> None:
        """Give a host nothing for as long as this campaign runs."""
        self._unfit[host] = why
        self._only_asked.discard(host)
        self._tell(f"{host} is given nothing: {why}")
        own = self._own.pop(host, None)
        if own is not None:
            own.failures[host] = why
            self.set_aside[own.order.shard.key] = own

    async def _compare_clocks(self, hand: Hand) -> None:
        """Outside of the time that the question took, a clock is off."""
        before = now()
        there = float(await self._remote(hand, tasks.tell_time, b""))
        after = now()
        ahead_s = there - after if there > after else min(0.0, there - before)
        if abs(ahead_s) > CLOCK_OFF_S:
            hand.ahead_s = ahead_s
            word = "ahead" if ahead_s > 0 else "behind"
            self._tell(
                f"{hand.name}: its clock is {duration(abs(ahead_s))} {word}; the times of its "
                "samples are moved by that"
            )

    async def _measure(self, hand: Hand, waiting: OpenShard) -> None:
        try:
            result = waiting.result
            if result is None or waiting.is_damaged:
                result = await self._measured(hand, waiting)
            if waiting.order.shard.key in self.gathered:
                log.info("measured elsewhere by now", host=hand.name, shard=result.key)
            elif result.failure:
                self._failed(hand.name, waiting, result.failure)
            else:
                await self._gather(hand, waiting, result, waiting.wall_s)
                self._doubts.measured(hand.name)
            hand.waiting, hand.losses = None, 0
        except HostLost:  # maybe not: then it is asked what it has finished, and goes on
            hand.losses += 1
            if hand.losses < TRIES or self._hands.get(hand.name) is not hand:
                self._wait_for(hand, waiting)
            else:  # it would be given that for ever
                self._failed(hand.name, waiting, f"its worker lost it {hand.losses} times")
                hand.waiting, hand.losses = None, 0
        except (NotFetched, NotStoredHere) as error:
            self._doubts.measured(hand.name)
            self._keep(hand.name, waiting, error)
            hand.waiting = None
        except WorkbenchError as error:
            self._failed(hand.name, waiting, str(error))
            hand.waiting = None
        except Exception as error:  # a shard is measured or has failed, never neither
            log.error("shard not gathered", host=hand.name, exc_info=error)
            self._failed(hand.name, waiting, f"{type(error).__name__}: {error}")
            hand.waiting = None
        finally:
            hand.task = None

    async def _measured(self, hand: Hand, waiting: OpenShard) -> ShardResult:
        """What a host says of a shard that it is given. Raises `NotFetched`, `HostLost`."""
        began = time.monotonic()
        self._ledger.write(LedgerLine(waiting.order.shard.key, hand.name, ahead_s=hand.ahead_s))
        order = waiting.order
        if (host := self.hosts[hand.name]).kind in STARTED_ELSEWHERE:
            # Another fleet may share that worker, which therefore knows no fleet's hosts file.
            order = replace(order, lab=lab_of(host, order.lab))
        plain = codec.dumps(codec.to_plain(order))
        try:
            async with self._hearing_waits(hand, order.session, self._hear_wait):
                said = await self._remote(hand, tasks.measure_shard, plain)
        finally:
            hand.waits_since = None
        self._passed.discard(hand.name)
        result = codec.from_plain(codec.loads(said), ShardResult)
        if result.is_measured:
            raise NotFetched(result.failure.removesuffix("."))
        if result.failure:
            return result
        if (before := waiting.result) is not None:  # exported again, and not measured
            result = replace(before, place=result.place, digest=result.digest)
        else:
            waiting.wall_s = time.monotonic() - began
        waiting.result = result
        return result

    def _hear_wait(self, hand: Hand, who: str) -> None:
        """Whom a host waits for before it measures what it was given; empty: nobody any more."""
        hand.waits_for = who
        if who:
            if hand.waits_since is None:
                hand.waits_since = asyncio.get_running_loop().time()
            self._tell(f"{hand.name} waits for its turn there: {who} measures first")
        elif hand.waits_since is not None or hand.name in self._passed:
            hand.waits_since = None
            self._passed.discard(hand.name)
            self._tell(f"{hand.name} has its turn")

    def _keep(self, host: str, waiting: OpenShard, error: WorkbenchError) -> None:
        """It is measured, and only not here: its host is asked for it again."""
        if self._stopping or waiting.order.shard.key in self.gathered:
            return
        if waiting.kept is None:
            self._tell(f"{waiting.named} is measured on {host} and not here yet: {error}")
        log.warning("shard not here", host=host, shard=waiting.order.shard.key, why=str(error))
        waiting.host, waiting.kept = host, error
        waiting.is_damaged = isinstance(error, NotWhole)
        waiting.again = asyncio.get_running_loop().time() + KEPT_PAUSE_S
        known = (*self._own.values(), *self._waiting)
        if not any(each is waiting for each in known):
            self._waiting.append(waiting)

    def _failed(self, host: str, waiting: OpenShard, why: str) -> None:
        if self._stopping or waiting.order.shard.key in self.gathered:
            return  # it was asked to end
        waiting.failures[host] = why
        waiting.host, waiting.result, waiting.kept = "", None, None
        log.warning("shard failed", host=host, shard=waiting.order.shard.key, why=why)
        now = asyncio.get_running_loop().time()
        self._doubts.failed(host, now)
        if self._own.get(host) is waiting or waiting.bound:
            self._failed_itself(host, waiting, why, now)
        elif self._has_failed(waiting):
            self._put_aside(waiting)
        else:
            self._waiting.append(waiting)
            self._tell(f"{waiting.named} failed on {host}, another host tries: {why}")
        if host in self._doubts.resting(self._able, now):
            failed = counted(self._doubts.row(host), "shard")
            self._tell(f"{host} is given nothing for {REST_S:g} s: {failed} failed there in a row")

    def _failed_itself(self, host: str, own: OpenShard, why: str, now: float) -> None:
        """What no other can measure for a host has failed: it tries again, some times."""
        own.tries += 1
        if own.tries < OWN_TRIES:
            own.again = now + OWN_PAUSE_S
            if own.bound:
                own.host = host
                del own.failures[host]
                self._waiting.append(own)
            what = own.named if own.bound else "anchor points"
            self._tell(f"{what} failed on {host}, which tries again after {OWN_PAUSE_S:g} s: {why}")
            return
        if own.bound:
            self._put_aside(own)
            return
        del self._own[host]
        self._put_aside(own)
        self._tell(
            f"warning: {host} has no anchor points: no factor says how it compares with other "
            "hosts. What it measures is stored, and no model learns from a session with it; "
            "stop it, mend that host or take it off the hosts file, and give the same command again"
        )

    async def _gather(
        self, hand: Hand, waiting: OpenShard, result: ShardResult, wall_s: float = 0.0
    ) -> None:
        """Have the bundle here, checked, before the shard counts as measured."""
        if result.key != waiting.order.shard.key:  # which names the folder here
            raise FleetError(
                "answers with another shard than it was asked for",
                where=hand.name,
                remedy="See that it has this very version of the workbench",
            )
        async with waiting.alone:
            if result.key in self.gathered:
                return
            bundle = Path(result.place)
            if hand.name not in self._ledger.local:
                bundle = await self._fetched(hand, result)
            elif not await asyncio.to_thread(is_whole, bundle, result.digest):
                raise NotWhole("its bundle is not what it measured", where=str(bundle))
            took_s = wall_s if result.taken == result.samples else 0.0
            ahead_s = self._ledger.clock_of(result, hand.ahead_s)
            self._ledger.write(LedgerLine(result.key, hand.name, result, ahead_s))
            self._count(waiting, Gathered(waiting.order, result, bundle, took_s, ahead_s))

    def _count(self, waiting: OpenShard, found: Gathered) -> None:
        """A shard is measured, and its bundle here."""
        result, shard = found.result, waiting.order.shard
        self.gathered[shard.key] = found
        self._waiting = [each for each in self._waiting if each is not waiting]
        self._own = {name: each for name, each in self._own.items() if each is not waiting}
        how = counted(result.taken, "sample") if result.taken else "measured before"
        self._tell(
            f"{result.host}: {shard.target}, "
            f"{counted(len(shard.configurations), 'configuration')}, "
            f"{how} ({len(self.gathered)} of {self.total} shards)"
        )

    async def _fetched(self, hand: Hand, result: ShardResult) -> Path:
        place = self._ledger.kept / f"{result.key}.bundle"
        if await asyncio.to_thread(is_whole, place, result.digest):
            return place

        async def ask(offset: int) -> object:
            wanted = codec.dumps(codec.to_plain(tasks.WantedPiece(result.place, offset)))
            limit = asyncio.timeout(SENDING_S)

            def hear(hand: Hand, who: str) -> None:  # a worker does one thing at a time
                hand.waits_for = who
                until = asyncio.get_running_loop().time() + SENDING_S
                limit.reschedule(None if who else until)

            try:
                async with limit, self._hearing_waits(hand, "", hear):
                    return await self._remote(hand, tasks.send_piece, wanted)
            except (TimeoutError, HostLost):  # stuck in that, its worker takes nothing else
                if limit.expired():
                    self._tell(f"{hand.name} did not send what it measured within {SENDING_S:g} s")
                raise HostLost(hand.name) from None
            except FleetError as error:
                raise NotFetched(error.what, where=hand.name) from None

        await store_fetched(place, hand.name, ask)
        if not await asyncio.to_thread(is_whole, place, result.digest):
            raise NotWhole("what it sent is not what it measured", where=hand.name)
        return place

    async def _remote(self, hand: Hand, work: Callable[..., Any], argument: object) -> Any:
        """A task on that host and no other. Raises `HostLost`, `FleetError`."""
        # Another campaign's task of the same key would be taken for this one.
        future: Future[Any] = self._client.submit(
            work, argument, key=f"{work.__name__}-{hand.name}-{uuid4()}",
            workers=[hand.address], allow_other_workers=False, resources={"lab": 1},
            pure=False, retries=0,
        )  # fmt: skip
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled() and self._hands.get(hand.name) is hand:
                raise HostLost(hand.name) from None
            raise
        except Exception as error:  # noqa: BLE001 - whatever the host's code raised
            if type(error).__module__.startswith("distributed"):
                raise HostLost(hand.name) from None
            raise FleetError(f"{type(error).__name__}: {error}", where=hand.name) from None
        finally:
            future.release()

    async def _stop(self) -> None:
        """Where hosts still measure: have them end, and wait until they have torn down."""
        self._stopping = True
        busy = {hand.task: hand for hand in self._hands.values() if hand.task is not None}
        ending = {task for task, hand in busy.items() if hand.waiting is not None}
        if ending:
            await self._have_stop([busy[task] for task in ending])
            await asyncio.wait(ending, timeout=STOPPING_S / 2)
        for task in busy:
            task.cancel()

    async def _have_stop(self, hands: Sequence[Hand]) -> None:
        """Have hosts end what they measure; what they have of it is kept there."""
        sessions = [hand.waiting.order.session for hand in hands if hand.waiting is not None]
        try:
            async with asyncio.timeout(STOPPING_S / 2):
                await self._client.run(
                    tasks.stop_shard, codec.dumps(sessions), on_error="ignore",
                    workers=[hand.address for hand in hands],
                )  # fmt: skip
        except (OSError, AttributeError) as error:  # a client that gave up has no scheduler
            log.warning("a host did not say that it stopped", why=str(error))


def _is_silent(hand: Hand, now: float) -> bool:
    """Whether it is there, was asked what it has finished and says neither that nor whom it
    measures for first."""
    return not hand.waits_for and now - hand.asked_at >= RETURN_S
