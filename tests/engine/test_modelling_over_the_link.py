"""Models over the socket, from a worker process of their own: seen by followers, not by force."""

from __future__ import annotations

import asyncio

import pytest
from engine_watching import Watched
from modelling_session import SESSION, TARGET, first, write_session

from workbench.domain.events import InfluenceMeasured, TargetModelled
from workbench.domain.messages import Viewed, ViewSession
from workbench.domain.questions import ModelsScored, ScoreModels
from workbench.engine.core import Engine
from workbench.engine.learning import scoring
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_model_is_seen_by_who_follows_and_two_clients_make_one(
    engine: Engine, client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)
    await write_session(engine.workspace.sessions / f"{SESSION}.duckdb", first())
    asked = ScoreModels(SESSION, TARGET, methods=("short",))
    observer = await SocketClient.connect(engine.workspace.socket, "guest", "observer")
    other = await SocketClient.connect(engine.workspace.socket, "other")
    try:
        looked = await observer.ask(asked)
        assert isinstance(looked, ModelsScored)
        assert looked.models == ()
        async with observer.follow(SESSION) as feed:
            watched = Watched(feed)
            assert feed.view.models == []
            replies = await asyncio.gather(client.ask(asked), other.ask(asked))
            await watched.fact(TargetModelled)
            await watched.fact(InfluenceMeasured)
            for reply in replies:
                assert isinstance(reply, ModelsScored)
                assert reply.models == tuple(feed.view.models)
                assert reply.influences == tuple(feed.view.influences) == looked.influences
                assert reply.notes == ()
            seen = await client.ask(ViewSession(SESSION))
            assert isinstance(seen, Viewed)
            assert seen.view == feed.view
            assert [model.version for model in seen.view.models] == [1]
    finally:
        await observer.close()
        await other.close()
    assert engine.status().scoring == ""
