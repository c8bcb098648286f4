"""How the containers of a target are configured: files, threads, quotas, cores. Nothing is done."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from string import Template

from workbench.domain.errors import LabError, UsageError
from workbench.domain.parameters import Configuration, ParameterValue, settings_of
from workbench.domain.topology import (
    UPSTREAM_NUMBER,
    UPSTREAM_WEIGHT,
    ConfigurationFile,
    Onward,
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
"""A function, or those that lie side by side, such as branches that traffic is split over."""


def stages(target: Target, templates: Mapping[str, VnfTemplate]) -> tuple[Stage, ...]:
    """The functions from the source's side, those as far from the sink side by side.

    Raises
    ------
    UsageError
        For what nothing here can split: routers side by side, branches that the source would have
        to split, or branches behind a function that cannot balance, or not at these shares: one
        whose template repeats a line for each upstream (and fills in its weight).
    """
    onward = target.onward
    known = {vnf.name: vnf for vnf in target.vnfs}
    ranks = {SINK: 0}
    for name in _backwards(onward):
        ranks[name] = 1 + max(ranks[after] for after, _ in onward[name])
    found = tuple(
        tuple(vnf for name, vnf in known.items() if ranks.get(name) == rank)
        for rank in range(max(ranks.values()), 0, -1)
    )
    entries = target.entries
    if len(entries) > 1:
        raise UsageError(
            f"begins with {_named([known[name] for name, _ in entries])}, and the source speaks to "
            "one",
            where=f"target {target.name}",
            remedy=_BALANCER,
        )
    splits = any(len(after) > 1 for after in onward.values())
    if splits and (router := _router(found, templates)):
        raise UsageError(
            f"has {router.template} among its branches, a router: no balancer of the Docker lab "
            "passes packets",
            where=f"target {target.name}",
            remedy="Replicate functions that are proxies",
        )
    for name, after in onward.items():
        if len(after) > 1:
            _must_balance(target, templates[known[name].template], after, known)
    return found


_BALANCER = "Put a function in front of them that can, such as haproxy or nginx"


def _backwards(onward: Mapping[str, Onward]) -> list[str]:
    """Names such that all that lies behind one comes before it."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for after, _ in onward.get(name, ()):
            visit(after)
        order.setdefault(name)

    for name in onward:
        visit(name)
    return [name for name in order if name != SINK]


def _router(staged: Iterable[Stage], templates: Mapping[str, VnfTemplate]) -> Vnf | None:
    every = (vnf for stage in staged for vnf in stage)
    return next((v for v in every if templates[v.template].passage == "router"), None)


def _must_balance(
    target: Target, template: VnfTemplate, after: Onward, known: Mapping[str, Vnf]
) -> None:
    branches = [known[name] for name, _ in after if name in known]
    shares = [share for _, share in after]
    what = ""
    if not can_balance(template):
        what = "cannot balance"
    elif max(shares) - min(shares) > _UNEQUAL and not template.weighs:
        what = "can balance, but not at unequal shares"
    if what:
        raise UsageError(
            f"has {_named(branches)} behind {template.name}, which {what}",
            where=f"target {target.name}",
            remedy=_BALANCER,
        )


def _named(branches: Sequence[Vnf]) -> str:
    templates = {vnf.template for vnf in branches}
    if len(templates) == 1:
        return f"{len(branches)} instances of {branches[0].template}"
    return f"branches {', '.join(vnf.name for vnf in branches)}"


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
    shares: Sequence[float] = (),
) -> dict[str, str]:
    """Text by path of a component's configuration files.

    `upstreams` are host and port of the next components towards the sink; the sink has none. A
    line with `$upstream_number` is repeated for each of them. `given` are its function parameters
    (`settings`), `shares` what each upstream gets of the traffic; none: as much as the others.
    """
    shares = shares or [1.0 / max(1, len(upstreams))] * len(upstreams)
    values = {**template.settings, "port": str(template.port), "threads": str(threads)}
    for parameter in template.function_parameters:
        value = (given or {}).get(parameter.name, parameter.default)
        values[parameter.name] = parameter.rendered(value)
    each = [
        {
            "upstream_host": host,
            "upstream_port": str(port),
            UPSTREAM_NUMBER: str(number),
            UPSTREAM_WEIGHT: str(max(1, round(100 * share))),
        }
        for number, ((host, port), share) in enumerate(zip(upstreams, shares, strict=True), start=1)
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


def allotted(cores: float, pinned: Sequence[int], host_cores: int) -> float:
    """Cores that a component can use at most: its quota, its pinned cores, or the host's."""
    return min(cores or host_cores, len(pinned) or host_cores)
