"""Somebody else's table as ours: what each column becomes, which rows cannot be used, and the
descriptors that make a campaign of it.

Nothing is guessed: a column that nobody named is left out and said, and a row without a target, a
load or a figure is set aside with its line and the reason.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from workbench.descriptors.fields import NAME_RULE, is_name
from workbench.descriptors.library import DescriptorLibrary, library_with
from workbench.descriptors.load_text import LoadText
from workbench.descriptors.loading import load_campaign
from workbench.descriptors.mapping import (
    WORKLOAD_KEYS,
    MappingText,
    factor,
    is_column,
)
from workbench.descriptors.reading import did_you_mean
from workbench.descriptors.units import PACKET_RATE
from workbench.descriptors.writing import written
from workbench.domain import kpis, resources
from workbench.domain.counts import counted
from workbench.domain.errors import DescriptorError, UsageError
from workbench.paths import Workspace

LARGEST_TABLE = 64 * 2**20
"""Bytes; a recording of 100,000 samples has a tenth of that."""
TEXTS = (
    *(
        "target",
        "reason",
        "labels",
        "load_model",
        "kpi_definition",
        "generator",
        "valid",
        "purpose",
    ),
    "id",
)
"""Columns of ours that are no numbers."""
USAGE = "usage."
"""Before the columns of what was used, as `workbench samples --format csv` calls them."""
MOST_SAMPLES = 1000
"""Of a configuration, as a campaign allows it."""

Row = dict[str, str | float]


@dataclass(frozen=True)
class ColumnRead:
    """What a column of theirs became: `name` is ours, empty where it is left out."""

    column: str
    name: str
    note: str = ""


@dataclass(frozen=True)
class TableRead:
    """A table of ours, with what was made of theirs."""

    columns: tuple[ColumnRead, ...]
    rows: tuple[Row, ...]
    set_aside: tuple[tuple[int, str], ...]
    """Line and why."""
    merged: int = 0
    """Rows that went into means of one point."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    @property
    def is_of_packets(self) -> bool:
        return kpis.carried("packets") in self.names

    @property
    def repetitions(self) -> tuple[int, int]:
        """How often points were measured at least, and at most."""
        counts = Counter(map(_point, self.rows)).values()
        return min(counts), max(counts)

    def as_csv(self) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, self.names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


@dataclass
class _Making:
    """Rows while they are read."""

    rows: list[Row] = field(default_factory=list)
    set_aside: list[tuple[int, str]] = field(default_factory=list)


def load_mapping(name_or_path: str, *, workspace: Workspace) -> MappingText:
    """The mapping of that name in the workspace, else among the shipped ones; or of that path.

    Raises `DescriptorError` with all its mistakes, `UsageError` where there is none of that name.
    """
    library, path = library_with("mapping", "mapping", name_or_path, workspace)
    text = library.read(path, MappingText)
    if text is None or library.mistakes:
        raise DescriptorError(library.mistakes)
    return text


def read_table(path: Path, mapping: MappingText) -> TableRead:
    """Their table in our names and units.

    Raises `UsageError` where the file cannot be read, has no such columns, or no row can be used.
    """
    where = str(path)
    try:
        if path.stat().st_size > LARGEST_TABLE:
            raise UsageError(
                f"has more than {LARGEST_TABLE // 2**20} MiB",
                where=where,
                remedy="Cut it into files, one for each target",
            )
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot be read: {error}", where=where, remedy="Give a CSV file in UTF-8"
        ) from None
    reader = csv.reader(lines)
    made = _Making()
    try:
        header = [name.strip() for name in next(reader, [])]
        places = _places(header, mapping, where)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                _add(made, reader.line_num, cells, header, places, mapping)
    except csv.Error as error:
        raise UsageError(
            f"cannot be read: {error}",
            where=f"{where}:{reader.line_num}",
            remedy="Give a CSV file whose quotes are closed",
        ) from None
    if not made.rows:
        why = f": {made.set_aside[0][1]} (line {made.set_aside[0][0]})" if made.set_aside else ""
        raise UsageError(f"has no row that can be used{why}", where=where)
    ours = {column: name for name, column in _chosen(header, mapping).items()}
    columns = tuple(ColumnRead(c, ours.get(c, ""), _note(ours.get(c, ""), mapping)) for c in header)
    if mapping.rows == "seconds":
        rows = _merged(made.rows)
        return TableRead(columns, tuple(rows), tuple(made.set_aside), len(made.rows))
    return TableRead(columns, tuple(made.rows), tuple(made.set_aside))


