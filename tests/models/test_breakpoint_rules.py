"""The five rules of METHOD.md 7 on curves with known breakpoints, and where there is none."""

import math
from dataclasses import replace

import numpy as np
import pytest
from synthetic_function import (
    CLIENTS,
    CLOSED,
    CONFIGURATION,
    LATENCY_SLA,
    OPEN,
    RATE,
    TARGET,
    Function,
    make_sample,
)

from workbench.domain.parameters import Configuration, LoadModel, Sla
from workbench.domain.profiles import BREAKPOINT_RULES
from workbench.models.breakpoints import RuleTerms, find_breakpoints

QUIET = {"noise": 0.0, "shared": 0.0}


def find(
    samples,
    *,
    primary=RATE,
    load=OPEN,
    kpi="p95_ms",
    kpi_max=1000.0,
    loss_goal=0.005,
    sla=LATENCY_SLA,
):
    found = find_breakpoints(
        TARGET,
        CONFIGURATION,
        samples,
        RuleTerms(
            primary=primary,
            load=load,
            kpi=kpi,
            kpi_max=kpi_max,
            loss_goal=loss_goal,
            sla=sla,
        ),
    )
    for point in found:
        assert (point.state == "found") == (point.wl is not None)
        if point.state == "found":
            assert 0 < point.low <= point.wl <= point.high < math.inf
        else:
            assert point.low is None
            assert point.high is None
            assert point.note
    return {point.rule: point for point in found}


def sweep(capacity, low=40.0, high=4000.0, count=14, seed=1, **options):
    function = Function(capacity, seed, **{**QUIET, **options})
    return [function.measure(wl) for wl in np.geomspace(low, high, count)]


def closed(rates, think_s=0.1, share=None, p95=None, load=CLOSED):
    """Closed-loop samples from throughputs by number of clients."""
    return [
        make_sample(
            n,
            {"throughput_rps": x, "p95_ms": p95[n] if p95 else 3e3 * max(n / x - think_s, 1e-3)},
            load=load,
            share=share[n] if share else None,
        )
        for n, x in rates.items()
    ]


# --- all rules together


def test_one_answer_per_rule_in_their_order():
    assert tuple(find(sweep(600.0))) == ("capacity", "knee", "cpu", "sla", "covariance")
    always = [rule for rule in BREAKPOINT_RULES if rule not in {"sla", "collapse"}]
    assert list(find(sweep(600.0), sla=None)) == always


def test_every_rule_finds_the_same_saturation_on_quiet_samples():
    """The M/M/1 queue bends before it breaks, so `knee` may come early; nothing comes late."""
    truth = 600.0
    found = find(sweep(truth, count=40))
    assert {p.state for p in found.values()} == {"found"}
    assert found["capacity"].wl == pytest.approx(truth, rel=0.02)
    assert found["sla"].wl == pytest.approx(Function(truth).truth_sla(100.0), rel=0.06)
    assert found["cpu"].wl == pytest.approx(truth, rel=0.1)
    assert found["covariance"].wl == pytest.approx(truth, rel=0.15)
    assert 0.7 * truth < found["knee"].wl < 1.05 * truth


@pytest.mark.parametrize("samples", [[], sweep(600.0)[:1]])
def test_too_little_is_unresolved(samples):
    assert {p.state for p in find(samples).values()} <= {"unresolved", "none_in_range"}
    assert find(samples)["capacity"].state == "unresolved"
    assert find(samples)["sla"].state == "unresolved"


@pytest.mark.parametrize("capacity_rps", [300.0, 1000.0])
def test_a_limit_from_below_has_no_load_at_which_load_breaks_it(capacity_rps):
    """It was found where it begins to hold, or read as never broken."""
    limit = Sla("throughput_rps", 400.0, ">=")
    assert find(sweep(capacity_rps), sla=limit)["sla"].state == "unresolved"


def test_none_in_range():
    found = find(sweep(1e6))
    assert {rule: p.state for rule, p in found.items() if rule != "covariance"} == {
        "capacity": "none_in_range",
        "knee": "none_in_range",
        "cpu": "none_in_range",
        "sla": "none_in_range",
    }
    assert "no saturation up to 4000/s" in found["capacity"].note


