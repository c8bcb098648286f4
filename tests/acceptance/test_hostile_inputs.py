"""One million hostile inputs: each is taken or refused with a sentence, without a trace or a hang.

    pytest --accept acceptance/test_hostile_inputs.py --minutes 10 --results reliability.json

Each door has its share; every input is made from a seed, its number. What must not happen is an
error that is not one of ours, a trace in the log, a process that dies, an answer that never comes.
"""

from __future__ import annotations

import asyncio
import csv
import gc
import hashlib
import io
import json
import multiprocessing
import random
import re
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import asyncssh
import numpy as np
import pytest
from broken_descriptors import FILES
from driving import REPOSITORY
from hostile import TEXTS, mutated, replaced
from ruamel.yaml import YAML
from session_making import make_session
from tally import MakeTally

from workbench import paths
from workbench.descriptors.checking import lint
from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import DescriptorError, EngineError, SessionError, TrafficError
from workbench.domain.lines import hello_line, line, request_of
from workbench.domain.messages import PROTOCOL_VERSION, REQUESTS, EngineStatus, GetStatus, Hello
from workbench.domain.parameters import LoadModel
from workbench.domain.questions import ChainQuery
from workbench.engine.process import serving
from workbench.link.socket import SocketClient
from workbench.paths import Workspace
from workbench.plugins import load
from workbench.serve.keys import KeyRing
from workbench.serve.server import SshServer
from workbench.store.session_file import SessionFile, import_bundle
from workbench.traffic.base import Offer
from workbench.traffic.packets import PacketOffer
from workbench.traffic.reading import read_counts, read_records

