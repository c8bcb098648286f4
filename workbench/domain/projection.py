"""The state that a screen shows, folded from events.

Live, attached late and replayed screens hold the same `SessionView`: the engine's snapshot at
sequence N is the fold of the events up to N, and a client goes on folding from there. A screen
cannot tell the three apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TypeVar, cast

from workbench.domain import canaries, conclusions, kpis, trials
from workbench.domain.campaign import Campaign
from workbench.domain.canaries import CanaryView, ProposalView
from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.counts import counted
from workbench.domain.durations import duration
from workbench.domain.event_log import (
    LOG_LINES,
    Line,
    LogLine,
    because,
    by_whom,
    lines_written,
)
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
    LogWritten,
    ModelFitted,
    ModelProposed,
    ModelRolledBack,
    Noted,
    PauseRequested,
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
from workbench.domain.fleets import FleetSeen, HostsCompared, ShardFolded, told
from workbench.domain.kpis import P95
from workbench.domain.lab import BypassCurve, HostFacts, HostNoise
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import ModelOrigin, ModelVersion, ParameterInfluence
from workbench.domain.recommendations import IssuedRecommendation
from workbench.domain.retraining import ChainModels, Drift
from workbench.domain.sample_review import (
    BudgetExtended,
    PointRequested,
    SampleDecided,
)
from workbench.domain.samples import Sample
from workbench.domain.sessions import Outcome, Plan, SessionState
from workbench.domain.trials import TrialPoint, TrialsView

T = TypeVar("T")

_STATE_AFTER: Mapping[Outcome, SessionState] = {
    "done": "finished",
    "budget": "finished",
    "stopped": "stopped",
    "aborted": "stopped",
    "failed": "failed",
}

MOST_POINTS = 4000
"""Samples that the view keeps for plots, of all configurations; the session file keeps all."""


OF_A_RUN = TargetDeployed | BypassMeasured | PointAsked | SampleTaken | RunPaused | RunFinished
"""What only a run or trials say, and often enough to tell by it how long they took."""


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
    ran_s: float = 0.0
    """Seconds of the clock that runs of the campaign took so far, without pauses."""
    ran_until: float | None = None
    """Up to when `ran_s` counts; None while nothing of the campaign runs."""
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
    besides_s: float = 0.0
    """Of them deployments and bypasses of the campaign."""
    deployed_s: float = 0.0
    """What the latest deployment took, in lab seconds."""
    log: list[LogLine] = field(default_factory=list)
    written: list[LogLine] = field(default_factory=list)
    """The last lines of the functions' logs."""
    written_since: int = 1
    """Event from which on `written` has all lines."""
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

    shards: list[ShardFolded] = field(default_factory=list)
    """Which host measured what, where several shared the campaign."""
    hosts_compared: HostsCompared | None = None
    fleet: FleetSeen | None = None
    """How the hosts stand, as of the last that was said of them."""

    def copy(self) -> SessionView:
        """What later events leave alone, and on which others may fold."""
        return _copied(self)

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
    def caution(self) -> str:
        """What nobody may overlook who reads its samples, such as that they are simulated."""
        return "; ".join(self.host.caveats) if self.host else ""

    @property
    def on_hosts(self) -> bool:
        """Whether its samples lie on the hosts of a fleet: they are not folded into it yet."""
        return self.fleet is not None and not self.samples_taken and not self.shards

    @property
    def fleet_command(self) -> str:
        """What goes on with a campaign that a fleet measures, to be typed."""
        said = self.fleet.command if self.fleet is not None else ""
        return said or f"workbench run CAMPAIGN --fleet HOSTS --session {self.session}"

    @property
    def samples_taken(self) -> int:
        """The campaign's own."""
        return sum(c.taken for c in self.configurations)

    @property
    def trial_samples(self) -> int:
        return sum(len(each.samples) for each in self.trials)

    @property
    def trials_s(self) -> float:
        """Lab seconds of `lab_s` that trials cost."""
        return sum(each.lab_s for each in self.trials)

    @property
    def under_trial(self) -> TrialsView | None:
        """The trials that are under way."""
        return trials.under_way(self.trials)

    @property
    def under_canary(self) -> CanaryView | None:
        """The canary that is under way; it may wait for the lab."""
        return canaries.under_way(self.canaries)

    def apply(self, event: Event) -> None:
        """Fold one event. Events that were folded already are ignored, so replays may overlap."""
        if event.seq <= self.seq:
            return
        self.seq, self.at = event.seq, event.at
        self._count_time(event)
        level, text, sample = self._of_campaign(event)
        if text:
            self.log.append(LogLine(event.seq, event.at, level, text, sample))
            del self.log[:-LOG_LINES]

    def _of_campaign(self, event: Event) -> Line:
        """Fold what is planned and measured; what the event log says of it."""
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
                    f"planned: {counted(len(plan.configurations), 'configuration')}, at most "
                    f"{counted(plan.samples, 'sample')}, about {duration(plan.lab_s)} of lab time"
                )
            case RunStarted(resumed=resumed, budget_s=budget_s):
                self.cut_off()
                self.ran_until = event.at
                self.state, self.budget_s, self.finished = "running", budget_s, None
                self.started_at = self.started_at or event.at
                text = "run resumed" if resumed else "run started"
            case TargetDeployed(target=target, path=path, lab_s=lab_s):
                self._spend(lab_s, besides=True)
                self.deployed_s = lab_s
                text = f"{target} deployed: {path}"
            case BypassMeasured(curve=bypass, lab_s=lab_s):
                self._spend(lab_s, besides=True)
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
                level, text, sample = self._take(taken)
            case ModelFitted() as fitted:
                view = self.place(fitted.target, fitted.configuration)
                view.curve, view.breakpoints = fitted.curve, fitted.breakpoints
            case ConfigurationFinished() as finished:
                view = self.place(finished.target, finished.configuration)
                view.state, view.note, view.asked = finished.outcome, finished.note, None
                text = f"{view.key} {finished.outcome} after {counted(finished.samples, 'sample')}"
                text += because(finished.note)
                level = "warning" if finished.outcome == "unusable" else "info"
            case _:
                return self._of_run(event)
        return level, text, sample

    def _of_run(self, event: Event) -> Line:
        """The same of how a run goes on, and of what anybody notes."""
        level, text = "info", ""
        match event.fact:
            case PauseRequested(by=by):
                self.state = "pausing" if self.state == "running" else self.state
                text = f"pause after this sample requested{by_whom(by)}"
            case RunPaused(by=by):  # trials leave the state as the campaign's end made it
                self.state = self.state if self.under_trial else "paused"
                text = f"paused{by_whom(by)}"
            case RunContinued(by=by):  # one that was paused while it was queued waits on
                self.state = "running" if self.state in ("paused", "pausing") else self.state
                text = f"continued{by_whom(by)}"
            case StopRequested(by=by, abort=abort):
                text = f"{'abort' if abort else 'stop after this sample'} requested{by_whom(by)}"
            case Noted(level=noted_level, text=noted):
                level, text = noted_level, noted
            case LogWritten() as fact:
                self._take_log(lines_written(event.seq, event.at, fact))
            case RunFinished() as run:
                self.finished = run
                self.ran_s, self.ran_until = max(0.0, self.ran_s - run.waited_s), None
                self.state = _STATE_AFTER[run.outcome]
                self.lab_s = max(self.lab_s, run.measured_s + self.trials_s)
                for view in self.configurations:
                    view.asked = None
                level = "error" if run.outcome == "failed" else "info"
                text = f"run {run.outcome}: {counted(run.samples, 'sample')}, {run.invalid} invalid"
                text += because(run.note)
            case _:
                return self._of_people(event)
        return level, text, ""

    def _of_people(self, event: Event) -> Line:
        """The same of what is asked, decided and concluded after or beside it."""
        level, text, sample = "info", "", ""
        match event.fact:
            case TrialsStarted() | TrialsFinished() as fact:
                level, text, sample = trials.fold(self, fact, event.at)
            case ShardFolded() | HostsCompared() | FleetSeen() as fact:
                text = self._take_fleet(fact)
            case (
                TargetModelled()
                | InfluenceMeasured()
                | RecommendationIssued()
                | RecommendationVerified()
                | GreedyScaled()
            ) as fact:
                level, text, sample = conclusions.fold(self, fact, event.seq, event.at)
            case SampleDecided() as decision:
                level, text, sample = self._decide(decision)
            case PointRequested() as wanted:
                self.requested = [*self.requested, wanted]
                key = f"{wanted.target} {wanted.configuration.key}"
                text = f"{key} at {wanted.wl:g} requested{by_whom(wanted.by)}"
            case BudgetExtended(budget_s=budget_s, by=by):
                self.budget_s = budget_s
                text = f"budget extended to {duration(budget_s)}{by_whom(by)}"
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
        return level, text, sample

    def _take(self, taken: Sample) -> Line:
        self._spend(taken.lab_s)
        place = taken.point.target, taken.point.configuration
        if (trial := self.under_trial) is not None:
            trial.samples.append(TrialPoint(*place, SamplePoint.of(taken)))
        else:
            view = self.place(*place)
            view.samples.append(SamplePoint.of(taken))
            self.current = view.key
            self.requested = [r for r in self.requested if r.point != taken.point]
            self.points += 1
            if self.points > MOST_POINTS:
                self.points -= sum(c.thin() for c in self.configurations)
        text = _sample_line(taken, self.campaign.kpi if self.campaign else P95)
        return "info" if taken.valid else "warning", text, taken.id

    def _take_log(self, lines: list[LogLine]) -> None:
        self.written += lines
        if len(self.written) > LOG_LINES:
            self.written_since = self.written[-LOG_LINES - 1].seq + 1  # no event is kept in part
            self.written = [line for line in self.written if line.seq >= self.written_since]

    def _take_fleet(self, fact: ShardFolded | HostsCompared | FleetSeen) -> str:
        if isinstance(fact, FleetSeen):
            before = self.fleet or FleetSeen((), 0, 0)
            hosts = {host.name: host for host in (*before.hosts, *fact.hosts)}
            self.fleet = replace(
                fact,
                hosts=tuple(hosts.values()),
                command=fact.command or before.command,
                run=fact.run or before.run,
            )
            return ""  # what a host began or ended is noted in words besides
        if isinstance(fact, ShardFolded):
            self.shards.append(fact)
        else:
            self.hosts_compared = fact
        return told(fact)

    def _decide(self, decision: SampleDecided) -> Line:
        self.decisions = {**self.decisions, decision.sample: decision}
        for item in self.configurations:
            for index, point in enumerate(item.samples):
                if point.id == decision.sample:
                    item.samples[index] = point.decided(decision.verdict)
        words = {"rejected": "rejected", "pinned": "pinned", "open": "as measured again"}
        text = f"sample {decision.sample} {words[decision.verdict]}{by_whom(decision.by)}"
        text += because(decision.why)
        return "warning" if decision.verdict == "rejected" else "info", text, decision.sample

    def cut_off(self) -> None:
        """Trials and a canary without an end: their engine died."""
        trials.cut_off(self.trials)
        canaries.cut_off(self.canaries)

    def _count_time(self, event: Event) -> None:
        """What others do to a session whose engine died is not counted: only what a run says."""
        if isinstance(event.fact, RunContinued) and self.state == "paused":
            self.ran_until = event.at
        elif isinstance(event.fact, TrialsStarted):
            self.ran_until = None
        elif self.ran_until is not None and isinstance(event.fact, OF_A_RUN):
            self.ran_s += max(0.0, event.at - self.ran_until)
            self.ran_until = None if isinstance(event.fact, RunPaused) else event.at

    def _spend(self, lab_s: float, *, besides: bool = False) -> None:
        self.lab_s += lab_s
        if (trial := self.under_trial) is not None:
            trial.lab_s += lab_s
        elif besides:
            self.besides_s += lab_s

    def place(self, target: str, configuration: Configuration) -> ConfigurationView:
        """The view of a configuration, which is made where there is none."""
        key = f"{target}/{configuration.key}"
        found = self.configuration(key)
        if found is None:
            found = self._by_key[key] = ConfigurationView(target, configuration)
            self.configurations.append(found)
        return found