def test_below_range():
    found = find(sweep(20.0))
    assert {rule: p.state for rule, p in found.items()} == {
        "capacity": "below_range",
        "knee": "below_range",
        "cpu": "below_range",
        "sla": "below_range",
        "covariance": "below_range",
    }
    # 20/s far into overload; how wide the knee below is, nobody saw.
    about = float(found["capacity"].note.split("about ")[1].removesuffix("/s"))
    assert about == pytest.approx(20.0, rel=0.1)


def test_invalid_samples_are_no_values():
    samples = sweep(600.0)
    poison = [
        make_sample(
            wl, {"throughput_rps": 1.0, "loss_pct": 99.0, "p95_ms": 9e5}, share=1.0, reason=r
        )
        for wl, r in ((50.0, "host_saturated"), (500.0, "unsteady"), (3000.0, "too_few"))
    ]
    assert find([*poison, *samples]) == find(samples)


def test_other_load_models_targets_and_configurations_are_no_values():
    samples = sweep(600.0)
    other = Configuration({"haproxy.vcpu": 0.5}, {})
    strangers = [
        replace(samples[-1], load_model="closed"),
        replace(samples[-1], point=replace(samples[-1].point, target="tinyproxy")),
        replace(samples[-1], point=replace(samples[-1].point, configuration=other)),
    ]
    assert find([*samples[:5], *strangers]) == find(samples[:5])


def test_where_the_source_limits_it_says_so():
    kept = [s for s in sweep(1e6) if s.point.wl < 1500.0]
    saturated = [
        make_sample(wl, {"throughput_rps": 1500.0}, reason="source_saturated")
        for wl in (2000.0, 4000.0)
    ]
    found = find([*kept, *saturated])
    for rule in ("capacity", "sla", "knee", "cpu"):
        assert found[rule].state == "unresolved"  # what lies above 2000/s nobody has seen
        assert f"up to {kept[-1].point.wl:.4g}/s, where the source limits (at 2000/s)" in (
            found[rule].note
        )


def test_a_range_whose_top_has_no_valid_sample_is_not_called_free_of_breakpoints():
    kept = [s for s in sweep(1e6) if s.point.wl < 1500.0]
    failed = make_sample(4000.0, {"throughput_rps": 1500.0}, reason="errors")
    for rule in ("capacity", "sla", "knee", "cpu"):
        answer = find([*kept, failed])[rule]
        assert answer.state == "unresolved"
        assert "no valid sample above, though tried at 4000/s" in answer.note


def test_order_of_samples_does_not_matter():
    samples = sweep(600.0, noise=0.06)
    assert find(samples[::-1]) == find(samples)


# --- capacity


def test_capacity_of_deep_overload_alone_is_below_range_only_from_the_lowest_load_on():
    samples = [s for s in sweep(600.0) if s.point.wl > 900.0]
    found = find(samples)["capacity"]
    assert found.state == "found"
    assert found.low < 600.0 < found.high
    assert "nothing valid below" in found.note


def test_capacity_that_decays_in_overload_is_not_underestimated_much():
    assert find(sweep(600.0, decay=0.4, count=12))["capacity"].wl == pytest.approx(600.0, rel=0.1)


def test_one_sample_that_stalled_does_not_move_capacity():
    samples = sweep(600.0, count=12)
    stalled = make_sample(
        450.0,
        {"throughput_rps": 200.0, "loss_pct": 55.0, "p95_ms": 900.0},
        share=0.4,
        overloaded=True,
    )
    found = find([*samples, stalled])["capacity"]
    assert found.wl == pytest.approx(600.0, rel=0.05)


def test_capacity_interval_narrows_with_samples_but_keeps_what_they_share():
    width = {
        count: math.log(p.high / p.low)
        for count in (4, 30)
        if (p := find(sweep(600.0, count=count, noise=0.04))["capacity"])
    }
    assert 0.15 < width[30] < width[4]


