"""Recommendations as the engine makes them, for the tests of their exports and docs/exports.md.

`python tests/exports/recommended.py FORMAT` prints the files of the one that the docs show.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace

from workbench import plugins
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import ParameterValue, Sla
from workbench.domain.profiles import Curve
from workbench.domain.recommendations import (
    Choice,
    GreedyRun,
    GreedyStep,
    Recommendation,
    Verification,
)
from workbench.domain.samples import Estimate
from workbench.domain.topology import VnfTemplate
from workbench.exports.recommendation.base import Context, RecommendationExport, Trend

AT = 1_790_000_000.0
P95 = Sla(
    "p95_ms",
    5000.0,
    "<=",
    400.0,
    {"filesize_bytes": 1_000_000.0},
    "p95<=5000ms @ concurrent=400, filesize=1MB",
)
THROUGHPUT = Sla(
    "throughput_rps", 90.0, ">=", 400.0, {"filesize_bytes": 1_000_000.0}, "throughput>=90/s"
)


def case_study() -> Recommendation:
    """Four functions, a flavor, bandwidth, replicas, greedy, verified; one choice extrapolated."""
    allocation: dict[str, ParameterValue] = {
        "balancer.vcpu": 0.1 + 0.2,
        "tinyproxy.flavor": "small",
        "tinyproxy.vcpu": 0.5,
        "tinyproxy.memory_bytes": 64.0 * 2**20,
        "haproxy.vcpu": 0.0625,
        "haproxy.memory_bytes": 50_000_000.0,
        "firewall.vcpu": 1.0,
        "firewall.bandwidth_mbps": 12.5,
    }
    chosen = Choice(
        allocation,
        {"balancer": 1, "tinyproxy": 1, "haproxy": 1, "firewall": 4},
        4.8625,
        "vCPU",
        0.9731,
        37.5,
        {"p95_ms": Estimate(4100.0, 3700.0, 4600.0), "throughput_rps": Estimate(97, 93, 101)},
        {"balancer": 0.31, "tinyproxy": 0.62, "haproxy": 0.44, "firewall": 0.81},
    )
    more = replace(
        chosen,
        allocation={**allocation, "haproxy.vcpu": 3.0},
        cost=7.8,
        probability=0.9998,
        margin_wl=120.0,
        profiled=False,
        extrapolated=("haproxy.vcpu",),
    )
    few, many = {"haproxy.vcpu": 0.25}, {"haproxy.vcpu": 1.0}
    steps = (
        GreedyStep(few, {}, 400.0, {"p95_ms": 9e3}, {"haproxy": 0.97}, False, ("haproxy",)),
        GreedyStep(many, {}, 400.0, {"p95_ms": 4.7e3}, {"haproxy": 0.7}, True, ()),
    )
    return Recommendation(
        id="r1",
        session="case-1",
        chain="tinyproxy-haproxy-firewall",
        slas=(P95, THROUGHPUT),
        confidence=0.95,
        met=True,
        chosen=chosen,
        closest=None,
        runners_up=(replace(chosen, cost=5.1, profiled=False, margin_wl=60.0), more),
        model_version=2,
        at=AT,
        lab_iterations=1,
        lab_s=42.0,
        profiling_s=1800.0,
        greedy=GreedyRun(steps, True, 5.5, "vCPU", 8, 960.0),
        verified=Verification(
            "tinyproxy-haproxy-firewall/1f/400/0",
            {"p95_ms": Estimate(4310.0, 4020.0, 4590.0)},
            True,
            42.0,
        ),
    )


def unmet() -> Recommendation:
    """Nothing holds; the closest is extrapolated and carries less than was asked."""
    met = case_study()
    assert met.chosen is not None
    closest = replace(
        met.chosen, probability=0.41, margin_wl=-85.0, profiled=False, extrapolated=("wl",)
    )
    return replace(
        met, id="r2", met=False, chosen=None, closest=closest, runners_up=(), verified=None,
        note="haproxy limits: more vCPU of firewall brings nothing.",
    )  # fmt: skip


def small() -> Recommendation:
    """The one that the docs show: two functions, one with memory."""
    chosen = Choice(
        {"tinyproxy.vcpu": 0.5, "haproxy.vcpu": 0.25, "haproxy.memory_bytes": 64.0 * 2**20},
        {"tinyproxy": 2, "haproxy": 1},
        1.25,
        "vCPU",
        0.9731,
        37.5,
        {"p95_ms": Estimate(41.0, 37.0, 46.0)},
        {"tinyproxy": 0.62, "haproxy": 0.44},
    )
    sla = Sla("p95_ms", 50.0, "<=", 300.0, {}, "p95<=50ms @ rate=300/s")
    dearer = replace(chosen, allocation={**chosen.allocation, "haproxy.vcpu": 0.5}, cost=1.5)
    return Recommendation(
        "r1", "demo-1", "tinyproxy-haproxy", (sla,), 0.95, True, chosen, None, (dearer,), 1, AT
    )


def curve(
    kpi: str = "p95_ms", level: float = 4100.0, at: float = 400.0, steep: bool = True
) -> Curve:
    """`level` at the load `at`: flat before and steep from there, or rising up to it."""
    wl = tuple(10.0 * 1.08**n for n in range(55))
    mean = tuple(
        level * (0.05 + 0.95 * math.exp((x - at) / 150.0) if steep else min(1.0, x / at))
        for x in wl
    )
    return Curve(
        kpi, "pooled", wl, mean, tuple(0.9 * y for y in mean), tuple(1.15 * y for y in mean)
    )


def context(recommendation: Recommendation | None = None) -> Context:
    about = recommendation or case_study()
    judged = about.chosen or about.closest or case_study().chosen
    assert judged is not None
    level, asked = judged.kpis["p95_ms"].value, about.slas[0].wl or 400.0
    cheaper = replace(
        judged,
        allocation={**judged.allocation, "haproxy.vcpu": 0.03},
        kpis={"p95_ms": Estimate(1.5 * level, 1.3 * level, 1.8 * level)},
    )
    return Context(
        version="0.1.0",
        templates={
            "tinyproxy": VnfTemplate("tinyproxy", build="vnfs/tinyproxy"),
            "haproxy": VnfTemplate("haproxy", image="haproxy:2.6"),
        },
        host=HostFacts(
            "docker",
            2,
            8 * 2**30,
            "5.10.0",
            "Xeon",
            "v1",
            "docker 20.10",
            {"haproxy": "sha256:0a1b", "source": "sha256:ffff"},
            {},
        ),
        trends=(
            Trend(
                judged,
                (curve(level=level, at=asked), curve("throughput_rps", 97.0, asked, steep=False)),
            ),
            Trend(cheaper, (curve(level=1.5 * level, at=asked),)),
        ),
        wl_label="concurrent requests",
    )


def shown(format: str) -> Mapping[str, str]:
    """The files of `small()` in a format, as the docs show them."""
    about = context(small())
    return export(format)(small(), replace(about, host=None, wl_label="rate (requests/s)"))


def export(format: str) -> RecommendationExport:
    loaded: RecommendationExport = plugins.load("recommendation_exports", format)
    return loaded


if __name__ == "__main__":
    for name, text in shown(sys.argv[1]).items():
        sys.stdout.write(f"==> {name}\n{text}")
