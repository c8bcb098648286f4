"""The functions of a chain, what is known of each alone, and whether these may meet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.chains.base import functions_of
from workbench.chains.demand import CpuAlone
from workbench.domain.errors import DataError, UsageError
from workbench.domain.lab import HostFacts
from workbench.domain.load_words import load_words
from workbench.domain.parameters import Configuration, ParameterValue, carried_over
from workbench.domain.samples import Sample
from workbench.domain.topology import Node, Target
from workbench.models.forecast import Forecaster, ProfileForecaster
from workbench.models.scales import figure
from workbench.models.selection import must_be_alike


@dataclass(frozen=True)
class Part:
    """A function as it was profiled on its own.

    Attributes
    ----------
    target : the target that was profiled.
    vnf, template : the function's name in there, which its resource keys begin with, and its kind.
    load_model, primary : as in its samples (`LoadModel.key`), and the name of `wl`.
    lowest_wl : the lowest load that it was profiled at.
    forecasters : by KPI.
    profiled : the values that it was profiled at, by parameter key as in the profile.
    loads : lowest and highest load of the samples that state a KPI, by KPI.
    path_ms : the unloaded time of the path from source to sink without the function, which is in
        its response times; 0 where it was not measured.
    cpu : what it takes for what it carries; None where no sample says so.
    """

    target: str
    vnf: str
    template: str
    load_model: str
    primary: str
    lowest_wl: float
    forecasters: Mapping[str, Forecaster]
    profiled: Mapping[str, tuple[ParameterValue, ...]] = field(default_factory=dict)
    loads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    path_ms: float = 0.0
    cpu: CpuAlone | None = None

    def configuration(self, chain: Configuration, instance: str) -> Configuration:
        """Its own resources and settings, under the names of its profile, and the workload."""
        prefix = f"{instance}."
        own = {
            f"{self.vnf}.{key.removeprefix(prefix)}": value
            for key, value in chain.resources.items()
            if key.startswith(prefix)
        }
        return Configuration(own, carried_over(chain.workload, {instance: self.vnf}))

    def outside(self, own: Configuration, wl: float, kpi: str) -> Iterator[str]:
        """Parameters and loads beyond what was profiled, as phrases."""
        for key, value in {**own.resources, **own.workload}.items():
            known = self.profiled.get(key, ())
            if known and not _within(value, known):
                yield f"{key}={_shown(value)} is outside {_range(known)}"
        low, high = self.loads.get(kpi, (0.0, math.inf))
        if not _between(wl, low, high):
            given = load_words(self.primary, figure(wl))
            yield f"{given} is outside {figure(low)} to {figure(high)}"

    def unknown(self, own: Configuration) -> Iterator[str]:
        """Keys that a configuration sets and no sample of the profile does."""
        if self.profiled:
            yield from ({**own.resources, **own.workload}).keys() - self.profiled.keys()


def part_of(
    target: Target, samples: Sequence[Sample], profiles: Iterable[ProfileForecaster]
) -> Part:
    """A profiled target as a part of chains.

    Parameters
    ----------
    samples : any; of this target, valid ones say the load model and the time of the path.
    profiles : one for each KPI, fitted to tables of this target.

    Raises
    ------
    DataError
        If the target is a chain itself, if nothing was fitted to it, or if its samples are missing
        or of different kinds.
    """
    functions = functions_of(target.graph)
    if len(functions) != 1:
        raise DataError("is a chain, not the profile of one function", where=target.name)
    by_kpi = {profile.kpi: profile for profile in profiles}
    used = [s for s in samples if s.point.target == target.name and s.valid]
    must_be_alike(used)
    if not by_kpi or not used:
        raise DataError("has no profile", where=target.name, remedy="Profile it on its own first")
    tables = {kpi: profile.table for kpi, profile in by_kpi.items()}
    loads = {
        kpi: (math.exp(table.X[:, -1].min()), math.exp(table.X[:, -1].max()))
        for kpi, table in tables.items()
    }
    profiled: dict[str, set[ParameterValue]] = {}
    for table in tables.values():
        for place, column in enumerate(table.columns[:-1]):
            for coded in set(table.X[:, place].tolist()):
                if column.names:
                    value: ParameterValue = column.names[int(coded)]
                else:
                    value = math.exp(coded) if column.log else coded
                profiled.setdefault(column.key, set()).add(value)
    return Part(
        target.name,
        functions[0].name,
        functions[0].template,
        used[0].load_model,
        next(iter(tables.values())).columns[-1].key,
        min(low for low, _ in loads.values()),
        by_kpi,
        {key: tuple(sorted(values, key=_order)) for key, values in profiled.items()},
        loads,
        min((s.bypass.mean_ms for s in used if s.bypass), default=0.0),
        _cpu(target.name, functions[0].name, used),
    )


def _cpu(target: str, vnf: str, samples: Sequence[Sample]) -> CpuAlone | None:
    try:
        return CpuAlone.of(target, vnf, samples)
    except DataError:
        return None  # CPU is told where it is known


def parts_of(graph: Node, profiles: Iterable[Part]) -> dict[str, Part]:
    """Each instance of a chain with the profile of its kind.

    Raises
    ------
    DataError
        If a function has no profile, or several and nothing says which.
    """
    known = tuple(profiles)
    parts: dict[str, Part] = {}
    for vnf in functions_of(graph):
        found = [part for part in known if part.template == vnf.template]
        if not found:
            raise DataError(
                "has no stand-alone profile" + _named_by(vnf.template, vnf.name),
                where=vnf.name,
                remedy=f"Profile {vnf.template} on its own first",
            )
        if len(found) > 1:
            raise DataError(
                f"has several profiles: {', '.join(part.target for part in found)}",
                where=vnf.name,
                remedy="Say which target speaks for it",
            )
        parts[vnf.name] = found[0]
    return parts


def must_compose(graph: Node, parts: Mapping[str, Part], kpis: Sequence[str]) -> str:
    """The load model that all parts share.

    Raises
    ------
    DataError
        If a function has no part, a part lacks a KPI, or parts were profiled under different load
        models, which never meet in one figure (METHOD.md 2).
    """
    names = [vnf.name for vnf in functions_of(graph)]
    for name in names:
        if name not in parts:
            raise DataError(
                "has no stand-alone profile", where=name, remedy="Profile it on its own first"
            )
        missing = [kpi for kpi in kpis if kpi not in parts[name].forecasters]
        if missing:
            raise DataError(
                f"the profile of {parts[name].target} does not state {', '.join(missing)}, "
                f"only {', '.join(sorted(parts[name].forecasters)) or 'nothing'}",
                where=name,
                remedy="Choose another KPI or rule, or measure more of it on its own",
            )
    kinds = {(parts[name].load_model, parts[name].primary): name for name in names}
    if len(kinds) > 1:
        told = "; ".join(f"{name} over {wl} ({load})" for (load, wl), name in kinds.items())
        raise DataError(
            f"profiles of different load models never meet: {told}",
            remedy="Profile all functions under the load of the chain",
        )
    return next(iter(kinds))[0]


def must_be_of_one_host(hosts: Mapping[str, HostFacts], insisted: bool = False) -> tuple[str, ...]:
    """Warnings where profiles of one host are used for another and somebody insists.

    Parameters
    ----------
    hosts : by what was measured there (`haproxy`, `chain of session s`); all are held against the
        first.

    Raises
    ------
    UsageError
        If hosts differ and nobody insists; where some were emulated and some not, also then.
    """
    must_not_mix_emulated(hosts)
    first, *others = hosts
    apart = [
        f"{other} was measured on another host than {first}: {difference}"
        for other in others
        if (difference := _difference(hosts[other], hosts[first]))
    ]
    if apart and not insisted:
        raise UsageError(
            "; ".join(apart),
            remedy="Profile the functions on this host, or insist to have the answer marked",
        )
    return tuple(apart)


def must_not_mix_emulated(hosts: Mapping[str, HostFacts]) -> None:
    """Raises `UsageError` where some were measured on emulated CPUs and some were not.

    Nobody may insist: emulation slows instructions down by factors that differ from one to the
    next, so that no factor between the two hosts stands for it.
    """
    emulated = [name for name, facts in hosts.items() if facts.is_emulated]
    real = [name for name, facts in hosts.items() if not facts.is_emulated]
    if emulated and real:
        raise UsageError(
            f"{', '.join(emulated)} was measured on an emulated CPU and {', '.join(real)} was "
            "not: these never meet in a model, whoever insists",
            remedy="Measure all of them on the VM lab, or none",
        )


def _difference(one: HostFacts, other: HostFacts) -> str:
    for word in ("lab", "cpu_model", "cores", "cgroup"):
        here, there = getattr(one, word), getattr(other, word)
        if here != there:
            return f"{word} {here} instead of {there}"
    options = one.details.get("options", ""), other.details.get("options", "")
    return "other options of the lab" if options[0] != options[1] else ""


def _within(value: ParameterValue, known: Sequence[ParameterValue]) -> bool:
    numbers = [v for v in known if not isinstance(v, str)]
    if isinstance(value, str) or not numbers:
        return value in known
    return _between(value, min(numbers), max(numbers))


def _between(value: float, low: float, high: float) -> bool:
    """Through a logarithm and back a number is not quite itself."""
    return low * (1.0 - 1e-9) <= value <= high * (1.0 + 1e-9)


def _range(known: Sequence[ParameterValue]) -> str:
    if isinstance(known[0], str):
        return ", ".join(map(str, known))
    return _shown(known[0]) if len(known) == 1 else f"{_shown(known[0])} to {_shown(known[-1])}"


def _shown(value: ParameterValue) -> str:
    return value if isinstance(value, str) else figure(value)


def _order(value: ParameterValue) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (value, "")


def _named_by(template: str, name: str) -> str:
    return "" if template == name else f" of its kind, {template}"
