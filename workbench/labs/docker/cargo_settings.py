"""How this host reaches crates: its own settings of cargo, for a cargo in a container."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECTIONS = ("http", "net", "registries", "registry", "source")
"""What of its configuration is about the network; compilers and linkers are the container's."""
SECRETS = ("token", "secret-key")
"""Only who publishes needs them."""
VARIABLES = tuple(f"CARGO_{section.upper()}_" for section in SECTIONS)
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
CAINFO = "/etc/ssl/host-authorities.crt"
"""Where the host's authorities lie in the container: a proxy's own may be among them."""
CONFIGURATION = "/etc/ssl/host-cargo.toml"
"""Where its settings lie: a proxy's password would be read by everybody in a command line."""


@dataclass(frozen=True)
class CargoSettings:
    """Options of cargo, variables and files by path."""

    options: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, bytes]


def of_this_host(environ: Mapping[str, str] = os.environ) -> CargoSettings:
    """What a cargo on this host would go by, installed or not."""
    home = Path(environ.get("CARGO_HOME") or Path(environ.get("HOME", "/")) / ".cargo")
    configuration = next(
        (_read(file) for name in ("config.toml", "config") if (file := home / name).is_file()), {}
    )
    configured = {key: configuration[key] for key in SECTIONS if key in configuration}
    authorities = _authorities(environ, configured)
    configured.get("http", {}).pop("cainfo", None)
    environment = {
        key: value
        for key, value in environ.items()
        if key.startswith(VARIABLES) and not key.endswith("_TOKEN")
    }
    files: dict[str, bytes] = {}
    if authorities is not None:
        files[CAINFO] = authorities.read_bytes()
        environment["CARGO_HTTP_CAINFO"] = CAINFO
    if lines := list(_flat(configured)):
        files[CONFIGURATION] = "\n".join([*lines, ""]).encode()
    options = ("--config", CONFIGURATION) if lines else ()
    return CargoSettings(options, environment, files)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # cargo itself would say what is wrong with it
        return {}


def _authorities(environ: Mapping[str, str], configured: Mapping[str, Any]) -> Path | None:
    named = (
        environ.get("CARGO_HTTP_CAINFO"),
        configured.get("http", {}).get("cainfo"),
        environ.get("SSL_CERT_FILE"),
        AUTHORITIES,
    )
    return next((Path(name) for name in named if name and os.access(name, os.R_OK)), None)


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in table.items():
        if key in SECRETS:
            continue
        path = f"{above}{json.dumps(key)}"
        if isinstance(value, dict):
            yield from _flat(value, f"{path}.")
        else:  # strings, numbers, truths and lists of them are written in TOML as in JSON
            yield f"{path}={json.dumps(value)}"
