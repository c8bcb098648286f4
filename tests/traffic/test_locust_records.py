"""What `think` writes, and the records that are made of it."""

import numpy as np
import pytest
from recorded_outputs import THINKING, offer, recorded

from workbench.domain.errors import TrafficError
from workbench.traffic.locust import Locust

OFFER = offer(THINKING, 20, 1.0)
NAN = float("nan")


def rows(*requests: tuple[float, float, float, float]) -> bytes:
    return np.array(requests, dtype="<f8").tobytes()


def test_argv() -> None:
    argv = Locust().argv(OFFER)
    assert argv[argv.index("--clients") + 1] == "20"
    assert argv[argv.index("--think") + 1] == "0.1"
    assert argv[argv.index("--connection") + 1] == "keep-alive"


def test_a_real_run_keeps_the_law_of_think_time() -> None:
    result, output = recorded("locust")
    records = Locust().parse(OFFER, result, output, 7.0, 8.0)
    assert len(records) == len(result) // 32 - 1, "one began after the load"
    done = records.succeeded
    assert set(records.bytes[done]) == {10_000}
    response_s = float(np.mean((records.end_s - records.start_s)[done]))
    # X (R + Z) = n; some 200 exponential pauses leave 7 % of noise.
    assert np.count_nonzero(done) * (response_s + 0.1) == pytest.approx(20, rel=0.2)


def test_what_was_in_flight_and_what_failed() -> None:
    result = rows(
        (0.0, 0.2, 200, 10_000), (0.1, NAN, 0, 0), (0.3, 0.4, 0, 0), (0.9, 1.2, 200, 10_000),
        (1.1, 1.3, 200, 10_000),
    )  # fmt: skip
    records = Locust().parse(OFFER, result, "", 0.0, 1.0)
    assert records.start_s.tolist() == [0.0, 0.1, 0.3, 0.9]
    assert records.finished.tolist() == [True, False, True, False]
    assert records.succeeded.tolist() == [True, False, False, False]
    assert records.bytes.tolist() == [10_000, 0, 0, 0]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (b"", "left no records: 'no route'"),
        (rows((0.0, 0.1, 200, 1))[:-1], "cut off: 31 bytes"),
        (b"Traceback (most recent call last)" + b"." * 31, "they are no requests"),
        (rows((0.5, 0.1, 200, 1)), "they are no requests"),
        (rows((NAN, 0.1, 200, 1)), "they are no requests"),
        (rows(*[(0.1, NAN, 0, 0)] * 21), "21 requests are in flight of 20 clients"),
    ],
)
def test_what_cannot_be_read_is_said(result: bytes, sentence: str) -> None:
    with pytest.raises(TrafficError, match=sentence):
        Locust().parse(OFFER, result, "no route", 0.0, 1.0)


def test_version_is_that_of_the_package() -> None:
    assert Locust().parse_version("2.12.1-1") == "2.12.1"
