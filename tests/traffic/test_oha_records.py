"""What oha leaves, and the records that are made of it. The tables are as oha 1.16 writes them."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.oha import Oha

PLAIN = PathFacts(200, 10_000, keep_alive=True, redirects=False, compresses=False)
OPEN = Offer(
    "http://10.0.0.2:8080/bytes/10000", LoadModel("open", connections=4), 100.0, 1.0, True, 20.0,
    10_000, "/tmp/records.db",
)  # fmt: skip
CLOSED = replace(OPEN, load=LoadModel("closed"), wl=3)

Row = tuple[float | None, float, float, int]
"""Release, start, end, status."""


def table(rows: list[Row]) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE TABLE oha (url TEXT NOT NULL, start REAL NOT NULL, start_latency_correction REAL,"
        " end REAL NOT NULL, duration REAL NOT NULL, status INTEGER NOT NULL,"
        " len_bytes INTEGER NOT NULL, run INTEGER NOT NULL)"
    )
    connection.executemany(
        "INSERT INTO oha VALUES ('http://x/', ?, ?, ?, ?, ?, 10000, 1)",
        [(start, release, end, end - start, status) for release, start, end, status in rows],
    )
    connection.commit()
    content = connection.serialize()
    connection.close()
    return content


def summary(**errors: int) -> str:
    return json.dumps({"errorDistribution": {k.replace("_", " "): n for k, n in errors.items()}})


def test_argv_of_both_loops() -> None:
    opened = Oha().argv(replace(OPEN, wl=12.5, keep_alive=False, seconds=3.25))
    assert opened[0] == "oha"
    assert opened[opened.index("-q") + 1] == "12.5"
    assert "--latency-correction" in opened
    assert "--disable-keepalive" in opened
    assert opened[opened.index("-z") + 1] == "3250ms", "oha knows no fractions of a unit"
    assert opened[opened.index("-c") + 1] == "4"
    closed = Oha().argv(CLOSED)
    assert "-q" not in closed
    assert closed[closed.index("-c") + 1] == "3"


def test_a_calm_open_loop_has_one_row_per_due_time() -> None:
    # Released a millisecond late, as oha's timer does; two connections did nothing all the time.
    rows: list[Row] = [
        (i / 100 + 0.001, i / 100 + 0.0011, i / 100 + 0.0031, 200) for i in range(100)
    ]
    records = Oha().parse(OPEN, table(rows), summary(aborted_due_to_deadline=4), 50.0, 51.0)
    assert len(records) == 100
    assert records.succeeded.all()
    assert records.planned_s == pytest.approx(50.001 + np.arange(100) / 100)
    assert records.end_s - records.planned_s == pytest.approx(0.0021)


def test_a_release_beyond_the_timer_counts_as_delay() -> None:
    rows: list[Row] = [(i / 100 + 0.001, i / 100 + 0.001, i / 100 + 0.002, 200) for i in range(99)]
    rows.append((0.998, 0.998, 0.999, 200))
    records = Oha().parse(OPEN, table(rows), summary(), 0.0, 1.0)
    assert records.planned_s[-1] == pytest.approx(0.99 + 0.002)
    assert records.start_s[-1] - records.planned_s[-1] == pytest.approx(0.006)


def test_backlog_is_in_flight_first_and_unsent_after() -> None:
    # A function that takes 0.1 s over each of its 4 connections: 40 of 100 a second are answered.
    rows: list[Row] = []
    for i in range(36):
        start = i // 4 * 0.1 + 0.002
        rows.append((i / 100 + 0.001, max(start, i / 100 + 0.001), start + 0.1, 200))
    records = Oha().parse(OPEN, table(rows), summary(aborted_due_to_deadline=4), 10.0, 11.0)
    assert len(records) == 100
    assert np.count_nonzero(records.succeeded) == 36
    begun = np.isfinite(records.start_s)
    assert np.count_nonzero(begun & ~records.finished) == 4, "one per connection"
    assert np.count_nonzero(~begun) == 60
    assert begun[:40].all(), "they are sent in the order in which they are due"
    in_flight = records.start_s[36:40]
    assert in_flight == pytest.approx(10.902), "since their connections were free"
    assert not records.finished[36:].any()


def test_failed_requests_of_an_open_loop_take_the_due_times_that_are_missing() -> None:
    rows: list[Row] = [
        (i / 100 + 0.001, i / 100 + 0.001, i / 100 + 0.002, 200)
        for i in range(100)
        if i not in (10, 20, 30)
    ]
    offer = replace(OPEN, request_timeout_s=0.5)
    output = summary(timeout=1, Connection_refused=2, aborted_due_to_deadline=4)
    records = Oha().parse(offer, table(rows), output, 0.0, 1.0)
    failed = records.finished & ~records.succeeded
    assert np.flatnonzero(failed).tolist() == [10, 20, 30]
    assert (records.end_s - records.start_s)[failed] == pytest.approx([0.5, 0.0, 0.0])
    assert (records.status[failed] == 0).all()


def test_what_is_due_as_the_time_is_up_is_nobodys_fault() -> None:
    offer = replace(OPEN, wl=1000.0)
    rows: list[Row] = [
        (i / 1000 + 0.001, i / 1000 + 0.001, i / 1000 + 0.002, 200) for i in range(998)
    ]
    records = Oha().parse(offer, table(rows), summary(aborted_due_to_deadline=4), 0.0, 1.0)
    assert np.count_nonzero(~np.isfinite(records.start_s)) == 0


def test_an_answer_with_an_error_status_is_an_answer() -> None:
    rows: list[Row] = [(None, 0.0, 0.1, 200), (None, 0.1, 0.2, 503)]
    records = Oha().parse(replace(CLOSED, wl=1), table(rows), summary(), 0.0, 1.0)
    assert records.status.tolist() == [200, 503, 0]
    assert records.finished.tolist() == [True, True, False]
    assert records.succeeded.tolist() == [True, False, False]


def test_clients_of_a_closed_loop_are_never_lost() -> None:
    # Two clients answer every 0.2 s; the third hangs from the beginning.
    rows: list[Row] = [(None, k * 0.2, (k + 1) * 0.2, 200) for k in range(4) for _ in range(2)]
    records = Oha().parse(CLOSED, table(rows), summary(aborted_due_to_deadline=3), 5.0, 6.0)
    waiting = ~records.finished
    assert np.sort(records.start_s[waiting]) == pytest.approx([5.0, 5.8, 5.8])
    assert (records.planned_s == records.start_s).all()


def test_time_outs_of_a_closed_loop() -> None:
    offer = replace(CLOSED, wl=2, request_timeout_s=0.4)
    rows: list[Row] = [(None, k * 0.1, (k + 1) * 0.1, 200) for k in range(10)]
    output = summary(timeout=2, aborted_due_to_deadline=2)
    records = Oha().parse(offer, table(rows), output, 0.0, 1.0)
    timed_out = records.finished & (records.status == 0)
    assert (records.end_s - records.start_s)[timed_out] == pytest.approx([0.4, 0.4])
    assert np.count_nonzero(~records.finished) == 2


def test_nothing_answered_at_all() -> None:
    records = Oha().parse(CLOSED, table([]), summary(Connection_refused=50), 0.0, 1.0)
    assert len(records) == 53
    assert np.count_nonzero(records.finished) == 50
    records = Oha().parse(OPEN, table([]), summary(aborted_due_to_deadline=4), 0.0, 1.0)
    assert len(records) == 100
    assert not records.finished.any()


@pytest.mark.parametrize(
    ("result", "output", "sentence"),
    [
        (b"", summary(), "left no records"),
        (b"not a database", summary(), "records cannot be read"),
        (table([]), "thread 'main' panicked", "summary cannot be read"),
        (table([]), "{}", "summary cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(result: bytes, output: str, sentence: str) -> None:
    with pytest.raises(TrafficError, match=sentence):
        Oha().parse(OPEN, result, output, 0.0, 1.0)


def test_what_oha_cannot_measure() -> None:
    assert Oha().unable(LoadModel("open"), (), 1) is None
    assert Oha().unable(LoadModel("closed"), (), 1) is None
    assert "constant rate" in str(Oha().unable(LoadModel("open", arrivals="poisson"), (), 1))
    assert "think" in str(Oha().unable(LoadModel("closed", think_time_s=0.1), (), 1))
    assert "redirect" in str(Oha().unfit(replace(PLAIN, redirects=True)))


def test_version() -> None:
    assert Oha().parse_version("oha 1.16.0\n") == "1.16.0"
