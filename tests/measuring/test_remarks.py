"""Each label: the drive that earns it, with its evidence, and the one next to it that does not."""

from dataclasses import replace

import numpy as np
import pytest
from drives import CLOSED, bypass_curve, closed_loop, drive, judged, open_loop, records, terms

from workbench.domain.lab import BypassPoint
from workbench.domain.parameters import Sla
from workbench.measuring.remarks import LABELS

CURVE = bypass_curve(BypassPoint(100, 100, 0.19, 0.3), BypassPoint(2000, 1500, 0.19, 0.3))


def sample_of(rows, wl, given=None, seconds=4.5, **more):
    return judged(drive(rows, seconds, **more), wl, given or terms()).measurement.sample


def earned(sample, label):
    assert sample.labels == tuple(remark.label for remark in sample.remarks)
    return next((remark for remark in sample.remarks if remark.label == label), None)


def timed(latency, rate=300.0, seconds=4.5):
    """An open loop whose i-th request takes `latency[i]`."""
    due = np.arange(0.0, seconds, 1 / rate)
    end = due + latency[: due.size]
    return records(due, due, np.where(end < seconds, end, np.nan))


def spread(seed, size=4000, mean=0.004, sigma=0.3):
    return mean * np.random.default_rng(seed).lognormal(0.0, sigma, size)


def test_the_labels_come_in_the_order_of_the_method():
    assert [label.__name__ for label in LABELS] == [
        "bypass_share",
        "throttled",
        "not_cpu_limited",
        "stall_200ms",
        "quota_jump",
        "backlog",
        "overloaded",
        "censored",
        "correlated",
    ]


def test_bypass_share():
    fast = sample_of(open_loop(300, 0.0018), 300, terms(bypass=CURVE))
    found = earned(fast, "bypass_share")
    assert found.figure == pytest.approx(0.19 / 1.8, rel=0.02)
    assert found.evidence == "source and sink alone take 0.19 ms of the mean of 1.8 ms, 11%"
    slow = sample_of(open_loop(300, 0.0021), 300, terms(bypass=CURVE))
    assert slow.labels == ()
    assert slow.bypass.mean_ms == pytest.approx(0.19)
    over = sample_of(open_loop(900, 0.002), 900, terms(bypass=CURVE))
    assert earned(over, "bypass_share") is None, "a bound is no response time"


@pytest.mark.parametrize(("share", "labelled"), [(0.04, False), (0.10, True)])
def test_throttled(share, labelled):
    found = earned(sample_of(open_loop(300, 0.002), 300, throttled=share), "throttled")
    assert (found is not None) is labelled
    if found:
        assert found.figure == pytest.approx(0.10, abs=0.03)
        assert found.evidence.startswith("haproxy stood still in ")
        assert "of its quota periods, for 0.1" in found.evidence


@pytest.mark.parametrize(
    ("cores", "throttled", "labelled"), [(0.21, 0.0, True), (0.23, 0.0, False), (0.21, 0.2, False)]
)
def test_not_cpu_limited(cores, throttled, labelled):
    rows = open_loop(900, 0.002)
    over = sample_of(rows, 900, cpu={"haproxy": cores}, throttled=throttled)
    found = earned(over, "not_cpu_limited")
    assert (found is not None) is labelled
    if found:
        assert found.evidence == (
            "overloaded while haproxy, the busiest function, used 0.21 cores, 84% of its "
            "allocation, throttled in 0% of its periods"
        )
    below = sample_of(open_loop(400, 0.002), 400, cpu={"haproxy": cores}, throttled=throttled)
    assert earned(below, "not_cpu_limited") is None, "nobody is short of anything"
    starved = sample_of(
        open_loop(900, 0.002, source_rps=350), 900, cpu={"haproxy": cores}, throttled=throttled
    )
    assert earned(starved, "not_cpu_limited") is None, "the source set the pace"


@pytest.mark.parametrize(("share", "labelled"), [(0.002, False), (0.02, True)])
@pytest.mark.parametrize("seed", range(5))
def test_stall_200ms(share, labelled, seed):
    rng = np.random.default_rng(seed)
    latency = spread(seed) + np.where(rng.random(4000) < share, 0.201, 0.0)
    found = earned(sample_of(timed(latency), 300), "stall_200ms")
    assert (found is not None) is labelled
    if found:
        assert found.figure == pytest.approx(share, rel=0.7)
        assert "answers took 190-260 ms, 0 would fit to those around" in found.evidence


