from dataclasses import replace

import numpy as np
import pytest
from drives import CLOSED, closed_loop, drive, judged, open_loop, point, records, terms

from workbench.domain.codec import dumps, from_plain, to_plain
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, OperatingPoint, Sla
from workbench.domain.samples import Measurement
from workbench.measuring.censoring import Distribution
from workbench.measuring.histograms import merge
from workbench.measuring.judging import judge, sample_id

P95 = Sla("p95_ms", 5.0)


def test_the_sample_of_a_steady_open_loop():
    got = judged(drive(open_loop(300, 0.002), 4.5), 300, terms(sla=P95))
    sample = got.measurement.sample
    assert got.settled
    assert got.next_s == 0.0
    assert sample.valid
    assert sample.labels == ()
    assert (sample.planned, sample.completed, sample.errors, sample.unfinished) == (1050,) * 2 + (
        0,
        0,
    )
    assert (sample.windows, sample.batches, sample.measured_s) == (1, 7, pytest.approx(3.5))
    assert (sample.load_model, sample.kpi_definition) == ("open-constant", "planned")
    assert (sample.generator, sample.started_at, sample.lab_s) == ("synthetic 1", 1.7e9, 4.5)
    assert sample.kpi("throughput_rps") == pytest.approx(300)
    assert sample.kpi("goodput_mbps") == pytest.approx(24)
    assert sample.kpi("mean_ms") == pytest.approx(2.0, rel=0.02)
    assert sample.kpi("p95_ms") == pytest.approx(3.2, rel=0.05)
    assert sample.kpi("loss_pct") == pytest.approx(0.0, abs=0.05)
    assert sample.kpi("error_pct") == 0.0
    assert sample.straddle_share == pytest.approx(0.02, rel=0.02)
    assert sample.p_sla.value == pytest.approx(1.0, abs=0.01)
    assert all(e.low <= e.value <= e.high and e.low < e.high for e in sample.kpis.values())


def test_a_measurement_can_be_sent_and_stored():
    made = drive(open_loop(1500, 0.002), 4.5)
    measurement = judged(made, 1500, terms(sla=P95, floor=0.05)).measurement
    plain = to_plain(measurement)
    assert dumps(plain)
    assert from_plain(plain, Measurement) == measurement


def test_windows_and_series_tell_where_the_sample_comes_from():
    got = judged(drive(open_loop(300, 0.002), 4.5), 300, terms()).measurement
    (window,) = got.windows
    assert (window.start_s, window.duration_s) == (pytest.approx(1.0), pytest.approx(3.5))
    assert window.service == window.response, "nothing waited at the source"
    assert sum(window.response.counts) == window.completed
    pooled = Distribution.of(merge([w.response for w in got.windows]))
    assert pooled.quantile(0.95) * 1e3 == pytest.approx(got.sample.kpi("p95_ms"), rel=0.011)
    assert max(s.second for s in got.series) == 4.0


def test_a_closed_loop_counts_from_the_request_and_has_no_loss():
    made = drive(closed_loop(16, 0.002), 4.5, definition="request")
    sample = judged(made, 16, terms(CLOSED)).measurement.sample
    assert sample.valid
    assert sample.kpi("p50_ms") == pytest.approx(32, rel=0.03)
    assert sample.kpi("loss_pct") is None
    assert sample.straddle_share == pytest.approx(0.32, rel=0.02)
    assert sample.load_model == "closed"


def test_the_definition_of_the_kpi_is_honoured():
    due = np.arange(0.0, 4.5, 0.005)
    rows = records(due, due + 0.004, due + 0.005)
    planned = judged(drive(rows, 4.5), 200, terms()).measurement
    request = judged(drive(rows, 4.5, definition="request"), 200, terms()).measurement
    neither = judged(drive(rows, 4.5, definition="none"), 200, terms()).measurement
    assert planned.sample.kpi("p50_ms") == pytest.approx(5.0, rel=0.01)
    assert request.sample.kpi("p50_ms") == pytest.approx(1.0, rel=0.01)
    assert set(neither.sample.kpis) == {"throughput_rps", "goodput_mbps", "loss_pct", "error_pct"}
    assert planned.windows[0].service == request.windows[0].service
    assert planned.windows[0].service != planned.windows[0].response


def test_throttling_is_a_label():
    rows = open_loop(300, 0.002)
    assert judged(drive(rows, 4.5, throttled=0.04), 300, terms()).measurement.sample.labels == ()
    sample = judged(drive(rows, 4.5, throttled=0.5), 300, terms()).measurement.sample
    assert sample.valid
    assert sample.labels == ("throttled",)
    assert sample.throttled_share == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("offered", [1.2, 2.0, 8.0])
