"""What this host has for a lab, what is missing, and how to get it."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path
from typing import Any

from workbench import plugins
from workbench.domain.errors import LabError, UsageError, WorkbenchError
from workbench.domain.lab import Check, HostNoise
from workbench.domain.observations import MOST_STOLEN
from workbench.engine.runs import noises
from workbench.engine.runs.opening import SIMULATED
from workbench.locks import HostLock
from workbench.log import logger
from workbench.paths import Workspace, measuring_lock, shipped
from workbench.probes import host, kernel_trace, perf_stat, resctrl

FEWEST_CORES = 2
LEAST_DISK_BYTES = 2_000_000_000
"""Images take 1 GB, a long session some hundred MB."""
FULL_CONNTRACK = 0.8
GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
"""Clock sources that user space reads without a system call."""
OLD_NOISE_S = 30 * 86400.0
"""Kernels and engines are updated about once a month."""

log = logger("engine.doctor")


async def examine(workspace: Workspace) -> tuple[Check, ...]:
    """All checks; a lab or plugin that cannot be asked is itself a finding.

    Where a lab knows more about something than we do, its line replaces ours.
    """
    checks = [
        _cores(),
        _stolen_cpu(host.read_stolen_s(), host.read_busy_s()),
        _cgroups(),
        _disk(workspace.root),
        _conntrack(),
        _clock(),
        await _perf(),
        _trace(),
    ]
    for group in plugins.GROUPS:
        parts, broken = await asyncio.to_thread(plugins.load_all, group)
        lacking = {name: words for name, part in parts.items() if (words := _lacking(part))}
        there = tuple(name for name in parts if name not in lacking)
        checks.append(_plugins(group, there, len(broken)))
        checks += [
            Check(f"{group.removesuffix('s')} {name}", "warning", words, remedy)
            for name, (words, remedy) in lacking.items()
        ]
        checks += [Check(f"plugin {e.where}", "missing", e.what, e.remedy or "") for e in broken]
        if group == "labs":
            for name, lab in parts.items():
                checks += await _lab(name, lab)
            checks += await asyncio.to_thread(_noises, tuple(parts))
    by_name = {check.name: check for check in (*checks, *_paths(workspace))}
    return tuple(by_name.values())


async def examine_lab(name: str) -> tuple[Check, ...]:
    """What that lab says of this host. Raises `WorkbenchError` where there is no such lab."""
    return await _lab(name, await asyncio.to_thread(plugins.load, "labs", name))


async def _lab(name: str, lab: Any) -> tuple[Check, ...]:
    if not hasattr(lab, "examine"):
        return ()
    try:
        found: tuple[Check, ...] = await lab.examine()
    except WorkbenchError as error:
        return (Check(f"lab {name}", "missing", error.what, error.remedy or ""),)
    except plugins.FAILURES as error:
        log.error("lab cannot be examined", lab=name, exc_info=error)
        text = f"{type(error).__name__}: {error}"
        return (Check(f"lab {name}", "missing", text, "See `workbench logs`"),)
    return found


async def _perf() -> Check:
    """What `evidence: perf` of a campaign would count here."""
    here = await perf_stat.detect()
    counts = resctrl.counted() if not (why := resctrl.why_not()) else ()
    caches = why or f"resctrl counts {', '.join(resctrl.FILES[name] for name in counts)}"
    remedy = ""
    if not here.events:
        remedy = "Install linux-perf; lower kernel.perf_event_paranoid, or run as root"
    return Check("perf", "ok" if here.events else "warning", f"{here}; {caches}", remedy)


def _trace() -> Check:
    """Whether `evidence: trace` of a campaign would say anything here."""
    why = kernel_trace.why_not()
    if not why:
        return Check("trace", "ok", "what threads do can be traced")
    return Check("trace", "warning", why, "Only `evidence: trace` of a campaign needs it")


def _noises(labs: tuple[str, ...]) -> list[Check]:
    """What `doctor --measure` left, and the labs that load this host and were never measured."""
    checks = []
    for path in noises.files():
        try:
            noise = noises.read(path)
        except LabError as error:
            checks.append(Check(f"noise {path.stem}", "warning", str(error), error.remedy or ""))
        else:
            checks.append(_noise(noise))
    seen = {check.name for check in checks}
    checks += [
        Check(
            f"noise {lab}",
            "warning",
            "never measured: comparisons rest on general figures",
            f"workbench doctor --measure --lab {lab} (some minutes)",
        )
        for lab in labs
        if lab not in SIMULATED and f"noise {lab}" not in seen
    ]
    return checks


def _noise(noise: HostNoise) -> Check:
    age_s = max(0.0, time.time() - noise.measured_at)
    text = f"measured {_age(age_s)} ago with {noise.generator}, {noise.deployments} deployments: "
    text += f"smallest visible difference {noise.in_words()}"
    if noise.source_limit_rps:
        text += f"; source and sink carry {noise.source_limit_rps:.0f} requests/s"
    name = f"noise {noise.lab}"
    if age_s > OLD_NOISE_S:
        return Check(name, "warning", text, f"workbench doctor --measure --lab {noise.lab}")
    return Check(name, "ok", text)


def _age(seconds: float) -> str:
    """`40 s`, `12 min`, `5 h`, `3 days`."""
    for unit, length, least in (("days", 86400, 172800), ("h", 3600, 7200), ("min", 60, 120)):
        if seconds >= least:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _cores() -> Check:
    mine, all_cores = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    found = f"{mine} of {all_cores} usable"
    if mine < FEWEST_CORES:
        return Check(
            "cores", "warning", found, "Source, sink and a function share one: use at least two"
        )
    return Check("cores", "ok", found)


def _stolen_cpu(stolen_s: float, busy_s: float) -> Check:
    """Of the CPU that was wanted here since the host started, what its hypervisor gave to others.

    An idle host is stolen nothing from, so that it is held against busy time, which it is in.
    """
    share = stolen_s / max(busy_s, stolen_s, 1.0)
    found = f"{share:.0%} of the CPU wanted since this host started was given to others"
    if share > MOST_STOLEN:
        remedy = "Measure on a host of your own, or reserve its cores"
        return Check("stolen CPU", "warning", f"{found} by its hypervisor", remedy)
    return Check("stolen CPU", "ok", found)


def _cgroups() -> Check:
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return Check("cgroups", "ok", "v2")
    if (root / "cpu").exists():
        return Check("cgroups", "ok", "v1")
    return Check("cgroups", "missing", "not mounted", "Mount cgroup2 at /sys/fs/cgroup")


def _disk(folder: Path) -> Check:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    found = f"{free / 1e9:.1f} GB free at {there}"
    if free < LEAST_DISK_BYTES:
        return Check("disk", "warning", found, "Free some space, or choose another --workspace")
    return Check("disk", "ok", found)


def _conntrack() -> Check:
    folder = Path("/proc/sys/net/netfilter")
    try:
        used = int((folder / "nf_conntrack_count").read_text())
        limit = int((folder / "nf_conntrack_max").read_text())
    except (OSError, ValueError):
        return Check("conntrack", "ok", "no table: nothing to overflow")
    found = f"{used} of {limit} entries"
    if used > FULL_CONNTRACK * limit:
        return Check(
            "conntrack",
            "warning",
            found,
            "Wait two minutes, or raise net.netfilter.nf_conntrack_max by sysctl",
        )
    return Check("conntrack", "ok", found)


def _clock() -> Check:
    path = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    try:
        source = path.read_text().strip()
    except OSError:
        return Check("clock", "warning", "unknown", "Latencies are as good as the host's clock")
    if source not in GOOD_CLOCKS:
        return Check(
            "clock",
            "warning",
            source,
            f"Reading it is slow; better: one of {', '.join(GOOD_CLOCKS)}",
        )
    return Check("clock", "ok", source)


def _lacking(part: Any) -> tuple[str, str] | None:
    """What a plugin says that it needs and this installation has not, and what to do."""
    try:
        said: tuple[str, str] | None = part.lacking() if hasattr(part, "lacking") else None
    except plugins.FAILURES as error:
        return f"{type(error).__name__}: {error}", "See `workbench logs`"
    return said


def _plugins(group: str, names: tuple[str, ...], broken: int) -> Check:
    found = ", ".join(names) or "none"
    return Check(f"plugins {group}", "warning" if broken else "ok", found)


def _paths(workspace: Workspace) -> list[Check]:
    return [
        Check("workspace", "ok", str(workspace.root)),
        Check("sessions", "ok", str(workspace.sessions)),
        Check("templates", "ok", str(shipped("templates"))),
        Check("socket", "ok", str(workspace.socket)),
        Check("log", "ok", str(workspace.log)),
        _host_lock(),
    ]


def _host_lock() -> Check:
    lock = HostLock(measuring_lock())
    try:
        lock.must_open()
    except UsageError as error:
        found = f"{error.what}; {lock.path}"
        return Check("measuring lock", "missing", found, error.remedy or "")
    found = f"held by {who}" if (who := lock.told()) else "free"
    return Check("measuring lock", "ok", f"{found}; {lock.path}")