DESCRIPTORS, LINK, BUNDLES, GENERATORS, SSH = 40_000, 250_000, 10_000, 600_000, 100_000
LONGEST_S = 120.0
"""After which an input counts as one that hangs, on a host as busy as can be."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    runtime = tempfile.mkdtemp(prefix="wb-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("XDG_STATE_HOME", runtime)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{runtime}/none")
    (tmp_path / "sessions").mkdir()
    yield Workspace(tmp_path)
    shutil.rmtree(runtime)


def no_trace(workspace: Workspace) -> None:
    logged = workspace.log.read_text(encoding="utf-8") if workspace.log.exists() else ""
    at = logged.find("Traceback")
    assert at < 0, logged[max(0, at - 500) : at + 3000]
    # Python's words for a torn letter, "unexpected end of data", are a reason like any other.
    found = re.search(r"nexpected (error|\w+Error)", logged)
    assert not found, logged[max(0, found.start() - 500) : found.start() + 3000]


# ---------------------------------------------------------------------- descriptors

SOURCES = sorted(paths.shipped("templates").rglob("*.yaml"))


def test_descriptors(tally: MakeTally, workspace: Workspace) -> None:
    counts = tally("hostile inputs", {"descriptors": DESCRIPTORS})
    yaml = YAML(typ="safe", pure=True)
    trees = [(path, yaml.load(path.read_text(encoding="utf-8"))) for path in SOURCES]
    path = workspace.root / "x.yaml"
    for number in counts.numbers("descriptors"):
        dice = random.Random(number)
        if dice.random() < 0.5:
            source, value = dice.choice(trees)
            # JSON is YAML, and several times as quickly written.
            text = json.dumps(replaced(value, dice)).encode()
        else:
            source = dice.choice([*SOURCES, *FILES])
            text = mutated(source.read_bytes(), dice)
        path.write_bytes(text)
        try:
            mistakes = lint(path, workspace=workspace)
            assert all(m.line >= 1 and m.column >= 1 and str(m).isprintable() for m in mistakes)
            try:
                load_campaign(str(path), workspace=workspace)
            except DescriptorError:
                continue
            # Who loads a campaign says by that of what kind the file is; a linter is not told.
            assert all("has no kind" in str(m) for m in mistakes)
        except Exception as error:
            raise AssertionError(f"descriptor {number}, of {source.name}: {text!r}") from error
    counts.keep()


# ---------------------------------------------------------------------- the link

ENDS = {"StopEngine"}
"""What ends the engine is not asked, nor by chance: role and kind stay as they are."""
KINDS = {kind.__name__: kind for kind in REQUESTS if kind.__name__ not in ENDS}
OBSERVER = hello_line(Hello(PROTOCOL_VERSION, "0", "stranger", "observer"))
OPERATOR = hello_line(Hello(PROTOCOL_VERSION, "0", "stranger", "operator"))
HARMLESS = ("GetStatus", "ListSessions", "ListEvents", "ViewSession", "GetTimeLine", "Subscribe")
FREE = {
    "ReadDraft", "StartDraft", "ChangeDraft", "DiscardDraft", "ListDrafts", "RenameSession",
    "DuplicateSession", "DeleteSession", "RestoreSession", "RescueSession", "DecideSample",
    "RequestPoint", "ExtendBudget", "DecideProposal", "RollBackModel", "PauseRun", "ContinueRun",
    "StopRun", "SkipConfiguration", "ResumeSession", "SaveTemplate", "AskControl", "AnswerControl",
}  # fmt: skip
"""Commands that cost little: asked as operator, too."""


def asked(kind: str, dice: random.Random) -> dict[str, Any]:
    """A request of that kind, its fields as they may be meant, some of them as they may not."""
    plain: dict[str, Any] = {"type": kind}
    for each in fields(KINDS[kind]):
        if dice.random() < 0.8:
            plain[each.name] = _meant(str(each.type), dice)
    return plain


def _meant(kind: str, dice: random.Random) -> Any:
    if dice.random() < 0.1:
        return dice.choice((None, -1, 2**63, float("1e308"), [], {}, "x" * 5000))
    if kind == ChainQuery.__name__:
        return {each.name: _meant(str(each.type), dice) for each in fields(ChainQuery)}
    if kind.startswith("int"):
        return dice.randint(-1, 50)
    if kind.startswith("float"):
        return dice.choice((0.0, 1.0, -5.0, 1e308))
    if kind.startswith("bool"):
        return dice.random() < 0.5
    if kind.startswith("tuple"):
        return [dice.choice(TEXTS) for _ in range(dice.randrange(3))]
    return dice.choice((*TEXTS, "held", "chain-real"))


def said(dice: random.Random) -> list[bytes]:
    """Hello and requests of one conversation."""
    kind = dice.random()
    if kind < 0.05:
        return [mutated(OBSERVER, dice)]
    if kind < 0.4:
        words = [line({"id": n, "request": asked(dice.choice(HARMLESS), dice)}) for n in (1, 2)]
        return [OBSERVER, *(mutated(word, dice) for word in words)]
    if kind < 0.7:
        chosen = [dice.choice(sorted(FREE)) for _ in range(dice.randint(1, 12))]
        return [OPERATOR, *(_line(n, asked(k, dice), dice) for n, k in enumerate(chosen, 1))]
    chosen = [dice.choice(sorted(KINDS)) for _ in range(dice.randint(1, 12))]
    return [OBSERVER, *(_line(n, asked(k, dice), dice) for n, k in enumerate(chosen, 1))]


def _line(number: int, request: dict[str, Any], dice: random.Random) -> bytes:
    if dice.random() < 0.3:
        kind = request.pop("type")
        altered = replaced(request, dice)
        request = {**altered, "type": kind} if isinstance(altered, dict) else {"type": kind}
    return json.dumps({"id": number, "request": request}).encode() + b"\n"


async def test_the_link(tally: MakeTally, workspace: Workspace) -> None:
    """An input is a line. As many lines as a conversation has count as one seed's."""
    counts = tally("hostile inputs", {"link": LINK})
    session = await make_session(workspace.sessions / "held.duckdb")
    await session.close()
    kept = (workspace.sessions / "held.duckdb").read_bytes()
    lines, unheard = 0, list[str]()
    asyncio.get_running_loop().set_exception_handler(
        lambda _, told: unheard.append(f"{told['message']} {told.get('exception')!r}")
    )
    async with serving(workspace):
        for number in counts.numbers("link"):
            if lines > 0:  # the last conversation had more lines than one
                lines -= 1
                continue
            words = said(random.Random(number))
            try:
                await conversation(workspace, words)
            except TimeoutError:
                raise AssertionError(f"it hangs after {number}: {words!r}") from None
            lines = len(words) - 1
            assert not unheard, f"{unheard[0]}, about {number}"
            if number % 2000 == 0:
                await answers(workspace)
                no_trace(workspace)
                for left in workspace.sessions.glob("*"):  # copies that were asked for
                    if not left.name.startswith("held.duckdb"):
                        left.unlink() if left.is_file() else shutil.rmtree(left)
                if not (workspace.sessions / "held.duckdb").exists():
                    (workspace.sessions / "held.duckdb").write_bytes(kept)
        await answers(workspace)
    gc.collect()
    assert not unheard, unheard[0]
    no_trace(workspace)
    counts.keep()


