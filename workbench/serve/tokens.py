"""Tokens of `serve --http`: who may ask, and as what. Kept as digests, in a file of the user's own.

A token is 256 random bits, so that a plain SHA-256 of it tells nothing; it is shown once, to who
makes it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from workbench import files
from workbench.domain.errors import NameTaken, UsageError, WorkbenchError
from workbench.domain.messages import Role

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
LONGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Token:
    """What a token opens; `digest` is the SHA-256 of it, in hexadecimal."""

    name: str
    role: Role
    digest: str
    made_at: float


class Tokens:
    """The file as it is now: what is taken out of it opens nothing from the next request on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: tuple[int, int, int] | None = None
        self._known: tuple[Token, ...] = ()

    def known(self) -> tuple[Token, ...]:
        """All of them. Raises `UsageError` where the file cannot be trusted."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        if found.st_mode & 0o077:
            raise UsageError(
                "others may read or write the tokens' file",
                where=str(self._path),
                remedy="`chmod 600` it",
            )
        read_at = (found.st_ino, found.st_mtime_ns, found.st_size)
        if read_at != self._read_at:
            self._known, self._read_at = self._read(found.st_size), read_at
        return self._known

    def whose(self, said: str) -> Token | None:
        """The token that somebody shows; None where there is none like it."""
        digest = _digest(said)
        match = None
        for token in self.known():  # all of them, so that time tells nothing
            if secrets.compare_digest(token.digest, digest):
                match = token
        return match

    def make(self, name: str, role: Role) -> str:
        """A new token, which is kept nowhere. Raises `NameTaken`, `UsageError`."""
        if NAME.fullmatch(name) is None:
            raise UsageError(
                f"{name[:70]!r} is no name for a token",
                remedy="Take up to 64 letters, digits, dots, dashes and @",
            )
        if any(token.name == name for token in self.known()):
            raise NameTaken(
                f"there is a token called {name}", remedy=f"`workbench token rm {name}` ends it"
            )
        said = secrets.token_urlsafe(32)
        self._write((*self.known(), Token(name, role, _digest(said), time.time())))
        return said

    def remove(self, name: str) -> None:
        """End a token. Raises `UsageError` where there is none of that name."""
        rest = tuple(token for token in self.known() if token.name != name)
        if len(rest) == len(self.known()):
            raise UsageError(f"no token is called {name}", remedy="`workbench token ls` lists them")
        self._write(rest)

    def _read(self, size: int) -> tuple[Token, ...]:
        if size > LONGEST_FILE:
            raise self._unreadable("it is longer than 1 MiB")
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=tuple[Token, ...])
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise self._unreadable(str(error)) from None

    def _write(self, tokens: tuple[Token, ...]) -> None:
        try:
            files.make_folder(self._path.parent)
            files.write_own(self._path, msgspec.json.format(msgspec.json.encode(tokens)))
        except OSError as error:
            raise WorkbenchError(
                f"cannot be written: {error.strerror or error}", where=str(self._path)
            ) from None

    def _unreadable(self, why: str) -> UsageError:
        return UsageError(
            f"the tokens cannot be read: {why}",
            where=str(self._path),
            remedy="Remove it and make new ones with `workbench token add`",
        )


def _digest(said: str) -> str:
    return hashlib.sha256(said.encode(errors="surrogateescape")).hexdigest()
