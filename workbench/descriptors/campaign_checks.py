"""What is wrong between the fields of a campaign, each of them being right by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from workbench import plugins
from workbench.descriptors.attach_checks import attach_mistakes
from workbench.descriptors.composition import node_of
from workbench.descriptors.document import FieldPath
from workbench.descriptors.load_checks import load_mistakes, load_model, shape_of
from workbench.descriptors.load_text import LoadText
from workbench.descriptors.reading import DescriptorReading, Located, did_you_mean
from workbench.descriptors.sla_text import parse_sla
from workbench.descriptors.target_text import (
    MOST_CONFIGURATIONS,
    FlavorText,
    ResourceText,
    TargetText,
    functions,
)
from workbench.descriptors.units import (
    PACKET_RATE,
    PRIMARIES,
    STREAMS,
    WORKLOADS,
    kpi_dimension,
    shown,
    workload_key,
)
from workbench.descriptors.workload_text import PrimaryText, WindowsText, WorkloadText
from workbench.domain import kpis
from workbench.domain.competitors import COMPETITOR
from workbench.domain.errors import UsageError
from workbench.domain.load_shapes import refusal
from workbench.domain.parameters import (
    ParameterValue,
    PrimaryWorkload,
    Sla,
    is_setting,
)
from workbench.domain.topology import FunctionParameter

LEAST_OF_STREAMS_S, STARTING_STREAMS_S = 20.0, 9.0
"""Window of streams, and what movies and players take to begin."""
MOST_LOAD = 1e7
"""Requests, packets or clients: no generator offers more, and the simulated lab holds each."""


def campaign_mistakes(reading: DescriptorReading) -> Iterator[Located]:
    """All of them, over `reading.valid`: a field that is wrong by itself is not compared."""
    valid = reading.valid
    primary: PrimaryText | None = valid.get("primary_workload_parameter")
    yield from _range_mistakes(reading, primary)
    yield from load_mistakes(reading, primary)
    yield from _generator_mistakes(reading, primary)
    yield from _target_mistakes(reading)
    yield from _flavor_mistakes(reading)
    yield from _passage_mistakes(reading, primary)
    yield from _workload_mistakes(reading)
    yield from _count_mistakes(reading)
    yield from _kpi_mistakes(reading)
    yield from _kpi_of_packets_mistakes(reading, primary)
    yield from _streams_mistakes(reading, primary)
    yield from _sla_mistakes(reading, primary)
    yield from _manager_mistakes(reading)
    yield from attach_mistakes(reading, primary)


def primary_workload(primary: PrimaryText, target: TargetText) -> PrimaryWorkload:
    """The range of `wl` on a target. Raises `ValueError` where it is none."""
    own = target.primary_workload_parameter
    low, high = _read_range(primary.name, (own and own.range) or primary.range)
    scale = (own and own.scale) or primary.scale
    unit = PRIMARIES[primary.name].unit or "clients"
    unit = primary.name if primary.name == STREAMS else unit
    whole = primary.name in ("concurrent", STREAMS)
    return PrimaryWorkload(primary.name, low, high, scale, unit, whole)


def _read_range(name: str, given: list[Any]) -> tuple[float, float]:
    low, high = (PRIMARIES[name].read(value) for value in given)
    return low, high


def _range_mistakes(reading: DescriptorReading, primary: PrimaryText | None) -> Iterator[Located]:
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
        elif end > MOST_LOAD:
            yield (*path, index), f"is {shown(value)}, must be at most {MOST_LOAD:.0f}"
        elif name in ("concurrent", STREAMS) and end != int(end):
            yield (*path, index), f"is {shown(value)}, must be a whole number of clients"
    if len(ends) == 2 and ends[0] >= ends[1]:
        yield path, f"runs from {shown(given[0])} to {shown(given[1])}, must be [low, high]"


def _generator_mistakes(
    reading: DescriptorReading, primary: PrimaryText | None
) -> Iterator[Located]:
    """What the campaign's own generator refuses whatever the path; the pre-flight looks again."""
    load: LoadText | None = reading.valid.get("load")
    if load is None or load.generator is None or primary is None:
        return
    try:
        ranges = [primary_workload(primary, t) for t in reading.valid.get("targets", ())]
        sla = parse_sla(reading.valid["sla"], primary.name) if reading.valid.get("sla") else None
    except (ValueError, UsageError):
        return
    wanted = {reading.valid.get("kpi", kpis.P95), *((sla.kpi,) if sla else ())}
    most = max((wl.high for wl in ranges), default=0.0)
    generator = plugins.make("traffic", load.generator)
    traces = reading.library.traces.get(load.shape.file or "") if load.shape else None
    shape = shape_of(load, reading.valid.get("workload_parameters", []), traces)
    reason = refusal(shape, generator) or generator.unable(
        load_model(load, primary.name), wanted, most
    )
    if reason is not None:
        yield ("load", "generator"), f"is {load.generator}, which cannot measure this: {reason}"


