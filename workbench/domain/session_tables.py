"""Sessions laid out: where each was measured, what was sampled, where each target saturates."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.domain import kpis
from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.configurations import ConfigurationView
from workbench.domain.counts import counted
from workbench.domain.fleets import told
from workbench.domain.lab import EMULATED
from workbench.domain.profiles import BREAKPOINT_RULES, Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.sessions import UNDER_WAY
from workbench.domain.tables import COMMON

if TYPE_CHECKING:
    from workbench.domain.messages import Compared
    from workbench.domain.profiles import ModelScore
    from workbench.domain.samples import Sample
    from workbench.domain.sessions import SessionSummary

_VERDICTS = ("lower", "higher", "no_visible_difference", "not_comparable")


def about(view: SessionView) -> Iterator[str]:
    """What was measured and where, a sentence each."""
    campaign, host = view.campaign, view.host
    invalid = sum(c.invalid for c in view.configurations)
    taken = f"{counted(view.samples_taken, 'sample')}" + f" ({invalid} not valid)" * bool(invalid)
    fleet = view.fleet if view.on_hosts else None
    if fleet is not None:
        taken = f"{fleet.so_far}, whose samples lie on the hosts"
    yield f"Session {view.session}: {view.state}, {taken}"
    if campaign:
        yield (
            f"Campaign {campaign.name} ({campaign.load.key}), KPI {campaign.kpi}, sampler "
            f"{campaign.sampling.method}, seed {view.seed}"
            + (f", SLA {campaign.sla.text}" if campaign.sla and campaign.sla.text else "")
        )
    if fleet is not None:
        names = ", ".join(one.name for one in fleet.hosts)
        yield f"Lab {view.lab}, over {counted(len(fleet.hosts), 'host')}: {names}"
    elif host:
        yield (
            f"Lab {view.lab}: {host.cores} cores, {host.cpu_model}, kernel {host.kernel}, "
            f"cgroup {host.cgroup}, engine {host.engine}"
        )
        if host.is_emulated:
            yield f"Emulated: {host.details[EMULATED]}; its samples meet no others in a model"
    if view.noise:
        yield f"Smallest visible difference of this host: {view.noise.in_words()}"
    elif host and fleet is None and view.lab.partition(":")[0] != "recorded":
        yield (
            "The noise of this host was not measured (`workbench doctor --measure`): "
            "`workbench compare` takes general figures"
        )
    if view.shards:
        hosts = sorted({shard.host for shard in view.shards})
        yield f"Measured by {counted(len(hosts), 'host')}: {', '.join(hosts)}"
    if view.hosts_compared is not None:
        yield told(view.hosts_compared).replace("hosts", "Hosts", 1)
    so_far = "" if view.finished and fleet is None else " so far"
    apart = view.hosts_compared is not None if fleet is None else fleet.anchors > 0
    besides = ", without that at anchor points" if apart else ""
    yield f"Lab time {(view.lab_s if fleet is None else fleet.lab_s) / 60:.1f} min{so_far}{besides}"


def configurations(view: SessionView, target: str) -> AnswerTable:
    """The configurations of a target with their breakpoints, by every rule that answered."""
    fallen = any(b.rule == "collapse" for c in view.configurations for b in c.breakpoints
                 if c.target == target)  # fmt: skip
    rules = [rule for rule in BREAKPOINT_RULES if rule != "collapse" or fallen]
    rows = []
    own = [one for one in view.configurations if one.target == target]
    for one in own:
        found = {b.rule: b for b in one.breakpoints}
        taken = _taken(one.taken, one.invalid)
        stated = (breakpoint_text(found.get(rule)) for rule in rules)
        rows.append((told_apart(one, own), one.state, taken, *stated))
    return AnswerTable.of(("configuration", "state", "samples", *rules), rows)


def on_reference(view: SessionView, target: str) -> AnswerTable | None:
    """What other hosts measured as the reference would have it; None where no host did."""
    compared = view.hosts_compared
    own = [c for c in compared.breakpoints if c.own.target == target] if compared else []
    if compared is None or not own:
        return None
    rows = (
        (
            allotted(ConfigurationView(target, each.own.configuration)),
            each.own.rule,
            each.host,
            breakpoint_text(each.own),
            breakpoint_text(each.carried),
        )
        for each in own
    )
    headings = ("configuration", "rule", "host", "there", f"on {compared.reference}")
    return AnswerTable.of(headings, rows)


def collapses(view: SessionView, target: str) -> Iterator[str]:
    """Where more load carried less, a sentence each."""
    own = [one for one in view.configurations if one.target == target]
    for one in own:
        for found in one.breakpoints:
            if found.rule == "collapse":
                yield f"collapse at {told_apart(one, own)}: {found.note}"


def unsaturated(view: SessionView, target: str) -> Iterator[str]:
    """Where no load saturated anything: up to which load, and what would tell, a sentence each."""
    shown = [c for c in view.configurations if c.target == target]
    capacities = (b for c in shown for b in c.breakpoints if b.rule == "capacity")
    notes = Counter(b.note for b in capacities if b.state == "none_in_range" and b.note)
    for note, many in notes.items():
        yield f"{note} ({many} of {counted(len(shown), 'configuration')}): only a higher load tells"


def invalid_samples(view: SessionView) -> AnswerTable:
    """Samples of campaign and trials that count for nothing, by the reason, most often first."""
    reasons: Counter[str] = Counter()
    for one in view.configurations:
        reasons.update(one.left_out_reasons)
        reasons.update(sample.reason for sample in one.samples if not sample.valid)
    for trial in view.trials:
        reasons.update(t.sample.reason for t in trial.samples if not t.sample.valid)
    return AnswerTable.of(("reason", "samples"), reasons.most_common())


def trials(view: SessionView) -> AnswerTable:
    """What was measured after the campaign."""
    rows = (
        (
            one.purpose,
            ", ".join(dict.fromkeys(taken.target for taken in one.samples)) or None,
            _taken(len(one.samples), one.invalid),
            f"{one.lab_s / 60:.1f} min",
            one.by or None,
            one.outcome + (f" ({one.note})" if one.note else ""),
        )
        for one in view.trials
    )
    return AnswerTable.of(("purpose", "target", "samples", "lab time", "by", "outcome"), rows)


def models(view: SessionView) -> AnswerTable:
    """The stored models in force, with their cross-validated errors."""
    in_force = {(m.target, m.kpi, m.origin): m for m in view.models}
    error, cover = AnswerColumn("MAPE", ".1%"), AnswerColumn("cover", ".0%")
    return AnswerTable.of(
        ("target", "KPI", "version", "method", "samples", "RMSE", error, cover),
        (
            (m.target, m.kpi, m.version, m.method, m.samples, m.score.rmse, m.score.mape,
             m.score.coverage)
            for m in in_force.values()
        ),
    )  # fmt: skip


def scores(found: Sequence[ModelScore]) -> AnswerTable:
    """How well each method predicts what it has not seen (paper A, Table 3); failed ones are left
    out, the best is marked."""
    mape, cover = AnswerColumn("MAPE", ".1%"), AnswerColumn("cover", ".1%", falling=True)
    return AnswerTable.of(
        ("method", "|log error|", "RMSE", "trimmed", "MAE", "MAD", mape, cover, "width", "fit s"),
        (
            (f"{s.method} *" if s.best else s.method, s.log_error, s.rmse, s.rmse_trimmed, s.mae,
             s.mad, s.mape, s.coverage, s.width, s.fit_s)
            for s in found
            if not s.trouble
        ),
    )  # fmt: skip


def canaries(view: SessionView) -> AnswerTable:
    """Canaries, with how they ended."""
    rows = (
        (
            one.plan.chain,
            one.kpi or None,
            f"{len(one.steps)} of {len(one.plan.loads)}",
            max((step.wl for step in one.steps), default=None),
            one.by or None,
            one.ending.note if one.ending else "interrupted" if one.interrupted else "under way",
        )
        for one in view.canaries
    )
    return AnswerTable.of(("chain", "KPI", "steps", "up to", "by", "ended"), rows)


def proposals(view: SessionView) -> AnswerTable:
    """Retrained models that were proposed, and what was decided."""
    rows = []
    for one in view.proposals:
        made, decided = one.proposal, one.decision
        verdict = "open"
        if decided:
            verdict = ("accepted" if decided.accepted else "rejected") + (
                f" by {decided.by}" * bool(decided.by) + f": {decided.why}" * bool(decided.why)
            )
        rows.append((made.id, made.chain, made.kpi, made.statement, verdict))
    return AnswerTable.of(("proposal", "chain", "KPI", "what the samples show", "decision"), rows)


def differences(compared: Compared) -> AnswerTable:
    """Two sessions figure by figure, visible differences first."""
    rows = (
        (
            d.target,
            d.configuration.key,
            d.figure if d.wl is None else f"{d.figure} at {d.wl:.4g}",
            d.first,
            d.second,
            None if d.ratio is None else f"{d.ratio:.3f} [{d.low:.3f}, {d.high:.3f}]",
            d.floor,
            d.verdict.replace("_", " ") + (f": {d.note}" if d.note else ""),
        )
        for d in sorted(compared.differences, key=lambda d: _VERDICTS.index(d.verdict))
    )
    sides = (AnswerColumn(compared.first, ".4g"), AnswerColumn(compared.second, ".4g"))
    headings = ("target", "configuration", "figure", *sides, "ratio", AnswerColumn("floor", ".1%"))
    return AnswerTable.of((*headings, "verdict"), rows)


def sessions(found: Sequence[SessionSummary]) -> AnswerTable:
    """What lies in a workspace."""
    rows = (
        (
            one.name,
            one.state if one.kind == "session" else "recording",
            one.lab,
            one.listed_campaign,
            *_measured(one),
        )
        for one in found
    )
    return AnswerTable.of(
        ("session", "state", "lab", "campaign", "targets", "samples", "changed"), rows
    )


def _measured(one: SessionSummary) -> tuple[str, str, str]:
    """Its targets, samples, and when it changed last."""
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.changed_at))
    return ", ".join(one.targets), _taken(one.samples, one.invalid), changed


def sessions_by_host(found: Mapping[str, Sequence[SessionSummary] | str]) -> AnswerTable:
    """What lies in the workspaces of a fleet's hosts: a host without a session has a line, too."""
    rows: list[tuple[str | None, ...]] = []
    for host, known in found.items():
        if isinstance(known, str):
            rows.append((host, None, known, None, None, None, None))
            continue
        if not known:
            rows.append((host, None, "no session", None, None, None, None))
        rows += (
            (
                host,
                one.name,
                one.state,
                one.listed_campaign,
                *_measured(one),
            )
            for one in known
        )
    return AnswerTable.of(
        ("host", "session", "state", "campaign", "targets", "samples", "changed"), rows
    )


