"""The sampler `pooled` ends configurations on a stated accuracy with a stated confidence: is it so?

The truth is where the surface's own formula crosses the limit of an SLA: it depends on no
definition of ours. Twelve seeded plays of twelve configurations each, drawn from the matched
firewall surface with its noise, to the end.
"""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from science.surfaces import BY_NAME
from scipy.optimize import brentq
from scipy.stats import binom

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Sla
from workbench.sampling.pooled import PooledSampler

SURFACE = BY_NAME["firewall-law"]
LIMIT = Sla("loss_pct", 1.0)
PLAYS, TOGETHER = 12, 12
CONFIDENCE = 0.95
SAID = re.compile(r"loss_pct crosses 1 at ([\d.]+), known to ([\d.]+) % at 95 % confidence")


def crossing(configuration):
    """Load at which the median loss is the limit."""

    def beyond(x):
        return float(SURFACE.truth(configuration, np.array([math.exp(x)]))[0]) - LIMIT.limit

    return math.exp(brentq(beyond, math.log(SURFACE.primary.low), math.log(2e6)))


def play(seed):
    """What is said of each configuration at the end, its true crossing, and the samples taken."""
    chosen = np.random.default_rng(seed).choice(
        len(SURFACE.configurations), TOGETHER, replace=False
    )
    own = tuple(SURFACE.configurations[i] for i in chosen)
    space = replace(SURFACE.space(seed, own), sla=LIMIT)
    sampler = PooledSampler(space, SamplingPlan(max_samples=30))
    taken = 0
    while (ask := sampler.ask()) is not None:
        sampler.tell([SURFACE.measure(ask.configuration, ask.wl, draw=f"play {seed}")])
        taken += 1
    return [(sampler.endings[c].note, crossing(c)) for c in own], taken


@pytest.fixture(scope="module")
def plays():
    return [play(seed) for seed in range(PLAYS)]


def test_most_crossings_are_known_long_before_the_budget_ends(plays):
    notes = [note for said, _ in plays for note, _ in said]
    assert np.mean([SAID.search(note) is not None for note in notes]) > 0.9
    assert np.median([taken for _, taken in plays]) < 6 * TOGETHER


def test_crossings_lie_where_they_are_said_to_as_often_as_is_said(plays):
    """At least as many as of 95 % the binomial's 1 % quantile demands."""
    right = [
        abs(math.log(truth / float(found[1]))) <= math.log1p(float(found[2]) / 100.0) + 1e-3
        for said, _ in plays
        for note, truth in said
        if (found := SAID.search(note))
    ]
    assert sum(right) >= binom.ppf(0.01, len(right), CONFIDENCE)
