"""What every command shares: the workspace, the client of an engine, how tables are printed."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.computing import computed

if TYPE_CHECKING:
    from workbench.domain.errors import SessionError
    from workbench.domain.messages import EngineStatus, Request
    from workbench.engine.core import Engine
    from workbench.link.client import Client
    from workbench.paths import Workspace

T = TypeVar("T")

START_TIMEOUT_S = 15.0
"""How long a freshly started engine may take until its socket answers."""

POLL_S = 0.5
"""How often a terminal is told what a question has come to."""
ELAPSED_S, APART_S = 2.0, 10.0
"""From when on a wait is told where the engine says nothing of it, and between lines in a pipe."""


@dataclass
class Settings:
    """The global options, as given."""

    workspace: Path | None = None
    debug: bool = False


settings = Settings()


def current_workspace() -> Workspace:
    from workbench.paths import workspace

    return workspace(settings.workspace)


def identity() -> str:
    """Who commands, as the event log names it: `user@tty`."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a passwd entry
        user = str(os.getuid())
    try:
        terminal = os.ttyname(0).removeprefix("/dev/")
    except OSError:
        return user
    return f"{user}@{terminal}"


def say(text: str) -> None:
    """Lines of talk, to standard error."""
    print(harmless(text), file=sys.stderr)  # noqa: T201


def put(text: str) -> None:
    """Lines of data for people, to standard output."""
    print(harmless(text), flush=True)  # noqa: T201


def harmless(text: str) -> str:
    """Text without what a terminal would obey: a session may come from a stranger."""
    return "".join(c if c.isprintable() or c in "\n\t" else "·" for c in text)


def put_json(plain: Any) -> None:
    """One line of JSON, to standard output: the same values, nothing that a terminal would obey.

    JSON itself escapes only what is below the space; U+009B begins a command as ESC [ does.
    """
    from workbench.domain.codec import dumps

    line = dumps(plain).decode()
    if not line.isprintable():
        line = "".join(c if c.isprintable() else _escaped(c) for c in line)
    print(line, flush=True)  # noqa: T201


def _escaped(character: str) -> str:
    import json

    return json.dumps(character)[1:-1]  # a pair of surrogates where it needs one


def session_name(given: str) -> str:
    """A session as the engine knows it: by its name where it is one of the workspace's.

    A path is made absolute, since the engine stands in another folder.
    """
    from workbench.domain.limits import check_name

    check_name("session", given)
    own = current_workspace().sessions.resolve()
    try:
        path = Path(given).expanduser()
        is_path = path.is_file() or (path / "manifest.json").is_file()
        if "/" not in given and ((own / f"{given}.duckdb").exists() or not is_path):
            return given
    except (OSError, ValueError, RuntimeError):  # too long for a file, or nobody's home
        return given
    path = path.resolve()
    return path.stem if path.parent == own and path.suffix == ".duckdb" else str(path)


def session_names(given: str | None) -> tuple[str, ...]:
    """The sessions of `--profiles A,B`, as the engine knows them; none where nothing is given.

    A folder whose own name has a comma is one. Raises `UsageError` for an empty name.
    """
    from workbench.domain.errors import UsageError

    if given is None:
        return ()
    # Unlike those of `Path` these say no to whatever is no path.
    is_one = os.path.exists(os.path.expanduser(given))  # noqa: PTH110, PTH111
    named = [given] if is_one else given.split(",")
    if not all(name.strip() for name in named):
        raise UsageError(
            f"{given!r} has a name that is empty",
            where="--profiles",
            remedy="Write it like A.bundle,B.bundle",
        )
    return tuple(dict.fromkeys(session_name(name.strip()) for name in named))


def finite(value: float) -> float:
    """For options of which a range is checked elsewhere: no comparison holds for NaN."""
    if not math.isfinite(value):
        import typer

        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def execute(main: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; SIGTERM or a lost terminal cancel it, so every `finally` runs."""

    async def guarded() -> T:
        task = asyncio.ensure_future(main)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:  # not in there: it would be told as an error nobody waited for
        raise KeyboardInterrupt from None


INTERRUPTED_SAID = "Interrupted: what was computed is dropped, and nothing is changed."


@contextmanager
def interruptible(
    said: str = INTERRUPTED_SAID, end: Callable[[], object] | None = None
) -> Iterator[None]:
    """While the body computes, Ctrl-C ends this task with a sentence; or has it ended by `end`.

    From then on it is ignored, to the end of the process: what is cleaned up is ended soon, and a
    signal while the loop is taken down would be told as a stack trace.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    before, pressed = signal.getsignal(signal.SIGINT), False

    def interrupted() -> None:
        nonlocal pressed
        if pressed or task is None:
            return
        pressed = True
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say(said)
        (end or task.cancel)()

    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield  # as under nohup, or beside somebody else's loop
        return
    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if not pressed:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)