@pytest.mark.parametrize(
    "latency",
    [
        spread(1, mean=0.2),
        spread(2, mean=0.12, sigma=0.4),
        spread(3, mean=0.02, sigma=1.2),
        0.03 + np.random.default_rng(4).exponential(0.06, 4000),
        np.where(np.arange(4000) // 64 == 5, 0.205, spread(5)),
    ],
    ids=["around 200 ms", "broad", "heavy tail", "exponential", "one pause of 200 ms"],
)
def test_what_is_no_mode_at_200_ms(latency):
    assert earned(sample_of(timed(latency), 300), "stall_200ms") is None


def test_answers_after_whole_quota_periods_are_no_stalls():
    rng = np.random.default_rng(1)
    periods = rng.choice([0, 1, 2, 3], 4000, p=[0.6, 0.25, 0.1, 0.05])
    rows = timed(spread(1) + 0.1 * periods)
    assert earned(sample_of(rows, 300, throttled=0.6), "stall_200ms") is None


def gapped(share, service=0.004, gap=0.06, seed=1):
    """A share of the requests meets a quota gap and waits for most of it."""
    rng = np.random.default_rng(seed)
    waits = np.where(rng.random(4000) < share, gap * rng.uniform(0.7, 1.0, 4000), 0.0)
    return timed(spread(seed, mean=service) + waits)


@pytest.mark.parametrize(
    ("share", "labelled"), [(0.005, False), (0.04, True), (0.07, True), (0.25, False)]
)
def test_quota_jump_where_p95_lies_on_the_step(share, labelled):
    got = sample_of(gapped(share), 300, throttled=0.5)
    assert "throttled" in got.labels
    found = earned(got, "quota_jump")
    assert (found is not None) is labelled
    if found:
        assert found.figure == got.straddle_share
        assert found.evidence.startswith("n/(X·T) is ")
        assert "p95 lies on the jump from" in found.evidence
        assert "that the quota gaps of haproxy make" in found.evidence


def test_quota_jump_of_p99_at_one_per_cent():
    slow = terms(kpi="p99_ms")
    assert "p99 lies on the jump" in (
        earned(sample_of(gapped(0.01), 300, slow, throttled=0.5), "quota_jump").evidence
    )
    assert earned(sample_of(gapped(0.01), 300, throttled=0.5), "quota_jump") is None
    named = terms(sla=Sla("p99_ms", 20.0))
    assert earned(sample_of(gapped(0.01), 300, named, throttled=0.5), "quota_jump")


def test_a_tail_without_throttling_or_without_gap_is_no_quota_jump():
    assert sample_of(gapped(0.05), 300).labels == (), "nobody was throttled"
    smooth = sample_of(timed(spread(1, mean=0.02, sigma=0.8)), 300, throttled=0.5)
    assert smooth.labels == ("throttled",)


def test_backlog_and_overload_tell_their_figures():
    rows = open_loop(1000, 0.002, connections=4)
    got = sample_of(rows, 1000, connections=4, cpu={"haproxy": 0.25})
    assert got.labels == ("backlog", "overloaded")
    waited, growing = got.remarks
    assert waited.evidence.endswith("planned requests waited until one of 4 connections was free")
    assert waited.figure > 0.95
    assert growing.figure == pytest.approx(0.5, abs=0.02)
    assert growing.evidence.startswith("what is due and not answered grew by ")
    assert sample_of(open_loop(450, 0.002), 450).labels == ()


def test_censored_names_what_is_only_a_bound():
    due = np.arange(0.0, 4.5, 0.005)
    end = np.where(np.arange(due.size) % 120, due + 0.002, np.nan)
    got = sample_of(records(due, due, end), 200)
    (found,) = got.remarks
    assert found.label == "censored"
    assert found.evidence == (
        "6 of 700 requests were not answered while they were watched: only lower bounds are "
        "known of mean"
    )


def test_the_probability_of_the_sla_limit_holds_for_every_load_and_ending():
    sla = Sla("p95_ms", 32.0)
    made = drive(closed_loop(16, 0.002), 4.5, definition="request")
    closed = judged(made, 16, terms(CLOSED, sla=sla)).measurement.sample
    assert closed.p_sla.value == pytest.approx(0.5, abs=0.05)

    rows = open_loop(300, 0.002)
    every = np.arange(len(rows))
    failing = replace(rows, status=np.where(every % 4, 200, 503))
    assert sample_of(failing, 300, terms(sla=sla)).p_sla.value == pytest.approx(0.75, abs=0.01)
    refused = sample_of(replace(rows, status=np.full(every.size, 503)), 300, terms(sla=sla))
    assert (refused.p_sla.value, refused.p_sla.low) == (0.0, 0.0)
    assert refused.p_sla.high > 0.0

    unanswered = replace(rows, end_s=np.where(every % 5, rows.end_s, np.nan))
    censored = sample_of(unanswered, 300, terms(sla=sla)).p_sla
    assert censored.value == pytest.approx(0.8, abs=0.01)
    assert censored.low < 0.8 < censored.high
