"""The pooled model on a surface of hundreds of configurations: from where it begins to learn."""

import math

import numpy as np
import pytest
from science import judging
from science.surfaces import BY_NAME

SURFACE = BY_NAME["firewall-law"]


def beyond_the_knee(seed):
    """One sample of every other configuration up to half as far again as its crossing of 1 % loss;
    of a few a flat one."""
    rng = np.random.default_rng(seed)
    loads = np.array(SURFACE.grid_loads())
    points = [(c, float(loads[0]), 0) for c in SURFACE.configurations[::37]]
    for configuration in SURFACE.configurations[::2]:
        crossing = np.interp(0.0, np.log(SURFACE.truth(configuration, loads)), np.log(loads))
        wl = math.exp(min(crossing + rng.uniform(0.0, 0.5), math.log(loads[-1])))
        points.append((configuration, wl, 0))
    return points


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_the_lowest_sample_of_a_configuration_need_not_be_its_base_line(seed):
    """Begun from the lowest sample of each alone it errs by 1.3 to 2.0: steep pieces pass for base
    lines, capacities for equal, and what is left for noise."""
    judged = judging.judge_of(SURFACE)
    table = judged.table(beyond_the_knee(seed), "train-0")
    score = judged.score(judging.factory("pooled")(), table)
    assert score.sane
    assert score.rmse < 1.2
