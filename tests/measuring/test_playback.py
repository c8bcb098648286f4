"""Whether players were late, and what of it is stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_copies import DRIVE

from workbench.domain.campaign import WindowPlan
from workbench.measuring.playback import also, late_stretches, state, still
from workbench.measuring.records import Drive, Playback

PLAN = WindowPlan(warmup_s=6.0, window_s=20.0, timeout_s=28.0)


def show(*arrivals: tuple[int, float], players: int = 1, **more: object) -> Playback:
    """Segments of a second: of which player, and when it was there."""
    player, ready = (np.array(column) for column in zip(*arrivals, strict=True))
    began = np.full(players, 4.0)
    playback = Playback(player.astype(int), np.ones(ready.size), ready, players, began)
    return replace(playback, **more)  # type: ignore[arg-type]


def drive(playback: Playback, stop_s: float = 26.5) -> Drive:
    return replace(DRIVE, stop_s=stop_s, records=replace(DRIVE.records, playback=playback))


ON_TIME = [(0, max(5.0, 3.0 + i)) for i in range(26)]
"""The first three at once, then one a second."""


def test_playback_stands_still_while_what_is_next_is_not_there() -> None:
    ready = np.array([1.0, 1.1, 1.2, 5.0, 5.1])
    assert still(ready, np.ones(5), 6.0).tolist() == [[-np.inf, 1.0], [4.0, 5.0]]
    assert still(ready, np.ones(5), 9.0)[1:].tolist() == [[4.0, 5.0], [7.0, 9.0]]
    assert still(np.zeros(0), np.zeros(0), 9.0).tolist() == [[-np.inf, 9.0]]


def test_a_stretch_is_late_or_not() -> None:
    assert late_stretches(show(*ON_TIME), 6.0, 26.5).tolist() == [0.0]
    gap = [(p, t) for p, t in ON_TIME if not 10 < t < 14]
    assert late_stretches(show(*gap), 6.0, 26.5).tolist() == [1.0]
    late_before = [(p, t + 3.0 * (t > 5.0)) for p, t in ON_TIME]
    assert late_stretches(show(*late_before), 9.0, 29.5).tolist() == [0.0]
    assert late_stretches(show(*late_before), 9.0, 26.0).tolist() == [], "no whole stretch"


def test_a_player_that_begins_in_a_stretch_was_late_in_it() -> None:
    slow = [(p, max(t, 8.0)) for p, t in ON_TIME]
    assert late_stretches(show(*slow), 6.0, 26.5).tolist() == [1.0]


def test_stretches_follow_one_another() -> None:
    long = [(0, max(5.0, 3.0 + i) + 1.5 * (i > 30)) for i in range(60)]
    assert late_stretches(show(*long), 6.0, 46.0).tolist() == [0.0, 0.0], "its buffer held"
    longer = [(0, t + 2.0 * (t > 33)) for _, t in long]
    assert late_stretches(show(*longer), 6.0, 46.0).tolist() == [0.0, 1.0]


def test_none_late_has_an_upper_end() -> None:
    every = [(p, t) for p in range(50) for _, t in ON_TIME]
    share = state([drive(show(*every, players=50))], PLAN)["lag_ratio_pct"]
    assert (share.value, share.low) == (0.0, 0.0)
    assert share.high == pytest.approx(100 * (1 - 0.025 ** (1 / 50)), rel=1e-3)


def test_who_got_nothing_was_late() -> None:
    share = state([drive(show(*ON_TIME, players=4))], PLAN)["lag_ratio_pct"]
    assert share.value == 75.0
    assert share.low == pytest.approx(19.4, abs=0.1)
    assert share.high == pytest.approx(99.4, abs=0.1)


def test_start_up_is_from_the_first_request_to_the_first_segment() -> None:
    both = [*ON_TIME, *((1, t + 0.2) for _, t in ON_TIME)]
    wait = state([drive(show(*both, players=2))], PLAN)["startup_ms"]
    assert wait.value == pytest.approx(1_100)
    assert wait.low < wait.value < wait.high


def test_requests_without_players_have_no_such_kpi() -> None:
    assert state([DRIVE], PLAN) == {}
    assert also((), [DRIVE]) == ()


def test_what_failed_stands_first_and_is_told() -> None:
    faults = ("movie 2: ffmpeg ended after 9.1 s with exit code 1 and said Broken pipe", "more")
    (finding,) = also((), [drive(show(*ON_TIME, faults=faults))])
    assert finding.reason == "stream_failed"
    assert finding.evidence.startswith("movie 2: ffmpeg ended after 9.1 s")
    assert finding.evidence.endswith("(and 1 more)")


def test_players_whose_own_program_is_late_are_the_source_s() -> None:
    (finding,) = also((), [drive(show(*ON_TIME, late_share=0.2))])
    assert finding.reason == "source_saturated"
    assert "20% of the time" in finding.evidence
    assert also((finding,), [drive(show(*ON_TIME, late_share=0.2))]) == (finding,)
    both = also((finding,), [drive(show(*ON_TIME, faults=("movie 1: no playlist",)))])
    assert [f.reason for f in both] == ["source_saturated", "stream_failed"]
