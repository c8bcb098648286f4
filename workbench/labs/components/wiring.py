"""How the containers of a target are configured: files, threads, quotas, cores. Nothing is done."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from string import Template

from workbench.domain.errors import LabError, UsageError
from workbench.domain.parameters import Configuration, ParameterValue, settings_of
from workbench.domain.topology import (
    UPSTREAM_NUMBER,
    ConfigurationFile,
    Node,
    Parallel,
    Series,
    Target,
    Vnf,
    VnfTemplate,
)

SOURCE, SINK = "source", "sink"

_UNEQUAL = 1e-6
"""Shares of branches that differ by more are no plain balancing."""

TRAFFIC_CORES = 2
"""Cores that source and sink each get at most; oha and nginx run two threads then."""


Stage = tuple[Vnf, ...]
"""A function, or its instances that the stage before it balances the load over."""


def stages(target: Target, templates: Mapping[str, VnfTemplate]) -> tuple[Stage, ...]:
    """The functions from the source's side, instances of one function side by side.

    Raises
    ------
    UsageError
        For what is neither a series nor instances of one function with equal shares behind a
        function that can balance: one whose template repeats a line for each upstream.
    """
    graph = target.graph
    found: list[Stage] = []
    for part in graph.parts if isinstance(graph, Series) else (graph,):
        if isinstance(part, Vnf) and part.placement == "passive":
            continue  # traffic passes it by (`Target.copies`)
        stage = _instances(part)
        if stage is None:
            raise UsageError(
                "the Docker lab connects functions in series, and instances of one function with "
                "equal shares behind a balancer; this target has other parallel parts",
                where=f"target {target.name}",
                remedy="Profile its branches as targets of their own, or use the simulated lab "
                "(--lab sim)",
            )
        if len(stage) > 1:
            _must_balance(target, found[-1] if found else (), stage, templates)
        found.append(stage)
    return tuple(found)


def _instances(part: Node) -> Stage | None:
    if isinstance(part, Vnf):
        return (part,)
    if not isinstance(part, Parallel) or max(part.shares) - min(part.shares) > _UNEQUAL:
        return None
    instances = tuple(
        branch
        for branch in part.branches
        if isinstance(branch, Vnf) and branch.placement == "inline"
    )
    alike = len({vnf.template for vnf in instances}) == 1
    return instances if alike and len(instances) == len(part.branches) else None


def _must_balance(
    target: Target, before: Stage, stage: Stage, templates: Mapping[str, VnfTemplate]
) -> None:
    named = f"{len(stage)} instances of {stage[0].template}"
    remedy = "Put a function in front of them that can, such as haproxy or nginx"
    if templates[stage[0].template].passage == "router":
        raise UsageError(
            f"has {named}, a router: no balancer of the Docker lab passes packets",
            where=f"target {target.name}",
            remedy="Replicate functions that are proxies",
        )
    if not before:
        raise UsageError(
            f"begins with {named}, and the source speaks to one",
            where=f"target {target.name}",
            remedy=remedy,
        )
    if not can_balance(templates[before[0].template]):
        raise UsageError(
            f"has {named} behind {before[0].template}, which cannot balance",
            where=f"target {target.name}",
            remedy=remedy,
        )


def can_balance(template: VnfTemplate) -> bool:
    """Whether its configuration has a line for each upstream (`$upstream_number`)."""
    return template.balances


def segments(
    staged: Sequence[Stage], templates: Mapping[str, VnfTemplate]
) -> tuple[tuple[int, ...], ...]:
    """Numbers of the networks that source, stages and sink are on, in that order.

    Each router ends one network and begins the next; everything else is on one.
    """
    here = 0
    places: list[tuple[int, ...]] = [(0,)]
    for stage in staged:
        if templates[stage[0].template].passage == "router":
            places.append((here, here + 1))
            here += 1
        else:
            places.append((here,))
    return (*places, (here,))


def networks(target: Target, templates: Iterable[VnfTemplate]) -> tuple[int, ...]:
    """Numbers of the networks that a target needs."""
    known = {template.name: template for template in templates}
    return tuple(range(segments(stages(target, known), known)[-1][0] + 1))


def vcpu(configuration: Configuration, name: str, template: VnfTemplate) -> float:
    """Cores of a component: as configured, else a function's default; 0 is no quota."""
    configured = configuration.vcpu(name)
    if configured or template.role != "function":
        return configured
    return template.default_vcpu


