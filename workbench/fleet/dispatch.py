"""Who measures which shard: one at a time on each host, each shard once.

Dask is asked who is there, and carries orders. A shard stays with the host that began it as long as
that may come back; a host that comes back is first asked what it has finished.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import files
from workbench.domain import codec
from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import ShardOrder, ShardResult
from workbench.fleet import tasks
from workbench.fleet.fleet_standing import FleetError
from workbench.log import logger
from workbench.store.bundle import MANIFEST, digest_of, is_bundle

if TYPE_CHECKING:
    from distributed import Client, Future

TICK_S = 0.2
RETURN_S = 20.0
"""How long a shard waits for the host that began it, once that is gone."""
ABSENT_S = 120.0
"""How long a fleet may be without any host."""
TRIES = 3
"""Hosts on which a shard may fail before it is set aside."""
STOPPING_S = 30.0

log = logger("fleet")
Tell = Callable[[str], None]


class SchedulerLost(FleetError):
    """The fleet's own process ended while a campaign was measured."""


class HostLost(Exception):
    """The host of a task is gone."""


@dataclass
class OpenShard:
    """A shard that is not measured: since when it waits for one host, and where it failed."""

    order: ShardOrder
    host: str = ""
    until: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """What is missing of it, and why."""
        shard = self.order.shard
        why = next(iter(self.failures.values()), "no host tried")
        return f"{shard.target} {', '.join(shard.configurations)}: {why}"


@dataclass
class Hand:
    """A host that is there."""

    name: str
    address: str
    waiting: OpenShard | None = None
    task: asyncio.Task[None] | None = None
    asked: bool = False
    """Whether it has said what it has finished."""


@dataclass(frozen=True)
class Gathered:
    """A shard that was measured, and its bundle on this host."""

    order: ShardOrder
    result: ShardResult
    bundle: Path


