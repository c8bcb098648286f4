from dataclasses import replace

import numpy as np
import pytest
from drives import drive, open_loop

from workbench.domain.errors import DataError
from workbench.measuring.usage import Meter, pooled

ROWS = open_loop(50, 0.002)


def tampered(made, index, name=None, **changes):
    """The drive with one reading changed."""
    counters = list(made.counters)
    if name is None:
        counters[index] = replace(counters[index], **changes)
    else:
        components = dict(counters[index].components)
        components[name] = replace(components[name], **changes)
        counters[index] = replace(counters[index], components=components)
    return replace(made, counters=tuple(counters))


def test_usage_is_a_rate_and_a_share_of_the_allocation():
    made = drive(ROWS, 4.5, cpu={"haproxy": 0.2}, throttled=0.4, host_cores=0.9)
    usage = Meter(made).usage(made.begin_s + 1.3, made.begin_s + 4.3)
    function = usage["haproxy"]
    assert function.cpu_cores == pytest.approx(0.2)
    assert function.cpu_share == pytest.approx(0.8)
    assert function.throttled_share == pytest.approx(0.4, abs=0.02)
    assert function.throttled_s == pytest.approx(0.6)
    assert function.memory_bytes == 2e7
    assert (function.rx_mbps, function.tx_mbps) == pytest.approx((8.0, 16.0))
    assert function.threads == 1
    assert usage["host"].cpu_share == pytest.approx(0.45)
    assert usage["sink"].throttled_share == 0.0, "without a quota there are no periods"


def test_a_source_without_a_quota_may_use_the_host():
    made = drive(ROWS, 4.5, cpu={"source": 1.0})
    free = replace(made, allotted_cores={"haproxy": 0.25, "host": 2.0})
    assert Meter(free).usage(100.0, 104.0)["source"].cpu_share == pytest.approx(0.5)


def test_the_busiest_thread_is_named():
    made = drive(ROWS, 4.5, threads={"source": (0.2, 0.9, 0.1)})
    meter = Meter(made)
    assert meter.busiest_thread("source", 101.0, 104.0) == (2, pytest.approx(0.9))
    assert meter.busiest_thread("sink", 101.0, 104.0) is None
    assert meter.busiest_thread("nobody", 101.0, 104.0) is None


def test_a_thread_that_comes_later_starts_from_nothing():
    made = drive(ROWS, 4.5, threads={"source": (0.2, 0.9)})
    late = tampered(made, 0, "source", threads_cpu_s=(0.0,))
    assert Meter(late).busiest_thread("source", 101.0, 104.0) == (2, pytest.approx(0.9))


def test_seconds_cover_the_drive():
    made = drive(ROWS, 4.5)
    seconds = Meter(made).seconds(made.begin_s)
    assert [s.second for s in seconds if s.component == "haproxy"] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert {s.component for s in seconds} == {"haproxy", "source", "sink", "host"}
    assert seconds[0].cpu_cores == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("component", "change", "says"),
    [
        ("haproxy", {"cpu_s": 0.0}, "cpu_s of haproxy went back from 5.2 to 0"),
        ("sink", {"tx_bytes": 0.0}, "tx_bytes of sink"),
        ("haproxy", {"periods": 0}, "periods of haproxy"),
        (None, {"host_busy_s": 0.0}, "host_busy_s of host"),
        (None, {"at_s": 0.0}, "at_s of clock"),
    ],
)
def test_counters_that_go_back_cannot_be_judged(component, change, says):
    with pytest.raises(DataError, match=says):
        Meter(tampered(drive(ROWS, 4.5, cpu={"haproxy": 0.1}), 3, component, **change))


def test_components_that_vanish_and_counters_that_are_missing_are_named():
    made = drive(ROWS, 4.5)
    last = replace(made.counters[-1], components={})
    with pytest.raises(DataError, match="haproxy vanish"):
        Meter(replace(made, counters=(*made.counters[:-1], last)))
    with pytest.raises(DataError, match="1 instants"):
        Meter(replace(made, counters=made.counters[:1]))


def test_windows_are_pooled_by_their_length():
    first = Meter(drive(ROWS, 4.5, cpu={"haproxy": 0.1})).usage(101.0, 102.0)
    second = Meter(drive(ROWS, 4.5, cpu={"haproxy": 0.2}, throttled=0.5)).usage(101.0, 104.0)
    both = pooled([(first, 1.0), (second, 3.0)])["haproxy"]
    assert both.cpu_cores == pytest.approx(0.175)
    assert both.throttled_s == pytest.approx(0.75)
    assert np.isclose(both.throttled_share, 0.75 * second["haproxy"].throttled_share)
