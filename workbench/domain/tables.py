"""Samples as one flat table: for CSV, Parquet, JSON and eyes (issue text: one row per sample).

==========================================  =======================================================
columns                                     from
==========================================  =======================================================
`target`                                    the operating point
`haproxy.vcpu` ...                          one per resource parameter, `vnf.parameter`
`filesize_bytes` ...                        one per workload parameter
`wl`, `repetition`                          the operating point
`p95_ms`, `p95_ms_low`, `p95_ms_high` ...   one triple per KPI: value and 95 % interval
`usage.haproxy.cpu_share` ...               one per component and field of `Usage`
`throttled_share` ... `id`                  the sample's fields of these names
==========================================  =======================================================

A cell is None where a sample does not state the figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from workbench.domain.competitors import COMPETITOR
from workbench.domain.kpis import known
from workbench.domain.samples import Sample, Usage

CAUTION = "caution"
"""First column of a file whose samples rest on what nobody measured, such as a simulation."""
LABEL_SEPARATOR = ";"
USAGE_PREFIX = "usage."
USAGE_FIELDS = tuple(field.name for field in fields(Usage))
COMMON = ("source", "sink", COMPETITOR, "host", "workbench")
"""Components besides the functions."""

POINT = ("wl", "repetition")
FACTS = (
    "throttled_share",
    "load_model",
    "kpi_definition",
    "labels",
    "valid",
    "reason",
    "started_at",
    "measured_s",
    "lab_s",
    "generator",
    "planned",
    "completed",
    "errors",
    "unfinished",
    "windows",
    "batches",
    "block",
    "purpose",
    "straddle_share",
    "p_sla",
    "p_sla_low",
    "p_sla_high",
    "bypass_throughput_rps",
    "bypass_mean_ms",
    "bypass_p95_ms",
    "id",
)
"""Columns behind the usage, in their order."""


def flat_columns_and_rows(samples: Sequence[Sample]) -> tuple[list[str], list[list[object]]]:
    """The table of these samples: column names, and one row per sample in the given order."""
    configurations = [sample.point.configuration for sample in samples]
    resources = sorted({key for c in configurations for key in c.resources})
    workload = sorted({key for c in configurations for key in c.workload} - set(resources))
    kpis = _known_first(known(), (name for sample in samples for name in sample.kpis))
    components = _functions_first(name for sample in samples for name in sample.usage)
    columns = [
        "target",
        *resources,
        *workload,
        *POINT,
        *(f"{kpi}{end}" for kpi in kpis for end in ("", "_low", "_high")),
        *(f"{USAGE_PREFIX}{name}.{field}" for name in components for field in USAGE_FIELDS),
        *FACTS,
    ]
    rows = [_row(sample, [*resources, *workload], kpis, components) for sample in samples]
    return columns, rows


def _row(
    sample: Sample, parameters: list[str], kpis: list[str], components: list[str]
) -> list[object]:
    point = sample.point
    values = {**point.configuration.workload, **point.configuration.resources}
    row: list[object] = [point.target, *map(values.get, parameters), point.wl, point.repetition]
    for kpi in kpis:
        estimate = sample.kpis.get(kpi)
        row += [estimate.value, estimate.low, estimate.high] if estimate else [None] * 3
    for component in components:
        used = sample.usage.get(component)
        row += [getattr(used, field) if used else None for field in USAGE_FIELDS]
    p_sla, bypass = sample.p_sla, sample.bypass
    special: dict[str, object] = {
        "labels": LABEL_SEPARATOR.join(sample.labels),
        "p_sla": p_sla.value if p_sla else None,
        "p_sla_low": p_sla.low if p_sla else None,
        "p_sla_high": p_sla.high if p_sla else None,
        "bypass_throughput_rps": bypass.throughput_rps if bypass else None,
        "bypass_mean_ms": bypass.mean_ms if bypass else None,
        "bypass_p95_ms": bypass.p95_ms if bypass else None,
    }
    row += [special[name] if name in special else getattr(sample, name) for name in FACTS]
    return row


def _known_first(known: Iterable[str], found: Iterable[str]) -> list[str]:
    names = set(found)
    return [name for name in known if name in names] + sorted(names.difference(known))


def _functions_first(found: Iterable[str]) -> list[str]:
    names = list(dict.fromkeys(found))
    return [n for n in names if n not in COMMON] + [n for n in COMMON if n in names]
