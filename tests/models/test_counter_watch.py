"""A KPI from counters, live: sure where it was taught, silent elsewhere, with hysteresis."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from workbench.chains.drift import ALLOWANCE, Cusum, threshold
from workbench.domain.errors import DataError
from workbench.domain.parameters import Sla
from workbench.models import counter_models
from workbench.models.counter_distance import LearnedPlaces, held_out_places
from workbench.models.counter_extremes import MostContended
from workbench.models.counter_models import CounterLine
from workbench.models.counter_rows import CounterRows, rows_of, without_idle_features
from workbench.models.counter_watch import Alarm, CounterLook, CounterWatch


def experiments(count: int, seed: int = 0) -> CounterRows:
    """Throughput by packets, with CPU that goes with it and a neighbour that takes some of it."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(count), 8)
    load = random.uniform(100.0, 1000.0, len(groups))
    wait = random.uniform(0.01, 0.5, len(groups))
    throughput = load * (1.0 - 0.3 * wait)
    noise = np.exp(0.02 * random.standard_normal((2, len(groups))))
    x = np.column_stack([10.0 * throughput * noise[0], 1e-3 * load * noise[1], wait])
    return CounterRows(("rx_packets", "cpu_cores", "cpu_wait_s"), x, throughput, groups)


@pytest.fixture(scope="module")
def watch() -> CounterWatch:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counter_models, "INNER_FOLDS", 2)
        return CounterWatch(experiments(10))


def seen(throughput: float, wait: float) -> dict[str, float]:
    load = throughput / (1.0 - 0.3 * wait)
    return {"rx_packets": 10.0 * throughput, "cpu_cores": 1e-3 * load, "cpu_wait_s": wait}


def test_what_was_learned_is_told_with_an_interval_that_holds(watch: CounterWatch) -> None:
    told = [watch.look(seen(t, 0.2), {}) for t in np.linspace(200.0, 800.0, 25)]
    answers = [(t, look) for t, look in zip(np.linspace(200.0, 800.0, 25), told, strict=True)
               if look.value is not None]  # fmt: skip
    assert len(answers) >= 20
    held = [look.low <= t <= look.high for t, look in answers]  # type: ignore[operator]
    assert np.mean(held) >= 0.8
    widths = [look.high / look.low for _, look in answers]  # type: ignore[operator]
    assert np.median(widths) < 1.5, "an interval that says something"
    assert watch.score.coverage is not None
    assert watch.score.coverage > 0.85


def test_counters_outside_of_what_was_learned_have_a_reason_and_no_figure(
    watch: CounterWatch,
) -> None:
    far = watch.look(seen(20_000.0, 0.2), {})
    assert far.value is None
    assert far.why.startswith("outside of what was learned")
    mixed = watch.look({**seen(200.0, 0.2), "cpu_cores": 1.0}, {})
    assert mixed.value is None
    assert "no such mix of counters" in mixed.why
    broken = watch.look({**seen(200.0, 0.2), "cpu_cores": float("nan")}, {})
    assert broken.value is None


def test_a_function_that_serves_nobody_has_no_figure(watch: CounterWatch) -> None:
    for traffic in (0.0, 100.0):
        look = watch.look({**seen(200.0, 0.2), "rx_packets": traffic}, {})
        assert look.value is None
        assert f"outside of what was learned: rx_packets is {traffic:g}" in look.why


def test_a_missing_counter_is_named_with_its_reason(watch: CounterWatch) -> None:
    counted = seen(300.0, 0.1)
    del counted["cpu_wait_s"]
    look = watch.look(counted, {"cpu_wait_s": "Permission denied"})
    assert (look.value, look.why) == (None, "cpu_wait_s is missing: Permission denied")


def test_a_breach_counts_once_it_is_likely_and_until_the_figure_holds() -> None:
    sla = Sla("p95_ms", 10.0)
    unsure, sure = CounterLook(12.0, 6.0, 24.0), CounterLook(18.0, 9.0, 36.0)
    assert (unsure.held(sla), sure.held(sla)) == (True, False)
    assert unsure.held(sla, raised=True) is False
    assert CounterLook(9.0, 4.5, 18.0).held(sla, raised=True) is True
    assert CounterLook(why="outside").held(sla) is None
    # Of throughput the interval's other end is the one that holds.
    assert CounterLook(9.0, 4.5, 18.0).held(Sla("throughput_rps", 10.0, ">=")) is True
    assert unsure.breach(sla) == pytest.approx(0.70, abs=0.01)
    assert sure.breach(sla) == pytest.approx(0.95, abs=0.01)
    assert CounterLook(9.0, 4.5, 18.0).breach(sla) == pytest.approx(0.38, abs=0.01)
    assert CounterLook(9.0, 9.0, 9.0).breach(sla) == 0.0
    assert CounterLook(why="outside").breach(sla) is None
    assert CounterLook(5.0, 3.0, 8.0).held(Sla("throughput_rps", 10.0, ">=")) is False


