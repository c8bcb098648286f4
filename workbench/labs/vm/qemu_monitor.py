"""QEMU's monitor, by `qemu.qmp`: what has become of a guest, and its end."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from workbench.domain.errors import LabError

if TYPE_CHECKING:
    from qemu.qmp import QMPClient

EXTRA = "vm"
MISSING = (
    "qemu.qmp, which speaks to QEMU, is not installed",
    f"Install it: pip install 'vnf-workbench[{EXTRA}]'",
)
PATIENCE_S = 20.0
WRONG = {
    "guest-panicked": "its kernel panicked",
    "internal-error": "QEMU met an error of its own",
    "io-error": "a device of it failed",
    "paused": "somebody paused it",
    "suspended": "it suspended itself",
    "shutdown": "it was shut down",
}
"""States of a guest (QMP, `RunState`) in which it serves nobody."""


def installed() -> bool:
    """Whether the extra is there; it is not imported for that."""
    try:
        return find_spec("qemu.qmp") is not None
    except ModuleNotFoundError:  # there is no `qemu` at all
        return False


class QemuMonitor:
    """One guest's monitor. QEMU answers it while the guest hangs; where QEMU itself is gone or
    stopped by its quota for long, that is an answer, too."""

    def __init__(self, client: QMPClient) -> None:
        self._client = client

    @classmethod
    async def over(cls, end: socket.socket) -> QemuMonitor:
        """Speak over a connected socket. Raises `LabError`."""
        if not installed():
            raise LabError(MISSING[0], remedy=MISSING[1])
        from qemu.qmp import QMPClient, QMPError

        client = QMPClient("guest")
        try:
            async with asyncio.timeout(PATIENCE_S):
                await client.connect(end)
        except (QMPError, OSError, EOFError, TimeoutError) as error:
            raise LabError(f"QEMU's monitor does not greet us: {_said(error)}") from error
        return cls(client)

    async def state(self) -> str:
        """QMP's word for what the guest does, such as `running`. Raises `LabError`."""
        return str((await self._ask("query-status")).get("status", ""))

    async def trouble(self) -> str:
        """Why the guest serves nobody, as a clause; empty where it runs."""
        try:
            return WRONG.get(await self.state(), "")
        except LabError as error:
            return error.what

    async def end(self) -> None:
        """Have QEMU end, and hang up; gone already is no error."""
        with suppress(LabError):
            await self._ask("quit")
        # The connection breaks off by what was asked for just now, in whatever way.
        with suppress(Exception):
            async with asyncio.timeout(PATIENCE_S):
                await self._client.disconnect()

    async def _ask(self, command: str) -> dict[str, Any]:
        from qemu.qmp import QMPError

        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await self._client.execute(command)
        except TimeoutError:  # an `OSError`, too
            raise LabError(f"QEMU has not answered for {PATIENCE_S:g} s") from None
        except (QMPError, OSError, EOFError) as error:
            raise LabError(f"QEMU has ended: {_said(error)}") from error
        return answer if isinstance(answer, dict) else {}


def _said(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing came within {PATIENCE_S:g} s"
    return str(error).strip().rstrip(".") or type(error).__name__