def worker_threads(cores: float) -> int:
    """Threads follow the allotment: one for each core that is begun."""
    return max(1, math.ceil(cores - 1e-9))


def uses_threads(template: VnfTemplate) -> bool:
    """Whether a function lets its worker threads be set at all."""
    return any("threads" in Template(file.text).get_identifiers() for file in template.files)


def settings(
    configuration: Configuration, name: str, template: VnfTemplate
) -> dict[str, ParameterValue]:
    """Its function parameters as configured, else by default."""
    given = settings_of(configuration, name)
    return {p.name: given.get(p.name, p.default) for p in template.function_parameters}


def render(
    template: VnfTemplate,
    upstreams: Sequence[tuple[str, int]],
    threads: int,
    given: Mapping[str, ParameterValue] | None = None,
) -> dict[str, str]:
    """Text by path of a component's configuration files.

    `upstreams` are host and port of the next components towards the sink; the sink has none. A
    line with `$upstream_number` is repeated for each of them. `given` are its function parameters
    (`settings`).
    """
    values = {**template.settings, "port": str(template.port), "threads": str(threads)}
    for parameter in template.function_parameters:
        value = (given or {}).get(parameter.name, parameter.default)
        values[parameter.name] = parameter.rendered(value)
    each = [
        {"upstream_host": host, "upstream_port": str(port), UPSTREAM_NUMBER: str(number)}
        for number, (host, port) in enumerate(upstreams, start=1)
    ]
    return {file.path: _filled(template, file, values, each) for file in template.files}


def _filled(
    template: VnfTemplate,
    file: ConfigurationFile,
    values: Mapping[str, str],
    upstreams: Sequence[Mapping[str, str]],
) -> str:
    known = {**values, **(upstreams[0] if upstreams else {})}
    lines = []
    try:
        for line in file.text.splitlines(keepends=True):
            text = Template(line)
            repeated = UPSTREAM_NUMBER in text.get_identifiers()
            lines += [
                text.substitute({**known, **upstream})
                for upstream in (upstreams if repeated else ({},))
            ]
    except (KeyError, ValueError) as error:
        raise LabError(
            f"its text cannot be filled in: {error}",
            where=f"template {template.name}, file {file.path}",
            remedy=f"Use only {', '.join(f'${name}' for name in sorted(known))}",
        ) from None
    return "".join(lines)


def pin(cores: int, wanted: Mapping[str, int]) -> dict[str, tuple[int, ...]] | None:
    """Disjoint cores for every component, or None where the host has too few.

    `wanted` holds the functions' cores; source and sink get one each, and another where cores
    are left over.
    """
    sizes = {SOURCE: 1, **wanted, SINK: 1}
    if sum(sizes.values()) > cores:
        return None
    for name in (SOURCE, SINK):
        if sum(sizes.values()) < cores:
            sizes[name] = TRAFFIC_CORES
    pins, first = {}, 0
    for name, size in sizes.items():
        pins[name] = tuple(range(first, first + size))
        first += size
    return pins


def parse_cpuset(text: str) -> tuple[int, ...]:
    """`0-2,5` as core numbers."""
    cores: list[int] = []
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        cores.extend(range(int(low), int(high or low) + 1))
    return tuple(cores)


def allotted(cores: float, pinned: Sequence[int], host_cores: int) -> float:
    """Cores that a component can use at most: its quota, its pinned cores, or the host's."""
    return min(cores or host_cores, len(pinned) or host_cores)
