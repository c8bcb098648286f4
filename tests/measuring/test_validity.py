"""Each reason of METHOD.md 4: the drive that shows it, and the one next to it that does not."""

from dataclasses import replace

import numpy as np
import pytest
from drives import CLOSED, OPEN, closed_loop, drive, judged, open_loop, records, terms

from workbench.domain.parameters import LoadModel
from workbench.measuring.validity import CHECKS


def sample(rows, wl, load=OPEN, seconds=4.5, **more):
    windows = more.pop("windows", {})
    definition = "planned" if load.kind == "open" else "request"
    made = drive(rows, seconds, definition=definition, **more)
    return judged(made, wl, terms(load, **windows)).measurement.sample


def reasons(of):
    return [finding.reason for finding in of.findings]


def test_the_checks_come_in_the_order_of_the_method():
    assert [check.__name__ for check in CHECKS] == [
        "little",
        "source_saturated",
        "sink_saturated",
        "host_saturated",
        "bypass_limited",
        "conntrack_full",
        "errors",
        "timeout",
        "too_few",
        "unsteady",
    ]


@pytest.mark.parametrize(
    ("rows", "wl", "load"),
    [
        (open_loop(300, 0.002), 300, OPEN),
        (closed_loop(1, 0.002), 1, CLOSED),
        (closed_loop(64, 0.002), 64, CLOSED),
        (closed_loop(8, 0.01, servers=4), 8, CLOSED),
        (closed_loop(50, 0.001, think_s=0.1), 50, LoadModel("closed", 0.1)),
    ],
)
def test_a_sound_sample_has_no_findings(rows, wl, load):
    got = sample(rows, wl, load)
    assert got.valid
    assert got.findings == ()
    assert got.reason == ""


def test_little_clients_that_idle():
    got = sample(closed_loop(4, 0.002, idle_s=0.001), 4, CLOSED)
    assert reasons(got) == ["little"]
    assert got.findings[0].figure == pytest.approx(0.875, abs=0.01)
    assert got.findings[0].limit == 0.95
    assert "account for 3.5 clients, 4 were asked for" in got.findings[0].evidence


def test_little_is_not_blamed_for_clients_whose_request_was_given_up():
    """How long a client was held beyond the time-out stands in no record."""
    rows = closed_loop(4, 0.002, idle_s=0.001)
    overdue = rows.end_s - rows.start_s > 0.01
    assert 0.01 < overdue.mean() < 0.2
    given_up = replace(rows, status=np.where(overdue, 0, rows.status))
    impatient = {"request_timeout_s": 0.01}
    assert reasons(sample(rows, 4, CLOSED)) == ["little"]
    assert sample(given_up, 4, CLOSED, windows=impatient).reason == "timeout"


def test_little_latencies_too_long_to_be_true():
    rows = closed_loop(1, 0.002)
    invented = replace(rows, start_s=rows.start_s - 0.004, planned_s=rows.planned_s - 0.004)
    got = sample(invented, 1, CLOSED)
    assert got.reason == "little"
    assert got.findings[0].figure == pytest.approx(3.0, rel=0.02)


def test_little_counts_think_time():
    think = LoadModel("closed", 0.1)
    rows = closed_loop(50, 0.001, think_s=0.1)
    assert sample(rows, 50, think).valid
    assert sample(rows, 50, CLOSED).reason == "little"


def test_little_open_requests_dropped_without_a_cause():
    due = np.arange(0.0, 4.5, 0.005)
    start = np.where(np.arange(due.size) % 50 == 0, np.nan, due)
    got = sample(records(due, start, start + 0.001), 200)
    assert reasons(got) == ["little"]
    assert got.findings[0].figure == pytest.approx(0.98)
    assert "14 of 700 planned" in got.findings[0].evidence


def test_source_that_is_late_although_connections_are_free():
    got = sample(open_loop(400, 0.002, source_rps=280), 400)
    assert reasons(got) == ["source_saturated"]
    assert "connection was free" in got.findings[0].evidence
    assert got.labels == ("censored",), "what the source did is not the function's overload"


@pytest.mark.parametrize("carried", [200, 500, 900])
@pytest.mark.parametrize("offered", [0.8, 1.0, 1.5, 3.0])
def test_a_generator_capped_below_the_function_is_blamed_every_time(carried, offered):
    rate = carried * offered
    seconds = 1.5 + max(3.0, 210 / rate)
    rows = open_loop(rate, 1 / carried, seconds, source_rps=0.7 * carried)
    assert reasons(sample(rows, rate, seconds=seconds)) == ["source_saturated"]