def test_closed_loop_capacity_is_where_the_asymptotes_meet():
    """Z = 0.1 s, R(1) = 0.02 s, X_max = 400/s: N* = 48."""
    rates = {n: min(n / 0.12, 400.0) for n in (1, 4, 16, 40, 64, 128, 256)}
    found = find(closed(rates), primary=CLIENTS, load=CLOSED)["capacity"]
    assert found.wl == pytest.approx(48.0, rel=0.01)
    assert found.low < 48.0 < found.high
    assert "X_max 400/s" in found.note


def test_closed_loop_without_think_time_is_saturated_by_the_first_client():
    """tinyproxy at 25 % (METHOD.md 2)."""
    load = LoadModel("closed")
    samples = [
        replace(s, load_model=load.key)
        for s in closed({1: 892.0, 2: 796.0, 4: 832.0, 16: 858.0, 64: 888.0}, think_s=0.0)
    ]
    found = find(samples, primary=CLIENTS, load=load)["capacity"]
    assert found.state == "below_range"
    assert "saturated from 1 on" in found.note


def test_closed_loop_that_still_rises_has_no_capacity_in_range():
    rates = {n: n / 0.12 for n in (1, 4, 16, 64)}
    assert find(closed(rates), primary=CLIENTS, load=CLOSED)["capacity"].state == "none_in_range"


def test_capacity_under_a_goal_that_tolerates_much():
    """1000/s are carried whatever is offered, and a fifth may be lost: 1250/s. Samples within the
    goal beyond 1000/s say nothing else."""
    samples = [
        make_sample(
            wl,
            {"throughput_rps": min(wl, 1000.0), "loss_pct": 100.0 * max(0.0, 1.0 - 1000.0 / wl)},
            overloaded=wl > 1000.0,
        )
        for wl in (100.0, 400.0, 900.0, 1150.0, 1200.0, 1230.0, 1600.0, 2400.0)
    ]
    found = find(samples, loss_goal=0.2)["capacity"]
    assert found.wl == pytest.approx(1250.0, rel=0.03)
    assert found.low < 1250.0 < found.high


@pytest.mark.parametrize("width", [0.0, 0.3])
def test_usage_tells_a_wide_knee(width):
    """Throughput bends on a parabola from 1 - w on, where usage is full already (METHOD.md 11)."""
    nominal, goal = 600.0, 0.005
    samples = []
    for rho in (0.3, 0.5, 0.65, 0.74, 0.8, 0.88, 0.95, 1.02, 1.1, 1.2, 3.0):
        bent = rho - (rho - 1.0 + width) ** 2 / (4.0 * width) if width else math.nan
        carried = min(rho, 1.0) if abs(rho - 1.0) >= width else bent
        slow = 2.0 - 2.0 * width - rho
        full = rho / slow if width and 1.0 - 2.0 * width < rho < 1.0 - width else carried
        share = min(full, 1.0) if rho < 1.0 - width else 1.0
        loss = 1.0 - carried / rho
        kpis = {"throughput_rps": nominal * carried, "loss_pct": 100.0 * loss, "p95_ms": 3.0}
        samples.append(make_sample(nominal * rho, kpis, share=share, overloaded=loss > 0.01))
    found = find(samples)["capacity"]
    half = 1.0 - width + 2.0 * width * goal
    truth = half + math.sqrt(half**2 - (1.0 - width) ** 2) if width else 1.0 / (1.0 - goal)
    assert found.low < nominal * truth < found.high
    assert found.wl == pytest.approx(nominal * truth, rel=0.06)


def test_an_sla_between_two_clients_is_anywhere_between_them():
    """No load lies between one client and two, so nothing tells where in between it crosses."""
    rates = {1: 200.0, 2: 210.0, 4: 210.0, 8: 210.0, 16: 210.0}
    samples = closed(rates, think_s=0.0, p95={1: 2.0, 2: 80.0, 4: 85.0, 8: 90.0, 16: 95.0})
    found = find(samples, primary=CLIENTS, load=CLOSED, sla=Sla("p95_ms", 50.0))["sla"]
    assert found.low <= 1.0 + 1e-9
    assert found.high >= 2.0 - 1e-9