class Dispatch:
    """Hands shards to hosts until all are measured or set aside.

    Parameters
    ----------
    client : of the fleet's scheduler.
    orders : shards that any host may measure.
    own : shards that one host is to measure, by its name; it begins with them.
    kept : where bundles of other hosts are put.
    local : hosts whose files are read where they lie.

    Attributes
    ----------
    gathered : by key.
    set_aside : shards that failed on every host that tried, with the failures by host.
    """

    def __init__(
        self,
        client: Client,
        orders: Sequence[ShardOrder],
        own: Mapping[str, ShardOrder],
        kept: Path,
        local: frozenset[str],
        tell: Tell,
    ) -> None:
        self._client, self._kept, self._local, self._tell = client, kept, local, tell
        self._waiting = [OpenShard(order) for order in orders]
        self._own = {name: OpenShard(order) for name, order in own.items()}
        self._hands: dict[str, Hand] = {}
        self._attempts = 0
        self._stopping = False
        self._total = len(self._waiting) + len(self._own)
        self.gathered: dict[str, Gathered] = {}
        self.set_aside: dict[str, OpenShard] = {}

    @property
    def _left(self) -> bool:
        busy = any(hand.task is not None for hand in self._hands.values())
        return busy or bool(self._waiting) or any(n in self._hands for n in self._own)

    def missing(self, orders: Sequence[ShardOrder]) -> list[str]:
        """Of these, what was not measured, and why."""
        return [
            str(self.set_aside.get(order.shard.key) or OpenShard(order))
            for order in orders
            if order.shard.key not in self.gathered
        ]

    async def run(self) -> None:
        """Until nothing is left. Raises `FleetError` where no host is there any more."""
        loop = asyncio.get_running_loop()
        seen_at = loop.time()
        try:
            while self._left or not self._hands:
                present = await self._present()
                self._note(present)
                if self._hands:
                    seen_at = loop.time()
                elif loop.time() - seen_at > ABSENT_S:
                    raise FleetError(
                        f"no host was there for {ABSENT_S:g} s",
                        remedy="See `workbench fleet status`; what was measured is kept, and the "
                        "same command goes on",
                    )
                for hand in self._hands.values():
                    if hand.task is None:
                        self._employ(hand, loop.time())
                self._give_up()
                await asyncio.sleep(TICK_S)
        finally:
            await self._stop()

    async def _present(self) -> dict[str, str]:
        """Addresses of the hosts that are there, by name."""
        try:
            known = await self._client.scheduler.identity(n_workers=-1)
        except OSError as error:
            raise SchedulerLost(f"its scheduler is gone: {error}") from None
        return {str(worker["name"]): address for address, worker in known["workers"].items()}

    def _note(self, present: Mapping[str, str]) -> None:
        for name, hand in list(self._hands.items()):
            if present.get(name) != hand.address:
                del self._hands[name]
                if hand.task is not None:
                    hand.task.cancel()
                if hand.waiting is not None:
                    self._wait_for(hand, hand.waiting)
                self._tell(f"{name} is gone; its shard waits {RETURN_S:g} s for it")
        for name, address in present.items():
            if name not in self._hands:
                self._hands[name] = Hand(name, address)

    def _give_up(self) -> None:
        """Set aside what failed on every host that is there, once nobody measures any more."""
        if not self._hands or any(hand.task is not None for hand in self._hands.values()):
            return
        for waiting in list(self._waiting):
            if self._hands.keys() <= waiting.failures.keys():
                self._waiting.remove(waiting)
                self.set_aside[waiting.order.shard.key] = waiting

    def _wait_for(self, hand: Hand, waiting: OpenShard) -> None:
        """Put back what a host has begun, for that host until it has been away for too long."""
        hand.waiting, hand.asked = None, False
        waiting.host = hand.name
        waiting.until = asyncio.get_running_loop().time() + RETURN_S
        known = (*self._own.values(), *self._waiting)
        if waiting.order.shard.key not in self.gathered and not any(w is waiting for w in known):
            self._waiting.insert(0, waiting)

    def _employ(self, hand: Hand, now: float) -> None:
        if not hand.asked:
            hand.task = asyncio.create_task(self._ask(hand))
            return
        own = self._own.get(hand.name)
        waiting = own or self._next(hand.name, now)
        if waiting is None:
            return
        if waiting is not own:
            self._waiting.remove(waiting)
        hand.waiting = waiting
        hand.task = asyncio.create_task(self._measure(hand, waiting))

    def _next(self, host: str, now: float) -> OpenShard | None:
        """What a host is to measure: what it began, else what waits for nobody else."""
        fit = [w for w in self._waiting if host not in w.failures]
        begun = next((w for w in fit if w.host == host), None)
        return begun or next((w for w in fit if not w.host or now >= w.until), None)

    async def _ask(self, hand: Hand) -> None:
        """What a host has finished of what is not gathered yet."""
        try:
            open_ = [*self._waiting, *filter(None, [self._own.get(hand.name)])]
            keys = {w.order.session: w.order.shard.key for w in open_}
            plain = codec.dumps(keys)
            found = codec.loads(await self._remote(hand, tasks.find_shards, plain))
            for each in found:
                result = codec.from_plain(each, ShardResult)
                waiting = next((w for w in open_ if w.order.shard.key == result.key), None)
                if waiting is not None and result.key not in self.gathered:
                    await self._gather(hand, waiting, result)
            hand.asked = True
        except HostLost:
            log.info("host lost while it was asked", host=hand.name)
        finally:
            hand.task = None

    async def _measure(self, hand: Hand, waiting: OpenShard) -> None:
        try:
            order = codec.dumps(codec.to_plain(waiting.order))
            said = await self._remote(hand, tasks.measure_shard, order)
            result = codec.from_plain(codec.loads(said), ShardResult)
            if result.failure:
                self._failed(hand.name, waiting, result.failure)
            else:
                await self._gather(hand, waiting, result)
            hand.waiting = None
        except HostLost:  # maybe not: then it is asked what it has finished, and goes on
            self._wait_for(hand, waiting)
        except WorkbenchError as error:
            self._failed(hand.name, waiting, str(error))
            hand.waiting = None
        finally:
            hand.task = None

    def _failed(self, host: str, waiting: OpenShard, why: str) -> None:
        if self._stopping:
            return  # it was asked to end
        waiting.failures[host] = why
        waiting.host = ""
        log.warning("shard failed", host=host, shard=waiting.order.shard.key, why=why)
        own = self._own.get(host)
        if own is waiting:
            del self._own[host]
        elif len(waiting.failures) < min(TRIES, len(self._hands)):
            self._waiting.append(waiting)
            self._tell(f"{waiting.order.shard.key} failed on {host}, another host tries: {why}")
            return
        self.set_aside[waiting.order.shard.key] = waiting
        self._tell(f"{waiting.order.shard.key} is set aside: {why}")

    async def _gather(self, hand: Hand, waiting: OpenShard, result: ShardResult) -> None:
        """Have the bundle here, checked, before the shard counts as measured."""
        bundle = Path(result.place)
        if hand.name not in self._local:
            bundle = await self._fetched(hand, result)
        elif not is_bundle(bundle) or digest_of(bundle) != result.digest:
            raise FleetError(f"{bundle} is not what {hand.name} measured")
        self.gathered[result.key] = Gathered(waiting.order, result, bundle)
        if waiting in self._waiting:
            self._waiting.remove(waiting)
        if self._own.get(hand.name) is waiting:
            del self._own[hand.name]
        shard = waiting.order.shard
        how = counted(result.taken, "sample") if result.taken else "measured before"
        self._tell(
            f"{hand.name}: {shard.target}, {counted(len(shard.configurations), 'configuration')}, "
            f"{how} ({len(self.gathered)} of {self._total} shards)"
        )

    async def _fetched(self, hand: Hand, result: ShardResult) -> Path:
        place = self._kept / f"{result.key}.bundle"
        if is_bundle(place) and digest_of(place) == result.digest:
            return place
        sent: dict[str, bytes] = await self._remote(hand, tasks.send_bundle, result.place)
        files.make_folder(place)
        for name in sorted(sent, key=lambda name: name == MANIFEST):  # which makes it a bundle
            if Path(name).name != name:
                raise FleetError(f"{hand.name} sent a file called {name!r}")
            await asyncio.to_thread((place / name).write_bytes, sent[name])
        if not is_bundle(place) or digest_of(place) != result.digest:
            raise FleetError(f"what {hand.name} sent of {result.session} is not what it measured")
        return place

    async def _remote(self, hand: Hand, work: Callable[..., Any], argument: object) -> Any:
        """A task on that host and no other. Raises `HostLost`, `FleetError`."""
        self._attempts += 1
        future: Future[Any] = self._client.submit(
            work, argument, key=f"{work.__name__}-{hand.name}-{self._attempts}",
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
        busy = {hand.task for hand in self._hands.values() if hand.task is not None}
        if not busy:
            return
        self._stopping = True
        try:
            async with asyncio.timeout(STOPPING_S):
                await self._client.run(tasks.stop_shard, on_error="ignore")
                await asyncio.wait(busy)
        except (TimeoutError, OSError) as error:
            log.warning("a host did not say that it stopped", why=str(error))
        for task in busy:
            task.cancel()
