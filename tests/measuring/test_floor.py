"""The pooled variance floor: what repetitions say of a visit, and intervals that hold them."""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from drives import CLOSED, drive, judged, point, records, terms

from workbench.domain.lab import HostNoise
from workbench.domain.samples import Estimate
from workbench.measuring.floor import METHOD_FLOOR, METHOD_SD, variance_floor
from workbench.measuring.judging import Terms, judge

BASE = judged(
    drive(records(*[np.arange(0.0, 4.5, 0.005) + d for d in (0, 0, 0.002)]), 4.5), 200, terms()
).measurement.sample


def visits(sd, count, *, wl=200.0, restart_sd=0.0, per_block=1, seed=1, **changed):
    """Repetitions of a point whose p95 and mean scatter from visit to visit and block to block."""
    rng = np.random.default_rng(seed)
    starts = np.repeat(
        rng.normal(0, restart_sd, count) if restart_sd else np.zeros(count), per_block
    )
    logs = np.log(0.01) + starts + rng.normal(0, sd, count * per_block)
    return [
        replace(
            BASE,
            point=point(wl, i),
            block=i // per_block,
            kpis={k: Estimate(v, v, v) for k, v in (("p95_ms", value), ("mean_ms", value))},
            **changed,
        )
        for i, value in enumerate(np.exp(logs))
    ]


def test_without_repetitions_the_method_s_figures_hold():
    for samples in ([], visits(0.3, 1), visits(0.3, 1) + visits(0.3, 1, wl=300.0)):
        assert variance_floor(samples) == METHOD_FLOOR
    assert METHOD_FLOOR.sd("p95_ms", 1) == METHOD_FLOOR.sd("p99_ms", 1) == 0.12
    assert METHOD_FLOOR.sd("throughput_rps", 4) == METHOD_FLOOR.sd("goodput_mbps", 4) == 0.025
    assert METHOD_FLOOR.sd("loss_pct", 1) == 0.0


@pytest.mark.parametrize("sd", [0.02, 0.30])
def test_repetitions_in_different_blocks_move_the_floor_to_what_they_scatter(sd):
    points = [visits(sd, 12, wl=wl, seed=int(wl)) for wl in (100.0, 200.0, 400.0)]
    got = variance_floor([sample for point in points for sample in point])
    expected = np.sqrt((2 * METHOD_SD["p95_ms"] ** 2 + 33 * sd**2) / 35)
    assert got.visit_sd["p95_ms"] == pytest.approx(max(0.12, expected), rel=0.25)
    if sd < METHOD_SD["p95_ms"]:
        assert got.half("p95_ms", 1) == pytest.approx(1.96 * 0.12, rel=1e-3), "never less"
    else:
        assert got.degrees["p95_ms"] == 2 + 33
        assert got.half("p95_ms", 1) == pytest.approx(2.03 * got.visit_sd["p95_ms"], rel=0.01)
    assert got.window_sd["p95_ms"] == METHOD_SD["p95_ms"], "nothing was repeated within a block"
    assert got.visit_sd["throughput_rps"] == METHOD_SD["throughput_rps"], "a planned rate"


def test_another_window_does_not_average_out_a_restart():
    got = variance_floor(visits(0.02, 40, restart_sd=0.2, per_block=3))
    assert got.window_sd["p95_ms"] < 0.05
    assert got.visit_sd["p95_ms"] == pytest.approx(0.2, rel=0.3)
    assert got.sd("p95_ms", 100) > 0.9 * got.sd("p95_ms", 1)


@pytest.mark.parametrize("per_block", [1, 3])
def test_visits_of_several_windows_say_what_one_of_them_scatters(per_block):
    """Their windows have averaged out three quarters of what one window scatters by."""
    between, window, windows = 0.2, 0.24, 4
    sd = window / np.sqrt(windows)
    made = visits(sd, 60, restart_sd=between, per_block=per_block, windows=windows)
    got = variance_floor(made)
    assert got.sd("p95_ms", windows) == pytest.approx(np.hypot(between, sd), rel=0.3)
    if per_block > 1:
        assert got.window_sd["p95_ms"] == pytest.approx(window, rel=0.2)


def test_repetitions_on_one_deployment_raise_both():
    got = variance_floor(visits(0.4, 1, per_block=100))
    assert got.window_sd["p95_ms"] == got.visit_sd["p95_ms"] == pytest.approx(0.4, rel=0.2)


def test_what_says_nothing_of_scatter_is_left_out():
    odd = (
        {"valid": False},
        {"labels": ("overloaded",)},
        {"labels": ("censored",)},
    )
    for changed in odd:
        assert variance_floor(visits(0.5, 10, **changed)) == METHOD_FLOOR


def test_the_host_s_own_noise_is_the_prior_where_it_was_measured():
    kpis = ("p95_ms", "mean_ms", "throughput_rps")
    noise = HostNoise(
        "docker",
        "oha",
        0.0,
        samples=40,
        deployments=4,
        window_sd=dict.fromkeys(kpis, 0.03),
        restart_sd=dict.fromkeys(kpis, 0.04),
        drift_sd=dict.fromkeys(kpis, 0.0),
        smallest_difference={},
        source_limit_rps=5000.0,
    )
    got = variance_floor([], noise)
    assert got.window_sd["p95_ms"] == pytest.approx(0.03)
    assert got.visit_sd["p95_ms"] == pytest.approx(0.05)
    assert got.degrees == {}
    partly = replace(noise, window_sd={"mean_ms": 0.03})
    assert variance_floor([], partly).visit_sd["p95_ms"] == METHOD_SD["p95_ms"]


def noisy_visit(rng, wl, sd, given, block):
    """One visit in a closed loop; all of its requests share the visit's luck."""
    clients = int(wl)
    service = 0.01 * np.exp(rng.normal(0, sd))
    starts = np.arange(0.0, 4.5, service)
    each = service * rng.lognormal(0, 0.2, (clients, starts.size))
    ends = np.cumsum(each, axis=1)
    begins = np.concatenate((np.zeros((clients, 1)), ends[:, :-1]), axis=1)
    held = begins < 4.5
    begun, ended = begins[held], ends[held]
    rows = records(begun, begun, np.where(ended < 4.5, ended, np.nan))
    made = drive(rows, 4.5, definition="request")
    taken = judge([made], point(wl, block), replace(given, block=block), started_at=0, lab_s=4.5)
    return taken.measurement.sample


@pytest.mark.parametrize("sd", [0.03, 0.10, 0.25])
def test_intervals_of_interleaved_repetitions_hold_the_median_of_the_others(sd):
    rng = np.random.default_rng(7)
    floor, samples = METHOD_FLOOR, {4.0: [], 16.0: []}
    for block in range(20):
        for wl, taken in samples.items():
            given = Terms(CLOSED, terms().windows, None, "p95_ms", floor)
            taken.append(noisy_visit(rng, wl, sd, given, block))
        floor = variance_floor([s for taken in samples.values() for s in taken])
    held = []
    for taken in samples.values():
        for kpi in ("mean_ms", "p95_ms", "throughput_rps"):
            for i, sample in enumerate(taken):
                others = median(s.kpi(kpi) for j, s in enumerate(taken) if j != i)
                held.append(sample.kpis[kpi].low <= others <= sample.kpis[kpi].high)
    assert np.mean(held) >= 0.9
    assert floor.visit_sd["mean_ms"] == pytest.approx(max(sd, 0.05), rel=0.4)
