"""Servers that answer wrongly, late, too much or not at all: each a sentence, and bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from workbench.probes import prometheus
from workbench.probes.prometheus import AskedSpan, PrometheusServer, Unanswered

SPAN = AskedSpan.to(1_000.0, 3, 1.0)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Answer], Awaitable[PrometheusServer]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    opened: list[TestServer | PrometheusServer] = []

    async def serving(answer: Answer) -> PrometheusServer:
        app = web.Application()
        app.router.add_get("/api/v1/{what}", answer)
        server = TestServer(app, host="127.0.0.1")
        await server.start_server()
        client = PrometheusServer(f"http://me:hidden@127.0.0.1:{server.port}", "")
        opened.extend((client, server))
        return client

    yield serving
    for one in opened:
        await one.close()


def matrix(*series: list[Any], **metric: str) -> web.Response:
    result = [{"metric": metric, "values": values} for values in series]
    return web.json_response(
        {"status": "success", "data": {"resultType": "matrix", "result": result}}
    )


def points(*values: str) -> list[list[Any]]:
    return [[998 + i, value] for i, value in enumerate(values)]


async def why(serve: Serve, answer: Answer) -> Unanswered:
    client = await serve(answer)
    with pytest.raises(Unanswered) as caught:
        await client.figures("up", SPAN, 2.0)
    assert "hidden" not in f"{caught.value}{client.title}{caught.value.__cause__}"
    return caught.value


async def test_one_series_is_the_figure(serve: Serve) -> None:
    asked: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append({**request.query, "auth": request.headers["Authorization"]})
        return matrix(points("1", "2", "4.5"))

    client = await serve(answer)
    np.testing.assert_array_equal(await client.figures("up", SPAN, 2.0), [1.0, 2.0, 4.5])
    (query,) = asked
    assert (query["start"], query["end"], query["step"]) == ("998.000", "1000.000", "1.000")
    assert query["lookback_delta"] == "2.000"
    assert query["auth"].startswith("Basic ")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("1", "NaN", "2"), "1 of 3 values are NaN or infinite"),
        (("+Inf", "NaN", "NaN"), "3 of 3 values are NaN or infinite"),
        (("1", "2"), "only 2 of 3 instants have a value"),
        (("1", "2", "3", "4"), "4 values came where 3 are due"),
        (("1", "two", "3"), "no values that are numbers"),
    ],
)
async def test_values_that_are_no_figure(serve: Serve, values: tuple[str, ...], said: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return matrix(points(*values))

    assert said in str(await why(serve, answer))


async def test_no_data_and_stale_data_are_told_apart(serve: Serve) -> None:
    async def nothing(request: web.Request) -> web.Response:
        return matrix()

    async def stale(request: web.Request) -> web.Response:
        old = float(request.query["lookback_delta"]) > 100
        return matrix(points("1", "1", "1")) if old else matrix()

    assert "no data: no series fits" in str(await why(serve, nothing))
    assert "it is stale: its last reading is older than 2 s" in str(await why(serve, stale))


async def test_a_vector_where_a_scalar_is_due(serve: Serve) -> None:
    async def several(request: web.Request) -> web.Response:
        return matrix(points("1", "2", "3"), points("1", "2", "3"), instance="a\x1b[31m")

    async def instant(request: web.Request) -> web.Response:
        data = {"resultType": "vector", "result": []}
        return web.json_response({"status": "success", "data": data})

    said = str(await why(serve, several))
    assert "2 series where one is due ({instance=a [31m}" in said
    assert "a vector where a matrix is due" in str(await why(serve, instant))


async def test_ten_thousand_series_are_read_to_a_bound(serve: Serve) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b'{"status":"success","data":{"resultType":"matrix","result":[')
        with_one = json.dumps({"metric": {"pod": "x" * 200}, "values": points("1", "2", "3")})
        while sent < 10_000:
            sent += 1
            try:
                await answer.write(with_one.encode() + b",")
            except ConnectionError:
                break
        return answer

    fault = await why(serve, endless)
    assert "longer than 1 MiB: too many series" in str(fault)
    assert not fault.server, "its other queries may be fine"


@pytest.mark.parametrize(
    ("status", "body", "said", "server"),
    [
        (422, '{"status":"error","errorType":"execution","error":"many-to-many"}',
         "refuses the query (422, execution: many-to-many)", False),
        (400, '{"status":"error","errorType":"bad_data","error":"parse\\u001b[1m error"}',
         "refuses the query (400, bad_data: parse [1m error)", False),
        (503, "<html>unavailable</html>", "its answer (503) is not that of a Prometheus", True),
        (401, "{}", "refuses us (401): is its token set?", True),
        (302, "", "its answer (302) is not that of a Prometheus", True),
        (200, "[" * 100_000, "its answer (200) is not that of a Prometheus", True),
        (200, '{"status":"success"}', "its answer (200) is not that of a Prometheus", True),
        (200, '{"status":"success","data":{"resultType":"matrix","result":[1]}}',
         "its answer is no list of series", False),
    ],
)  # fmt: skip
async def test_answers_that_are_none(
    serve: Serve, status: int, body: str, said: str, server: bool
) -> None:
    async def answer(request: web.Request) -> web.Response:
        headers = {"Location": "http://127.0.0.1:1/elsewhere"} if status == 302 else {}
        return web.Response(status=status, text=body, headers=headers)

    fault = await why(serve, answer)
    assert said in str(fault)
    assert fault.server == server


async def test_one_that_is_slow_or_gone(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "ANSWER_S", 0.2)

    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    async def drips(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" ")
            await asyncio.sleep(0.02)

    for answer in (slow, drips):
        fault = await why(serve, answer)
        assert "it gave no answer within 0.2 s" in str(fault)
        assert fault.server
    client = PrometheusServer("http://127.0.0.1:9")
    with pytest.raises(Unanswered, match="it cannot be reached"):
        await client.figures("up", SPAN, 2.0)
    await client.close()


async def test_its_clock_is_compared(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        response = matrix(points("1", "2", "3"))
        response.headers["Date"] = "Wed, 21 Oct 2015 07:28:00 GMT"
        return response

    client = await serve(answer)
    await client.figures("up", SPAN, 2.0)
    assert client.skew_s < -1e6


async def test_alerts_that_fire_and_that_have_ended(serve: Serve) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.match_info["what"] == "query_range":
            assert request.query["query"] == 'ALERTS{alertstate="firing"}'
            labels = {"__name__": "ALERTS", "alertstate": "firing", "alertname": "Ended"}
            return matrix(points("1"), **labels)
        alerts = [
            {"labels": {"alertname": "Firing"}, "state": "firing"},
            {"labels": {"alertname": "Pending"}, "state": "pending"},
            "what is this?",
        ]
        return web.json_response({"status": "success", "data": {"alerts": alerts}})

    client = await serve(answer)
    assert await client.firing(SPAN) == ({"alertname": "Firing"}, {"alertname": "Ended"})
