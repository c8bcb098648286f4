"""What a campaign says besides allocations: load, workload, KPI, SLA, sampling, lab, timing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workbench.domain import kpis
from workbench.domain.drafts import Palette
from workbench.domain.kpis import P95
from workbench.domain.resources import by_name
from workbench.tui.draft import LABS
from workbench.tui.screens.campaign.settings import (
    Document,
    Setting,
    at_path,
    entries,
    place,
    put,
    scalar,
    scalars,
    shown,
)

PRIMARY = "primary_workload_parameter"
LOADS: Mapping[str, tuple[str, str, str]] = {
    "open, constant": ("open", "constant", "rate"),
    "open, Poisson": ("open", "poisson", "rate"),
    "closed": ("closed", "", "concurrent"),
    "packets": ("open", "constant", "packet_rate"),
    "streams": ("closed", "", "streams"),
}
"""Load models: kind, arrivals, and the primary workload parameter that they vary."""
RANGES: Mapping[str, list[Any]] = {
    "rate": ["100/s", "4000/s"],
    "concurrent": [1, 200],
    "packet_rate": ["1000/s", "64000/s"],
    "streams": [10, 200],
}
"""Where another load begins."""
UNITS = {
    "rate": "requests",
    "concurrent": "clients",
    "packet_rate": "packets",
    "streams": "players",
}
CEILINGS = {"ms": "1000 ms", "%": "90%", "s": "60 s"}
"""Where the ceiling of a KPI of another unit begins; of a rate there is no usual one."""
AUTOMATIC = "automatic"
_BETWEEN = re.compile(r"\s*(?:\.\.+|–|—|,|\bto\b|\s-\s)\s*")
_AMOUNT = re.compile(r"[\d.]+\s*(.*)")


def campaign_settings(
    document: Document, palette: Palette | None, chosen: int
) -> dict[str, tuple[Setting, ...]]:
    """By heading, always the same lines; `chosen` is the target whose own range is shown."""
    known = palette or Palette()
    return {
        "load": _load(document, known, chosen),
        "objective": _objective(document, known),
        "sampling": _sampling(document, known),
        "run": (_chosen("lab", "lab", "lab", AUTOMATIC, (AUTOMATIC, *LABS)),),
        "timing": (
            at_path("warmup", "warm-up", "windows.warmup", hint="1 s by default", rare=True),
            at_path("window", "window", "windows.window", hint="3 s by default", rare=True),
            at_path("timeout", "time-out", "windows.timeout", hint="30 s by default", rare=True),
            at_path("interval", "narrow to", "windows.interval", hint="no; e.g. 5%", rare=True),
            Setting(
                "flavors", "flavors", ("flavors",), _read_flavors, _write_flavors,
                "none; e.g. small=25% 64MiB, big=50% 128MiB", rare=True,
            ),
            at_path("summary", "summary", "summary", hint="none; one line", rare=True),
        ),
    }  # fmt: skip


# --------------------------------------------------------------------------- load


def load_name(document: Document) -> str:
    """Which of `LOADS` a document has."""
    primary = place(document, PRIMARY, "name")
    if primary == "packet_rate":
        return "packets"
    if primary == "streams":
        return "streams"
    kind = place(document, "load", "kind") or ("closed" if primary == "concurrent" else "open")
    if kind == "closed":
        return "closed"
    poisson = place(document, "load", "arrivals") == "poisson"
    return "open, Poisson" if poisson else "open, constant"


BURSTS = {"duty": "burst share", "period": "burst period"}
"""Workload parameters of a bursty load alone, and what they are called here: with any other load
they are shown among all settings."""


def _load(document: Document, palette: Palette, chosen: int) -> tuple[Setting, ...]:
    load = load_name(document)
    primary = shown(place(document, PRIMARY, "name")) or LOADS[load][2]
    offered = _offered(document, palette)
    own = place(document, "targets", chosen, PRIMARY, "range") if chosen >= 0 else None
    return (
        Setting(
            "load", "load", ("load", "load.kind", "load.arrivals", f"{PRIMARY}.name"),
            load_name, _write_load, options=tuple(LOADS),
        ),
        at_path(
            "think_time", "think time", "load.think_time", hint="none; e.g. 100 ms",
            here=load == "closed",
        ),
        _range(
            "range", primary, PRIMARY, f"e.g. {_ends(RANGES.get(primary, []))}",
            unit=UNITS.get(primary, ""),
        ),
        _range(
            "own-range", "  own range", f"targets[{chosen}].{PRIMARY}", "as everywhere",
            at=("targets", chosen), here=chosen >= 0, rare=not own,
        ),
        _chosen("scale", "scale", f"{PRIMARY}.scale", "log", ("log", "linear")),
        *(
            _workload(document, name, example, name in offered and name not in BURSTS)
            for name, example in palette.workload.items()
        ),
        at_path(
            "connections", "connections", "load.connections", hint="64 by default",
            here=load.startswith("open"), rare=True,
        ),
        _chosen(
            "generator", "generator", "load.generator", AUTOMATIC,
            (AUTOMATIC, *palette.generators), rare=True,
        ),
    )  # fmt: skip


def _write_load(document: Document, text: str) -> None:
    """Another load model; where `wl` becomes another parameter, ranges begin anew."""
    kind, arrivals, primary = LOADS[text]
    load = place(document, "load")
    kept = dict(load) if isinstance(load, dict) else {}
    foreign = ("think_time",) if kind == "open" else ("arrivals", "connections")
    if primary != "packet_rate":
        foreign = (*foreign, "sizes")
    elif load_name(document) == "packets":  # their gaps have more distributions than stand here
        arrivals = str(kept.get("arrivals", arrivals))
    document["load"] = {
        **{key: value for key, value in kept.items() if key not in foreign},
        "kind": kind,
        **({"arrivals": arrivals} if arrivals else {}),
    }
    if primary == "packet_rate":
        document["load"].pop("connections", None)
    if place(document, PRIMARY, "name") != primary:
        scale = place(document, PRIMARY, "scale") or "log"
        document[PRIMARY] = {"name": primary, "range": RANGES[primary], "scale": scale}
        for target in entries(document, "targets"):
            if isinstance(target, dict):
                target.pop(PRIMARY, None)
        packets, now = primary == "packet_rate", _known(_kpi(document))
        if packets and now.kind == "response_time":  # of which packets have none
            _write_kpi(document, kpis.LOSS)
        elif not packets and "requests" not in now.of:
            _write_kpi(document, P95)


def _range(
    name: str,
    label: str,
    field: str,
    hint: str,
    *,
    at: tuple[str | int, ...] = (),
    here: bool = True,
    rare: bool = False,
    unit: str = "",
) -> Setting:
    """Two ends of a range in one line: `100/s .. 4000/s`."""

    def read(document: Document) -> str:
        return _ends(place(document, *at, PRIMARY, "range"))

    def write(document: Document, text: str) -> None:
        within = place(document, *at)
        if isinstance(within, dict):
            ends = [scalar(end) for end in _BETWEEN.split(text) if end]
            put(within, ends or None, PRIMARY, "range")
            if at and not within.get(PRIMARY):
                within.pop(PRIMARY, None)

    return Setting(name, label, (f"{field}.range",), read, write, hint, None, here, rare, unit)


def _ends(given: Any) -> str:
    return " .. ".join(map(shown, given)) if isinstance(given, list) else shown(given)


def _offered(document: Document, palette: Palette) -> set[str]:
    """Workload parameters that a source of the draft offers."""
    offered: set[str] = set()
    for target in entries(document, "targets"):
        chain = palette.chain(shown(place(target, "chain")))
        source = shown(place(target, "source")) or (chain.source if chain else "source")
        template = palette.vnf(source)
        offered |= set(template.parameters) if template else set()
    return offered


def _workload(document: Document, name: str, example: str, offered: bool) -> Setting:
    def parameter(document: Document) -> Document | None:
        return next((p for p in _parameters(document) if p.get("name") == name), None)

    def read(document: Document) -> str:
        found = parameter(document)
        return shown(found.get("values")) if found else ""

    def write(document: Document, text: str) -> None:
        values, found = scalars(text), parameter(document)
        if not values:
            document["workload_parameters"] = [
                p for p in entries(document, "workload_parameters") if p is not found
            ]
        elif found:
            found["values"] = values
        else:
            given = entries(document, "workload_parameters")
            document["workload_parameters"] = [*given, {"name": name, "values": values}]

    fields = tuple(
        f"workload_parameters[{number}]"
        for number, given in enumerate(entries(document, "workload_parameters"))
        if place(given, "name") == name
    )
    hint, rare = f"not varied; e.g. {example}", not (offered or fields)
    return Setting(name, BURSTS.get(name, name), fields, read, write, hint, rare=rare)


def _parameters(document: Document) -> list[Document]:
    return [p for p in entries(document, "workload_parameters") if isinstance(p, dict)]


# --------------------------------------------------------------------------- the rest


def _objective(document: Document, palette: Palette) -> tuple[Setting, ...]:
    primary = shown(place(document, PRIMARY, "name")) or "rate"

    def read_kpi(document: Document) -> str:
        given = _kpi(document)
        return next((kpi for kpi in palette.kpis if kpi.rpartition("_")[0] == given), given)

    at = {"concurrent": "50", "packet_rate": "10000/s", "streams": "50"}.get(primary, "300/s")
    limit = {"streams": "lag_ratio<=1%", "packet_rate": "loss<=1%"}.get(primary, "p95<=200ms")
    example = f"e.g. {limit} @ {primary}={at}"
    return (
        Setting("kpi", "KPI", ("kpi",), read_kpi, _write_kpi, options=palette.kpis),
        at_path("kpi_max", "ceiling", "kpi_max", hint="1000 ms by default"),
        at_path("sla", "SLA", "sla", hint=f"none; {example}"),
        at_path("loss_goal", "loss goal", "loss_goal", hint="0.5% by default", rare=True),
    )


def _kpi(document: Document) -> str:
    return shown(place(document, "kpi")) or P95


def _known(kpi: str) -> kpis.Kpi:
    """A KPI by any of its names; what is none of them is told by its ending."""
    return kpis.find(kpi) or kpis.of(kpi)


def _write_kpi(document: Document, text: str) -> None:
    """Another KPI; where it has another unit, its ceiling begins anew."""
    before, now = _known(_kpi(document)).unit, _known(text).unit
    document["kpi"] = text
    if now != before:
        put(document, CEILINGS.get(now), "kpi_max")


def _sampling(document: Document, palette: Palette) -> tuple[Setting, ...]:
    del document
    return (
        _chosen("sampler", "sampler", "sampling.method", "bisection", palette.samplers),
        at_path(
            "max_samples", "samples", "sampling.max_samples", hint="10 by default", unit="each"
        ),
        at_path(
            "repetitions", "repetitions", "sampling.repetitions", hint="1 by default",
            unit="per load",
        ),
        at_path("budget", "budget", "budget", hint="none; e.g. 8h", unit="clock time"),
        at_path("epsilon", "stop below", "sampling.epsilon", hint="1% by default", rare=True),
        _chosen(
            "curve", "curve by", "sampling.model", "gaussian-process", palette.models, rare=True
        ),
        _chosen(
            "profile_model", "profile by", "profile_model", "auto", ("auto", *palette.models),
            rare=True,
        ),
    )  # fmt: skip


def _chosen(
    name: str, label: str, path: str, default: str, options: tuple[str, ...], *, rare: bool = False
) -> Setting:
    """A registered part by name; where the draft names none, the default is shown."""
    keys = path.split(".")

    def read(document: Document) -> str:
        return shown(place(document, *keys)) or default

    def write(document: Document, text: str) -> None:
        put(document, None if text == AUTOMATIC else text, *keys)

    return Setting(name, label, (path,), read, write, options=options, rare=rare)


def _read_flavors(document: Document) -> str:
    flavors = place(document, "flavors")
    if not isinstance(flavors, dict):
        return ""
    return ", ".join(
        f"{name}={' '.join(shown(v).replace(' ', '') for v in allotted.values())}"
        for name, allotted in flavors.items()
        if isinstance(allotted, dict)
    )


def _write_flavors(document: Document, text: str) -> None:
    """`small=25% 64MiB`: amounts tell by their unit what they are of."""
    flavors = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, amounts = part.partition("=")
        flavors[name.strip()] = {_resource_of(amount): scalar(amount) for amount in amounts.split()}
    put(document, flavors or None, "flavors")


def _resource_of(amount: str) -> str:
    """The first resource that is written in such a unit; what is none of them stays as it is."""
    match = _AMOUNT.fullmatch(amount)
    known = (name for name, one in by_name().items() if match and match[1] in one.units)
    return next(known, amount)