def test_overload_is_valid_and_tells_the_capacity(offered):
    rate = 500 * offered
    got = judged(drive(open_loop(rate, 0.002), 4.5), rate, terms(sla=P95))
    sample = got.measurement.sample
    assert got.settled
    assert sample.valid
    assert "overloaded" in sample.labels
    assert "censored" not in sample.labels
    assert sample.kpi("throughput_rps") == pytest.approx(500, rel=0.03)
    true_loss = 100 * (1 - 1 / offered)
    assert sample.kpis["loss_pct"].low <= true_loss <= sample.kpis["loss_pct"].high
    assert sample.kpi("loss_pct") == pytest.approx(true_loss, abs=2)
    assert sample.p_sla.value < 0.02
    p95 = sample.kpis["p95_ms"]
    assert p95.low == p95.value, "a lower bound"
    assert p95.high == 20_000, "beyond the time-out a request is not answered at all"
    assert p95.value > 5


def test_overload_beyond_a_few_connections_is_backlog():
    rows = open_loop(1000, 0.002, connections=4)
    made = drive(rows, 4.5, connections=4, cpu={"haproxy": 0.25})
    sample = judged(made, 1000, terms()).measurement.sample
    assert sample.valid
    assert sample.labels == ("backlog", "overloaded")
    window = judged(made, 1000, terms()).measurement.windows[0]
    service = Distribution.of(window.service)
    assert service.quantile(0.5) == pytest.approx(0.008, rel=0.05), "four in turn"
    assert window.unfinished > 1000


def test_near_saturation_the_loss_is_small_or_covered():
    covered = []
    for seed in range(20):
        made = drive(open_loop(510, 0.002, seed=seed, sigma=0.5), 4.5)
        loss = judged(made, 510, terms()).measurement.sample.kpis["loss_pct"]
        covered.append(loss.low <= 100 * 10 / 510 <= loss.high)
    assert sum(covered) >= 18


def test_zero_completions_are_never_a_p95_of_zero():
    due = np.arange(0.0, 4.5, 0.01)
    never = np.full(due.size, np.nan)
    for start in (due, never):
        got = judged(drive(records(due, start, never), 4.5), 100, terms(sla=P95))
        sample = got.measurement.sample
        assert not sample.valid
        assert "too_few" in [f.reason for f in sample.findings]
        assert sample.completed == 0
        assert sample.unfinished == sample.planned == 350
        assert sample.kpis["p95_ms"].value == pytest.approx(3325, rel=0.02), "waited, at least"
        assert sample.kpis["p95_ms"].high == 20_000
        assert sample.kpis["throughput_rps"].value == 0.0
        assert sample.kpis["throughput_rps"].high > 0.0
        assert sample.kpi("loss_pct") == pytest.approx(100.0, abs=0.5)
        assert "error_pct" not in sample.kpis
        assert sample.p_sla.value == 0.0
        assert sample.straddle_share == 0.0
        assert got.settled is (start is never), "a silent source is not cured by waiting"


def test_clients_that_all_hang_leave_nothing_to_state():
    begun = np.zeros(8)
    made = drive(records(begun, begun, np.full(8, np.nan)), 4.5, definition="request")
    got = judged(made, 8, terms(CLOSED))
    sample = got.measurement.sample
    assert set(sample.kpis) == {"throughput_rps", "goodput_mbps"}
    assert sample.reason == "too_few"
    assert not got.settled
    assert got.next_s == 9.0


def test_a_single_request_is_too_few_and_its_percentiles_are_absent():
    made = drive(records([2.0], [2.0], [2.01]), 4.5)
    sample = judged(made, 0.2, terms()).measurement.sample
    assert "too_few" in [f.reason for f in sample.findings]
    assert not any(name.endswith("_ms") for name in sample.kpis)
    throughput = sample.kpis["throughput_rps"]
    assert throughput.value == pytest.approx(1 / 3.5)
    assert throughput.low == 0.0
    assert throughput.high > 1.0


def test_fast_errors_do_not_lower_the_percentiles():
    rows = open_loop(300, 0.002)
    some = np.arange(len(rows)) % 3 == 0
    quick = replace(
        rows,
        end_s=np.where(some, rows.start_s + 1e-5, rows.end_s),
        status=np.where(some, 503, rows.status),
    )
    sample = judged(drive(quick, 4.5), 300, terms(sla=P95)).measurement.sample
    assert sample.reason == "errors"
    assert sample.kpi("p50_ms") == pytest.approx(1.9, rel=0.05)
    assert sample.kpi("error_pct") == pytest.approx(33.3, abs=0.5)
    assert sample.kpi("throughput_rps") == pytest.approx(200, rel=0.01)
    assert sample.p_sla.value == pytest.approx(2 / 3, abs=0.01)


