"""A chain measured: how far the prediction was off, canaries, proposals and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from workbench.domain.errors import UsageError
from workbench.domain.parameters import Configuration, OperatingPoint, Sla
from workbench.domain.profiles import FittedModel
from workbench.domain.samples import Estimate

# ------------------------------------------------------------------------- comparison


@dataclass(frozen=True)
class ConfigurationScore:
    """How well the chain was predicted in one configuration (paper A, Fig. 8).

    `mape` is a share, `log_error` the median of |log(predicted / measured)|; `ratio` is measured
    over predicted, as a geometric mean. `baseline_mape` is that of the directly trained model,
    None where there is none.
    """

    configuration: Configuration
    samples: int
    mape: float
    log_error: float
    ratio: float
    baseline_mape: float | None = None


@dataclass(frozen=True)
class BucketScore:
    """The same for measured KPIs from `low` (included) to `high`, in their unit (Fig. 12)."""

    low: float
    high: float
    samples: int
    mape: float
    log_error: float
    baseline_mape: float | None = None


@dataclass(frozen=True)
class Outlier:
    """A configuration in which the chain is better or worse than predicted, beyond doubt.

    The measured and the predicted interval lie apart, and the two figures by more than the host
    differs from itself. `wl` is where the ratio is largest; `measured`, `predicted` and `ratio`
    (measured over predicted) are those there. `loads` are all such loads, of `points` that were
    measured. `bounded`: what was measured only says that the KPI is that high or higher.
    """

    configuration: Configuration
    verdict: Literal["better", "worse"]
    wl: float
    measured: Estimate
    predicted: Estimate
    ratio: float
    loads: tuple[float, ...]
    points: int
    bounded: bool = False


@dataclass(frozen=True)
class ChainComparison:
    """Measured samples of a chain against its prediction (paper A, Table 4).

    Attributes
    ----------
    rule : what predicted: the rule of composition, or the model with its version.
    ab_floor : relative difference under which nothing is claimed: the host's A/A floor.
    mae, mad, rmse : in the KPI's unit. `mape` and `coverage` (of the measured figures by the
        prediction's intervals, widened by their own noise) are shares.
    log_error : median of |log(predicted / measured)|.
    baseline : the method that was trained on the chain's own samples, empty without one;
        `baseline_rmse` is its cross-validated error, None where `note` says why there is none.
    configurations : the worst predicted first.
    buckets : by rising KPI; those without samples are left out.
    outliers : the largest departure first.
    model_version : of the chain's accepted model, if that predicted; 0: a rule did.
    """

    chain: str
    kpi: str
    rule: str
    samples: int
    ab_floor: float
    mae: float
    mad: float
    rmse: float
    mape: float
    log_error: float
    coverage: float
    baseline: str
    baseline_rmse: float | None
    configurations: tuple[ConfigurationScore, ...]
    buckets: tuple[BucketScore, ...]
    outliers: tuple[Outlier, ...]
    note: str = ""
    model_version: int = 0


# ------------------------------------------------------------------------- canaries

CanaryMode = Literal["canary", "online"]
"""Ascending steps (paper A, 7.3), or random loads as production brings them (7.2)."""
AskKind = Literal["step", "restore"]
StepVerdict = Literal["kept", "invalid", "guard", "restored"]


@dataclass(frozen=True)
class CanaryTerms:
    """What a canary's plan is made by.

    Attributes
    ----------
    share : of the SLA's workload that is not passed, without one of the campaign's range.
    steps, increment : how many even steps there are; or by how much each is above the one before.
    guards : limits that stop it; the SLA's own if None.
    attempts : at a load whose sample is not valid.
    budget_s, sample_s : lab seconds that it may take, and that a sample costs.
    seed : of the random loads.
    """

    sla: Sla | None = None
    share: float = 0.5
    steps: int = 10
    increment: float | None = None
    guards: tuple[Sla, ...] | None = None
    mode: CanaryMode = "canary"
    attempts: int = 3
    budget_s: float | None = None
    sample_s: float = 5.0
    seed: int = 0


@dataclass(frozen=True)
class CanaryPlan:
    """What a canary may do to one configuration of a chain.

    Attributes
    ----------
    loads : in the order in which they are measured; rising in a canary.
    guards : limits that stop it; the SLA's own unless others are named.
    attempts : how often a load is measured until a sample is valid.
    budget_s : seconds that it may take, as a campaign's; None for no cap.
    sample_s : lab seconds that a sample is expected to cost before the first has been taken.
    """

    chain: str
    configuration: Configuration
    loads: tuple[float, ...]
    guards: tuple[Sla, ...] = ()
    mode: CanaryMode = "canary"
    attempts: int = 3
    budget_s: float | None = None
    sample_s: float = 5.0


@dataclass(frozen=True)
class CanaryAsk:
    """The next measurement. `restore` goes back to the last load that was within the guards.

    `number` counts the loads of the plan from 1; `forecast` is what the model says of the KPI
    there, None where it has nothing to say.
    """

    kind: AskKind
    number: int
    point: OperatingPoint
    forecast: Estimate | None
    why: str


@dataclass(frozen=True)
class CanaryStep:
    """What a measurement came to. `kept` samples retrain the model; the others say why not.

    `forecast` is of the model that has learned from the steps before, `in_force` of the one that
    the canary is to improve: neither has seen the sample. `value` is their KPI, None where the
    sample does not state it.
    """

    number: int
    sample_id: str
    wl: float
    verdict: StepVerdict
    forecast: Estimate | None
    note: str = ""
    value: Estimate | None = None
    in_force: Estimate | None = None


CanaryState = Literal["done", "guard", "foreseen", "invalid", "budget", "stopped", "failed"]
"""`guard`: a measured KPI passed it; `foreseen`: the model says that the next load would;
`invalid`: no valid sample in as many attempts as allowed; `stopped`: by somebody; `failed`: the lab
gave up."""


@dataclass(frozen=True)
class CanaryEnding:
    """Why a canary asks for no more steps, as a sentence.

    `restored_wl` is the load to go back to, None where the load need not change, or where no step
    was within the guards: then no load at all.
    """

    state: CanaryState
    note: str
    restored_wl: float | None = None


@dataclass(frozen=True)
class CanaryRun:
    """A canary that has ended: what it might do, what it did, and why it did no more."""

    plan: CanaryPlan
    steps: tuple[CanaryStep, ...]
    ending: CanaryEnding


@dataclass(frozen=True)
class Drift:
    """Later samples against an accepted model.

    Attributes
    ----------
    samples : how many were watched, in the order of their starts, up to the alarm.
    direction : where they moved; empty without an alarm.
    sample_id : the one that raised the alarm; None without.
    shift : mean standardised residual since the drift began; 0 without an alarm.
    false_alarms : expected per sample while nothing drifts.
    note : a sentence.
    """

    chain: str
    kpi: str
    samples: int
    direction: Literal["", "above", "below"]
    sample_id: str | None
    shift: float
    false_alarms: float
    note: str


# ------------------------------------------------------------------------- proposals


@dataclass(frozen=True)
class TermChange:
    """One coefficient of a chain's model before and after, with its 95 % interval.

    `configuration` is None for what all configurations of this order share.
    """

    name: str
    configuration: Configuration | None
    before: float
    after: float
    low: float
    high: float
    unit: str = ""

    @property
    def title(self) -> str:
        """What it stands for, on screens: κ and Δ of METHOD.md 9 in words."""
        return _TERMS.get(self.name, self.name)

    @property
    def is_withheld(self) -> bool:
        """Whether the samples say another value, which is not clear enough to be applied."""
        return not self.low <= self.after <= self.high


_TERMS = {"kappa": "factor at the bottleneck", "delta": "added between functions"}


@dataclass(frozen=True)
class HeldOutScores:
    """On points that the scored model has not seen; units as in `ChainComparison`."""

    samples: int
    rmse: float
    mae: float
    mad: float
    mape: float
    log_error: float


@dataclass(frozen=True)
class Reach:
    """The highest load that a configuration was sampled at: above it the model extrapolates."""

    configuration: Configuration
    wl: float


@dataclass(frozen=True)
class Proposal:
    """A retrained model of one KPI of a chain, not yet accepted.

    Attributes
    ----------
    id : content key; the same samples and the same kind of model make the same proposal.
    based_on : version of the model that was retrained; 0 are the stand-alone profiles.
    model : how to fit it again: method, parameters, samples, and the coefficients to check.
    changes : terms before and after; those of single configurations after the common ones.
    held_out : which points the scores are on.
    before, after : scores of what it starts from, and of what is proposed.
    noise : log standard deviation by which samples of one point scatter.
    gain : whether the samples show that it is better; `statement` says so in a sentence.
    reach : by configuration.
    """

    id: str
    chain: str
    kpi: str
    based_on: int
    model: FittedModel
    changes: tuple[TermChange, ...]
    held_out: Literal["leave-one-load-out", "given"]
    before: HeldOutScores
    after: HeldOutScores
    noise: float
    gain: bool
    statement: str
    reach: tuple[Reach, ...]


@dataclass(frozen=True)
class Decision:
    """What somebody decided of a proposal, when (seconds since the epoch) and why."""

    proposal: str
    accepted: bool
    by: str
    at: float
    why: str = ""


@dataclass(frozen=True)
class Rollback:
    """Somebody went back to a version of a chain's model; 0 are the stand-alone profiles."""

    chain: str
    kpi: str
    version: int
    by: str
    at: float
    why: str = ""