def test_rates_are_of_experiments_that_were_not_seen(watch: CounterWatch) -> None:
    rates = watch.rates(Sla("throughput_rps", 400.0, ">="), ALLOWANCE)
    assert rates.rows == 80
    assert rates.broken > 10
    assert rates.missed + rates.false <= 8
    nothing = watch.rates(Sla("throughput_rps", 1.0, ">="), ALLOWANCE)
    assert (nothing.broken, nothing.missed, nothing.false) == (0, 0, 0)
    assert watch.rates(None, ALLOWANCE) == replace(nothing, broken=0)


def test_what_would_be_silent_is_told_by_limits_that_have_not_seen_it() -> None:
    """One experiment lies elsewhere: the limit that has seen it takes most of its rows for inside,
    one that has not is silent of all of them."""
    rows = experiments(10)
    x = rows.x.copy()
    x[rows.groups == 4, 2] += 5.0
    strange = replace(rows, x=x)
    silent, strayed = held_out_places(strange)
    assert silent[rows.groups == 4].all()
    assert (strayed[rows.groups == 4] > ALLOWANCE).all()
    assert silent[rows.groups != 4].mean() < 0.2
    learned = LearnedPlaces(strange)
    assert (learned.between(rows.groups).min(axis=1) > learned.limit).sum() == 1, (
        "of 80 rows 1 %, whatever they are"
    )
    # Logs are cut at the least figure: too little traffic shows in no distance.
    little = rows.x.copy()
    little[rows.groups == 4, :2] *= 0.01
    assert held_out_places(replace(rows, x=little)).silent[rows.groups == 4].all()


class QuickModel(CounterLine):
    """A line in place of ours, which takes seconds to fit."""

    chosen_ = "line"


def test_a_competitor_that_was_not_learned_is_held_or_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside each competitor p95 is another at the same counters: one who knows two of them has to
    be unsure about the third, though experiments of the two are predicted well."""
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", QuickModel)
    draw = np.random.default_rng(3)
    groups = np.repeat(np.arange(12), 8)
    beside = groups % 4
    faults = np.array([1.0, 2.0, 3.0, 2.5])[beside] * np.exp(0.02 * draw.standard_normal(96))
    wait = np.array([0.1, 1.0, 1.0, 1.0])[beside] * np.exp(0.05 * draw.standard_normal(96))
    p95 = np.array([10.0, 15.0, 30.0, 18.0])[beside] * np.exp(0.02 * draw.standard_normal(96))
    others = np.exp(0.3 * draw.standard_normal((8, 96)))
    names = ("page_faults", "cpu_wait_s", *(f"other {i}" for i in range(8)))
    rows = CounterRows(names, np.column_stack([faults, wait, *others]), p95, groups, beside)
    unseen = rows.taken(np.flatnonzero(beside == 3))

    def held(watch: CounterWatch) -> float:
        looks = [watch.look(dict(zip(rows.features, x, strict=True)), {}) for x in unseen.x]
        return float(np.mean([
            look.value is None or look.low <= true <= look.high  # type: ignore[operator]
            for look, true in zip(looks, unseen.y, strict=True)
        ]))  # fmt: skip

    known = rows.taken(np.flatnonzero(beside != 3))
    assert held(CounterWatch(replace(known, beside=None))) < 0.2
    assert held(CounterWatch(known)) >= 0.92


def beside_competitors(waits: dict[int, float], seed: int) -> CounterRows:
    """Loads of a function alone (0) and beside competitors, of which each makes it wait for so much
    of a second per packet; a dozen of counters go with its load."""
    draw = np.random.default_rng(seed)
    beside = np.repeat(list(waits), 20)
    load = draw.uniform(100.0, 1000.0, len(beside))
    noise = np.exp(0.05 * draw.standard_normal((14, len(beside))))
    waited = load * np.array(list(waits.values()))[np.repeat(np.arange(len(waits)), 20)] * noise[0]
    names = ("cpu_wait_s", "rx_packets", *(f"other {i}" for i in range(12)))
    groups = 2 * beside + np.arange(len(beside)) % 2
    return CounterRows(names, np.column_stack([waited, load, *(load * noise[2:])]), load,
                       groups, beside)  # fmt: skip


def test_more_contention_than_any_that_was_measured_is_outside_of_what_was_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who waits 1.6 times as long per packet as beside anybody known lies near what was learned:
    all other counters go with the load."""
    monkeypatch.setattr("workbench.models.counter_watch.OwnCounterModel", QuickModel)
    known = beside_competitors({0: 2e-4, 1: 1e-3, 2: 2e-3}, 1)
    watch = CounterWatch(known)
    same, more = (beside_competitors({3: wait}, 2) for wait in (2e-3, 3.2e-3))
    answered, strange = (
        [watch.look(dict(zip(rows.features, x, strict=True)), {}) for x in rows.x]
        for rows in (same, more)
    )
    near = [look for look in strange if look.apart is not None and look.apart <= 1.0]
    assert len(near) >= 15, "no distance tells it"
    assert sum(look.value is not None for look in answered) >= 18
    assert all(look.value is None for look in near)
    told = re.fullmatch(
        r"outside of what was learned: waiting for CPU (\d+\.\d) times what its traffic "
        r"explains, learned up to (\d+\.\d)",
        near[0].why,
    )
    assert told is not None
    assert float(told[1]) == pytest.approx(16.0, rel=0.2)
    assert float(told[2]) == pytest.approx(10.0, rel=0.2)
    silent = held_out_places(known).silent
    assert silent.mean() < 0.1
    # Where nobody competed the most is chance, and no measure of others.
    alone = MostContended(replace(known, beside=None))
    assert not alone.exceeded(10.0 * known.x).any()