def _chosen(header: Sequence[str], mapping: MappingText) -> dict[str, str]:
    """Their column by our name: as the mapping says, else one that is called as ours."""
    taken = set(mapping.columns.values())
    same = {c: c for c in header if is_column(c) and c not in taken and c not in mapping.constants}
    return {**same, **mapping.columns}


def _places(header: Sequence[str], mapping: MappingText, where: str) -> dict[str, int]:
    chosen = _chosen(header, mapping)
    for name, column in chosen.items():
        if header.count(column) != 1:
            is_there = "is there twice" if column in header else did_you_mean(column, header)
            raise UsageError(
                f"column {column!r}, which is to become {name}: {is_there}",
                where=where,
                remedy="Correct the mapping's `columns`",
            )
    known = {*chosen, *mapping.constants}
    for needed in ("target", "wl"):
        if needed not in known:
            raise UsageError(
                f"has no column {needed}",
                where=where,
                remedy=f"Name theirs in the mapping, `columns: {{{needed}: ...}}`, or what it is "
                f"in every row, `constants: {{{needed}: ...}}`; it has: {', '.join(header)}",
            )
    if not known & kpis.known().keys():
        raise UsageError(
            f"has no KPI; known are {', '.join(kpis.known())}",
            where=where,
            remedy="Name at least one of them in the mapping's `columns`",
        )
    return {name: header.index(column) for name, column in chosen.items()}


def _note(name: str, mapping: MappingText) -> str:
    if not name:
        return "left out: no column of ours, and the mapping does not name it"
    said = [f"times {factor(name, mapping.units[name]):g}"] if name in mapping.units else []
    said += [f"{len(mapping.values[name])} texts"] if name in mapping.values else []
    return ", ".join(said)


def _add(
    made: _Making,
    line: int,
    cells: Sequence[str],
    header: Sequence[str],
    places: Mapping[str, int],
    mapping: MappingText,
) -> None:
    if len(cells) != len(header):
        made.set_aside.append((line, f"{len(cells)} cells under {len(header)} names"))
        return
    row: Row = dict(mapping.constants)
    for name, place in places.items():
        text = cells[place].strip()
        if not text:
            continue
        try:
            row[name] = _read(name, text, mapping)
        except ValueError as error:
            made.set_aside.append((line, f"{name} {error}"))
            return
    if why := _unusable(row):
        made.set_aside.append((line, why))
        return
    made.rows.append(row)


def _read(name: str, text: str, mapping: MappingText) -> str | float:
    """A cell in our unit. Raises `ValueError` with a sentence that begins with *is*."""
    meanings = mapping.values.get(name)
    if meanings is not None:
        return _meaning(text, meanings)
    if name in TEXTS:
        return text
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"is {text[:60]!r}, not a number") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"is {text[:60]}, must be a finite number, 0 or more")
    return float(f"{value * factor(name, mapping.units.get(name, 1.0)):.12g}")


def _meaning(text: str, meanings: Mapping[str, str | float]) -> str | float:
    """Of a cell: what it is to the letter, else the first text that it holds."""
    if text in meanings:  # `x-small` is not `small`
        return meanings[text]
    held = next((theirs for theirs in meanings if theirs in text), None)
    if held is None:
        raise ValueError(f"is {text[:60]!r}, for which the mapping's `values` has no meaning")
    return meanings[held]


def _unusable(row: Row) -> str:
    target, wl = str(row.get("target", "")), row.get("wl")
    if not is_name(target):
        return f"target is {target[:60]!r}, must be named with {NAME_RULE}"
    if not isinstance(wl, int | float) or wl <= 0:
        return "wl is missing or not above 0"
    if not row.keys() & kpis.known().keys():
        return "states no KPI"
    return ""


def _point(row: Row) -> tuple[tuple[str, str | float], ...]:
    """Target, load, resources and workload: what makes two rows repetitions of one another."""
    keys = (k for k in row if k in ("target", "wl", *WORKLOAD_KEYS) or _is_resource(k))
    return tuple((key, row[key]) for key in sorted(keys))


