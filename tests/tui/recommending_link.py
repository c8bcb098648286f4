"""A fake engine that recommends: answers that were thought out, for the screen Recommend."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fake_link import SESSION, START, FakeClient, story

from workbench import plugins
from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Fact, RecommendationIssued, RecommendationVerified
from workbench.domain.export_requests import (
    ExportFormat,
    GetRecommendOptions,
    Previewed,
    PreviewedFile,
    PreviewRecommendation,
    RecommendOptions,
)
from workbench.domain.messages import Exported, ExportRecommendation, Request
from workbench.domain.parameters import Sla
from workbench.domain.profiles import Curve
from workbench.domain.questions import Recommend, Recommended, VerifyRecommendation
from workbench.domain.recommendations import (
    Choice,
    GreedyRun,
    GreedyStep,
    Recommendation,
    Trend,
    Verification,
)
from workbench.domain.samples import Estimate

CHAIN = "tinyproxy-haproxy"
SLA = Sla("p95_ms", 200.0, "<=", 300.0, {"filesize_bytes": 10_000.0}, "p95<=200ms @ rate=300/s")
OPTIONS = RecommendOptions(
    (CHAIN, "haproxy-tinyproxy", "haproxy", "tinyproxy"),
    ("vcpu-hours", "example"),
    tuple(ExportFormat(*item) for item in plugins.meanings("recommendation_exports").items()),
)
RECORDED = "science-open: is a bundle, and bundles are not changed. Import it first."


def choice(
    shares: tuple[float, float],
    probability: float,
    margin: float | None,
    *,
    replicas: Mapping[str, int] | None = None,
    profiled: bool = True,
    margin_open: bool = False,
    extrapolated: tuple[str, ...] = (),
    p95: float = 143.0,
) -> Choice:
    counts = {"tinyproxy": 1, "haproxy": 1} | dict(replicas or {})
    given = dict(zip(("tinyproxy.vcpu", "haproxy.vcpu"), shares, strict=True))
    cost = sum(share * counts[key.partition(".")[0]] for key, share in given.items())
    return Choice(
        given, counts, cost, "vCPU", probability, margin,
        {"p95_ms": Estimate(p95, 0.85 * p95, 1.25 * p95)},
        {"tinyproxy": min(1.0, 0.2 / shares[0]), "haproxy": 0.05 / shares[1]},
        profiled, extrapolated, margin_open,
    )  # fmt: skip


def held(id: str = "r1", **others: object) -> Recommendation:
    """The cheapest of four that hold, two of them marked."""
    found = Recommendation(
        id, SESSION, CHAIN, (SLA,), 0.95, True, choice((0.25, 0.25), 0.973, 120.0), None,
        (
            choice((0.25, 0.5), 0.984, 180.0, profiled=False, p95=121.0),
            choice((0.5, 0.25), 0.9995, 410.0, p95=48.0),
            choice((0.5, 0.5), 0.9999, 900.0, margin_open=True, p95=22.0),
        ),
        0, START + 200, profiling_s=480.0, judged=4,
    )  # fmt: skip
    return replace(found, **others)  # type: ignore[arg-type]


def unmet(id: str = "r2") -> Recommendation:
    """Nothing holds; the closest is extrapolated and carries less than was asked."""
    near = choice((0.5, 0.5), 0.41, -85.0, profiled=False, extrapolated=("rate",), p95=230.0)
    slas = (SLA, Sla("throughput_rps", 295.0, ">=", 300.0, {}, "throughput>=295/s @ rate=300/s"))
    return Recommendation(
        id, SESSION, CHAIN, slas, 0.95, False, None, near, (), 2, START + 300,
        profiling_s=480.0, judged=9, note="haproxy limits: more vCPU of tinyproxy brings nothing.",
    )  # fmt: skip


def greedy(lab_iterations: int = 0) -> GreedyRun:
    few = {"tinyproxy.vcpu": 0.25, "haproxy.vcpu": 0.25}
    many = {"tinyproxy.vcpu": 0.5, "haproxy.vcpu": 0.25}
    steps = (
        GreedyStep(few, {}, 300.0, {"p95_ms": 310.0}, {"tinyproxy": 0.97}, False, ("tinyproxy",)),
        GreedyStep(many, {}, 300.0, {"p95_ms": 48.0}, {"tinyproxy": 0.5}, True, ()),
    )
    return GreedyRun(steps, True, 0.75, "vCPU", lab_iterations, 33.0 * lab_iterations)


def verified(met: bool = True) -> Verification:
    p95 = 151.0 if met else 262.0
    return Verification(
        "s1", {"p95_ms": Estimate(p95, 0.93 * p95, 1.07 * p95)}, met, 52.0,
        "" if met else "The limit lies outside of its interval.",
    )  # fmt: skip


def issued(found: Recommendation) -> RecommendationIssued:
    """As it is stored, with the curve of what it is about."""
    about = found.chosen or found.closest
    assert about is not None
    wls = tuple(10 * 160 ** (i / 59) for i in range(60))
    mean = tuple(2 + 0.0005 * wl + (max(0.0, wl - 120) / 15) ** 2 for wl in wls)
    low, high = tuple(0.8 * m for m in mean), tuple(1.25 * m for m in mean)
    curve = Curve("p95_ms", "max", wls, mean, low, high)
    functions = {"tinyproxy": "tinyproxy", "haproxy": "haproxy"}
    return RecommendationIssued(found, functions, (Trend(about, (curve,)),))


class RecommendingClient(FakeClient):
    """Answers with what it was given last, or raises it; `answers` wait until they are let go."""

    def __init__(self, *past: Recommendation, finished: bool = True) -> None:
        super().__init__(story(finished=finished))
        self.tell(*map(issued, past))
        self.options = OPTIONS
        self.next: Recommendation | WorkbenchError = held(f"r{len(past) + 1}")
        self.notes: tuple[str, ...] = ()
        self.verdict: Verification | WorkbenchError = verified()
        self.refuses_preview: WorkbenchError | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self, request: Request) -> Any:
        match request:
            case GetRecommendOptions():
                return self.options
            case Recommend():
                self.asked.append(request)
                answer = self.next
                await self.until(self.gate, request)
                return self._told(answer)
            case VerifyRecommendation(recommendation=id):
                self.asked.append(request)
                await self.until(self.gate, request)
                if isinstance(self.verdict, WorkbenchError):
                    raise self.verdict
                self.tell(RecommendationVerified(id, self.verdict, "ann"))
                found = self.view().recommendation(id)
                assert found is not None
                return Recommended(found.recommendation, found.recommendation.ways)
            case PreviewRecommendation(format=format):
                if self.refuses_preview is not None:
                    raise self.refuses_preview
                return Previewed(_files(format))
            case ExportRecommendation(format=format):
                self.asked.append(request)
                return Exported(_files(format)[0].path, tuple(f.path for f in _files(format)))
            case _:
                return await super().ask(request)

    def _told(self, answer: Recommendation | WorkbenchError) -> Recommended:
        if isinstance(answer, WorkbenchError):
            raise answer
        facts: list[Fact] = [issued(answer)] if answer.id else []
        self.tell(*facts)
        return Recommended(answer, answer.ways, self.notes)


def _files(format: str) -> tuple[PreviewedFile, ...]:
    names = ("kustomization.yaml", "tinyproxy.yaml") if format == "kustomize" else (f"r1.{format}",)
    texts = [f"# {name} of r1\n" + "".join(f"line: {i}\n" for i in range(60)) for name in names]
    return tuple(
        PreviewedFile(f"/home/ann/exports/{name}", text, len(text))
        for name, text in zip(names, texts, strict=True)
    )
