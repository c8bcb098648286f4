"""Counters that somebody published, read in a stream: paper C's tables, one row a second.

A table has a line of headings: `input_rate`, `output_rate`, `latency` and columns `FUNCTION_EVENT`
(`bridge_LLC-loads`), besides a column of the seconds of the run (`SECONDS`). Counts stand there as
perf printed them, which scales them for the time that an event was multiplexed away already, so
that they are not scaled here. Nothing is guessed: a row that cannot be used is set aside with its
line and the reason.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np

from workbench.descriptors.reading import did_you_mean
from workbench.domain.counts import counted
from workbench.domain.errors import UsageError
from workbench.models.base import Floats
from workbench.models.counter_rows import CounterRows

MOST_KEPT = 20_000
"""Rows in memory, drawn evenly from all that were read."""
TOLD_EVERY = 250_000
"""Rows, which take some seconds."""
MOST_COLUMNS = 500
LONGEST_CELL = 200
"""Characters; a figure has at most 25."""
LONGEST_LINE = MOST_COLUMNS * (LONGEST_CELL + 1)
MOST_EXPERIMENTS = 2_000
LARGEST_FIGURE = 1e18
"""Of a figure; no counter reaches it in a second."""
LEAST_FIGURE = 1 / LARGEST_FIGURE
"""Of a KPI; what is less is rounding."""
MOST_REMEMBERED = 200_000
"""Rows that a repeated one is looked for among."""
LEAST_USED = 0.5
"""Share of rows that must be usable: below it the file is of another kind."""
UNCOUNTED = ("", "<not counted>", "<not supported>", "nan", "n/a", "na", "none", "null")
KPIS = ("output_rate", "latency", "input_rate")
SECONDS = ("", "unnamed: 0", "time", "second", "seconds", "timestamp")
"""Headings of the column that counts seconds, in small letters; pandas writes the first two."""
DISORDER_S = 2.0
"""By which seconds may go back within an experiment."""
FEWEST_IN_A_STRETCH = 5
"""Rows on average."""
FEWEST_PLACEHOLDERS, PLACEHOLDER_APART = 3, 5.0
"""Rows, and times the next one, from which on the largest latency, repeated to the last digit, is
no measurement but what stands there when nothing answered. Theirs is 15 ms, in 7 of 992 seconds of
one file and 6 times its next, in 59 of 83 of another."""
FRACTIONS, PLACEHOLDER_REPEATS = 0.9, 3
"""Of other latencies that are no whole numbers, and times as often as any of those it stands there,
from which on a whole one is no measurement either, however near the next: 5955.075 in one second of
a third file, in which 15000.0 stands in 36 of the first 80."""
PLACEHOLDER_SHARE = 0.01
"""Of the rows, from which on one of which neither holds is said, and used."""
OTHER_UNIT = 300.0
"""Between medians of two files: more, and they are of two units (ns and µs are 1,000 apart)."""


@dataclass
class SetAside:
    """Why rows were not used, with the first place and how many."""

    first: dict[str, str] = field(default_factory=dict)
    count: dict[str, int] = field(default_factory=dict)

    def add(self, why: str, where: str) -> None:
        self.first.setdefault(why, where)
        self.count[why] = self.count.get(why, 0) + 1

    def take(self, other: SetAside) -> None:
        for why, count in other.count.items():
            self.first.setdefault(why, other.first[why])
            self.count[why] = self.count.get(why, 0) + count

    @property
    def total(self) -> int:
        return sum(self.count.values())

    def sentences(self) -> list[str]:
        return [
            f"{count:,} row{'s' * (count != 1)} set aside: {why} (first at {self.first[why]})"
            for why, count in self.count.items()
        ]


@dataclass(frozen=True)
class CountersRead:
    """What was read of a number of tables."""

    rows: CounterRows
    kpi: str
    experiments: tuple[str, ...]
    """Names of the groups of `rows`."""
    read: int
    notes: tuple[str, ...]


class _Reservoir:
    """At most `MOST_KEPT` rows, each that came with the same chance (Vitter 1985, algorithm R)."""

    def __init__(self, columns: int) -> None:
        self.kept = np.empty((MOST_KEPT, columns))
        self.came = 0
        self.random = np.random.default_rng(0)

    def add(self, row: Sequence[float]) -> None:
        at = self.came
        self.came += 1
        if at >= MOST_KEPT:
            at = int(self.random.integers(self.came))
            if at >= MOST_KEPT:
                return
        self.kept[at] = row

    @property
    def rows(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return self.kept[: min(self.came, MOST_KEPT)]


def read_counters(
    files: Sequence[Path], kpi: str = KPIS[0], progress: Callable[[str], None] | None = None
) -> CountersRead:
    """Tables of experiments as one table of counters and `kpi`.

    An experiment is a file, or a stretch of one in which the seconds go up: tables that were put
    together begin again at 0. Columns that not every file has are left out, and said. `progress`
    hears how far it is, every `TOLD_EVERY` rows.

    Raises `UsageError` where a file cannot be used, with its line.
    """
    headings = {file: headings_of(file, kpi) for file in files}
    every = [name for name in headings[files[0]] if all(name in h for h in headings.values())]
    events = events_of(every, kpi)
    if not events:
        raise UsageError(
            "no column of counters is in all of these files",
            where=", ".join(file.name for file in files),
            remedy="Give files of the same functions and events",
        )
    notes: list[str] = []
    left = sorted({name for h in headings.values() for name in h} - set(every))
    if left:
        notes.append(f"{len(left)} columns are not in every file and left out: {few(left)}")
    kept, aside = _Reservoir(len(events) + 2), SetAside()
    experiments: list[str] = []
    gaps, spans = 0, []
    seen: set[int] = set()
    for file in files:
        reading = _Reading(file, headings[file], [*events, kpi], seen, len(experiments))
        before = kept.came
        for row in reading.rows():
            kept.add(row)
            if progress is not None and kept.came % TOLD_EVERY == 0:
                progress(f"{file.name}: {kept.came:,} usable rows so far")
        experiments += reading.experiments
        gaps += reading.gaps
        _must_be_usable(kept.came - before, reading)
        _must_be_in_order(reading)
        aside.take(reading.aside)
        if kept.came == before:
            notes.append(f"{file.name} has only rows that were read before")
            continue
        spans.append((file.name, reading.kpi_middle))
    if gaps:
        notes.append(
            f"{counted(gaps, 'gap')} in the seconds: rows beside a gap are used, none is filled in"
        )
    notes += aside.sentences() + _units(spans, kpi)
    if len(seen) >= MOST_REMEMBERED:
        notes.append(
            f"after {MOST_REMEMBERED:,} rows no copies of earlier ones were looked for any more: "
            "give no file that is put together of others"
        )
    if kept.came > MOST_KEPT:
        notes.append(f"of {kept.came:,} usable rows {MOST_KEPT:,} were drawn evenly")
    table = _measured(kept.rows, kpi, notes)
    groups = table[:, -1].astype(np.int64)
    rows = CounterRows(tuple(events), table[:, :-2], table[:, -2], groups)
    return CountersRead(rows, kpi, tuple(experiments), kept.came + aside.total, tuple(notes))


class _Reading:
    """One file while it is read: usable rows, the experiments in it, gaps of its seconds."""

    def __init__(
        self,
        file: Path,
        headings: list[str],
        wanted: list[str],
        seen: set[int],
        first: int,
    ) -> None:
        self.file, self.first = file, first
        self.aside, self._seen = SetAside(), seen
        self.width = len(headings)
        self.wanted = wanted
        self.columns = [headings.index(name) for name in wanted]
        self.second = next((i for i, name in enumerate(headings) if _is_second(name)), None)
        self.experiments = [file.stem]
        self.read = self.repeated = 0
        self._steps: list[float] = []
        self._first_s: float | None = None
        self.kpi_sample: list[float] = []
        self._last = -1.0

    def rows(self) -> Iterator[list[float]]:
        with _opened(self.file) as text:
            lines = csv.reader(_lines(text, self.file))
            next(lines, None)
            for cells in _guarded(lines, self.file):
                self.read += 1
                where = f"{self.file.name}:{lines.line_num}"
                figures = self._figures(cells, where)
                if figures is not None:
                    yield [*figures, float(self.first + len(self.experiments) - 1)]

    @property
    def gaps(self) -> int:
        """Steps of the seconds that are longer than the usual one."""
        return int((np.array(self._steps) > 1.5 * np.median(self._steps or [1.0])).sum())

    @property
    def kpi_middle(self) -> float:
        return float(np.median(self.kpi_sample)) if self.kpi_sample else 0.0

    def _figures(self, cells: list[str], where: str) -> list[float] | None:
        """Counters and KPI of a row; None, and why is noted, where it cannot be used."""
        self._note_second(cells, where)
        if len(cells) != self.width:
            self.aside.add(f"not {self.width} cells", where)
            return None
        figures: list[float] = []
        for name, column in zip(self.wanted, self.columns, strict=True):
            cell = cells[column].strip()
            if cell.casefold() in UNCOUNTED:
                self.aside.add("an event was not counted", f"{where}: {name}")
                return None
            try:
                figure = float("nan" if "_" in cell else cell)
            except ValueError:
                figure = float("nan")
            if not 0.0 <= figure <= LARGEST_FIGURE:
                self.aside.add("a cell is no count or figure", f"{where}: {name}: {cell[:30]!r}")
                return None
            figures.append(figure)
        if figures[-1] < LEAST_FIGURE:
            self.aside.add(f"{self.wanted[-1]} is 0, which no share can be taken of", where)
            return None
        key = hash(tuple(figures))
        if key in self._seen:
            self.repeated += 1
            self.aside.add("repeats a row that was read before", where)
            return None
        if len(self._seen) < MOST_REMEMBERED:
            self._seen.add(key)
        if len(self.kpi_sample) < 1_000:
            self.kpi_sample.append(figures[-1])
        return figures

    def _note_second(self, cells: list[str], where: str) -> None:
        if self.second is None or self.second >= len(cells):
            return
        try:
            now = float(cells[self.second])
        except ValueError:
            return
        if not np.isfinite(now):
            return
        if now < self._last - DISORDER_S or (
            self._first_s is not None and now <= self._first_s < self._last
        ):
            self.experiments.append(f"{self.file.stem} from line {where.rpartition(':')[2]}")
            if self.first + len(self.experiments) > MOST_EXPERIMENTS:
                raise UsageError(
                    f"more than {MOST_EXPERIMENTS:,} experiments: the seconds go back that often",
                    where=where,
                    remedy="Give rows in the order in which they were measured",
                )
            self._first_s = now
        elif now > self._last >= 0.0 and len(self._steps) < MOST_REMEMBERED:
            self._steps.append(now - self._last)
        if self._first_s is None:
            self._first_s = now
        self._last = now


def events_of(headings: Sequence[str], kpi: str) -> list[str]:
    """The columns that are neither a KPI nor the seconds."""
    return [name for name in headings if name not in (*KPIS, kpi) and not _is_second(name)]


def _is_second(heading: str) -> bool:
    return heading.casefold() in SECONDS


def headings_of(file: Path, kpi: str) -> list[str]:
    """The columns of a table. Raises `UsageError` where `kpi` is none of them."""
    with _opened(file) as text:
        first = next(_guarded(csv.reader(_lines(text, file)), file), [])
    names = [name.strip() for name in first]
    if len(names) < 2 or len(names) > MOST_COLUMNS:
        raise UsageError(
            f"{len(names)} columns, where 2 to {MOST_COLUMNS:,} are expected",
            where=f"{file}:1",
            remedy="Give a table separated by commas, with a line of headings",
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"the column {twice[0]!r} stands there twice",
            where=f"{file}:1",
            remedy="Rename or remove one of them",
        )
    if _is_second(kpi):
        raise UsageError(
            f"{kpi!r} counts the seconds of the run, and is no KPI",
            where="--kpi",
            remedy=f"Name another column, such as {' or '.join(KPIS[:2])}",
        )
    if kpi not in names:
        raise UsageError(
            f"there is no column {kpi!r}; {did_you_mean(kpi, [name for name in names if name])}",
            where=f"{file}:1",
            remedy=f"Choose with --kpi, or rename a column: {', '.join(KPIS[:2])}",
        )
    return names


def is_counter_table(file: Path) -> bool:
    """Whether a file's headings are all that a table of paper C's has, and counters besides."""
    try:
        names = headings_of(file, KPIS[0])
    except UsageError:
        return False
    return set(KPIS) <= set(names) and bool(events_of(names, KPIS[0]))


def _opened(file: Path) -> TextIO:
    try:
        return file.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from None


def _lines(text: TextIO, file: Path) -> Iterator[str]:
    """The lines of a file, none of them longer than a table's can be."""
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise UsageError(
                f"is no table of figures: a line of over {LONGEST_LINE:,} characters",
                where=str(file),
                remedy="Give a CSV file in UTF-8",
            )
        yield line


