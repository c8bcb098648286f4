"""How the containers of a target are configured: files, threads, quotas, cores. Nothing is done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from string import Template

from workbench.domain.errors import LabError, UsageError
from workbench.domain.parameters import Configuration
from workbench.domain.topology import Target, Vnf, VnfTemplate, series_of

SOURCE, SINK = "source", "sink"

PERIOD_US = 100_000
"""CFS period, the kernel's and Docker's default (METHOD.md 5)."""
UNLIMITED = -1

TRAFFIC_CORES = 2
"""Cores that source and sink each get at most; oha and nginx run two threads then."""


def chain(target: Target) -> tuple[Vnf, ...]:
    """The functions from the source's side. Raises `UsageError` for what is not a series."""
    functions = series_of(target)
    if functions is None:
        raise UsageError(
            "the Docker lab connects functions in series only, and this target has parallel parts",
            where=f"target {target.name}",
            remedy="Profile its branches as targets of their own, or use `--lab sim`",
        )
    return functions


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


def render(template: VnfTemplate, upstream: tuple[str, int] | None, threads: int) -> dict[str, str]:
    """Text by path of a component's configuration files.

    `upstream` is host and port of the next component towards the sink; the sink has none.
    """
    values = {**template.settings, "port": str(template.port), "threads": str(threads)}
    if upstream:
        values |= {"upstream_host": upstream[0], "upstream_port": str(upstream[1])}
    files = {}
    for file in template.files:
        try:
            files[file.path] = Template(file.text).substitute(values)
        except (KeyError, ValueError) as error:
            raise LabError(
                f"its text cannot be filled in: {error}",
                where=f"template {template.name}, file {file.path}",
                remedy=f"Use only {', '.join(f'${name}' for name in sorted(values))}",
            ) from None
    return files


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


def limits(cores: float, pinned: Sequence[int]) -> dict[str, int | str]:
    """CPU part of a container's settings, the same for its creation and its update.

    Whole cores of a pinned component go by its cores alone, fractions by quota (METHOD.md 5).
    """
    whole = bool(pinned) and cores == len(pinned)
    quota = UNLIMITED if whole or not cores else round(cores * PERIOD_US)
    return {
        "CpuPeriod": PERIOD_US,
        "CpuQuota": quota,
        "CpusetCpus": ",".join(map(str, pinned)),
    }


def allotted(cores: float, pinned: Sequence[int], host_cores: int) -> float:
    """Cores that a component can use at most: its quota, its pinned cores, or the host's."""
    return min(cores or host_cores, len(pinned) or host_cores)
