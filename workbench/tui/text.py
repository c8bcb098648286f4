"""How names, figures and times are written on the screens."""

from __future__ import annotations

import math
import re
import time

from workbench.domain.campaign import Campaign
from workbench.domain.errors import WorkbenchError
from workbench.domain.kpis import of
from workbench.domain.load_words import value_words, workload_name
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.samples import OVERLOAD, Estimate, is_unbounded

SIMULATED_NOTICE = "simulated lab{}: figures are not of your host"
WHY_SIMULATED = {
    "chosen": " (chosen)",
    "stands in": " (Docker could not be used)",
    "": " (chosen, or no Docker engine)",
}
"""By what the session knows of it; those of before do not say."""

_PERCENT = re.compile(r"(?<=\d)%")
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def plain(text: str) -> str:
    """Text from outside without anything that a terminal or a reader could be misled by."""
    if text.isprintable():  # nearly all is, and a screen is made of hundreds of texts
        return text
    return "".join(c if c.isprintable() else "·" for c in text)


def sentence(text: str) -> str:
    """`plain`, with the gap before a percent sign that all figures of the screens have: sentences
    of the engine and of older sessions are stored without."""
    return _PERCENT.sub(" %", plain(text))


def without_place(error: Exception) -> str:
    """What an error says, but for the socket or file that it is about: a banner is one line."""
    if isinstance(error, WorkbenchError):
        error = WorkbenchError(error.what, remedy=error.remedy)
    return plain(str(error))


def plain_lines(text: str) -> str:
    """`plain`, line by line."""
    return "\n".join(plain(line) for line in text.splitlines())


def wrapped(words: str, width: int) -> list[str]:
    """Lines of whole words."""
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def number(value: float) -> str:
    """Three digits and an SI prefix: `0.3`, `12.5`, `780`, `1.25k`, `16k`."""
    if not math.isfinite(value):
        return "–"
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def interval(low: float, high: float) -> str:
    """`[740–820]`; with a comma where a dash beside a minus sign would be misread."""
    if is_unbounded(high):
        return f"[{number(low)}–∞]"
    return f"[{number(low)}{', ' if low < 0.0 else '–'}{number(high)}]"


def estimate(value: Estimate) -> str:
    if value.unbounded:
        return OVERLOAD
    return f"{number(value.value)} {interval(value.low, value.high)}"


def duration(seconds: float) -> str:
    """`0:42`, `8:05`, `1:02:03`."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    clock = f"{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
    return f"{hours}:{clock}" if hours else clock


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def day(at: float) -> str:
    return time.strftime("%m-%d %H:%M", time.localtime(at))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def kpi_parts(kpi: str) -> tuple[str, str]:
    """`p95_ms` is `p95` in `ms`."""
    known = of(kpi)
    return plain(known.short), plain(known.unit)


def kpi_name(kpi: str) -> str:
    """`p95_ms` is `p95 (ms)`."""
    name, unit = kpi_parts(kpi)
    return f"{name} ({unit})" if unit else name


def shares(configuration: Configuration, vnfs: tuple[str, ...]) -> str:
    """The functions' vCPU shares in the order of the chain: `25+50 %`."""
    allotted = [configuration.vcpu(vnf) for vnf in vnfs if f"{vnf}.vcpu" in configuration.resources]
    text = "+".join(f"{100 * cores:g}" for cores in allotted)
    rest = [
        f"{key}={value if isinstance(value, str) else number(value)}"
        for key, value in sorted(configuration.resources.items())
        if key not in {f"{vnf}.vcpu" for vnf in vnfs}
    ]
    return plain(" ".join([f"{text} %"] * bool(text) + rest))


def configuration_name(campaign: Campaign | None, target: str, configuration: Configuration) -> str:
    """`tinyproxy-haproxy 25+50 %`, and those workload values that vary in the campaign."""
    plan = campaign.find_target(target) if campaign is not None else None
    if campaign is None or plan is None:
        return plain(f"{target} {configuration.key}")
    vnfs = tuple(v.name for v in plan.target.vnfs)
    varying = {p.key for p in campaign.given(plan) if len(p.values) > 1}
    workload = [
        f"{workload_name(key)}={value_words(key, value)}"
        for key, value in sorted(configuration.workload.items())
        if key in varying
    ]
    return plain(" ".join([target, shares(configuration, vnfs), *workload]))


def breakpoint_text(found: Breakpoint) -> str:
    """`capacity 780 [740–820]`, or which answer it is instead: up to which load there is none."""
    if found.state == "found" and found.wl is not None:
        text = f"{found.rule} {number(found.wl)}"
        if found.low is not None and found.high is not None:
            text += f" {interval(found.low, found.high)}"
        return text
    if found.state == "none_in_range" and found.note.startswith("no "):
        return f"{found.rule}: {found.note}"
    return f"{found.rule} {found.state.replace('_', ' ')}"


def primary(view: SessionView, target: str) -> tuple[str, str]:
    """Name and unit of a target's `wl`."""
    plan = view.campaign.find_target(target) if view.campaign is not None else None
    if plan is None:
        return "wl", ""
    workload = plan.primary
    return plain(workload.name), plain(workload.unit)
