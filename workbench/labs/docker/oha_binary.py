"""The oha binary for the source's image: built once per host by cargo, then kept in the cache."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import platformdirs

from workbench.labs.docker.programs import Listener, run
from workbench.paths import APPLICATION

VERSION = "1.16.0"
"""The version whose records `traffic.oha` was checked against."""


def cached() -> Path:
    """Where the binary of this version and processor is kept."""
    folder = f"oha-{VERSION}-{platform.machine()}"
    return Path(platformdirs.user_cache_dir(APPLICATION)) / folder / "bin" / "oha"


async def find_or_build(listener: Listener) -> Path | None:
    """The binary, or None with a sentence where it cannot be had."""
    kept = cached()
    if kept.is_file():
        return kept
    installed = shutil.which("oha")
    if installed and await _is_right(installed):
        return Path(installed)
    cargo = shutil.which("cargo")
    if cargo is None:
        listener.step(
            "oha is not here and there is no cargo to build it; hey stands in, closed loop only. "
            "Install Rust's cargo and build the images again."
        )
        return None
    root = kept.parent.parent
    unfinished = root.with_name(f"{root.name}.{os.getpid()}")
    listener.step(f"building oha {VERSION} with cargo, once on this host: about four minutes")
    try:
        # Under nice, so that a session which is measuring now is disturbed less.
        code, tail = await run(
            (
                *("nice", "-n", "10", cargo, "install", "oha", "--version", VERSION, "--locked"),
                *("--root", str(unfinished)),
            ),
            listener.line,
        )
        if code != 0:
            listener.step(
                f"cargo could not build oha ({tail.splitlines()[-1] if tail else f'exit {code}'}); "
                "hey stands in, closed loop only."
            )
            return None
        shutil.rmtree(root, ignore_errors=True)
        unfinished.rename(root)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return kept


async def _is_right(program: str) -> bool:
    code, output = await run((program, "--version"), lambda _: None)
    return code == 0 and output.split()[-1:] == [VERSION]
