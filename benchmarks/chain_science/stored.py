"""Results on disk by the code that made them: an interrupted run goes on where it was."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

import workbench

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "bench-chains"
LAB = (
    *("labs/simulated", "queues", "measuring", "sampling", "engine/runs/measurement.py"),
    "templates/vnfs",
)
"""What decides a sample of the simulated lab; templates say how fast a function is."""
MODELS = ("chains", "models", "engine/answers/chain_models.py", "engine/learning/refitting.py")
"""And what is made of samples."""
SLA = (*MODELS, "sla")
"""And what is recommended by that."""

T = TypeVar("T")


@cache
def digest(*names: str) -> str:
    """Of files and folders: beside this file, below the package, or below the root."""
    folders = (Path(__file__).parent, Path(workbench.__file__).parent, ROOT)
    taken = blake2b(digest_size=6)
    for name in names:
        path = next(folder / name for folder in folders if (folder / name).exists())
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".py", ".yaml"):
                taken.update(file.read_bytes())
    return taken.hexdigest()


def kept(name: str, key: str, kind: type[T], make: Callable[[], T], folder: Path = CACHE) -> T:
    """What `make` made under that key before; else now, and written down whole or not at all.

    Not as JSON: what was never reached is infinite, and what was not said is NaN.
    """
    path = folder / f"{name}-{key}.msgpack.gz"
    if path.exists():
        return msgspec.msgpack.decode(gzip.decompress(path.read_bytes()), type=kind)
    found = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_bytes(gzip.compress(msgspec.msgpack.encode(found), compresslevel=6))
    draft.replace(path)
    return found
