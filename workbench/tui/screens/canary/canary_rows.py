"""From canaries and proposals to the rows and the figure of the screen Canary; plain functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.domain import departures
from workbench.domain.canaries import CanaryView, ProposalView
from workbench.domain.canary_tables import StepLine
from workbench.domain.counts import counted
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.projection import SessionView
from workbench.domain.retraining import CanaryStep, ChainModels
from workbench.domain.samples import Estimate
from workbench.domain.sessions import AT_REST
from workbench.tui import text
from workbench.tui.screens.proposals.chain_names import configuration_name, limit_text, per, primary
from workbench.tui.widgets.rows import Look, Row, Span, fit

SIGNS: dict[str, tuple[str, Look]] = {
    "kept": ("✓", "good"),
    "invalid": ("×", "bad"),
    "guard": ("!", "bad"),
    "restored": ("↩", "warn"),
    "measuring": ("▶", "accent"),
    "planned": ("·", "dim"),
    "left": ("·", "dim"),
}
"""Sign and look of what became of a load."""

ENDINGS: dict[str, tuple[str, Look]] = {
    "done": ("✓", "good"),
    "guard": ("!", "bad"),
    "foreseen": ("!", "warn"),
    "invalid": ("×", "warn"),
    "budget": ("$", "warn"),
    "stopped": ("■", "dim"),
    "failed": ("×", "bad"),
}

ABOUT = (
    "A canary loads a real chain in small steps, up to a share of the SLA's load and under a "
    "guard, and learns what the chain adds to its prediction."
)


@dataclass(frozen=True)
class Record:
    """A canary with the proposal that it led to; one of both may be missing."""

    canary: CanaryView | None
    proposal: ProposalView | None

    @property
    def at(self) -> float:
        if self.canary is not None:
            return self.canary.at
        return self.proposal.at if self.proposal is not None else 0.0

    @property
    def chain(self) -> str:
        if self.canary is not None:
            return self.canary.plan.chain
        return self.proposal.proposal.chain if self.proposal is not None else ""

    @property
    def kpi(self) -> str:
        if self.proposal is not None:
            return self.proposal.proposal.kpi
        return self.canary.kpi if self.canary is not None else ""

    @property
    def configuration(self) -> Configuration | None:
        if self.canary is not None:
            return self.canary.plan.configuration
        reach = self.proposal.proposal.reach if self.proposal is not None else ()
        return reach[0].configuration if reach else None

    @property
    def waits(self) -> bool:
        """Whether somebody has to decide."""
        return self.proposal is not None and self.proposal.decision is None


def records(view: SessionView) -> list[Record]:
    """In the order of their time, the latest last."""
    found = [
        Record(canary, next((p for p in reversed(view.proposals) if p.canary == place), None))
        for place, canary in enumerate(view.canaries)
    ]
    found += [Record(None, made) for made in view.proposals if made.canary is None]
    return sorted(found, key=lambda record: record.at)


def named(record: Record) -> str:
    """A record in one line."""
    parts = [record.chain]
    if (canary := record.canary) is not None:
        ending = canary.ending.state if canary.ending else "cut off"
        state = "under way" if canary.under_way else ending
        parts.append(f"{counted(len(canary.steps), 'step')}, {state}")
    if record.proposal is not None:
        decision = record.proposal.decision
        waits = "waits" if record.proposal.proposal.gain else "waits, no gain"
        verdict = waits if decision is None else "accepted" if decision.accepted else "rejected"
        parts.append(f"proposal {verdict}")
    return " · ".join(part for part in parts if part)


def empty(
    view: SessionView, next_key: str, *, replayed: bool, unmeasurable: str, observer: bool
) -> str:
    """What stands where no canary is, with the key that plans one or why there is none."""
    why = "Nothing can be measured here now."
    if next_key:
        why = f"Press {next_key} to plan one."
    elif replayed:
        why = "A replay measures nothing."
    elif unmeasurable:
        why = f"Nothing can be measured or decided here. {unmeasurable}"
    elif observer:
        why = "Observers may watch; an operator can plan one."
    elif view.state not in AT_REST:
        why = "One can be planned when the campaign has ended."
    return f"No canary yet.\n\n{ABOUT}\n\n{why}"


def chains(view: SessionView) -> list[str]:
    """Targets of the campaign that are chains."""
    campaign = view.campaign
    return [p.target.name for p in campaign.targets if len(p.target.vnfs) > 1] if campaign else []


# ------------------------------------------------------------------------------------ steps


def steps_of(view: SessionView, canary: CanaryView) -> list[StepLine]:
    """What was measured, what is being measured, and what the plan holds beyond."""
    kpis = {t.sample.id: t.sample.kpis for trials in view.trials for t in trials.samples}
    found = [
        StepLine.of(step, _margin(canary.plan.guards, kpis.get(step.sample_id, {})))
        for step in canary.steps
    ]
    reached = max((step.number for step in canary.steps), default=0)
    if (ask := canary.ask) is not None:
        found.append(
            StepLine(ask.number, ask.point.wl, "measuring", ask.forecast, note=_of(ask.why))
        )
        reached = max(reached, ask.number)
    verdict = "planned" if canary.under_way else "left"
    for number, wl in enumerate(canary.plan.loads, start=1):
        if number > reached:
            found.append(StepLine(number, wl, verdict))
    return found


def table(steps: Sequence[StepLine]) -> str:
    """As tab-separated text, to be copied."""
    if not steps:
        return ""
    lines = ["\t".join(("step", "load", "expected", "measured", "low", "high", "verdict"))]
    for step in steps:
        value = step.value
        expected = step.expected.value if step.expected else ""
        figures = (value.value, value.low, value.high) if value else ("", "", "")
        fields = (step.number, step.wl, expected, *figures, step.verdict)
        lines.append("\t".join(text.plain(str(field)) for field in fields))
    return "\n".join(lines) + "\n"


def _of(why: str) -> str:
    """What `step 3 of 10, attempt 2 of 3` says beyond the number."""
    return why.partition(", ")[2] if why.startswith("step ") else why


def _margin(guards: Sequence[Sla], kpis: object) -> float | None:
    found = []
    for guard in guards:
        estimate = kpis.get(guard.kpi) if isinstance(kpis, dict) else None
        if estimate is None or not guard.limit:
            continue
        ratio = estimate.value / guard.limit
        found.append(1 - ratio if guard.direction == "<=" else 1 - 1 / max(ratio, 1e-9))
    return min(found, default=None)


def step_row(step: StepLine, cells: tuple[str, str], here: bool) -> Row:
    sign, look = SIGNS.get(step.verdict, ("?", ""))
    figures, verdict = cells
    plain_look: Look = "dim" if step.verdict in ("planned", "left") else ""
    return (
        ("›" if here else " ", "accent"),
        (f"{sign} ", look),
        (figures, "badge" if here else plain_look),
        (verdict, look),
    )


# ------------------------------------------------------------------------------------ state


def subject_row(view: SessionView, record: Record, place: int, count: int, width: int) -> Row:
    """Chain, KPI, where it is measured, which of how many canaries."""
    kpi = text.kpi_name(record.kpi) if record.kpi else ""
    where = configuration_name(view, record.chain, record.configuration)
    head = " · ".join(part for part in (where, kpi) if part)
    made = "canary" if record.canary is not None else "retraining"
    more = f"  {made} {place + 1} of {count}, {text.day(record.at)}"
    used = len(head) + 1
    return ((f" {head}", "strong"), (more if used + len(more) < width else "", "dim"))


def in_force_row(view: SessionView, chain: str, kpi: str) -> Row:
    """Which model says the chain's KPI now, and since when."""
    models = view.chain_model(chain, kpi)
    return ((" in force ", "dim"), *in_force(models))