RetrainingRecord = Proposal | Decision | Rollback
"""What is stored, in its order: the state of all models follows from it."""


@dataclass(frozen=True)
class ChainModelVersion:
    """A proposal that was accepted. Versions count from 1 for each chain and KPI."""

    version: int
    proposal: Proposal
    decision: Decision


@dataclass(frozen=True)
class ChainModels:
    """All versions of the model of one KPI of a chain; `current` is 0 for the profiles alone."""

    chain: str
    kpi: str
    current: int
    versions: tuple[ChainModelVersion, ...]
    rejected: tuple[Decision, ...]
    pending: tuple[Proposal, ...]
    """Not decided yet, the latest last."""
    rollbacks: tuple[Rollback, ...] = ()
    """In their order."""

    @property
    def model(self) -> Proposal | None:
        """What the current version was accepted from; None for the stand-alone profiles."""
        return self.versions[self.current - 1].proposal if self.current else None


# ------------------------------------------------------------------------- what became of it

Models = Mapping[tuple[str, str], ChainModels]
"""By chain and KPI."""


def after(state: Models, record: RetrainingRecord) -> Models:
    """The state after one more record.

    Raises
    ------
    UsageError
        If a proposal is unknown or decided already, or a version does not exist or is in force.
    """
    match record:
        case Proposal():
            models = _of(state, record.chain, record.kpi)
            if _decided(models, record.id):
                raise UsageError(
                    "was decided already",
                    where=f"proposal {record.id}",
                    remedy="Measure more, or roll back to its version",
                )
            pending = (*(p for p in models.pending if p.id != record.id), record)
            changed = replace(models, pending=pending)
        case Decision():
            changed = _decide(state, record)
        case Rollback():
            changed = _roll_back(_of(state, record.chain, record.kpi), record)
    return {**state, (changed.chain, changed.kpi): changed}


