"""A chain over its loads, for screens: predicted and measured curves, and its functions'."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.domain.campaign import TargetPlan
from workbench.domain.chains import ChainChart
from workbench.domain.counts import counted
from workbench.domain.errors import DataError, PluginError, UsageError, WorkbenchError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.questions import ChainCharted, ChartChain
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_comparing import trained_directly
from workbench.engine.answers.chain_inputs import (
    Basis,
    Composed,
    Subject,
    compose,
    gather,
    subject_of,
)
from workbench.engine.answers.chain_models import (
    Accepted,
    accepted_for,
    in_force,
    measured_first,
    speaks,
)
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.refitting import fitted
from workbench.engine.learning.scoring import Say, patiently
from workbench.engine.sessions.library import Library

if TYPE_CHECKING:  # their imports take time, and the engine only hands these values on
    from workbench.chains.base import LoadFamily
    from workbench.chains.usage import ExpectedUsage
    from workbench.models.forecast import Forecaster, ProfileForecaster

MOST_CHARTS = 36
"""Of one answer; each takes a tenth of a second and 20 kB."""


@dataclass(frozen=True)
class ChartOrder:
    """What is to be charted; it crosses to the worker.

    Attributes
    ----------
    samples : of the chain.
    method : that learns them, empty for none.
    alone : whether the profiles alone are asked.
    """

    basis: Basis
    primary: PrimaryWorkload
    configurations: tuple[Configuration, ...]
    samples: tuple[Sample, ...]
    method: str
    accepted: Accepted | None
    alone: bool = False


async def chart_chain(
    library: Library,
    pool: Pool,
    question: ChartChain,
    *,
    store: bool = True,
    say: Say = lambda _: None,
) -> ChainCharted:
    """Curves of a chain's configurations, whether or not they were measured.

    Raises
    ------
    WorkbenchError
        As `subject_of`, `gather` and `in_force` do; `UsageError` where there is no configuration.
    """
    subject = await subject_of(library, question.query)
    name = subject.chain.name
    samples = tuple(s for s in subject.own.samples if s.point.target == name)
    configurations = question.configurations or _configurations(subject, samples)
    if not configurations:
        raise UsageError(
            f"has no samples of {name}, and its campaign plans none",
            where=subject.own.session,
            remedy="Measure some of it by a canary "
            f"(workbench canary {subject.own.session} --chain {name})",
        )
    basis = await gather(library, pool, subject, question.query, store=store, say=say)
    method, note, unstored = "", "", ""
    if any(sample.valid for sample in samples):
        method, note, unstored = await trained_directly(
            library, pool, subject, store=store, say=say
        )
    accepted = accepted_for(subject) if speaks(question.query) else None
    say(f"{name}: curves of {counted(len(configurations[:MOST_CHARTS]), 'configuration')}")
    order = ChartOrder(
        basis,
        subject.primary,
        configurations[:MOST_CHARTS],
        samples,
        method,
        accepted,
        not speaks(question.query),
    )
    charted = await patiently(pool, charted_by, order)
    notes = [*charted.notes, *basis.profiles.unstored, note, unstored]
    if subject.superseded and accepted is None:
        notes.append(subject.superseded)
    if left_out := len(configurations) - len(order.configurations):
        notes.append(f"{left_out} of {len(configurations)} configurations are left out")
    return replace(charted, notes=tuple(dict.fromkeys(filter(None, notes))))


def _configurations(subject: Subject, samples: Sequence[Sample]) -> tuple[Configuration, ...]:
    """Those that were measured, then those that are planned."""
    plan: TargetPlan | None = subject.plan
    planned = subject.own.campaign.configurations(plan) if plan is not None else ()
    measured = [sample.point.configuration for sample in samples if sample.valid]
    return tuple(dict.fromkeys((*measured, *planned)))


# ------------------------------------------------------------------- in the worker


def charted_by(order: ChartOrder) -> ChainCharted:
    """By the model in force, or the rule that was asked for.

    Raises as `compose` and `in_force` do, and `DataError` if no configuration can be predicted.
    """
    from workbench.chains.base import family_of
    from workbench.chains.charting import chart

    composed = compose(order.basis)
    chain = composed.by(order.basis.rule)
    told = in_force(chain, order.accepted)
    model: Forecaster | None = None
    if not order.alone:
        own = order.samples if len(chain.vnfs) > 1 else ()
        model = measured_first(chain, told, own, order.basis.chain.name, order.primary)
    direct, trouble = _direct(order)
    usage = _usage(composed)
    charts: list[ChainChart] = []
    troubles: list[DataError] = []
    for configuration in order.configurations:
        try:
            charts.append(
                chart(
                    chain,
                    configuration,
                    primary=order.primary,
                    samples=order.samples,
                    model=model,
                    direct=direct,
                    method=order.method,
                    usage=usage,
                )
            )
        except DataError as error:
            troubles.append(error)
    if not charts:
        raise troubles[0]
    notes = (*composed.warnings, *told.warnings, *map(str, troubles), trouble)
    return ChainCharted(
        chain=order.basis.chain.name,
        kpi=chain.kpi,
        rule=chain.rule.name,
        rules=tuple(applicable(chain.kpi, family_of(chain.load_model))),
        method=order.method if direct is not None else "",
        model_version=told.version,
        charts=tuple(charts),
        models=composed.models,
        notes=tuple(filter(None, notes)),
    )


def _direct(order: ChartOrder) -> tuple[ProfileForecaster | None, str]:
    """A model of the chain's own samples, or why there is none."""
    from workbench.chains.alignment import measured

    if not order.method:
        return None, ""
    basis = order.basis
    try:
        seen = measured(
            basis.chain.name,
            order.samples,
            kpi=basis.kpi,
            kpi_max=basis.kpi_max,
            primary=order.primary,
        )
        return fitted(seen.table, order.method), ""
    except WorkbenchError as error:
        return None, f"no curve of what was measured: {error}"


def _usage(composed: Composed) -> ExpectedUsage | None:
    """None where the profiles do not say what CPU a request takes, or what is carried."""
    from workbench.chains.usage import ExpectedUsage

    with suppress(DataError):
        return ExpectedUsage(composed.basis.chain.graph, composed.parts, composed.demands)
    return None


def applicable(kpi: str, family: LoadFamily) -> list[str]:
    """Rules that compose a KPI under a load, the default first. Broken plugins are left out."""
    from workbench.chains.rules import default_rule
    from workbench.engine.answers.chain_inputs import rule_of

    found = [default_rule(kpi, family).name]
    for name in plugins.names("chain_rules"):
        with suppress(UsageError, PluginError):
            rule_of(name, kpi, family)
            found.append(name)
    return list(dict.fromkeys(found))