def samples(taken: Sequence[Sample]) -> AnswerTable:
    """What each was taken for, its interval beside it, and what else was carried."""
    of_packets = any(kpis.carried("packets") in sample.kpis for sample in taken)
    kpi, rates = (
        (kpis.LOSS, {kpis.carried("packets"): "packets/s", "jitter_ms": "jitter_ms"})
        if of_packets
        else (kpis.LAG, {"goodput_mbps": "Mbit/s", kpis.STARTUP: "startup_ms"})
        if any(kpis.LAG in sample.kpis for sample in taken)
        else (kpis.P95, {kpis.THROUGHPUT: "requests/s"})
    )
    headings = ("target", "configuration", AnswerColumn("load", ".6g"), kpi)
    carried = tuple(AnswerColumn(title, ".4g") for title in rates.values())
    more = ("usage", AnswerColumn("throttled", ".0%"), "valid", "purpose", "labels")
    return AnswerTable.of(
        (*headings, *carried, *more),
        (
            (
                sample.point.target,
                sample.point.configuration.key,
                sample.point.wl,
                sample.kpis.get(kpi),
                *map(sample.kpi, rates),
                " ".join(
                    f"{vnf}={usage.cpu_share:.0%}"
                    for vnf, usage in sample.usage.items()
                    if vnf not in COMMON
                ),
                sample.throttled_share,
                "yes" if sample.valid else sample.reason,
                sample.purpose,
                " ".join(sample.labels),
            )
            for sample in taken
        ),
    )


