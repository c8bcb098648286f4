"""The SSH server: listens, counts, lets in; each channel gets a process of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import asyncssh

from workbench.audit import AuditLog
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.log import logger
from workbench.paths import Workspace, absolute
from workbench.serve import descriptors
from workbench.serve.children import Child, environment
from workbench.serve.commands import arguments
from workbench.serve.connections import SshConnection
from workbench.serve.descriptors import Knocks
from workbench.serve.files import ExportFiles
from workbench.serve.host_key import host_key
from workbench.serve.keys import Grant, KeyRing
from workbench.serve.limits import ServerLimits
from workbench.serve.links import Links
from workbench.serve.listening import cannot_listen

WATCH_S = 5.0
"""How often idle connections and keys that were taken away are looked for."""
KEYS_TOLD, KNOCKS_TOLD = 60, 1
"""Lines of the audit log a minute about those who did not get in with a key, and about those who
never showed one: those who left, and those who were hung up on. The rest is counted."""

log = logger("serve")


class SshServer:
    """Screens, commands and files for those whose key is in the file.

    Parameters
    ----------
    command : argument vector of `workbench`; alone it opens the screen.
    engine_up : sees to it that an engine serves the workspace's socket.
    """

    def __init__(
        self,
        workspace: Workspace,
        keys: KeyRing,
        command: Sequence[str],
        engine_up: Callable[[], Awaitable[None]],
        limits: ServerLimits | None = None,
    ) -> None:
        self.workspace = workspace
        self.limits = limits or ServerLimits()
        self.audit = AuditLog(workspace.audit)
        self._keys = keys
        self._command = tuple(command)
        self._links = Links(workspace.socket, engine_up)
        self._connections: list[SshConnection] = []
        self._children: set[asyncio.Task[None]] = set()
        self._keys_tried = Knocks(KEYS_TOLD)
        self._left, self._hung_up_on = Knocks(KNOCKS_TOLD), Knocks(KNOCKS_TOLD)
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._watching: asyncio.Task[None] | None = None
        self.fingerprint = ""

    # ------------------------------------------------------------------ life

    async def open(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises `UsageError` if keys or address cannot be used."""
        self._keys.load()
        self.workspace.exports.mkdir(parents=True, exist_ok=True)
        key = host_key(self.workspace.host_key)
        self.fingerprint = key.get_fingerprint()
        limits = self.limits
        descriptors.raise_limit()
        asyncio.get_running_loop().set_exception_handler(descriptors.SeldomTold())
        try:
            self._acceptor = await asyncssh.listen(
                host,
                port,
                server_factory=lambda: SshConnection(self),
                server_host_keys=[key],
                process_factory=self._serve_channel,
                sftp_factory=self._serve_files,
                allow_scp=False,
                agent_forwarding=False,
                x11_forwarding=False,
                gss_host=None,
                password_auth=False,
                kbdint_auth=False,
                host_based_auth=False,
                line_editor=False,
                encoding=None,
                login_timeout=limits.login_s,
                keepalive_interval=limits.keep_alive_s,
                keepalive_count_max=limits.keep_alive_count,
                server_version="workbench",
                backlog=limits.half_open,
            )
        except (OSError, UnicodeError) as error:
            raise cannot_listen(error, host, port, "Choose another --host or --port") from None
        self._watching = asyncio.create_task(self._watch(), name="serve watch")
        listening = self._acceptor.get_port()
        self.audit.write("listening", host=host, port=listening, host_key=self.fingerprint)
        return listening

    async def close(self) -> None:
        """Hang up on everybody; screens end, campaigns go on."""
        if self._watching is not None:
            self._watching.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in list(self._connections):
            connection.drop("the server ends")
        if self._children:
            await asyncio.wait(self._children)
        if self._acceptor is not None:
            with suppress(asyncssh.Error, OSError):
                await self._acceptor.wait_closed()
        self._tell_untold()
        self.audit.write("ended")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            try:
                self._look_after()
            except Exception as error:  # else a key that is taken away would go on to open the door
                log.error("connections were not looked after", exc_info=error)

    def _look_after(self) -> None:
        """Drop who may no longer be here, or was idle for too long."""
        with suppress(UsageError):  # who took the file away has taken all keys away
            self._keys.load()
        now, grants = time.monotonic(), self._keys.grants()
        for connection in list(self._connections):
            if connection.grant is None:
                continue
            if connection.grant not in grants:
                connection.drop("its key was taken away, or opens something else now")
            idle = self.limits.idle_s and not connection.busy
            if idle and now - connection.used > self.limits.idle_s:
                connection.drop("idle for too long")

    # ------------------------------------------------------------------ who comes and goes

    def grant(self, key: asyncssh.SSHKey) -> Grant | None:
        """What a key opens at this moment."""
        try:
            self._keys.load()
        except UsageError as error:
            log.error("nobody can log in", error=str(error))
            return None
        return self._keys.grant(key)

    def knocked(self, connection: SshConnection) -> None:
        """Somebody has connected; of those who only do that, the oldest has to go.

        Who was told to go does not count: in a burst more come before they are gone.
        """
        self._connections.append(connection)
        half_open = [c for c in self._connections if c.grant is None and not c.dropped]
        if len(half_open) > self.limits.half_open:
            half_open[0].drop("too many connections without a log-in")
        elif len(half_open) > 1 and descriptors.are_short():
            half_open[0].drop("no file descriptors are left for it")

    def gone(self, connection: SshConnection) -> None:
        """A connection has ended."""
        with suppress(ValueError):
            self._connections.remove(connection)

    def turned_away(self, hung_up_on: bool, attempts: int, **facts: str) -> None:
        """Somebody did not get in; a flood of them is counted, not told."""
        knocks = self._hung_up_on if hung_up_on else self._left
        if attempts:
            knocks = self._keys_tried
        tell, before = knocks.count()
        if before:
            self.audit.write("not_logged_in", more=before)
        if tell:
            self.audit.write("not_logged_in", attempts=attempts, **facts)

    def _tell_untold(self) -> None:
        untold = sum(k.rest() for k in (self._keys_tried, self._left, self._hung_up_on))
        if untold:
            self.audit.write("not_logged_in", more=untold)

    def full_for(self, connection: SshConnection) -> str:
        """Why there is no room for it; empty if there is."""
        inside = [c.grant for c in self._connections if c.grant is not None]
        same = [grant for grant in inside if grant == connection.grant]
        if len(inside) > self.limits.connections:
            return f"there are {self.limits.connections} connections already"
        if len(same) > self.limits.connections_per_key:
            return f"your key has {self.limits.connections_per_key} connections already"
        return ""

    # ------------------------------------------------------------------ channels

    def _serve_files(self, channel: asyncssh.SSHServerChannel[bytes]) -> asyncssh.SFTPServer:
        connection = _connection_of(channel)
        connection.open_channel()
        connection.note("files_opened")
        return ExportFiles(channel, self.workspace.exports, connection)

    async def _serve_channel(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._children.add(task)
        connection = _connection_of(process.channel)
        try:
            code = await self._run(process, connection)
        except WorkbenchError as error:
            _say(process, str(error))
            code = error.exit_code
        except TimeoutError:  # too slow to read; it is dropped
            code = 1
        except Exception as error:  # one channel must not take the server down
            log.error("a channel broke", exc_info=error)
            _say(process, f"unexpected {type(error).__name__}; see `workbench logs` on the host")
            code = 1
        finally:
            self._children.discard(task)
        with suppress(OSError, asyncssh.Error):
            process.exit(code if code >= 0 else 1)

    async def _run(
        self, process: asyncssh.SSHServerProcess[bytes], connection: SshConnection
    ) -> int:
        """A screen, or a command of the list."""
        words: list[str] = []
        if process.subsystem is not None:
            raise UsageError("there is no such subsystem", where=process.subsystem[:40])
        if process.command is not None:
            try:
                words = arguments(process.command)
            except UsageError as error:
                connection.note("command_refused", command=process.command, why=error.what)
                raise
        elif process.term_type is None:
            raise UsageError("the screen needs a terminal", remedy="Log in by `ssh -t`")
        if descriptors.are_short():
            raise UsageError(
                "the server has no file descriptors left for another screen or command",
                remedy="Try again when somebody has left, or start it with a higher `ulimit -n`",
            )
        connection.open_channel()
        drains = (process.stdout.drain, process.stderr.drain)
        child = Child(process, lambda: connection.flowing(*drains), connection.touch)
        variables = environment(self.workspace.root, process.term_type, dict(process.env))
        what = "command" if words else "screen"
        connection.note(f"{what}_begun", command=process.command or "")
        connection.busy += bool(words)
        code = 1
        try:
            code = await child.run(
                (*self._command, *words), variables, lambda: self._links.open(connection.hello)
            )
        finally:
            connection.busy -= bool(words)
            connection.close_channel()
            connection.note(f"{what}_ended", command=process.command or "", code=code)
        return code


def _connection_of(channel: asyncssh.SSHServerChannel[bytes]) -> SshConnection:
    return cast(SshConnection, channel.get_connection().get_owner())


def _say(process: asyncssh.SSHServerProcess[bytes], text: str) -> None:
    with suppress(OSError, asyncssh.Error):
        end = "\n" if process.term_type is None else "\r\n"
        process.stderr.write(f"{text}{end}".encode())


def authorized_keys(path: Path) -> KeyRing:
    """The keys of a file. Raises `UsageError` if it cannot be trusted, or lets nobody in."""
    keys = KeyRing(absolute(path))
    keys.load()
    if not keys.grants():
        raise UsageError(
            "there is no key in it that opens anything",
            where=str(path),
            remedy="; ".join(keys.mistakes) or "Put public keys in it, one a line",
        )
    return keys
