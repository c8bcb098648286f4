"""`compare` of packet samples: their KPIs have a floor, and an offered rate is no difference."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from session_making import campaign, created, measurement

from workbench.cli.session_words import comparison
from workbench.domain.lab import ASSUMED
from workbench.domain.messages import Compared
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Difference
from workbench.domain.samples import Estimate, Sample
from workbench.engine.answers.comparing import ComparedSession, contrasted

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
        ComparedSession(name, created().host, None, 0.0, (sample,), ())
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
        ComparedSession(name, facts, None, 0.0, (), ())
        for name, facts in (("one", host), ("other", created().host))
    )
    warnings = contrasted(one, other).warnings
    assert [w for w in warnings if "0.24" in w] == ["one: a log-sd of 0.24 was given"]


def hosts_compared(*figures: tuple[float, float, float], generator: str = "oha 1") -> Compared:
    """Of two hosts: cores, and the mean response times (ms) of both; equal loads."""
    samples: list[list[Sample]] = [[], []]
    for cores, *both in figures:
        configuration = Configuration({"haproxy.vcpu": cores}, {})
        for mean_ms, own, name in zip(both, samples, ("oha 1", generator), strict=True):
            sample = measurement("haproxy", configuration, 100.0).sample
            kpis = {"mean_ms": Estimate(mean_ms, mean_ms / 1.02, mean_ms * 1.02)}
            own.append(replace(sample, kpis=kpis, generator=name))
    hosts = created().host, replace(created().host, lab="netns", cores=8)
    one, other = (
        ComparedSession(name, host, None, 0.0, tuple(own), ())
        for name, host, own in zip(("one", "other"), hosts, samples, strict=True)
    )
    return contrasted(one, other)


def test_two_hosts_stand_side_by_side_with_the_factor_between_them() -> None:
    found = hosts_compared((0.25, 4.0, 8.0), (0.5, 2.0, 4.4), (1.0, 1.0, 1.8))
    (factor,) = found.factors
    assert (factor.figure, factor.places) == ("mean_ms", 3)
    assert factor.value == pytest.approx((2.0 * 2.2 * 1.8) ** (1 / 3))
    assert (factor.least, factor.most) == pytest.approx((1.8, 2.2))
    # By hand: the logs' standard deviation is 0.1004, t with 2 degrees 4.303; and the floor.
    half = math.hypot(4.303 * 0.1004 / math.sqrt(3), math.log1p(found.differences[0].floor))
    assert math.log(factor.high / factor.value) == pytest.approx(half, rel=1e-3)
    assert math.log(factor.value / factor.low) == pytest.approx(half, rel=1e-3)
    assert factor.note == ""
    assert {d.verdict for d in found.differences} == {"not_comparable"}
    beside = found.differences[0]
    assert (beside.first, beside.second) == pytest.approx((4.0, 8.0))
    assert beside.ratio is None
    assert any("different hosts: lab sim here, netns there" in w for w in found.warnings)


def test_what_is_not_one_factor_is_said_and_one_configuration_keeps_its_own_interval() -> None:
    (factor,) = hosts_compared((0.25, 4.0, 4.0), (0.5, 2.0, 8.0)).factors
    assert "it is not one factor" in factor.note
    (single,) = hosts_compared((0.25, 4.0, 8.0)).factors
    assert single.places == 1
    assert "of one configuration" in single.note
    floor = hosts_compared((0.25, 4.0, 8.0)).differences[0].floor
    assert single.high / single.value > 1 + floor


def test_no_factor_stands_between_two_generators_or_on_one_host() -> None:
    found = hosts_compared((0.25, 4.0, 8.0), generator="hey 2")
    assert found.factors == ()
    assert "generator" in found.differences[0].note
    same = ComparedSession(
        "one", created().host, None, 0.0, (measurement("haproxy", CONFIGURATION, 1.0).sample,), ()
    )
    assert contrasted(same, same).factors == ()


def test_the_factors_are_printed() -> None:
    text = comparison(hosts_compared((0.25, 4.0, 8.0), (0.5, 2.0, 4.4)))
    assert "other / one" in text
    assert "2.098 [" in text
    assert "figures differ visibly" not in text
