"""Roles, control and paths: refused in the engine, whatever the other end of the link says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from ssh_door import PATIENCE_S, audited

from workbench.domain.errors import NotAllowed
from workbench.domain.events import ControlLock
from workbench.domain.lines import hello_line
from workbench.domain.messages import (
    PROTOCOL_VERSION,
    AnswerControl,
    AskControl,
    ContinueRun,
    Done,
    EngineStatus,
    ExportRecommendation,
    ExportSession,
    GetStatus,
    Hello,
    ImportBundle,
    ListSessions,
    PauseRun,
    Request,
    ResumeSession,
    Role,
    RunAccepted,
    RunCampaign,
    StopEngine,
    StopRun,
    ViewSession,
)
from workbench.domain.questions import VerifyRecommendation
from workbench.engine.control_locks import MOST_HELD, ControlLocks
from workbench.engine.core import Engine
from workbench.engine.process import serving
from workbench.link.fd_passing import open_link
from workbench.link.local import LocalClient
from workbench.link.socket import SocketClient
from workbench.paths import Workspace


@pytest_asyncio.fixture
async def engine(workspace: Workspace) -> AsyncIterator[Engine]:
    async with serving(workspace) as engine:
        yield engine


async def over_ssh(engine: Engine, name: str, role: Role = "operator") -> SocketClient:
    """The link that the SSH server hands to a screen."""
    hello = Hello(PROTOCOL_VERSION, "0", name, role, details={"door": "ssh"})
    return await SocketClient.adopt(await open_link(engine.workspace.socket, hello))


@pytest.mark.parametrize(
    "request_",
    [
        RunCampaign("demo", lab="sim"),
        StopRun("s"),
        AskControl("s"),
        StopEngine(),
        ExportSession("demo-real", "csv"),
        ExportRecommendation("demo-real", "r1", "helm"),
        VerifyRecommendation("demo-real", "r1"),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_an_observer_is_refused_by_the_engine(engine: Engine, request_: Request) -> None:
    olga = await over_ssh(engine, "olga", "observer")
    assert (olga.role, olga.person, olga.remote) == ("observer", "olga", True)
    with pytest.raises(NotAllowed, match="observers may watch, not command"):
        await olga.ask(request_)
    await olga.ask(ListSessions())
    await olga.close()
    told = [line for line in audited(engine.workspace.audit) if line["what"] == "command"]
    assert [(t["who"], t["command"], t["outcome"]) for t in told] == [
        ("olga", type(request_).__name__, "refused")
    ]


@pytest.mark.parametrize(
    "request_",
    [
        RunCampaign("/etc/passwd", lab="sim"),
        RunCampaign("demo", lab="recorded:/tmp/x"),
        RunCampaign("../demo", lab="sim"),
        ExportSession("demo-real", "csv", "/tmp/x"),
        ViewSession("~root"),
        ViewSession("sessions/x.duckdb"),
        ImportBundle("demo-real.bundle"),
        StopEngine(),
    ],
    ids=str,
)
async def test_over_ssh_nobody_reaches_the_files_of_the_host(
    engine: Engine, request_: Request
) -> None:
    ann = await over_ssh(engine, "ann")
    with pytest.raises(NotAllowed):
        await ann.ask(request_)
    await ann.close()


async def test_a_screen_cannot_say_another_hello(engine: Engine) -> None:
    hello = Hello(PROTOCOL_VERSION, "0", "olga", "observer", details={"door": "ssh"})
    link = await open_link(engine.workspace.socket, hello)
    reader, writer = await asyncio.open_unix_connection(sock=link)
    writer.write(hello_line(Hello(PROTOCOL_VERSION, "0", "x")))
    await writer.drain()
    answer = await reader.read()
    assert b"a line is not a request" in answer
    writer.close()


async def start(engine: Engine, client: SocketClient, campaign: str = "demo") -> str:
    accepted = await client.ask(RunCampaign(campaign, lab="sim", pace=1.0, session="s"))
    assert isinstance(accepted, RunAccepted)
    return accepted.session


async def seen(changes: Any, driver: str, asked_by: str = "") -> ControlLock:
    """The first tick that says so."""
    async with asyncio.timeout(PATIENCE_S):
        async for change in changes:
            if isinstance(change, ControlLock) and (change.driver, change.asked_by) == (
                driver,
                asked_by,
            ):
                return change
    raise AssertionError


async def test_one_operator_drives_and_others_see_who_and_ask(engine: Engine) -> None:
    ann, bob = await over_ssh(engine, "ann"), await over_ssh(engine, "bob")
    olga = await over_ssh(engine, "olga", "observer")
    session = await start(engine, ann)
    async with olga.follow(session) as feed:
        await seen(feed.changes, "ann")
        with pytest.raises(NotAllowed, match="ann drives s"):
            await bob.ask(StopRun(session))
        asked = await bob.ask(AskControl(session))
        assert isinstance(asked, Done)
        assert "ann drives s and is asked" in asked.note
        assert (await seen(feed.changes, "ann", "bob")).passes_at is not None
        with pytest.raises(NotAllowed, match="you do not drive s"):
            await bob.ask(AnswerControl(session))
        await ann.ask(AnswerControl(session, give=False))
        await seen(feed.changes, "ann")
        await bob.ask(AskControl(session))
        await ann.ask(AnswerControl(session))
        await seen(feed.changes, "bob")
        with pytest.raises(NotAllowed, match="bob drives s"):
            await ann.ask(PauseRun(session))
        await bob.ask(PauseRun(session, by="somebody else"))
        # A link that is cut does not cost control while the person is there otherwise.
        again = await over_ssh(engine, "bob")
        await bob.close()
        await again.ask(ContinueRun(session))
        await again.close()
        await seen(feed.changes, "")
        await ann.ask(StopRun(session, abort=True))
        await seen(feed.changes, "ann")
    for client in (ann, olga):
        await client.close()
    told = audited(engine.workspace.audit)
    assert {"PauseRun", "ContinueRun", "StopRun"} <= {
        t["command"] for t in told if t["what"] == "command" and t["outcome"] == "done"
    }
    assert [t["who"] for t in told if t.get("outcome") == "refused"] == ["bob", "bob", "ann"]


async def test_who_runs_the_engine_is_never_locked_out(engine: Engine) -> None:
    ann = await over_ssh(engine, "ann")
    session = await start(engine, ann)
    here = LocalClient(engine, "root@pts/1")
    await here.ask(PauseRun(session))
    assert engine.admission.control_locks.driver(session) == "root"
    await here.ask(StopRun(session, abort=True))
    status = await ann.ask(GetStatus())
    assert isinstance(status, EngineStatus)
    await ann.close()


async def test_a_driver_who_does_not_answer_loses_the_wheel() -> None:
    told: list[ControlLock] = []
    passed = asyncio.Event()

    def tell(control_lock: ControlLock) -> None:
        told.append(control_lock)
        if control_lock.driver == "bob":
            passed.set()

    control_locks = ControlLocks(lambda _: True, tell, answer_s=0.0)
    ann, bob = (Hello(2, "0", name, details={"door": "ssh"}) for name in ("ann", "bob"))
    for who in (ann, bob):
        control_locks.came(who)
    control_locks.launched("s", ann)
    control_locks.ask("s", bob)
    await asyncio.wait_for(passed.wait(), 60)
    assert [(w.driver, w.asked_by) for w in told] == [("ann", ""), ("ann", "bob"), ("bob", "")]
    with pytest.raises(NotAllowed):
        control_locks.steer(ResumeSession("s"), ann)


def test_terminals_of_one_account_are_one_person() -> None:
    control_locks = ControlLocks(lambda _: True, lambda _: None)
    terminals = ("ann@pts/1", "ann@pts/2", "bob@pts/1")
    first, second, other = (Hello(2, "0", name) for name in terminals)
    for who in (first, second, other):
        control_locks.came(who)
    control_locks.launched("s", first)
    control_locks.steer(StopRun("s"), second)
    assert control_locks.driver("s") == "ann", "the second terminal drives as well"
    control_locks.left(first)
    assert control_locks.driver("s") == "ann", "nor is it free while one of them is there"
    with pytest.raises(NotAllowed, match="ann drives s"):
        control_locks.steer(StopRun("s"), other)
    control_locks.left(second)
    control_locks.steer(StopRun("s"), other)
    assert control_locks.driver("s") == "bob"


def test_drivers_of_sessions_that_have_ended_are_forgotten_the_oldest_first() -> None:
    control_locks = ControlLocks(lambda session: session == "first", lambda _: None)
    ann = Hello(2, "0", "ann", details={"door": "ssh"})
    control_locks.came(ann)
    for session in ("first", *(f"{n}" for n in range(2 * MOST_HELD))):
        control_locks.launched(session, ann)
    assert len(control_locks._held) == MOST_HELD
    assert control_locks.driver("first") == "ann", "it still runs"
    assert control_locks.driver(f"{2 * MOST_HELD - 1}") == "ann"
    assert control_locks.driver("0") == ""
