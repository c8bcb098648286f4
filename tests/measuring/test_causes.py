"""Bypass, connection table, stalls of the host, short windows: blamed, and next to it not."""

import re
from dataclasses import replace

import numpy as np
import pytest
from drives import (
    CLOSED,
    bypass_curve,
    closed_loop,
    drive,
    judged,
    open_loop,
    point,
    records,
    terms,
)

from workbench.domain.lab import BypassPoint
from workbench.measuring.bypass import bypass_at, tells_the_most
from workbench.measuring.judging import judge

CURVE = bypass_curve(
    BypassPoint(100, 100, 0.2, 0.3),
    BypassPoint(400, 400, 0.4, 0.6),
    BypassPoint(1000, 420, 900.0, 2000.0, "thread 1 of the source ran 100% of time"),
)
CLIENTS = bypass_curve(BypassPoint(1, 1000, 1.0, 1.5), BypassPoint(16, 2000, 8.0, 12.0))


def sample_of(made, wl, given):
    return judged(made, wl, given).measurement.sample


def test_the_bypass_is_read_off_in_logs_and_not_where_it_is_saturated_itself():
    got = bypass_at(CURVE, terms().load, 200)
    assert got.throughput_rps == 420, "the plateau, whatever the rate"
    assert got.mean_ms == pytest.approx(np.sqrt(0.2 * 0.4))
    assert got.p95_ms == pytest.approx(np.sqrt(0.3 * 0.6))
    beyond, below = bypass_at(CURVE, terms().load, 2000), bypass_at(CURVE, terms().load, 1)
    assert (beyond.mean_ms, below.mean_ms) == pytest.approx((0.4, 0.2))
    clients = bypass_at(CLIENTS, CLOSED, 4)
    assert clients.throughput_rps == pytest.approx(np.sqrt(1000 * 2000)), "at the same n"
    assert clients.mean_ms == pytest.approx(np.sqrt(8))
    assert bypass_at(None, CLOSED, 4) is None
    assert bypass_at(bypass_curve(), CLOSED, 4) is None


@pytest.mark.parametrize(("rate", "limited"), [(290, False), (300, True)])
def test_bypass_limited_in_an_open_loop(rate, limited):
    given = terms(bypass=CURVE)
    got = sample_of(drive(open_loop(rate, 0.002), 4.5), rate, given)
    assert got.bypass is not None, "stored also where it does not limit"
    assert [f.reason for f in got.findings] == ["bypass_limited"] * limited
    if limited:
        assert got.findings[0].figure == pytest.approx(300 / 420, rel=0.01)
        assert got.findings[0].limit == 0.70
        assert got.findings[0].evidence == (
            "300 requests/s are 71% of the 420 that source and sink carried without the functions"
        )


@pytest.mark.parametrize(("service", "limited"), [(0.00105, False), (0.0009, True)])
def test_bypass_limited_in_a_closed_loop_is_judged_at_the_same_number_of_clients(service, limited):
    given = terms(CLOSED, bypass=CLIENTS)
    made = drive(closed_loop(4, service), 4.5, definition="request")
    got = judged(made, 4, given)
    assert got.measurement.sample.valid is not limited
    assert got.settled
    if limited:
        assert got.measurement.sample.reason == "bypass_limited"
        assert "carried with 4 clients without the functions" in (
            got.measurement.sample.findings[0].evidence
        )


BUSY = replace(CURVE.points[-1], limited_by="the host was busy", busy_host=True)


def test_what_a_busy_host_kept_source_and_sink_from_is_held_against_no_sample():
    for rate in (290, 400):
        given = terms(bypass=bypass_curve(*CURVE.points[:2], BUSY))
        got = sample_of(drive(open_loop(rate, 0.002), 4.5), rate, given)
        assert got.valid
        assert got.bypass is not None, "what it took is stored all the same"
        assert not tells_the_most(given.bypass, given.load, rate)
    assert tells_the_most(CURVE, terms().load, 400)


def test_clients_are_judged_by_the_points_about_them_unless_a_busy_host_limited_those():
    made = drive(closed_loop(4, 0.0009), 4.5, definition="request")
    one, sixteen = CLIENTS.points
    sixty, busy = replace(sixteen, wl=64), replace(sixteen, wl=64, busy_host=True)
    for curve, valid in (
        ((one, sixteen, sixty), False),
        ((one, sixteen, busy), False),
        ((one, replace(sixteen, busy_host=True), sixty), True),
        ((replace(one, busy_host=True), sixteen), True),
    ):
        assert sample_of(made, 4, terms(CLOSED, bypass=bypass_curve(*curve))).valid is valid


@pytest.mark.parametrize(("share", "full"), [(0.79, False), (0.82, True)])
def test_conntrack_full_at_any_instant(share, full):
    rows = open_loop(300, 0.002)
    made = drive(rows, 4.5, conntrack=(0.1, 0.3, 0.5, share, 0.6, 0.6))
    got = judged(made, 300, terms())
    assert [f.reason for f in got.measurement.sample.findings] == ["conntrack_full"] * full
    if full:
        assert got.settled, "it takes two minutes to empty"
        assert got.measurement.sample.findings[0].evidence == (
            "the connection table held 820 of 1000 entries, 82%, 3.0 s after the load began"
        )