def _of(state: Models, chain: str, kpi: str) -> ChainModels:
    return state.get((chain, kpi), ChainModels(chain, kpi, 0, (), (), ()))


def _decided(models: ChainModels, proposal: str) -> bool:
    return any(v.proposal.id == proposal for v in models.versions) or any(
        d.proposal == proposal for d in models.rejected
    )


def _decide(state: Models, decision: Decision) -> ChainModels:
    for models in state.values():
        found = next((p for p in models.pending if p.id == decision.proposal), None)
        if found is not None:
            break
        if _decided(models, decision.proposal):
            raise UsageError("was decided already", where=f"proposal {decision.proposal}")
    else:
        raise UsageError(
            "does not exist",
            where=f"proposal {decision.proposal}",
            remedy="Measure canaries first: workbench canary SESSION --chain C",
        )
    pending = tuple(p for p in models.pending if p.id != found.id)
    if not decision.accepted:
        return replace(models, pending=pending, rejected=(*models.rejected, decision))
    version = ChainModelVersion(len(models.versions) + 1, found, decision)
    return replace(
        models, current=version.version, versions=(*models.versions, version), pending=pending
    )


def _roll_back(models: ChainModels, rollback: Rollback) -> ChainModels:
    where = f"{models.chain}, {models.kpi}"
    if not 0 <= rollback.version <= len(models.versions):
        known = ", ".join(map(str, range(len(models.versions) + 1)))
        raise UsageError(
            f"has no version {rollback.version}", where=where, remedy=f"Choose from: {known}"
        )
    if rollback.version == models.current:
        raise UsageError(f"version {rollback.version} is in force", where=where)
    return replace(models, current=rollback.version, rollbacks=(*models.rollbacks, rollback))
