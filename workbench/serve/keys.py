"""The authorized-keys file: whose keys open the door, and as what.

The format is OpenSSH's. Options that we know stand before the key:

`operator`, `observer`
    The role; without one of them a key observes.
`name="ann"`
    What events and the audit log call its owner; else the key's comment.
`from="10.0.0.0/8,192.168.1.7"`
    Addresses that it may come from; `!` before one excludes it.

`restrict` and `no-...-forwarding` are taken, since nothing of that is given to anybody. A key with
any other option is not let in: what it limits, such as `command=`, would not be limited here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from workbench.domain.errors import UsageError
from workbench.domain.messages import Role

HARMLESS = frozenset(
    {"restrict", "pty", "no-port-forwarding", "no-agent-forwarding"}
    | {"no-x11-forwarding", "no-user-rc"}
)
LONGEST_NAME = 64
_OPTION = re.compile(r'([A-Za-z0-9-]+)(?:="((?:[^"\\]|\\.)*)")?(,|$)')


@dataclass(frozen=True)
class Grant:
    """What a key opens."""

    name: str
    role: Role
    fingerprint: str
    sources: tuple[str, ...] = ()
    """Networks; none: from everywhere."""

    def holds_from(self, address: str) -> bool:
        """Whether the key may come from there."""
        if not self.sources:
            return True
        try:
            there = ipaddress.ip_address(address)
        except ValueError:
            return False
        within = [s for s in self.sources if there in ipaddress.ip_network(s.lstrip("!"), False)]
        return bool(within) and not any(s.startswith("!") for s in within)


class KeyRing:
    """The file as it is now: who is taken out of it cannot log in any more.

    Attributes
    ----------
    mistakes : lines that let nobody in, as sentences.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mistakes: list[str] = []
        self._grants: dict[bytes, Grant] = {}
        self._read_at: tuple[int, int] | None = None

    def load(self) -> None:
        """Read the file if it has changed. Raises `UsageError` if it cannot be trusted."""
        try:
            found = self.path.stat()
            if found.st_mode & 0o022:
                raise UsageError(
                    "others can write to the authorized keys",
                    where=str(self.path),
                    remedy="`chmod go-w` it",
                )
            if (found.st_mtime_ns, found.st_size) == self._read_at:
                return
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            self._grants, self._read_at = {}, None
            raise UsageError(
                f"the authorized keys cannot be read: {error.strerror}", where=str(self.path)
            ) from None
        self.mistakes, self._grants = [], {}
        for number, text in enumerate(lines, 1):
            line = text.strip()
            if not line or line.startswith("#"):
                continue
            try:
                key, grant = _read(line)
            except ValueError as error:
                self.mistakes.append(f"{self.path}:{number}: {error}")
                continue
            self._grants.setdefault(key, grant)
        self._read_at = (found.st_mtime_ns, found.st_size)

    def grants(self) -> tuple[Grant, ...]:
        return tuple(self._grants.values())

    def grant(self, key: asyncssh.SSHKey) -> Grant | None:
        """What that key opens now; None: nothing."""
        return self._grants.get(key.public_data)


def _read(line: str) -> tuple[bytes, Grant]:
    """A key and what it opens. Raises `ValueError` with a sentence."""
    key, options = _import(line), ""
    if key is None:
        options, rest = _apart(line)
        key = _import(rest)
    if key is None:
        raise ValueError("is not a public key")
    role: Role = "observer"
    name = key.get_comment() or ""
    sources: tuple[str, ...] = ()
    for option, value in _options(options):
        match option:
            case "operator" | "observer" if value is None:
                role = option
            case "name" if value:
                name = value
            case "from" if value:
                sources = tuple(value.split(","))
                for source in sources:
                    ipaddress.ip_network(source.lstrip("!"), strict=False)
            case _ if option not in HARMLESS:
                raise ValueError(f"the option {option} is not known here, so the key opens nothing")
    fingerprint = key.get_fingerprint()
    clean = "".join(c if c.isprintable() else "·" for c in name)[:LONGEST_NAME]
    return key.public_data, Grant(clean or fingerprint[:19], role, fingerprint, sources)


def _import(text: str) -> asyncssh.SSHKey | None:
    try:
        return asyncssh.import_public_key(text)
    except asyncssh.KeyImportError:
        return None


def _apart(line: str) -> tuple[str, str]:
    """Options and the rest: the first blank outside of quotes is between them."""
    quoted = False
    for at, character in enumerate(line):
        if character == '"' and line[at - 1 : at] != "\\":
            quoted = not quoted
        elif character in " \t" and not quoted:
            return line[:at], line[at:].strip()
    return line, ""


def _options(text: str) -> Iterator[tuple[str, str | None]]:
    at = 0
    while at < len(text):
        found = _OPTION.match(text, at)
        if found is None:
            raise ValueError(f"its options cannot be read: {text[at : at + 20]}")
        value = found[2]
        yield found[1].lower(), None if value is None else value.replace('\\"', '"')
        at = found.end()