# --- knee


def hinge(at=300.0, slope=3.0, noise=0.0, seed=0):
    random = np.random.default_rng(seed)
    return [
        make_sample(
            wl, {"p95_ms": 2.0 * max(wl / at, 1.0) ** slope * math.exp(random.normal(0, noise))}
        )
        for wl in np.geomspace(40.0, 1500.0, 12)
    ]


def test_knee_is_the_change_of_slope():
    found = find(hinge())["knee"]
    assert found.wl == pytest.approx(300.0, rel=0.03)
    assert "of the curves" in found.note


def test_knee_interval_covers():
    """60 seeds, noise 0.1: at least 90 % of those found (binomial: 0.95 less 2 sd)."""
    found = [find(hinge(noise=0.1, seed=seed))["knee"] for seed in range(60)]
    assert all(p.state == "found" for p in found)
    assert np.mean([p.low <= 300.0 <= p.high for p in found]) >= 0.9


def test_a_straight_line_has_no_knee():
    states = [find(hinge(at=1.0, slope=1.0, noise=0.1, seed=s))["knee"].state for s in range(60)]
    assert set(states) <= {"none_in_range", "found"}
    assert states.count("found") <= 15


def test_a_curve_that_flattens_has_no_knee():
    samples = [make_sample(wl, {"p95_ms": min(wl, 300.0)}) for wl in np.geomspace(40, 1500, 12)]
    assert find(samples)["knee"].state == "none_in_range"


# --- cpu


def test_a_plateau_under_the_allocation_is_labelled():
    samples = [
        replace(s, usage={**s.usage, "haproxy": replace(u, cpu_share=0.6 * u.cpu_share)})
        for s in sweep(600.0)
        if (u := s.usage["haproxy"])
    ]
    found = find(samples)["cpu"]
    assert found.state == "found"
    assert "haproxy at 58 % of its allocation, not_cpu_limited" in found.note
    assert "not_cpu_limited" not in find(sweep(600.0))["cpu"].note


def test_the_busiest_function_of_a_chain_answers():
    samples = [
        replace(s, usage={**s.usage, "tinyproxy": replace(u, cpu_share=0.3 * u.cpu_share)})
        for s in sweep(600.0)
        if (u := s.usage["haproxy"])
    ]
    assert "haproxy at" in find(samples)["cpu"].note


def test_source_sink_and_host_are_no_functions():
    samples = [replace(s, usage={"source": s.usage["haproxy"]}) for s in sweep(600.0)]
    assert find(samples)["cpu"].state == "unresolved"
    assert find(samples)["covariance"].state == "unresolved"


def test_usage_alone_is_no_plateau_of_a_function_that_polls():
    """All of its allocation at any load: only throughput says where it ends."""
    samples = [
        replace(s, usage={"haproxy": replace(u, cpu_share=1.0)})
        for s in sweep(600.0, count=24)
        if (u := s.usage["haproxy"])
    ]
    found = find(samples)["cpu"]
    assert found.wl == pytest.approx(600.0, rel=0.2)
    assert found.low < 600.0 < found.high


def test_usage_that_flickers_at_its_plateau_moves_nothing():
    samples = sweep(600.0, count=24)
    flicker = next(i for i, s in enumerate(samples) if s.point.wl > 1000.0)
    usage = samples[flicker].usage["haproxy"]
    mixed = list(samples)
    mixed[flicker] = replace(samples[flicker], usage={"haproxy": replace(usage, cpu_share=0.85)})
    assert find(mixed)["cpu"].wl == pytest.approx(find(samples)["cpu"].wl, rel=0.01)


