"""Sampler `blocks` and the rules together, by trap of METHOD.md 11: do 95 % intervals cover?

Five seeds of two configurations each, twenty in `make accept`. The bounds are those of a binomial
with 95 %: 33 of 40 is its 0.01 % quantile. Long runs on the simulated lab are `make bench-truth`.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from noisy_session import CONFIGURATIONS, KPI_MAX, LOSS_GOAL, Session, Trap
from synthetic_function import LATENCY_SLA, OPEN, RATE, TARGET

from workbench.domain.campaign import SamplingPlan
from workbench.domain.lab import HostNoise
from workbench.models.breakpoints import RuleTerms, find_breakpoints
from workbench.models.interpolation import LogInterpolation
from workbench.sampling.blocks import BlockSampler

GENTLE = Trap(window_sd=0.033, restart_sd=0.01, drift_sd=0.02)
ROUGH = Trap(window_sd=0.05, restart_sd=0.05, drift_sd=0.08, law="t4")


def noise_of(trap):
    """What `doctor --measure` would find on a host with that noise."""
    rate = "throughput_rps"
    return HostNoise(
        lab="synthetic",
        generator="synthetic 1",
        measured_at=0.0,
        samples=64,
        deployments=8,
        window_sd={rate: trap.window_sd},
        restart_sd={rate: trap.restart_sd},
        drift_sd={rate: trap.drift_sd},
        smallest_difference={rate: 0.05},
        source_limit_rps=1e5,
    )


def breakpoints(session, noise=None):
    """What a session of twelve samples per configuration says, by configuration and rule."""
    sampler = BlockSampler(
        session.space(), SamplingPlan(max_samples=12), model_factory=LogInterpolation
    )
    samples = []
    while (ask := sampler.ask()) is not None:
        samples.append(session.measure(ask))
        sampler.tell(samples[-1:])
    return {
        c: {
            b.rule: b
            for b in find_breakpoints(
                TARGET,
                c,
                samples,
                RuleTerms(
                    primary=RATE,
                    load=OPEN,
                    kpi="p95_ms",
                    kpi_max=KPI_MAX,
                    loss_goal=LOSS_GOAL,
                    sla=LATENCY_SLA,
                    noise=noise,
                ),
            )
        }
        for c in CONFIGURATIONS
    }


@pytest.mark.parametrize(
    ("trap", "knows", "width"),
    [
        pytest.param(GENTLE, False, 0.20, id="gentle-noise"),
        pytest.param(replace(GENTLE, law="outliers"), False, 0.25, id="outliers"),
        pytest.param(replace(GENTLE, decay=0.4), False, 0.20, id="decay"),
        pytest.param(replace(GENTLE, restart_sd=0.05), False, 0.28, id="restarts"),
        pytest.param(ROUGH, True, 0.40, id="all-at-once-on-a-measured-host"),
    ],
)
def test_intervals_cover(trap, knows, width, full_length):
    widths, covered = {"capacity": [], "sla": []}, {"capacity": [], "sla": []}
    seeds, least = (20, 33) if full_length else (5, 7)
    for seed in range(seeds):
        session = Session(trap, 500 + seed)
        for configuration, found in breakpoints(session, noise_of(trap) if knows else None).items():
            for rule, truth in session.truth(configuration).items():
                point = found[rule]
                assert point.state == "found", (seed, point)
                covered[rule].append(point.low <= truth <= point.high)
                widths[rule].append(math.log(point.high / point.low))
    for rule, verdicts in covered.items():
        assert sum(verdicts) >= least, rule
        assert np.median(widths[rule]) <= width, rule


def test_intervals_follow_the_noise():
    """A quiet host gives intervals a third narrower than a noisy one, and nobody told them."""
    median = {}
    for sd in (0.01, 0.05):
        session = [Session(Trap(window_sd=sd), seed) for seed in range(3)]
        points = [found["capacity"] for s in session for found in breakpoints(s).values()]
        median[sd] = np.median([math.log(p.high / p.low) for p in points])
    assert median[0.01] < 0.67 * median[0.05]


def test_a_host_known_to_drift_gives_wider_intervals():
    session = Session(GENTLE, 7)
    calm, drifting = (
        breakpoints(Session(GENTLE, 7), noise_of(trap))
        for trap in (GENTLE, replace(GENTLE, drift_sd=0.08))
    )
    for configuration in session.capacities:
        a, b = calm[configuration]["capacity"], drifting[configuration]["capacity"]
        assert math.log(b.high / b.low) > 1.5 * math.log(a.high / a.low)


@pytest.mark.parametrize(
    ("low", "high", "state"), [(8.0, 12.0, "below_range"), (2e4, 3e4, "none_in_range")]
)
def test_outside_the_range_is_an_answer(low, high, state):
    for seed in range(3):
        for found in breakpoints(Session(ROUGH, seed, low=low, high=high)).values():
            for rule in ("capacity", "sla", "cpu"):
                assert found[rule].state == state, rule
