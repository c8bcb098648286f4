"""A canary and what it teaches, as the worker sees them: pure steps, each with all it rests on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.domain.chains import PartModel
from workbench.domain.counts import counted
from workbench.domain.errors import DataError, UsageError
from workbench.domain.parameters import Configuration, ParameterValue, PrimaryWorkload, Sla
from workbench.domain.profiles import Curve
from workbench.domain.questions import RetrainChain
from workbench.domain.retraining import (
    CanaryAsk,
    CanaryEnding,
    CanaryPlan,
    CanaryRun,
    CanaryStep,
    CanaryTerms,
    Drift,
    Proposal,
)
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_inputs import Basis, compose
from workbench.engine.answers.chain_models import (
    CORRECTION,
    Accepted,
    factory_of,
    in_force,
    method_named,
    shared_sd_or_usual,
    usual_method,
)

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.chains.canary import Canary
    from workbench.chains.composition import ChainForecaster
    from workbench.models.forecast import Forecaster

TREND_S = 60.0
"""CPU seconds after which no other method begins to compete on the predicted trend."""
TREND = "trend"
"""Stands for the method that says the predicted trend best (paper A, 7.2 and 7.3)."""
CURVE_POINTS = 60
FEWEST_NEW = 2
"""Operating points since a model was accepted from which another may be proposed: one to learn
from, one to hold out."""


@dataclass(frozen=True)
class CanaryInputs:
    """All that a canary and a proposal rest on; it crosses to the worker.

    Attributes
    ----------
    key : of this canary, by which the worker knows it again.
    samples : of the chain, from before.
    methods : models that compete where one is to be chosen by the predicted trend.
    shared_sd : log standard deviation between deployments of this host; None where it is not known.
    sample_s : lab seconds that a sample of this session has cost.
    """

    key: str
    basis: Basis
    accepted: Accepted | None
    samples: tuple[Sample, ...]
    primary: PrimaryWorkload
    configuration: Configuration
    sla: Sla | None
    guards: tuple[Sla, ...] | None
    request: RetrainChain
    methods: tuple[str, ...]
    shared_sd: float | None
    sample_s: float
    seed: int

    @property
    def chain(self) -> str:
        return self.basis.chain.name

    @property
    def fixed(self) -> Mapping[str, ParameterValue]:
        """Inputs that do not vary in production, with their values."""
        return {} if self.sla is None else self.sla.workload


@dataclass(frozen=True)
class Walk:
    """Where a canary stands; `ask` is None when nothing is left to be measured.

    Attributes
    ----------
    version : of the model in force.
    learned : what the model of the kept samples says, that in force before there are any.
    """

    plan: CanaryPlan
    steps: tuple[CanaryStep, ...]
    ask: CanaryAsk | None
    ending: CanaryEnding | None
    version: int = 0
    learned: Curve | None = None

    @property
    def run(self) -> CanaryRun:
        assert self.ending is not None
        return CanaryRun(self.plan, self.steps, self.ending)


@dataclass(frozen=True)
class Proposed:
    """What samples teach; `notes` say why there is no proposal, and what is to be known.

    The curves are those of `events.ModelProposed`.
    """

    proposal: Proposal | None
    models: tuple[PartModel, ...]
    drift: Drift | None
    notes: tuple[str, ...]
    in_force: Curve | None = None
    learned: Curve | None = None


_walking: dict[str, tuple[Canary, int]] = {}
"""The latest canary and how many samples it was told; a worker that lost it starts it again."""


def walked(case: CanaryInputs, taken: tuple[Sample, ...]) -> Walk:
    """What a canary asks for after these samples.

    Raises
    ------
    UsageError
        If nothing is allowed, such as where its share of the load lies below the lowest.
    WorkbenchError
        If the functions' models cannot be fitted.
    """
    canary, told = _walking.get(case.key, (None, 0))
    if canary is None:
        canary, told = _canary(case), 0
    canary.tell(taken[told:])
    _walking.clear()
    _walking[case.key] = canary, len(taken)
    version = case.accepted.version.version if case.accepted else 0
    learned = _curve(case, canary.forecaster, canary.plan.configuration)
    return Walk(canary.plan, canary.steps, canary.ask(), canary.ending, version, learned)


def terms_of_canary(
    request: RetrainChain,
    sla: Sla | None,
    guards: tuple[Sla, ...] | None,
    sample_s: float,
    seed: int,
) -> CanaryTerms:
    """What a request says of a canary's plan, by this SLA, these guards and what samples cost."""
    return CanaryTerms(
        sla=sla,
        share=request.share,
        steps=request.steps,
        guards=guards,
        mode="online" if request.online else "canary",
        budget_s=request.budget_s,
        sample_s=sample_s,
        seed=seed,
    )


