"""What `ssh host COMMAND` runs: a fixed list, with options that take no path.

This keeps the files of the host out of what a command does by itself, such as `--output`; what it
asks the engine for is checked there (`engine.admission`).
"""

from __future__ import annotations

import re
import shlex
from typing import Final, Literal

from workbench.domain.errors import UsageError

Kind = Literal["flag", "name", "text"]
"""What follows an option: nothing; a name or a number; a text that is never taken for a path."""

_JSON: Final[dict[str, Kind]] = {"--json": "flag"}
_CHAIN: Final[dict[str, Kind]] = {"--chain": "name", "--kpi": "name", "--rule": "name"}

COMMANDS: Final[dict[str, dict[str, Kind]]] = {
    "ls": _JSON,
    "show": {**_JSON, "--logs": "flag"},
    "samples": {"--format": "name"},
    "plan": {**_JSON, "--lab": "name", "--seed": "name", "--budget": "name", "--fit": "flag"},
    "models": {
        **_JSON,
        **{"--target": "name", "--kpi": "name", "--by": "name", "--methods": "text"},
        **{"--chain": "name", "--rollback": "name", "--why": "text"},
    },
    "predict": {
        **_JSON,
        **_CHAIN,
        **{"--at": "text", "--allocate": "text", "--profiles": "name", "--insist": "flag"},
    },
    "compare": {
        **_JSON,
        **_CHAIN,
        **{"--exit-code": "flag", "--profiles": "name", "--insist": "flag"},
    },
    "why": {**_JSON, "--chain": "name", "--at": "text", "--sample": "text"},
    "recommend": {
        **_JSON,
        **{"--sla": "text", "--chain": "name", "--confidence": "name", "--cost": "name"},
        **{"--compare": "name", "--on-lab": "flag", "--verify": "flag", "--budget": "name"},
        **{"--oversubscribe": "flag", "--profiles": "name", "--insist": "flag"},
    },
    "canary": {
        **_JSON,
        **{"--chain": "name", "--kpi": "name", "--sla": "text", "--share": "name"},
        **{"--steps": "name", "--guard": "text", "--budget": "name", "--allocate": "text"},
        **{"--online": "flag", "--method": "name", "--accept": "flag", "--reject": "flag"},
        **{"--why": "text", "--align": "name"},
    },
    "export": {"--as": "name", "--recommendation": "name"},
}
HELP: Final = ("--help", "-h")
_NAME = re.compile(r"[\w][\w.,:=%+@-]*", re.ASCII)
MOST_BYTES = 4096


def arguments(line: str) -> list[str]:
    """The argument vector of a command that is allowed. Raises `UsageError` with a sentence."""
    try:
        words = shlex.split(line[:MOST_BYTES])
    except ValueError as error:
        raise UsageError(f"that cannot be read: {error}") from None
    if not words or words[0] not in COMMANDS or len(line) > MOST_BYTES:
        raise UsageError(
            f"{_shown(line)} is not among the commands over SSH",
            remedy=f"Take one of {', '.join(COMMANDS)}; files come by sftp, a screen by `ssh -t`",
        )
    _check(words[0], words[1:])
    return words


def _check(command: str, words: list[str]) -> None:
    rest = iter(words)
    for word in rest:
        if word in HELP:
            continue
        if not word.startswith("-"):
            _must_be_a_name(word, command)
            continue
        option, given, value = word.partition("=")
        kind = COMMANDS[command].get(option)
        if kind is None:
            raise UsageError(
                f"{command} over SSH has no option {_shown(option)}",
                remedy=f"Take {', '.join(COMMANDS[command])}",
            )
        if kind == "flag":
            if given:
                raise UsageError("takes no value", where=option)
            continue
        if not given:
            value = next(rest, "-")
        if kind == "name":
            _must_be_a_name(value, option)
        elif not value.isprintable() or value.startswith("-"):
            raise UsageError("is no text", where=option)


def _must_be_a_name(word: str, where: str) -> None:
    if not _NAME.fullmatch(word):
        raise UsageError(
            f"{_shown(word)} is not a name, and paths are not taken over SSH", where=where
        )


def _shown(text: str) -> str:
    return repr(text[:40])
