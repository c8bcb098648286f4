"""`workbench compare --chain`: a chain's samples against what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.domain.counts import counted
from workbench.domain.errors import DataError, PluginError, UsageError
from workbench.domain.parameters import PrimaryWorkload
from workbench.domain.questions import ChainCompared, CompareChain
from workbench.domain.retraining import ChainComparison
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_inputs import Basis, Subject, compose, gather, subject_of
from workbench.engine.answers.chain_models import Accepted, accepted_for, in_force, speaks
from workbench.engine.learning.modelling import model_of
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.scoring import Say, patiently, usable
from workbench.engine.sessions.library import Library
from workbench.measuring import ab_test
from workbench.models.selection import must_be_alike

if TYPE_CHECKING:  # its imports take time, and the engine only hands these values on
    from workbench.chains.neighbours import ChainOnSharedCores
    from workbench.models.forecast import Forecaster

PAPERS = "weakest-link"
"""The rule that every other one is held against (paper A, Table 4)."""


async def compare_chain(
    library: Library,
    pool: Pool,
    question: CompareChain,
    *,
    store: bool = True,
    say: Say = lambda _: None,
) -> ChainCompared:
    """How far a chain is from its accepted model, or from what its functions' profiles say.

    Canaries and verifications are samples of it like any other. An accepted model is held against
    those that it has not learned from; where there are none, nor where a rule is named, the
    profiles are. What is trained directly is the method of the target's model in force; of a chain
    that the campaign did not measure, the campaign's.

    Raises
    ------
    WorkbenchError
        As `subject_of` and `gather` do; `UsageError` if the chain was not measured, or not as its
        functions were.
    """
    subject = await subject_of(library, question.query)
    own, kpi = subject.own, subject.own.kpi
    samples = [s for s in own.samples if s.point.target == subject.chain.name]
    if not any(sample.valid for sample in samples):
        raise UsageError(
            f"has no valid samples of {subject.chain.name}",
            where=own.session,
            remedy="Measure the chain first; `workbench predict` needs no samples of it",
        )
    profiled = [s for target in subject.targets for s in subject.parties.samples_of(target.name)]
    try:
        must_be_alike([s for s in (*samples, *profiled) if s.valid])
    except DataError as error:
        raise UsageError(error.what, where=own.session, remedy=error.remedy) from None
    basis = await gather(library, pool, subject, question.query, store=store, say=say)
    accepted = accepted_for(subject) if speaks(question.query) else None
    notes = [*basis.profiles.unstored]
    if accepted is not None:
        learned = set(accepted.version.proposal.model.sample_ids)
        unseen = [sample for sample in samples if sample.id not in learned]
        if usable(unseen, kpi):
            samples = unseen
        else:
            accepted = None
            notes.append("no sample is left that the accepted model has not learned from")
    if accepted is None and subject.superseded:
        notes.append(subject.superseded)
    method, note, unstored = await trained_directly(library, pool, subject, store=store, say=say)
    notes += [unstored] if unstored else []
    say(f"{subject.chain.name}: {counted(len(samples), 'sample')} against the prediction")
    given = {one.session: one for one in (own, *subject.parties.speaking)}
    floor = ab_test.floor(kpi, [one.view.noise for one in given.values()])
    told = await patiently(
        pool,
        compared_with,
        basis,
        samples,
        subject.primary,
        floor,
        method,
        accepted,
    )
    comparison = replace(told.comparison, note=note) if note else told.comparison
    return replace(told, comparison=comparison, notes=tuple(dict.fromkeys((*told.notes, *notes))))


async def trained_directly(
    library: Library, pool: Pool, subject: Subject, *, store: bool, say: Say
) -> tuple[str, str, str]:
    """The method that learns a chain's own samples; why there is none; why it is not stored."""
    own, name = subject.own, subject.chain.name
    if not own.of(name):
        return own.campaign.sampling.model, "", ""
    say(f"{name}: model of {own.kpi}, trained directly")
    try:
        direct = await model_of(library, pool, own.session, name, own.kpi, store=store)
    except (DataError, PluginError) as error:
        return "", f"nothing is trained directly: {error}", ""
    return direct.model.method, "", direct.unstored


def compared_with(
    basis: Basis,
    samples: Sequence[Sample],
    primary: PrimaryWorkload,
    ab_floor: float,
    method: str,
    accepted: Accepted | None,
) -> ChainCompared:
    """In the worker: by what is in force, or the rule that was asked for, with others beside it.

    `method` is trained on the chain's own samples; none where it is empty. Raises as `compose`,
    `in_force` and `chains.comparison.compare_chain` do.
    """
    from workbench.chains import comparison

    composed = compose(basis)
    baseline = comparison.Baseline(method, plugins.load("models", method)) if method else None

    def against(
        said: Forecaster, name: str, baseline: comparison.Baseline | None = None
    ) -> ChainComparison:
        return comparison.compare_chain(
            basis.chain.name,
            samples,
            said,
            rule=name,
            kpi_max=basis.kpi_max,
            primary=primary,
            ab_floor=ab_floor,
            baseline=baseline,
        )

    chain = composed.by(basis.rule)
    told = in_force(chain, accepted)
    alone = weakest = None
    notes = (*composed.warnings, *told.warnings)
    if basis.cores:
        neighbours = composed.on_shared_cores(chain)
        samples, left_out = _known_beside(neighbours, samples)
        asked = against(neighbours, f"{chain.rule.name}, on shared cores", baseline)
        alone = against(chain, chain.rule.name)
        notes = (*notes, *left_out)
    elif accepted is None:
        asked = against(chain, chain.rule.name, baseline)
    else:
        name = f"model {told.version} ({accepted.version.proposal.model.method})"
        asked = against(told.forecaster, name, baseline)
        asked = replace(asked, model_version=told.version)
        alone = against(chain, chain.rule.name)
    if chain.rule.name != PAPERS:
        with suppress(UsageError):  # it is for KPIs of which more is worse
            weakest = against(composed.by(PAPERS), PAPERS)
    return ChainCompared(asked, weakest, composed.models, notes, alone)


def _known_beside(
    chain: ChainOnSharedCores, samples: Sequence[Sample]
) -> tuple[list[Sample], tuple[str, ...]]:
    """The samples of which it is known what sharing cores costs, and why it is not of others.

    Raises the `DataError` of the first where it is known of none.
    """
    told: list[Sample] = []
    refused: list[DataError] = []
    for sample in samples:
        try:
            chain.at(sample.point.configuration, sample.point.wl)
        except DataError as error:
            refused.append(error)
        else:
            told.append(sample)
    if not told:
        raise refused[0]
    why = dict.fromkeys(map(str, refused))
    many = counted(len(refused), "sample")
    return told, (f"{many} left out: {' '.join(why)}",) if refused else ()
