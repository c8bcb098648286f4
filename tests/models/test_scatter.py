"""What is believed of a host's noise by what its readings show of it."""

import math

import numpy as np
import pytest
from scipy import stats
from synthetic_function import CONFIGURATION

from workbench.domain.lab import HostNoise
from workbench.models.breakpoints.overload import PLAIN
from workbench.models.breakpoints.scatter import CapacityReading, centre

COUNT = 10


def half_width(sd, noise=None):
    """Of the interval of a log capacity, over that of Student's t for that many readings."""
    z = np.random.default_rng(3).permutation(stats.norm.ppf((np.arange(COUNT) + 0.5) / COUNT))
    values = math.log(500.0) + sd * z
    readings = [
        CapacityReading(CONFIGURATION, block, math.log(800.0), float(value))
        for block, value in enumerate(values)
    ]
    low, high = centre(readings, noise, shapes=PLAIN)[CONFIGURATION].quantiles((0.025, 0.975))
    t = stats.t.ppf(0.975, COUNT - 1) * float(values.std(ddof=1)) / math.sqrt(COUNT)
    return 0.5 * float(high - low) / float(t)


@pytest.mark.parametrize("sd", [0.08, 0.12, 0.16])
def test_readings_that_scatter_say_that_the_host_drifts_more_than_they_show(sd):
    assert half_width(sd) > 1.3


def test_a_host_whose_drift_was_measured_is_believed():
    rate = {"throughput_rps": 0.12}
    still = HostNoise(
        lab="synthetic",
        generator="synthetic 1",
        measured_at=0.0,
        samples=200,
        deployments=100,
        window_sd=rate,
        restart_sd={"throughput_rps": 0.0},
        drift_sd={"throughput_rps": 0.0},
        smallest_difference=rate,
        source_limit_rps=1e5,
    )
    assert half_width(0.12, still) < 1.1 < half_width(0.12)