REPLY = re.compile(rb'{"id":(\d+),"reply":{"type":"(\w+)"')


async def conversation(workspace: Workspace, words: list[bytes]) -> None:
    """Say it, and hear the engine out; hang up on feeds, which go on."""
    reader, writer = await asyncio.open_unix_connection(workspace.socket, limit=1 << 24)
    asked = set(filter(None, map(number_of, words[1:])))
    follows = False
    async with asyncio.timeout(LONGEST_S):
        with suppress(ConnectionError):
            writer.write(b"".join(words))
            writer.write_eof()
            while (asked or not follows) and (heard := await reader.readline()):
                if reply := REPLY.match(heard):
                    asked.discard(int(reply[1]))
                    follows = follows or reply[2] == b"Viewed"
    writer.close()


def number_of(word: bytes) -> int | None:
    """Of a request that the engine understands."""
    try:
        return request_of(word)[0]
    except EngineError:
        return None


async def answers(workspace: Workspace) -> None:
    client = await SocketClient.connect(workspace.socket, "after")
    async with asyncio.timeout(LONGEST_S):
        assert isinstance(await client.ask(GetStatus()), EngineStatus)
    await client.close()


# ---------------------------------------------------------------------- bundles

CHUNK = 250
"""Bundles that are opened by one process, which may die of them."""


def test_bundles(tally: MakeTally, tmp_path: Path) -> None:
    counts = tally("hostile inputs", {"bundles": BUNDLES})
    whole = tmp_path / "whole.bundle"

    async def make() -> None:
        session = await make_session(tmp_path / "whole.duckdb")
        await session.write_tables(whole)
        await session.close()

    asyncio.run(make())
    chunk: list[int] = []
    for number in counts.numbers("bundles"):
        chunk.append(number)
        if len(chunk) == CHUNK:
            in_a_process(open_all, whole, tmp_path / "hurt", chunk)
            chunk = []
    in_a_process(open_all, whole, tmp_path / "hurt", chunk)
    counts.keep()


def in_a_process(work: Callable[..., None], *arguments: Any) -> None:
    """Run it where it may take 4 GiB and crash; fails with what it said, or how it died."""
    context = multiprocessing.get_context("spawn")
    telling, told = context.Pipe(duplex=False)
    process = context.Process(target=_confined, args=(told, work, arguments))
    process.start()
    told.close()
    heard, last = "", None
    with suppress(EOFError):
        while telling.poll(LONGEST_S):
            kind, value = telling.recv()
            if kind == "at":
                last = value
            else:
                heard = value
        else:
            heard = f"it hangs at {last}"
            process.kill()
    process.join()
    assert not heard, heard
    assert process.exitcode == 0, f"exit code {process.exitcode} at {last}"


