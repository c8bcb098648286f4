"""What `steady` writes, and the records that are made of it."""

import numpy as np
import pytest
from recorded_outputs import offer, recorded

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.measuring.lag import send_lag
from workbench.measuring.records import Drive, RequestRecords
from workbench.traffic.steady import Steady

OPEN = LoadModel("open", connections=2)
OFFER = offer(OPEN, 2000, 0.1)
FOUR = offer(OPEN, 4, 1.0)
"""Four requests, a quarter of a second apart."""
NAN = float("nan")


def rows(*requests: tuple[float, ...]) -> bytes:
    return np.array(requests, dtype="<f8").tobytes()


def parsed(*requests: tuple[float, ...]) -> RequestRecords:
    return Steady().parse(FOUR, rows(*requests), "", 7.0, 8.0)


def test_argv() -> None:
    argv = Steady().argv(OFFER)
    assert argv[argv.index("--rate") + 1] == "2000.0"
    assert argv[argv.index("--connections") + 1] == "2"
    assert argv[argv.index("--connection") + 1] == "keep-alive"


def test_a_real_run_of_more_than_is_carried() -> None:
    """tinyproxy closes each connection and carries less than 2,000/s over two of them."""
    result, output = recorded("steady")
    records = Steady().parse(OFFER, result, output, 7.0, 7.1)
    assert np.allclose(records.planned_s, 7.0 + np.arange(200) / 2000)
    sent = np.isfinite(records.start_s)
    assert output == f"sent {np.count_nonzero(sent)} of 200\n"
    assert 0 < np.count_nonzero(sent) < 200
    done = records.succeeded
    assert set(records.bytes[done]) == {10_000}
    assert np.count_nonzero(sent & ~records.finished) <= 2
    assert (records.first_byte_s[done] <= records.end_s[done]).all()
    drive = Drive(7.0, 7.1, records, (), "steady 1", "planned", 2, {}, {})
    lag = send_lag(drive, 7.0, 7.1, 0.001)
    assert lag.late_by_source < 0.02 * lag.planned < lag.waited_for_connection


def test_what_was_late_unsent_in_flight_and_failed() -> None:
    records = parsed(
        (0.0, 0.0, 0.1, 0.2, 200, 10_000),
        (0.25, 0.3, NAN, 0.3, 0, 0),
        (0.5, 0.5, 0.6, 1.001, 200, 10_000),
        (0.75, NAN, NAN, NAN, 0, 0),
    )
    assert records.planned_s.tolist() == [7.0, 7.25, 7.5, 7.75]
    assert records.start_s[:3].tolist() == [7.0, 7.3, 7.5]
    assert np.isnan(records.start_s[3])
    assert records.finished.tolist() == [True, True, False, False]
    assert records.succeeded.tolist() == [True, False, False, False]
    assert records.bytes.tolist() == [10_000, 0, 0, 0]


GOOD = tuple((k / 4, k / 4, k / 4, k / 4, 200.0, 1.0) for k in range(4))


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (b"", "left no records: 'no route'"),
        (rows(*GOOD)[:-1], "cut off: 191 bytes"),
        (b"." * 48 * 4, "they are not the requests due"),
        (rows(*GOOD[:3]), "they are not the requests due"),
        (rows((0.0, -0.1, NAN, NAN, 0, 0), *GOOD[1:]), "they are not the requests due"),
        (rows((0.0, 0.2, 0.2, 0.1, 200, 1), *GOOD[1:]), "they are not the requests due"),
        (rows((0.0, NAN, NAN, 0.1, 200, 1), *GOOD[1:]), "they are not the requests due"),
        (
            rows(*[(k / 4, k / 4, NAN, NAN, 0, 0) for k in range(3)], GOOD[3]),
            "3 requests are in flight on 2 connections",
        ),
    ],
)
def test_what_cannot_be_read_is_said(result: bytes, sentence: str) -> None:
    with pytest.raises(TrafficError, match=sentence):
        Steady().parse(FOUR, result, "no route", 0.0, 1.0)


def test_version() -> None:
    assert Steady().parse_version("steady 1 (LuaJIT 2.1.0-beta3)\n") == "1"
    assert Steady().parse_version("") == "unknown"
