"""Samples of a run, on disk: an interrupted run goes on, a changed rule is scored without one.

A file per method and family, a gzip member per seed, under a folder named by the code that took
them: samples of an older simulation, judge or sampler are never mixed with new ones.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

import workbench
from workbench.domain.samples import Sample

CODE = (
    "labs/simulated",
    "queues",
    "measuring",
    "sampling",
    "models",
    "engine/learning/sampler_worker.py",
)
"""What decides which samples are taken, beside the families. Rules of breakpoints are left out:
they are what stored samples are scored with again."""
LEFT_OUT = "breakpoints"


class Seed(msgspec.Struct):
    """All samples of one seed, and the lab's seconds that they cost, deployments included."""

    seed: int
    samples: list[Sample]
    lab_s: float


def digest() -> str:
    """Of the code that takes samples."""
    root, own = Path(workbench.__file__).parent, Path(__file__).parent
    files = [own / "families.py", own / "playing.py"]
    for name in CODE:
        path = root / name
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    taken = blake2b(digest_size=6)
    for path in files:
        if LEFT_OUT not in path.parts:
            taken.update(path.read_bytes())
    return taken.hexdigest()


class Store:
    """Samples by method and family below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, method: str, family: str) -> Path:
        return self.folder / method / f"{family}.json.gz"

    def add(self, method: str, family: str, encoded: bytes) -> None:
        """One encoded `Seed`."""
        path = self._path(method, family)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(gzip.compress(encoded + b"\n", compresslevel=6))

    def seeds(self, method: str, family: str) -> Iterator[Seed]:
        """In the order stored; a last one that was cut short by a kill is removed."""
        path = self._path(method, family)
        if not path.exists():
            return
        whole, rest = 0, path.read_bytes()
        while rest:
            member = zlib.decompressobj(wbits=31)
            try:
                line = member.decompress(rest)
            except zlib.error:
                break
            if not member.eof:
                break
            whole += len(rest) - len(member.unused_data)
            rest = member.unused_data
            yield msgspec.json.decode(line, type=Seed)
        if rest:
            with path.open("r+b") as file:
                file.truncate(whole)
