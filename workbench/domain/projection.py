"""The state that a screen shows, folded from events.

Live, attached late and replayed screens hold the same `SessionView`: the engine's snapshot at
sequence N is the fold of the events up to N, and a client goes on folding from there. A screen
cannot tell the three apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.domain.campaign import Campaign
from workbench.domain.events import (
    CampaignPlanned,
    ConfigurationFinished,
    ConfigurationStarted,
    Event,
    ModelFitted,
    Noted,
    PointAsked,
    RunContinued,
    RunFinished,
    RunPaused,
    RunStarted,
    SampleTaken,
    SessionCreated,
    StopRequested,
    TargetDeployed,
)
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint, Curve
from workbench.domain.samples import Estimate, Sample, Usage
from workbench.domain.sessions import Outcome, Plan, SessionState

_STATE_AFTER: Mapping[Outcome, SessionState] = {
    "done": "finished",
    "budget": "finished",
    "stopped": "stopped",
    "aborted": "stopped",
    "failed": "failed",
}

LOG_LINES = 500
"""Events that the view keeps as text; the session file keeps all of them."""


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

    @classmethod
    def of(cls, sample: Sample) -> SamplePoint:
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
        )


@dataclass
class ConfigurationView:
    """One configuration of one target: its samples, its curve, what is asked next."""

    target: str
    configuration: Configuration
    state: str = "planned"
    """`planned`, `sampling`, or its `ConfigurationOutcome`."""
    samples: list[SamplePoint] = field(default_factory=list)
    curve: Curve | None = None
    breakpoints: tuple[Breakpoint, ...] = ()
    asked: PointAsked | None = None
    """The point being measured or to be measured next; None when nothing is asked."""
    note: str = ""

    @property
    def key(self) -> str:
        return f"{self.target}/{self.configuration.key}"

    @property
    def invalid(self) -> int:
        return sum(not s.valid for s in self.samples)


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
    plan: Plan | None = None
    budget_s: float | None = None
    configurations: list[ConfigurationView] = field(default_factory=list)
    """In the order of the plan."""
    current: str = ""
    """Key of the configuration that is being measured."""
    started_at: float | None = None
    """When the first run started."""
    lab_s: float = 0.0
    """Lab seconds spent: samples and deployments, and what a run that ended counted besides."""
    log: list[LogLine] = field(default_factory=list)
    finished: RunFinished | None = None

    def configuration(self, key: str) -> ConfigurationView | None:
        return next((c for c in self.configurations if c.key == key), None)

    @property
    def samples_taken(self) -> int:
        return sum(len(c.samples) for c in self.configurations)

    def apply(self, event: Event) -> None:
        """Fold one event. Events that were folded already are ignored, so replays may overlap."""
        if event.seq <= self.seq:
            return
        self.seq, self.at = event.seq, event.at
        level, text, sample = "info", "", ""
        match event.fact:
            case SessionCreated(campaign=campaign, lab=lab, seed=seed, host=host):
                self.campaign, self.lab, self.seed, self.host = campaign, lab, seed, host
                text = f"session created: campaign {campaign.name} on lab {lab}, seed {seed}"
            case CampaignPlanned(plan=plan):
                self.plan = plan
                self.configurations = [
                    ConfigurationView(p.target, p.configuration) for p in plan.configurations
                ]
                text = (
                    f"planned: {len(plan.configurations)} configurations, at most "
                    f"{plan.samples} samples, about {plan.lab_s / 60:.1f} min of lab time"
                )
            case RunStarted(resumed=resumed, budget_s=budget_s):
                self.state, self.budget_s, self.finished = "running", budget_s, None
                self.started_at = self.started_at or event.at
                text = "run resumed" if resumed else "run started"
            case TargetDeployed(target=target, path=path, lab_s=lab_s):
                self.lab_s += lab_s
                text = f"{target} deployed: {path}"
            case ConfigurationStarted(target=target, configuration=configuration):
                view = self._view(target, configuration)
                view.state = "sampling"
                text = f"{view.key} started"
            case PointAsked() as asked:
                view = self._view(asked.target, asked.configuration)
                view.asked, self.current = asked, view.key
            case SampleTaken(sample=taken):
                view = self._view(taken.point.target, taken.point.configuration)
                view.samples.append(SamplePoint.of(taken))
                self.lab_s += taken.lab_s
                self.current = view.key
                level, sample = ("info" if taken.valid else "warning"), taken.id
                text = _sample_line(taken, self.campaign.kpi if self.campaign else "p95_ms")
            case ModelFitted() as fitted:
                view = self._view(fitted.target, fitted.configuration)
                view.curve, view.breakpoints = fitted.curve, fitted.breakpoints
            case ConfigurationFinished() as finished:
                view = self._view(finished.target, finished.configuration)
                view.state, view.note, view.asked = finished.outcome, finished.note, None
                text = f"{view.key} {finished.outcome} after {finished.samples} samples"
                text += f": {finished.note}" if finished.note else ""
                level = "warning" if finished.outcome == "unusable" else "info"
            case RunPaused(by=by):
                self.state, text = "paused", f"paused{_by(by)}"
            case RunContinued(by=by):
                self.state, text = "running", f"continued{_by(by)}"
            case StopRequested(by=by, abort=abort):
                text = f"{'abort' if abort else 'stop after this sample'} requested{_by(by)}"
            case Noted(level=noted_level, text=noted):
                level, text = noted_level, noted
            case RunFinished() as run:
                self.finished = run
                self.state = _STATE_AFTER[run.outcome]
                self.lab_s = max(self.lab_s, run.measured_s)
                for view in self.configurations:
                    view.asked = None
                level = "error" if run.outcome == "failed" else "info"
                text = f"run {run.outcome}: {run.samples} samples, {run.invalid} invalid"
                text += f": {run.note}" if run.note else ""
        if text:
            self.log.append(LogLine(event.seq, event.at, level, text, sample))
            del self.log[:-LOG_LINES]

    def _view(self, target: str, configuration: Configuration) -> ConfigurationView:
        key = f"{target}/{configuration.key}"
        found = self.configuration(key)
        if found is None:
            found = ConfigurationView(target, configuration)
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