def _confined(told: Any, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    try:
        work(*arguments, lambda at: told.send(("at", at)))
    except BaseException as error:  # noqa: BLE001 - told in the process of the tests
        import traceback

        told.send(("error", "".join(traceback.format_exception(error))[-4000:]))


def open_all(whole: Path, hurt: Path, numbers: list[int], tell: Callable[[str], None]) -> None:
    for number in numbers:
        tell(f"bundle {number}")
        shutil.rmtree(hurt, ignore_errors=True)
        shutil.copytree(whole, hurt)
        hurt_it(hurt, random.Random(number))
        asyncio.run(open_it(hurt))


def hurt_it(bundle: Path, dice: random.Random) -> None:
    """Change one or two files; the digests fit, as a stranger's would."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    for _ in range(dice.randint(1, 2)):
        table = dice.choice(sorted(manifest["sha256"]))
        file = bundle / f"{table}.parquet"
        kind = dice.random()
        if kind < 0.1:
            other = dice.choice(sorted(bundle.glob("*.parquet")))
            file.write_bytes(other.read_bytes())
        elif kind < 0.7:
            file.write_bytes(flipped(file.read_bytes(), dice))
        else:
            file.write_bytes(mutated(file.read_bytes(), dice))
        manifest["sha256"][table] = hashlib.sha256(file.read_bytes()).hexdigest()
    text = json.dumps(replaced(manifest, dice) if dice.random() < 0.3 else manifest).encode()
    (bundle / "manifest.json").write_bytes(mutated(text, dice) if dice.random() < 0.1 else text)


def flipped(content: bytes, dice: random.Random) -> bytes:
    """Bytes changed where they stand, so that a file's offsets still hold."""
    altered = bytearray(content)
    for _ in range(dice.randint(1, 8)):
        altered[dice.randrange(len(altered))] = dice.randrange(256)
    return bytes(altered)


async def open_it(bundle: Path) -> None:
    """Refused with a sentence, or readable in every part."""
    new = bundle.parent / "new.duckdb"
    for way in (SessionFile.open, lambda path: import_bundle(path, new)):
        try:
            session = await way(bundle)
        except SessionError:
            continue
        await session.events(limit=1000)
        await session.samples()
        await session.view()
        await session.close()
    for left in bundle.parent.glob("new.duckdb*"):
        left.unlink()


# ---------------------------------------------------------------------- what generators leave

SECONDS = 1.0


def left_behind() -> dict[str, tuple[LoadModel, float, bytes, str]]:
    """Load model, load, records and output of a short drive, by generator."""
    folder = REPOSITORY / "tests" / "data" / "traffic"

    def recorded(tool: str, rows: int) -> tuple[bytes, str]:
        output = (folder / f"{tool}.output").read_text(encoding="utf-8")
        return (folder / f"{tool}.records").read_bytes()[:rows], output

    closed, opened = LoadModel("closed"), LoadModel("open", connections=8)
    due = np.arange(20) / 20
    steady = np.stack([due, due, due + 0.002, due + 0.004, due * 0 + 200, due * 0 + 1e4], axis=1)
    h2load = (folder / "h2load.records").read_bytes().splitlines(keepends=True)[:30]
    return {
        "oha": (opened, 20.0, oha_table(), json.dumps({"errorDistribution": {"timeout": 1}})),
        "hey": (closed, 2.0, b"", hey_table()),
        "h2load": (closed, 2.0, b"".join(h2load), recorded("h2load", 0)[1]),
        "wrk": (closed, 2.0, *recorded("wrk", 8 * 80)),
        "locust": (LoadModel("closed", think_time_s=0.1), 4.0, *recorded("locust", 32 * 20)),
        "steady": (opened, 20.0, steady.astype("<f8").tobytes(), "steady"),
    }


def oha_table() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA page_size = 512")
    connection.execute(
        "CREATE TABLE oha (url TEXT NOT NULL, start REAL NOT NULL, start_latency_correction REAL,"
        " end REAL NOT NULL, duration REAL NOT NULL, status INTEGER NOT NULL,"
        " len_bytes INTEGER NOT NULL, run INTEGER NOT NULL)"
    )
    rows = [(n / 20 + 0.001, n / 20, n / 20 + 0.005) for n in range(20)]
    connection.executemany(
        "INSERT INTO oha VALUES ('http://x/', ?, ?, ?, 0.004, 200, 10000, 1)", rows
    )
    connection.commit()
    content = connection.serialize()
    connection.close()
    return content


def hey_table() -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,"
        "offset".split(",")
    )
    for n in range(20):
        table.writerow([0.04, 0.009, 0.0, 0.001, 0.02, 0.01, 200, round(n / 20, 4)])
    return text.getvalue()


