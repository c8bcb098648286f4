"""Others' load, told by counters over what a function's own traffic explains."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from workbench.domain.errors import DataError
from workbench.models.counter_contention import (
    FALSE_A_DAY,
    LOOKS_A_DAY,
    ContentionTest,
    _at_most,
    _independent,
    chance_limit,
    raised_by_chance,
    rates_of,
)
from workbench.models.counter_rows import CounterRows, rows_of
from workbench.models.counter_watch import FORGET_AFTER, Alarm

SPAN_S = 3.5
"""Of a look: as long as the windows of a campaign are at least, and half a second more."""
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
    test = ContentionTest(session(), SPAN_S)
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
    test = ContentionTest(session(), SPAN_S)
    much = test.look(seen(50_000.0, 1.0))
    assert (much.contended, much.times) == (None, None)
    assert "alone it was at most" in much.why
    assert test.look(seen(2000.0, 20.0, throttled=0.5)).why == "its own quota stops it"
    gone = seen(2000.0, 1.0)
    del gone["cpu_wait_s"]
    assert test.look(gone).contended is None
    assert test.look(seen(20.0, 1.0)).contended is False


def test_rates_are_of_experiments_that_were_not_seen() -> None:
    rates = rates_of(session(), SPAN_S)
    assert (rates.quiet, rates.false, rates.beside, rates.missed) == (12, 0, 24, 0)


def test_a_session_without_competitors_teaches_what_is_quiet() -> None:
    alone = replace(session(waits=(1.0, 1.0, 1.0)), beside=None)
    test = ContentionTest(alone, SPAN_S)
    assert "waiting for CPU" in test.signs
    assert test.look(seen(2000.0, 1.3)).contended is False
    assert test.look(seen(2000.0, 10.0)).contended is True


def shared(rows: CounterRows) -> CounterRows:
    """The same session, with what others use of the function's core beside both competitors."""
    competes = np.zeros(len(rows.y)) if rows.beside is None else rows.beside
    others = np.array([0.015, 0.96, 0.52])[np.asarray(competes, dtype=int)][:, None]
    names = (*rows.features, "others_on_cores_s")
    return replace(rows, features=names, x=np.hstack([rows.x, others]))


def test_others_on_its_core_are_told_where_it_hardly_waits() -> None:
    session_of_two = shared(session(waits=(1.0, 1.0, 20.0)))
    test = ContentionTest(session_of_two, SPAN_S)
    hardly = {**seen(2000.0, 1.2), "others_on_cores_s": 0.95}
    assert ContentionTest(session(), SPAN_S).look(hardly).contended is False
    beside = test.look(hardly)
    assert beside.contended is True
    assert beside.why.startswith("others' CPU on its cores 9")
    assert "(0.95 cores)" in beside.why
    assert test.look(hardly | {"others_on_cores_s": 0.06}).contended is False
    rates = rates_of(session_of_two, SPAN_S)
    assert (rates.false, rates.missed) == (0, 0)


def test_what_others_use_says_nothing_where_nobody_competed() -> None:
    alone = replace(session(waits=(1.0, 1.0, 1.0)), beside=None)
    test = ContentionTest(shared(alone), SPAN_S)
    assert "waiting for CPU" in test.signs
    assert "others' CPU on its cores" not in test.signs
    assert test.look({**seen(2000.0, 1.2), "others_on_cores_s": 0.95}).contended is False


def disturbed(rows: CounterRows, windows: list[int]) -> CounterRows:
    """The same session, in which somebody else was there in some windows alone."""
    assert rows.beside is not None
    x = rows.x.copy()
    x[np.flatnonzero(rows.beside == 0)[windows], FEATURES.index("cpu_wait_s")] *= 25.0
    return replace(rows, x=x)


def test_a_window_alone_that_somebody_disturbed_is_left_out() -> None:
    rows = session()
    usual, test = ContentionTest(rows, SPAN_S), ContentionTest(disturbed(rows, [3]), SPAN_S)
    assert (usual.disturbed, test.disturbed, test.quiet) == (0, 1, 12)
    for load in (600.0, 2000.0, 4500.0):
        assert test.look(seen(load, 8.0)).contended is True
        assert test.look(seen(load, 1.2)).contended is False
    with pytest.raises(DataError, match="no counter tells"):  # too many to call them chance
        ContentionTest(disturbed(rows, [1, 3, 7, 9]), SPAN_S)


def test_signs_that_tell_nobody_are_none() -> None:
    with pytest.raises(DataError, match="no counter tells windows beside competitors"):
        ContentionTest(session(waits=(1.0, 1.0, 1.0)), SPAN_S)
    with pytest.raises(DataError, match="0 windows in which nobody competed"):
        ContentionTest(session().taken(np.arange(6, 18)), SPAN_S)
    with pytest.raises(DataError, match="no counter tells the function's own traffic"):
        ContentionTest(session().only(FEATURES[1:]), SPAN_S)


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
        ContentionTest(rows, SPAN_S)


def test_an_alarm_on_which_nothing_rests_any_more_is_withdrawn() -> None:
    alarm = Alarm()
    assert [alarm.look(holds) for holds in (False, False)] == [False, True]
    assert [alarm.look(None) for _ in range(FORGET_AFTER)] == [False] * (FORGET_AFTER - 1) + [True]
    assert (alarm.raised, alarm.withdrawn) == (False, True)
    assert [alarm.look(holds) for holds in (False, False)] == [False, True]
    assert (alarm.raised, alarm.withdrawn) == (True, False)


def looks_of(seconds: np.ndarray, window: int) -> np.ndarray:
    """Means over windows that end at each second, of unit variance; of the last axis."""
    sums = np.cumsum(np.pad(seconds, [(0, 0), (1, 0)]), axis=-1)
    return (sums[:, window:] - sums[:, :-window]) / np.sqrt(window)


