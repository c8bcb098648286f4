"""A campaign whose sampler learns across configurations, planned in one place for all hosts.

Each host first measures both ends of the range of its configurations, and its anchor points. Then
the sampler is told what all hosts have measured, as the first of them would have measured it, and
asked for a batch, some points for each host; what a point is expected to come to is believed until
it is measured. A configuration stays with the host that began it, so that no two hosts share one.
Nothing of the plan is stored: a command that goes on is told what the hosts have, and plans from
there.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.computing import computed
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import HostsCompared, PlannedPoint, ShardFolded, ShardOrder
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Estimate, Sample
from workbench.engine.learning.guarded import GuardedSampler
from workbench.engine.learning.sampler_worker import space_of
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.dispatched import Gathered, Tell
from workbench.fleet.folding import ShardSession, read_piece
from workbench.fleet.open_shards import OpenShard
from workbench.log import logger
from workbench.models.host_factors import compare_hosts
from workbench.models.host_terms import HostTerm, on_one_host, terms_of
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD
from workbench.sampling.base import Ask, Space
from workbench.sampling.batches import next_batch
from workbench.sampling.shards import going_on

EACH = 4
"""Points of a shard in a round: each round is a deployment on its host, and the more are planned at
once, the less is known of what they teach."""
MOST_IN_VAIN = 100
"""Batches in a row of which no point can be measured: loads beyond what a host's range reaches."""
BELIEVED_BY = "pooled"
"""The model that says what a point is expected to come to."""
SAME_TERM = HostTerm(0.0, 0.0, 0.0, 0.0)

log = logger("fleet")


@dataclass(frozen=True)
class FleetRound:
    """What is handed out at once: shards, hosts' own, and to which host a shard is bound, or better
    given where that is there in time, by key; `before` is whoever handed out the round before. With
    `goes_on` more is planned from it, and it does not wait for hosts that wait for too long."""

    orders: Sequence[ShardOrder]
    own: Mapping[str, ShardOrder] = field(default_factory=dict)
    bound: Mapping[str, str] = field(default_factory=dict)
    meant_for: Mapping[str, str] = field(default_factory=dict)
    before: Dispatch | None = None
    goes_on: bool = False


Measure = Callable[[FleetRound], Awaitable[Dispatch]]


