"""A fake engine that answers what the screen Compare asks, from the figures of `fake_link`.

The chain tinyproxy-haproxy takes 44 ms more than its functions, haproxy-tinyproxy is as predicted.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from fake_link import FakeClient, campaign, configurations, sample, story, truth

from workbench.domain.chains import (
    ChainChart,
    ChainCurve,
    CpuContrast,
    FunctionCurve,
    PartModel,
    Takeover,
)
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.events import Event, SampleTaken
from workbench.domain.messages import (
    Compared,
    CompareSessions,
    EngineStatus,
    GetStatus,
    Request,
    Viewed,
    ViewSession,
)
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import Curve, Difference
from workbench.domain.questions import (
    ChainCharted,
    ChainCompared,
    ChainQuery,
    ChartChain,
    CompareChain,
)
from workbench.domain.retraining import (
    BucketScore,
    ChainComparison,
    ConfigurationScore,
    Outlier,
)
from workbench.domain.samples import Estimate

WORSE = "tinyproxy-haproxy"
HANDOVER_MS = 44.0
LOADS = tuple(10 * 160 ** (i / 63) for i in range(64))
MODELS = (PartModel("haproxy", "p95_ms", "interpolation", 1, 10, ("p50_ms",)),)
NOTE = "the image of haproxy is not the one that was profiled"


def measured_story() -> list[Event]:
    """The run of `demo`, over, with the handover in the samples of one chain."""
    told = []
    for event in story(finished=True):
        fact = event.fact
        if isinstance(fact, SampleTaken) and fact.sample.point.target == WORSE:
            kpis = {
                name: replace(e, value=e.value + HANDOVER_MS, low=e.low + HANDOVER_MS * 0.9,
                              high=e.high + HANDOVER_MS * 1.1)
                if name.endswith("_ms") else e
                for name, e in fact.sample.kpis.items()
            }  # fmt: skip
            event = replace(event, fact=SampleTaken(replace(fact.sample, kpis=kpis)))
        told.append(event)
    return told


def of_chain(chain: str) -> list[Configuration]:
    return [c for target, c in configurations(campaign()) if target == chain]


def _vcpu(configuration: Configuration) -> float:
    return min(configuration.vcpu("tinyproxy"), configuration.vcpu("haproxy"))


def compared(question: CompareChain) -> ChainCompared:
    asked = question.query
    own, worse = of_chain(asked.chain), asked.chain == WORSE
    scores = tuple(
        ConfigurationScore(c, 8, 0.91 - 0.3 * i if worse else 0.04 + 0.02 * i,
                           2.9 if worse else 0.04, 21.0 if worse else 1.03, 0.03)
        for i, c in enumerate(own)
    )  # fmt: skip
    estimate = Estimate(46.0, 41.0, 50.0)
    outliers = tuple(
        Outlier(c, "worse", 120.0, estimate, Estimate(2.1, 1.8, 2.6), 21.9, LOADS[:8], 8)
        for c in own
    )
    found = ChainComparison(
        chain=asked.chain, kpi=asked.kpi or "p95_ms", rule=asked.rule or "convolved",
        samples=8 * len(own), ab_floor=0.31, mae=40.2, mad=44.0, rmse=43.1,
        mape=0.76 if worse else 0.05, log_error=2.9 if worse else 0.04,
        coverage=0.06 if worse else 0.94, baseline="interpolation", baseline_rmse=1.3,
        configurations=scores,
        buckets=(BucketScore(10, 100, 14, 0.93, 2.9, 0.03), BucketScore(100, 1000, 2, 0.2, 0.2)),
        outliers=outliers if worse else (),
    )  # fmt: skip
    weakest = replace(found, rule="weakest-link", rmse=44.9, baseline="", baseline_rmse=None)
    return ChainCompared(found, weakest, MODELS, (NOTE,))


def charted(question: ChartChain) -> ChainCharted:
    return ChainCharted(
        question.query.chain,
        question.query.kpi or "p95_ms",
        question.query.rule or "convolved",
        ("convolved", "weakest-link"),
        "interpolation",
        0,
        tuple(chart(question.query.chain, c) for c in question.configurations),
        MODELS,
    )


def chart(chain: str, configuration: Configuration) -> ChainChart:
    vcpu = _vcpu(configuration)
    mean = tuple(truth(wl, vcpu) for wl in LOADS)
    more = HANDOVER_MS if chain == WORSE else 0.0
    seen = tuple(m + more for m in mean)
    takes_over = 3000 * vcpu * 0.6
    limiting = tuple("tinyproxy" if wl < takes_over else "haproxy" for wl in LOADS)
    curve = ChainCurve(
        LOADS, mean, tuple(0.7 * m for m in mean), tuple(1.4 * m for m in mean), limiting,
        tuple(wl > 1200 for wl in LOADS),
    )  # fmt: skip
    functions = tuple(
        FunctionCurve(
            vnf, vnf, LOADS, tuple(share * m for m in mean), tuple(0.8 * share * m for m in mean),
            tuple(1.2 * share * m for m in mean),
            tuple(0.9 if name == vnf else 0.1 for name in limiting),
        )
        for vnf, share in (("tinyproxy", 0.6), ("haproxy", 0.4))
    )  # fmt: skip
    cpu = tuple(
        CpuContrast(vnf, wl, Estimate(used * wl, 0.9 * used * wl, 1.1 * used * wl), again * wl)
        for vnf, used, again in (("tinyproxy", 3e-4, 3.1e-4), ("haproxy", 1e-4, 1.9e-4))
        for wl in (10.0, 120.0, 440.0)
    )
    return ChainChart(
        configuration=configuration,
        predicted=curve,
        profiles=None,
        measured=Curve("p95_ms", "interpolation", LOADS[:56], seen[:56],
                       tuple(0.9 * m for m in seen[:56]), tuple(1.1 * m for m in seen[:56])),
        takeovers=(Takeover(takes_over, "haproxy"),),
        functions=functions,
        cpu=cpu,
    )  # fmt: skip


def contrasted(question: CompareSessions) -> Compared:
    """One figure that got worse, one that got better, one within the floor, one of no use."""
    target, configuration = next((t, c) for t, c in configurations(campaign()) if t == WORSE)

    def figure(name: str, wl: float | None, ratio: float, verdict: str) -> Difference:
        return Difference(
            target, configuration, name, wl, 50.0, 50.0 * ratio, ratio, 0.93 * ratio, 1.07 * ratio,
            0.31, verdict,
        )  # fmt: skip

    other = Difference(
        target, configuration, "mean_ms", 900.0, 12.0, None, None, None, None, 0.2,
        "not_comparable", "not valid, or only bounded, in before",
    )  # fmt: skip
    return Compared(
        question.first,
        question.second,
        (
            figure("throughput_rps", 900.0, 1.08, "no_visible_difference"),
            figure("p95_ms", 120.0, 1.9, "higher"),
            other,
            figure("capacity", None, 1.5, "higher"),
        ),
        ("the image of tinyproxy is not the same",),
    )


class ComparingClient(FakeClient):
    """Answers at once, or as soon as `let_go` is called where `holds` is set.

    `refuses_chains` are raised in place of answers, by chain.
    """

    def __init__(self, events: list[Event] | None = None) -> None:
        super().__init__(measured_story() if events is None else events)
        self.holds = False
        self.refuses_chains: dict[str, WorkbenchError] = {}
        self._free = asyncio.Event()

    def let_go(self) -> None:
        self._free.set()

    def questions(self) -> list[Request]:
        kinds = CompareChain | ChartChain | CompareSessions
        return [request for request in self.asked if isinstance(request, kinds)]

    async def ask(self, request: Request) -> Any:
        if not isinstance(request, CompareChain | ChartChain | CompareSessions | ViewSession):
            if isinstance(request, GetStatus) and self.holds:
                self.asked.append(request)
                return EngineStatus(
                    "0.1.0", "home", 42, 0.0, "", (), 1, scoring="tinyproxy: model of p95_ms"
                )
            return await super().ask(request)
        self.asked.append(request)
        if self.holds:
            await self.until(self._free, request)
            self._free.clear()
        if isinstance(request, CompareChain | ChartChain) and (
            error := self.refuses_chains.get(request.query.chain)
        ):
            raise error
        match request:
            case CompareChain(ChainQuery()):
                return compared(request)
            case ChartChain(ChainQuery()):
                return charted(request)
            case CompareSessions():
                return contrasted(request)
        return Viewed(self.view())


def more_samples(client: ComparingClient, chain: str) -> None:
    """The chain is measured once more."""
    client.tell(SampleTaken(sample(OperatingPoint(chain, of_chain(chain)[0], 300.0), 99)))


NOT_PROFILED = UsageError(
    "no sample of haproxy states p95_ms", where="demo-1", remedy="Choose one of: mean_ms"
)