def _flavor_mistakes(reading: DescriptorReading) -> Iterator[Located]:
    flavors: dict[str, FlavorText] = reading.valid.get("flavors", {})
    if "flavors" in reading.document.root and "flavors" not in reading.valid:
        return
    for place, target in enumerate(reading.valid.get("targets", ())):
        node = node_of(target, reading.library)
        names = [vnf.name for vnf in functions(node)] if node else []
        for index, parameter in enumerate(target.resource_parameters):
            here = ("targets", place, "resource_parameters", index)
            if parameter.name == "flavor":
                vnf = parameter.vnf or (names[0] if len(names) == 1 else "")
                of_it = [p for p in target.resource_parameters if (p.vnf or vnf) == vnf]
                others = {p.name for p in of_it} - {"flavor"}
                yield from _one_flavor_mistakes(here, parameter, flavors, others)


def _one_flavor_mistakes(
    here: FieldPath, parameter: ResourceText, flavors: Mapping[str, FlavorText], others: set[str]
) -> Iterator[Located]:
    """A flavor parameter of a function whose `others` are given by parameters of their own."""
    first: set[str] | None = None
    for index, given in enumerate(parameter.values):
        path = (*here, "values", index)
        if given not in flavors:
            known = f"; {did_you_mean(str(given), flavors)}" if flavors else ""
            yield path, f"is {shown(given)}, neither an amount nor the name of a flavor{known}"
            continue
        allots = set(flavors[str(given)].allotted)
        for name in sorted(allots & others):
            yield path, f"is {shown(given)}, which allots {name}, and {name} is a parameter too"
        if first is not None and allots != first:
            yield (
                path,
                f"is {shown(given)}, which allots {', '.join(sorted(allots))}, and the flavors "
                f"before it {', '.join(sorted(first))}; flavors of one function allot the same",
            )
        first = allots if first is None else first


def _target_mistakes(reading: DescriptorReading) -> Iterator[Located]:
    seen: set[str] = set()
    for index, target in enumerate(reading.valid.get("targets", ())):
        if target.title in seen:
            yield (
                ("targets", index),
                f"is the second target called {shown(target.title)}; give it a name of its own",
            )
        if target.title:
            seen.add(target.title)


def _passage_mistakes(reading: DescriptorReading, primary: PrimaryText | None) -> Iterator[Located]:
    """Packets pass routers alone; requests end at the routers' sink, which answers none."""
    if primary is None:
        return
    packets = primary.name == PACKET_RATE
    for index, target in enumerate(reading.valid.get("targets", ())):
        node = node_of(target, reading.library)
        for vnf in functions(node) if node else ():
            template = reading.library.vnf(vnf.template)
            if vnf.placement == "passive":
                continue  # whatever passes, it gets a copy
            if template and packets and template.passage != "router":
                yield (
                    ("targets", index),
                    f"has {shown(vnf.name)}, which is no router and passes no packets on: leave "
                    f"it out, or choose a load of requests ({PACKET_RATE} is one of packets)",
                )
            elif template and not packets and template.passage == "router":
                yield (
                    ("targets", index),
                    f"has {shown(vnf.name)}, a router, which is measured with packets: choose a "
                    f"load of packets ({PACKET_RATE} as primary workload parameter)",
                )