def learned_here(compute: Callable[..., T], *arguments: object) -> T:
    """What takes seconds or minutes here and changes nothing: Ctrl-C ends it at once."""

    async def waited_for() -> T:
        with interruptible():
            return await computed(compute, *arguments)

    return execute(waited_for())


def is_guest() -> bool:
    """Whether who sits here came through a server, and has no account on this host."""
    from workbench.link.fd_passing import LINK_VARIABLE

    return LINK_VARIABLE in os.environ


async def live_client() -> Client | None:
    """The client of the engine that runs in this workspace, if one answers.

    A guest has a link from the server, and no other way to an engine.
    """
    from workbench.domain.errors import EngineError
    from workbench.link.fd_passing import LINK_VARIABLE, handed_client
    from workbench.link.socket import SocketClient

    if handed := os.environ.get(LINK_VARIABLE):
        return await handed_client(int(handed))

    workspace = current_workspace()
    if not workspace.socket.exists():
        return None
    try:
        return await SocketClient.connect(workspace.socket, identity())
    except (OSError, EngineError) as error:
        if isinstance(error, EngineError) and "protocol" in error.what:
            raise
        return None


async def engine_answers() -> bool:
    """Whether an engine of our protocol runs in this workspace."""
    client = await live_client()
    if client is not None:
        await client.close()
    return client is not None


@asynccontextmanager
async def client_of(
    own: Callable[[], AbstractAsyncContextManager[Engine]],
) -> AsyncIterator[Client]:
    """The live engine's client, else one around the engine that `own` starts in this process."""
    from workbench.domain.errors import WorkspaceHeld

    async with AsyncExitStack() as stack:
        client = await live_client()
        if client is None:
            from workbench.link.local import LocalClient

            try:
                engine = await stack.enter_async_context(own())
            except WorkspaceHeld:  # another command was faster by an instant: it may serve by now
                client = await live_client()
                if client is None:
                    raise
            else:
                client = LocalClient(engine, identity())
        stack.push_async_callback(client.close)
        yield client


def any_client() -> AbstractAsyncContextManager[Client]:
    """The live engine's client, else one around an engine in this process.

    For commands that look something up or finish soon; campaigns go to a process of their own.
    """
    return client_of(_engine_here)


@asynccontextmanager
async def _engine_here() -> AsyncIterator[Engine]:
    from workbench.engine.core import Engine

    engine = Engine(current_workspace(), may_look=True)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


async def http_door(client: Client) -> str:
    """Where the engine serves `/status` and `/metrics`. Raises `UsageError` if it does not."""
    from workbench.domain.errors import UsageError
    from workbench.domain.messages import GetStatus

    status = await client.ask(GetStatus())
    if not status.http:
        raise UsageError(
            "the engine that runs here already was started without it",
            where="--http",
            remedy="End that engine with `workbench engine stop`, or leave --http out",
        )
    return status.http


async def started_client(http: str | None = None) -> Client:
    """The client of this workspace's engine; starts the engine's process where none runs."""
    client = await live_client()
    if client is not None:
        if http is not None:
            await http_door(client)
        return client
    from workbench.domain.errors import EngineError

    workspace = current_workspace()
    process = start_engine(workspace, http)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        client = await live_client()
        if client is not None:
            return client
        if process.poll() is not None and process.returncode != 0:
            raise EngineError(
                _last_line(workspace.state / "engine.err") or "the engine ended as it started",
                remedy=f"See {workspace.log}",
            )
        await asyncio.sleep(0.05)
    raise EngineError(
        f"the engine did not answer within {START_TIMEOUT_S:g} s",
        where=str(workspace.socket),
        remedy=f"See {workspace.log}",
    )


def start_engine(workspace: Workspace, http: str | None = None) -> subprocess.Popen[bytes]:
    """Start the engine's process, detached: it outlives this one and every screen."""
    from workbench import files

    try:
        files.make_folder(workspace.state)
        errors = open(workspace.state / "engine.err", "wb", opener=files.opener)  # noqa: SIM115
    except OSError as error:
        raise _cannot_write(error) from None
    with errors:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "workbench",
                "--workspace",
                str(workspace.root),
                "engine",
                "serve",
                *(["--http", http] if http else []),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            cwd="/",
        )