def in_force(models: ChainModels | None) -> tuple[Span, ...]:
    if models is None or not models.current:
        return (("the stand-alone profiles", ""),)
    decision = models.versions[models.current - 1].decision
    who = f", accepted by {text.plain(decision.by)} {text.day(decision.at)}"
    return ((f"model {models.current}", "good"), (who, ""))


def alarm_row(view: SessionView, record: Record, key: str) -> Row | None:
    """That later samples left the model in force; None where they did not."""
    drift = next((d for d in view.drifts if (d.chain, d.kpi) == (record.chain, record.kpi)), None)
    if drift is None:
        return None
    return ((f" DRIFT, {key} measures again: {text.sentence(drift.note)} ", "alert"),)


def state_rows(view: SessionView, record: Record, doing: str, width: int) -> list[Row]:
    """Where the canary stands, its guard, and the error before and after."""
    canary = record.canary
    if canary is None:
        return [((" no canary", "dim"), (": retrained with what was stored", ""))]
    rows = [_progress_row(view, canary, doing, width), _guard_row(view, canary, width)]
    if doing and record.proposal is None and not canary.under_way:
        rows[0] = (*rows[0][:2], (f"  ▶ {doing}", "strong"))
    error = live_error(canary.steps)
    if error is not None:
        before, after = (departures.typically(record.kpi, *found) for found in error[:2])
        count = error[2]
        said = "the profiles" if not canary.version else f"model {canary.version}"
        words = f"{_than(before, said)}, {_than(after, 'learned')}"
        look: Look = "good" if error[1][0] < error[0][0] else "warn"
        of = f"  median of {counted(count, 'load')}"
        spans: list[Span] = [(" error  ", "dim"), (words, look)]
        for held in (f"{of}, each predicted before it was measured", of):
            if len(words) + len(held) + 9 <= width:
                spans.append((held, "dim"))
                break
        rows.append(tuple(spans))
    else:
        rows.append(((" error  ", "dim"), ("none yet: it takes two kept loads", "dim")))
    return rows