def test_nothing_but_errors():
    rows = open_loop(300, 0.002)
    refused = replace(rows, status=np.where(rows.status > 0, 502, 0))
    got = judged(drive(refused, 4.5), 300, terms(sla=P95))
    sample = got.measurement.sample
    assert got.settled, "driving on does not help"
    assert sample.reason == "errors"
    assert sample.kpi("error_pct") == 100.0
    assert sample.kpi("loss_pct") == pytest.approx(100.0, abs=0.5)
    assert "p95_ms" not in sample.kpis
    assert sample.p_sla is None or sample.p_sla.value == 0.0


def test_a_share_of_stuck_requests_leaves_lower_percentiles_alone():
    due = np.arange(0.0, 4.5, 0.005)
    end = np.where(np.arange(due.size) % 120, due + 0.002, np.nan)
    sample = judged(drive(records(due, due, end), 4.5), 200, terms()).measurement.sample
    assert sample.labels == ("censored",)
    assert sample.kpi("p99_ms") == pytest.approx(2.0, rel=0.02)
    assert sample.kpis["p99_ms"].high < 3
    assert sample.kpis["mean_ms"].low == sample.kpis["mean_ms"].value > 2.0


def test_slow_clients_in_flight_at_the_stop_do_not_bias_the_percentiles():
    # Ten response times of window, one request in ten is cut off by its end.
    rows = closed_loop(64, 0.3, 42.0, servers=64, sigma=0.3)
    given = terms(CLOSED, timeout_s=60.0)
    made = drive(rows, 42.0, definition="request")
    sample = judged(made, 64, given).measurement.sample
    assert sample.valid
    truth = 300 * np.exp(0.3 * 1.6449 - 0.045)
    assert sample.kpi("p95_ms") == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize(
    ("sla", "probability"),
    [
        (Sla("p95_ms", 2.0), 0.56),
        (Sla("mean_ms", 2.0), 0.56),
        (Sla("throughput_rps", 100.0), None),
        (Sla("p95_ms", 2.0, ">="), None),
        (None, None),
    ],
)
def test_the_probability_of_the_sla_limit(sla, probability):
    got = judged(drive(open_loop(300, 0.002), 4.5), 300, terms(sla=sla)).measurement.sample.p_sla
    if probability is None:
        assert got is None
    else:
        assert got.value == pytest.approx(probability, abs=0.03)
        assert 0.45 < got.low < got.value < got.high < 0.65


def test_the_floor_widens_what_the_function_sets_and_not_what_was_planned():
    tight = judged(drive(open_loop(300, 0.002), 4.5), 300, terms()).measurement.sample
    wide = judged(drive(open_loop(300, 0.002), 4.5), 300, terms(floor=0.05)).measurement.sample
    assert wide.kpis["throughput_rps"] == tight.kpis["throughput_rps"]
    mean, p95 = wide.kpis["mean_ms"], wide.kpis["p95_ms"]
    assert np.log(mean.high / mean.value) == pytest.approx(1.96 * 0.05, rel=0.01)
    assert np.log(p95.high / p95.value) == pytest.approx(1.96 * 0.12, rel=0.01)
    over = judged(drive(open_loop(900, 0.002), 4.5), 900, terms(floor=0.05)).measurement.sample
    throughput = over.kpis["throughput_rps"]
    assert np.log(throughput.high / throughput.value) == pytest.approx(1.96 * 0.05, rel=0.01)


def test_too_few_asks_for_as_much_as_is_missing():
    first = drive(open_loop(40, 0.002), 4.5)
    got = judged(first, 40, terms())
    assert not got.settled
    assert got.measurement.sample.reason == "too_few"
    assert got.next_s == pytest.approx(1.5 + 3.0, abs=0.1)
    second = drive(open_loop(40, 0.002, got.next_s, seed=2), got.next_s, begin_s=105.0)
    both = judged([first, second], 40, terms())
    assert both.settled
    sample = both.measurement.sample
    assert sample.valid
    assert (sample.windows, sample.batches) == (2, 14)
    assert sample.completed == pytest.approx(40 * 7, abs=2)
    assert [w.start_s for w in both.measurement.windows] == pytest.approx([1.0, 6.0])


