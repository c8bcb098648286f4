"""`workbench predict`: a chain at one load, for every allocation, by the model in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.descriptors.allocation_text import parse_allocation
from workbench.descriptors.sla_text import parse_point
from workbench.domain import kpis
from workbench.domain.chains import ChainPrediction, PartModel
from workbench.domain.counts import counted
from workbench.domain.errors import DataError, UsageError
from workbench.domain.parameters import (
    Configuration,
    Parameter,
    ParameterValue,
    PrimaryWorkload,
    grid,
)
from workbench.domain.questions import ChainPredicted, PredictChain
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_inputs import (
    Basis,
    Subject,
    compose,
    gather,
    subject_of,
    workload_of,
)
from workbench.engine.answers.chain_models import (
    Accepted,
    accepted_for,
    cpu_scales,
    in_force,
    measured_first,
    speaks,
)
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.scoring import Say, patiently
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:  # its imports take time, and most questions are about something else
    from workbench.chains.composition import ChainForecaster
    from workbench.chains.neighbours import ChainOnSharedCores
    from workbench.models.forecast import Points

MOST_ALLOCATIONS = 36
"""Of one answer; each takes tenths of a second."""


async def predict_chain(
    library: Library,
    pool: Pool,
    question: PredictChain,
    *,
    store: bool = True,
    say: Say = lambda _: None,
) -> ChainPredicted:
    """What the stand-alone profiles say of a chain, or its accepted model where one is in force.

    Who names a rule, or the profiles of another session, wants to know what these say alone.

    Raises
    ------
    WorkbenchError
        As `subject_of`, `gather` and `in_force` do; `UsageError` for a text that cannot be read,
        and `OutsideProfile` for a load or a workload value outside of everything that was profiled.
    """
    subject = await subject_of(library, question.query)
    wl, workload = _point(subject, question.at)
    known = tuple(_known(subject))
    allocations = _allocations(subject, known, question.allocation)
    points = [(Configuration(one, workload), wl) for one in allocations[:MOST_ALLOCATIONS]]
    basis = await gather(library, pool, subject, question.query, wl=wl, store=store, say=say)
    say(f"{subject.chain.name}: {counted(len(points), 'allocation')}")
    accepted = accepted_for(subject) if speaks(question.query) else None
    measured = subject.measured if speaks(question.query) else None
    predictions, models, troubles = await patiently(
        pool, predictions_of, basis, subject.primary, points, known, accepted, measured
    )
    superseded = (subject.superseded,) if subject.superseded and accepted is None else ()
    notes = [*superseded, *basis.profiles.unstored, *troubles]
    if not speaks(question.query) and subject.measured:
        notes.append(
            f"{counted(len(subject.measured), 'sample')} of {subject.chain.name} left out: this is "
            "what the profiles alone say"
        )
    if left_out := len(allocations) - len(points):
        notes.append(
            f"{left_out} of {len(allocations)} allocations are left out; --allocate asks for one"
        )
    return ChainPredicted(predictions, models, tuple(notes))


def _point(subject: Subject, text: str) -> tuple[float, Mapping[str, ParameterValue]]:
    """The load, and a value for every workload parameter that the functions were profiled at."""
    primary = subject.primary
    wl, given = parse_point(text, primary.name)
    if wl is None:
        raise UsageError(
            "does not say the load",
            where="at",
            remedy=f"Add it, as {primary.name}={primary.high:g}",
        )
    if primary.integer and wl != round(wl):
        raise UsageError(f"{primary.name} is {wl:g}, must be a whole number", where="at")
    return wl, workload_of(subject, given, "at")


def _known(subject: Subject) -> Iterator[Parameter]:
    """What every function may be allotted: what the chain's plan names, and what was profiled."""
    planned = {p.key: p for p in subject.plan.resources} if subject.plan is not None else {}
    for vnf in subject.chain.vnfs:
        plan = subject.plan_of(vnf)
        own = {p.key: p for p in planned.values() if p.key.startswith(f"{vnf.name}.")}
        for parameter in plan.resources:
            key = f"{vnf.name}.{parameter.key.rpartition('.')[2]}"
            if key not in own and subject.plan is None:
                own[key] = replace(parameter, key=key)
            elif key in own:
                values = {*own[key].values, *parameter.values}
                own[key] = replace(
                    own[key],
                    values=tuple(sorted(values, key=lambda v: (isinstance(v, str), v))),
                    flavors={**parameter.flavors, **own[key].flavors},
                )
        yield from own.values()