def test_what_generators_leave(tally: MakeTally) -> None:
    counts = tally("hostile inputs", {"generator outputs": GENERATORS})
    made = left_behind()
    generators = {name: load("traffic", name)() for name in made}
    iperf = load("traffic", "iperf3")()
    packets = PacketOffer("10.0.0.1", 5201, 5000.0, 64, 2)
    counted = (REPOSITORY / "tests" / "traffic" / "iperf3-udp.json").read_text(encoding="utf-8")
    parsed = json.loads(counted)
    names = [*generators, "iperf3"]
    for number in counts.numbers("generator outputs"):
        dice = random.Random(number)
        name = dice.choice(names)
        try:
            if name == "iperf3":
                output = altered_text(counted, parsed, dice)
                read_counts(iperf, packets, output, 100.0)
                continue
            load_model, wl, result, output = made[name]
            if result and dice.random() < 0.8:
                result = (flipped if dice.random() < 0.6 else mutated)(result, dice)
            else:
                plain = json.loads(output) if name == "oha" else None
                output = altered_text(output, plain, dice)
            offer = Offer(
                "http://10.0.0.2:8080/", load_model, wl, SECONDS, True, 10.0, 10_000, "/tmp/r"
            )
            begin_s, stop_s = 100.0, 100.0 + SECONDS
            records = read_records(generators[name], offer, result, output, begin_s, stop_s)
        except TrafficError:
            continue
        except Exception as error:
            raise AssertionError(f"output {number} of {name}: {output[-300:]!r}") from error
        known = records.end_s[np.isfinite(records.end_s)]
        assert (known >= 99.9).all(), f"output {number} of {name}: an answer before the load"
    counts.keep()


def altered_text(text: str, plain: Any, dice: random.Random) -> str:
    if plain is not None and dice.random() < 0.6:
        return json.dumps(replaced(plain, dice))
    return mutated(text.encode(), dice).decode(errors="replace")


# ---------------------------------------------------------------------- bytes at the SSH door

COMMANDS = 0.1
"""Of the inputs that are command lines of somebody who has logged in."""
BETWEEN = 500
"""Inputs after which it is looked whether one with a key still gets in."""
WORDS = (
    *TEXTS, "ls", "show", "samples", "--json", "--workspace", "--output=/tmp/x", "$(id)", "`id`",
    "; id", "| cat", "'", '"', "\\", "&&", "engine", "stop", "serve", "export", "--as", "bundle",
)  # fmt: skip


async def test_bytes_at_the_ssh_door(tally: MakeTally, workspace: Workspace) -> None:
    counts = tally("hostile inputs", {"SSH bytes": SSH})
    key = asyncssh.generate_private_key("ssh-ed25519", comment="ann")
    keys = workspace.root / "keys"
    keys.write_text("observer " + key.export_public_key().decode(), encoding="utf-8")
    keys.chmod(0o600)

    async def nobody() -> None:
        """No engine is needed: no command of these is carried out."""

    server = SshServer(workspace, KeyRing(keys), ["false"], nobody)
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    port = await server.open("127.0.0.1", 0)

    async def log_in() -> asyncssh.SSHClientConnection:
        return await asyncssh.connect(
            "127.0.0.1", port, username="ann", client_keys=[key], known_hosts=None, config=None
        )

    try:
        shaken = await handshake(port, log_in)
        inside = await log_in()
        for number in counts.numbers("SSH bytes"):
            dice = random.Random(number)
            if dice.random() < COMMANDS:
                words = " ".join(dice.choices(WORDS, k=dice.randint(1, 4)))
                words = mutated(words.encode(), dice).decode(errors="replace") or "x"
                async with asyncio.timeout(LONGEST_S):
                    done = await inside.run(words, check=False)
                assert done.exit_status is not None, f"command {number}: {words!r}"
                assert "Traceback" not in str(done.stderr), f"command {number}: {words!r}"
            else:
                await knock(port, mutated(shaken[: dice.randint(1, len(shaken))], dice))
            if number % BETWEEN == 0:
                async with asyncio.timeout(LONGEST_S):
                    (await log_in()).close()
                no_trace(workspace)
        inside.close()
    finally:
        await server.close()
        loop.set_exception_handler(before)
    no_trace(workspace)
    counts.keep()


async def knock(port: int, said: bytes) -> None:
    """Say it and hang up, as soon as the server has or has nothing more to say."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        writer.write(said)
        writer.write_eof()
        async with asyncio.timeout(LONGEST_S):
            while await reader.read(1 << 16):
                pass
    writer.close()


async def handshake(port: int, log_in: Callable[[], Any]) -> bytes:
    """What a client says up to its first encrypted byte and a little beyond."""
    heard = bytearray()
    original = asyncssh.connection.SSHConnection._send

    def send(self: Any, data: bytes) -> None:
        if self.is_client():
            heard.extend(data)
        original(self, data)

    asyncssh.connection.SSHConnection._send = send
    try:
        (await log_in()).close()
    finally:
        asyncssh.connection.SSHConnection._send = original
    assert heard.startswith(b"SSH-2.0")
    return bytes(heard)
