"""What h2load writes, and the records that are made of it."""

from dataclasses import replace

import numpy as np
import pytest
from recorded_outputs import CLOSED, offer, recorded

from workbench.domain.errors import TrafficError
from workbench.traffic.h2load import H2load

OFFER = offer(CLOSED, 3, 0.05)


def test_argv() -> None:
    argv = H2load().argv(replace(OFFER, seconds=4.5))
    assert argv[argv.index("-D") + 1] == "4500ms"
    assert argv[argv.index("-t") + 1] == "2"
    one = H2load().argv(replace(OFFER, wl=1))
    assert one[one.index("-t") + 1] == "1", "it refuses more threads than clients"
    assert "--log-file=/var/tmp/records" in argv


def test_a_host_name_with_an_underscore_is_refused() -> None:
    with pytest.raises(TrafficError, match="refuses the host name 'the_sink'"):
        H2load().argv(replace(OFFER, url="http://the_sink:8080/"))


def test_a_real_log() -> None:
    result, output = recorded("h2load")
    records = H2load().parse(OFFER, result, output, 100.0, 100.05)
    assert np.count_nonzero(records.succeeded) == result.count(b"\n") - 1, "one came just too late"
    assert np.count_nonzero(~records.finished) == 3, "one in flight per client"
    assert records.start_s.min() == 100.0
    ended = records.finished
    busy_s = np.sum(np.where(ended, records.end_s, 100.05) - records.start_s)
    # Three clients ask again at once; on a busy host its own loop takes a fifth of the time.
    assert 0.7 * 3 * 0.05 < busy_s <= 1.01 * 3 * 0.05
    assert set(records.bytes[ended]) == {10_000}


def test_failed_streams_and_error_answers() -> None:
    log = b"1000000\t200\t1000\n1001000\t503\t1000\n1002000\t-1\t500\n1003000\t200\t90000\n"
    records = H2load().parse(replace(OFFER, wl=1), log, "finished in", 0.0, 0.05)
    assert records.status.tolist() == [200, 503, 0, 0]
    assert records.bytes.tolist() == [10_000, 0, 0, 0]
    assert records.finished.tolist() == [True, True, True, False], "it ended after the load"


def test_silence_is_clients_that_wait() -> None:
    records = H2load().parse(OFFER, b"", "finished in 1.00s, 0.00 req/s", 0.0, 1.0)
    assert len(records) == 3
    assert not records.finished.any()


@pytest.mark.parametrize(
    ("result", "output", "sentence"),
    [
        (b"", "could not resolve", "left no records"),
        (b"1\t200\t5\n1\t20", "", "end in the middle of a line"),
        (b"one\t200\t5\n", "", "cannot be read"),
        (b"1\t200\n", "", "cannot be read"),
        (b"\x00\xff\n", "", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(result: bytes, output: str, sentence: str) -> None:
    with pytest.raises(TrafficError, match=sentence):
        H2load().parse(OFFER, result, output, 0.0, 1.0)


def test_every_cut_of_a_real_log_is_said_or_whole() -> None:
    result, output = recorded("h2load")
    for cut in range(1, 60):
        if result[:cut].endswith(b"\n"):
            continue
        with pytest.raises(TrafficError, match="middle of a line"):
            H2load().parse(OFFER, result[:cut], output, 0.0, 1.0)


def test_version() -> None:
    assert H2load().parse_version("h2load nghttp2/1.52.0\n") == "1.52.0"
