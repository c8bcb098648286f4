"""Samples from a CSV: the flat table of an export, or someone else's measurements.

Needed are `target`, `wl` and at least one KPI with its unit (`p95_ms`), besides one column per
parameter that the campaign varies. Everything else of the flat table is taken where it is there.
A mistake is answered with `file:line:column: field: what is wrong`, all of the file at once.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.errors import DescriptorError, LabError, Mistake
from workbench.domain.parameters import Configuration, OperatingPoint, Parameter
from workbench.domain.samples import (
    Bypass,
    Estimate,
    Finding,
    KpiDefinition,
    Reason,
    Sample,
    Usage,
)
from workbench.domain.tables import (
    CAUTION,
    FACTS,
    LABEL_SEPARATOR,
    POINT,
    USAGE_FIELDS,
    USAGE_PREFIX,
)
from workbench.labs.recorded.cells import Cells, Complain
from workbench.labs.recorded.intervals import Completed, completed, unstated
from workbench.labs.recorded.recall import WITHOUT_WINDOWS
from workbench.measuring.judging import sample_id


def read_table(path: Path, campaign: Campaign, spread: float | None = None) -> Completed:
    """The samples of a CSV, labelled `without_windows`.

    `spread` is the log-sd between passes, for figures without an interval that nobody repeated.
    Raises `DescriptorError`, and `LabError` where that figure is needed and not given.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(
            f"cannot be read: {error}", where=str(path), remedy="Give a CSV file in UTF-8"
        ) from None
    table = _Table(str(path), lines, campaign)
    samples = table.samples()
    if table.mistakes:
        raise DescriptorError(table.mistakes)
    return completed(samples, spread, str(path))


