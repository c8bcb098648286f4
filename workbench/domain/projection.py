"""The state that a screen shows, folded from events.

Live, attached late and replayed screens hold the same `SessionView`: the engine's snapshot at
sequence N is the fold of the events up to N, and a client goes on folding from there. A screen
cannot tell the three apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from workbench.domain import canaries
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.canaries import CanaryView, ProposalView
from workbench.domain.curation import (
    BudgetExtended,
    PointRequested,
    SampleDecided,
    SampleVerdict,
    as_measured,
)
from workbench.domain.durations import duration
from workbench.domain.events import (
    BypassMeasured,
    CampaignPlanned,
    CanaryEnded,
    CanaryStarted,
    CanaryStepped,
    ConfigurationFinished,
    ConfigurationStarted,
    DriftSeen,
    Event,
    GreedyScaled,
    InfluenceMeasured,
    ModelFitted,
    ModelProposed,
    ModelRolledBack,
    Noted,
    PointAsked,
    ProposalDecided,
    RecommendationIssued,
    RecommendationVerified,
    RunContinued,
    RunFinished,
    RunPaused,
    RunStarted,
    SampleTaken,
    SessionCreated,
    StopRequested,
    TargetDeployed,
    TargetModelled,
    TrialsFinished,
    TrialsStarted,
)
from workbench.domain.lab import BypassCurve, HostFacts, HostNoise
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import (
    Breakpoint,
    Curve,
    ModelOrigin,
    ModelVersion,
    ParameterInfluence,
)
from workbench.domain.recommendations import IssuedRecommendation, Recommendation
from workbench.domain.retraining import ChainModels, Drift
from workbench.domain.samples import Estimate, Sample, TrialPurpose, Usage
from workbench.domain.sessions import Outcome, Plan, SessionState, TrialsOutcome
from workbench.domain.topology import VnfTemplate

_STATE_AFTER: Mapping[Outcome, SessionState] = {
    "done": "finished",
    "budget": "finished",
    "stopped": "stopped",
    "aborted": "stopped",
    "failed": "failed",
}

LOG_LINES = 500
"""Events that the view keeps as text; the session file keeps all of them."""
MOST_POINTS = 4000
"""Samples that the view keeps for plots, of all configurations; the session file keeps all."""
FEWEST_POINTS = 8
"""Of one configuration, however many there are."""


@dataclass(frozen=True)
class SamplePoint:
    """What a plot and a list need of a sample."""

    id: str
    wl: float
    repetition: int
    kpis: Mapping[str, Estimate]
    usage: Mapping[str, Usage]
    valid: bool
    reason: str
    labels: tuple[str, ...]
    throttled_share: float
    verdict: SampleVerdict = "open"
    """What somebody decided about it."""
    measured: str = ""
    """Why it was not valid before that; empty: it was."""

    def decided(self, verdict: SampleVerdict) -> SamplePoint:
        """The same with a decision in force."""
        reason = "rejected" if verdict == "rejected" else self.measured
        return replace(self, verdict=verdict, reason=reason, valid=not reason)

    @classmethod
    def of(cls, sample: Sample) -> SamplePoint:
        plain = as_measured(sample)
        return cls(
            sample.id,
            sample.point.wl,
            sample.point.repetition,
            sample.kpis,
            sample.usage,
            sample.valid,
            sample.reason,
            sample.labels,
            sample.throttled_share,
            "rejected" if sample.reason == "rejected" else "open",
            plain.reason or ("" if plain.valid else "unknown"),
        )


@dataclass
class ConfigurationView:
    """One configuration of one target: its samples, its curve, what is asked next."""

    target: str
    configuration: Configuration
    state: str = "planned"
    """`planned`, `sampling`, or its `ConfigurationOutcome`."""
    samples: list[SamplePoint] = field(default_factory=list)
    """In the order they were taken; of a very long session some are left out."""
    left_out: int = 0
    left_out_reasons: Mapping[str, int] = field(default_factory=dict)
    """Of those left out, the invalid ones by their reason."""
    curve: Curve | None = None
    breakpoints: tuple[Breakpoint, ...] = ()
    asked: PointAsked | None = None
    """The point being measured or to be measured next; None when nothing is asked."""
    note: str = ""

    @cached_property
    def key(self) -> str:
        return f"{self.target}/{self.configuration.key}"

    @property
    def taken(self) -> int:
        """Samples, those that are left out included."""
        return len(self.samples) + self.left_out

    @property
    def invalid(self) -> int:
        return sum(not s.valid for s in self.samples) + sum(self.left_out_reasons.values())

    def thin(self) -> int:
        """Leave out every other sample but the last, and none that is pinned; how many."""
        if len(self.samples) <= FEWEST_POINTS:
            return 0
        out = [sample for sample in self.samples[-2::-2] if sample.verdict != "pinned"]
        gone = set(map(id, out))
        self.samples = [sample for sample in self.samples if id(sample) not in gone]
        self.left_out += len(out)
        reasons = Counter(self.left_out_reasons)
        reasons.update(sample.reason for sample in out if not sample.valid)
        self.left_out_reasons = dict(reasons)  # a copy: snapshots share the one before
        return len(out)


@dataclass(frozen=True)
class TrialPoint:
    """A sample of a trial, with the place that a sample of a configuration has by itself."""

    target: str
    configuration: Configuration
    sample: SamplePoint


@dataclass
class TrialsView:
    """Points that somebody had measured after the campaign, one after the other."""

    purpose: TrialPurpose
    by: str
    at: float
    """When they began, in seconds since the epoch."""
    budget_s: float | None = None
    plans: tuple[TargetPlan, ...] = ()
    """Targets and allocations that the campaign does not have."""
    templates: tuple[VnfTemplate, ...] = ()
    samples: list[TrialPoint] = field(default_factory=list)
    lab_s: float = 0.0
    outcome: TrialsOutcome = "running"
    note: str = ""

    @property
    def invalid(self) -> int:
        return sum(not taken.sample.valid for taken in self.samples)


@dataclass(frozen=True)
class LogLine:
    """One line of the event log; `seq` leads back to the event, `sample` to its sample."""

    seq: int
    at: float
    level: str
    text: str
    sample: str = ""


@dataclass
class SessionView:
    """A session as of sequence number `seq`."""

    session: str
    seq: int = 0
    at: float = 0.0
    state: SessionState = "planned"
    campaign: Campaign | None = None
    lab: str = ""
    seed: int = 0
    host: HostFacts | None = None
    noise: HostNoise | None = None
    bypasses: list[BypassCurve] = field(default_factory=list)
    """What source and sink do on their own, one for each kind of load."""
    plan: Plan | None = None
    budget_s: float | None = None
    configurations: list[ConfigurationView] = field(default_factory=list)
    """In the order of the plan."""
    points: int = 0
    """Samples that these hold."""
    decisions: dict[str, SampleDecided] = field(default_factory=dict)
    """The last on each sample, by its id."""
    requested: list[PointRequested] = field(default_factory=list)
    """Points that somebody asked for and that are not measured yet."""
    current: str = ""
    """Key of the configuration that is being measured."""
    started_at: float | None = None
    """When the first run started."""
    lab_s: float = 0.0
    """Lab seconds spent: samples and deployments, and what a run that ended counted besides; those
    of trials included."""
    log: list[LogLine] = field(default_factory=list)
    finished: RunFinished | None = None
    models: list[ModelVersion] = field(default_factory=list)
    """Every version of every target and KPI, in the order they were made."""
    influences: list[ParameterInfluence] = field(default_factory=list)
    """The latest of each target."""
    recommendations: list[IssuedRecommendation] = field(default_factory=list)
    """In the order in which they were issued."""
    trials: list[TrialsView] = field(default_factory=list)
    """What was measured after the campaign; `configurations` hold the campaign's samples only."""

    canaries: list[CanaryView] = field(default_factory=list)
    """In the order in which they were started."""
    proposals: list[ProposalView] = field(default_factory=list)
    """In the order in which they were made; one that is made again has the later place."""
    drifts: list[Drift] = field(default_factory=list)
    """Alarms of models that are still in force, at most one for each chain and KPI."""
    chain_models: list[ChainModels] = field(default_factory=list)
    """Retrained models by chain and KPI: versions, what is proposed, what was rejected."""

    def configuration(self, key: str) -> ConfigurationView | None:
        if len(self._by_key) != len(self.configurations):
            del self._by_key
        return self._by_key.get(key)

    @cached_property
    def _by_key(self) -> dict[str, ConfigurationView]:
        """Every event asks for one of perhaps thousands."""
        return {c.key: c for c in self.configurations}

    def model(self, target: str, kpi: str, origin: ModelOrigin = "profile") -> ModelVersion | None:
        """The version in force of those that came about in one way; None where there is none."""
        own = (target, kpi, origin)
        return next((m for m in reversed(self.models) if (m.target, m.kpi, m.origin) == own), None)

    def next_version(self, target: str, kpi: str) -> int:
        """The number that the next model of a KPI gets, however it comes about."""
        return 1 + max(
            (m.version for m in self.models if (m.target, m.kpi) == (target, kpi)), default=0
        )

    def chain_model(self, chain: str, kpi: str) -> ChainModels | None:
        """What became of a chain's retrained models; None where none was ever proposed."""
        return next((m for m in self.chain_models if (m.chain, m.kpi) == (chain, kpi)), None)

    def recommendation(self, id: str) -> IssuedRecommendation | None:
        return next((r for r in self.recommendations if r.recommendation.id == id), None)

    @property
    def samples_taken(self) -> int:
        """The campaign's own."""
        return sum(c.taken for c in self.configurations)

    @property
    def trial_samples(self) -> int:
        return sum(len(trials.samples) for trials in self.trials)

    @property
    def trials_s(self) -> float:
        """Lab seconds of `lab_s` that trials cost."""
        return sum(trials.lab_s for trials in self.trials)

    @property
    def under_trial(self) -> TrialsView | None:
        """The trials that are under way."""
        return next((t for t in self.trials[-1:] if t.outcome == "running"), None)

    @property
    def under_canary(self) -> CanaryView | None:
        """The canary that is under way; it may wait for the lab."""
        return canaries.under_way(self.canaries)

    def apply(self, event: Event) -> None:
        """Fold one event. Events that were folded already are ignored, so replays may overlap."""
        if event.seq <= self.seq:
            return
        self.seq, self.at = event.seq, event.at
        level, text, sample = "info", "", ""
        match event.fact:
            case SessionCreated(campaign=campaign, lab=lab, seed=seed, host=host, noise=noise):
                self.campaign, self.lab, self.seed = campaign, lab, seed
                self.host, self.noise = host, noise
                text = f"session created: campaign {campaign.name} on lab {lab}, seed {seed}"
            case CampaignPlanned(plan=plan):
                self.plan = plan
                self.configurations = [
                    ConfigurationView(p.target, p.configuration) for p in plan.configurations
                ]
                self.__dict__.pop("_by_key", None)
                text = (
                    f"planned: {len(plan.configurations)} configurations, at most "
                    f"{plan.samples} samples, about {duration(plan.lab_s)} of lab time"
                )
            case RunStarted(resumed=resumed, budget_s=budget_s):
                self._cut_trials_off()
                canaries.cut_off(self.canaries)
                self.state, self.budget_s, self.finished = "running", budget_s, None
                self.started_at = self.started_at or event.at
                text = "run resumed" if resumed else "run started"
            case TargetDeployed(target=target, path=path, lab_s=lab_s):
                self._spend(lab_s)
                text = f"{target} deployed: {path}"
            case BypassMeasured(curve=bypass, lab_s=lab_s):
                self._spend(lab_s)
                self.bypasses.append(bypass)
                most = max((p.throughput_rps for p in bypass.points), default=0.0)
                text = (
                    f"bypass measured: {bypass.generator}, {bypass.load_model}, "
                    f"{'kept' if bypass.keep_alive else 'closing'} connections: {most:.0f}/s"
                )
            case ConfigurationStarted(target=target, configuration=configuration):
                view = self.place(target, configuration)
                view.state = "sampling"
                text = f"{view.key} started"
            case PointAsked() as asked:
                view = self.place(asked.target, asked.configuration)
                view.asked, self.current = asked, view.key
            case SampleTaken(sample=taken):
                self._spend(taken.lab_s)
                place = taken.point.target, taken.point.configuration
                if (trials := self.under_trial) is not None:
                    trials.samples.append(TrialPoint(*place, SamplePoint.of(taken)))
                else:
                    view = self.place(*place)
                    view.samples.append(SamplePoint.of(taken))
                    self.current = view.key
                    self.requested = [r for r in self.requested if r.point != taken.point]
                    self.points += 1
                    if self.points > MOST_POINTS:
                        self.points -= sum(c.thin() for c in self.configurations)
                level, sample = ("info" if taken.valid else "warning"), taken.id
                text = _sample_line(taken, self.campaign.kpi if self.campaign else "p95_ms")
            case ModelFitted() as fitted:
                view = self.place(fitted.target, fitted.configuration)
                view.curve, view.breakpoints = fitted.curve, fitted.breakpoints
            case ConfigurationFinished() as finished:
                view = self.place(finished.target, finished.configuration)
                view.state, view.note, view.asked = finished.outcome, finished.note, None
                text = f"{view.key} {finished.outcome} after {finished.samples} samples"
                text += f": {finished.note}" if finished.note else ""
                level = "warning" if finished.outcome == "unusable" else "info"
            case RunPaused(by=by):
                # Trials leave the state as the campaign's end made it.
                self.state = self.state if self.under_trial else "paused"
                text = f"paused{_by(by)}"
            case RunContinued(by=by):
                self.state = self.state if self.under_trial else "running"
                text = f"continued{_by(by)}"
            case StopRequested(by=by, abort=abort):
                text = f"{'abort' if abort else 'stop after this sample'} requested{_by(by)}"
            case Noted(level=noted_level, text=noted):
                level, text = noted_level, noted
            case RunFinished() as run:
                self.finished = run
                self.state = _STATE_AFTER[run.outcome]
                self.lab_s = max(self.lab_s, run.measured_s + self.trials_s)
                for view in self.configurations:
                    view.asked = None
                level = "error" if run.outcome == "failed" else "info"
                text = f"run {run.outcome}: {run.samples} samples, {run.invalid} invalid"
                text += f": {run.note}" if run.note else ""
            case TrialsStarted() as started:
                self._cut_trials_off()
                if started.purpose != "canary":
                    canaries.cut_off(self.canaries)
                self.trials.append(
                    TrialsView(
                        started.purpose,
                        started.by,
                        event.at,
                        started.budget_s,
                        started.plans,
                        started.templates,
                    )
                )
                if self.host is not None:
                    digests = {**started.image_digests, **self.host.image_digests}
                    self.host = replace(self.host, image_digests=digests)
                text = f"{started.purpose} started{_by(started.by)}"
            case TrialsFinished() as ended:
                if (trials := self.under_trial) is not None:
                    trials.outcome, trials.note = ended.outcome, ended.note
                    self.lab_s += max(0.0, ended.lab_s - trials.lab_s)
                    trials.lab_s = max(trials.lab_s, ended.lab_s)
                level = "error" if ended.outcome == "failed" else "info"
                text = f"{trials.purpose if trials else 'trials'} {ended.outcome}: "
                text += f"{ended.samples} samples, {ended.invalid} invalid"
                text += f": {ended.note}" if ended.note else ""
            case TargetModelled(model=model, note=note):
                self.models.append(ModelVersion.of(model, event.seq, event.at))
                level = "warning" if note else "info"
                text = (
                    f"{model.target}: model {model.version} of {model.kpi} is {model.method}, "
                    f"fitted to {len(model.sample_ids)} samples"
                )
                text += f"; {note}" if note else ""
            case InfluenceMeasured(influence=measured):
                others = [i for i in self.influences if i.target != measured.target]
                self.influences = [*others, measured]
                text = f"{measured.target}: influence of {', '.join(measured.parameters)} measured"
            case RecommendationIssued(recommendation=issued):
                self.recommendations.append(IssuedRecommendation(issued, event.seq))
                text = _recommendation_line(issued)
            case RecommendationVerified(recommendation=id, verified=verified, by=by):
                self._amend(id, verified=verified, lab_iterations=1, lab_s=verified.lab_s)
                level = "info" if verified.met else "warning"
                verdict = "holds" if verified.met else "does not hold"
                text = f"recommendation {id} {verdict} on the lab{_by(by)}"
                text += f": {verified.note}" if verified.note else ""
            case GreedyScaled(recommendation=id, greedy=greedy, by=by):
                self._amend(id, greedy=greedy)
                text = f"greedy scaling beside recommendation {id}{_by(by)}: "
                text += f"{greedy.lab_iterations} allocations on the lab"
                text += f"; {greedy.note}" if greedy.note else ""
            case SampleDecided() as decision:
                level, text, sample = self._decide(decision)
            case PointRequested() as wanted:
                self.requested = [*self.requested, wanted]
                key = f"{wanted.target} {wanted.configuration.key}"
                text = f"{key} wl={wanted.wl:g} requested{_by(wanted.by)}"
            case BudgetExtended(budget_s=budget_s, by=by):
                self.budget_s = budget_s
                text = f"budget extended to {duration(budget_s)}{_by(by)}"
            case (
                CanaryStarted()
                | CanaryStepped()
                | CanaryEnded()
                | ModelProposed()
                | DriftSeen()
                | ProposalDecided()
                | ModelRolledBack()
            ) as fact:
                level, text, sample = canaries.fold(self, fact, event.at)
        if text:
            self.log.append(LogLine(event.seq, event.at, level, text, sample))
            del self.log[:-LOG_LINES]

    def _decide(self, decision: SampleDecided) -> tuple[str, str, str]:
        """Level and words of the event log, and the sample."""
        self.decisions = {**self.decisions, decision.sample: decision}
        for item in self.configurations:
            for index, point in enumerate(item.samples):
                if point.id == decision.sample:
                    item.samples[index] = point.decided(decision.verdict)
        words = {"rejected": "rejected", "pinned": "pinned", "open": "as measured again"}
        text = f"sample {decision.sample} {words[decision.verdict]}{_by(decision.by)}"
        text += f": {decision.why}" if decision.why else ""
        return "warning" if decision.verdict == "rejected" else "info", text, decision.sample

    def _amend(self, id: str, **figures: Any) -> None:
        """A stored recommendation with what the lab said of it; it keeps its place."""
        self.recommendations = [
            replace(issued, recommendation=replace(issued.recommendation, **figures))
            if issued.recommendation.id == id
            else issued
            for issued in self.recommendations
        ]

    def cut_off(self) -> None:
        """Trials and a canary without an end: their engine died."""
        self._cut_trials_off()
        canaries.cut_off(self.canaries)

    def _cut_trials_off(self) -> None:
        if (trials := self.under_trial) is not None:
            trials.outcome = "interrupted"

    def _spend(self, lab_s: float) -> None:
        self.lab_s += lab_s
        if (trials := self.under_trial) is not None:
            trials.lab_s += lab_s

    def place(self, target: str, configuration: Configuration) -> ConfigurationView:
        """The view of a configuration, which is made where there is none."""
        key = f"{target}/{configuration.key}"
        found = self.configuration(key)
        if found is None:
            found = self._by_key[key] = ConfigurationView(target, configuration)
            self.configurations.append(found)
        return found


def _by(who: str) -> str:
    return f" by {who}" if who else ""


def _sample_line(sample: Sample, kpi: str) -> str:
    point = sample.point
    where = f"{point.target} {point.configuration.key} wl={point.wl:g}"
    estimate = sample.kpis.get(kpi)
    figure = f"{kpi}={estimate.value:.3g}" if estimate else f"{kpi} not stated"
    return f"{where}: {figure}" + ("" if sample.valid else f", not valid: {sample.reason}")


def _recommendation_line(issued: Recommendation) -> str:
    asked = "; ".join(sla.text or f"{sla.kpi}{sla.direction}{sla.limit:g}" for sla in issued.slas)
    chosen = issued.chosen
    found = "nothing meets it" if chosen is None else f"{chosen.cost:.4g} {chosen.cost_unit}"
    return f"{issued.chain}: recommendation {issued.id} for {asked}: {found}"