def _merged(rows: Sequence[Row]) -> list[Row]:
    """One row for each point: seconds of one run are no repetitions, only their mean counts."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[_point(row)].append(row)
    merged = []
    for point, own in groups.items():
        stated = {k for row in own for k in row if k in kpis.known()}
        means: Row = {k: fmean(float(row[k]) for row in own if k in row) for k in sorted(stated)}
        merged.append({**dict(point), **means, "measured_s": float(len(own))})
    return merged


def _by_choice() -> tuple[str, ...]:
    """KPIs in the order in which one is chosen for the campaign: response times first."""
    order = ("response_time", "rate", "share", "other")
    ranked = [kpi.name for kpi in kpis.ranked()]
    return tuple(
        sorted(
            dict.fromkeys((*ranked, *kpis.known())),
            key=lambda name: order.index(kpis.of(name).kind),
        )
    )


def _is_resource(key: str) -> bool:
    """Of a function; what it used is no allocation."""
    function = key.rpartition(".")[0]
    return bool(function) and resources.of(key) is not None and not function.startswith(USAGE)


# ------------------------------------------------------------------- descriptors


def descriptors(
    name: str, table: TableRead, mapping: MappingText, library: DescriptorLibrary, source: str
) -> dict[str, str]:
    """Files below a `templates` folder, by path: the campaign, and the chains and functions that
    the library does not have. Raises `UsageError` where a target cannot be made out."""
    targets = {
        target: _functions(target, table, mapping)
        for target in dict.fromkeys(str(row["target"]) for row in table.rows)
    }
    files: dict[str, str] = {}
    for target, functions in targets.items():
        for function in functions:
            if library.path("vnf", function) is None:
                files[f"vnfs/{function}/vnf.yaml"] = _vnf(function, source, table.is_of_packets)
        if len(functions) > 1 and library.path("chain", target) is None:
            files[f"chains/{target}.yaml"] = written(
                {"kind": "chain", "summary": f"imported from {source}", "series": list(functions)}
            )
    document = _campaign(table, targets, mapping.load, source)
    return {**files, f"campaigns/{name}.yaml": written(document)}


def check(files: Mapping[str, str], name: str, *, workspace: Workspace) -> None:
    """Raises `DescriptorError` with what is wrong with the campaign that was made of a table,
    before anything of it lies in the workspace."""
    with TemporaryDirectory(prefix="workbench-import-") as folder:
        for file, body in files.items():
            path = Path(folder, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        load_campaign(str(Path(folder, "campaigns", f"{name}.yaml")), workspace=workspace)


def _vnf(function: str, source: str, packets: bool) -> str:
    """A function of which nothing is known but what was recorded."""
    described = {
        "kind": "vnf",
        "summary": f"{function}, imported from {source}; name an image that exists to measure it",
        **({"passage": "router"} if packets else {}),
        "image": f"imported/{function.lower()}:recorded",
    }
    return written(described)


def _functions(target: str, table: TableRead, mapping: MappingText) -> tuple[str, ...]:
    if target in mapping.chains:
        return tuple(mapping.chains[target])
    own = (row for row in table.rows if row["target"] == target)
    found = dict.fromkeys(k.rpartition(".")[0] for row in own for k in row if _is_resource(k))
    if len(found) <= 1:
        return tuple(found) or (target,)
    for order in permutations(found) if len(found) <= 6 else ():
        if "-".join(order) == target:
            return order
    raise UsageError(
        f"target {target} has resources of {', '.join(found)}, and nothing says in which order "
        "they stand",
        remedy=f"Add it to the mapping: `chains: {{{target}: [{', '.join(found)}]}}`",
    )


def _campaign(
    table: TableRead, targets: Mapping[str, Sequence[str]], load: LoadText, source: str
) -> dict[str, Any]:
    kpi = next(k for k in _by_choice() if any(k in row for row in table.rows))
    highest = max(float(row[kpi]) for row in table.rows if kpi in row)
    repetitions, _ = table.repetitions
    loads: dict[Any, set[str | float]] = defaultdict(set)
    for row in table.rows:
        loads[tuple(p for p in _point(row) if p[0] != "wl")].add(row["wl"])
    most = max(len(found) for found in loads.values()) * repetitions
    of_packets = PACKET_RATE if table.is_of_packets else "rate"
    primary = "concurrent" if load.kind == "closed" else of_packets
    workload = [
        {"name": name, "values": _values(table.rows, key, " B" if key.endswith("_bytes") else "")}
        for key, name in WORKLOAD_KEYS.items()
        if any(key in row for row in table.rows)
    ]
    return {
        "kind": "campaign",
        "summary": f"imported from {source}",
        "targets": [_target(target, fs, table) for target, fs in targets.items()],
        **({"workload_parameters": workload} if workload else {}),
        "primary_workload_parameter": {"name": primary, "range": _range(table.rows)},
        "load": load.model_dump(exclude_none=True),
        "kpi": kpi,
        "kpi_max": f"{highest * 1.1 or 1:.6g} {kpis.of(kpi).unit}",
        "sampling": {
            "method": "uniform",
            "max_samples": min(max(most, 2), MOST_SAMPLES),
            "repetitions": repetitions,
        },
    }


def _target(target: str, functions: Sequence[str], table: TableRead) -> dict[str, Any]:
    own = [row for row in table.rows if row["target"] == target]
    alone = len(functions) == 1
    keys = list(dict.fromkeys(k for row in own for k in row if _is_resource(k)))
    by_place = _by_place(own, keys)
    allotted = []
    for key in keys:
        resource = resources.known()[key.rpartition(".")[2]]
        found = by_place[key] if by_place else sorted({float(r[key]) for r in own if key in r})
        texts = _texts(found, f" {resource.written_unit}".rstrip())
        allotted.append({"vnf": key.rpartition(".")[0], "name": resource.name, "values": texts})
    said: dict[str, Any] = {"vnf": functions[0]} if alone else {"chain": target}
    if alone and functions[0] != target:
        said["name"] = target
    if table.is_of_packets:
        said |= {"source": "packet-source", "sink": "packet-sink"}
    if by_place:
        said["combine"] = "places"
    if allotted:
        said["resource_parameters"] = allotted
    said["primary_workload_parameter"] = {"range": _range(own)}
    return said


def _by_place(rows: Sequence[Row], keys: Sequence[str]) -> dict[str, list[float]]:
    """The values of each resource, those at the same place together, where only such were measured:
    of all combinations most would have no row. Empty where the rows are no such pairs."""
    if len(keys) < 2 or any(key not in row for row in rows for key in keys):
        return {}
    together = sorted({tuple(float(row[key]) for key in keys) for row in rows})
    apart = [len({each[place] for each in together}) for place in range(len(keys))]
    whole = len(together) == math.prod(apart)
    if whole or any(many not in (1, len(together)) for many in apart):
        return {}
    return {
        key: list(dict.fromkeys(each[place] for each in together)) for place, key in enumerate(keys)
    }


def _values(rows: Sequence[Row], key: str, unit: str) -> list[Any]:
    return _texts(sorted({float(row[key]) for row in rows if key in row}), unit)


def _texts(values: Sequence[float], unit: str) -> list[Any]:
    return [f"{value:.12g}{unit}" if unit else value for value in values]


def _range(rows: Sequence[Row]) -> list[float]:
    found = [float(row["wl"]) for row in rows]
    low, high = min(found), max(found)
    return [low, high if high > low else 2 * low]


def _rows_are(many: int, what: str) -> str:
    return f"{counted(many, 'row')} {'is' if many == 1 else 'are'} {what}"


def explained(table: TableRead, files: Sequence[str]) -> Iterator[str]:
    """What would be made of the table, line by line."""
    for read in table.columns:
        became = f"-> {read.name}" if read.name else "-> nothing"
        yield f"  {read.column} {became}" + (f" ({read.note})" if read.note else "")
    yield _rows_are(len(table.rows), "used") + (
        f", each the mean of its seconds ({table.merged} rows)" if table.merged else ""
    )
    for target, count in Counter(str(row["target"]) for row in table.rows).items():
        yield f"  {target}: {count}"
    least, most = table.repetitions
    if least < most:
        yield (
            f"points were measured {least} to {most} times: the session asks for each {least} "
            "times, and what is beyond counts for the intervals"
        )
    if table.set_aside:
        yield _rows_are(len(table.set_aside), "set aside")
        reasons = Counter(why for _, why in table.set_aside)
        for why, count in reasons.most_common(20):
            first = next(line for line, said in table.set_aside if said == why)
            yield f"  line {first}" + (f" and {count - 1} more" if count > 1 else "") + f": {why}"
        if len(reasons) > 20:
            yield f"  and {len(reasons) - 20} other reasons"
    for file in files:
        yield f"  to {file}"
