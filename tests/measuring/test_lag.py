import numpy as np
from drives import drive, open_loop, records

from workbench.measuring.lag import send_lag


def test_a_function_that_falls_behind_keeps_connections_busy():
    made = drive(open_loop(1500, 0.001, connections=16), 4.5, connections=16)
    lag = send_lag(made, 101.0, 104.5, 0.016)
    assert lag.planned == 5250
    assert lag.waited_for_connection > 5000
    assert lag.late_by_source == lag.unsent_by_source == 0


def test_a_source_that_falls_behind_is_late_although_connections_are_free():
    made = drive(open_loop(400, 0.001, source_rps=280), 4.5)
    lag = send_lag(made, 101.0, 104.5, 0.001)
    assert lag.planned == 1400
    assert lag.late_by_source > 1390
    assert lag.unsent_by_source > 500
    assert lag.waited_for_connection == 0


def test_one_connection_is_enough_to_tell():
    busy = drive(open_loop(1500, 0.001, connections=1, sigma=0.0), 4.5, connections=1)
    assert send_lag(busy, 101.0, 104.5, 0.001).late_by_source == 0
    idle = drive(open_loop(400, 0.001, connections=1, source_rps=280), 4.5, connections=1)
    assert send_lag(idle, 101.0, 104.5, 0.001).late_by_source > 1300


def test_requests_that_were_dropped_are_charged_to_the_source():
    due = np.arange(0.0, 4.5, 0.01)
    start = np.where(np.arange(due.size) % 10 == 0, np.nan, due)
    lag = send_lag(drive(records(due, start, start + 0.001), 4.5), 101.0, 104.0, 0.001)
    assert lag.unsent_by_source == lag.late_by_source == 30


def test_punctual_requests_are_nobodys_fault():
    due = np.arange(0.0, 4.5, 0.01)
    lag = send_lag(drive(records(due, due + 0.005, due + 0.006), 4.5), 101.0, 104.0, 0.001)
    assert lag.late_by_source == lag.waited_for_connection == 0
