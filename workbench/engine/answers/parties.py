"""Whose stand-alone profiles speak for a chain's functions: one session's, or several parties'.

Vendors profile their own functions and hand over bundles (paper A, Fig. 1): each of them is asked
for its own, and what does not belong together is refused before any model is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import SessionError, UsageError
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Parameter, PrimaryWorkload
from workbench.domain.questions import ChainQuery, Recommend
from workbench.domain.samples import Sample
from workbench.domain.topology import Target
from workbench.engine.answers.chain_profiles import profile_of, profiles_for, stand_alone
from workbench.engine.answers.hosts import carried_over, elsewhere
from workbench.engine.learning.scoring import Material, material
from workbench.engine.sessions.library import Library


@dataclass(frozen=True)
class Parties:
    """The sessions that have profiles, in the order in which they were named.

    Attributes
    ----------
    targets : one for each kind of function of the chain.
    whose : by the name of such a target, who profiled it.
    """

    sessions: tuple[Material, ...]
    targets: tuple[Target, ...]
    whose: Mapping[str, Material]

    def samples_of(self, target: str) -> tuple[Sample, ...]:
        """What a stand-alone profile learns from."""
        return self.whose[target].of(target)

    def plan_of(self, template: str) -> TargetPlan:
        """How a kind of function was profiled alone."""
        target = next(t for t in self.targets if t.vnfs[0].template == template)
        return self.whose[target.name].campaign.target_plan(target.name)

    @property
    def speaking(self) -> tuple[Material, ...]:
        """Those of them whose profiles are used."""
        used = {one.session for one in self.whose.values()}
        return tuple(one for one in self.sessions if one.session in used)

    @property
    def campaign(self) -> Campaign:
        """The profiled targets as one campaign; settings that are of no target are the first's."""
        first, *others = (one.campaign for one in self.speaking)
        if not others:
            return first
        plans = tuple(self.plan_of(target.vnfs[0].template) for target in self.targets)
        templates = {t.name: t for o in (*reversed(others), first) for t in o.templates}
        return replace(
            first, targets=plans, workload=self.workload, templates=tuple(templates.values())
        )

    @property
    def workload(self) -> tuple[Parameter, ...]:
        """Workload parameters with all values at which somebody profiled."""
        found: dict[str, Parameter] = {}
        for one in self.speaking:
            for parameter in one.campaign.workload:
                before = found.setdefault(parameter.key, parameter)
                values = dict.fromkeys((*before.values, *parameter.values))
                ordered = sorted(values, key=lambda v: (isinstance(v, str), v))
                found[parameter.key] = replace(before, values=tuple(ordered))
        return tuple(found.values())

    @property
    def primary(self) -> PrimaryWorkload:
        """The loads that the functions were planned for."""
        ranges = [self.plan_of(target.vnfs[0].template).primary for target in self.targets]
        low = min(p.low for p in ranges)
        high = max(low, min(p.high for p in ranges))
        first = ranges[0]
        return PrimaryWorkload(first.name, low, high, first.scale, first.unit, first.integer)

    @property
    def hosts(self) -> dict[str, HostFacts]:
        """Where each profile was made, by a phrase for it."""
        return {f"profiles of session {one.session}": host_of(one) for one in self.speaking}

    def warnings(self, own: Material, chain: Target) -> Iterator[str]:
        """What is to be said of hosts that are not this one, of images, of who was passed over."""
        for one in self.speaking:
            yield from elsewhere(one.session, one.view.host)
            yield from carried_over(one.view)
        for target in self.targets:
            template, speaker = target.vnfs[0].template, self.whose[target.name]
            yield from _other_images(template, speaker, (own, *self.sessions))
            for other in self.sessions:
                if other is not speaker and _has(other, template):
                    yield (
                        f"{other.session} has a profile of {template}, too: that of "
                        f"{speaker.session} speaks, which is named first"
                    )
        used = self.speaking
        for one in self.sessions:
            if all(one is not other for other in used):
                yield f"{one.session} has no profile that is used for {chain.name}"


