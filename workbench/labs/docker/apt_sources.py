"""Where this host's package manager gets Debian from: no address is written down here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

APT = Path("/etc/apt")


@dataclass(frozen=True)
class AptSource:
    """One archive and the suites taken from it."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    trust: str = ""
    """How it is verified, as an option of sources.list(5); empty for the keys that apt trusts."""


def parse_one_line(text: str) -> Iterator[AptSource]:
    """`deb [options] uri suite component...`, one a line (sources.list(5))."""
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] != "deb":
            continue
        words = words[1:]
        options: list[str] = []
        if words and words[0].startswith("["):
            closing = next((i for i, word in enumerate(words) if word.endswith("]")), len(words))
            options = " ".join(words[: closing + 1]).strip("[] ").split()
            words = words[closing + 1 :]
        if len(words) >= 2:
            given = dict(option.partition("=")[::2] for option in options)
            trust = _trust(given.get("signed-by", ""), given.get("trusted", ""))
            yield AptSource(words[0], (words[1],), tuple(words[2:]), trust)


def parse_deb822(text: str) -> Iterator[AptSource]:
    """Stanzas of `Types`, `URIs`, `Suites` and `Components`; a leading space continues a field."""
    for stanza in "\n".join(
        line.rstrip() for line in text.splitlines() if not line.startswith("#")
    ).split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields[key] = f"{fields.get(key, '')} {line.strip()}"
            else:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in {"no", "false", "0"}:
            continue
        for uri in fields.get("uris", "").split():
            yield AptSource(
                uri,
                tuple(fields.get("suites", "").split()),
                tuple(fields.get("components", "").split()),
                _trust(fields.get("signed-by", ""), fields.get("trusted", "")),
            )


def _trust(signed_by: str, trusted: str) -> str:
    if trusted.lower() in {"yes", "true", "1"}:
        return "trusted=yes"
    # A key that stands in the file itself cannot go on one line.
    return f"signed-by={signed_by}" if signed_by.startswith("/") else ""


def read_sources(apt: Path = APT) -> tuple[AptSource, ...]:
    """Every archive that this host installs from; none where the host has no apt."""
    found: list[AptSource] = []
    for file in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        if not file.is_file():
            continue
        if file.suffix == ".sources":
            found.extend(parse_deb822(file.read_text()))
        elif file.suffix == ".list":
            found.extend(parse_one_line(file.read_text()))
    return tuple(found)


def debian_sources(sources: tuple[AptSource, ...], suite: str) -> tuple[AptSource, ...]:
    """The sources of one Debian release: its main archive, updates and security.

    Of a host of another release, the main archive that it names carries this one too. None on a
    host that is not Debian.
    """
    found = tuple(
        replace(source, suites=suites)
        for source in sources
        if (suites := tuple(s for s in source.suites if s.partition("-")[0] == suite))
    )
    if any(suite in source.suites for source in found):
        return found
    return (
        found
        + tuple(
            replace(source, suites=(suite,), components=("main",))
            for source in sources
            if source.uri.rstrip("/").endswith("/debian")
        )[:1]
    )


def render(sources: tuple[AptSource, ...], *, trust: bool = False) -> str:
    """The sources as a `sources.list`.

    `trust` names the host's keys; a Debian image has its own where apt looks.
    """
    return "".join(
        f"deb {f'[{source.trust}] ' if trust and source.trust else ''}"
        f"{source.uri} {suite} {' '.join(source.components)}\n"
        for source in sources
        for suite in source.suites
    )