def test_usage_that_comes_late_moves_the_break_beyond_capacity():
    """Throughput ends at 600/s, usage reaches its plateau only from 800/s on."""
    samples = [
        replace(s, usage={"haproxy": replace(u, cpu_share=min(0.97, 0.97 * s.point.wl / 840.0))})
        for s in sweep(600.0, count=40)
        if (u := s.usage["haproxy"])
    ]
    found = find(samples)["cpu"]
    assert found.wl == pytest.approx(800.0, rel=0.06)
    assert found.low < 800.0 < found.high


# --- sla


def at(wl, p95, p_sla=None, overloaded=False):
    return make_sample(
        wl, {"p95_ms": p95, "throughput_rps": wl}, p_sla=p_sla, overloaded=overloaded
    )


def test_a_gentle_slope_is_read_off_the_line():
    """R ~ n: 100 ms lies half-way between 50 and 200 in logs."""
    found = find([at(100, 25.0), at(200, 50.0), at(800, 200.0), at(1600, 400.0)])["sla"]
    assert found.wl == pytest.approx(400.0, rel=0.02)
    assert math.log(found.high / found.low) < 0.5


def test_a_jump_is_bracketed_and_nothing_more():
    found = find([at(100, 2.0), at(300, 2.0), at(600, 900.0), at(900, 950.0)])["sla"]
    assert found.low <= 300.0
    assert found.high >= 600.0
    assert "jumps between 300 and 600" in found.note


def test_overload_is_over_the_limit_whatever_its_bound():
    found = find([at(100, 2.0), at(300, 2.0), at(400, 60.0, p_sla=0.99, overloaded=True)])["sla"]
    assert found.state == "found"
    assert 300.0 < found.wl < 400.0


def test_an_absent_percentile_is_over_the_limit():
    missing = make_sample(400.0, {"throughput_rps": 350.0})
    assert 300.0 < find([at(100, 2.0), at(300, 2.0), missing])["sla"].wl < 400.0


def test_exceedance_decides_where_the_percentile_is_bimodal():
    """Shares within 100 ms of 0.99 and 0.80: 0.95 lies at 0.51 of the logits between them."""
    samples = [at(100, 3.0, 0.999), at(400, 60.0, 0.99), at(500, 101.0, 0.80), at(900, 500.0, 0.2)]
    found = find(samples)["sla"]
    logits = [math.log(p / (1 - p)) for p in (0.99, 0.95, 0.80)]
    share = (logits[0] - logits[1]) / (logits[0] - logits[2])
    assert found.wl == pytest.approx(400.0 * 1.25**share, rel=0.03)


def test_verdicts_that_differ_widen_the_interval():
    clean = find([at(100, 2.0), at(300, 2.0), at(320, 900.0), at(900, 900.0)])["sla"]
    mixed = find([at(100, 2.0), at(280, 900.0), at(320, 2.0), at(350, 900.0), at(900, 900.0)])[
        "sla"
    ]
    assert "verdicts differ" in mixed.note
    assert 250.0 < mixed.wl < 360.0
    assert math.log(mixed.high / mixed.low) > math.log(clean.high / clean.low) - 0.05


def test_where_clients_go_in_step_what_response_times_say_is_unresolved():
    """Three seconds of clients that think for one are a burst; what is carried says capacity."""
    rates = {n: min(n / 1.02, 200.0) for n in (10, 20, 50, 100, 200, 300, 400, 600)}
    p95 = {10: 4.0, 20: 8.0, 50: 20.0, 100: 45.0, 200: 300.0, 300: 900.0, 400: 1e3, 600: 2e3}
    thinking = LoadModel("closed", think_time_s=1.0)
    samples = closed(rates, think_s=1.0, p95=p95, load=thinking)
    long = [replace(s, measured_s=20.0) for s in samples]
    limit = Sla("p95_ms", 50.0)
    clients = replace(CLIENTS, low=10.0, high=600.0)
    found = find(samples, primary=clients, load=thinking, sla=limit)
    assert {r: found[r].state for r in ("capacity", "knee", "sla")} == {
        "capacity": "found",
        "knee": "unresolved",
        "sla": "unresolved",
    }
    assert "they may go in step" in found["knee"].note
    assert "measure for 20 s (windows: window)" in found["sla"].note
    resolved = find(long, primary=clients, load=thinking, sla=limit)
    assert {resolved[rule].state for rule in ("capacity", "knee", "sla")} == {"found"}


