"""Several points at once: each another one, so many of each owner, and nothing believed is kept."""

from __future__ import annotations

from collections import Counter

import pytest
from test_pooled_sampler import CONFIGURATIONS, RATE, answer, space

from workbench.domain.campaign import SamplingPlan
from workbench.sampling.base import Ask
from workbench.sampling.batches import next_batch
from workbench.sampling.pooled import FILLED, PooledSampler
from workbench.sampling.variance import VarianceSampler

OWNER = {c: ("one", "other")[place % 2] for place, c in enumerate(CONFIGURATIONS)}
PLAN = SamplingPlan(max_samples=6)


@pytest.mark.parametrize("kind", [PooledSampler, VarianceSampler])
def test_points_of_a_batch_differ_and_are_spread_over_those_who_measure(kind) -> None:
    sampler = kind(space(), PLAN)
    ends = [Ask(c, wl, 0, wl, wl, "") for c in CONFIGURATIONS for wl in (RATE.low, RATE.high)]
    sampler.tell([answer(ask) for ask in ends])
    first = sampler.ask()

    asks = next_batch(sampler, OWNER, 3, answer)

    assert asks[0] == first
    assert Counter(OWNER[ask.configuration] for ask in asks) == {"one": 3, "other": 3}
    places = {(ask.configuration, ask.wl) for ask in asks}
    assert len(places) == len(asks)
    assert not places & {(ask.configuration, ask.wl) for ask in ends}


def test_what_has_ended_is_asked_for_no_more() -> None:
    told = []
    for _ in range(20):
        sampler = PooledSampler(space(), PLAN)
        sampler.tell(told)
        asks = next_batch(sampler, OWNER, 10, answer)
        if not asks:
            break
        told += [answer(ask) for ask in asks]
    assert not asks
    counts = Counter(sample.point.configuration for sample in told)
    assert counts.keys() <= set(CONFIGURATIONS)  # the law may know one without its samples
    assert sum(counts.values()) >= FILLED
    assert max(counts.values()) <= PLAN.max_samples


class Deaf:
    """Asks for one point for ever."""

    def ask(self):
        return Ask(CONFIGURATIONS[0], 100.0, 0, 100.0, 100.0, "")

    def tell(self, samples):
        assert samples

    def skip(self, configuration):
        assert configuration


def test_a_sampler_that_learns_nothing_ends_its_batch() -> None:
    assert len(next_batch(Deaf(), OWNER, 3, answer)) == 1
