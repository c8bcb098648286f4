"""Sessions, what they differ by, and their samples: in words and tables."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from workbench.cli.tables import table
from workbench.domain import kpis
from workbench.domain.counts import counted
from workbench.domain.event_log import Repeated, said_once
from workbench.domain.fleets import told

if TYPE_CHECKING:
    from workbench.domain.configurations import ConfigurationView
    from workbench.domain.messages import Compared
    from workbench.domain.profiles import Breakpoint
    from workbench.domain.projection import SessionView
    from workbench.domain.samples import Sample
    from workbench.domain.trials import TrialsView


def comparison(compared: Compared) -> str:
    """Figures side by side, visible differences first, then what else is to be known."""
    order = ("lower", "higher", "no_visible_difference", "not_comparable")
    rows = [
        [
            d.target,
            d.configuration.key,
            d.figure if d.wl is None else f"{d.figure} at {d.wl:.4g}",
            _figure(d.first),
            _figure(d.second),
            "-" if d.ratio is None else f"{d.ratio:.3f} [{d.low:.3f}, {d.high:.3f}]",
            f"{d.floor:.1%}",
            d.verdict.replace("_", " ") + (f": {d.note}" if d.note else ""),
        ]
        for d in sorted(compared.differences, key=lambda d: order.index(d.verdict))
    ]
    headings = ["target", "configuration", "figure", compared.first, compared.second]
    lines = [table([*headings, "ratio", "floor", "verdict"], rows)] if rows else []
    if compared.factors:
        lines += ["", *_factors(compared)]
    claimed = sum(d.verdict in ("lower", "higher") for d in compared.differences)
    judged = sum(d.ratio is not None for d in compared.differences)
    lines += ["", *(f"Note: {warning}" for warning in compared.warnings)]
    if compared.factors:
        return "\n".join(lines)
    lines.append(
        f"{claimed} of {judged} figures differ visibly. A figure whose ratio is within the floor "
        "is no difference; of figures that are the same one in twenty is claimed at most."
    )
    return "\n".join(lines)


def _factors(compared: Compared) -> list[str]:
    """What each figure of the second is as a multiple of the first's."""
    rows = [
        [
            factor.figure,
            f"{factor.value:.3f} [{factor.low:.3f}, {factor.high:.3f}]",
            str(factor.places),
            f"{factor.least:.3f} to {factor.most:.3f}",
            factor.note,
        ]
        for factor in compared.factors
    ]
    headings = ["figure", f"{compared.second} / {compared.first}", "configurations", "of each", ""]
    return [table(headings, rows)]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def explain(view: SessionView) -> str:
    """A session in words and tables."""
    from workbench.domain.gains import nothing_gained

    lines = [_header(view), ""]
    targets = list(dict.fromkeys(c.target for c in view.configurations))
    for target in targets:
        own = [c for c in view.configurations if c.target == target]
        lines.append(target)
        lines.append(_configurations_table(own))
        lines += [
            f"  collapse at {_allocation(c)}: {b.note}"
            for c in own
            for b in c.breakpoints
            if b.rule == "collapse"
        ]
        lines.append("")
    if wasted := nothing_gained(view):
        lines += ["Where more vCPU brings nothing:", *(f"  {gain.text}" for gain in wasted), ""]
    if view.trials:
        lines += ["Measured after the campaign:", _trials_table(view.trials), ""]
    notes = said_once(line for line in view.log if line.level != "info")[-10:]
    if notes:
        lines += ["Warnings and errors (the last ten):", *map(_note, notes), ""]
    lines.append(_ending(view))
    return "\n".join(lines)


def _note(said: Repeated) -> str:
    """What was said more than once has its number and its first and last time."""
    text = said.line.text
    if said.times > 1:
        text += f" (× {said.times}, {_when(said.since)} to {_when(said.line.at)})"
    return f"  {text}"


def _when(at: float) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.localtime(at))


def _header(view: SessionView) -> str:
    campaign, host = view.campaign, view.host
    parts = [f"Session {view.session}: {view.state}, {counted(view.samples_taken, 'sample')}"]
    invalid = sum(c.invalid for c in view.configurations)
    if invalid:
        parts[0] += f" ({invalid} not valid)"
    if campaign:
        load = campaign.load.key
        parts.append(
            f"Campaign {campaign.name} ({load}), KPI {campaign.kpi}, sampler "
            f"{campaign.sampling.method}, seed {view.seed}"
            + (f", SLA {campaign.sla.text}" if campaign.sla and campaign.sla.text else "")
        )
    if host:
        parts.append(
            f"Lab {view.lab}: {host.cores} cores, {host.cpu_model}, kernel {host.kernel}, "
            f"cgroup {host.cgroup}, engine {host.engine}"
        )
    if view.noise:
        parts.append(f"Smallest visible difference of this host: {view.noise.in_words()}")
    elif host and view.lab.partition(":")[0] != "recorded":
        parts.append(
            "The noise of this host was not measured (`workbench doctor --measure`): "
            "`workbench compare` takes general figures"
        )
    if view.shards:
        hosts = sorted({shard.host for shard in view.shards})
        parts.append(f"Measured by {counted(len(hosts), 'host')}: {', '.join(hosts)}")
    if view.hosts_compared is not None:
        parts.append(f"As compared: {told(view.hosts_compared)}")
    parts.append(f"Lab time {view.lab_s / 60:.1f} min so far")
    return "\n".join(parts)