def _copied(value: T) -> T:
    """Lists, dicts and records that can change, copied all the way down; all else is shared."""
    if isinstance(value, list):
        return cast("T", [_copied(each) for each in value])
    if isinstance(value, dict):
        return cast("T", {key: _copied(each) for key, each in value.items()})
    if type(value) in _MUTABLE:
        names = _MUTABLE[type(value)]
        return type(value)(**{name: _copied(getattr(value, name)) for name in names})
    return value


_MUTABLE: Mapping[type, tuple[str, ...]] = {
    record: tuple(field.name for field in fields(record))
    for record in (SessionView, ConfigurationView, TrialsView, CanaryView)
}


def _sample_line(sample: Sample, kpi: str) -> str:
    point = sample.point
    where = f"{point.target} {point.configuration.key} at {_load(point.wl)}"
    estimate = sample.kpis.get(kpi)
    named = kpis.of(kpi)
    figure = f"{named.short} not stated"
    if estimate:
        figure = f"{named.short} {_digits(estimate.value, 3)} {named.unit}".rstrip()
        if estimate.value == 0.0 < estimate.high:  # none was seen; none there is not known
            figure += f" (at most {_digits(estimate.high, 2)})"
    return f"{where}: {figure}" + ("" if sample.valid else f", not valid: {sample.reason}")


def _load(wl: float) -> str:
    """A load is asked for, not estimated: all that stands before the point."""
    return f"{wl:.0f}" if wl >= 1000 else f"{wl:.4g}"


def _digits(value: float, count: int) -> str:
    """So many digits of a figure, without powers of ten below a million."""
    return f"{float(f'{value:.{count}g}'):g}"
