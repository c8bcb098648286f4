"""What wrk and its script leave, and the records that are made of it."""

from dataclasses import replace

import numpy as np
import pytest
from recorded_outputs import CLOSED, offer, recorded

from workbench.domain.errors import TrafficError
from workbench.traffic.wrk import Wrk

OFFER = offer(CLOSED, 3, 1.0, 1_000_000)
SAID = "  4 requests in 1.00s, 1KB read\n"


def rows(*pairs: tuple[float, float]) -> bytes:
    return np.array(pairs, dtype="<f8").tobytes()


def test_argv_is_in_whole_seconds() -> None:
    argv = Wrk().argv(replace(OFFER, seconds=4.5, request_timeout_s=0.5, wl=1))
    assert argv[argv.index("-d") + 1] == "5s"
    assert argv[argv.index("--timeout") + 1] == "1s"
    assert argv[argv.index("-t") + 1] == "1"
    assert argv[-2:] == ("--", "/var/tmp/records")


def test_a_real_run_agrees_with_wrks_own_count() -> None:
    result, output = recorded("wrk")
    whole = replace(OFFER, seconds=2.0)
    records = Wrk().parse(whole, result, output, 50.0, 52.0)
    total = int(output.split(" requests in ")[0].split()[-1])
    assert np.count_nonzero(records.succeeded) == total
    assert np.count_nonzero(~records.finished) == 3
    assert set(records.bytes[records.succeeded]) == {1_000_000}
    assert Wrk.kpi_definition == "none"


def test_only_the_number_in_flight_is_told_by_the_starts() -> None:
    result = rows((10.0, 0), (10.5, 200), (10.001, 0), (10.1, 200), (10.3, 503), (11.5, 200))
    records = Wrk().parse(replace(OFFER, wl=2), result, SAID, 0.0, 1.0)
    assert records.start_s == pytest.approx([0.0, 0.0, 0.1, 0.3, 0.5])
    assert records.end_s == pytest.approx([0.1, 0.3, 0.5, np.nan, np.nan], nan_ok=True)
    assert records.status.tolist() == [200, 503, 200, 0, 0], "what came late is not of the load"


def test_requests_that_failed_are_spread() -> None:
    said = SAID + "  Socket errors: connect 1, read 2, write 1, timeout 7\n"
    records = Wrk().parse(OFFER, rows((1.0, 0), (1.5, 200)), said, 0.0, 1.0)
    failed = records.finished & (records.status == 0)
    assert np.sort(records.start_s[failed]) == pytest.approx([0.125, 0.375, 0.625, 0.875])


@pytest.mark.parametrize(
    ("result", "output", "sentence"),
    [
        (b"", SAID, "left no records"),
        (rows((1.0, 0))[:-3], SAID, "cut off: 13 bytes"),
        (rows((1.0, 200)), SAID, "hold no begin"),
        (rows((1.0, 0), (np.nan, 200)), SAID, "cannot be read"),
        (rows((1.0, 0), (2.0, 0.3)), SAID, "no statuses"),
        (rows((1.0, 0)), "unable to connect to 10.0.0.2", "summary cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(result: bytes, output: str, sentence: str) -> None:
    with pytest.raises(TrafficError, match=sentence):
        Wrk().parse(OFFER, result, output, 0.0, 1.0)


def test_version_is_that_of_the_package() -> None:
    assert Wrk().parse_version("4.1.0-3+b2") == "4.1.0"
