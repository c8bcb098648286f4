"""Where this host's package manager gets Debian from: no address is written down here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

APT = Path("/etc/apt")


@dataclass(frozen=True)
class AptSource:
    """One archive and the suites taken from it."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]


def parse_one_line(text: str) -> Iterator[AptSource]:
    """`deb [options] uri suite component...`, one a line (sources.list(5))."""
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] != "deb":
            continue
        words = words[1:]
        if words and words[0].startswith("["):
            closing = next((i for i, word in enumerate(words) if word.endswith("]")), len(words))
            words = words[closing + 1 :]
        if len(words) >= 2:
            yield AptSource(words[0], (words[1],), tuple(words[2:]))


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
                uri, tuple(fields.get("suites", "").split()), tuple(fields["components"].split())
            )


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
    """The sources of one Debian release: its main archive, updates and security."""
    return tuple(
        AptSource(source.uri, suites, source.components)
        for source in sources
        if (suites := tuple(s for s in source.suites if s.partition("-")[0] == suite))
    )


def mirror(sources: tuple[AptSource, ...], suite: str) -> str | None:
    """The archive that carries a release itself; another release's serves where it names Debian.

    None leaves the choice to debootstrap, as on a host that is not Debian.
    """
    for source in sources:
        if suite in source.suites:
            return source.uri
    for source in sources:
        if source.uri.rstrip("/").endswith("/debian"):
            return source.uri
    return None


def render(sources: tuple[AptSource, ...]) -> str:
    """The sources as a `sources.list` of a Debian image, which has its keys where apt looks."""
    return "".join(
        f"deb {source.uri} {suite} {' '.join(source.components)}\n"
        for source in sources
        for suite in source.suites
    )
