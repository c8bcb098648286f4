"""The model in force of a chain: its functions' profiles, or what was accepted since.

Whoever predicts a chain asks here. The engine looks up what was decided (`accepted_for`), and the
worker fits it again (`in_force`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench import plugins
from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.parameters import ParameterValue, PrimaryWorkload
from workbench.domain.profiles import FittedModel
from workbench.domain.projection import SessionView
from workbench.domain.questions import ChainQuery
from workbench.domain.retraining import ChainModelVersion, Drift
from workbench.domain.samples import Sample
from workbench.domain.topology import Node
from workbench.engine.answers.chain_inputs import Subject

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.chains.capacity import CpuScale
    from workbench.chains.composition import ChainForecaster
    from workbench.chains.handover import HandoverRisk
    from workbench.chains.measured_first import MeasuredFirst
    from workbench.chains.proposal import Method
    from workbench.models.forecast import Forecaster

CORRECTION = "correction-"
_TWO_TERMS = f"{CORRECTION}two-terms"
_OFFSET = f"{CORRECTION}offset"
CORRECTIONS = (_TWO_TERMS, _OFFSET)
"""Methods that keep the prediction, as proposals name them; all others are names of models."""


@dataclass(frozen=True)
class Accepted:
    """A retrained model in force, as what it takes to fit it again.

    Attributes
    ----------
    samples : of the chain, in the order in which they were taken.
    """

    version: ChainModelVersion
    samples: tuple[Sample, ...]
    primary: PrimaryWorkload
    kpi_max: float


@dataclass(frozen=True)
class InForce:
    """A model that can be asked.

    Attributes
    ----------
    version : 0 are the stand-alone profiles.
    drift : samples that came after those it was trained on, held against it; None without any.
    warnings : sentences.
    """

    forecaster: Forecaster
    version: int = 0
    drift: Drift | None = None
    warnings: tuple[str, ...] = ()


def accepted_of(
    view: SessionView,
    samples: Sequence[Sample],
    chain: str,
    kpi: str,
    primary: PrimaryWorkload,
    kpi_max: float,
) -> Accepted | None:
    """The accepted model in force of a chain's KPI; None where the profiles are.

    Parameters
    ----------
    samples : of the session, or of the chain.
    """
    models = view.chain_model(chain, kpi)
    if models is None or not models.current:
        return None
    own = tuple(s for s in samples if s.point.target == chain)
    return Accepted(models.versions[models.current - 1], own, primary, kpi_max)


def speaks(question: ChainQuery) -> bool:
    """Whether an accepted model answers: not for a named rule, nor for other profiles than those
    that it corrects, nor of cores that functions share, which it knows already where they do."""
    others = {question.profiles or question.session, *question.more_profiles}
    return not question.rule and not question.shared_cores and others == {question.session}


def accepted_for(subject: Subject) -> Accepted | None:
    own = subject.own
    return accepted_of(
        own.view, own.samples, subject.chain.name, own.kpi, subject.primary, subject.kpi_max
    )


# ------------------------------------------------------------------- in the worker


def measured_first(
    prediction: ChainForecaster,
    told: InForce,
    samples: Sequence[Sample],
    target: str,
    primary: PrimaryWorkload,
    *,
    risks: Mapping[str, HandoverRisk] | None = None,
) -> MeasuredFirst:
    """The model in force, resting on whatever was measured of the chain.

    `risks` are of the hand-over, by KPI; by default those that recordings have shown.
    """
    from workbench.chains.alignment import measured
    from workbench.chains.measured_first import MeasuredFirst

    seen = None
    with suppress(DataError):  # where no sample of it states the KPI
        kpi, kpi_max = prediction.kpi, prediction.kpi_max
        seen = measured(target, samples, kpi=kpi, kpi_max=kpi_max, primary=primary)
    return MeasuredFirst(
        prediction,
        told.forecaster if told.version else None,
        samples,
        seen,
        method_named(usual_method(prediction), prediction, None),
        target=target,
        risks=risks,
    )


def in_force(prediction: ChainForecaster, accepted: Accepted | None) -> InForce:
    """What says the chain's KPI: the prediction from profiles, or what was accepted since.

    Where the profiles or the program have changed since then, other coefficients come out: the new
    fit to the same samples is used, with a warning.

    Raises
    ------
    DataError
        If the model's samples are gone.
    PluginError
        If its method is.
    """
    from workbench.chains.alignment import measured
    from workbench.chains.drift import drift
    from workbench.chains.proposal import refitted

    if accepted is None:
        return InForce(prediction)
    proposal, samples = accepted.version.proposal, accepted.samples
    method = stored_method(proposal.model, prediction)
    ids = set(proposal.model.sample_ids)
    warnings: list[str] = []
    try:
        model = refitted(
            proposal, samples, method, kpi_max=accepted.kpi_max, primary=accepted.primary
        )
    except DataError as error:
        own = [sample for sample in samples if sample.id in ids]
        seen = measured(
            proposal.chain,
            own,
            kpi=proposal.kpi,
            kpi_max=accepted.kpi_max,
            primary=accepted.primary,
        )
        model = method.learned(seen)
        warnings.append(f"Model {accepted.version.version} is fitted again. {error}")
    last = max((place for place, s in enumerate(samples) if s.id in ids), default=-1)
    watched: Drift | None = None
    with suppress(DataError):  # where nothing came after it
        watched = drift(
            proposal.chain,
            samples[last + 1 :],
            model,
            kpi_max=accepted.kpi_max,
            shared_sd=shared_sd_or_usual(proposal.model.parameters.get("shared_sd")),
        )
    if watched is not None and watched.direction:
        warnings.append(
            f"Model {accepted.version.version} does not fit any more: {watched.note}. "
            "Retrain it: workbench canary"
        )
    return InForce(model, accepted.version.version, watched, tuple(warnings))


def of_several(model: Forecaster, prediction: ChainForecaster) -> Forecaster | None:
    """What an accepted correction says of several instances, whose prediction this is.

    It takes them to be added what the order of functions adds to single ones; nobody measured
    them. None where a model of the chain's samples alone was accepted, which knows no others.
    """
    from workbench.chains.composition import TwoTerms
    from workbench.chains.correction import CorrectedForecaster

    if not isinstance(model, CorrectedForecaster):
        return None
    if scales := cpu_scales(model, prediction.graph):
        prediction = prediction.scaled(scales)
    terms = None
    if f"{CORRECTION}{model.method}" == _TWO_TERMS:
        terms = TwoTerms(prediction.graph, prediction.parts, prediction.kpi, prediction.scales)
    return model.carried_to(prediction, terms)


def cpu_scales(model: Forecaster, graph: Node) -> Mapping[str, CpuScale]:
    """CPU per request of a chain's functions, by instance name, where an accepted model says it."""
    from workbench.chains.capacity import carried_to
    from workbench.chains.composition import ChainForecaster
    from workbench.chains.correction import CorrectedForecaster

    if not isinstance(model, CorrectedForecaster):
        return {}
    if not isinstance(model.prediction, ChainForecaster):
        return {}
    return carried_to(model.scales, model.prediction.graph, graph)