def host_of(given: Material) -> HostFacts:
    """Where it was measured. Raises `SessionError` where it does not say so."""
    if given.view.host is None:
        raise SessionError("does not say where it was measured", where=given.session)
    return given.view.host


async def sessions_asked(
    library: Library, question: ChainQuery | Recommend, own: Material
) -> tuple[Material, ...]:
    """The sessions whose profiles are asked for. Raises `SessionError`, and `UsageError` for one
    that was measured under another load than the chain."""
    named = dict.fromkeys((question.profiles or question.session, *question.more_profiles))
    found = []
    for name in named:
        given = own if name == own.session else await material(library, name, own.kpi)
        here, there = own.campaign.load.key, given.campaign.load.key
        if here != there:
            raise UsageError(
                f"was profiled under load {there}, and {own.session} is of {here}: they never meet",
                where=given.session,
                remedy="Profile the functions under the load of the chain",
            )
        found.append(given)
    return tuple(found)


def parties_for(sessions: Sequence[Material], chain: Target) -> Parties:
    """Who speaks for which function: of several that have profiled it, the one named first.

    Raises
    ------
    UsageError
        If nobody profiled a function, nothing says which profile speaks for it, or profiles cannot
        be told apart or asked for the same point.
    """
    if len(sessions) == 1:
        (only,) = sessions
        alone = profiles_for(only.campaign, chain)
        return Parties((only,), alone, {target.name: only for target in alone})
    whose: dict[str, Material] = {}
    targets: list[Target] = []
    for template in dict.fromkeys(vnf.template for vnf in chain.vnfs):
        speaker = next((one for one in sessions if _has(one, template)), None)
        if speaker is None:
            raise UsageError(
                f"needs a stand-alone profile of {template}, and none of "
                f"{', '.join(one.session for one in sessions)} has one",
                where=f"chain {chain.name}",
                remedy="Name the session or bundle that has it, too (--profiles A,B)",
            )
        target = profile_of(speaker.campaign, template, chain.name)
        if target.name in whose:
            raise UsageError(
                f"{whose[target.name].session} and {speaker.session} both call their target "
                f"{target.name}, and mean different functions",
                where=f"chain {chain.name}",
                remedy="Ask one of them for a profile whose target has another name",
            )
        targets.append(target)
        whose[target.name] = speaker
    parties = Parties(tuple(sessions), tuple(targets), whose)
    _must_meet(parties)
    return parties


def _must_meet(parties: Parties) -> None:
    """Raises `UsageError` where two parties set other workload parameters, or count other loads."""
    first, *others = parties.speaking
    for other in others:
        here, there = (
            {parameter.key for parameter in one.campaign.workload} for one in (first, other)
        )
        if here != there:
            raise UsageError(
                f"{first.session} and {other.session} were profiled with other workload "
                f"parameters ({', '.join(sorted(here ^ there))} in one of them only)",
                where="--profiles",
                remedy="Ask for profiles of the same workload parameters",
            )
    primaries = [parties.plan_of(target.vnfs[0].template).primary for target in parties.targets]
    loads = {(primary.name, primary.unit) for primary in primaries}
    if len(loads) > 1:
        told = ", ".join(f"{name} in {unit}" for name, unit in sorted(loads))
        raise UsageError(
            f"the profiles are over different loads ({told})",
            where="--profiles",
            remedy="Ask for profiles over the same load",
        )


def _has(given: Material, template: str) -> bool:
    return any(target.vnfs[0].template == template for target in stand_alone(given.campaign))


def _other_images(template: str, speaker: Material, others: Sequence[Material]) -> Iterator[str]:
    """That somebody measured a function whose image was another one than in the profile."""
    then = speaker.view.host.image_digests.get(template) if speaker.view.host else None
    for other in dict.fromkeys(one.session for one in others):
        given = next(one for one in others if one.session == other)
        now = given.view.host.image_digests.get(template) if given.view.host else None
        if now and then and now != then:
            where = "" if given is others[0] else f" in {other}"
            yield f"the image of {template}{where} is not the one that {speaker.session} profiled"