def plan_of(
    chain: str, configuration: Configuration, primary: PrimaryWorkload, terms: CanaryTerms
) -> CanaryPlan:
    """The loads of a canary. Raises `UsageError` if nothing is allowed."""
    from workbench.chains.canary import canary_plan

    try:
        return canary_plan(chain, configuration, primary, terms)
    except DataError as error:
        raise UsageError(error.what, where=error.where, remedy=error.remedy) from None


def _canary(case: CanaryInputs) -> Canary:
    from workbench.chains.alignment import measured
    from workbench.chains.canary import Canary

    terms = terms_of_canary(case.request, case.sla, case.guards, case.sample_s, case.seed)
    plan = plan_of(case.chain, case.configuration, case.primary, terms)
    prediction = compose(case.basis).by(case.basis.rule)
    current = in_force(prediction, case.accepted).forecaster
    method = method_named(usual_method(prediction), prediction, case.shared_sd)
    kpi_max = case.basis.kpi_max

    def learner(kept: Sequence[Sample]) -> Forecaster:
        if not kept:
            return current
        try:
            every, _ = _aligned(case, [*case.samples, *kept])
            seen = measured(
                case.chain, every, kpi=current.kpi, kpi_max=kpi_max, primary=case.primary
            )
            return method.train(seen)
        except DataError:  # too few yet
            return current

    return Canary(plan, learner, case.samples)


def proposed(case: CanaryInputs, samples: tuple[Sample, ...]) -> Proposed:
    """A model of these samples of the chain, against what is in force.

    Raises
    ------
    WorkbenchError
        If the functions' models cannot be fitted, or no method has the name that was asked for.
    """
    from workbench.chains.proposal import propose, refitted

    composed = compose(case.basis)
    prediction = composed.by(case.basis.rule)
    accepted = None if case.accepted is None else replace(case.accepted, samples=samples)
    current = in_force(prediction, accepted)
    notes = [*composed.warnings, *current.warnings]
    proposal, learned = None, None
    try:
        name = _chosen(case, prediction, notes)
        used, told = _aligned(case, samples, direct=not name.startswith(CORRECTION))
        notes += told
        train, held_out = _split(used, accepted)
        method = method_named(name, prediction, case.shared_sd, fixed=case.fixed)
        proposal = propose(
            case.chain,
            train,
            method,
            current.forecaster,
            kpi_max=case.basis.kpi_max,
            primary=case.primary,
            based_on=current.version,
            held_out=held_out,
            shared_sd=shared_sd_or_usual(case.shared_sd),
        )
        learned = refitted(
            proposal, train, method, kpi_max=case.basis.kpi_max, primary=case.primary
        )
    except DataError as error:
        notes.append(f"Nothing can be proposed. {error}")
    curves = (_curve(case, one, case.configuration) for one in (current.forecaster, learned))
    return Proposed(proposal, composed.models, current.drift, tuple(notes), *curves)