def test_what_can_never_be_enough_is_settled_at_once():
    got = judged(drive(open_loop(2, 0.002), 4.5), 2, terms())
    assert got.settled
    assert got.measurement.sample.reason == "too_few"


def test_a_long_response_time_asks_for_a_longer_warm_up_and_window():
    rows = closed_loop(64, 0.05, 4.5)
    got = judged(drive(rows, 4.5, definition="request"), 64, terms(CLOSED))
    assert not got.settled
    assert got.next_s == pytest.approx(25.5), "all that is left"
    second = drive(closed_loop(64, 0.05, 25.5, seed=2), 25.5, begin_s=105.0, definition="request")
    first = drive(rows, 4.5, definition="request")
    both = judged([first, second], 64, terms(CLOSED))
    assert both.settled
    assert both.measurement.sample.valid
    assert both.measurement.sample.windows == 1, "the first never got through its warm-up"
    assert both.measurement.sample.kpi("throughput_rps") == pytest.approx(20, rel=0.05)


def test_unsteady_drives_are_extended_until_the_time_out():
    def climbing(seconds, begin_s):
        due = np.cumsum(1 / np.linspace(100, 900, 40_000))
        due = due * seconds / due[-1]
        return drive(records(due, due, due + 0.001), seconds, begin_s=begin_s)

    drives, begin, seconds = [], 0.0, 4.5
    while seconds:
        drives.append(climbing(seconds, begin))
        begin += seconds
        got = judged(drives, 5000, terms())
        assert got.measurement.sample.reason == "unsteady"
        assert got.settled is (got.next_s == 0.0)
        seconds = got.next_s
    assert len(drives) >= 3
    assert begin == pytest.approx(30.0), "the whole time-out, and no more"


def test_a_steady_drive_after_an_unsteady_one_settles():
    due = np.cumsum(1 / np.linspace(100, 900, 2000))
    first = drive(records(due, due, due + 0.001), 4.5)
    second = drive(open_loop(500, 0.001, 7.0), 7.0, begin_s=105.0)
    got = judged([first, second], 500, terms())
    assert got.settled
    assert got.measurement.sample.valid
    assert got.measurement.sample.windows == 1
    assert len({s.second for s in got.measurement.series}) == 12, "usage of both is kept"


def test_next_drives_never_exceed_the_time_out():
    made = drive(open_loop(40, 0.002, 4.5), 4.5)
    got = judged(made, 40, terms(timeout_s=8.0))
    assert got.next_s == pytest.approx(3.5)
    assert judged(made, 40, terms(timeout_s=6.0)).settled, "too short to be worth it"


def test_drives_that_make_no_sample_are_refused():
    made = drive(open_loop(300, 0.002), 4.5)
    with pytest.raises(DataError, match="without a drive"):
        judged([], 300, terms())
    with pytest.raises(DataError, match="different generators"):
        judged([made, replace(made, generator="hey 0.1.4")], 300, terms())
    with pytest.raises(DataError, match="leaves nothing"):
        judged(drive(open_loop(300, 0.002, 0.1), 0.1), 300, terms())


def test_a_very_short_drive_is_judged_with_what_it_has():
    got = judged(drive(open_loop(300, 0.002, 0.8), 0.8), 300, terms())
    assert not got.settled
    assert got.measurement.sample.batches == 1
    assert not any(name.endswith("_ms") for name in got.measurement.sample.kpis)


def test_the_id_is_a_content_key():
    one = OperatingPoint(
        "haproxy", Configuration({"haproxy.vcpu": 0.25}, {"filesize_bytes": 1e4}), 100.0, 2
    )
    same = OperatingPoint(
        "haproxy", Configuration({"haproxy.vcpu": 0.25}, {"filesize_bytes": 10_000}), 100, 2
    )
    assert sample_id(one) == sample_id(same) == "haproxy/670e97d71b3f/100/2"
    assert sample_id(replace(one, wl=1234.5678901)).endswith("/1234.57/2")
    assert len({sample_id(p) for p in (one, point(100), point(100, 1), point(101))}) == 4


def test_the_time_of_a_lab_may_be_large():
    late = drive(open_loop(300, 0.002), 4.5, begin_s=3e6)
    early = drive(open_loop(300, 0.002), 4.5)
    given = terms(floor=0.05)
    a = judge([late], point(300), given, started_at=0, lab_s=5).measurement.sample
    b = judge([early], point(300), given, started_at=0, lab_s=5).measurement.sample
    assert a.kpi("p95_ms") == pytest.approx(b.kpi("p95_ms"), rel=0.002)
    assert a.completed == pytest.approx(b.completed, abs=1)