def test_packets_of_one_size_tell_traffic_by_their_bytes() -> None:
    """Packets are a double of bytes then, and left out; without traffic there is no figure."""
    rows = experiments(10)
    names = ("cpu_cores", "cpu_wait_s", "rx_bytes", "rx_packets")
    x = np.column_stack([rows.x[:, 1:], 512.0 * rows.x[:, 0], rows.x[:, 0]])
    kept, _ = without_idle_features(replace(rows, features=names, x=x))
    assert kept.features == names[:3]
    learned = LearnedPlaces(kept)
    assert learned.traffic == "rx_bytes"
    assert 0.0 < learned.idle_below < x[:, 2].min()


def test_too_few_experiments_are_refused_with_what_to_do() -> None:
    with pytest.raises(DataError, match="3 experiments with 3 counters"):
        CounterWatch(experiments(3))


def test_an_alarm_is_raised_by_two_looks_of_three_and_cleared_by_five_in_a_row() -> None:
    alarm = Alarm()
    assert [alarm.look(holds) for holds in (False, True, True, False, None, True)] == [False] * 6
    assert alarm.look(False)  # the second of three with an answer
    assert alarm.raised
    assert [alarm.look(True) for _ in range(4)] == [False] * 4
    assert not alarm.look(False)
    assert [alarm.look(True) for _ in range(5)] == [False] * 4 + [True]
    assert not alarm.raised


def strayed_looks(watch: CounterWatch, rows: CounterRows) -> list[tuple[float, bool]]:
    """How far each look has strayed, and whether there was a figure."""
    found = []
    for row in rows.x:
        look = watch.look(dict(zip(rows.features, row.tolist(), strict=True)), {})
        far = watch.strayed(look)
        assert far is not None
        found.append((far, look.value is not None))
    return found


def test_drift_is_rare_while_counters_lie_as_learned_and_comes_while_there_are_figures(
    watch: CounterWatch,
) -> None:
    """Looks at loads that were not learned."""
    limit = threshold(86_400.0, sides=1)
    quiet = Cusum(limit)
    usual = strayed_looks(watch, experiments(60, seed=7))
    assert not any(quiet.add(far) for far, _ in usual)
    assert np.mean([far for far, _ in usual]) < -0.5
    # CPU for the same traffic has grown: further than usual, though not beyond the limit.
    more = experiments(12, seed=8)
    moved = strayed_looks(watch, replace(more, x=more.x * np.array([1.0, 1.8, 1.0])))
    told = np.array([has for _, has in moved])
    drift = Cusum(limit)
    fired = [i for i, (far, _) in enumerate(moved) if drift.add(far)]
    assert fired
    assert told[: fired[0]].mean() > 0.6, "not only where nothing is said"


def test_a_one_sided_test_of_drift_has_the_run_length_that_is_stated() -> None:
    assert threshold(1_000.0, sides=1) == pytest.approx(threshold(500.0))
    random, lengths = np.random.default_rng(1), []
    for _ in range(150):
        run = Cusum(threshold(300.0, sides=1))
        while not run.add(float(random.standard_normal())):
            pass
        lengths.append(run.taken)
    assert 240 <= np.mean(lengths) <= 400


def test_rows_without_a_counter_are_not_filled_in() -> None:
    counted = [{"a": float(i), "b": 1.0 + i} for i in range(40)]
    del counted[3]["b"]
    for row in counted[:10]:
        row["rare"] = 1.0
    rows, dropped = rows_of(counted, [1.0] * 40, ["x"] * 20 + ["y"] * 20)
    assert rows.features == ("a", "b")
    assert len(rows.y) == 39
    assert [one.name for one in dropped] == ["rare"]
