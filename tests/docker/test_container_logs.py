"""Reading a container's log from an engine that sends whatever it likes; no engine is needed."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiodocker
import pytest
from aiodocker.containers import DockerContainer
from aiohttp import web
from aiohttp.test_utils import TestServer

from workbench.domain.logs import KEPT_LINES, LONGEST_LINE
from workbench.labs.docker import logs
from workbench.labs.docker.logs import LogReader

AT = b"2026-11-22T04:00:00.%09dZ "
SECOND_NS = 1795320000 * 10**9
PIECE = 16 << 10
"""As the engine cuts lines."""

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def frame(text: bytes, *, ns: int = 0, stream: int = 1) -> bytes:
    entry = AT % ns + text
    return bytes([stream, 0, 0, 0]) + len(entry).to_bytes(4) + entry


def read_all(sent: bytes, chunk: int, after_ns: int = 0) -> LogReader:
    reader = LogReader(after_ns)
    for begin in range(0, len(sent), chunk):
        reader.feed(sent[begin : begin + chunk])
    reader.finish()
    return reader


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_lines_come_out_whole_however_the_bytes_come_in(chunk: int) -> None:
    sent = frame(b"\x1b[31mred\x00\xff\n", ns=5)
    sent += frame(b"to ", ns=6, stream=2) + frame(b"between\n", ns=7)
    sent += frame(b"stderr\n", ns=8, stream=2) + frame(b"unended", ns=9)
    reader = read_all(sent, chunk)
    assert [(line.text, line.stream) for line in reader.lines] == [
        ("\x1b[31mred\x00\ufffd", "stdout"),
        ("between", "stdout"),
        ("to stderr", "stderr"),
        ("unended", "stdout"),
    ]
    assert reader.lines[0].at == pytest.approx(SECOND_NS / 1e9)
    assert reader.last_ns == SECOND_NS + 9


def test_what_was_read_before_is_not_read_again() -> None:
    first = read_all(frame(b"one\n", ns=1) + frame(b"two\n", ns=2), 100)
    sent = frame(b"two\n", ns=2) + frame(b"three\n", ns=3)
    assert [line.text for line in read_all(sent, 100, first.last_ns).lines] == ["three"]


def test_a_megabyte_without_a_line_feed_is_one_short_line() -> None:
    reader = read_all(b"".join(frame(b"x" * PIECE, ns=i) for i in range(64)), 50_000)
    (line,) = reader.lines
    assert (len(line.text), line.cut) == (LONGEST_LINE, (1 << 20) - LONGEST_LINE)


def test_memory_does_not_grow_with_what_is_written() -> None:
    piece = b"".join(frame(b"y" * (PIECE - 1) + b"\n", ns=i) for i in range(64))
    reader = LogReader()
    tracemalloc.start()
    try:
        for _ in range(50):
            reader.feed(piece)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.entries == 50 * 64
    assert len(reader.lines) == logs.TAIL
    assert most < 4 << 20, "50 MB went through"


@asynccontextmanager
async def engine(answer: Answer) -> AsyncIterator[DockerContainer]:
    """A container of an engine that answers for its log as it is told."""
    app = web.Application()
    app.router.add_get("/{path:.*/containers/c/logs}", answer)
    async with TestServer(app) as server:
        docker = aiodocker.Docker(str(server.make_url("/")), api_version="v1.43")
        try:
            yield docker.containers.container("c")
        finally:
            await docker.close()


async def test_a_function_that_writes_without_end_costs_no_more_than_is_allowed() -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        assert request.query["tail"] == str(logs.TAIL)
        response = web.StreamResponse()
        await response.prepare(request)
        piece = b"".join(frame(b"%d\n" % i, ns=i) for i in range(1000))
        try:
            while sent < 100 << 20:
                await response.write(piece)
                sent += len(piece)
        except ConnectionError:
            pass  # whoever reads has hung up
        return response

    async with engine(endless) as container:
        reader = await logs.read(container)
    assert len(reader.lines) == logs.TAIL > KEPT_LINES
    assert sent < 100 << 20, "it was not read to its end"


async def test_a_log_that_is_gone_is_empty() -> None:
    async def gone(_: web.Request) -> web.StreamResponse:
        return web.json_response({"message": "No such container: c"}, status=404)

    async with engine(gone) as container:
        assert not (await logs.read(container)).lines


async def test_an_engine_that_goes_silent_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "PATIENCE_S", 0.2)
    over = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(frame(b"one\n"))
        await over.wait()
        return response

    async with engine(silent) as container:
        reader = await logs.read(container)
        over.set()
    assert [line.text for line in reader.lines] == ["one"]


async def test_what_is_no_log_at_all_is_bounded_as_well() -> None:
    async def nonsense(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"\xff" * (1 << 20))

    async with engine(nonsense) as container:
        assert not (await logs.read(container)).lines
