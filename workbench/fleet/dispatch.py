"""Who measures which shard: one at a time on each host, each shard once.

Dask is asked who is there, and carries orders. A host that comes back is first asked what it has
finished, held or not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.domain.counts import counted
from workbench.domain.durations import duration
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import ShardOrder, ShardResult
from workbench.fleet import patience
from workbench.fleet.dispatched import Gathered, Tell
from workbench.fleet.fetched_bundles import NotFetched, NotStoredHere, NotWhole
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.host_absence import HostAbsence
from workbench.fleet.host_calls import HostCalls, HostLost
from workbench.fleet.host_engine import lab_of
from workbench.fleet.ledger import Ledger, LedgerLine
from workbench.fleet.open_shards import Hand, OpenShard
from workbench.fleet.shard_board import ShardBoard
from workbench.log import logger
from workbench.store.bundle import is_whole

if TYPE_CHECKING:
    from distributed import Client

CLOCK_OFF_S = 2.0
"""By less the clocks of hosts may differ, or change, without a word."""

log = logger("fleet")


class Dispatch(ShardBoard):
    """Hands shards to hosts until all are measured or set aside.

    Parameters
    ----------
    client : of the fleet's scheduler.
    orders, own : as of `ShardBoard`.
    ledger : what is known of who began and finished what, of runs before as well.

    Attributes
    ----------
    held : hosts that are to be given nothing now, with the reason.
    queued : whether a host is to come that Slurm has in its queue, however long.
    absence : that no host is there; of all who hand out shards for the run.
    unsteady : hosts that disagree with themselves by what is gathered, with the reason; asked in a
        thread whenever something was gathered since, and given nothing more from then on.
    """

    def __init__(
        self,
        client: Client,
        orders: Sequence[ShardOrder],
        own: Mapping[str, ShardOrder],
        ledger: Ledger,
        tell: Tell,
    ) -> None:
        super().__init__(orders, own, tell)
        self._ledger = ledger
        self._calls = HostCalls(
            client, lambda text: self._tell(text), lambda hand: self._hands.get(hand.name) is hand
        )
        self._told_silent: set[str] = set()
        self._told_waited: set[str] = set()
        self._judged = 0
        self.held: Callable[[], Mapping[str, str]] = dict
        self.queued: Callable[[], bool] = lambda: False
        self.absence = HostAbsence(tell)
        self.unsteady: Callable[[Mapping[str, Gathered]], Mapping[str, str]] = lambda _: {}

    @property
    def _left(self) -> bool:
        now = asyncio.get_running_loop().time()
        return bool(self._to_come(now) or self._under_way(now))

    async def run(self) -> None:
        """Until nothing is left.

        Raises `FleetError` where no host comes, or comes back, or nothing is left but what hosts
        have measured and this host cannot store, or has to have before more is planned.
        """
        loop = asyncio.get_running_loop()
        await self._recall()
        looked_at = self._began = self._stuck_at = self._kept_at = loop.time()
        try:
            while self._left or not (self._hands or self._is_over):
                present = await self._present()
                self._note(present)
                self._hear_absence(loop.time() - looked_at)
                looked_at = loop.time()
                self._hear_held()
                self._seen |= dict.fromkeys(self._hands, loop.time())
                self._held_at |= dict.fromkeys(self.told_held, loop.time())
                await self._judge()
                self._tell_who_is_silent(loop.time())
                self._employ_all(loop.time())
                self._give_up_bound(loop.time())
                self._give_up(loop.time())
                self._give_up_kept(loop.time())
                self._tell_who_is_waited_for(loop.time())
                await asyncio.sleep(patience.TICK_S)
            self._tell_who_is_left(loop.time())
        finally:
            await self._stop()

    def _hear_absence(self, since_s: float) -> None:
        """Whether any host is there, so many seconds after the last look. Raises `FleetError` where
        none is, for too long."""
        if self._speaking():
            self.absence.had_one |= any(hand.asked for hand in self.hands)
            self.absence.end()
        elif self.absence.is_due():
            if self.queued():
                self.absence.forget()
            else:
                all_there = self.hosts.keys() <= self._hands.keys()
                self.absence.say(silent=bool(self._hands), all_there=all_there)
        if not self._hands:
            self._away_together(since_s)

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
        known = await self._calls.present()
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
                    waits = f"; {hand.waiting.named} waits {patience.RETURN_S:g} s for it"
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
                self._tell(f"{name} gets no work: {why}")
        for name in self.told_held.keys() - held.keys():
            self._tell(f"{name} is free again")
            self._told_waited.discard(name)
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

    def _tell_who_is_silent(self, now: float) -> None:
        for hand in self.hands:
            if hand.is_silent(now) and hand.name not in self._told_silent:
                self._told_silent.add(hand.name)
                self._tell(
                    f"{hand.name} has not said for {patience.RETURN_S:g} s what it has finished, "
                    "and measures nothing: others may measure what it had begun"
                )

    def _tell_who_is_waited_for(self, now: float) -> None:
        """Who is held, once nothing is left but what these hosts alone may measure."""
        left = [] if self._under_way(now) else self._to_come(now)
        hosts = {waiting.bound for waiting in left}
        if not hosts or not hosts <= self.told_held.keys():
            return
        for host in sorted(hosts - self._told_waited):
            many = counted(sum(w.bound == host for w in left), "shard")
            self._told_waited.add(host)
            self._tell(
                f"nothing else is left: {many} of {host}, {self.told_held[host]}; where it is not "
                "to come back, stop this, take it off the hosts file and give the same command "
                "again: another host then measures that"
            )

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
        own = self._own.get(hand.name)
        if own is not None and own.kept is None and hand.name in self._handing:
            own = None
        if own is not None and now < own.again:
            if own.kept is None:  # without them what it measures cannot be compared
                return
            own = None
        waiting = own or self._next(hand.name, now)
        if waiting is None or (waiting.kept is None and self._share_is_taken(now)):
            return
        if waiting is not own:
            self._waiting.remove(waiting)
        waiting.give_to(hand.name)
        hand.waiting, hand.began = waiting, time.time()
        hand.task = asyncio.create_task(self._measure(hand, waiting))

    def _share_is_taken(self, now: float) -> bool:
        """Whether as many hosts measure as may. One that waits for its turn for hours keeps no
        other idle, nor does one that only sends what it has measured."""
        busy = (
            hand.waiting is not None
            and hand.waiting.kept is None
            and hand.waited_s(now) < patience.RETURN_S
            for hand in self.hands
        )
        return self.share is not None and sum(busy) >= self.share

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
        async with self._calls.asking(hand):
            await self._calls.must_be_same(hand, self.hosts[hand.name])
            self._hear_clock(hand, await self._calls.ahead_s(hand))
            begun = [other.waiting for other in self._hands.values()]
            open_ = [*self._waiting, *filter(None, [self._own.get(hand.name), *begun])]
            # Of planned points a finished session does not say whether it has them.
            keys = {w.order.session: w.order.shard.key for w in open_ if not w.order.points}
            found = await self._calls.finished(hand, keys)
        for result in found:  # a bundle may take its time
            waiting = next((w for w in open_ if w.order.shard.key == result.key), None)
            if waiting is not None and result.key not in self.gathered:
                await self._gather_found(hand, waiting, result)

    def _hear_clock(self, hand: Hand, ahead_s: float) -> None:
        """Told once for each host, and where that has changed."""
        hand.ahead_s = ahead_s if abs(ahead_s) > CLOCK_OFF_S else 0.0
        if abs(ahead_s - self._told_clocks.get(hand.name, 0.0)) <= CLOCK_OFF_S:
            return
        self._told_clocks[hand.name] = hand.ahead_s
        how = "right again"
        if hand.ahead_s:
            word = "ahead" if hand.ahead_s > 0 else "behind"
            how = (
                f"{duration(abs(hand.ahead_s))} {word}; the times of its samples are moved by that"
            )
        self._tell(f"{hand.name}: its clock is {how}")

    async def _gather_found(self, hand: Hand, waiting: OpenShard, result: ShardResult) -> None:
        """What cannot be gathered now stays open: it is asked of the host as any other shard, which
        has it at once, and where that fails again it has failed there."""
        try:
            await self._gather(hand, waiting, result)
            hand.losses = 0
            others = [other for other in self._hands.values() if other.waiting is waiting]
            if others:
                self._tell(f"{waiting.named} was finished on {hand.name}: no other goes on with it")
                await self._calls.have_stop(others)
        except (NotFetched, NotStoredHere) as error:
            if not any(other.waiting is waiting for other in self._hands.values()):
                waiting.give_to(hand.name)
                waiting.result = result
                self._keep(hand.name, waiting, error)
        except (WorkbenchError, OSError) as error:
            log.warning("shard not gathered", host=hand.name, shard=result.key, why=str(error))

    async def _see_lab(self, hand: Hand) -> None:
        """Give a host nothing where the campaign's lab cannot measure there. It has handed over
        what it has before. Raises `HostLost`, `FleetError`."""
        host = self.hosts[hand.name]
        if host.kind == "simulated" or hand.name in self._unfit or not self._labs:
            return
        lab = lab_of(host, self._labs[0]) or "docker"
        async with self._calls.asking(hand):
            why = await self._calls.lab_trouble(hand, lab)
        if why:
            self._unusable(hand.name, why)
            self._only_asked.add(hand.name)

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
                await self._gather(hand, waiting, result)
                self._doubts.measured(hand.name)
            hand.waiting, hand.losses = None, 0
        except HostLost:  # maybe not: then it is asked what it has finished, and goes on
            hand.losses += 1
            if hand.losses < patience.TRIES or self._hands.get(hand.name) is not hand:
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
        self._ledger.write(LedgerLine(waiting.order.shard.key, hand.name, ahead_s=hand.ahead_s))
        host = self.hosts[hand.name]
        result = await self._calls.measured(hand, host, waiting.order, self._hear_wait)
        self._passed.discard(hand.name)
        if result.is_measured:
            raise NotFetched(result.failure.removesuffix("."))
        if result.failure:
            return result
        if (before := waiting.result) is not None:  # exported again, and not measured
            result = replace(before, place=result.place, digest=result.digest)
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
            hand.began = time.time()
            self._passed.discard(hand.name)
            self._tell(f"{hand.name} has its turn")

    async def _gather(self, hand: Hand, waiting: OpenShard, result: ShardResult) -> None:
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
                bundle = self._ledger.kept / f"{result.key}.bundle"
                await self._calls.fetch(hand, result, bundle)
            elif not await asyncio.to_thread(is_whole, bundle, result.digest):
                raise NotWhole("its bundle is not what it measured", where=str(bundle))
            took_s = result.wall_s if result.taken == result.samples else 0.0
            ahead_s = self._ledger.clock_of(result, hand.ahead_s)
            self._ledger.write(LedgerLine(result.key, hand.name, result, ahead_s))
            self._count(waiting, Gathered(waiting.order, result, bundle, took_s, ahead_s))

    async def _stop(self) -> None:
        """Where hosts still measure: have them end, and wait until they have torn down."""
        self._stopping = True
        busy = {hand.task: hand for hand in self._hands.values() if hand.task is not None}
        ending = {task for task, hand in busy.items() if hand.waiting is not None}
        if ending:
            await self._calls.have_stop([busy[task] for task in ending])
            await asyncio.wait(ending, timeout=patience.STOPPING_S / 2)
        for task in busy:
            task.cancel()