def test_a_limit_that_even_bursts_keep_is_kept():
    thinking = LoadModel("closed", think_time_s=1.0)
    rates = {n: n / 1.02 for n in (10, 50, 100)}
    samples = closed(rates, p95={10: 4.0, 50: 6.0, 100: 9.0}, load=thinking)
    clients = replace(CLIENTS, low=10.0, high=100.0)
    found = find(samples, primary=clients, load=thinking, sla=Sla("p95_ms", 50.0))
    assert found["sla"].state == "none_in_range"


def test_a_limit_on_loss_is_a_limit_too():
    sla = Sla("loss_pct", 2.0)
    found = find(sweep(600.0, count=30), sla=sla)["sla"]
    assert found.kpi == "loss_pct"
    assert found.wl == pytest.approx(600.0 / 0.98, rel=0.12)


def test_over_the_limit_everywhere_with_the_lower_end_missing_is_unresolved():
    assert find([at(300, 200.0), at(900, 800.0)])["sla"].state == "unresolved"


# --- covariance


def test_covariance_does_not_depend_on_the_unit_of_the_kpi():
    in_ms = sweep(600.0)
    in_s = [
        replace(
            s,
            kpis={
                **s.kpis,
                "p95_ms": replace(e, value=e.value / 1e3, low=e.low / 1e3, high=e.high / 1e3),
            },
        )
        for s in in_ms
        if (e := s.kpis["p95_ms"])
    ]
    assert find(in_ms)["covariance"].wl == find(in_s, kpi_max=1.0)["covariance"].wl


def test_covariance_states_its_window():
    found = find(sweep(600.0, count=30))["covariance"]
    assert "windows of 3 samples" in found.note
    assert found.low < found.wl < found.high


# --- collapse

COLLAPSING = {2: 20.0, 8: 60.0, 30: 64.0, 118: 66.0, 233: 18.0}
"""Answers a second by clients, after tinyproxy at half a vCPU with files of 1 MB."""


def test_a_collapse_that_repeats_is_named_with_its_depth():
    twice = closed(COLLAPSING) + [
        replace(s, id=s.id + "/2", point=replace(s.point, repetition=1))
        for s in closed({**COLLAPSING, 233: 17.0})
    ]
    found = find(twice, primary=CLIENTS, load=CLOSED)["collapse"]
    assert found.state == "found"
    assert (found.low, found.high) == pytest.approx((118, 233))
    assert found.kpi == "throughput_rps"
    assert found.note.startswith("17.49/s are left of 66/s at 118, 27% [2")
    assert found.note.endswith("no recovery up to 233")


def test_one_sample_that_fell_is_asked_for_again():
    found = find(closed(COLLAPSING), primary=CLIENTS, load=CLOSED)["collapse"]
    assert found.state == "unresolved"
    assert "one sample at 233 fell: measure it again" in found.note


def test_a_collapse_may_recover():
    rates = {2: 20.0, 8: 60.0, 30: 20.0, 60: 21.0, 118: 60.0}
    found = find(closed(rates), primary=CLIENTS, load=CLOSED)["collapse"]
    assert (found.low, found.high) == pytest.approx((8, 30))
    assert "recovers from 118 on" in found.note


@pytest.mark.parametrize(
    "rates",
    [
        {2: 20.0, 8: 60.0, 30: 64.0, 118: 66.0, 233: 50.0},
        {2: 20.0, 8: 40.0, 30: 80.0, 118: 120.0, 233: 160.0},
    ],
)
def test_what_falls_little_or_not_at_all_is_no_collapse(rates):
    assert "collapse" not in find(closed(rates), primary=CLIENTS, load=CLOSED)


def test_repetitions_that_disagree_are_no_collapse():
    again = closed({233: 64.0})
    both = [*closed(COLLAPSING), replace(again[0], id="again")]
    assert "collapse" not in find(both, primary=CLIENTS, load=CLOSED)
