"""One SSH connection: who it is, what it may open, when it has to go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

import asyncssh

from workbench import __version__
from workbench.audit import AuditLog
from workbench.domain.errors import UsageError
from workbench.domain.messages import PROTOCOL_VERSION, Hello
from workbench.serve.keys import Grant
from workbench.serve.limits import ServerLimits

VERIFIED_TWICE = 2
"""A key is first asked about, then used."""


class Doorkeeper(Protocol):
    """What a connection needs of the server that it came to (`serve.server.SshServer`)."""

    limits: ServerLimits
    audit: AuditLog

    def grant(self, key: asyncssh.SSHKey) -> Grant | None: ...

    def full_for(self, connection: SshConnection) -> str: ...

    def knocked(self, connection: SshConnection) -> None: ...

    def gone(self, connection: SshConnection) -> None: ...

    def turned_away(self, hung_up_on: bool, attempts: int, **facts: str) -> None: ...


class SshConnection(asyncssh.SSHServer):
    """What asyncssh calls for one client. Public keys are the only way in."""

    def __init__(self, server: Doorkeeper) -> None:
        self.address = ""
        self.grant: Grant | None = None
        """What the key opens; None until the log-in is done."""
        self.since = time.monotonic()
        self.used = self.since
        """When a key was pressed, or a file read."""
        self.busy = 0
        """Commands that run."""
        self.channels = 0
        self._server = server
        self._conn: asyncssh.SSHServerConnection | None = None
        self._username = ""
        self._offered: Grant | None = None
        self._attempts = 0
        self._unknown = ""
        self._reads = asyncio.Event()
        self._reads.set()
        self._why = ""

    @property
    def dropped(self) -> bool:
        """Whether it was hung up on; it is gone a little later."""
        return bool(self._why)

    # ------------------------------------------------------------------ log-in

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Somebody knocks."""
        self._conn = conn
        self.address = str((conn.get_extra_info("peername") or ("",))[0])
        # asyncssh tells nobody when its transport is full, only when a channel's window is.
        cast(Any, conn).pause_writing = self._reads.clear
        cast(Any, conn).resume_writing = self._reads.set
        self._server.knocked(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, by its own will or by the network's."""
        self._reads.set()
        why = self._why or (str(exc) if exc is not None else "")
        if self.grant is not None:
            self.note("logged_out", why=why, seconds=round(time.monotonic() - self.since, 1))
        else:
            self._server.turned_away(
                self.dropped,
                self._attempts,
                address=self.address,
                username=self._username,
                key=self._unknown,
                why=why,
            )
        self._server.gone(self)

    def begin_auth(self, username: str) -> bool:
        """Everybody has to show a key; the name before the @ means nothing here."""
        self._username = username
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return False

    def kbdint_auth_supported(self) -> bool:
        return False

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whether that key opens the door; asyncssh then asks for its signature.

        Not a coroutine: between this and `auth_completed` nothing else may come in.
        """
        del username
        self._attempts += 1
        limit = self._server.limits.attempts
        grant = self._server.grant(key) if self.grant is None else None
        if grant is not None and not grant.holds_from(self.address):
            grant = None
        if grant is None:
            self._unknown = key.get_fingerprint()
        if self._attempts > limit * VERIFIED_TWICE or (grant is None and self._attempts >= limit):
            self.drop("too many keys were tried")
            return False
        self._offered = grant
        return grant is not None

    def auth_completed(self) -> None:
        """The client holds the key that was offered last."""
        self.grant = self._offered
        self.since = self.used = time.monotonic()
        if self.grant is None:
            self.drop("no key")
            return
        self.note("logged_in", username=self._username)
        refused = self._server.full_for(self)
        if refused:
            self.drop(refused)

    # ------------------------------------------------------------------ what is not given

    def connection_requested(self, *asked: Any) -> bool:
        """No port is forwarded (-L, -D, -J)."""
        return self._no_forwarding("direct-tcpip", *asked[:2])

    def server_requested(self, *asked: Any) -> bool:
        """Nor back (-R)."""
        return self._no_forwarding("tcpip-forward", *asked)

    def unix_connection_requested(self, *asked: Any) -> bool:
        """Nor a unix socket."""
        return self._no_forwarding("direct-streamlocal", *asked)

    def unix_server_requested(self, *asked: Any) -> bool:
        """Nor back."""
        return self._no_forwarding("streamlocal-forward", *asked)

    def _no_forwarding(self, what: str, *asked: Any) -> bool:
        self.note("forwarding_refused", forwarding=what, to=":".join(map(str, asked)))
        return False

    # ------------------------------------------------------------------ for its channels

    @property
    def hello(self) -> Hello:
        """What the engine is told about who is here."""
        assert self.grant is not None
        details = {"door": "ssh", "address": self.address, "key": self.grant.fingerprint}
        return Hello(
            PROTOCOL_VERSION, __version__, self.grant.name, self.grant.role, details=details
        )

    def open_channel(self) -> None:
        """Count a channel. Raises `UsageError` if there are too many."""
        if self.channels >= self._server.limits.channels:
            raise UsageError(f"a connection has at most {self._server.limits.channels} channels")
        self.channels += 1
        self.touch()

    def close_channel(self) -> None:
        """One is done."""
        self.channels -= 1
        self.touch()

    def touch(self) -> None:
        """It is not idle."""
        self.used = time.monotonic()

    def note(self, what: str, **facts: str | float) -> None:
        """Write to the audit log, with who it is."""
        who = self.grant.name if self.grant else ""
        role = self.grant.role if self.grant else ""
        key = self.grant.fingerprint if self.grant else ""
        self._server.audit.write(what, who=who, role=role, key=key, address=self.address, **facts)

    async def flowing(self, *drains: Callable[[], Awaitable[None]]) -> None:
        """Wait until the client has read: from the network, and what `drains` wait for.

        Raises `TimeoutError`, and drops it, where it does not read.
        """
        try:
            async with asyncio.timeout(self._server.limits.slow_s):
                await self._reads.wait()
                for drain in drains:
                    await drain()
        except TimeoutError:
            self.drop("too slow to read")
            raise
        except (asyncssh.Error, OSError):
            return  # it is gone; its channel's end says so

    def drop(self, why: str) -> None:
        """Hang up. Nothing that is still to be sent is waited for."""
        if self._why or self._conn is None:
            return
        self._why = why
        if self.grant is not None:
            self.note("dropped", why=why)
        if self._reads.is_set():
            self._conn.disconnect(asyncssh.DISC_BY_APPLICATION, why)
        self._conn.abort()
