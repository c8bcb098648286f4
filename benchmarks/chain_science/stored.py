"""Results on disk by the code that made them; see `science.stored` for how lines are kept."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

import workbench

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "bench-chains"
LAB = ("labs/simulated", "queues", "measuring", "sampling", "engine/runs/measurement.py")
"""What decides a sample of the simulated lab."""
MODELS = ("chains", "models", "engine/answers/chain_models.py", "engine/learning/refitting.py")
"""And what is made of samples."""
SLA = (*MODELS, "sla")

T = TypeVar("T")


@cache
def digest(*names: str) -> str:
    """Of files and folders, below the package or beside this file."""
    root, own = Path(workbench.__file__).parent, Path(__file__).parent
    taken = blake2b(digest_size=6)
    for name in names:
        path = own / name if (own / name).exists() else root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            taken.update(file.read_bytes())
    return taken.hexdigest()


def kept(name: str, key: str, kind: type[T], make: Callable[[], T], folder: Path = CACHE) -> T:
    """What `make` made under that key before; else now, and written down whole or not at all."""
    path = folder / f"{name}-{key}.json.gz"
    if path.exists():
        return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=kind)
    found = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_bytes(gzip.compress(msgspec.json.encode(found), compresslevel=6))
    draft.replace(path)
    return found