def _kpi_of_packets_mistakes(
    reading: DescriptorReading, primary: PrimaryText | None
) -> Iterator[Located]:
    """KPIs that one load has and the other has not, and what is asked of them."""
    kpi = reading.valid.get("kpi", kpis.P95)
    if primary is None or ("kpi" in reading.document.root and "kpi" not in reading.valid):
        return
    of = kpis.of(kpi).of
    if primary.name == PACKET_RATE and "packets" not in of:
        allowed = ", ".join(k.name for k in kpis.known().values() if "packets" in k.of)
        yield ("kpi",), f"is {kpi}, which packets have none of; allowed: {allowed}"
    load, delay = reading.valid.get("load"), kpis.of(kpi).kind == "response_time"
    if primary.name == PACKET_RATE and delay and not (load and load.generator):
        yield (
            ("kpi",),
            f"is {kpi}, which packets have none of unless they are stamped: choose {kpis.LOSS}, or "
            "the generator d-itg (load.generator)",
        )
    windows = reading.valid.get("windows")
    if primary.name == PACKET_RATE and windows and windows.interval:
        yield (
            ("windows", "interval"),
            "is of requests; packets are not sent until an interval is narrow, remove it",
        )
    if primary.name != PACKET_RATE and "requests" not in of:
        yield ("kpi",), f"is {kpi}, which is of packets, but {primary.name} is of requests"


def _streams_mistakes(reading: DescriptorReading, primary: PrimaryText | None) -> Iterator[Located]:
    """What only streams have, and what they need: whole stretches of playback."""
    if primary is None or ("kpi" in reading.document.root and "kpi" not in reading.valid):
        return
    kpi, windows = reading.valid.get("kpi", kpis.P95), reading.valid.get("windows")
    if primary.name != STREAMS:
        if kpi in (kpis.LAG, kpis.STARTUP):
            yield ("kpi",), f"is {kpi}, which is of {STREAMS}, and {primary.name} is varied"
        return
    if windows is None and "windows" in reading.document.root:
        return
    windows = windows or WindowsText()
    if windows.window < LEAST_OF_STREAMS_S:
        yield (
            ("windows", "window"),
            f"is {windows.window:g} s, must be {LEAST_OF_STREAMS_S:g} s at least: playback is late "
            "or not in stretches of that",
        )
    if windows.warmup < STARTING_STREAMS_S:
        yield (
            ("windows", "warmup"),
            f"is {windows.warmup:g} s, must be {STARTING_STREAMS_S:g} s at least: movies and "
            "players start with each sample",
        )
    if windows.interval:
        yield ("windows", "interval"), "is of requests; streams are not driven on, remove it"


def _workload_mistakes(reading: DescriptorReading) -> Iterator[Located]:
    parameters: list[WorkloadText] = reading.valid.get("workload_parameters", [])
    sources = {target.ends(reading.library)[0] for target in reading.valid.get("targets", ())}
    seen: set[str] = set()
    for index, parameter in enumerate(parameters):
        if parameter.name in seen:
            yield ("workload_parameters", index, "name"), f"is {shown(parameter.name)} again"
        seen.add(parameter.name)
        for source in sorted(sources):
            template = reading.library.vnf(source)
            if parameter.name == COMPETITOR:
                continue  # of the lab, whatever the source is
            if template and parameter.name not in template.parameters:
                yield (
                    ("workload_parameters", index, "name"),
                    f"is {shown(parameter.name)}, which source {shown(source)} cannot offer; "
                    f"allowed: {', '.join(template.parameters) or 'none'}",
                )