@pytest.mark.parametrize("offered", [1.1, 1.5, 3.0, 10.0])
def test_a_saturated_function_is_not_blamed_on_the_source(offered):
    got = sample(open_loop(500 * offered, 0.002), 500 * offered)
    assert got.valid
    assert {"backlog", "overloaded"} <= set(got.labels)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"cpu": {"source": 0.46}}, "source used 0.46 cores, 92% of its allocation"),
        ({"threads": {"source": (0.1, 0.85)}}, "thread 2 of the source ran 85% of time"),
    ],
)
def test_source_out_of_cpu(more, says):
    for rows, wl, load in (
        (open_loop(300, 0.002), 300, OPEN),
        (closed_loop(4, 0.002), 4, CLOSED),
        (closed_loop(4, 0.002, idle_s=0.001), 4, CLOSED),
    ):
        got = sample(rows, wl, load, **more)
        assert reasons(got) == ["source_saturated"], "one cause, one name"
        assert says in got.findings[0].evidence


def test_source_that_stands_still_in_most_periods():
    made = drive(open_loop(300, 0.002), 4.5, cpu={"source": 0.4})
    counters = tuple(
        replace(
            c,
            components={
                **c.components,
                "source": replace(
                    c.components["source"],
                    periods=int(10 * (c.at_s - 100)),
                    throttled_periods=int(6 * (c.at_s - 100)),
                ),
            },
        )
        for c in made.counters
    )
    got = judged(replace(made, counters=counters), 300, terms()).measurement.sample
    assert reasons(got) == ["source_saturated"]
    assert "used up its quota" in got.findings[0].evidence


def test_sink_and_host_out_of_cpu():
    rows = open_loop(300, 0.002)
    assert reasons(sample(rows, 300, cpu={"sink": 0.47})) == ["sink_saturated"]
    assert reasons(sample(rows, 300, cpu={"sink": 0.44})) == []
    got = sample(rows, 300, host_cores=1.8)
    assert reasons(got) == ["host_saturated"]
    assert "1.80 cores, 90% of what it has" in got.findings[0].evidence
    assert reasons(sample(rows, 300, host_cores=1.6)) == []


@pytest.mark.parametrize("status", [0, 404, 503])
def test_errors(status):
    rows = open_loop(300, 0.002)
    every = np.arange(len(rows))
    assert reasons(sample(replace(rows, status=np.where(every % 40, 200, status)), 300)) == [
        "errors"
    ]
    few = sample(replace(rows, status=np.where(every % 150, 200, status)), 300)
    assert few.valid
    assert few.kpi("error_pct") == pytest.approx(100 / 150, abs=0.1)
    assert few.kpi("loss_pct") == pytest.approx(100 / 150, abs=0.1)


def test_timeout_of_requests_that_the_generator_gave_up():
    due = np.arange(0.0, 8.0, 0.005)
    takes = np.where(np.arange(due.size) % 20, 0.002, 2.0)
    status = np.where(takes < 1, 200, 0)
    got = sample(
        records(due, due, np.where(due + takes < 8, due + takes, np.nan), status=status),
        200,
        seconds=8.0,
        windows={"request_timeout_s": 2.0},
    )
    assert got.reason == "timeout"
    assert "errors" not in reasons(got), "who waits in vain was not answered with an error"
    assert got.findings[0].figure == pytest.approx(0.05, abs=0.01)
    assert got.unfinished == pytest.approx(0.05 * got.planned, abs=2)
    assert got.kpi("p95_ms") < 3, "19 of 20 are fast"
    assert "censored" in got.labels
    assert got.kpis["p99_ms"].value >= 1900
    assert got.kpis["p99_ms"].high > got.kpis["p99_ms"].value


def test_timeout_of_requests_that_never_end():
    due = np.arange(0.0, 8.0, 0.005)
    end = np.where(np.arange(due.size) % 20, due + 0.002, np.nan)
    rows = records(due, due, end)
    got = sample(rows, 200, seconds=8.0, windows={"request_timeout_s": 3.0})
    assert got.reason == "timeout"
    assert "after 3 s" in got.findings[0].evidence


def test_too_few():
    got = sample(open_loop(50, 0.002), 50)
    assert reasons(got) == ["too_few"]
    assert (got.findings[0].figure, got.findings[0].limit) == (175, 200)
    clients = sample(closed_loop(400, 0.004), 400, CLOSED)
    assert "too_few" in reasons(clients)


def test_unsteady_when_the_throughput_climbs():
    due = np.cumsum(1 / np.linspace(100, 900, 2000))
    due = due[due < 4.5]
    got = sample(records(due, due, due + 0.001), 500)
    assert reasons(got) == ["unsteady"]
    assert "throughput changes by +" in got.findings[0].evidence


def test_unsteady_when_the_queue_drains():
    # Due at 400/s; what a stall of one second left behind is worked off at 500/s, until 5 s.
    rows = open_loop(400, 0.002, 4.5)
    stalled = np.maximum(rows.end_s, 1.0 + 0.002 * np.arange(len(rows)))
    got = sample(replace(rows, end_s=np.where(stalled < 4.5, stalled, np.nan)), 400)
    assert reasons(got) == ["unsteady"]
    assert "backlog from the start is still worked off" in got.findings[0].evidence


def test_all_findings_are_stored():
    got = sample(open_loop(40, 0.002), 40, cpu={"source": 0.49, "sink": 0.49}, host_cores=1.9)
    assert reasons(got) == ["source_saturated", "sink_saturated", "host_saturated", "too_few"]
