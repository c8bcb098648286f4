"""Results on disk, by the versions of the methods that made them: an interrupted run goes on, and
what has the same versions is not played again.

What takes hours and does not depend on the machine stands in the tree: two tables, references and
curves, a Parquet file each (`TABLES`). A run adds to neither: it appends lines of JSON below
`.cache`, which a kill cuts short at most by the last, and `pack` takes them into the file of their
table, replaced at once; a table to which nothing was added is not touched.

A version is a number that stands beside a method, `METHOD_VERSION` of its module, and is raised by
hand by whoever changes what the method does; a docstring or a faster way to the same figures
changes nothing. `python -m science --parts check` plays beginnings again and names what no longer
comes out as it is stored; a test does so for some of each.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from pyarrow import parquet

from workbench.files import partial

T = TypeVar("T")
Row = dict[str, Any]

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "bench-science"
KEPT = ROOT / "benchmarks" / "results" / "science"
_SCORE = pa.struct(
    [
        *((name, pa.float64()) for name in ("rmse", "median", "rmse_kpi", "fit_s")),
        ("trouble", pa.string()),
    ]
)
_CURVE = pa.struct(
    [
        ("seed", pa.int64()),
        ("samples", pa.list_(pa.int64())),
        ("lab_s", pa.list_(pa.float64())),
        ("scores", pa.list_(_SCORE)),
        ("end", pa.string()),
    ]
)
MET = "met"
"""How a curve ends whose goals were met (`science.playing`)."""
KEYS = {
    "references": ("problem", "model", "version"),
    "curves": ("problem", "sampler", "model", "version"),
}
"""Tables that stand in the tree, and the parts of their names: `TABLE/PROBLEM/.../VERSION`."""
TABLES = {
    "references": pa.schema([*((key, pa.string()) for key in KEYS["references"]), *_SCORE]),
    "curves": pa.schema(
        [
            *((key, pa.string()) for key in KEYS["curves"]),
            *(("seed", pa.int64()), ("most", pa.int64()), ("curve", _CURVE)),
        ]
    ),
}


def version(*modules: str) -> str:
    """Their numbers; 0 for a module of others that states none."""
    return "-".join(str(getattr(import_module(name), "METHOD_VERSION", 0)) for name in modules)


class Store:
    """Results by name: lines below `folder`, and the tables of `TABLES` below `kept`."""

    def __init__(self, folder: Path = CACHE, kept: Path = KEPT) -> None:
        self.folder, self.kept = folder, kept

    def add(self, name: str, line: Any) -> None:
        """One result; two processes may add at once."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Python's own JSON: it knows infinity, the error of a model that failed.
        text = json.dumps(msgspec.to_builtins(line), separators=(",", ":"))
        with self._locked(), path.open("ab") as file:
            file.write(b"\n" + text.encode() + b"\n")  # what a kill cut short ends here

    def lines(self, name: str, kind: type[T]) -> Iterator[T]:
        """In the order stored; a last one that was cut short by a kill is passed over."""
        for row in (*_packed(self._file(name)).get(name, ()), *_added(self.path(name))):
            try:
                yield msgspec.convert(row, type=kind)
            except msgspec.ValidationError:
                continue

    def path(self, name: str) -> Path:
        """Where the lines of that name are added."""
        return self.folder / f"{name}.jsonl"

    def pack(self) -> list[Path]:
        """Take what was added to the tables into their files; which files were written.

        Of a method whose version is another than before, what the older one made goes out.
        """
        written = []
        with self._locked():
            for table in TABLES:
                paths = sorted((self.folder / table).rglob("*.jsonl"))
                if not paths:
                    continue
                file = self._file(table)
                rows = {name: list(known) for name, known in _packed(file).items()}
                for path in paths:
                    name = path.relative_to(self.folder).with_suffix("").as_posix()
                    method = name.rpartition("/")[0]
                    rows = {
                        one: own
                        for one, own in rows.items()
                        if one == name or one.rpartition("/")[0] != method
                    }
                    rows[name] = longest([*rows.get(name, ()), *_added(path)])
                write(file, rows)
                written.append(file)
                for path in paths:
                    path.unlink()
        return written

    def _file(self, name: str) -> Path:
        """Where the table of a name stands."""
        return self.kept / f"{name.partition('/')[0]}.parquet"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else adds or packs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def longest(rows: Sequence[Row]) -> list[Row]:
    """The first of a reference; of curves those that no other of the same seed tells more than."""
    kept: list[Row] = []
    for row in rows:
        if "curve" not in row:
            return [row]
        kept = [one for one in kept if not _tells_more(row, one)]
        if not any(_tells_more(one, row) for one in kept):
            kept.append(row)
    return kept


def _tells_more(one: Row, other: Row) -> bool:
    """It could take as many samples, and was looked at as far."""
    far, near = (
        (row["most"], len(row["curve"]["samples"]), row["curve"]["end"] != MET)
        for row in (one, other)
    )
    return one["seed"] == other["seed"] and all(a >= b for a, b in zip(far, near, strict=True))


def write(file: Path, rows: dict[str, list[Row]]) -> None:
    """Rows by name into the file of a table, all at once."""
    table = file.stem
    keyed = [
        dict(zip(KEYS[table], name.split("/")[1:], strict=True)) | row
        for name, own in sorted(rows.items())
        for row in own
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = partial(file)
    parquet.write_table(pa.Table.from_pylist(keyed, TABLES[table]), unfinished, compression="zstd")
    unfinished.replace(file)


def _packed(file: Path) -> dict[str, tuple[Row, ...]]:
    """Rows of a file by name, none where it is not there."""
    return _read(file, file.stat().st_mtime_ns) if file.exists() else {}


@lru_cache(maxsize=64)
def _read(file: Path, _changed: int) -> dict[str, tuple[Row, ...]]:
    table = file.stem
    found: dict[str, list[Row]] = {}
    for row in parquet.read_table(file, use_threads=False).to_pylist():
        name = "/".join((table, *(row.pop(key) for key in KEYS[table])))
        found.setdefault(name, []).append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def _added(path: Path) -> Iterable[Row]:
    """Lines that were added, none where nothing was."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
