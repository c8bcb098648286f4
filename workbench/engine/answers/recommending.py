"""`recommend`: which allocation of a chain carries an SLA, stored in the session.

What was profiled answers. Afterwards the lab is asked, where somebody wants that: to measure what
is recommended, and what greedy scaling tries (`engine.answers.verification`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from workbench import plugins
from workbench.domain import questions
from workbench.domain.campaign import Campaign
from workbench.domain.errors import SessionError, UsageError
from workbench.domain.events import RecommendationIssued
from workbench.domain.parameters import Sla
from workbench.domain.projection import SessionView
from workbench.domain.recommendations import IssuedRecommendation, PriceTable, Recommendation
from workbench.domain.samples import Sample
from workbench.domain.topology import Node, Parallel, Series, Target, Vnf
from workbench.engine.answers.chain_inputs import (
    one_host,
    profiles_by,
    sharing_untold,
    subject_of,
)
from workbench.engine.answers.chain_models import Accepted, accepted_for
from workbench.engine.answers.chain_profiles import (
    Profiles,
    chain_of,
    profile_of,
    profiles_for,
    profiles_of,
    stand_alone,
)
from workbench.engine.answers.hosts import carried_over, elsewhere
from workbench.engine.answers.parties import Parties, host_of, parties_for, sessions_asked
from workbench.engine.answers.recommend_request import Order
from workbench.engine.answers.recommend_worker import Judged, examine, judge
from workbench.engine.answers.verification import Iteration, Proof, Trials
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.scoring import Material, Say, material, patiently
from workbench.engine.sessions.clock import now
from workbench.engine.sessions.library import Library
from workbench.engine.sessions.recording import not_stored, recorded
from workbench.paths import Workspace


async def recommend(
    library: Library,
    pool: Pool,
    trials: Trials,
    request: questions.Recommend,
    *,
    store: bool = True,
    say: Say = lambda _: None,
) -> questions.Recommended:
    """The cheapest allocation that holds, or what comes closest; stored where the session lets it.

    Raises
    ------
    UsageError, SlaError
        If the question cannot be parsed or judged; the sentence says why.
    DataError
        If samples teach no model of a KPI that it takes.
    LabError, BudgetSpent, Stopped, ...
        What is recommended could not be measured; the sentence says that it is stored.
    """
    if request.verify or request.on_lab:
        if not store:
            raise UsageError("observers may watch, not command", where=request.session)
        await library.resumable(request.session)
    given = await material(library, request.session, None)
    parties, warnings = await _parties(library, pool, given, request)
    order = await asyncio.to_thread(order_of, given, request, library.workspace, parties)
    if parties is None:
        order = replace(order, accepted=await _accepted(library, given, order))
    say(f"{order.chain.name}: looking at the question")
    examined = await patiently(pool, examine, order)
    if parties is None:
        profiles = await profiles_of(
            library, pool, given, order.targets, examined.kpis, store=store, say=say
        )
    else:
        profiles = await profiles_by(
            library, pool, parties, (examined.kpis, ()), store=store, say=say
        )
    say(f"{order.chain.name}: comparing allocations")
    judged = await patiently(pool, judge, order, examined.question, profiles)
    answer = judged.answer.recommendation(
        "",
        given.view.session,
        order.chain.name,
        model_version=judged.model_version,
        at=now(),
        profiling_s=_profiling_s(given, order, parties),
    )
    answer = replace(
        answer,
        greedy=judged.greedy,
        priced_by=request.cost,
        whose={t: party.session for t, party in parties.whose.items()} if parties else {},
    )
    issued, trouble = await _issued(library, given, order, answer, judged, store)
    here = (*elsewhere(given.session, given.view.host), *carried_over(given.view))
    shared = sharing_untold(given.campaign, order.chain)
    notes = [*here, *warnings, *shared, *profiles.unstored, *judged.notes, trouble]
    if issued.id and (request.verify or request.on_lab):
        proof = Proof(
            library, pool, trials, request, order, examined.question, request.by, say, given.view
        )
        if request.verify and issued.chosen is None:
            notes.append("Nothing is recommended, so that nothing was verified")
        elif request.verify:
            issued, told = await _proven(proof, given, profiles, issued)
            notes += told
        if request.on_lab:
            notes += await proof.scale(issued)
        issued = await proof.stored(issued.id)
    return _reply(issued, notes)


async def _proven(
    proof: Proof, given: Material, profiles: Profiles, issued: Recommendation
) -> tuple[Recommendation, list[str]]:
    """What trials leave of a stored recommendation, and sentences on them.

    Raises as `Proof.iterations`.
    """
    done, troubles = await proof.iterations(issued, profiles)
    found, told = await _after(proof, given, profiles, issued, done)
    return found, [*troubles, *told]


async def _after(
    proof: Proof,
    given: Material,
    profiles: Profiles,
    issued: Recommendation,
    done: Sequence[Iteration],
) -> tuple[Recommendation, Sequence[str]]:
    """The recommendation that the lab leaves: the issued one, verified, or another one.

    Another one only where it names another allocation, or where what is recommended failed.
    """
    assert issued.chosen is not None
    was = issued.chosen.deployment.key
    own = next((one for one in done if one.deployment.key == was), None)
    if not done:
        return issued, ()
    if len(done) == 1 and own is not None:
        await proof.confirm(issued, own, done)
        return issued, ()
    tried = tuple(one.taught for one in done if one.taught)
    order = replace(proof.order, greedy=False)
    judged = await patiently(proof.pool, judge, order, proof.question, profiles, tried)
    answer = judged.answer.recommendation(
        "",
        issued.session,
        issued.chain,
        model_version=judged.model_version,
        at=now(),
        profiling_s=issued.profiling_s,
    )
    chosen = answer.chosen and answer.chosen.deployment.key
    if chosen == was and own is not None:
        await proof.confirm(issued, own, done)
        return issued, judged.notes
    answer = replace(
        answer,
        greedy=issued.greedy,
        priced_by=issued.priced_by,
        after=issued.id,
        lab_iterations=len(done),
        lab_s=sum(one.verified.lab_s for one in done),
        verified=next((one.verified for one in done if one.deployment.key == chosen), None),
    )
    found, trouble = await _issued(proof.library, given, order, answer, judged, store=True)
    return found, [trouble]


async def verify(
    library: Library,
    pool: Pool,
    trials: Trials,
    request: questions.VerifyRecommendation,
    *,
    by: str = "",
    say: Say = lambda _: None,
) -> questions.Recommended:
    """Ask the lab about a stored recommendation, as `recommend` does that is to verify.

    The verdict is stored with it; where the lab teaches another allocation, that comes after it.

    Raises
    ------
    UsageError, SessionError
        If there is no such recommendation, it names no allocation, or nothing can be measured.
    DataError
        If samples teach no model any more.
    LabError, BudgetSpent, Stopped, ...
        It could not be deployed or measured.
    """
    await library.resumable(request.session)
    given = await material(library, request.session, None)
    found = stored_in(given.view, request.recommendation).recommendation
    if found.chosen is None:
        raise UsageError(
            f"{found.id} recommends nothing, so that nothing can be verified",
            where=request.session,
        )
    if found.whose:
        raise UsageError(_NOT_TRIED, where=f"{request.session} {found.id}")
    slas = tuple(sla.text for sla in found.slas)
    question = questions.Recommend(
        request.session,
        slas,
        found.chain,
        found.confidence,
        cost=found.priced_by,
        verify=True,
        budget_s=request.budget_s,
        oversubscribe=request.oversubscribe,
    )
    order = await asyncio.to_thread(order_of, given, question, library.workspace)
    order = replace(order, accepted=await _accepted(library, given, order))
    examined = await patiently(pool, examine, order)
    profiles = await profiles_of(library, pool, given, order.targets, examined.kpis, say=say)
    proof = Proof(library, pool, trials, question, order, examined.question, by, say, given.view)
    left, notes = await _proven(proof, given, profiles, found)
    return _reply(await proof.stored(left.id), [*profiles.unstored, *notes])


def _reply(issued: Recommendation, notes: Sequence[str]) -> questions.Recommended:
    told = tuple(dict.fromkeys(note for note in notes if note))
    return questions.Recommended(issued, issued.ways, told)


def stored_in(view: SessionView, id: str) -> IssuedRecommendation:
    """The recommendation of that id. Raises `UsageError` with those that there are."""
    issued = view.recommendation(id)
    if issued is not None:
        return issued
    ids = [one.recommendation.id for one in view.recommendations]
    raise UsageError(
        f"has no recommendation {id!r}",
        where=view.session,
        remedy=f"Choose one of: {', '.join(ids)}" if ids else "Ask for one (workbench recommend)",
    )


# ------------------------------------------------------------------- the question


_NOT_TRIED = "rests on profiles of others, and what they profiled is not tried on the lab"


async def _parties(
    library: Library, pool: Pool, given: Material, request: questions.Recommend
) -> tuple[Parties | None, tuple[str, ...]]:
    """Who speaks where others' profiles are named, and warnings.

    Raises `UsageError` as `parties_for`, for hosts that differ, and where the lab is to be asked.
    """
    if request.profiles is None:
        return None, ()
    if request.verify or request.on_lab:
        raise UsageError(_NOT_TRIED, where="--profiles", remedy="Leave out --verify and --on-lab")
    chain = await asyncio.to_thread(chain_of, given.campaign, request.chain, library.workspace)
    parties = parties_for(await sessions_asked(library, request, given), chain)
    hosts = {f"session {given.session}": host_of(given), **parties.hosts}
    warnings = await patiently(pool, one_host, hosts, request.insist)
    return parties, (*warnings, *parties.warnings(given, chain))


def _campaign_of(given: Material, chain: Target, parties: Parties) -> Campaign:
    """What the parties profiled, and the chain where the session measures it."""
    plans = tuple(parties.plan_of(target.vnfs[0].template) for target in parties.targets)
    own = tuple(p for p in given.campaign.targets if p.target == chain and len(chain.vnfs) > 1)
    return replace(parties.campaign, targets=(*plans, *own))


def order_of(
    given: Material,
    request: questions.Recommend,
    workspace: Workspace,
    parties: Parties | None = None,
) -> Order:
    """What the worker is asked, as far as names can be looked up."""
    chain = chain_of(given.campaign, request.chain, workspace)
    campaign = _campaign_of(given, chain, parties) if parties else given.campaign
    spoken_for, balancers = _spoken_for(given, campaign, chain)
    names = tuple(dict.fromkeys(spoken_for.values())) or (chain.name,)
    samples_of = parties.samples_of if parties else given.of
    samples = tuple(sample for name in names for sample in samples_of(name))
    for name in names:
        if not any(sample.valid for sample in samples_of(name)):
            raise UsageError(
                f"has no valid sample of {name}",
                where=parties.whose[name].session if parties else given.session,
                remedy="Measure it first, or see why by `workbench show`",
            )
    primary = campaign.target_plan(names[0]).primary.name
    if not request.slas:
        raise UsageError("no SLA is given", remedy="Write one as p95<=200ms @ rate=300/s")
    return Order(
        campaign,
        chain,
        tuple(
            _parsed(text, primary, f"SLA {number}" if len(request.slas) > 1 else "SLA")
            for number, text in enumerate(request.slas, 1)
        ),
        request.confidence,
        spoken_for,
        balancers,
        samples,
        request.cost,
        _prices(request.cost, workspace),
        request.greedy and not request.on_lab,
        noise=given.view.noise,
        measured=measured_of(given, chain) if spoken_for else (),
        tried=request.verify or request.on_lab,
    )


def measured_of(given: Material, chain: Target) -> tuple[Sample, ...]:
    """Samples of a chain, whatever they were taken for; nothing where that is one function."""
    own = (s for s in given.samples if s.point.target == chain.name)
    return tuple(own) if len(chain.vnfs) > 1 else ()


def _parsed(text: str, primary: str, place: str) -> Sla:
    from workbench.descriptors.sla_text import parse_sla

    try:
        return parse_sla(text, primary)
    except UsageError as error:
        raise UsageError(error.what, where=place, remedy=error.remedy) from None


def _prices(cost: str, workspace: Workspace) -> PriceTable | None:
    """The price table of that name; None where a plugin goes by it."""
    from workbench.descriptors.prices import load_prices

    known = plugins.names("costs")
    if cost in known:
        return None
    try:
        return load_prices(cost, workspace=workspace)
    except UsageError as error:
        raise UsageError(
            f"no cost is called {cost!r}, and {error.what}",
            where="cost",
            remedy=f"Choose a price table, its path, or one of: {', '.join(known)}",
        ) from None


def _spoken_for(
    given: Material, campaign: Campaign, chain: Target
) -> tuple[dict[str, str], dict[str, Vnf]]:
    """The profiled target of each function, and what could balance the load of each.

    Nothing speaks for the functions of a chain that was measured itself while they were not.
    """
    try:
        profiles = profiles_for(campaign, chain)
    except UsageError:
        if any(given.of(chain.name)):
            return {}, {}
        raise
    target_of = {target.vnfs[0].template: target.name for target in profiles}
    spoken_for = {vnf.name: target_of[vnf.template] for vnf in chain.vnfs}
    balancers = balancers_of(campaign, chain)
    for balancer in balancers.values():
        target = target_of.get(balancer.template) or profile_of(campaign, balancer.template).name
        spoken_for.setdefault(balancer.name, target)
    return spoken_for, balancers


def balancers_of(campaign: Campaign, chain: Target) -> dict[str, Vnf]:
    """What could stand before each function of which there are several.

    That is the function before it in the chain, where that can balance, else the first profiled
    function of another kind that can: one of its own would carry no more than it does. Routers
    cannot be had more than once: nobody balances packets.
    """
    if campaign.load.unit == "packets":
        return {}
    known = {template.name: template for template in campaign.templates}
    profiled = [target.vnfs[0].template for target in stand_alone(campaign)]
    found: dict[str, Vnf] = {}
    for vnf, before in _with_predecessors(chain.graph):
        if known[vnf.template].passage != "proxy":
            continue
        if before is not None and known[before.template].balances:
            found[vnf.name] = before
            continue
        able = (t for t in profiled if known[t].balances and t != vnf.template)
        if (template := next(able, None)) is not None:
            found[vnf.name] = Vnf(f"{vnf.name}-balancer", template)
    return found


def _with_predecessors(node: Node, before: Vnf | None = None) -> list[tuple[Vnf, Vnf | None]]:
    """Every function with the one that all of its traffic comes from, and goes nowhere else."""
    match node:
        case Vnf():
            return [(node, before)]
        case Series(parts):
            found: list[tuple[Vnf, Vnf | None]] = []
            for part in parts:
                found += _with_predecessors(part, before)
                before = part if isinstance(part, Vnf) else None
            return found
        case Parallel(branches):
            return [pair for branch in branches for pair in _with_predecessors(branch)]


async def _accepted(library: Library, given: Material, order: Order) -> dict[str, Accepted]:
    """Retrained models of the chain that are in force, by KPI."""
    found: dict[str, Accepted] = {}
    for kpi in dict.fromkeys(sla.kpi for sla in order.slas):
        models = given.view.chain_model(order.chain.name, kpi)
        if order.spoken_for and models is not None and models.current:
            question = questions.ChainQuery(given.session, order.chain.name, kpi)
            if (accepted := accepted_for(await subject_of(library, question))) is not None:
                found[kpi] = accepted
    return found


def _profiling_s(given: Material, order: Order, parties: Parties | None) -> float:
    """Lab seconds of the profiles: deployments are shared out as the samples are."""
    used = {id(sample) for sample in order.samples}
    found = 0.0
    for one in parties.speaking if parties else (given,):
        profiles = [s for s in one.samples if s.purpose == "profile"]
        everything = sum(sample.lab_s for sample in profiles)
        own = sum(sample.lab_s for sample in profiles if id(sample) in used)
        found += one.view.lab_s * own / everything if everything else 0.0
    return found


# ------------------------------------------------------------------- what is left behind


async def _issued(
    library: Library,
    given: Material,
    order: Order,
    answer: Recommendation,
    judged: Judged,
    store: bool,
) -> tuple[Recommendation, str]:
    """The answer with its id, stored; or without, and why."""
    templates = _templates(order)

    def issue(view: SessionView) -> RecommendationIssued:
        named = replace(answer, id=f"r{len(view.recommendations) + 1}")
        return RecommendationIssued(named, templates, judged.trends)

    try:
        if not store:
            raise UsageError("observers may watch, not command", where=given.session)
        fact = await recorded(library, given.session, issue)
        assert isinstance(fact, RecommendationIssued)
    except (SessionError, UsageError) as error:
        told = not_stored(error)
        return answer, f"{told}. {error.remedy}" if error.remedy else told
    return fact.recommendation, ""


def _templates(order: Order) -> dict[str, str]:
    """By function, from the source's side, each balancer before its function."""
    found: dict[str, str] = {}
    for vnf in order.chain.vnfs:
        if vnf.name in order.balancers:
            balancer = order.balancers[vnf.name]
            found.setdefault(balancer.name, balancer.template)
        found.setdefault(vnf.name, vnf.template)
    return found