@pytest.mark.parametrize(("window", "signs"), [(3, 4), (4, 1), (4, 4)])
@pytest.mark.parametrize("together", [0.0, 0.7])
def test_a_quiet_function_is_alarmed_about_once_a_day(
    window: int, signs: int, together: float
) -> None:
    """At a look each second, over the whole windows next to 3.5 s."""
    random, days = np.random.default_rng(5), 40
    limit, raised = chance_limit(window, signs), 0
    for _ in range(days):
        alone = random.standard_normal((signs, LOOKS_A_DAY))
        common = random.standard_normal(LOOKS_A_DAY)
        seconds = np.sqrt(1.0 - together) * alone + np.sqrt(together) * common
        raised += alarms((looks_of(seconds, window) > limit).any(axis=0))
    # Of 40 at most, what all but one of a thousand such simulations have; independent signs share
    # their pairs with nobody, so that of four there are a quarter.
    assert raised <= stats.poisson.ppf(0.999, days * FALSE_A_DAY)
    assert raised >= stats.poisson.ppf(0.001, 0.6 * days * FALSE_A_DAY / signs)


def test_at_3_5_s_the_limit_is_that_of_its_own_overlap() -> None:
    assert chance_limit(3.0, 4) < chance_limit(3.5, 4) < chance_limit(4.0, 4)
    assert chance_limit(SPAN_S, 1) < chance_limit(SPAN_S, 4)
    for signs in (1, 4):
        a_day = LOOKS_A_DAY * signs**2 * raised_by_chance(chance_limit(SPAN_S, signs), SPAN_S)
        assert a_day == pytest.approx(FALSE_A_DAY, rel=1e-6)
    # Without overlap both looks are chances of their own; with all of it they are one.
    assert raised_by_chance(2.0, 1.0) == pytest.approx(2.0 * stats.norm.sf(2.0) ** 2, rel=1e-6)
    assert raised_by_chance(2.0, 1e9) == pytest.approx(2.0 * stats.norm.sf(2.0), rel=1e-3)


def alarms(over: np.ndarray) -> int:
    """How often `Alarm` is raised: it holds where no look is over, which is nearly always."""
    alarm, raised, last = Alarm(), 0, -100
    for at in np.flatnonzero(over).tolist():
        for holds in [True] * min(at - last - 1, 10):
            alarm.look(holds)
        raised += alarm.look(False) and alarm.raised
        last = at
    return raised


def test_the_most_false_alarms_that_are_told_hold_four_sessions_of_five() -> None:
    """Scatter is estimated, from 18 windows, and never known."""
    expected, kept, true_sd = [], 0, 0.3
    for seed in range(40):
        draw = np.random.default_rng(seed)
        load = np.exp(draw.uniform(np.log(500.0), np.log(5000.0), 18))
        wait = 4e-4 * load * np.exp(true_sd * draw.standard_normal(18))
        names = ("rx_packets", "cpu_wait_s")
        rows = CounterRows(names, np.column_stack([load, wait]), load, np.arange(18) // 3)
        test = ContentionTest(rows, SPAN_S)
        (sign,) = test._signs
        expected.append(test.false_a_day[0])
        truly = LOOKS_A_DAY * raised_by_chance(sign.limit / true_sd, SPAN_S)
        kept += truly <= test.false_a_day[1]
    assert expected == pytest.approx([FALSE_A_DAY] * 40)
    # 32 of 40 are meant; fewer than 26 would be chance once in a hundred.
    assert kept >= 26


def test_windows_of_an_experiment_that_go_together_count_less() -> None:
    random, groups = np.random.default_rng(2), np.repeat(np.arange(8), 6)
    own = random.standard_normal(48)
    assert _independent(own, groups) > 25
    alike = random.standard_normal(8)[groups] + 0.1 * own
    assert _independent(alike, groups) == pytest.approx(8, abs=1)
    assert _at_most(_independent(alike, groups)) > 1.25 > _at_most(_independent(own, groups))
    # Of two experiments nobody can tell.
    assert _independent(alike[:12], groups[:12]) == 12


def test_what_holding_out_leaves_too_little_for_is_said() -> None:
    few = session().taken(np.flatnonzero(np.arange(36) % 6 < 4))  # four windows alone in each pass
    assert ContentionTest(few, SPAN_S).signs
    with pytest.raises(DataError, match="4 windows in which nobody competed, where 6 are needed"):
        rates_of(few, SPAN_S)


@pytest.mark.parametrize("times", [6.0, 14.0])
def test_a_competitor_is_alarmed_within_five_seconds(times: float) -> None:
    """Looks of four seconds, of which one more each second is beside it; quiet windows scatter as
    those of haproxy do (0.32 in logs), alone and beside."""
    draw = np.random.default_rng(1)
    load = np.exp(draw.uniform(np.log(500.0), np.log(5000.0), 36))
    beside = np.repeat([0, 1], 18)
    own = 4e-4 * load * np.exp(0.32 * draw.standard_normal(36))
    x = np.column_stack([load, own * np.where(beside, times, 1.0)])
    rows = CounterRows(("rx_packets", "cpu_wait_s"), x, load, np.arange(36) // 9, beside)
    test, alarm = ContentionTest(rows, SPAN_S), Alarm()
    raised = [
        alarm.look(not test.look({"rx_packets": 1000.0, "cpu_wait_s": 0.4 * more}).contended)
        for seconds in range(6)
        for more in [1.0 + (times - 1.0) * min(seconds, 4) / 4.0]
    ]
    assert raised.index(True) <= 4