def _allocations(
    subject: Subject, known: Sequence[Parameter], text: str
) -> list[Mapping[str, ParameterValue]]:
    """The one that the text says; else those of the campaign; else all combinations."""
    if text:
        return [parse_allocation(text, known)]
    plan = subject.plan
    found = grid(tuple(known), ()) if plan is None else grid(plan.resources, (), plan.combine)
    return [configuration.resources for configuration in dict.fromkeys(found)]


def predictions_of(
    basis: Basis,
    primary: PrimaryWorkload,
    points: Points,
    known: Sequence[Parameter],
    accepted: Accepted | None = None,
    measured: tuple[Sample, ...] | None = None,
) -> tuple[tuple[ChainPrediction, ...], tuple[PartModel, ...], tuple[str, ...]]:
    """In the worker: a prediction each, the models behind them, and why some cannot be made.

    `measured` are the samples of the chain; None where the profiles alone are asked.

    Raises as `compose` and `in_force` do, and if no allocation can be predicted.
    """
    from workbench.chains.prediction import predict
    from workbench.models.forecast import Forecaster

    composed = compose(basis)
    chain = composed.by(basis.rule)
    told = in_force(chain, accepted)
    if scales := cpu_scales(told.forecaster, chain.graph):
        chain = chain.scaled(scales)
    model: Forecaster | None = None
    if measured is not None:
        model = measured_first(chain, told, measured, basis.chain.name, primary)
    neighbours = composed.on_shared_cores(chain) if basis.cores else None
    made, troubles = [], list[DataError]()
    for configuration, wl in points:
        try:
            said = predict(
                chain,
                configuration,
                wl,
                name=basis.chain.name,
                primary=primary,
                allowed=known,
                warnings=(*composed.warnings, *told.warnings),
                model=model,
                version=told.version,
            )
        except DataError as error:
            troubles.append(error)
            continue
        overloaded = (
            tuple(_overloaded(chain, said)) if kpis.of(chain.kpi).kind == "response_time" else ()
        )
        said = replace(said, warnings=(*said.warnings, *overloaded))
        made.append(_beside_neighbours(said, neighbours) if neighbours else said)
    if not made:
        raise troubles[0]
    return tuple(made), composed.models, tuple(dict.fromkeys(map(str, troubles)))


def _beside_neighbours(said: ChainPrediction, chain: ChainOnSharedCores) -> ChainPrediction:
    """With what functions on the same cores cost each other, or why that is not known."""
    try:
        return replace(said, shared_cores=chain.at(said.configuration, said.wl))
    except DataError as error:
        why = f"what sharing cores costs is not known: {error}"
        return replace(said, warnings=(*said.warnings, why))


def _overloaded(chain: ChainForecaster, said: ChainPrediction) -> Iterator[str]:
    """Functions that do not carry the load that reaches them: they have no steady response time."""
    from workbench.chains.composition import CARRIED

    unit = "packets/s" if chain.family == "packets" else "requests/s"
    shares = chain.overload([(said.configuration, said.wl)]).shares
    for function in said.functions:
        share = float(shares[function.vnf][0])
        if share < CARRIED:
            yield (
                f"{function.vnf} carries {share * function.wl:.4g} of {function.wl:.4g} {unit}: it "
                f"is overloaded, and {said.kpi} grows for as long as one watches"
            )