def _guarded(lines: Iterator[list[str]], file: Path) -> Iterator[list[str]]:
    """The rows of a table; what is no text or no CSV is a sentence."""
    limit = csv.field_size_limit(LONGEST_CELL)
    try:
        yield from lines
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from None
    except (csv.Error, UnicodeDecodeError) as error:
        at = getattr(lines, "line_num", 0)
        raise UsageError(
            f"is no table of figures: {error}",
            where=f"{file}:{at + 1}",
            remedy="Give a CSV file in UTF-8",
        ) from None
    finally:
        csv.field_size_limit(limit)


def _must_be_usable(used: int, reading: _Reading) -> None:
    """Raises `UsageError` of a file of which most rows cannot be used."""
    if reading.read and used + reading.repeated >= LEAST_USED * reading.read:
        return
    count, first = reading.aside.count, reading.aside.first
    why = max(count, key=lambda name: count[name], default="it has no rows")
    raise UsageError(
        f"{used:,} of {reading.read:,} rows can be used; most often {why}",
        where=first.get(why, str(reading.file)),
        remedy="Leave that file or column out, or mend it",
    )


def _must_be_in_order(reading: _Reading) -> None:
    """Raises `UsageError` of a file whose seconds go back so often that they are in no order."""
    stretches = len(reading.experiments)
    if stretches > 1 and reading.read < FEWEST_IN_A_STRETCH * stretches:
        raise UsageError(
            f"its seconds go back every {reading.read / stretches:.1f} rows: neighbouring seconds "
            "would be taken for experiments of their own",
            where=str(reading.file),
            remedy="Give rows in the order in which they were measured, a file for each experiment",
        )


