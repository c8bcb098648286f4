"""Tells whoever asked that a campaign finished, failed or drifts: a webhook, or a command.

ToTell for in `notify.toml` of whoever owns the engine, and nowhere else: no request can have it run
a program or send something. Each is bounded; what goes wrong is a sentence, and stops nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

from workbench.domain.errors import UsageError
from workbench.domain.events import Event
from workbench.domain.notices import OCCASIONS, Notice, notice_of
from workbench.domain.projection import SessionView
from workbench.log import logger

TELLING_S = 10.0
"""For one webhook or command."""
LARGEST_FILE = 64 * 1024
MOST_ASKED = 20
SCHEMES = ("http://", "https://", "${")
KEYS = ("on", "webhook", "token", "command", "terminal")

log = logger("engine.notifying")


@dataclass(frozen=True)
class ToTell:
    """Who is to be told, and of what; one of `webhook`, `command` and `terminal` is set."""

    on: tuple[str, ...] = tuple(OCCASIONS)
    webhook: str = ""
    """A URL, or `${NAME}` of one."""
    token: str = ""
    """`${NAME}` of a bearer token of the webhook."""
    command: tuple[str, ...] = ()
    """Program and arguments; `{text}`, `{session}` and `{event}` are filled in, the notice is its
    standard input as JSON."""
    terminal: bool = False
    """The terminal in which a campaign is followed without a screen."""

    @property
    def title(self) -> str:
        """Without anything secret in it."""
        if self.webhook:
            if self.webhook.startswith("${"):
                return f"webhook {self.webhook}"
            return f"webhook at {urlsplit(self.webhook).netloc.rpartition('@')[2]}"
        return f"command {Path(self.command[0]).name}" if self.command else "terminal"


def read(path: Path) -> tuple[ToTell, ...]:
    """What a file asks for; nothing where there is none. Raises `UsageError`."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise _wrong(path, f"is larger than {LARGEST_FILE >> 10} KiB")
        given = tomllib.loads(content.decode())
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _wrong(path, f"cannot be read: {reason}") from None
    entries = given.pop("notify", [])
    if given or not isinstance(entries, list) or len(entries) > MOST_ASKED:
        raise _wrong(path, f"must hold up to {MOST_ASKED} tables [[notify]], and nothing else")
    return tuple(_asked(path, number, entry) for number, entry in enumerate(entries, 1))


def _asked(path: Path, number: int, entry: Any) -> ToTell:
    for mistake in _mistakes(entry):
        raise _wrong(path, f"[[notify]] {number} {mistake}")
    return ToTell(
        tuple(entry.get("on", OCCASIONS)),
        entry.get("webhook", ""),
        entry.get("token", ""),
        tuple(entry.get("command", ())),
        entry.get("terminal", False),
    )


def _mistakes(entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield "is no table"
        return
    if unknown := [key for key in entry if key not in KEYS]:
        yield f"has no setting {unknown[0][:40]!r}; use {', '.join(KEYS)}"
    if sum(bool(entry.get(key)) for key in ("webhook", "command", "terminal")) != 1:
        yield "must have one of webhook, command and terminal = true"
    on = entry.get("on", [])
    if not isinstance(on, list) or not all(one in OCCASIONS for one in on):
        yield f"has an `on` that is no list of {', '.join(OCCASIONS)}"
    command = entry.get("command", [])
    if not isinstance(command, list) or not all(isinstance(one, str) for one in command):
        yield "has a command that is no list of program and arguments"
    webhook, token = entry.get("webhook", ""), entry.get("token", "")
    if not isinstance(webhook, str) or (webhook and not _is_url(webhook)):
        yield "has a webhook that is no URL"
    if not isinstance(token, str) or (token and not token.startswith("${")):
        yield "has a token as text; write ${NAME}"
    if not isinstance(entry.get("terminal", False), bool):
        yield "has a terminal that is neither true nor false"


def _is_url(webhook: str) -> bool:
    try:
        urlsplit(webhook)
    except ValueError:  # a bracket of an address that is not closed
        return False
    return webhook.startswith(SCHEMES)


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(what, where=str(path), remedy="Nobody is told until it is right")


async def tell(asked: ToTell, notice: Notice) -> str:
    """Tell one of them; a sentence where that failed, else nothing. Raises nothing."""
    try:
        if asked.webhook:
            why = await asyncio.wait_for(_post(asked, notice), TELLING_S)
        else:
            why = await asyncio.wait_for(_run(asked, notice), TELLING_S)
    except TimeoutError:
        why = f"took more than {TELLING_S:g} s"
    except KeyError as error:
        why = f"needs {error.args[0]}, which the engine's environment has not"
    except Exception as error:  # noqa: BLE001  # it must not end a run; its text may be secret
        why = f"failed ({type(error).__name__})"
    return f"the notice `{notice.event}` was not delivered: {asked.title} {why}" if why else ""


async def _post(asked: ToTell, notice: Notice) -> str:
    import aiohttp  # takes time

    url, token = (Template(text).substitute(os.environ) for text in (asked.webhook, asked.token))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=TELLING_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.post(url, json=asdict(notice), headers=headers, allow_redirects=False) as answer,
        ):
            return "" if 200 <= answer.status < 300 else f"answered {answer.status}"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        return f"cannot be reached ({why})"


async def _run(asked: ToTell, notice: Notice) -> str:
    filled = {"text": notice.text, "session": notice.session, "event": notice.event}
    argv = [_filled(argument, filled) for argument in asked.command]
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"cannot be started ({getattr(error, 'strerror', None) or type(error).__name__})"
    try:
        await process.communicate(json.dumps(asdict(notice)).encode() + b"\n")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return f"ended with code {process.returncode}" if process.returncode else ""


def _filled(argument: str, filled: Mapping[str, str]) -> str:
    for key, value in filled.items():
        argument = argument.replace(f"{{{key}}}", value)
    return argument


Warn = Callable[[str, str], Awaitable[None]]
"""Tells a session's log a sentence."""


class Notifier:
    """Hears every event of the engine's sessions, and tells whoever asked, in the background.

    Parameters
    ----------
    path : read again for each notice: what is changed in it holds from then on.
    """

    def __init__(self, path: Path, warn: Warn) -> None:
        self._path = path
        self._warn = warn
        self._telling: set[asyncio.Task[None]] = set()

    def hear(self, event: Event, view: SessionView) -> None:
        """Returns at once."""
        notice = notice_of(event, view)
        if notice is not None:
            task = asyncio.create_task(self._tell(notice))
            self._telling.add(task)
            task.add_done_callback(self._told)

    async def close(self) -> None:
        """Wait for what is under way, which is bounded."""
        await asyncio.gather(*self._telling, return_exceptions=True)

    def _told(self, task: asyncio.Task[None]) -> None:
        """What nobody expected of it is in the log, since nobody waits for it."""
        self._telling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("nobody was told of what happened", exc_info=error)

    async def _tell(self, notice: Notice) -> None:
        try:
            asked = await asyncio.to_thread(read, self._path)
        except UsageError as error:
            await self._warn(notice.session, f"{error}.")
            return
        told = [one for one in asked if notice.event in one.on and not one.terminal]
        for why in await asyncio.gather(*(tell(one, notice) for one in told)):
            if why:
                log.warning("a notice was not delivered", session=notice.session, why=why)
                await self._warn(notice.session, f"{why[:1].upper()}{why[1:]}.")
