"""What a session knows of the functions of a chain: which chain, and its stand-alone profiles.

The engine finds the chain and has the models made (`chain_of`, `profiles_of`); the worker fits them
again and makes parts of them (`parts_from`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.errors import DataError, UsageError, WorkbenchError
from workbench.domain.samples import Sample
from workbench.domain.topology import Target
from workbench.engine.learning.modelling import model_of
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.refitting import StoredModel, fitted, load
from workbench.engine.learning.remaining import expect
from workbench.engine.learning.scoring import Material, Say, short_list, table_for, together
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.chains.base import ChainRule
    from workbench.chains.function_profiles import Part
    from workbench.models.forecast import ProfileForecaster


# ------------------------------------------------------------------- which chain


def chain_of(campaign: Campaign, wanted: str | None, workspace: Workspace) -> Target:
    """The chain that is asked about: a target of the campaign, or a template's name.

    Without a name the campaign's only chain, or else its only target.

    Raises
    ------
    UsageError
        If there is none of that name, or several and nothing says which.
    DescriptorError
        If the template has mistakes.
    """
    targets = {plan.target.name: plan.target for plan in campaign.targets}
    if wanted is None:
        chains = [target for target in targets.values() if len(target.vnfs) > 1]
        for found in (chains, list(targets.values())):
            if len(found) == 1:
                return found[0]
        raise UsageError(
            f"the campaign {campaign.name} has {len(chains) or 'no'} chains and {len(targets)} "
            "targets, and nothing says which is meant",
            remedy=f"Name one of these (--chain): {_choices(campaign, workspace)}",
        )
    if wanted in targets:
        return targets[wanted]
    from workbench.descriptors.loading import load_chain

    try:
        chain = load_chain(wanted, workspace=workspace)
    except UsageError:
        raise UsageError(
            f"neither the campaign {campaign.name} nor a template has a chain {wanted!r}",
            remedy=f"Choose one of: {_choices(campaign, workspace)}",
        ) from None
    return Target(wanted, chain.node, chain.source, chain.sink)


def _choices(campaign: Campaign, workspace: Workspace) -> str:
    return ", ".join(chains_of(campaign, workspace))


def chains_of(campaign: Campaign, workspace: Workspace) -> tuple[str, ...]:
    """What `chain_of` knows by name: the campaign's chains, its single functions, templates.

    Templates of chains count where the campaign profiles their functions.
    """
    from workbench.descriptors.library import library_for

    library = library_for(workspace)
    profiled = {target.vnfs[0].template for target in stand_alone(campaign)}
    targets = sorted((plan.target for plan in campaign.targets), key=lambda t: len(t.vnfs) == 1)
    named = [target.name for target in targets]
    for name in library.names("chain"):
        chain = library.chain(name)
        if chain and {vnf.template for vnf in Target(name, chain.node).vnfs} <= profiled:
            named.append(name)
    return tuple(dict.fromkeys(named))


def stand_alone(campaign: Campaign) -> tuple[Target, ...]:
    """The targets that are a single function."""
    found = (plan.target for plan in campaign.targets)
    return tuple(target for target in found if len(target.vnfs) == 1)


def profiles_for(campaign: Campaign, chain: Target) -> tuple[Target, ...]:
    """The stand-alone targets of the chain's functions, one for each of their templates.

    Raises
    ------
    UsageError
        If a function was not profiled on its own, or if nothing says which profile speaks for it.
    """
    known = {target.vnfs[0].template for target in stand_alone(campaign)}
    templates = dict.fromkeys(vnf.template for vnf in chain.vnfs)
    if missing := [template for template in templates if template not in known]:
        raise UsageError(
            f"needs a stand-alone profile of {', '.join(missing)}, and the campaign "
            f"{campaign.name} has none",
            where=f"chain {chain.name}",
            remedy=f"Add it to the targets; profiled are: {', '.join(sorted(known)) or 'none'}",
        )
    return tuple(profile_of(campaign, template, chain.name) for template in templates)


def profile_of(campaign: Campaign, template: str, chain: str = "") -> Target:
    """The stand-alone target that speaks for all functions of a profiled template.

    Of several it is the one that is asked about (`chain`), else the one of the template's name.

    Raises
    ------
    UsageError
        If it is none of these.
    """
    alone = [t for t in stand_alone(campaign) if t.vnfs[0].template == template]
    for name in (chain, template):
        for target in alone:
            if target.name == name:
                return target
    if len(alone) > 1:
        raise UsageError(
            f"has several profiles of {template} ({', '.join(t.name for t in alone)}), and nothing "
            "says which of them speaks for it in a chain",
            where=f"campaign {campaign.name}",
            remedy=f"Call one of these targets {template}, or profile it in one of them only",
        )
    return alone[0]


# ------------------------------------------------------------------- their models


@dataclass(frozen=True)
class Profiles:
    """What the worker makes parts of.

    Attributes
    ----------
    samples : of the targets, valid or not.
    models : of each target, one for each KPI that is needed.
    besides : KPIs that are good to have. They are fitted by the method of the target's first model
        where its samples teach them: comparing methods for each of them would take seconds.
    """

    campaign: Campaign
    targets: tuple[Target, ...]
    samples: tuple[Sample, ...]
    models: tuple[StoredModel, ...]
    besides: tuple[str, ...] = ()

    @property
    def unstored(self) -> tuple[str, ...]:
        """Why models were not stored, as sentences."""
        return tuple(dict.fromkeys(model.unstored for model in self.models if model.unstored))


async def profiles_of(
    library: Library,
    pool: Pool,
    given: Material,
    targets: Sequence[Target],
    kpis: Sequence[str],
    *,
    besides: Sequence[str] = (),
    store: bool = True,
    say: Say = lambda _: None,
) -> Profiles:
    """The models in force of these KPIs, made first where there are none.

    Parameters
    ----------
    given : all samples of the session.
    besides : see `Profiles`.

    Raises
    ------
    DataError
        If a target's samples teach no model of one of `kpis`.
    """
    own = {s.id: s for target in targets for s in given.of(target.name)}
    wanted = [(target, kpi) for target in targets for kpi in kpis]
    lacking = [target for target, kpi in wanted if given.view.model(target.name, kpi) is None]
    expect("row_of", sum(len(short_list(given.campaign, t.name)) for t in lacking))
    expect("fit_to_all", len(lacking))

    async def model(target: Target, kpi: str) -> StoredModel:
        say(f"{target.name}: model of {kpi}")
        found = await model_of(library, pool, given.session, target.name, kpi, store=store)
        # The same samples by the same objects: a pipe carries each of them once.
        return replace(found, samples=tuple(own.get(s.id, s) for s in found.samples))

    models = await together(model(target, kpi) for target, kpi in wanted)
    left = tuple(kpi for kpi in besides if kpi not in kpis)
    return Profiles(given.campaign, tuple(targets), tuple(own.values()), tuple(models), left)


# ------------------------------------------------------------------- in the worker


@dataclass(frozen=True)
class AskableProfiles:
    """Profiles that can be asked.

    Attributes
    ----------
    parts : one for each target.
    demands : CPU time per request by target, of those whose samples say it.
    warnings : models that are not what was stored, as sentences.
    """

    parts: tuple[Part, ...]
    demands: Mapping[str, ProfileForecaster]
    warnings: tuple[str, ...]


def parts_from(profiles: Profiles) -> AskableProfiles:
    """Fit the models again and make parts of them. Raises `WorkbenchError` if that fails."""
    from workbench.chains.demand import cpu_demand
    from workbench.chains.function_profiles import part_of

    parts: list[Part] = []
    demands: dict[str, ProfileForecaster] = {}
    warnings: list[str] = []
    for target in profiles.targets:
        models = [stored for stored in profiles.models if stored.model.target == target.name]
        loaded = [load(stored) for stored in models]
        warnings += [one.warning for one in loaded if one.warning]
        forecasters = [one.forecaster for one in loaded]
        forecasters += _besides(profiles, target, models[0].model.method)
        parts.append(part_of(target, profiles.samples, forecasters))
        primary = profiles.campaign.target_plan(target.name).primary
        try:
            demands[target.name] = cpu_demand(
                target.name, target.vnfs[0].name, profiles.samples, primary
            )
        except DataError:
            continue  # CPU is told where it is known
    return AskableProfiles(tuple(parts), demands, tuple(dict.fromkeys(warnings)))


def _besides(profiles: Profiles, target: Target, method: str) -> Iterator[ProfileForecaster]:
    own = [s for s in profiles.samples if s.point.target == target.name]
    for kpi in profiles.besides:
        try:
            yield fitted(table_for(profiles.campaign, target.name, own, kpi), method)
        except WorkbenchError:
            continue


def kpis_of(kpi: str, load_model: str, rule: ChainRule | None = None) -> tuple[str, ...]:
    """The KPIs that every profile must state so that a chain's can be composed.

    Raises
    ------
    UsageError
        If no rule composes the KPI under that load, or not the one that is given.
    """
    from workbench.chains.base import family_of
    from workbench.chains.rules import default_rule, must_apply

    family = family_of(load_model)
    chosen = default_rule(kpi, family) if rule is None else rule
    must_apply(chosen, kpi, family)
    return chosen.needs(kpi)


def learned_for(
    kpi: str, load_model: str, functions: int, rule: ChainRule | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """KPIs of which every profile has a model, where a chain's `kpi` is composed.

    The first are those whose models are chosen by themselves: `kpi`, and what a function carries
    where that is what reaches the next. The others are fitted by the method of `kpi`. Raises as
    `kpis_of`.
    """
    from workbench.chains.base import family_of

    needed = kpis_of(kpi, load_model, rule)
    everything = dict.fromkeys((*needed, *_useful_kpis(load_model, needed)))
    handed_on = functions > 1 and family_of(load_model) != "closed"
    chosen = dict.fromkeys(
        (kpi, *(k for k in everything if handed_on and kpis.of(k).kind == "rate"))
    )
    return tuple(chosen), tuple(k for k in everything if k not in chosen)


def _useful_kpis(load_model: str, needed: Sequence[str]) -> tuple[str, ...]:
    """KPIs that make a prediction better where profiles state them.

    What a function carries says its CPU and what reaches the next; beside percentiles the mean
    says how far the distribution bends (docs/chains.md).
    """
    from workbench.chains.base import family_of

    rate = kpis.carried("packets" if family_of(load_model) == "packets" else "requests")
    percentiles = [kpi for kpi in needed if kpis.of(kpi).quantile is not None]
    bent = (kpis.MEAN,) if len(percentiles) > 1 else ()
    return (rate, *bent)
