"""`compare` of packet samples: their KPIs have a floor, and an offered rate is no difference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from session_making import campaign, created, measurement

from workbench.domain.lab import ASSUMED
from workbench.domain.profiles import Difference
from workbench.domain.samples import Estimate, Sample
from workbench.engine.answers.comparing import Evidence, contrasted

CONFIGURATION = campaign().configurations(campaign().targets[0])[0]


def packets(rate: float, jitter: float, labels: tuple[str, ...] = ()) -> Sample:
    figures = {"throughput_pps": rate, "jitter_ms": jitter}
    return replace(
        measurement("haproxy", CONFIGURATION, 10_000.0).sample,
        kpis={name: Estimate(v, v / 1.01, v * 1.01) for name, v in figures.items()},
        load_model="open-packets",
        kpi_definition="none",
        generator="iperf3 3.12",
        labels=labels,
    )


def compared(first: Sample, second: Sample) -> dict[str, Difference]:
    one, other = (
        Evidence(name, created().host, None, 0.0, (sample,), ())
        for name, sample in (("one", first), ("other", second))
    )
    return {d.figure: d for d in contrasted(one, other).differences}


def test_what_routers_carried_and_how_it_wandered_is_compared() -> None:
    found = compared(
        packets(9_000.0, 0.05, ("overloaded",)), packets(4_500.0, 0.06, ("overloaded",))
    )
    assert found.keys() == {"throughput_pps", "jitter_ms"}
    assert found["throughput_pps"].verdict == "lower"
    assert found["throughput_pps"].ratio == pytest.approx(0.5)
    jitter = found["jitter_ms"]
    assert jitter.verdict == "no_visible_difference"
    assert jitter.floor > found["throughput_pps"].floor > 0.1
    assert "the host differs by as much from itself" in jitter.note


def test_a_rate_that_was_carried_as_planned_says_nothing_of_the_router() -> None:
    found = compared(packets(10_000.0, 0.05), packets(9_999.0, 0.15))
    assert found.keys() == {"jitter_ms"}
    assert found["jitter_ms"].verdict == "higher"


def test_intervals_that_were_assumed_are_said_of_each_session() -> None:
    host = replace(created().host, details={ASSUMED: "a log-sd of 0.24 was given"})
    one, other = (
        Evidence(name, facts, None, 0.0, (), ())
        for name, facts in (("one", host), ("other", created().host))
    )
    warnings = contrasted(one, other).warnings
    assert [w for w in warnings if "0.24" in w] == ["one: a log-sd of 0.24 was given"]
