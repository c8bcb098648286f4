"""Agents and monitors that answer, fail, fall silent, and guests that never boot: stand-ins speak
over the same sockets."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from workbench.domain.errors import LabError
from workbench.labs.vm import guest_agent, qemu_monitor
from workbench.labs.vm.guest_agent import GuestAgent, GuestSilent
from workbench.labs.vm.qemu_monitor import QemuMonitor

Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def coded(text: str) -> str:
    return ":" + base64.b64encode(text.encode()).decode()


@asynccontextmanager
async def beside(speak: Speak) -> AsyncIterator[socket.socket]:
    """Our end of a connection whose other end `speak` has."""
    our, their = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=their, limit=1 << 20)
    speaking = asyncio.create_task(speak(reader, writer))  # type: ignore[arg-type]
    try:
        yield our
    finally:
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        await asyncio.sleep(0.01)  # both ends are closed by the loop, later


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_agent, "ORDER_S", 0.3)
    monkeypatch.setattr(guest_agent, "RUN_S", 0)


async def test_orders_are_given_and_answered() -> None:
    heard: list[list[str]] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready\n")
        while line := (await reader.readline()).decode().split():
            words = [base64.b64decode(w[1:]).decode() if w[0] == ":" else w for w in line]
            heard.append(words)
            said = {"run": "out", "served": "137\n"}.get(words[1], "")
            writer.write(
                f"{words[0]} {3 * (words[1] == 'run')} {coded(said)} {coded('e')}\n".encode()
            )

    async with beside(speak) as end:
        agent = await GuestAgent.over(end)
        await agent.ready(1)
        outcome = await agent.run(("echo", "", "two words", "new\nline"))
        assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (3, "out", "e")
        assert heard[0] == ["1", "run", "0", "echo", "", "two words", "new\nline"]
        assert await agent.served() == 137
        await agent.serve(("haproxy", "-db"))
        await agent.put("/etc/a b", b"x" * (guest_agent.PIECE + 1), "644")
        assert [words[1] for words in heard[2:]] == ["serve", "put", "add"]
        assert heard[3][2:4] == ["644", "/etc/a b"]
        assert len(heard[3][4]) == guest_agent.PIECE
        assert heard[4][4] == "x"
        agent.close()


async def test_an_answer_that_comes_too_late_is_not_taken_for_another() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, second = await reader.readline(), await reader.readline()
        for line, said in ((first, "late"), (second, "due")):
            writer.write(line.split()[0] + f" 0 {coded(said)} :\n".encode())

    async with beside(speak) as end:
        agent = await GuestAgent.over(end)
        with pytest.raises(GuestSilent, match=r"has not answered for 0\.3 s"):
            await agent.run(("one",))
        assert (await agent.run(("two",))).stdout == "due"
        agent.close()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", "its agent has hung up"),
        (b"1 0 :!!! :\n", "answers what cannot be read"),
        (b"1 zero : :\n", "answers what cannot be read"),
        (b"1 0\n", "answers what cannot be read"),
        (b"x" * (1 << 20), "cannot be understood any more"),
    ],
)
async def test_an_agent_that_talks_nonsense(answer: bytes, sentence: str) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    async with beside(speak) as end:
        agent = await GuestAgent.over(end)
        with pytest.raises(GuestSilent, match=sentence):
            await agent.run(("true",))
        agent.close()


async def test_a_guest_that_does_not_boot_and_one_that_says_something_else() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with beside(silent) as end:
        agent = await GuestAgent.over(end)
        with pytest.raises(GuestSilent, match=r"has not answered for 0\.1 s"):
            await agent.ready(0.1)
        agent.close()

    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"login:\n")

    async with beside(odd) as end:
        agent = await GuestAgent.over(end)
        with pytest.raises(GuestSilent, match="began with b'login:"):
            await agent.ready(1)
        agent.close()


async def test_a_file_that_a_guest_cannot_write_is_told() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = (await reader.readline()).split()[0]
        writer.write(number + f" 1 : {coded('No space left')}\n".encode())

    async with beside(speak) as end:
        agent = await GuestAgent.over(end)
        with pytest.raises(LabError, match="/etc/x cannot be written: No space left"):
            await agent.put("/etc/x", b"content", "644")
        agent.close()


GREETING = {"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 22}, "package": ""},
                    "capabilities": []}}  # fmt: skip


def qemu(status: str | None) -> Speak:
    """QEMU's monitor; without a status it never answers that question."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(GREETING).encode() + b"\n")
        while text := await reader.read(4096):  # a request at a time, and no line ends it
            asked = json.loads(text)
            answer: dict[str, object] = {"return": {}}
            if asked["execute"] == "quit":
                writer.close()
                return
            if asked["execute"] == "query-status":
                if status is None:
                    continue
                answer = {"return": {"status": status, "running": status == "running"}}
            echoed = {"id": asked["id"]} if "id" in asked else {}
            writer.write(json.dumps({**answer, **echoed}).encode() + b"\n")

    return speak


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ("running", ""),
        ("guest-panicked", "its kernel panicked"),
        ("paused", "somebody paused it"),
        (None, "QEMU has not answered for 0.5 s"),
    ],
)
async def test_what_has_become_of_a_guest(
    status: str | None, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with beside(qemu(status)) as end:
        monitor = await QemuMonitor.over(end)
        if status is None:  # who answers has all the time that a busy host takes
            monkeypatch.setattr(qemu_monitor, "PATIENCE_S", 0.5)
        assert await monitor.trouble() == trouble
        await monitor.end()


async def test_qemu_that_has_ended_or_never_greets(monkeypatch: pytest.MonkeyPatch) -> None:
    async with beside(qemu("running")) as end:
        monitor = await QemuMonitor.over(end)
        await monitor.end()
        assert (await monitor.trouble()).startswith("QEMU has ended")
        await monitor.end()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    monkeypatch.setattr(qemu_monitor, "PATIENCE_S", 0.5)
    async with beside(silent) as end:
        with pytest.raises(LabError, match=r"does not greet us: nothing came within 0\.5 s"):
            await QemuMonitor.over(end)
