"""A session laid out: where it was measured, what was sampled, where each target saturates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.configurations import ConfigurationView
from workbench.domain.counts import counted
from workbench.domain.fleets import told
from workbench.domain.profiles import BREAKPOINT_RULES, Breakpoint
from workbench.domain.projection import SessionView

if TYPE_CHECKING:
    from workbench.domain.messages import Compared

_VERDICTS = ("lower", "higher", "no_visible_difference", "not_comparable")


def about(view: SessionView) -> Iterator[str]:
    """What was measured and where, a sentence each."""
    campaign, host = view.campaign, view.host
    invalid = sum(c.invalid for c in view.configurations)
    yield (
        f"Session {view.session}: {view.state}, {counted(view.samples_taken, 'sample')}"
        + f" ({invalid} not valid)" * bool(invalid)
    )
    if campaign:
        yield (
            f"Campaign {campaign.name} ({campaign.load.key}), KPI {campaign.kpi}, sampler "
            f"{campaign.sampling.method}, seed {view.seed}"
            + (f", SLA {campaign.sla.text}" if campaign.sla and campaign.sla.text else "")
        )
    if host:
        yield (
            f"Lab {view.lab}: {host.cores} cores, {host.cpu_model}, kernel {host.kernel}, "
            f"cgroup {host.cgroup}, engine {host.engine}"
        )
    if view.noise:
        yield f"Smallest visible difference of this host: {view.noise.in_words()}"
    elif host and view.lab.partition(":")[0] != "recorded":
        yield (
            "The noise of this host was not measured (`workbench doctor --measure`): "
            "`workbench compare` takes general figures"
        )
    if view.shards:
        hosts = sorted({shard.host for shard in view.shards})
        yield f"Measured by {counted(len(hosts), 'host')}: {', '.join(hosts)}"
    if view.hosts_compared is not None:
        yield f"As compared: {told(view.hosts_compared)}"
    yield f"Lab time {view.lab_s / 60:.1f} min so far"


def configurations(view: SessionView, target: str) -> AnswerTable:
    """The configurations of a target with their breakpoints, by every rule that answered."""
    fallen = any(b.rule == "collapse" for c in view.configurations for b in c.breakpoints
                 if c.target == target)  # fmt: skip
    rules = [rule for rule in BREAKPOINT_RULES if rule != "collapse" or fallen]
    rows = []
    for one in view.configurations:
        if one.target == target:
            found = {b.rule: b for b in one.breakpoints}
            taken = str(one.taken) + (f" ({one.invalid} invalid)" if one.invalid else "")
            stated = (breakpoint_text(found.get(rule)) for rule in rules)
            rows.append((allotted(one), one.state, taken, *stated))
    return AnswerTable.of(("configuration", "state", "samples", *rules), rows)


def collapses(view: SessionView, target: str) -> Iterator[str]:
    """Where more load carried less, a sentence each."""
    for one in view.configurations:
        for found in one.breakpoints:
            if one.target == target and found.rule == "collapse":
                yield f"collapse at {allotted(one)}: {found.note}"


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
            str(len(one.samples)) + (f" ({one.invalid} invalid)" if one.invalid else ""),
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


def allotted(view: ConfigurationView) -> str:
    """The allocation in vCPUs, and other parameters as they are."""
    texts = []
    for key, value in view.configuration.resources.items():
        vnf, _, parameter = key.rpartition(".")
        is_cpu = parameter == "vcpu" and not isinstance(value, str)
        texts.append(f"{vnf} {float(value):.4g} vCPU" if is_cpu else f"{key}={value}")
    return ", ".join(texts)


def breakpoint_text(found: Breakpoint | None) -> str:
    """`8120 [7900, 8400]`, or why there is none."""
    if found is None:
        return "-"
    if found.state != "found" or found.wl is None:
        return found.state.replace("_", " ")
    if found.low is None or found.high is None:
        return f"{found.wl:.4g}"
    return f"{found.wl:.4g} [{found.low:.4g}, {found.high:.4g}]"


def ending(view: SessionView) -> str:
    """How the run ended, or in which state the session is."""
    if view.finished:
        text = f"The run ended: {view.finished.outcome}"
        text += f" ({view.finished.note})" if view.finished.note else ""
        text += f"; {view.finished.measured_s / 60:.1f} min of lab time, "
        return text + f"{view.finished.wall_s / 60:.1f} min on the wall clock."
    if view.state == "interrupted":
        return f"Its engine ended before the run did; go on with `workbench resume {view.session}`."
    return f"The session is {view.state}."
