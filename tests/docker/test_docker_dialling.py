"""An engine that takes the connection and never answers; no engine is needed."""

from __future__ import annotations

import asyncio
from typing import Any

import aiodocker
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from workbench.domain.errors import LabError
from workbench.labs.docker.engine import dial


class Seen(aiodocker.Docker):
    """Says which clients were made."""

    made: list[Seen] = []  # noqa: RUF012 - of the test that empties it

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, api_version="v1.43", **options)
        self.made.append(self)


@pytest.fixture(autouse=True)
def _seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seen, "made", [])
    monkeypatch.setattr(aiodocker, "Docker", Seen)


async def test_whoever_gives_up_waiting_for_an_engine_leaves_no_connection() -> None:
    asked = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        asked.set()
        await asyncio.sleep(60)
        raise AssertionError

    app = web.Application()
    app.router.add_get("/{path:.*}", silent)
    async with TestServer(app) as server:
        dialling = asyncio.create_task(dial(str(server.make_url("/"))))
        await asyncio.wait_for(asked.wait(), 5)
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        assert [client.session.closed for client in Seen.made] == [True]


async def test_one_that_answers_nonsense_is_a_sentence_and_leaves_none() -> None:
    async def nonsense(request: web.Request) -> web.Response:
        return web.Response(status=500, text="[")

    app = web.Application()
    app.router.add_get("/{path:.*}", nonsense)
    async with TestServer(app) as server:
        with pytest.raises(LabError, match="does not answer"):
            await dial(str(server.make_url("/")))
        assert [client.session.closed for client in Seen.made] == [True]
