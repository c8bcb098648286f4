"""The sampler `pooled` ends configurations on a stated accuracy with a stated confidence: it is so
on the matched firewall surface, to the end of twelve seeded plays of twelve configurations each;
of three outside of `make accept`."""

import numpy as np
import pytest
from science.accuracy import PLAYS, TOGETHER, Ended, play
from scipy.stats import binom

from workbench.sampling.pooled import CONFIDENCE


@pytest.fixture(scope="module")
def plays(full_length):
    seeds = PLAYS if full_length else 3
    return [play("firewall-law", seed) for seed in range(seeds)]


@pytest.mark.slow
def test_most_crossings_are_known_long_before_the_budget_ends(plays):
    ended = [one for played in plays for one in played.ended]
    assert len(ended) == len(plays) * TOGETHER
    assert np.mean([one.is_noted for one in ended]) > 0.9
    assert np.median([played.samples for played in plays]) < 6 * TOGETHER


def test_crossings_lie_where_they_are_said_to_as_often_as_is_said(plays):
    """At least as many as of 95 % the binomial's 1 % quantile demands."""
    right = [one.is_right for played in plays for one in played.ended if one.is_noted]
    assert sum(right) >= binom.ppf(0.01, len(right), CONFIDENCE)


def test_what_is_farther_off_than_stated_is_not_right():
    assert Ended(100.0, 0.1, 109.0).is_right
    assert not Ended(100.0, 0.1, 112.0).is_right
    assert not Ended(float("nan"), float("nan"), 100.0).is_noted
