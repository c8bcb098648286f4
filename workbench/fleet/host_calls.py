"""What a dispatch asks of a host, and what it answers: Dask carries it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench import __version__
from workbench.domain import codec
from workbench.domain.fleets import STARTED_ELSEWHERE, LabHost, ShardOrder, ShardResult
from workbench.engine.sessions.clock import now
from workbench.fleet import patience, tasks
from workbench.fleet.dispatched import Tell
from workbench.fleet.fetched_bundles import NotFetched, NotWhole, store_fetched
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.hearing import Hearing
from workbench.fleet.host_engine import lab_of
from workbench.fleet.host_waits import hear_waits
from workbench.fleet.named_scheduler import workers_of
from workbench.fleet.open_shards import Hand
from workbench.fleet.scheduler_clients import ANSWER_S, SchedulerLost
from workbench.log import logger
from workbench.store.bundle import is_whole

if TYPE_CHECKING:
    from distributed import Client, Future

log = logger("fleet")


class HostLost(Exception):
    """The host of a task is gone."""


class HostCalls:
    """Of one dispatch.

    Parameters
    ----------
    client : of the fleet's scheduler.
    is_there : whether a host is the one that is there now: it may have come back since.
    """

    def __init__(self, client: Client, tell: Tell, is_there: Callable[[Hand], bool]) -> None:
        self._client, self._tell, self._is_there = client, tell, is_there
        self._hearing = Hearing()

    async def present(self) -> dict[str, str]:
        """Addresses of the hosts that are there, by name. Raises `SchedulerLost`."""
        try:
            return await workers_of(self._client, self._hearing)
        except TimeoutError:  # it may still be there
            raise SchedulerLost(f"its scheduler did not answer within {ANSWER_S:g} s") from None
        except OSError as error:
            raise SchedulerLost(f"its scheduler is gone: {error}") from None

    @asynccontextmanager
    async def asking(self, hand: Hand) -> AsyncIterator[None]:
        """Where a host says nothing while the body runs, and measures nothing, it is silent."""
        hand.asked_at = asyncio.get_running_loop().time()
        try:
            async with self._hearing_waits(hand, "", self._hear_busy):
                yield
        finally:
            hand.asked_at = math.inf

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

    async def must_be_same(self, hand: Hand, host: LabHost) -> None:
        """See that a worker that was started elsewhere has this version. Raises `FleetError`."""
        if host.kind in STARTED_ELSEWHERE:
            said = await self._remote(hand, tasks.be_posted, codec.dumps(codec.to_plain(host)))
            if said != __version__:
                raise FleetError(
                    f"has workbench {said}, this is {__version__}; install the same there",
                    where=hand.name,
                )

    async def ahead_s(self, hand: Hand) -> float:
        """By how much its clock is ahead of this host's, at least; negative: behind. What is within
        the time that the question took is none."""
        before = now()
        there = float(await self._remote(hand, tasks.tell_time, b""))
        after = now()
        return there - after if there > after else min(0.0, there - before)

    async def finished(self, hand: Hand, keys: Mapping[str, str]) -> Iterator[ShardResult]:
        """Of these shards, by the names of their sessions, what it has finished."""
        said = await self._remote(hand, tasks.find_shards, codec.dumps(keys))
        return (codec.from_plain(each, ShardResult) for each in codec.loads(said))

    async def lab_trouble(self, hand: Hand, lab: str) -> str:
        """Why that lab cannot measure there; empty where it can."""
        return str(await self._remote(hand, tasks.see_lab, lab))

    async def measured(
        self, hand: Hand, host: LabHost, order: ShardOrder, heard: Callable[[Hand, str], None]
    ) -> ShardResult:
        """What a host says of a shard that it is given. Raises `HostLost`, `FleetError`.

        Parameters
        ----------
        heard : is told meanwhile whom it waits for before it measures; empty: nobody any more.
        """
        if host.kind in STARTED_ELSEWHERE:
            # Another fleet may share that worker, which therefore knows no fleet's hosts file.
            order = replace(order, lab=lab_of(host, order.lab))
        plain = codec.dumps(codec.to_plain(order))
        try:
            async with self._hearing_waits(hand, order.session, heard):
                said = await self._remote(hand, tasks.measure_shard, plain)
        finally:
            hand.waits_since = None
        return codec.from_plain(codec.loads(said), ShardResult)

    async def fetch(self, hand: Hand, result: ShardResult, place: Path) -> None:
        """Have its bundle in that folder here, whole.

        Raises `NotFetched`, `NotStoredHere`, `HostLost`, `FleetError`.
        """
        if await asyncio.to_thread(is_whole, place, result.digest):
            return

        async def ask(offset: int) -> object:
            wanted = codec.dumps(codec.to_plain(tasks.WantedPiece(result.place, offset)))
            limit = asyncio.timeout(patience.SENDING_S)

            def hear(hand: Hand, who: str) -> None:  # a worker does one thing at a time
                hand.waits_for = who
                until = asyncio.get_running_loop().time() + patience.SENDING_S
                limit.reschedule(None if who else until)

            try:
                async with limit, self._hearing_waits(hand, "", hear):
                    return await self._remote(hand, tasks.send_piece, wanted)
            except (TimeoutError, HostLost):  # stuck in that, its worker takes nothing else
                if limit.expired():
                    self._tell(
                        f"{hand.name} did not send what it measured within {patience.SENDING_S:g} s"
                    )
                raise HostLost(hand.name) from None
            except FleetError as error:
                raise NotFetched(error.what, where=hand.name) from None

        await store_fetched(place, hand.name, ask)
        if not await asyncio.to_thread(is_whole, place, result.digest):
            raise NotWhole("what it sent is not what it measured", where=hand.name)

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
            if future.cancelled() and self._is_there(hand):
                raise HostLost(hand.name) from None
            raise
        except Exception as error:  # noqa: BLE001 - whatever the host's code raised
            if type(error).__module__.startswith("distributed"):
                raise HostLost(hand.name) from None
            raise FleetError(f"{type(error).__name__}: {error}", where=hand.name) from None
        finally:
            future.release()

    async def have_stop(self, hands: Sequence[Hand]) -> None:
        """Have hosts end what they measure; what they have of it is kept there."""
        sessions = [hand.waiting.order.session for hand in hands if hand.waiting is not None]
        try:
            async with asyncio.timeout(patience.STOPPING_S / 2):
                await self._client.run(
                    tasks.stop_shard, codec.dumps(sessions), on_error="ignore",
                    workers=[hand.address for hand in hands],
                )  # fmt: skip
        except (OSError, AttributeError) as error:  # a client that gave up has no scheduler
            log.warning("a host did not say that it stopped", why=str(error))