def _curve(
    case: CanaryInputs, model: Forecaster | None, configuration: Configuration
) -> Curve | None:
    """What a model says from the lowest load to the SLA's, or of the range where there is none;
    None where it has nothing to say there."""
    import numpy as np

    if model is None:
        return None
    low, high = case.primary.low, case.primary.high
    if case.sla is not None and case.sla.wl is not None and case.sla.wl > low:
        high = case.sla.wl
    spaced = np.geomspace if case.primary.scale == "log" and low > 0 else np.linspace
    loads = spaced(low, high, CURVE_POINTS)
    try:
        said = model.forecast([(configuration, float(wl)) for wl in loads])
    except DataError:
        return None
    bounds = [np.exp(bound) for bound in (said.mean, said.low, said.high)]
    if not all(np.isfinite(bound).all() for bound in bounds):
        return None
    method = getattr(model, "method", "") or type(model).__name__
    wl, mean, lowest, highest = (tuple(map(float, values)) for values in (loads, *bounds))
    return Curve(model.kpi, str(method), wl, mean, lowest, highest)


def _chosen(case: CanaryInputs, prediction: ChainForecaster, notes: list[str]) -> str:
    """The name of the method; of several by the predicted trend, before real samples are seen."""
    from workbench.chains.trend import LATE, TrendTerms, rank_by_trend

    name = case.request.method
    if not name:
        return usual_method(prediction)
    if name != TREND:
        return name
    terms = TrendTerms(
        kpi_max=case.basis.kpi_max,
        share=case.request.share,
        seed=case.seed,
        budget_s=TREND_S,
        clock=time.process_time,
    )
    ranked = rank_by_trend(
        case.chain,
        {method: factory_of(method) for method in case.methods},
        prediction,
        [case.configuration],
        case.primary,
        terms,
    )
    if ranked[0].scores is None:
        raise DataError(f"no method can say the predicted trend: {ranked[0].trouble}")
    late = [row.method for row in ranked if row.trouble == LATE]
    rivals = ", ".join(method for method in case.methods if method not in late)
    notes.append(f"{ranked[0].method} says the predicted trend best of {rivals}.")
    if late:
        notes.append(f"Not tried after {TREND_S:.0f} s of CPU: {', '.join(late)}.")
    return ranked[0].method


def _aligned(
    case: CanaryInputs, samples: Sequence[Sample], *, direct: bool = False
) -> tuple[list[Sample], list[str]]:
    """Those that fit what production is like; what is left out, as sentences."""
    from workbench.chains.alignment import DEFAULT_RULES, LAW_RULES, Goal, align

    sla, kpi = case.sla, case.basis.kpi
    limit = sla.limit if sla is not None and sla.kpi == kpi else None
    goal = Goal(kpi, limit, case.fixed)
    own = DEFAULT_RULES if direct else LAW_RULES
    asked = case.request.align
    found = align(samples, goal, tuple(dict.fromkeys((*LAW_RULES, *asked))) if asked else own)
    notes = [
        f"{rule} leaves out {counted(n, 'sample')}." for rule, n in found.left_out.items() if n
    ]
    if direct and case.fixed:
        notes.append(f"The model does without {', '.join(case.fixed)}: the SLA fixes it.")
    return list(found.samples), [*notes, *(f"{note}." for note in found.notes)]


def _split(samples: list[Sample], accepted: Accepted | None) -> tuple[list[Sample], list[Sample]]:
    """To train on, and to hold out.

    Against the profiles, which have seen none, all of them: `propose` leaves out one load after the
    other. An accepted model is flattered by its own samples: every second new point is held out.
    """
    if accepted is None:
        return samples, []
    seen = set(accepted.version.proposal.model.sample_ids)
    new = [sample for sample in samples if sample.id not in seen]
    points = sorted({_point(sample) for sample in new})
    if len(points) < FEWEST_NEW:
        raise DataError(
            f"has {counted(len(points), 'operating point')} since version "
            f"{accepted.version.version} was trained, and needs {FEWEST_NEW}",
            where=f"{accepted.version.proposal.chain}, {accepted.version.proposal.kpi}",
            remedy="Measure more steps",
        )
    out = set(points[1::2])
    held_out = [sample for sample in new if _point(sample) in out]
    ids = {sample.id for sample in held_out}
    return [sample for sample in samples if sample.id not in ids], held_out


def _point(sample: Sample) -> tuple[str, float]:
    return sample.point.configuration.key, sample.point.wl
