"""Which shards of a campaign are open, held and done, and which of them a host may be given.

A shard stays with the host that began it as long as that may come back. Nothing is asked of a host
here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import LabHost, ShardOrder
from workbench.fleet import patience
from workbench.fleet.dispatched import Gathered, Tell
from workbench.fleet.fetched_bundles import NotStoredHere, NotWhole
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.host_doubts import REST_S, HostDoubts
from workbench.fleet.open_shards import Hand, OpenShard
from workbench.log import logger

log = logger("fleet")


class ShardBoard:
    """Of one campaign, or one round of it.

    Parameters
    ----------
    orders : shards that any host may measure.
    own : shards that one host is to measure, by its name; it begins with them.

    Attributes
    ----------
    hosts : of the fleet, by name; who else is at the scheduler is none of ours.
    share : hosts that may measure at the same time, without those that wait for too long for their
        turn there; None: all that are there.
    told_held : hosts that are to be given nothing now, with the reason, as of the last look.
    in_rounds : whether more is planned from what this comes to: as soon as any of it is measured,
        it ends without what hosts wait for too long for their turn to measure.
    passed : by key of a shard that it ended without, the host that waits.
    gathered : by key.
    set_aside : shards that failed on every host that tried, with the failures by host.
    cut_short : by key, of shards that are gathered and not whole, what is missing and why.
    """

    def __init__(
        self, orders: Sequence[ShardOrder], own: Mapping[str, ShardOrder], tell: Tell
    ) -> None:
        self._tell = tell
        self._waiting = [OpenShard(order) for order in orders]
        self._own = {name: OpenShard(order) for name, order in own.items()}
        self._hands: dict[str, Hand] = {}
        self._stopping = False
        every = (*self._waiting, *self._own.values())
        self._known = {waiting.order.shard.key for waiting in every}
        self._anchors = {waiting.order.shard.key for waiting in self._own.values()}
        self._labs = [waiting.order.lab for waiting in every]
        """As all of them are to be measured, those as well that others have just now."""
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
        self._told_clocks: dict[str, float] = {}
        """By how much each host's clock was ahead when that was told last, seconds."""
        self._stuck_at = self._kept_at = 0.0
        self._before = 0
        """How many shards another one had gathered and set aside."""
        self._passed: set[str] = set()
        """Hosts that the round before ended without, until they have their turn."""
        self.hosts: Mapping[str, LabHost] = {}
        self.share: int | None = None
        self.told_held: dict[str, str] = {}
        self.in_rounds = False
        self.passed: dict[str, str] = {}
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

    def carry_on(self, before: ShardBoard) -> None:
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
        self._anchors |= before._anchors
        self.told_held = dict(before.told_held)
        self._told_clocks = before._told_clocks
        self._before = len(self.gathered) + len(self.set_aside)
        self._passed = set(before.passed.values()) | before._passed
        for host in self._unfit.keys() & self._own.keys():
            del self._own[host]

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

    # ---------------------------------------------------------- what is left

    @property
    def _is_over(self) -> bool:
        """Whether hosts were there, and have left nothing for any to measure or hand over."""
        return bool(self._seen) and not (self._waiting or self._own)

    def _to_come(self, now: float) -> list[OpenShard]:
        """What it does not end without, but for what is under way."""
        needless = {hand.name for hand in self._needless(now)}
        late = {id(waiting) for waiting, _ in self._late(now)}
        hosts = self._hands.keys() - needless | self._awaited_anchors(now)
        held = self.told_held
        own = [w for h, w in self._own.items() if h in hosts and (w.kept or h not in held)]
        return [w for w in self._waiting if id(w) not in late] + own

    def _awaited_anchors(self, now: float) -> set[str]:
        """Hosts that are not there, of which shards are measured and no anchor points: without them
        nothing compares what is there, so that a host that may come is waited for."""
        away = self._own.keys() & self.hosts.keys() - self._hands.keys()
        away = {host for host in away if self._away_s(host, now) < patience.RETURN_S}
        return away & {each.result.host for each in self.gathered.values()} if away else away

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
            and hand.waited_s(now) >= patience.RETURN_S
        ]
        have = {gathered.result.host for gathered in self.gathered.values()} if late else set()
        return [hand for hand in late if hand.name not in have or hand.is_silent(now)]

    def _late(self, now: float) -> list[tuple[OpenShard, str]]:
        """What a round goes on without, and the host that waits for too long to measure it."""
        if not self.in_rounds or len(self.gathered) + len(self.set_aside) == self._before:
            return []  # it would go on with nothing
        late = {
            hand.name: hand.waiting
            for hand in self.hands
            if hand.waited_s(now) >= patience.RETURN_S or hand.name in self._passed
        }
        found = [(w, w.bound) for w in self._waiting if w.bound in late]
        found += [
            (waiting, host)
            for host, waiting in late.items()
            if waiting is not None and waiting is not self._own.get(host)
        ]
        return found

    def _speaking(self) -> list[Hand]:
        """Hosts that are there and say what they have, or why they do not yet."""
        now = asyncio.get_running_loop().time()
        return [hand for hand in self.hands if not hand.is_silent(now)]

    # ----------------------------------------------------- who is given what

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
        """Hosts that are there, are given nothing more and hand over what they have measured: to
        send it is not to measure, so that those that somebody holds do so as well."""
        return (self._only_asked | self.told_held.keys() - self._unfit.keys()) & self._hands.keys()

    def _next(self, host: str, now: float) -> OpenShard | None:
        """What a host is to measure: what it began, else what waits for nobody else; of one that is
        given nothing more, what it is to hand over."""
        fit = [w for w in self._waiting if host not in w.failures and w.bound in ("", host)]
        mine = [w for w in fit if w.host == host and now >= w.again]
        if host in self._handing:
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
        if self._asks_lost.get(host, 0) >= patience.TRIES:
            return False
        hand = self._hands.get(host)
        if hand is None:
            return self._away_s(host, now) < patience.RETURN_S
        if host in waiting.failures or host in self._doubts.resting(self._able, now):
            return False
        if hand.waited_s(now) >= patience.RETURN_S:
            return False
        return hand.waiting is None or hand.waiting is self._own.get(host)

    def _is_free(self, waiting: OpenShard, now: float) -> bool:
        """Whether it waits for no host: the one that began it cannot go on, and has said that it
        has not finished it, or has been away for too long."""
        host = waiting.host
        if not host or host in self._unfit.keys() - self._only_asked:
            return True
        if self._asks_lost.get(host, 0) >= patience.TRIES:
            return True
        hand = self._hands.get(host)
        if hand is None:
            return self._away_s(host, now) >= patience.RETURN_S
        if waiting.kept is not None:
            return False
        if not hand.asked:
            return hand.is_silent(now)
        able = self._able
        return hand.task is not None or host not in able - self._doubts.resting(able, now)

    def _away_s(self, host: str, now: float) -> float:
        """For how long it has been gone, seconds."""
        return now - self._seen.get(host, self._began)

    def _away_together(self, seconds: float) -> None:
        """Time in which no host was there counts against none of them: what the first that comes
        back is given, another may come back with a moment later."""
        self._began += seconds
        self._seen = {host: at + seconds for host, at in self._seen.items()}
        self._held_at = {host: at + seconds for host, at in self._held_at.items()}

    # ------------------------------------------------------- what came of it

    def _count(self, waiting: OpenShard, found: Gathered) -> None:
        """A shard is measured, and its bundle here."""
        result, shard = found.result, waiting.order.shard
        self.gathered[shard.key] = found
        self._waiting = [each for each in self._waiting if each is not waiting]
        self._own = {name: each for name, each in self._own.items() if each is not waiting}
        how = counted(result.samples, "sample")
        if result.taken != result.samples:
            how += f", {result.taken} of them now" if result.taken else ", measured before"
        own = shard.key in self._anchors
        alike = self._anchors if own else self._known - self._anchors
        what = counted(len(shard.configurations), "configuration")
        self._tell(
            f"{result.host}: {'anchor points of ' * own}{shard.target}, {what}, {how} "
            f"({len(self.gathered.keys() & alike)} of {counted(len(alike), 'shard')}"
            f"{' of anchor points' * own})"
        )

    def _wait_for(self, hand: Hand, waiting: OpenShard) -> None:
        """Put back what a host has begun, for that host until it has been away for too long."""
        hand.waiting, hand.asked = None, False
        hand.waits_since = asyncio.get_running_loop().time()
        waiting.host, waiting.result = hand.name, None
        known = (*self._own.values(), *self._waiting)
        if waiting.order.shard.key not in self.gathered and not any(w is waiting for w in known):
            self._waiting.insert(0, waiting)

    def _keep(self, host: str, waiting: OpenShard, error: WorkbenchError) -> None:
        """It is measured, and only not here: its host is asked for it again."""
        if self._stopping or waiting.order.shard.key in self.gathered:
            return
        if waiting.kept is None:
            self._tell(f"{waiting.named} is measured on {host} and not here yet: {error}")
        log.warning("shard not here", host=host, shard=waiting.order.shard.key, why=str(error))
        waiting.host, waiting.kept = host, error
        waiting.is_damaged = isinstance(error, NotWhole)
        waiting.again = asyncio.get_running_loop().time() + patience.KEPT_PAUSE_S
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
            self._tell(f"{host} gets no work for {REST_S:g} s: {failed} failed there in a row")

    def _failed_itself(self, host: str, own: OpenShard, why: str, now: float) -> None:
        """What no other can measure for a host has failed: it tries again, some times."""
        own.tries += 1
        if own.tries < patience.OWN_TRIES:
            own.again = now + patience.OWN_PAUSE_S
            if own.bound:
                own.host = host
                del own.failures[host]
                self._waiting.append(own)
            what = own.named if own.bound else "anchor points"
            pause = f"{patience.OWN_PAUSE_S:g} s"
            self._tell(f"{what} failed on {host}, which tries again after {pause}: {why}")
            return
        if own.bound:
            self._put_aside(own)
            return
        del self._own[host]
        self._put_aside(own)
        self._tell(
            f"warning: {host} has no anchor points: no factor says how it compares with other "
            "hosts. What it measures is stored, and no model learns from a session with it. "
            "Mend that host; once this has ended, the same command with the session's name "
            "measures the anchor points that are missing, and nothing that is measured"
        )

    def _unusable(self, host: str, why: str) -> None:
        """Give a host nothing for as long as this campaign runs."""
        self._unfit[host] = why
        self._only_asked.discard(host)
        self._tell(f"{host} gets no work: {why}")
        own = self._own.pop(host, None)
        if own is not None and own.kept is not None:  # measured, and only not here yet
            own.bound = own.host = host
            self._waiting.append(own)
        elif own is not None:
            own.failures[host] = why
            self.set_aside[own.order.shard.key] = own

    # ------------------------------------------------------ what is given up

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
            if self.hosts.keys() <= tried or now - self._stuck_at >= patience.RETURN_S:
                waiting.failures |= self._unfit
                self._put_aside(waiting)

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
        most = min(patience.TRIES, len(self.hosts.keys() - self._unfit.keys()))
        return len(against) >= max(1, most)

    def _put_aside(self, waiting: OpenShard) -> None:
        self._waiting = [each for each in self._waiting if each is not waiting]
        self.set_aside[waiting.order.shard.key] = waiting
        self._tell(f"{waiting.named} is set aside: {next(iter(waiting.failures.values()))}")

    def _give_up_bound(self, now: float) -> None:
        """Set aside what is bound to a host that may not measure, or that did not come back. A
        host that somebody holds, or that measures for another campaign first, is waited for, and
        so is what one has measured that may measure no more (`_give_up_kept` ends that)."""
        for waiting in [each for each in self._waiting if each.bound]:
            host, is_known = waiting.bound, waiting.bound in self.hosts
            away_s = min(self._away_s(host, now), now - self._held_at.get(host, self._began))
            hand = self._hands.get(host)
            silent = hand is not None and hand.is_silent(now)
            is_away = silent or away_s >= patience.RETURN_S
            may_not = host in self._unfit and waiting.kept is None
            if not is_known or may_not or is_away:
                self._waiting.remove(waiting)
                why = "is gone" if is_known else "is in the hosts file no more"
                if silent:
                    why = "does not say what it has finished"
                waiting.failures[host] = self._unfit.get(host, why)
                self.set_aside[waiting.order.shard.key] = waiting

    def _give_up_kept(self, now: float) -> None:
        """End it where nothing is left but what hosts have measured and cannot be had."""
        left, busy = self._to_come(now), self._under_way(now)
        able = self._able | self._handing
        either = left + busy
        if not either or any(w.kept is None or w.host not in able for w in either):
            self._kept_at = now
        if now - self._kept_at < patience.KEPT_S or busy:
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
