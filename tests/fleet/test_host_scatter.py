"""What models take a host's samples to scatter by: as its own deployments did, where they tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from workbench.domain import kpis
from workbench.domain.fleets import HostScatter, HostsCompared, ShardFolded
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import HostFactor
from workbench.domain.samples import Estimate, Sample
from workbench.models.host_factors import compare_hosts
from workbench.models.host_scatter import scatter_by_host
from workbench.models.host_terms import on_one_host
from workbench.models.scales import log_sd

ASSUMED = kpis.of("p95_ms").window_sd or 0.0
FACTS = HostFacts("sim", 2, 1, "k", "c", "none", "v", {}, {})
SHARDS = tuple(
    ShardFolded(host, FACTS, host, "t", ("x",), block, block, 1, 1.0, "")
    for block, host in enumerate("ab")
)


def around(value: float, sd: float) -> Estimate:
    half = math.exp(1.959964 * sd)
    return Estimate(value, value / half, value * half)


def sample(
    wl: float, block: int, sd: float = ASSUMED, value: float = 5.0, windows: int = 1
) -> Sample:
    stated = {"p95_ms": around(value, sd), "throughput_rps": around(wl, 0.05)}
    return Sample(
        f"t/x/{wl:g}/{block}", OperatingPoint("t", Configuration({}, {}), wl), stated, {}, True,
        (), (), "open", "planned", "made up", 1, 1, 0, 0, windows, 3, 0.0, 0.0, 0.0, 1.0, 1.0,
        block=block,
    )  # fmt: skip


def compared(*sds: float) -> HostsCompared:
    """Of hosts a, b ... that scatter by these, b exactly as fast as a."""
    factors = [
        HostFactor(name, 1.0, 1.0, 1.0, 4, host="b") for name in ("throughput_rps", "p95_ms")
    ]
    scatter = [HostScatter(host, "p95_ms", sd, 3) for host, sd in zip("abc", sds, strict=False)]
    return HostsCompared("a", tuple(factors), scatter=tuple(scatter))


def told(samples: Sequence[Sample], *sds: float) -> list[float]:
    found = on_one_host(samples, SHARDS, compared(*sds), "p95_ms")
    return [log_sd("p95_ms", each.kpis["p95_ms"]) for each in found]


def test_anchor_points_tell_how_much_every_host_scatters() -> None:
    values = {"a": (5.0, 5.5, 5.0, 5.5), "b": (9.0, 9.0, 9.0, 9.0)}
    anchors = {
        host: [sample(50.0, block, value=value) for block, value in enumerate(own)]
        for host, own in values.items()
    }
    found = compare_hosts(anchors, "p95_ms")
    assert found is not None
    assert [(s.host, s.figure, s.degrees) for s in found.scatter] == [
        ("a", "p95_ms", 3),
        ("b", "p95_ms", 3),
    ]
    assert found.scatter[0].sd == pytest.approx(math.log(1.1) / math.sqrt(3.0))
    assert found.scatter[1].sd == pytest.approx(0.0)


def test_samples_without_an_interval_of_their_own_scatter_as_their_host_does() -> None:
    own = [sample(100.0, 0), sample(100.0, 1), sample(200.0, 1, windows=2, sd=ASSUMED / 2**0.5)]
    mixed = told(own, 0.03, 0.06)
    assert 0.03 < mixed[0] < 0.06 < mixed[1] < ASSUMED
    # What another window has averaged out does not come back.
    assert mixed[2] == pytest.approx(ASSUMED / math.sqrt(2.0), rel=1e-4)
    # More than is assumed is believed, too.
    assert 0.2 < told(own, 0.03, 0.3)[1] < 0.3


def test_what_a_sample_says_by_itself_stays() -> None:
    own = [sample(100.0, 0, sd=0.2), sample(100.0, 1, sd=0.05)]
    assert told(own, 0.01, 0.01) == pytest.approx([0.2, 0.05])
    assert told(own, 0.3, 0.2) == pytest.approx([0.244, 0.172], abs=0.001)


def test_a_session_of_before_says_what_it_said() -> None:
    own = [sample(100.0, 0), sample(100.0, 1)]
    assert on_one_host(own, SHARDS, compared(), "p95_ms")[0] is own[0]
    assert told(own) == pytest.approx([ASSUMED, ASSUMED])
    assert scatter_by_host(compared(0.03, 0.03).scatter, "loss_pct") == {}


def test_few_deployments_are_not_trusted_too_much() -> None:
    """A host that scatters by what is assumed is told that in four fleets of five, and more than
    half of it nearly always; a quiet one far less, and no less than it does as often."""
    rng = np.random.default_rng(24)
    loud, quiet = [], []
    for _ in range(500):
        sds = [math.sqrt(rng.chisquare(3) / 3.0) * sd for sd in (0.04, ASSUMED)]
        found = scatter_by_host(compared(*sds).scatter, "p95_ms")
        quiet.append(found["a"])
        loud.append(found["b"])
    assert np.mean(np.array(loud) >= ASSUMED) == pytest.approx(0.8, abs=0.06)
    assert np.quantile(loud, 0.05) > ASSUMED / 2.0
    assert np.mean(np.array(quiet) >= 0.04) == pytest.approx(0.8, abs=0.06)
    assert np.median(quiet) < 0.6 * ASSUMED