def _configurations_table(views: list[ConfigurationView]) -> str:
    from workbench.domain.profiles import BREAKPOINT_RULES

    fallen = any(b.rule == "collapse" for view in views for b in view.breakpoints)
    rules = [rule for rule in BREAKPOINT_RULES if rule != "collapse" or fallen]
    rows = []
    for view in views:
        by_rule = {b.rule: b for b in view.breakpoints}
        rows.append(
            [
                _allocation(view),
                view.state,
                str(view.taken) + (f" ({view.invalid} invalid)" if view.invalid else ""),
                *(_breakpoint_text(by_rule.get(rule)) for rule in rules),
            ]
        )
    return table(["configuration", "state", "samples", *rules], rows)


def _trials_table(trials: list[TrialsView]) -> str:
    rows = [
        [
            one.purpose,
            ", ".join(dict.fromkeys(taken.target for taken in one.samples)) or "-",
            str(len(one.samples)) + (f" ({one.invalid} invalid)" if one.invalid else ""),
            f"{one.lab_s / 60:.1f} min",
            one.by or "-",
            one.outcome + (f" ({one.note})" if one.note else ""),
        ]
        for one in trials
    ]
    return table(["purpose", "target", "samples", "lab time", "by", "outcome"], rows)


def _allocation(view: ConfigurationView) -> str:
    """The allocation in per cent of a core, and other parameters as they are."""
    texts = []
    for key, value in view.configuration.resources.items():
        vnf, _, parameter = key.rpartition(".")
        is_cpu = parameter == "vcpu" and not isinstance(value, str)
        texts.append(f"{vnf} {float(value):.4g} vCPU" if is_cpu else f"{key}={value}")
    return ", ".join(texts)


def _breakpoint_text(found: Breakpoint | None) -> str:
    """`8120 [7900, 8400]`, or why there is none."""
    if found is None:
        return "-"
    if found.state != "found" or found.wl is None:
        return found.state.replace("_", " ")
    if found.low is None or found.high is None:
        return f"{found.wl:.4g}"
    return f"{found.wl:.4g} [{found.low:.4g}, {found.high:.4g}]"


def samples_table(taken: list[Sample]) -> str:
    """What a sample was taken for, its interval beside it, and what else was carried."""
    from workbench.domain.tables import COMMON

    of_packets = any(kpis.carried("packets") in sample.kpis for sample in taken)
    kpi, rates = (
        (kpis.LOSS, {kpis.carried("packets"): "packets/s", "jitter_ms": "jitter_ms"})
        if of_packets
        else (kpis.P95, {kpis.THROUGHPUT: "requests/s"})
    )
    rows = []
    for sample in taken:
        stated = sample.kpis.get(kpi)
        rows.append(
            [
                sample.point.target,
                sample.point.configuration.key,
                f"{sample.point.wl:.4g}",
                f"{stated.value:.3g} [{stated.low:.3g}, {stated.high:.3g}]" if stated else "-",
                *(_figure(sample.kpi(name)) for name in rates),
                " ".join(
                    f"{vnf}={usage.cpu_share:.0%}"
                    for vnf, usage in sample.usage.items()
                    if vnf not in COMMON
                ),
                f"{sample.throttled_share:.0%}",
                "yes" if sample.valid else sample.reason,
                sample.purpose,
                " ".join(sample.labels),
            ]
        )
    headings = ["target", "configuration", "wl", kpi, *rates.values(), "usage", "throttled"]
    return table([*headings, "valid", "purpose", "labels"], rows)


def _ending(view: SessionView) -> str:
    if view.finished:
        text = f"The run ended: {view.finished.outcome}"
        text += f" ({view.finished.note})" if view.finished.note else ""
        text += f"; {view.finished.measured_s / 60:.1f} min of lab time, "
        return text + f"{view.finished.wall_s / 60:.1f} min on the wall clock."
    if view.state == "interrupted":
        return f"Its engine ended before the run did; go on with `workbench resume {view.session}`."
    return f"The session is {view.state}."