def _taken(samples: int, invalid: int) -> str:
    return str(samples) + f" ({invalid} invalid)" * bool(invalid)


def factors(compared: Compared) -> AnswerTable:
    """What each figure of the second is as a multiple of the first's."""
    rows = (
        (
            one.figure,
            f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]",
            one.places,
            None if one.least is None else f"{one.least:.3f} to {one.most:.3f}",
            one.note,
        )
        for one in compared.factors
    )
    over = f"{compared.second} / {compared.first}"
    return AnswerTable.of(("figure", over, "configurations", "of each", ""), rows)


def allotted(view: ConfigurationView) -> str:
    """The allocation in vCPUs, and other parameters as they are."""
    texts = []
    for key, value in view.configuration.resources.items():
        vnf, _, parameter = key.rpartition(".")
        is_cpu = parameter == "vcpu" and not isinstance(value, str)
        texts.append(f"{vnf} {float(value):.4g} vCPU" if is_cpu else f"{key}={value}")
    return ", ".join(texts)


def told_apart(view: ConfigurationView, beside: Sequence[ConfigurationView]) -> str:
    """The allocation, and what of settings and workload is not alike in those `beside` it."""
    given = view.configuration.workload
    varied = [
        f"{key}={value if isinstance(value, str) else f'{value:.12g}'}"
        for key, value in given.items()
        if any(other.configuration.workload.get(key) != value for other in beside)
    ]
    return ", ".join((allotted(view), *varied))


def breakpoint_text(found: Breakpoint | None) -> str:
    """`8120 [7900, 8400]`, or why there is none."""
    if found is None:
        return "-"
    if found.state != "found" or found.wl is None:
        return found.state.replace("_", " ")
    if found.low is None or found.high is None:
        return _digits(found.wl)
    return f"{_digits(found.wl)} [{_digits(found.low)}, {_digits(found.high)}]"


def _digits(load: float) -> str:
    """Four digits, without powers of ten for large ones."""
    return f"{load:.0f}" if load >= 999.95 else f"{load:.4g}"


def ending(view: SessionView) -> str:
    """How the run ended, or in which state the session is."""
    if view.on_hosts and view.state not in UNDER_WAY:
        why = f" ({view.finished.note})" if view.finished and view.finished.note else ""
        return f"The campaign is {view.state}{why}; go on with `{view.fleet_command}`."
    if view.finished:
        text = f"The run ended: {view.finished.outcome}"
        text += f" ({view.finished.note})" if view.finished.note else ""
        text += f"; {view.finished.measured_s / 60:.1f} min of lab time, "
        # `finished` knows of its own run alone, and a campaign that was resumed had several.
        return text + f"{view.ran_s / 60:.1f} min on the clock, pauses left out."
    if view.state == "interrupted":
        return f"Its engine ended before the run did; go on with `workbench resume {view.session}`."
    return f"The session is {view.state}."
