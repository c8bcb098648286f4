"""A bundle: everything that a session holds, to be shipped, replayed and imported."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench.exports.base import ExportSource


async def export_bundle(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """Bundle: everything, as files that any tool reads; can be imported again.

    Writes the folder `destination`, or `NAME.bundle` in a folder that is no bundle. A bundle
    that lies there already is replaced.
    """
    folder = await asyncio.to_thread(_folder, source.name, destination)
    return (folder, *await source.write_tables(folder))


def _folder(name: str, destination: Path) -> Path:
    taken = destination.is_dir() and not (destination / "manifest.json").exists()
    return destination / f"{name}.bundle" if taken else destination