def _count_mistakes(reading: DescriptorReading) -> Iterator[Located]:
    """Configurations are all made before the first is measured."""
    parameters: list[WorkloadText] = reading.valid.get("workload_parameters", [])
    workloads = prod(len(parameter.values) for parameter in parameters)
    for index, target in enumerate(reading.valid.get("targets", ())):
        settings = prod(len(setting.values) for setting in target.function_parameters)
        many = target.allocations * settings * workloads
        if target.allocations <= MOST_CONFIGURATIONS < many:
            yield (
                ("targets", index),
                f"makes {many} configurations with its settings and the workload, at most "
                f"{MOST_CONFIGURATIONS} are allowed",
            )


def _kpi_mistakes(reading: DescriptorReading) -> Iterator[Located]:
    given = reading.document.root
    if "kpi" in given and "kpi" not in reading.valid:
        return
    kpi = reading.valid.get("kpi", kpis.P95)
    dimension = kpi_dimension(kpi)
    limit = reading.valid.get("kpi_max")
    if limit is None:
        if "kpi_max" not in given and dimension.unit != "ms":
            yield ("kpi",), f"is {kpi}, which needs a ceiling (kpi_max) such as {dimension.example}"
        return
    try:
        value = dimension.read(limit)
    except ValueError as error:
        yield ("kpi_max",), f"{error} (kpi is {kpi})"
        return
    if value <= 0:
        yield ("kpi_max",), f"is {shown(limit)}, must be over 0"


def _sla_mistakes(reading: DescriptorReading, primary: PrimaryText | None) -> Iterator[Located]:
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
    settings = dict(_settings_of(reading))
    for key, value in sla.workload.items():
        if is_setting(key):
            if (wrong := _setting_mistake(key, value, settings)) is not None:
                yield ("sla",), wrong
            continue
        if key not in measured:
            allowed = ", ".join((primary.name, *(p.name for p in parameters)))
            name = next(name for name in WORKLOADS if workload_key(name) == key)
            yield ("sla",), f"names {name}, which this campaign does not set; allowed: {allowed}"
            continue
        parameter = measured[key]
        try:
            values = [parameter.read(given) for given in parameter.values]
        except ValueError:
            continue
        if value not in values:
            yield (
                ("sla",),
                f"holds at a {parameter.name} that this campaign does not measure; "
                f"allowed: {', '.join(str(given) for given in parameter.values)}",
            )


def _settings_of(reading: DescriptorReading) -> Iterator[tuple[str, FunctionParameter]]:
    """Settings of all functions of all targets, by their keys in configurations."""
    for target in reading.valid.get("targets", ()):
        node = node_of(target, reading.library)
        for vnf in functions(node) if node else ():
            template = reading.library.vnf(vnf.template)
            for parameter in template.function_parameters if template else ():
                yield f"{vnf.name}.{parameter.name}", parameter


def _setting_mistake(
    key: str, value: ParameterValue, known: Mapping[str, FunctionParameter]
) -> str | None:
    if key not in known:
        hint = did_you_mean(key, known) if known else "its functions have none"
        return f"names {key}, which is no function parameter of a target; {hint}"
    try:
        known[key].read(value if isinstance(value, str) else f"{value:g}")
    except ValueError as error:
        return f"{key} {error}"
    return None


def _sla_range_mistakes(
    reading: DescriptorReading, primary: PrimaryText, sla: Sla
) -> Iterator[Located]:
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


def _manager_mistakes(reading: DescriptorReading) -> Iterator[Located]:
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
                f"is {shown(manager.agent)}, but there is no agent of that name; "
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


def _keys(reading: DescriptorReading, field: str) -> list[str]:
    """Names that a mapping of the file defines, whether or not what they stand for is right."""
    value = reading.document.root.get(field)
    return list(value) if isinstance(value, dict) else []