def _progress_row(view: SessionView, canary: CanaryView, doing: str, width: int) -> Row:
    unit = primary(view, canary.plan.chain)[1]
    total = len(canary.plan.loads)
    if canary.under_way:
        ask = canary.ask
        kept = sum(step.verdict == "kept" for step in canary.steps)
        if ask is None:
            words = doing or "no more loads; learning from what was kept"
        elif ask.kind == "restore":
            words = f"guard tripped: back to {text.number(ask.point.wl)}{per(unit)}"
        else:
            words = f"step {ask.number} of {total} at {text.number(ask.point.wl)}{per(unit)}"
        rest = f"  {kept} kept, {total - kept} to do"
        if (trials := view.under_trial) is not None:
            cap = f" of {text.duration(trials.budget_s)}" if trials.budget_s else ""
            rest += f"  lab {text.duration(trials.lab_s)}{cap}"
        spans: list[Span] = [(" ▶ ", "accent"), (words, "strong"), (rest, "")]
        by = f"  by {text.plain(canary.by)}" if canary.by else ""
        if sum(len(s) for s, _ in spans) + len(by) <= width:
            spans.append((by, "dim"))
        return tuple(spans)
    if canary.interrupted or canary.ending is None:
        return ((" ■ ", "dim"), ("cut off: its engine died; the samples are stored", "warn"))
    sign, look = ENDINGS.get(canary.ending.state, ("?", ""))
    by = f"  by {text.plain(canary.by)}" if canary.by else ""
    note = text.sentence(canary.ending.note)
    return ((f" {sign} ", look), (fit(note, min(len(note), width - 4)), look), (by, "dim"))


def _guard_row(view: SessionView, canary: CanaryView, width: int) -> Row:
    guards = canary.plan.guards
    if not guards:
        return ((" guard  ", "dim"), ("none: nothing stops it", "warn"))
    named = ", ".join(map(limit_text, guards))
    unit = per(primary(view, canary.plan.chain)[1])
    steps = [step for step in steps_of(view, canary) if step.margin is not None]
    spans: list[Span] = [(" guard  ", "dim"), (f"{named}  ", "strong")]
    kept = [step.wl for step in canary.steps if step.verdict == "kept"]
    tripped = next((step for step in canary.steps if step.verdict == "guard"), None)
    ending = canary.ending
    if tripped is not None:
        back = ending.restored_wl if ending is not None else (kept[-1] if kept else None)
        where = f"back to {text.number(back)}{unit}" if back is not None else "no load since then"
        spans.append((f"TRIPPED at {text.number(tripped.wl)}{unit}: {where}", "bad"))
        return tuple(spans)
    if steps:
        closest = min(steps, key=lambda step: step.margin or 0.0)
        left = f"holds, {100 * (closest.margin or 0.0):.0f} % left at worst"
        spans.append((f"{left} ({text.number(closest.wl)}{unit})", "good"))
    if canary.under_way:
        to = f"back to {text.number(kept[-1])}{unit}" if kept else "back to no load"
        used = sum(len(words) for words, _ in spans)
        fits = used + len(f"  if violated: {to}") <= width
        spans.append((f"  if violated: {to}" if fits else f"  else {to}", "dim"))
    return tuple(spans)


Off = tuple[float, float]
"""Median |log error| of what was said of some loads, and by which factor they lean to one side."""


def live_error(steps: Sequence[CanaryStep]) -> tuple[Off, Off, int] | None:
    """How far off the model in force and the one that learns were, and on how many loads.

    Both said a load before it was measured; the first kept one taught nobody yet, and is left out.
    """
    kept = [s for s in steps if s.verdict == "kept" and s.value and s.forecast and s.in_force]
    pairs = [
        (_log(s.value, s.in_force), _log(s.value, s.forecast))
        for s in kept[1:]
        if s.in_force and s.forecast and s.value
    ]
    if not pairs:
        return None
    before, after = (_off(logs) for logs in zip(*pairs, strict=True))
    return before, after, len(pairs)


def _log(measured: Estimate, said: Estimate) -> float:
    return math.log(max(measured.value, 1e-9) / max(said.value, 1e-9))


def _off(logs: Sequence[float]) -> Off:
    size = statistics.median(abs(log) for log in logs)
    return size, math.exp(statistics.fmean(logs))


def _than(words: str, said: str) -> str:
    """`29 times slower than the profiles`, `7 % off learned`."""
    if words == "as predicted":
        return f"as {said}"
    return f"{words} {'' if words.endswith(' off') else 'than '}{said}"
