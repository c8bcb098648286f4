import numpy as np
import pytest
from drives import CLOSED, OPEN, drive, open_loop, point, records, terms

from workbench.domain.campaign import WindowPlan
from workbench.domain.parameters import LoadModel
from workbench.measuring.flow import Flow, period_edges
from workbench.measuring.judging import first_drive_s
from workbench.measuring.warmup import (
    completions_needed,
    mser5,
    steady_from,
    warmup_s,
    window_s,
)


def test_mser5_discards_a_transient():
    rising = np.concatenate([np.linspace(2, 10, 10), np.full(30, 10.0)])
    noise = np.random.default_rng(1).normal(0, 0.3, 40)
    assert mser5(rising + noise, 0.05) in (5, 10)


def test_mser5_leaves_noise_alone():
    rng = np.random.default_rng(1)
    dropped = [mser5(rng.normal(100, 5, 35), 0.05) for _ in range(300)]
    assert np.mean(np.array(dropped) > 0) < 0.05
    assert mser5(np.full(40, 3.0), 0.05) == 0
    assert mser5(np.array([1.0, 9.0] * 5), 0.05) == 0, "too few means to choose from"


def test_mser5_keeps_at_least_half():
    assert mser5(np.concatenate([np.zeros(35), np.ones(5)]), 0.05) <= 20


def test_the_window_starts_on_a_whole_period_after_the_warm_up():
    flow = Flow(drive(open_loop(200, 0.002), 4.5))
    assert steady_from(flow, 1.03) - flow.drive.begin_s == pytest.approx(1.1)


def test_a_slow_start_is_left_out():
    # For 1.5 s the function answers at half its later rate.
    due = np.concatenate([np.arange(0, 1.5, 1 / 100), np.arange(1.5, 4.5, 1 / 200)])
    flow = Flow(drive(records(due, due, due + 0.001), 4.5))
    assert steady_from(flow, 1.0) - flow.drive.begin_s == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("response_s", "warmup", "window"),
    [(None, 1.0, 3.0), (0.1, 1.0, 3.0), (0.5, 1.5, 5.0), (2.0, 6.0, 20.0)],
)
def test_response_times_lengthen_warm_up_and_window(response_s, warmup, window):
    assert warmup_s(WindowPlan(), response_s) == warmup
    assert window_s(WindowPlan(), response_s) == window


def test_a_window_holds_twenty_periods_and_six_batches_whatever_the_campaign_says():
    assert window_s(WindowPlan(window_s=0.5), None) == 3.0


def test_completions_needed():
    assert completions_needed(OPEN, 1e4) == 200
    assert completions_needed(CLOSED, 50) == 200
    assert completions_needed(LoadModel("closed", 0.1), 400) == 1200


@pytest.mark.parametrize(
    ("wl", "load", "rate", "response_s", "seconds"),
    [
        (1000, OPEN, None, None, 4.5),
        (20, OPEN, None, None, 11.5),
        (1, OPEN, None, None, 30.0),
        (64, CLOSED, None, None, 4.5),
        (64, CLOSED, 100.0, 0.64, 1.92 + 6.4 + 0.5),
        (200, CLOSED, 100.0, None, 1.0 + 6.0 + 0.5),
    ],
)
def test_the_first_drive_is_as_long_as_what_is_expected(wl, load, rate, response_s, seconds):
    given = terms(load)
    assert first_drive_s(point(wl), given, rate, response_s) == pytest.approx(seconds)


def test_flow_counts_what_is_due_and_in_flight():
    # Three requests of 0.5, 1.0 and 2.0 s; one never ends, one is never sent.
    rows = records(
        [0.0, 0.0, 0.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.5, np.nan], [0.5, 1.0, 2.0, np.nan, np.nan]
    )
    made = drive(rows, 2.0, begin_s=0.0)
    edges = np.array([0.0, 0.5, 1.0, 2.0])
    flow = Flow(made)
    assert flow.in_flight(edges) == pytest.approx([3.0, 3.0, 2.0])
    assert flow.in_system(edges) == pytest.approx([3.0, 3.0, 3.0])
    assert flow.ended_in(np.array([0.0, 0.6, 1.5, 2.1])).tolist() == [1, 1, 1]
    assert Flow(drive(rows, 2.0, begin_s=0.0, connections=2)).in_flight(edges).max() == 2


def test_period_edges_hold_whole_periods():
    assert period_edges(1.0, 1.35) == pytest.approx([1.0, 1.1, 1.2, 1.3])
    assert period_edges(1.0, 0.5) == pytest.approx([1.0])