class CentralPlanning:
    """Of one campaign.

    Parameters
    ----------
    campaign : whose sampler plans.
    seed : of the sampler.
    orders : shards of `sampling.shards.beginning`.
    whole : of each of these, by key, its configurations by the campaign's own sampler on one host,
        for where the host that began them is lost.
    """

    def __init__(
        self,
        campaign: Campaign,
        seed: int,
        orders: Sequence[ShardOrder],
        whole: Mapping[str, ShardOrder],
        tell: Tell,
    ) -> None:
        self._campaign, self._seed, self._tell = campaign, seed, tell
        self._orders = {order.shard.key: order for order in orders}
        self._whole = whole
        self._rounds: dict[str, list[Gathered]] = {}
        """What came of each shard, by its key: its beginning, and its points in their order."""
        self._pieces: dict[str, ShardSession] = {}
        self._lost: dict[str, None] = {}
        self._late: dict[str, ShardOrder] = {}
        """By key of a shard, what its host has not come to, since it waits there for its turn."""
        self._compared: HostsCompared | None = None
        self._meant: dict[tuple[Configuration, float], float] = {}
        """By configuration and load on its host, the load on the first host that it stands for."""
        self._beyond: dict[str, list[tuple[Configuration, float]]] = {}
        """By target: loads on the first host that the range of another does not reach."""
        self._planned: set[tuple[Configuration, float]] = set()
        self._own: Mapping[str, ShardOrder] = {}

    async def run(self, own: Mapping[str, ShardOrder], measure: Measure) -> Dispatch:
        """Until nothing is left to ask for; who handed out the last round, with what was gathered
        of each shard under the shard's own key.

        Parameters
        ----------
        own : anchor points of each host.
        measure : hands out a round until all of it is measured or set aside.
        """
        self._own = own
        # A host that comes later is given nothing in the rounds: a configuration stays where it is.
        meant_for = dict(zip(self._orders, own, strict=False))
        first = FleetRound(tuple(self._orders.values()), own, meant_for=meant_for, goes_on=True)
        dispatch = await measure(first)
        for key in self._orders.keys() & dispatch.gathered.keys():
            await self._take(key, dispatch.gathered[key])
        self._late = {key: self._orders[key] for key in self._orders.keys() & dispatch.passed}
        await self._compare(own, dispatch)
        number = 0
        while (batch := await computed(self._next)) or self._late:
            number += 1
            points = sum(map(len, batch.values()))
            said = [f"{counted(points, 'point')} planned for all hosts"] if batch else []
            if self._late:
                late = counted(len(self._late), "shard")
                said.append(f"what a host has not come to yet of {late}")
            self._tell(f"round {number}: {', and '.join(said)}")
            dispatch = await self._round(batch, dispatch, measure)
        if self._lost:
            self._tell(f"{counted(len(self._lost), 'shard')} of lost hosts: measured again, whole")
            orders = [self._whole[key] for key in self._lost]
            # Of those as well that came too late for the rounds: they may measure these.
            dispatch = await measure(
                FleetRound(orders, self._anchors_left(dispatch, self._own), before=dispatch)
            )
        self._gather(dispatch)
        return dispatch

    async def _round(
        self, batch: Mapping[str, Sequence[PlannedPoint]], before: Dispatch, measure: Measure
    ) -> Dispatch:
        orders, self._late = self._late, {}
        for key, points in batch.items():
            shard = going_on(self._orders[key].shard, points)
            orders[key] = replace(self._orders[key], shard=shard, points=tuple(points), goes_on=key)
        begun = orders.keys() & self._pieces.keys()
        bound = {orders[key].shard.key: self._pieces[key].host for key in begun}
        # A round waits for what is a host's own, and a host may wait for hours for its turn: no
        # round waits for one that has no part in it.
        own = self._anchors_left(before, set(bound.values()))
        asked = FleetRound(tuple(orders.values()), own, bound, before=before, goes_on=True)
        dispatch = await measure(asked)
        for key, order in orders.items():
            found = dispatch.gathered.get(order.shard.key)
            if found is not None:
                await self._take(key, found)
            elif order.shard.key in dispatch.passed:
                self._late[key] = order
            elif key in begun:
                failed = dispatch.set_aside.pop(order.shard.key, None) or OpenShard(order)
                log.warning("planned points not measured", shard=key, why=str(failed))
                why = next(iter(failed.failures.values()), "did not measure them")
                self._tell(
                    f"{failed.named}: no more points by {self._pieces[key].host}: {why}; "
                    "another host measures these configurations, whole, at the end"
                )
                self._lost[key] = None
        return dispatch

    def _anchors_left(self, before: Dispatch, hosts: Collection[str]) -> dict[str, ShardOrder]:
        """Anchor points of these hosts that are not measured, which they measure first."""
        done = before.gathered.keys() | before.set_aside.keys()
        return {
            host: order
            for host, order in self._own.items()
            if host in hosts and order.shard.key not in done
        }

    async def _take(self, key: str, found: Gathered) -> None:
        """Raises `SessionError` where the bundle is damaged, which was whole a moment ago."""
        self._rounds.setdefault(key, []).append(found)
        self._pieces[key] = await asyncio.to_thread(read_piece, found)

    async def _compare(self, own: Mapping[str, ShardOrder], dispatch: Dispatch) -> None:
        """What the anchor points say; they are measured once, before anything is planned."""
        anchors: dict[str, tuple[Sample, ...]] = {}
        for host, order in own.items():
            if found := dispatch.gathered.get(order.shard.key):
                anchors[host] = (await asyncio.to_thread(read_piece, found)).samples
        self._compared = compare_hosts(anchors, self._campaign.kpi)
        hosts = {piece.host for piece in self._pieces.values()}
        terms = terms_of(self._compared, self._campaign.kpi)
        if len(hosts) > 1 and (alone := sorted(hosts - terms.keys())):
            self._tell(
                f"warning: no anchor points tell how {', '.join(alone)} compare: points are "
                "planned as if hosts were alike"
            )

    def _gather(self, dispatch: Dispatch) -> None:
        """Put what came of each shard under its own key, as the one that it is."""
        for key, order in self._orders.items():
            found = self._rounds.get(key, [])
            for each in found:
                dispatch.gathered.pop(each.result.key, None)
            if key in self._lost:
                again = dispatch.gathered.pop(self._whole[key].shard.key, None)
                if again is not None:  # its other samples stay on the host that began it
                    found = [again]
                else:  # nobody could: what there is counts
                    self._cut_short(key, order, dispatch)
            if not found:
                continue
            last = found[-1]
            result = replace(
                last.result,
                key=key,
                samples=sum(each.result.samples for each in found),
                taken=sum(each.result.taken for each in found),
                lab_s=sum(each.result.lab_s for each in found),
            )
            wall_s = sum(each.wall_s for each in found)
            dispatch.gathered[key] = replace(last, order=order, result=result, wall_s=wall_s)

    def _cut_short(self, key: str, order: ShardOrder, dispatch: Dispatch) -> None:
        """A shard has fewer points than were to be planned, and no other host measured it."""
        other = dispatch.set_aside.pop(self._whole[key].shard.key, None)
        if key not in self._pieces:
            if other is not None:
                dispatch.set_aside[key] = other
            return
        piece, shard = self._pieces[key], order.shard
        why = next(iter(other.failures.values()), "") if other is not None else ""
        dispatch.cut_short[key] = (
            f"{shard.target} {', '.join(shard.configurations)}: "
            f"{counted(len(piece.samples), 'sample')} by {piece.host} alone, no other host "
            "measured them whole" + (f": {why}" if why else "")
        )

    # ------------------------------------------------------------------ the plan

    def _terms(self, pieces: Iterable[ShardSession]) -> dict[str, HostTerm]:
        """By host; empty where these are of one host, or not all of them are compared."""
        hosts = {piece.host for piece in pieces}
        terms = terms_of(self._compared, self._campaign.kpi)
        return terms if len(hosts) > 1 and hosts <= terms.keys() else {}

    def _next(self) -> dict[str, list[PlannedPoint]]:
        """The next points by shard, of the first target that has any; for a thread."""
        for plan in self._campaign.targets:
            for _ in range(MOST_IN_VAIN):
                found, is_over = self._batch(plan)
                if found:
                    return found
                if is_over:
                    break
        return {}

    def _batch(self, plan: TargetPlan) -> tuple[dict[str, list[PlannedPoint]], bool]:
        """Points of a target by shard, and whether its sampler has ended."""
        target = plan.target.name
        pieces = {
            key: piece
            for key, piece in self._pieces.items()
            if piece.target == target and key not in self._lost
        }
        owner = {
            configuration: key
            for key in pieces
            for configuration in self._campaign.configurations(
                self._orders[key].shard.campaign.targets[0]
            )
        }
        if not owner:
            return {}, True
        terms = self._terms(pieces.values())
        samples = self._on_the_first(pieces, terms)
        believe = self._believer(target, samples)
        sampler = GuardedSampler(self._campaign, self._space(plan, tuple(owner), terms))
        late = {key: self._late[key] for key in pieces.keys() & self._late.keys()}
        pending = [
            (point.configuration, self._meant[point.configuration, point.wl])
            for order in late.values()
            for point in order.points
        ]
        expected = (*self._beyond.get(target, ()), *pending)
        sampler.tell([*samples, *(believe(*place) for place in expected)])
        for configuration, key in owner.items():
            if key in late:  # its host has enough to come to
                sampler.skip(configuration)
        asks = next_batch(sampler, owner, EACH, lambda ask: believe(ask.configuration, ask.wl))
        found: dict[str, list[PlannedPoint]] = {}
        for ask in asks:
            key = owner[ask.configuration]
            wl = self._on_its_host(plan, terms.get(pieces[key].host, SAME_TERM), ask)
            if (ask.configuration, wl) in self._planned or _has(pieces[key], ask, wl):
                self._beyond.setdefault(target, []).append((ask.configuration, ask.wl))
                continue
            self._planned.add((ask.configuration, wl))
            self._meant[ask.configuration, wl] = ask.wl
            found.setdefault(key, []).append(PlannedPoint(ask.configuration, wl))
        return found, not asks

    def _space(
        self,
        plan: TargetPlan,
        configurations: tuple[Configuration, ...],
        terms: Mapping[str, HostTerm],
    ) -> Space:
        """What may be asked about: loads of the first host for all that any host can measure."""
        space = space_of(self._campaign, plan.target.name, self._seed)
        low, high = plan.primary.low, plan.primary.high
        factors = [math.exp(-term.load) for term in terms.values()] if self._scales else []
        primary = replace(
            plan.primary, low=low * min([1.0, *factors]), high=high * max([1.0, *factors])
        )
        return replace(space, primary=primary, configurations=configurations)

    @property
    def _scales(self) -> bool:
        """Whether a host's speed is in the loads: clients of a closed load are as many anywhere."""
        return self._campaign.load.kind == "open"

    def _on_its_host(self, plan: TargetPlan, term: HostTerm, ask: Ask) -> float:
        """The load there that stands for one of the first host, in the range of the campaign."""
        wl = ask.wl * (math.exp(term.load) if self._scales else 1.0)
        wl = float(round(wl)) if plan.primary.integer else float(f"{wl:.4g}")
        return min(max(wl, plan.primary.low), plan.primary.high)

    def _on_the_first(
        self, pieces: Mapping[str, ShardSession], terms: Mapping[str, HostTerm]
    ) -> tuple[Sample, ...]:
        """All samples as the first host would have taken them, at the loads that were meant."""
        samples: list[Sample] = []
        shards: list[ShardFolded] = []
        first = 0
        for key, piece in pieces.items():
            last = first + max((sample.block for sample in piece.samples), default=0)
            samples += [replace(sample, block=sample.block + first) for sample in piece.samples]
            shard = self._orders[key].shard
            shards.append(
                ShardFolded(
                    piece.host, piece.created.host, key, shard.target, shard.configurations,
                    first, last, len(piece.samples), 0.0, "",
                )
            )  # fmt: skip
            first = last + 1
        carried = tuple(samples)
        if terms:
            carried = on_one_host(samples, shards, self._compared, self._campaign.kpi)
        found = []
        for own, sample in zip(samples, carried, strict=True):
            wl = sample.point.wl
            if terms:
                wl = self._meant.get((own.point.configuration, own.point.wl), wl)
            # A sampler counts blocks of its own, and asks for none.
            found.append(replace(sample, point=replace(sample.point, wl=wl), block=0))
        return tuple(found)

    def _believer(
        self, target: str, samples: Sequence[Sample]
    ) -> Callable[[Configuration, float], Sample]:
        """What is expected at a point, as a sample: by a model of all samples, else as at the
        nearest load of that configuration."""
        from workbench.engine.learning.refitting import fitted
        from workbench.engine.learning.scoring import table_for

        kpi = self._campaign.kpi
        try:
            model = fitted(table_for(self._campaign, target, samples, kpi), BELIEVED_BY)
        except WorkbenchError as error:
            log.info("no model says what points are expected to come to", why=str(error))
            model = None

        def believed(configuration: Configuration, wl: float) -> Sample:
            own = [s for s in samples if s.valid and s.point.configuration == configuration]
            near = min(own or samples, key=lambda s: abs(math.log(s.point.wl / wl)))
            value = near.kpi(kpi) or self._campaign.kpi_max
            if model is not None:
                mean = float(model.forecast([(configuration, wl)]).mean[0])
                value = math.exp(min(mean, math.log(self._campaign.kpi_max)))
            spread = math.exp(NORMAL_95 * UNKNOWN_LOG_SD)
            return replace(
                near,
                id=f"{near.id}/believed/{wl:g}",
                point=OperatingPoint(target, configuration, wl),
                kpis={kpi: Estimate(value, value / spread, value * spread)},
                valid=True,
                labels=(),
                findings=(),
                remarks=(),
            )

        return believed


def _has(piece: ShardSession, ask: Ask, wl: float) -> bool:
    """Whether a shard's host has measured that load of the configuration."""
    return any(
        sample.point.configuration == ask.configuration and sample.point.wl == wl
        for sample in piece.samples
    )