class _Table:
    def __init__(self, file: str, lines: Sequence[str], campaign: Campaign) -> None:
        self.mistakes: list[Mistake] = []
        self._file = file
        self._lines = lines
        self._campaign = campaign
        self._names: list[str] = []
        self._kpis: list[str] = []
        self._components: list[str] = []
        self._parameters: list[str] = []
        self._repetitions: dict[tuple[str, str, float], set[int]] = {}

    def samples(self) -> tuple[Sample, ...]:
        if not self._lines:
            self._wrong(1, 1, "table", "is empty; its first line names the columns")
            return ()
        self._read_names()
        if self.mistakes:
            return ()
        numbers = [n for n, line in enumerate(self._lines, 1) if n > 1 and line.strip()]
        if not numbers:
            self._wrong(1, 1, "table", "has no rows below the names of its columns")
        return tuple(sample for n in numbers if (sample := self._sample(n)) is not None)

    # ------------------------------------------------------------------ mistakes

    def _wrong(self, line: int, column: int, field: str, says: str) -> None:
        self.mistakes.append(Mistake(self._file, line, column, field, says))

    def _wrong_cell(self, line: int, place: int, field: str, says: str) -> None:
        """Complain about the cell at `place`: it begins behind that many commas."""
        starts, quoted = [1], False
        for column, character in enumerate(self._lines[line - 1], 1):
            quoted ^= character == '"'
            if character == "," and not quoted:
                starts.append(column + 1)
        self._wrong(line, starts[min(place, len(starts) - 1)], field, says)

    def _cells(self, line: int) -> list[str]:
        try:
            return next(csv.reader([self._lines[line - 1]], strict=True))
        except csv.Error as error:
            self._wrong(line, 1, "line", f"is not CSV: {error}")
            return []

    # ------------------------------------------------------------------ columns

    def _read_names(self) -> None:
        names = self._names = [name.strip() for name in self._cells(1)]
        for place, name in enumerate(names):
            if name in names[:place]:
                self._wrong_cell(1, place, name, "is the name of two columns")
        varied = [p.key for p in self._all_parameters() if len(p.values) > 1]
        for needed in ("target", "wl", *varied):
            if needed not in names:
                self._wrong(1, 1, needed, "is missing; a column of this name is needed")
        known = [*kpis.known(), self._campaign.kpi]
        self._kpis = [n for n in names if n in known or (f"{n}_low" in names and n not in FACTS)]
        if not self._kpis:
            self._wrong(1, 1, "table", f"has no KPI; known are {', '.join(kpis.known())}")
        bounds = {f"{kpi}{end}" for kpi in self._kpis for end in ("_low", "_high")}
        understood = {CAUTION, "target", *POINT, *FACTS, *self._kpis, *bounds}
        workload = {parameter.key for parameter in self._campaign.workload}
        components: dict[str, None] = {}
        for place, name in enumerate(names):
            if name in understood:
                continue
            if name.startswith(USAGE_PREFIX):
                component, _, field = name.removeprefix(USAGE_PREFIX).rpartition(".")
                components[component] = None
                if field not in USAGE_FIELDS:
                    says = f"is no usage; those are {', '.join(USAGE_FIELDS)}"
                    self._wrong_cell(1, place, name, says)
            elif "." in name or name in workload:
                self._parameters.append(name)
            else:
                says = "is neither a column of the samples' table nor a parameter of the campaign"
                self._wrong_cell(1, place, name or "column", says)
        self._components = list(components)

    def _all_parameters(self) -> Iterable[Parameter]:
        for plan in self._campaign.targets:
            yield from plan.resources
            yield from plan.settings
        yield from self._campaign.workload

    # ------------------------------------------------------------------ rows

    def _sample(self, line: int) -> Sample | None:
        texts = self._cells(line)
        if len(texts) != len(self._names):
            if texts:
                says = f"has {len(texts)} cells under {len(self._names)} names"
                self._wrong(line, 1, "line", says)
            return None
        before = len(self.mistakes)

        def complain(column: str, says: str) -> None:
            place = self._names.index(column) if column in self._names else 0
            self._wrong_cell(line, place, column, says)

        cells = Cells(dict(zip(self._names, texts, strict=True)), complain)
        for needed in ("target", "wl"):
            if not cells.has(needed):
                complain(needed, "is empty")
        point = self._point(cells)
        kpis = {kpi: _estimate(cells, kpi) for kpi in self._kpis if cells.has(kpi)}
        if not kpis and cells.flag("valid"):
            self._wrong(line, 1, "line", "states no KPI")
        point = self._numbered(point, cells, complain)
        sample = self._made(cells, point, kpis, line)
        return sample if len(self.mistakes) == before else None

    def _point(self, cells: Cells) -> OperatingPoint:
        target = cells.text("target")
        plan = next((p for p in self._campaign.targets if p.target.name == target), None)
        given = self._campaign.given(plan) if plan else ()
        own = (*plan.resources, *given) if plan else ()
        # Of a parameter with one value there need be no column: it is the campaign's.
        values = {p.key: p.values[0] for p in own if p.key not in self._names}
        values |= {name: cells.value(name) for name in self._parameters if cells.has(name)}
        workload = {parameter.key for parameter in given}
        configuration = Configuration(
            {key: value for key, value in values.items() if key not in workload},
            {key: value for key, value in values.items() if key in workload},
        )
        wl = cells.number("wl", 1.0, least=math.ulp(0.0))
        return OperatingPoint(target, configuration, wl, cells.whole("repetition", 0))

    def _numbered(self, point: OperatingPoint, cells: Cells, complain: Complain) -> OperatingPoint:
        """Rows of one point are its repetitions, counted where the table does not."""
        taken = self._repetitions.setdefault(
            (point.target, point.configuration.key, point.wl), set()
        )
        repetition = point.repetition if cells.has("repetition") else len(taken)
        if repetition in taken:
            complain("repetition", f"is {repetition} for a second row of the same point")
        taken.add(repetition)
        return replace(point, repetition=repetition)

    def _made(
        self, cells: Cells, point: OperatingPoint, kpis: dict[str, Estimate], line: int
    ) -> Sample:
        windows, load = self._campaign.windows, self._campaign.load.key
        labels = [label for label in cells.text("labels").split(LABEL_SEPARATOR) if label]
        valid = cells.flag("valid")
        reasons = get_args(Reason)
        reason = "" if valid else cells.choice("reason", reasons, "too_few")
        evidence = f"stated in {self._file}, line {line}, without a figure"
        measured_s = cells.number("measured_s", windows.window_s)
        stated = all(map(cells.has, ("p_sla", "p_sla_low", "p_sla_high")))
        p_sla = _estimate(cells, "p_sla") if stated else None
        return Sample(
            id=sample_id(point),
            point=point,
            kpis=kpis,
            usage={name: used for name in self._components if (used := _usage(cells, name))},
            valid=valid,
            findings=() if valid else (Finding(cast(Reason, reason), 0.0, 0.0, evidence),),
            labels=tuple(dict.fromkeys((*labels, WITHOUT_WINDOWS))),
            load_model=cells.text("load_model", load),
            kpi_definition=cast(
                KpiDefinition, cells.choice("kpi_definition", get_args(KpiDefinition), "none")
            ),
            generator=cells.text("generator", "recorded"),
            planned=cells.whole("planned", 0),
            completed=cells.whole("completed", 0),
            errors=cells.whole("errors", 0),
            unfinished=cells.whole("unfinished", 0),
            windows=cells.whole("windows", 0),
            batches=cells.whole("batches", 0),
            throttled_share=cells.number("throttled_share", 0.0, most=1.0),
            straddle_share=cells.number("straddle_share", 0.0),
            started_at=cells.number("started_at", 0.0),
            measured_s=measured_s,
            lab_s=cells.number("lab_s", measured_s + windows.warmup_s),
            p_sla=p_sla,
            bypass=_bypass(cells),
            block=cells.whole("block", 0),
        )


def _estimate(cells: Cells, name: str) -> Estimate:
    """A figure with its interval, or `unstated` where the table does not give both ends."""
    value = cells.number(name, 0.0)
    if not (cells.has(f"{name}_low") and cells.has(f"{name}_high")):
        return unstated(value)
    low, high = cells.number(f"{name}_low", value), cells.number(f"{name}_high", value)
    if not low <= high:
        cells.complain(f"{name}_low", f"is above {name}_high")
    return Estimate(value, low, high)


def _bypass(cells: Cells) -> Bypass | None:
    """What source and sink do on their own, where the table states all three figures."""
    names = ("bypass_throughput_rps", "bypass_mean_ms", "bypass_p95_ms")
    if not all(cells.has(name) for name in names):
        return None
    return Bypass(*(cells.number(name, 0.0) for name in names))


def _usage(cells: Cells, component: str) -> Usage | None:
    columns = {field: f"{USAGE_PREFIX}{component}.{field}" for field in USAGE_FIELDS}
    if not any(cells.has(column) for column in columns.values()):
        return None
    threads = cells.whole(columns.pop("threads"), 0)
    return Usage(threads=threads, **{f: cells.number(c, 0.0) for f, c in columns.items()})
