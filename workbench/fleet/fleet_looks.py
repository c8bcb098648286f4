"""How the hosts of a campaign stand, from what its dispatch and the fleet's keeper know."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import Fleet, FleetSeen, HostDoes, HostSeen, ShardOrder
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.dispatched import Gathered
from workbench.fleet.fleet_standing import FleetFolder, HostStanding
from workbench.fleet.folding import read_piece
from workbench.fleet.leases import HELD_BY
from workbench.fleet.open_shards import Hand
from workbench.log import logger
from workbench.models.host_factors import own_noise
from workbench.sampling.shard_times import time_left_s

log = logger("fleet")


class FleetLooks:
    """Looks at one campaign's hosts.

    Attributes
    ----------
    dispatch : who hands out the shards; another one where the fleet was started again.
    in_rounds : whether more is planned once all that is handed out is measured.
    command : what goes on with the campaign, to be typed.
    run : its id.
    """

    def __init__(
        self,
        fleet: Fleet,
        folder: FleetFolder,
        own: Mapping[str, ShardOrder],
        total: int,
        *,
        in_rounds: bool = False,
    ) -> None:
        self._fleet, self._folder, self._total = fleet, folder, total
        self.in_rounds, self.command, self.run = in_rounds, "", ""
        self._anchors = {order.shard.key: host for host, order in own.items()}
        self._noise: dict[str, float | None] = {}
        self.dispatch: Dispatch | None = None

    @property
    def first(self) -> FleetSeen:
        """Before anything is known."""
        hosts = tuple(HostSeen(host.name, "starting") for host in self._fleet.hosts)
        return FleetSeen(
            hosts, self._total, 0, in_rounds=self.in_rounds, command=self.command,
            anchors=len(self._anchors), run=self.run,
        )  # fmt: skip

    async def look(self) -> FleetSeen:
        """As it is now."""
        standing = await asyncio.to_thread(self._folder.read)
        known = {host.name: host for host in standing.hosts} if standing is not None else {}
        dispatch = self.dispatch
        if dispatch is None:  # nobody was asked for anything yet
            names = [host.name for host in self._fleet.hosts]
            return replace(
                self.first, hosts=tuple(_seen(name, None, known.get(name)) for name in names)
            )
        await self._hear_noise(dispatch)
        hands = {hand.name: hand for hand in dispatch.hands}
        held, out = dispatch.told_held, dispatch.out
        done: dict[str, list[Gathered]] = {}
        for gathered in dispatch.gathered.values():
            done.setdefault(gathered.result.host, []).append(gathered)
        hosts = []
        for name in (host.name for host in self._fleet.hosts):
            seen = _seen(name, hands.get(name), known.get(name))
            if not seen.shard:  # what it measures it measures to the end
                seen = _given_nothing(seen, held.get(name, ""), out.get(name, ""))
            hosts.append(self._counted(seen, done.get(name, ())))
        return FleetSeen(
            tuple(hosts),
            dispatch.total,
            len(dispatch.gathered),
            len(dispatch.set_aside),
            None if self.in_rounds else left_s(dispatch, time.time()),
            self.in_rounds,
            len(self._anchors),
            len(self._anchors.keys() & dispatch.gathered.keys()),
        )

    def _counted(self, host: HostSeen, own: Sequence[Gathered]) -> HostSeen:
        """With what it has finished."""
        timed = [g for g in own if g.wall_s > 0]
        anchors = [g.result for g in own if g.result.key in self._anchors]
        return replace(
            host,
            shards=len(own),
            samples=sum(g.result.samples for g in own),
            lab_s=sum(g.result.lab_s for g in own),
            wall_s=round(sum(g.wall_s for g in timed), 3),
            measured_s=sum(g.result.lab_s for g in timed),
            noise=self._noise.get(host.name),
            anchors=len(anchors),
            anchor_samples=sum(result.samples for result in anchors),
            anchor_lab_s=sum(result.lab_s for result in anchors),
        )

    async def _hear_noise(self, dispatch: Dispatch) -> None:
        """Of the hosts whose anchor points have come since."""
        for key, host in self._anchors.items():
            gathered = dispatch.gathered.get(key)
            if gathered is None or host in self._noise:
                continue
            try:
                piece = await asyncio.to_thread(read_piece, gathered)
                self._noise[host] = own_noise(piece.samples, gathered.order.shard.campaign.kpi)
            except (WorkbenchError, OSError) as error:
                log.warning("anchor points cannot be read", host=host, why=str(error))
                self._noise[host] = None


def _seen(name: str, hand: Hand | None, known: HostStanding | None) -> HostSeen:
    """What it does now."""
    if hand is None:
        if known is None:
            return HostSeen(name, "starting")
        does: HostDoes = "starting" if known.state == "up" else known.state
        return HostSeen(name, does, note=known.note)
    seen = HostSeen(name, "idle")
    if hand.waiting is not None:
        shard = hand.waiting.order.shard
        words = f"{shard.target}, {counted(len(shard.configurations), 'configuration')}"
        seen = HostSeen(name, "measuring", words, hand.began)
    if hand.waits_for:  # before it says what it has finished, too
        note = f"waits for its turn there: {hand.waits_for} measures first"
        seen = replace(seen, does="waiting", note=note)
    return seen


def _given_nothing(host: HostSeen, held: str, out: str) -> HostSeen:
    """With why it is given nothing, if so; of one that is not there, what its keeper says of it
    says more than that it rests here."""
    if held.startswith(HELD_BY):
        return replace(host, does="held", note=held)
    if held and host.does in ("idle", "waiting"):  # another campaign goes first
        return replace(host, does="waiting", note=held)
    if out and host.does in ("idle", "waiting"):
        return replace(host, does="out", note=out)
    return host


def points(order: ShardOrder) -> float:
    """How many a shard has at most: what shards of a campaign take is about in that proportion."""
    shard = order.shard
    if order.points:
        return float(len(order.points))
    return float(len(shard.configurations) * max(1, shard.campaign.sampling.max_samples))


def left_s(dispatch: Dispatch, now: float) -> float | None:
    """Seconds on the clock to the end with the hosts that are there and given something, no more of
    them at once than the campaign's share."""
    timed: dict[str, list[Gathered]] = {hand.name: [] for hand in dispatch.hands}
    for gathered in dispatch.gathered.values():
        if gathered.wall_s > 0 and gathered.result.host in timed:
            timed[gathered.result.host].append(gathered)
    rates = {
        host: sum(points(g.order) for g in own) / sum(g.wall_s for g in own) if own else None
        for host, own in timed.items()
    }
    busy = {
        hand.name: (
            points(hand.waiting.order),
            0.0 if hand.waits_for else max(0.0, now - hand.began),
        )
        for hand in dispatch.hands
        if hand.waiting is not None
    }
    able = sorted(dispatch.given, key=lambda host: (host not in busy, host))
    given = able if dispatch.share is None else able[: max(0, dispatch.share)]
    left = [points(order) for order in dispatch.unbegun]
    return time_left_s(left, busy, rates, rates.keys() - given)
