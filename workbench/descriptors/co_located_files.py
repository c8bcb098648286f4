"""A function beside competitors as Yala publishes it: figures by spaces, without headings.

Which file is which is told by its columns: 10 are training rows, 12 are test rows, 2 the
accelerator alone. Of training rows, a file under one traffic profile is SLOMO's, one under many is
Yala's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workbench.descriptors.counter_tables import LARGEST_FIGURE
from workbench.domain.errors import UsageError
from workbench.models.base import Floats
from workbench.models.co_located import CoLocatedProfile, competitor_runs
from workbench.models.counter_rows import CounterRows, DroppedFeature, without_idle_features
from workbench.models.counter_scores import FEWEST_GROUPS

FEATURES = ("flowsize", "pktsize", "ipc", "irt", "l2crd", "l2cwr", "memrd", "memwr", "wss")
TRAINING, TEST, ACCELERATOR = len(FEATURES) + 1, len(FEATURES) + 3, 2
LARGEST = 64 * 2**20
"""Bytes of a file; theirs have 13 thousand."""


def is_co_located(file: Path) -> bool:
    """Whether a file's first line is figures by spaces, as many as one of theirs has."""
    try:
        with file.open(encoding="utf-8") as text:
            cells = text.readline(10_000).split()
        return len([float(cell) for cell in cells]) in (TRAINING, TEST, ACCELERATOR)
    except (OSError, UnicodeDecodeError, ValueError):
        return False


def read_co_located(
    files: Sequence[Path],
) -> tuple[CoLocatedProfile, tuple[DroppedFeature, ...], tuple[str, ...]]:
    """The profile that these files make, the features dropped of it, and notes.

    Raises `UsageError` with file and line where a row is not as the others, a part is missing, or
    too few rows are there to learn from.
    """
    tables = [(file, _table(file)) for file in files]
    by_width = {
        width: [t for t in tables if t[1].shape[1] == width]
        for width in (TRAINING, TEST, ACCELERATOR)
    }
    training = by_width[TRAINING]
    many = [t for t in training if len(np.unique(t[1][:, :2], axis=0)) > 1]
    one = [t for t in training if len(np.unique(t[1][:, :2], axis=0)) == 1]
    parts = {
        "training rows under one traffic profile (10 columns)": one,
        "training rows under many traffic profiles (10 columns)": many,
        "test rows (12 columns)": by_width[TEST],
        "the accelerator alone (2 columns, 2 rows or more)": [
            t for t in by_width[ACCELERATOR] if len(t[1]) >= 2
        ],
    }
    for what, found in parts.items():
        if len(found) != 1:
            raise UsageError(
                f"{len(found)} files have {what}, where one is needed",
                where=", ".join(file.name for file in files) or "no file",
                remedy="Give the folder as it was published, such as profile/flowmon",
            )
    (_, a), (_, b), (_, t), (_, accelerator) = (found[0] for found in parts.values())
    notes = [
        f"{file.name}: {len(table) - len(np.unique(table, axis=0))} row repeats another: both are "
        "kept, as published, and never on both sides of a fold"
        for file, table in training
        if len(np.unique(table, axis=0)) < len(table)
    ]
    for file, table in training:
        if (runs := _rows(table).group_count) <= FEWEST_GROUPS:
            raise UsageError(
                f"{runs} runs of competitors, where {FEWEST_GROUPS + 1} are needed to hold one out",
                where=str(file),
                remedy="Give the file as it was published",
            )
    taught = _rows(np.concatenate([a, b]))
    useful, dropped = without_idle_features(taught)
    kept = useful.features
    profile = CoLocatedProfile(
        one_traffic=_rows(a).only(kept),
        many_traffics=_rows(b).only(kept),
        accelerator=accelerator,
        unseen=_rows(t[:, 2:]).only(kept),
        match_rate=t[:, 0],
        others_work=t[:, 1],
    )
    return profile, dropped, tuple(notes)


def _rows(table: Floats) -> CounterRows:
    x = table[:, :-1]
    return CounterRows(FEATURES, x, table[:, -1], competitor_runs(FEATURES, x))


def _table(file: Path) -> Floats:
    rows: list[list[float]] = []
    try:
        if file.stat().st_size > LARGEST:
            raise UsageError("is larger than 64 MiB", where=str(file), remedy="Give a part of it")
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot be read: {error}", where=str(file), remedy="Give a text file"
        ) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        rows.append(_figures(line, f"{file}:{number}"))
        if len(rows[-1]) != len(rows[0]):
            raise UsageError(
                f"{len(rows[-1])} figures, where the lines before have {len(rows[0])}",
                where=f"{file}:{number}",
                remedy="Mend or remove the line",
            )
        if rows[-1][-1] <= 0.0:
            raise UsageError(
                "the last figure must be above 0", where=f"{file}:{number}", remedy="Mend the line"
            )
    if not rows or len(rows[0]) not in (TRAINING, TEST, ACCELERATOR):
        raise UsageError(
            f"{len(rows[0]) if rows else 0} columns, where files have 10, 12 or 2",
            where=str(file),
            remedy="Give the files as they were published",
        )
    return np.array(rows)


def _figures(line: str, where: str) -> list[float]:
    cells = line.split()
    try:
        figures = [float(cell) for cell in cells]
    except ValueError as error:
        raise UsageError(f"{error}", where=where, remedy="Write figures, by spaces") from None
    if not all(0.0 <= figure <= LARGEST_FIGURE for figure in figures):
        raise UsageError(
            f"a figure is below 0, over {LARGEST_FIGURE:g} or none",
            where=where,
            remedy="Mend or remove the line",
        )
    return figures