def frozen(rows, begin, end):
    """The same requests, of which none is answered or sent while the host stands still."""

    def later(instants):
        return np.where((instants > begin) & (instants < end), end, instants)

    return replace(rows, start_s=later(rows.start_s), end_s=later(rows.end_s + 0.0))


@pytest.mark.parametrize("begin", [1.2, 1.8, 2.3])
def test_a_host_that_stands_still_is_unsteady_and_driven_on(begin):
    still = (begin, begin + 2.0)
    rows = frozen(open_loop(300, 0.002), *still)
    got = judged(drive(rows, 4.5, frozen=still), 300, terms())
    assert not got.settled
    sample = got.measurement.sample
    assert [f.reason for f in sample.findings] == ["unsteady"], "not the source's lateness"
    said = r"in the last one: nothing was answered for [12]\.\d s while every component stood still"
    assert re.search(said, sample.findings[0].evidence)
    again = drive(open_loop(300, 0.002, got.next_s, seed=2), got.next_s, begin_s=105.0)
    after = judged([drive(rows, 4.5, frozen=still), again], 300, terms())
    assert after.settled
    assert after.measurement.sample.valid
    assert after.measurement.sample.windows == 1, "the stall is in no figure"


def test_a_stall_is_not_the_host_s_load():
    still = (1.8, 3.8)
    rows = frozen(open_loop(300, 0.002), *still)
    got = sample_of(drive(rows, 4.5, frozen=still, host_cores=4.0), 300, terms())
    assert [f.reason for f in got.findings] == ["unsteady"]


def test_a_stall_in_which_the_counters_were_not_read_either():
    rows = frozen(open_loop(300, 0.002), 1.5, 3.5)
    made = drive(rows, 4.5)
    held_up = replace(made, counters=tuple(c for c in made.counters if not 101.5 < c.at_s < 103.5))
    got = sample_of(held_up, 300, terms())
    assert got.reason == "unsteady"
    assert "the counters could not be read for 3.0 s either" in got.findings[0].evidence


def test_clients_of_a_closed_loop_that_all_stand_still():
    rows = closed_loop(8, 0.004)
    shifted = replace(
        rows,
        planned_s=np.where(rows.planned_s > 2.0, rows.planned_s + 2.0, rows.planned_s),
        start_s=np.where(rows.start_s > 2.0, rows.start_s + 2.0, rows.start_s),
        end_s=np.where(rows.end_s > 2.0, rows.end_s + 2.0, rows.end_s),
    )
    made = drive(shifted, 6.5, frozen=(2.0, 4.0), definition="request")
    got = judged(made, 8, terms(CLOSED))
    assert got.measurement.sample.reason == "unsteady"
    assert not got.settled


def test_a_function_that_stands_still_alone_is_not_the_host():
    rows = frozen(open_loop(300, 0.002), 1.8, 3.8)
    got = sample_of(drive(replace(rows, start_s=rows.planned_s), 4.5), 300, terms())
    assert not any("stood still" in f.evidence for f in got.findings)


def test_a_quiet_second_at_a_low_rate_is_no_stall():
    due = np.arange(0.0, 30.0, 0.9)
    made = drive(records(due, due, due + 0.01), 30.0, cpu={"haproxy": 0.0, "source": 0.0})
    assert [f.reason for f in sample_of(made, 1.1, terms()).findings] == ["too_few"]


def test_a_window_too_short_for_six_batches():
    made = drive(open_loop(500, 0.001, 2.0), 2.0)
    got = judged(made, 500, terms())
    assert not got.settled
    assert [f.reason for f in got.measurement.sample.findings] == ["too_few"]
    assert got.measurement.sample.findings[0].evidence == (
        "1.0 s of steady load make 2 batches, 6 are needed: 3 s"
    )
    assert judged(made, 500, terms(timeout_s=2.5)).settled
    both = [made, drive(open_loop(500, 0.001, got.next_s), got.next_s, begin_s=103.0)]
    assert judged(both, 500, terms()).measurement.sample.valid


def test_a_neighbour_who_comes_in_one_window_only():
    rows = open_loop(40, 0.002)
    first = drive(rows, 4.5, host_cores=1.8)
    second = drive(open_loop(40, 0.002, seed=2), 4.5, begin_s=105.0)
    got = judge([first, second], point(40), terms(), started_at=0, lab_s=9)
    assert got.measurement.sample.reason == "host_saturated"
    assert "busy with 1.80 cores, 90%" in got.measurement.sample.findings[0].evidence


def test_fast_503s_that_lower_p95_are_errors():
    slow = open_loop(300, 0.003)
    shed = np.arange(len(slow)) % 2 == 0
    rows = replace(
        slow,
        status=np.where(shed, 503, 200),
        end_s=np.where(shed, slow.start_s + 0.0001, slow.end_s),
    )
    got = judged(drive(rows, 4.5), 300, terms())
    assert got.settled
    assert got.measurement.sample.reason == "errors"
    assert got.measurement.sample.kpi("p95_ms") > 3, "what was shed has no response time"
    assert got.measurement.sample.findings[0].evidence == (
        "525 of 1050 requests were refused, cut off or answered with an error"
    )


def test_what_the_sink_did_is_not_put_down_to_the_function():
    over = drive(open_loop(900, 0.002), 4.5, cpu={"sink": 0.5})
    got = judged(over, 900, terms()).measurement.sample
    assert got.reason == "sink_saturated"
    assert got.labels == ("censored",), "neither overloaded nor short of something else than CPU"
