"""Others' load, told by counters over what a function's own traffic explains."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from workbench.domain.errors import DataError
from workbench.models.counter_contention import FALSE_AT_A_LOOK, ContentionTest, rates_of
from workbench.models.counter_rows import CounterRows, rows_of
from workbench.models.counter_watch import FORGET_AFTER, Alarm

FEATURES = ("rx_packets", "cpu_cores", "cpu_wait_s", "throttled_share")


def session(seed: int = 0, waits: tuple[float, ...] = (1.0, 30.0, 8.0)) -> CounterRows:
    """Windows alone and beside two competitors, at random loads in two passes; waiting grows with
    traffic, and by a factor beside each competitor."""
    draw = np.random.default_rng(seed)
    groups = np.repeat(np.arange(6), 6)
    beside = groups % 3
    load = np.exp(draw.uniform(np.log(500.0), np.log(5000.0), len(groups)))
    cpu = 4e-5 * load * np.exp(0.03 * draw.standard_normal(len(load)))
    wait = 4e-6 * load * np.array(waits)[beside] * np.exp(0.15 * draw.standard_normal(len(load)))
    x = np.column_stack([load, cpu, wait, np.zeros(len(load))])
    return CounterRows(FEATURES, x, load / 10.0, groups, beside)


def seen(load: float, times: float, throttled: float = 0.0) -> dict[str, float]:
    own = (load, 4e-5 * load, 4e-6 * load * times, throttled)
    return dict(zip(FEATURES, own, strict=True))


def test_waiting_that_traffic_does_not_explain_is_others_load() -> None:
    test = ContentionTest(session())
    assert test.signs == ("waiting for CPU",)
    for load in (600.0, 2000.0, 4500.0):
        assert test.look(seen(load, 1.2)).contended is False
        beside = test.look(seen(load, 20.0))
        assert beside.contended is True
        assert "waiting for CPU" in beside.why
    # As much waiting as beside a competitor at little traffic is usual at much.
    assert test.look(seen(4500.0, 1.0)).contended is False
    assert test.look(seen(600.0, 8.0)).contended is True
    assert test.look(seen(2000.0, 20.0)).times == pytest.approx(14.0, rel=0.5)


def test_what_was_not_learned_is_not_told() -> None:
    test = ContentionTest(session())
    much = test.look(seen(50_000.0, 1.0))
    assert (much.contended, much.times) == (None, None)
    assert "alone it was at most" in much.why
    assert test.look(seen(2000.0, 20.0, throttled=0.5)).why == "its own quota stops it"
    gone = seen(2000.0, 1.0)
    del gone["cpu_wait_s"]
    assert test.look(gone).contended is None
    assert test.look(seen(20.0, 1.0)).contended is False


def test_rates_are_of_experiments_that_were_not_seen() -> None:
    rates = rates_of(session())
    assert rates is not None
    assert (rates.quiet, rates.false, rates.beside, rates.missed) == (12, 0, 24, 0)


def test_a_session_without_competitors_teaches_what_is_quiet() -> None:
    alone = replace(session(waits=(1.0, 1.0, 1.0)), beside=None)
    test = ContentionTest(alone)
    assert "waiting for CPU" in test.signs
    assert test.look(seen(2000.0, 1.3)).contended is False
    assert test.look(seen(2000.0, 10.0)).contended is True


def disturbed(rows: CounterRows, windows: list[int]) -> CounterRows:
    """The same session, in which somebody else was there in some windows alone."""
    assert rows.beside is not None
    x = rows.x.copy()
    x[np.flatnonzero(rows.beside == 0)[windows], FEATURES.index("cpu_wait_s")] *= 25.0
    return replace(rows, x=x)


def test_a_window_alone_that_somebody_disturbed_is_left_out() -> None:
    rows = session()
    usual, test = ContentionTest(rows), ContentionTest(disturbed(rows, [3]))
    assert (usual.disturbed, test.disturbed, test.quiet) == (0, 1, 12)
    for load in (600.0, 2000.0, 4500.0):
        assert test.look(seen(load, 8.0)).contended is True
        assert test.look(seen(load, 1.2)).contended is False
    with pytest.raises(DataError, match="no counter tells"):  # too many to call them chance
        ContentionTest(disturbed(rows, [1, 3, 7, 9]))


def test_signs_that_tell_nobody_are_none() -> None:
    with pytest.raises(DataError, match="no counter tells windows beside competitors"):
        ContentionTest(session(waits=(1.0, 1.0, 1.0)))
    with pytest.raises(DataError, match="0 windows in which nobody competed"):
        ContentionTest(session().taken(np.arange(6, 18)))
    with pytest.raises(DataError, match="no counter tells the function's own traffic"):
        ContentionTest(session().only(FEATURES[1:]))


def test_on_a_host_too_busy_to_tell_it_is_said_instead_of_guessed() -> None:
    """Windows of two seconds of haproxy, recorded while some twenty other processes wanted the two
    cores: a competitor more did not show in any counter."""
    recorded = Path(__file__).parent.parent / "data" / "busy_host_windows.csv"
    lines = list(csv.DictReader(recorded.read_text().splitlines()))
    counted = [
        {name: float(line[name]) for name in (*FEATURES, "involuntary_switches")} for line in lines
    ]
    rows, _ = rows_of(
        counted,
        [float(line["p95_ms"]) for line in lines],
        [line["experiment"] for line in lines],
        [line["beside"] for line in lines],
    )
    assert rows.beside is not None
    assert (len(rows.y), (rows.beside == 0).sum()) == (41, 17)
    with pytest.raises(DataError, match="no counter tells windows beside competitors"):
        ContentionTest(rows)


def test_an_alarm_on_which_nothing_rests_any_more_is_withdrawn() -> None:
    alarm = Alarm()
    assert [alarm.look(holds) for holds in (False, False)] == [False, True]
    assert [alarm.look(None) for _ in range(FORGET_AFTER)] == [False] * (FORGET_AFTER - 1) + [True]
    assert (alarm.raised, alarm.withdrawn) == (False, True)
    assert [alarm.look(holds) for holds in (False, False)] == [False, True]
    assert (alarm.raised, alarm.withdrawn) == (True, False)


def test_a_quiet_function_is_alarmed_about_once_in_a_day() -> None:
    """Looks each second at windows of two seconds, whose residuals are normal."""
    days = 10
    noise = np.random.default_rng(5).standard_normal(days * 86_400 + 1)
    over = noise[1:] + noise[:-1] > np.sqrt(2.0) * stats.norm.isf(FALSE_AT_A_LOOK)
    alarm = Alarm()
    raised = sum(alarm.look(not one) and alarm.raised for one in over.tolist())
    assert 0.3 <= raised / days <= 3.0