# ------------------------------------------------------------------- methods by name


def usual_method(prediction: ChainForecaster) -> str:
    """What the chain adds: two terms where times are composed, else a ratio."""
    return _TWO_TERMS if kpis.of(prediction.kpi).kind == "response_time" else _OFFSET


def method_named(
    name: str,
    prediction: ChainForecaster,
    shared_sd: float | None,
    *,
    by_cpu: bool = True,
    fixed: Mapping[str, ParameterValue] | None = None,
) -> Method:
    """`fixed` are inputs with their values in production; only corrections know them."""
    from workbench.chains.composition import TwoTerms
    from workbench.chains.proposal import correction, correction_by_cpu, direct

    if not name.startswith(CORRECTION):
        return direct(name, factory_of(name), fixed)
    sd = shared_sd_or_usual(shared_sd)
    if by_cpu:
        return correction_by_cpu(prediction, two_terms=name == _TWO_TERMS, shared_sd=sd)
    terms = None
    if name == _TWO_TERMS:
        terms = TwoTerms(prediction.graph, prediction.parts, prediction.kpi)
    return correction(prediction, terms, shared_sd=sd)


def stored_method(model: FittedModel, prediction: ChainForecaster) -> Method:
    from workbench.chains.proposal import CPU, fixed_of

    shared_sd = model.parameters.get("shared_sd")
    return method_named(
        model.method,
        prediction,
        None if shared_sd is None else float(shared_sd),
        by_cpu=CPU in model.parameters,
        fixed=fixed_of(model.parameters),
    )


def factory_of(name: str) -> Callable[[], Any]:
    from workbench.models.conformal import Conformal

    made = plugins.load("models", name)

    def factory() -> Any:
        model = made()
        return model if hasattr(model, "predict_band") else Conformal(model)

    return factory


def shared_sd_or_usual(known: float | str | None) -> float:
    from workbench.chains.correction import SHARED_SD

    return SHARED_SD if known is None else float(known)
