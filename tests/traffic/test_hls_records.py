"""What `play` writes, and the requests and segments that are made of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_outputs import CLOSED, offer

from workbench.domain.parameters import LoadModel
from workbench.traffic.base import unable
from workbench.traffic.hls import COLUMNS, Hls
from workbench.traffic.locust import Locust

STREAMS = LoadModel("closed", unit="streams")
OFFER = replace(offer(STREAMS, 2, 10.0), url="http://server:8080/hls/?movies=1&kbps=2000")
NAN = float("nan")
PLAYLIST = (0.0, 0.0, 0.0, 3.0, 0.0, 1.0, 1.01, 1.02, 200.0, 300.0)
SEGMENT = (0.0, 0.0, 1.0, 3.0, 1.0, 1.1, 1.2, 1.4, 200.0, 250_000.0)
OTHER = (1.0, 0.0, 1.0, 3.0, 1.0, 1.2, 1.25, 1.3, 200.0, 250_000.0)
IN_FLIGHT = (1.0, 0.0, 1.0, 4.0, 1.0, 9.5, NAN, NAN, 0.0, 0.0)


def rows(*requests: tuple[float, ...]) -> bytes:
    return np.array(requests, dtype="<f8").tobytes()


def said(count: int, *more: str) -> str:
    return "\n".join([*more, "ticks 200 3", f"rows {count}"]) + "\n"


def test_argv_has_movies_and_quality_of_the_url() -> None:
    argv = Hls().argv(OFFER)
    assert argv[argv.index("--players") + 1] == "2"
    assert argv[argv.index("--movies") + 1] == "1"
    assert argv[argv.index("--kbps") + 1] == "2000"
    assert argv[-1] == "http://server:8080/hls/"


def test_requests_and_segments() -> None:
    result = rows(PLAYLIST, SEGMENT, OTHER, IN_FLIGHT)
    records = Hls().parse(OFFER, result, said(4), 100.0, 110.0)
    assert records.start_s.tolist() == [101.0, 101.1, 101.2, 109.5]
    assert records.finished.tolist() == [True, True, True, False]
    playback = records.playback
    assert playback is not None
    assert playback.faults == ()
    assert playback.late_share == pytest.approx(3 / 200)
    assert playback.player.tolist() == [1, 0], "in the order of arrival"
    assert playback.ready_s.tolist() == [101.3, 101.4]
    assert playback.began_s.tolist() == [101.0, 101.2]


def test_what_went_wrong_with_a_movie_comes_along() -> None:
    fault = "movie 1: ffmpeg ended after 3.2 s with exit code 1 and said Broken pipe"
    playback = Hls().parse(OFFER, rows(PLAYLIST), said(1, f"fault {fault}"), 0, 10).playback
    assert playback is not None
    assert playback.faults == (fault,)


@pytest.mark.parametrize(
    ("result", "output", "sentence"),
    [
        (b"", "", "is cut off after 0 requests"),
        (rows(PLAYLIST, SEGMENT)[:-1], said(2), "is cut off after 1 of 2 requests"),
        (rows(PLAYLIST), said(7), "is cut off after 1 of 7 requests"),
        (rows(PLAYLIST), "ticks 1", "is cut off after 1 requests"),
        (b"Traceback (most recent call last)" * 10, said(4), "log is none: row 1 is no request"),
        (rows(PLAYLIST, (9.0, *SEGMENT[1:])), said(2), "row 2 is no request"),
        (rows(PLAYLIST, (*SEGMENT[:4], NAN, *SEGMENT[5:])), said(2), "row 2 is no request"),
        (rows((*SEGMENT[:7], 0.5, *SEGMENT[8:])), said(1), "row 1 is no request"),
        (rows((*SEGMENT[:9], 1e18)), said(1), "row 1 is no request"),
    ],
)
def test_a_log_that_is_none_is_a_fault_and_no_figure(
    result: bytes, output: str, sentence: str
) -> None:
    records = Hls().parse(OFFER, result, output, 0.0, 10.0)
    assert records.playback is not None
    assert sentence in records.playback.faults[0]
    assert np.isfinite(records.start_s).all()


def test_random_bytes_are_no_requests() -> None:
    rng = np.random.default_rng(20)
    for _ in range(50):
        garbage = rng.bytes(int(rng.integers(0, 40)) * 8 * COLUMNS)
        records = Hls().parse(OFFER, garbage, said(5), 0.0, 10.0)
        assert records.playback is not None
        assert records.playback.faults
        assert (records.bytes >= 0).all()


def test_streams_and_requests_each_have_their_generators() -> None:
    assert unable(Hls(), STREAMS, ("lag_ratio_pct",), 200) is None
    assert "cannot offer requests" in str(unable(Hls(), CLOSED, ("p95_ms",), 20))
    assert "its one thread" in str(unable(Hls(), STREAMS, ("lag_ratio_pct",), 5000))
    assert "locust plays no streams" in str(unable(Locust(), STREAMS, ("lag_ratio_pct",), 20))
