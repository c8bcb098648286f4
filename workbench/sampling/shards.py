"""A campaign in shards: pieces that hosts measure apart, each the same wherever it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from workbench.domain import codec
from workbench.domain.campaign import Campaign, SamplingPlan, TargetPlan
from workbench.domain.fleets import PlannedPoint, Shard
from workbench.domain.limits import LARGEST_SEED
from workbench.domain.parameters import Configuration

SHARDS_PER_HOST = 3
"""As many as a host is to measure: with one, the slowest host would be waited for."""
LEARN_ACROSS = ("pooled", "gp-variance")
"""Samplers that learn of one configuration from another: over several hosts they are asked in one
place for all (`planned_in_one_place`)."""
ANCHOR_LOADS, ANCHOR_REPETITIONS = 2, 4
"""The ends of the range: one shows how fast a host answers, the other what it carries."""


@dataclass(frozen=True)
class ShardPiece:
    """What a shard holds: keys of configurations of one target."""

    target: str
    configurations: tuple[str, ...]


def split(
    campaign: Campaign, hosts: int, *, run: str, lab: str, seed: int, size: int | None = None
) -> tuple[Shard, ...]:
    """All configurations of a campaign in shards, each with those of one target.

    Configurations of the same workload stay together: they share what is measured once per
    workload, such as the path past the functions. The largest shards come first.

    Parameters
    ----------
    campaign : what is to be measured.
    hosts : how many there are, at least 1.
    run : name of the run; another run measures again.
    lab, seed : what else makes a sample another one.
    size : configurations of a shard, at most; None: so that every host gets about
        `SHARDS_PER_HOST`.
    """
    total = sum(len(campaign.configurations(plan)) for plan in campaign.targets)
    most = size or max(1, -(-total // (hosts * SHARDS_PER_HOST)))
    found = []
    for plan in campaign.targets:
        for _, alike in groupby(sorted(campaign.configurations(plan), key=_workload), _workload):
            for piece in _pieces(tuple(alike), most):
                narrow = narrowed(campaign, plan, piece)
                found.append(_shard(narrow, run, lab, seed))
    found.sort(key=lambda shard: -len(shard.configurations))
    return tuple(found)


def cut_again(
    campaign: Campaign, pieces: Sequence[ShardPiece], *, run: str, lab: str, seed: int
) -> tuple[Shard, ...]:
    """The shards of a campaign that was cut like this before, in that order.

    Parameters
    ----------
    campaign, run, lab, seed : as `split` was given them.
    pieces : each of a target and configurations of that campaign.
    """
    plans = {plan.target.name: plan for plan in campaign.targets}
    return tuple(
        _shard(_narrow_to(campaign, plans[piece.target], piece.configurations), run, lab, seed)
        for piece in pieces
    )


def narrowed(campaign: Campaign, plan: TargetPlan, piece: Sequence[Configuration]) -> Campaign:
    """The campaign with these configurations of this target only."""
    return _narrow_to(campaign, plan, tuple(configuration.key for configuration in piece))


def _narrow_to(campaign: Campaign, plan: TargetPlan, only: tuple[str, ...]) -> Campaign:
    return replace(campaign, targets=(replace(plan, only=only),), budget_s=None)


def anchor(
    campaign: Campaign, *, host: str, run: str, lab: str, seed: int, again: int = 0
) -> Shard:
    """What every host measures besides, so that hosts can be compared: both ends of the
    range at the first target's middle configuration, each on several deployments.

    Parameters
    ----------
    again : how often it was measured before and told nothing: each time under a key of its own.
    """
    plan = campaign.targets[0]
    configurations = campaign.configurations(plan)
    middle = configurations[len(configurations) // 2]
    narrow = narrowed(campaign, plan, (middle,))
    sampling = SamplingPlan(
        method="uniform",
        max_samples=ANCHOR_LOADS * ANCHOR_REPETITIONS,
        epsilon=campaign.sampling.epsilon,
        repetitions=ANCHOR_REPETITIONS,
        model=campaign.sampling.model,
    )
    whose = f"{run}/anchor/{host}" + f"/{again}" * bool(again)
    return _shard(replace(narrow, sampling=sampling), whose, lab, seed)


def planned_in_one_place(campaign: Campaign, hosts: int) -> bool:
    """Whether its sampler is asked for all hosts together, and not by each for its shard.

    Repetitions are not: each is to have a deployment of its own, which a sampler counts by itself.
    """
    sampling = campaign.sampling
    return (
        hosts > 1
        and sampling.method in LEARN_ACROSS
        and sampling.repetitions == 1
        and sampling.max_samples > ANCHOR_LOADS
    )


def beginning(campaign: Campaign) -> Campaign:
    """What hosts measure by themselves before anything is planned: both ends of every range."""
    sampling = replace(
        campaign.sampling, method="uniform", max_samples=2, repetitions=1, options={}
    )
    return replace(campaign, sampling=sampling)


def whole(campaign: Campaign, shard: Shard, *, run: str, lab: str, seed: int) -> Shard:
    """The configurations of a shard of `beginning` by the campaign's own sampler, on one host."""
    return _shard(replace(campaign, targets=shard.campaign.targets, budget_s=None), run, lab, seed)


def going_on(shard: Shard, points: Sequence[PlannedPoint]) -> Shard:
    """A shard's next points, under a key of their own."""
    plain = codec.dumps([shard.key, [codec.to_plain(point) for point in points]])
    return replace(shard, key=hashlib.blake2b(plain, digest_size=8).hexdigest())


def of_run(shard: Shard, id: str) -> Shard:
    """The same under a key that no other run has, with the seed that it has in any.

    Parameters
    ----------
    id : random, of the run; empty: it was begun before there were any, and its hosts know its
        shards by the keys that they have.
    """
    if not id:
        return shard
    digest = hashlib.blake2b(codec.dumps([shard.key, id]), digest_size=8)
    return replace(shard, key=digest.hexdigest())


def _workload(configuration: Configuration) -> str:
    return Configuration({}, configuration.workload).key


def _pieces(
    configurations: Sequence[Configuration], most: int
) -> tuple[tuple[Configuration, ...], ...]:
    """As few as there must be, of about the same size."""
    count = -(-len(configurations) // most)
    cuts = [round(i * len(configurations) / count) for i in range(count + 1)]
    return tuple(tuple(configurations[a:b]) for a, b in pairwise(cuts) if a < b)


def _shard(campaign: Campaign, run: str, lab: str, seed: int) -> Shard:
    """The key is a digest of all that makes its samples what they are."""
    plain = codec.dumps([codec.to_plain(campaign), run, lab, seed])
    digest = hashlib.blake2b(plain, digest_size=16).digest()
    own_seed = (seed ^ int.from_bytes(digest[8:], "big")) & (LARGEST_SEED >> 11)
    return Shard(digest[:8].hex(), campaign, own_seed)