def _measured(table: Floats, kpi: str, notes: list[str]) -> Floats:
    """Without rows whose latency is what stands there when nothing answered; that is said."""
    if kpi != KPIS[1] or not len(table):
        return table
    largest = table[:, -2].max()
    same = table[:, -2] == largest
    next_largest = table[~same, -2].max(initial=0.0)
    if same.sum() < FEWEST_PLACEHOLDERS:
        return table
    rows = f"{counted(int(same.sum()), 'row')} of {len(table):,}"
    if largest < PLACEHOLDER_APART * next_largest and not _is_typed_in(table[:, -2], largest):
        if same.sum() >= PLACEHOLDER_SHARE * len(table):
            notes.append(
                f"{rows} used in which {kpi} is {largest:g}, the largest to the last digit: take "
                "them out of the file if that stands for no answer"
            )
        return table
    if same.all():
        raise UsageError(
            f"{kpi} is {largest:g} in all {len(table):,} rows, to the last digit: nothing to learn",
            remedy="Name another KPI, or rows in which it was measured",
        )
    notes.append(
        f"{rows} set aside: {kpi} is {largest:g} in each, the largest to the last digit, which "
        "stands there where nothing answered"
    )
    return np.asarray(table[~same])


def _is_typed_in(measured: Floats, largest: float) -> bool:
    """Whether a whole number stands again and again among fractions that hardly repeat."""
    others = measured[measured != largest]
    most_alike = int(np.unique(others, return_counts=True)[1].max(initial=0))
    return bool(
        largest == round(largest)
        and np.mean(others != np.round(others)) >= FRACTIONS
        and measured.size - others.size >= PLACEHOLDER_REPEATS * most_alike
    )


def _units(spans: list[tuple[str, float]], kpi: str) -> list[str]:
    """A word where one file seems to be in another unit than the rest."""
    middle = float(np.median([value for _, value in spans]))
    odd = [
        name
        for name, value in spans
        if max(value, middle) > OTHER_UNIT * max(min(value, middle), 1e-12)
    ]
    return [f"{kpi} of {few(odd)} seems to be in another unit than the rest"] if odd else []


def few(names: Sequence[str], most: int = 5) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
