"""Followers of a session: slow ones miss nothing, ticks coalesce, streams end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from session_making import EPOCH, created

from workbench.domain.errors import SessionError
from workbench.domain.events import Event, Noted, Tick, UsageTick
from workbench.engine.sessions import channel as channels
from workbench.engine.sessions.channel import QUEUE, Channel, Following
from workbench.engine.sessions.finishing import to_the_end
from workbench.store.session_file import SessionFile


@pytest_asyncio.fixture
async def channel(tmp_path: Path) -> AsyncIterator[Channel]:
    file = await SessionFile.create(tmp_path / "s.duckdb", created(), at=EPOCH)
    channel = Channel(file, await file.view())
    channel.live = True
    yield channel
    await file.close()


async def rest(following: Following) -> list[Event | Tick]:
    return [change async for change in following]


async def test_a_reader_slower_than_its_queue_is_served_from_the_store(channel: Channel) -> None:
    following = channel.follow()
    count = 2 * QUEUE + 7
    for number in range(count):
        await channel.record(Noted("info", f"note {number}"))
    channel.end()
    changes = await rest(following)
    assert [c.fact for c in changes if isinstance(c, Event)] == [
        Noted("info", f"note {number}") for number in range(count)
    ]


async def test_a_cancelled_recorder_leaves_no_fact_in_the_file_that_the_view_lacks(
    channel: Channel,
) -> None:
    following = channel.follow()
    for number in range(20):
        recording = asyncio.create_task(channel.record(Noted("info", f"note {number}")))
        await asyncio.sleep(0)  # it has begun
        await asyncio.sleep(0)
        recording.cancel()
        await asyncio.wait([recording])
        assert recording.cancelled()
        assert channel.view.seq == channel.file.last_seq
    channel.end()
    assert [c.seq for c in await rest(following) if isinstance(c, Event)] == list(range(2, 22))
    assert channel.view == await channel.file.view()


async def test_no_event_is_before_the_one_that_it_follows(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine may go on with what one had begun whose clock was an hour ahead."""
    latest = (await channel.record(Noted("info", "ahead"))).at
    monkeypatch.setattr(channels, "now", lambda: latest - 3600.0)
    assert (await channel.record(Noted("info", "behind"))).at == latest
    monkeypatch.setattr(channels, "now", lambda: latest + 1.0)
    assert (await channel.record(Noted("info", "and on"))).at == latest + 1.0


async def test_what_fails_once_nobody_waits_is_told_to_the_log_alone() -> None:
    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))

    async def fails() -> None:
        await asyncio.sleep(0.01)
        raise SessionError("is not there")

    asked = asyncio.create_task(to_the_end(fails()))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    assert asked.cancelled()
    del asked
    gc.collect()
    await asyncio.sleep(0)
    assert unheard == []


async def test_ticks_coalesce_to_the_latest_and_events_come_first(channel: Channel) -> None:
    following = channel.follow()
    for at in (1.0, 2.0, 3.0):
        channel.tick(UsageTick("s", at, {}))
    event = await channel.record(Noted("info", "a note"))
    channel.end()
    assert await rest(following) == [event, UsageTick("s", 3.0, {})]


async def test_a_snapshot_is_the_followers_own(channel: Channel) -> None:
    following = channel.follow()
    event = await channel.record(Noted("info", "later"))
    assert following.view.seq == event.seq - 1
    following.view.apply(event)
    assert following.view == channel.view
    following.view.log.clear()
    assert channel.view.log


async def test_what_is_not_measured_by_a_live_run_reads_as_interrupted(channel: Channel) -> None:
    assert channel.snapshot().state == "planned"
    channel.rest()
    assert channel.snapshot().state == "interrupted"


async def test_who_unfollows_hears_no_more(channel: Channel) -> None:
    following = channel.follow()
    channel.unfollow(following)
    await channel.record(Noted("info", "unheard"))
    following.end()
    assert await rest(following) == []
    assert not channel.followed


async def test_a_stream_that_ends_by_an_error_raises_it_after_the_last_event(
    channel: Channel,
) -> None:
    following = channel.follow()
    event = await channel.record(Noted("info", "the last"))
    channel.end(SessionError("the disk is full"))
    assert await anext(following) == event
    with pytest.raises(SessionError, match="disk is full"):
        await anext(following)