def ask(request: Request[T]) -> T:
    """One request to whichever engine there is, and its reply."""

    async def asked() -> T:
        async with any_client() as client:
            return await client.ask(request)

    return execute(asked())


def ask_patiently(request: Request[T], *of: str | None) -> T:
    """The same for questions that take seconds: a terminal shows what is computed, for how long
    already and about how long still. Ctrl-C ends the computing, too, wherever the engine runs.

    First it says what is damaged or lost of the sessions that it is a question `of`.
    """

    async def asked() -> T:
        async with any_client() as client:
            for session in filter(None, of):
                await say_damage(client, session)
            return await ask_aloud(client, request)

    return execute(asked())


async def say_damage(client: Client, session: str) -> None:
    from workbench.domain.messages import ListSamples

    page = await client.ask(ListSamples(session, limit=1))
    for warning in page.warnings:
        say(f"warning: {warning}")


async def ask_aloud(client: Client, request: Request[T]) -> T:
    line = TerminalLine() if sys.stderr.isatty() else LinesApart()
    began_s = time.monotonic()

    def waited_for(status: EngineStatus) -> str:
        waited_s = time.monotonic() - began_s
        return _waited_for(status) or (f"{waited_s:.0f} s" if waited_s >= ELAPSED_S else "")

    try:
        async with telling(client, waited_for, line.show):
            return await client.ask(request)
    finally:
        line.show("")


def _waited_for(status: EngineStatus) -> str:
    if status.preparing or not status.scoring:
        return status.preparing
    return f"{status.scoring_s:.0f} s: {status.computing}"


@asynccontextmanager
async def telling(
    client: Client,
    what: Callable[[EngineStatus], str],
    tell: Callable[[str], None],
    *,
    again: bool = False,
) -> AsyncIterator[None]:
    """While the body waits for an answer, `tell` whatever the engine says of it, once each; or,
    `again` and again, also where that is what it said before."""
    from workbench.domain.messages import GetStatus

    async def follow() -> None:
        said = ""
        while True:
            status = await client.ask(GetStatus())
            if again or what(status) != said:
                said = what(status)
                tell(said)
            await asyncio.sleep(POLL_S)

    following = asyncio.create_task(follow())
    try:
        yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)  # the body hears of a lost link


class LinesApart:
    """What stands in a log or a pipe in its place: a line every `APART_S`, the first after that."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_s = clock() + APART_S

    def show(self, text: str) -> None:
        if text and self._clock() >= self._due_s:
            self._due_s = self._clock() + APART_S
            say(text)


class TerminalLine:
    """One line on the terminal that is written over."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, text: str) -> None:
        shown = harmless(text)[:79]
        back = "" if shown else "\r"
        print(f"\r{shown:<{self._width}}", end=back, file=sys.stderr, flush=True)  # noqa: T201
        self._width = len(shown)


def on_interrupt(action: Callable[[], None]) -> None:
    """Call `action` on Ctrl-C instead of raising; the running loop handles it."""
    with suppress(NotImplementedError):  # not the main thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, action)


NOT_WRITTEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unwritable(error: BaseException) -> SessionError | None:
    """What to say of a workspace that cannot be written; None where the error is of something
    else."""
    from workbench.domain.errors import UsageError

    if not (isinstance(error, OSError) and error.errno in NOT_WRITTEN and error.filename):
        return None
    try:
        within = Path(os.fsdecode(error.filename)).is_relative_to(current_workspace().root)
    except UsageError:  # there is no workspace that it could lie in
        return None
    return _cannot_write(error) if within else None


def _cannot_write(error: OSError) -> SessionError:
    from workbench.domain.errors import SessionError

    return SessionError(
        f"the workspace cannot be written: {error.strerror}",
        where=str(current_workspace().root),
        remedy="Choose another one with --workspace DIR",
    )


def log_unexpected(error: BaseException) -> Path | None:
    """Write a stack trace to the log file; returns where that is, None where it was refused."""
    from workbench.domain.errors import UsageError
    from workbench.log import logger, open_log

    def size(path: Path) -> int:
        return path.stat().st_size if path.exists() else 0

    try:
        path = current_workspace().log
        before, close = size(path), open_log(path)
        logger("cli").error("unexpected error", exc_info=error)
        close()
        return path if size(path) != before else None
    except (OSError, UsageError):  # the sentence on the terminal is what is left then
        return None


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].rstrip(".") if lines else ""
