"""What is wrong between the fields of a campaign, each of them being right by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.descriptors.campaign import (
    LoadText,
    PrimaryText,
    TargetText,
    WorkloadText,
    functions,
)
from workbench.descriptors.composition import node_of
from workbench.descriptors.document import FieldPath
from workbench.descriptors.reading import Located, Reading, did_you_mean
from workbench.descriptors.sla_text import parse_sla
from workbench.descriptors.units import KPI_DIMENSIONS, PRIMARIES, WORKLOADS, shown, workload_key
from workbench.domain.errors import UsageError
from workbench.domain.parameters import PrimaryWorkload, Sla
from workbench.domain.samples import KPI_UNITS

PRIMARY_OF_LOAD = {"open": "rate", "closed": "concurrent"}
_DEFAULT_KPI = "p95_ms"


def campaign_mistakes(reading: Reading) -> Iterator[Located]:
    """All of them, over `reading.valid`: a field that is wrong by itself is not compared."""
    valid = reading.valid
    primary: PrimaryText | None = valid.get("primary_workload_parameter")
    yield from _range_mistakes(reading, primary)
    yield from _load_mistakes(valid.get("load"), primary)
    yield from _target_mistakes(reading)
    yield from _workload_mistakes(reading)
    yield from _kpi_mistakes(reading)
    yield from _sla_mistakes(reading, primary)
    yield from _manager_mistakes(reading)


def primary_workload(primary: PrimaryText, target: TargetText) -> PrimaryWorkload:
    """The range of `wl` on a target. Raises `ValueError` where it is none."""
    own = target.primary_workload_parameter
    low, high = _read_range(primary.name, (own and own.range) or primary.range)
    scale = (own and own.scale) or primary.scale
    unit = PRIMARIES[primary.name].unit or "clients"
    return PrimaryWorkload(primary.name, low, high, scale, unit, primary.name == "concurrent")


def _read_range(name: str, given: list[Any]) -> tuple[float, float]:
    low, high = (PRIMARIES[name].read(value) for value in given)
    return low, high


def _range_mistakes(reading: Reading, primary: PrimaryText | None) -> Iterator[Located]:
    if primary is None:
        return
    ranges: list[tuple[FieldPath, list[Any]]] = [
        (("primary_workload_parameter", "range"), primary.range)
    ]
    for index, target in enumerate(reading.valid.get("targets", ())):
        own = target.primary_workload_parameter
        if own and own.range:
            here = ("targets", index, "primary_workload_parameter", "range")
            ranges.append((here, own.range))
    for path, given in ranges:
        yield from _one_range_mistakes(path, primary.name, given)


def _one_range_mistakes(path: FieldPath, name: str, given: list[Any]) -> Iterator[Located]:
    ends: list[float] = []
    for index, value in enumerate(given):
        try:
            end = PRIMARIES[name].read(value)
        except ValueError as error:
            yield (*path, index), str(error)
            continue
        ends.append(end)
        if end <= 0:
            yield (*path, index), f"is {shown(value)}, must be over 0: without load nothing is seen"
        elif name == "concurrent" and end != int(end):
            yield (*path, index), f"is {shown(value)}, must be a whole number of clients"
    if len(ends) == 2 and ends[0] >= ends[1]:
        yield path, f"runs from {shown(given[0])} to {shown(given[1])}, must be [low, high]"


def _load_mistakes(load: LoadText | None, primary: PrimaryText | None) -> Iterator[Located]:
    if load and primary and PRIMARY_OF_LOAD[load.kind] != primary.name:
        yield (
            ("load", "kind"),
            f"is {load.kind}, but the primary workload parameter is {primary.name}; "
            f"a load of kind {load.kind} varies {PRIMARY_OF_LOAD[load.kind]}",
        )


def _target_mistakes(reading: Reading) -> Iterator[Located]:
    seen: set[str] = set()
    for index, target in enumerate(reading.valid.get("targets", ())):
        if target.title in seen:
            yield (
                ("targets", index),
                f"is the second target called {shown(target.title)}; give it a name of its own",
            )
        if target.title:
            seen.add(target.title)


def _workload_mistakes(reading: Reading) -> Iterator[Located]:
    parameters: list[WorkloadText] = reading.valid.get("workload_parameters", [])
    sources = {target.ends(reading.library)[0] for target in reading.valid.get("targets", ())}
    seen: set[str] = set()
    for index, parameter in enumerate(parameters):
        if parameter.name in seen:
            yield ("workload_parameters", index, "name"), f"is {shown(parameter.name)} again"
        seen.add(parameter.name)
        for source in sorted(sources):
            template = reading.library.vnf(source)
            if template and parameter.name not in template.parameters:
                yield (
                    ("workload_parameters", index, "name"),
                    f"is {shown(parameter.name)}, which source {shown(source)} cannot offer; "
                    f"allowed: {', '.join(template.parameters) or 'none'}",
                )


def _kpi_mistakes(reading: Reading) -> Iterator[Located]:
    given = reading.document.root
    if "kpi" in given and "kpi" not in reading.valid:
        return
    kpi = reading.valid.get("kpi", _DEFAULT_KPI)
    dimension = KPI_DIMENSIONS[KPI_UNITS[kpi]]
    limit = reading.valid.get("kpi_max")
    if limit is None:
        if "kpi_max" not in given and dimension.unit != "ms":
            yield ("kpi",), f"is {kpi}, which needs a kpi_max such as {dimension.example}"
        return
    try:
        value = dimension.read(limit)
    except ValueError as error:
        yield ("kpi_max",), f"{error} (kpi is {kpi})"
        return
    if value <= 0:
        yield ("kpi_max",), f"is {shown(limit)}, must be over 0"


def _sla_mistakes(reading: Reading, primary: PrimaryText | None) -> Iterator[Located]:
    text = reading.valid.get("sla")
    if text is None or primary is None:
        return
    try:
        sla = parse_sla(text, primary.name)
    except UsageError as error:
        yield ("sla",), error.what
        return
    yield from _sla_range_mistakes(reading, primary, sla)
    parameters: list[WorkloadText] = reading.valid.get("workload_parameters", [])
    if "workload_parameters" in reading.document.root and not parameters:
        return
    measured = {workload_key(p.name): p for p in parameters}
    for key, value in sla.workload.items():
        if key not in measured:
            allowed = ", ".join((primary.name, *(p.name for p in parameters)))
            name = next(name for name in WORKLOADS if workload_key(name) == key)
            yield ("sla",), f"names {name}, which this campaign does not set; allowed: {allowed}"
            continue
        parameter = measured[key]
        try:
            values = [parameter.dimension.read(given) for given in parameter.values]
        except ValueError:
            continue
        if value not in values:
            yield (
                ("sla",),
                f"holds at a {parameter.name} that this campaign does not measure; "
                f"allowed: {', '.join(str(given) for given in parameter.values)}",
            )


def _sla_range_mistakes(reading: Reading, primary: PrimaryText, sla: Sla) -> Iterator[Located]:
    ranges: list[PrimaryWorkload] = []
    for target in reading.valid.get("targets", ()):
        try:
            ranges.append(primary_workload(primary, target))
        except ValueError:
            return
    if sla.wl is not None and ranges and not any(r.low <= sla.wl <= r.high for r in ranges):
        spans = ", ".join(dict.fromkeys(f"{r.low:g} to {r.high:g}" for r in ranges))
        yield (
            ("sla",),
            f"holds at a {primary.name} of {sla.wl:g}, outside of every range that is sampled: "
            f"{spans}",
        )


def _manager_mistakes(reading: Reading) -> Iterator[Located]:
    valid = reading.valid
    agents = _keys(reading, "agents")
    known = {"source", "sink"}
    complete = "targets" in valid
    for target in valid.get("targets", ()):
        node = node_of(target, reading.library)
        complete = complete and node is not None
        known |= {vnf.name for vnf in functions(node)} if node else set()
    for name, manager in valid.get("managers", {}).items():
        if manager.agent not in agents:
            yield (
                ("managers", name, "agent"),
                f"is {shown(manager.agent)}, which no agent is called; "
                f"{did_you_mean(manager.agent, agents)}",
            )
        if complete and name not in known:
            reading.note(
                ("managers", name),
                f"is no function of a target; {did_you_mean(name, known)}",
                at_key=True,
            )
    for index, command in enumerate(valid.get("initialization", ())):
        if complete and command.manager not in known:
            yield (
                ("initialization", index, "manager"),
                f"is {shown(command.manager)}, which is no function of a target; "
                f"{did_you_mean(command.manager, known)}",
            )


def _keys(reading: Reading, field: str) -> list[str]:
    """Names that a mapping of the file defines, whether or not what they stand for is right."""
    value = reading.document.root.get(field)
    return list(value) if isinstance(value, dict) else []
