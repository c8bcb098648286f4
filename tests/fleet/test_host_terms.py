"""Samples of unequal hosts as one of them would have taken them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.domain.errors import DataError
from workbench.domain.fleets import HostsCompared, ShardFolded
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import HostFactor
from workbench.domain.samples import Estimate, Sample
from workbench.models.host_terms import on_one_host, terms_of

CAPACITY, SERVICE_MS, SD = 500.0, 5.0, 0.04
FACTS = HostFacts("sim", 2, 1, "k", "c", "none", "v", {}, {})


def response_ms(wl: float, speed: float) -> float:
    """Of a queue whose clock runs `speed` times as fast."""
    return SERVICE_MS / speed / (1.0 - wl / (CAPACITY * speed))


def around(value: float, sd: float) -> Estimate:
    half = math.exp(1.96 * sd)
    return Estimate(value, value / half, value * half)


def sample(wl: float, block: int, speed: float, luck: float = 0.0, **more: object) -> Sample:
    kpis = {
        "p95_ms": around(response_ms(wl, speed) * math.exp(luck), SD),
        "throughput_rps": around(wl, 0.01),
        "loss_pct": Estimate(0.0, 0.0, 0.1),
    }
    made = Sample(
        f"t/x/{wl:g}/{block}", OperatingPoint("t", Configuration({}, {}), wl), kpis, {}, True,
        (), (), "open", "planned", "made up", 1, 1, 0, 0, 1, 3, 0.0, 0.0, 0.0, 1.0, 1.0,
        block=block,
    )  # fmt: skip
    return made if not more else Sample(**{**vars(made), **more})  # type: ignore[arg-type]


def shard(host: str, block: int) -> ShardFolded:
    return ShardFolded(host, FACTS, host, "t", ("x",), block, block, 1, 1.0, "")


def compared(speed: float, sd: float, luck: float = 0.0, note: str = "") -> HostsCompared:
    half = math.exp(1.96 * sd)
    load, time = speed * math.exp(luck), math.exp(-luck) / speed
    return HostsCompared(
        "a",
        (
            HostFactor("throughput_rps", load, load / half, load * half, 4, note=note, host="b"),
            HostFactor("p95_ms", time, time / half, time * half, 4, host="b"),
        ),
    )


def test_samples_of_another_host_lie_where_the_reference_would_have_them() -> None:
    """As often in their intervals as these say, whatever the speed; as they are, hardly ever."""
    rng, inside, naive, count = np.random.default_rng(240), 0, 0, 0
    for _ in range(300):
        speed = float(np.exp(rng.uniform(np.log(0.5), np.log(2.0))))
        loads = np.geomspace(20.0, 0.8 * CAPACITY * speed, 6)
        own = [sample(float(wl), 1, speed, rng.normal(0.0, SD)) for wl in loads]
        told = compared(speed, 0.03, rng.normal(0.0, 0.03))
        found = on_one_host(own, [shard("a", 0), shard("b", 1)], told, "p95_ms")
        for before, after in zip(own, found, strict=True):
            # The true load is known up to the factor, as the interval says.
            truth = response_ms(before.point.wl / math.exp(told_error(told, speed)) / speed, 1.0)
            said = after.kpis["p95_ms"]
            inside += said.low <= truth <= said.high
            raw = before.kpis["p95_ms"]
            at = before.point.wl
            naive += at < CAPACITY and raw.low <= response_ms(at, 1.0) <= raw.high
            count += 1
            assert after.id == before.id
            assert after.kpis["loss_pct"].value == 0.0
    assert 0.93 <= inside / count <= 0.99
    assert naive / count < 0.3


def told_error(told: HostsCompared, speed: float) -> float:
    """Log error of the factor: where the sample was put beside where it belongs."""
    return math.log(told.factors[0].value / speed)


def test_the_reference_s_own_samples_and_those_of_one_host_stay() -> None:
    own = [sample(100.0, 0, 1.0), sample(200.0, 1, 0.5)]
    told = compared(0.5, 0.02)
    found = on_one_host(own, [shard("a", 0), shard("b", 1)], told, "p95_ms")
    assert found[0] is own[0]
    assert found[1].point.wl == pytest.approx(400.0)
    assert found[1].kpis["throughput_rps"].value == pytest.approx(400.0)
    assert on_one_host(own, [shard("b", 0), shard("b", 1)], None, "p95_ms") == tuple(own)


def test_a_bound_stays_a_bound_and_clients_stay_as_many() -> None:
    bound = Estimate(100.0, 100.0, 300.0)
    own = [
        sample(200.0, 1, 0.5, labels=("overloaded",), kpis={"p95_ms": bound}),
        sample(100.0, 1, 0.5, load_model="closed"),
    ]
    found = on_one_host(own, [shard("a", 0), shard("b", 1)], compared(0.5, 0.02), "p95_ms")
    moved = found[0].kpis["p95_ms"]
    assert moved.value == moved.low == pytest.approx(50.0)
    assert moved.high > 150.0
    assert found[1].point.wl == 100.0


def test_hosts_without_anchor_points_are_refused_by_name() -> None:
    own = [sample(100.0, 0, 1.0), sample(200.0, 1, 0.5)]
    shards = [shard("a", 0), shard("b", 1)]
    with pytest.raises(DataError, match="how a, b compare"):
        on_one_host(own, shards, None, "p95_ms")
    with pytest.raises(DataError, match="how b compare"):
        on_one_host(own, shards, HostsCompared("a", ()), "p95_ms")


def test_samples_of_no_host_of_the_fleet_are_refused_and_trials_stay() -> None:
    """Neither is taken for what the first host measured."""
    own = [sample(100.0, 0, 1.0), sample(200.0, 1, 0.5), sample(300.0, 2, 1.0)]
    for shards in ([shard("a", 0), shard("b", 1)], [shard("a", 0), shard("a", 1)]):
        with pytest.raises(DataError, match="no host of its fleet measured 1 sample of it, such"):
            on_one_host(own, shards, compared(0.5, 0.02), "p95_ms")
    trial = sample(300.0, 2, 1.0, purpose="verification")
    found = on_one_host([*own[:2], trial], [shard("a", 0), shard("b", 1)], compared(0.5, 0.02),
                        "p95_ms")  # fmt: skip
    assert found[2] is trial


def test_where_only_times_differ_they_say_how_fast_a_host_is() -> None:
    term = terms_of(compared(0.5, 0.02, note="not saturated"), "p95_ms")["b"]
    assert term.load == pytest.approx(math.log(0.5))
    assert term.time == pytest.approx(math.log(2.0))
    # What the two factors disagree by is in the interval of times.
    apart = HostsCompared(
        "a",
        (
            HostFactor("throughput_rps", 0.5, 0.49, 0.51, 4, host="b"),
            HostFactor("p95_ms", 1.5, 1.49, 1.51, 4, host="b"),
        ),
    )
    assert terms_of(apart, "p95_ms")["b"].time_half == pytest.approx(math.log(2.0 / 1.5))
