"""`serve --http`: each operation of its document, asked of a real engine; and what is hostile."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from driving import REPOSITORY, Workbench, a_workbench
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from session_making import closed_session

from workbench.domain.messages import REQUESTS

PATIENCE_S = 180
HOST_ONLY = {
    *("ImportBundle", "StopEngine", "ReapStrays"),
    *("BeginFleetSession", "ReportFleet", "EndFleetSession", "ReportLook"),
}
OF_A_LINK = {"Cancel", "Unsubscribe"}
SMALL = REPOSITORY / "tests" / "data" / "small.yaml"
CAMPAIGN = "small-api"


@dataclass
class Api:
    """`workbench serve --http` on loopback, and the tokens of its askers."""

    workbench: Workbench
    address: str
    tokens: dict[str, str] = field(repr=False)
    process: subprocess.Popen[str] = field(repr=False)

    @asynccontextmanager
    async def asking(
        self, who: str = "ann", **headers: str
    ) -> AsyncIterator[aiohttp.ClientSession]:
        mine = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        async with aiohttp.ClientSession(
            self.address, headers=mine | headers, timeout=timeout
        ) as session:
            yield session


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with a_workbench(tmp_path_factory.mktemp("http")) as workbench, workbench.serving():
        campaigns = workbench.root / "templates" / "campaigns"
        campaigns.mkdir(parents=True)
        text = SMALL.read_text(encoding="utf-8")
        (campaigns / f"{CAMPAIGN}.yaml").write_text(
            re.sub(r"(?m)^name: .*", f"name: {CAMPAIGN}", text)
        )
        asyncio.run(closed_session(workbench.root / "sessions" / "one.duckdb"))
        tokens = {
            "ann": workbench.run("token", "add", "ann", "--operator").stdout.strip(),
            "olga": workbench.run("token", "add", "olga").stdout.strip(),
        }
        process = workbench.start("serve", "--http", "127.0.0.1:0")
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://\S+:\d+", said)
        assert found is not None, said + process.stderr.read()
        try:
            yield Api(workbench, found[0], tokens, process)
        finally:
            process.terminate()
            process.communicate(timeout=60)


async def asked(
    client: aiohttp.ClientSession, document: dict[str, Any], name: str, /, **fields: Any
) -> tuple[int, Any]:
    """Status and reply of an operation; both are as the document says, or this fails."""
    ((method, operation),) = document["paths"][f"/v1/{name}"].items()
    how: dict[str, Any] = {"json": fields}
    if method == "get":
        how = {
            "params": [
                (k, str(v)) for k, w in fields.items() for v in (w if isinstance(w, list) else [w])
            ]
        }
    async with client.request(method, f"/v1/{name}", **how) as answer:
        status, reply = answer.status, await answer.json()
    said = operation["responses"][str(status)]
    if "$ref" in said:
        said = document["components"]["responses"][said["$ref"].rpartition("/")[2]]
    schema = said["content"]["application/json"]["schema"]
    Draft202012Validator(schema | {"components": document["components"]}).validate(reply)
    return status, reply


async def document_of(session: aiohttp.ClientSession) -> dict[str, Any]:
    async with session.get("/openapi.json") as answer:
        assert answer.status == 200
        document: dict[str, Any] = await answer.json()
        return document


@pytest.mark.slow
async def test_the_document_is_openapi_and_has_every_request(api: Api) -> None:
    async with api.asking("") as stranger:
        document = await document_of(stranger)
    validate(document)
    assert document["openapi"].startswith("3.1")
    names = {path.rpartition("/")[2] for path in document["paths"]}
    assert names == {kind.__name__ for kind in REQUESTS} - HOST_ONLY - OF_A_LINK


ENOUGH: dict[str, dict[str, Any]] = {
    "GetSample": {"sample": "SAMPLE"},
    "PlanCampaign": {"campaign": CAMPAIGN, "lab": "sim"},
    "CompareSessions": {"first": "one", "second": "one"},
    "GenerateChains": {"policy": "haproxy > tinyproxy"},
    "FindMoment": {"session": "one", "sample": 1},
    "Recommend": {"session": "one", "slas": ["p95<=500ms @ rate=200/s, filesize=10kB"]},
    "ExportSession": {"session": "one", "format": "csv"},
    "ExplainModel": {"target": "haproxy", "kpi": "p95_ms", "version": 1},
    "StartDraft": {"name": "d", "template": CAMPAIGN},
    "ReadDraft": {"name": "d"},
    "GetDraftRevision": {"name": "d"},
    "DuplicateSession": {"session": "one", "name": "five"},
    "DeleteSession": {"session": "four"},
    "RenameSession": {"session": "two", "name": "three"},
    "ListEvents": {"session": "one", "kinds": ["ModelFitted", "RunFinished"]},
}
"""What an operation needs to be answered, beside the session; without, it is refused."""
ANSWERED = {
    *ENOUGH,
    *("GetStatus", "ListSessions", "ListCampaigns", "ViewSession", "ListSamples", "Diagnose"),
    *("ListDrafts", "GetPalette", "ListFormats", "GetRecommendOptions", "GetTimeLine"),
} - {"ExplainModel", "Recommend"}  # which are asked for what cannot be
LONG = {"RunCampaign", "MeasureHost", "RunDoctor", "Subscribe", "ScoreModels"}
"""Driven elsewhere, or seconds of CPU that show nothing of this door."""


async def test_every_operation_answers_as_its_document_says(api: Api) -> None:
    told: dict[str, tuple[int, str]] = {}
    async with api.asking() as ann:
        document = await document_of(ann)
        _, page = await asked(ann, document, "ListSamples", session="one", limit=2)
        assert len(page["samples"]) == 2 < page["total"]
        ENOUGH["GetSample"]["sample"] = page["samples"][0]["id"]
        for copy in ("two", "four"):  # to be renamed, to be deleted
            await asked(ann, document, "DuplicateSession", session="one", name=copy)
        for path in document["paths"]:
            name = path.rpartition("/")[2]
            if name in LONG:
                continue
            schema = document["components"]["schemas"][name]
            fields = {"session": "one"} if "session" in schema["properties"] else {}
            status, reply = await asked(ann, document, name, **fields | ENOUGH.get(name, {}))
            told[name] = status, reply.get("what", "")
    assert {name: told[name] for name in ANSWERED if told[name][0] != 200} == {}
    refused = {name: what for name, (status, what) in told.items() if status != 200}
    assert all(what and "unexpected" not in what for what in refused.values()), refused
    assert not {status for status, _ in told.values()} & {500, 503}, told


async def test_a_run_by_http_and_its_events(api: Api) -> None:
    async with api.asking() as ann, api.asking("olga") as olga:
        document = await document_of(ann)
        status, accepted = await asked(
            ann, document, "RunCampaign", campaign=CAMPAIGN, lab="sim", session="live", pace=20
        )
        assert (status, accepted["session"]) == (200, "live"), accepted
        status, refused = await asked(olga, document, "StopRun", session="live")
        assert status == 403
        assert "observers" in refused["what"]
        events = await until_event(olga, "SampleTaken", {})
        assert events[0][1] == "Viewed"
        status, _ = await asked(ann, document, "PauseRun", session="live")
        assert status == 200
        await until_event(olga, "RunPaused", {"Last-Event-ID": "0"})
        assert (await asked(ann, document, "ContinueRun", session="live"))[0] == 200
        assert (await asked(ann, document, "StopRun", session="live"))[0] == 200
        again = await until_event(olga, "RunFinished", {"Last-Event-ID": "0"})
        numbers = [int(number) for number, _, _ in again if number]
        assert numbers == list(range(1, numbers[-1] + 1))  # each once, and none left out
        late = await until_event(olga, "RunFinished", {"Last-Event-ID": str(numbers[-1] - 1)})
        assert late[0][0] == str(numbers[-1])
        asker = next(json.loads(data) for _, kind, data in again if kind == "PauseRequested")
        assert asker["by"] == "ann"


async def until_event(
    session: aiohttp.ClientSession, wanted: str, headers: dict[str, str]
) -> list[tuple[str, str, str]]:
    """Number, kind and data of a stream's events up to the first of that kind."""
    seen: list[tuple[str, str, str]] = []
    part: dict[str, str] = {}
    url = "/v1/Subscribe?session=live"
    async with asyncio.timeout(PATIENCE_S), session.get(url, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "text/event-stream"
        rest = b""
        async for piece in answer.content.iter_any():
            *lines, rest = (rest + piece).split(b"\n")
            for line in map(bytes.decode, lines):
                if line:
                    name, _, value = line.partition(": ")
                    part[name] = value
                    continue
                seen.append((part.get("id", ""), part.get("event", ""), part.get("data", "")))
                part = {}
                if seen[-1][1] == wanted:
                    return seen
    raise AssertionError(f"the stream ended before {wanted}: {seen[-3:]}")


HOSTILE = [
    ("GET", "/v1/ListSessions", {"Authorization": "Bearer wrong"}, None, 401, "token"),
    ("GET", "/v1/ListSessions", {"Authorization": "Basic eDp5"}, None, 401, "token"),
    ("GET", "/v1/ListSessions", {"Authorization": "Bearer \udcff"}, None, 401, "token"),
    ("GET", "/v1/ListSessions", {"Host": "rebound.example"}, None, 403, "--name"),
    ("GET", "/v1/ListSessions", {"Origin": "http://evil.example"}, None, 403, "--name"),
    ("GET", "/openapi.json", {"Host": "rebound.example"}, None, 403, "--name"),
    ("GET", "/v1/Nothing", {}, None, 404, "Not Found"),
    ("GET", "/v1/StopEngine", {}, None, 404, "Not Found"),
    ("GET", "/v1/PauseRun", {}, None, 405, "Method"),
    ("GET", "/v1/ListSamples", {}, None, 400, "session"),
    ("GET", "/v1/ListSamples?session=none", {}, None, 404, "none"),
    ("GET", "/v1/ListSamples?session=one&limit=many", {}, None, 400, "limit"),
    ("GET", "/v1/ListSamples?session=one&limit=0", {}, None, 400, "limit"),
    ("GET", "/v1/ListSamples?session=one&limit=1e400", {}, None, 400, "limit"),
    ("GET", "/v1/ListSamples?session=one&offset=-1", {}, None, 400, "offset"),
    ("GET", "/v1/ListSamples?session=one&session=two", {}, None, 400, "twice"),
    ("GET", "/v1/ListSamples?session=../../etc/passwd", {}, None, 403, "path"),
    ("GET", "/v1/ListSamples?session=one&sql=1", {}, None, 400, "sql"),
    ("GET", "/v1/Subscribe?session=one", {"Last-Event-ID": "x"}, None, 400, "number"),
    ("GET", "/v1/Subscribe?session=none", {}, None, 404, "none"),
    ("POST", "/v1/PauseRun?session=one", {}, b"{}", 400, "body"),
    ("POST", "/v1/PauseRun", {}, b"{", 400, "JSON"),
    ("POST", "/v1/PauseRun", {}, b"[" * 100_000, 400, "JSON"),
    ("POST", "/v1/PauseRun", {}, b"[]", 400, "object"),
    ("POST", "/v1/PauseRun", {}, b'{"session": 7}', 400, "session"),
    ("POST", "/v1/PauseRun", {}, b'{"session": "\xff"}', 400, "JSON"),
    ("POST", "/v1/PauseRun", {}, b" " * 300_000, 413, "size"),
    ("POST", "/v1/PauseRun", {"Content-Type": "text/plain"}, b"{}", 415, "json"),
    ("POST", "/v1/RunCampaign", {}, b'{"campaign": "/etc/passwd"}', 403, "path"),
    ("POST", "/v1/RunCampaign", {}, b'{"campaign": "x", "pace": 1e999}', 400, ""),
]


async def test_what_is_hostile_is_a_sentence(api: Api) -> None:
    async with api.asking() as ann:
        for method, path, headers, body, status, word in HOSTILE:
            typed = headers if body is None else {"Content-Type": "application/json"} | headers
            async with ann.request(method, path, headers=typed, data=body) as answer:
                reply = await answer.json()
                assert answer.status == status, (method, path, reply)
            assert reply["type"] == "Failed"
            assert word in json.dumps(reply), (path, reply)
            assert "Traceback" not in json.dumps(reply)


async def test_a_token_is_nowhere_but_with_who_has_it(api: Api) -> None:
    root = api.workbench.root
    file = root / ".workbench" / "tokens.json"
    assert file.stat().st_mode & 0o777 == 0o600
    async with api.asking("olga") as olga:
        assert (await olga.get("/v1/ListSessions")).status == 200
        kept = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
        assert kept
        assert not [1 for text in kept for token in api.tokens.values() if token.encode() in text]
        late = api.workbench.run("token", "add", "late").stdout.strip()
        mine = {"Authorization": f"Bearer {late}"}
        assert (await olga.get("/v1/ListSessions", headers=mine)).status == 200
        api.workbench.run("token", "rm", "late")
        assert (await olga.get("/v1/ListSessions", headers=mine)).status == 401
        file.chmod(0o644)
        try:
            assert (await olga.get("/v1/ListSessions")).status == 400
        finally:
            file.chmod(0o600)
    assert "late" not in api.workbench.run("token", "ls").stdout
    assert "there is a token" in api.workbench.run("token", "add", "ann", expect=2).stderr


async def test_streams_and_connections_are_bounded(api: Api) -> None:
    host, port = api.address.removeprefix("http://").split(":")
    async with api.asking("olga") as olga:
        url = "/v1/Subscribe?session=one"
        streams = [await olga.get(url) for _ in range(8)]
        assert {stream.status for stream in streams} == {200}
        assert (await olga.get(url)).status == 503
        for stream in streams:
            stream.close()
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(140)]
    async with asyncio.timeout(PATIENCE_S):
        assert await silent[-1][0].read() == b""  # hung up on at once, before a word is said
    for _, writer in silent:
        writer.close()
    async with api.asking() as ann, asyncio.timeout(PATIENCE_S):
        while True:
            try:
                status = (await ann.get("/v1/GetStatus")).status
            except aiohttp.ClientConnectionError:  # it has not seen yet that they are closed
                await asyncio.sleep(0.1)
                continue
            break
    assert status == 200


async def test_an_engine_that_is_killed_ends_the_stream_and_is_started_anew(api: Api) -> None:
    async with api.asking() as ann:
        async with ann.get("/v1/GetStatus") as answer:
            engine = (await answer.json())["pid"]
        async with ann.get("/v1/Subscribe?session=one") as stream:
            assert b"Viewed" in await stream.content.readline()
            os.kill(engine, signal.SIGKILL)
            rest = (await stream.content.read()).decode()
        assert "event: Failed" in rest
        assert "the engine is gone" in rest
        async with ann.get("/v1/GetStatus") as answer:
            assert answer.status == 200
            assert (await answer.json())["pid"] != engine


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--http", "0.0.0.0:0"], "no encryption"),
        (["--http", "nowhere"], "is not an address"),
        (["--http", "127.0.0.1:0", "--name", "a b"], "is not a name"),
        (["--http", "127.0.0.1:0", "--authorized-keys", "k"], "start two"),
        ([], "--http HOST:PORT"),
    ],
)
def test_what_cannot_be_served_is_refused(
    workbench: Workbench, words: list[str], sentence: str
) -> None:
    done = workbench.run("serve", *words, expect=2)
    assert sentence in " ".join(re.sub(r"[^\w :.-]", " ", done.stderr).split())
