"""A fake engine that says why: of the chain that is slower than its functions, from made-up figures
of a delayed acknowledgement; of other targets that nothing was collected."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from comparing_link import ComparingClient, measured_story
from fake_link import WLS, campaign, configurations

from workbench.domain.diagnoses import (
    Bound,
    Diagnosis,
    EvidenceRow,
    Experiment,
    Suspect,
    TrialRecord,
    Verdict,
)
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.messages import EngineStatus, GetStatus, Request
from workbench.domain.observations import NOT_COLLECTED
from workbench.domain.questions import Diagnose, Diagnosed

SLOW = "tinyproxy-haproxy"
ORDER = "haproxy-tinyproxy, the other order"
RATES = sorted(WLS)[1:]

ACKS = Verdict(
    cause="delayed acknowledgement",
    component="haproxy",
    strength=0.91,
    sentence="haproxy acknowledges late: 1.0 per request, and 98% of the answers set in at "
    "40-45 ms; the CPU has no part in it (it waits 2% of the time)",
    evidence=(
        "1.0 late acknowledgements per request at haproxy, none of it alone",
        "98% of the answers take 40-45 ms from the request's start",
    ),
    remedy="Set TCP_NODELAY where requests are written in two pieces, or put the functions in "
    "another order",
    rival="a timer of the function's own at 40 ms",
    tells_apart="the same load with TCP_NODELAY",
    trials=TrialRecord(80, 80, 0.955, 1.0),
)
CHURN = Verdict(
    "connection churn", "tinyproxy", 0.14, "tinyproxy opens 1.0 connections per request",
    ("1.0 new connections per request, 0.02 of it alone",), "Keep connections alive",
    "a source that closes its connections", "connections that the source opened",
)  # fmt: skip


def _row(
    component: str, what: str, unit: str, alone: float | None, here: float | None, note: str = ""
) -> EvidenceRow:
    def curve(value: float | None) -> tuple[tuple[float, float], ...]:
        return () if value is None else tuple((r, value * (0.6 + r / 2000)) for r in RATES)

    off = None if alone is None or here is None else (here - alone) / (0.05 * alone + 0.01)
    return EvidenceRow(component, what, unit, alone, here, note, curve(alone), curve(here), off, 4)


def _rows(component: str, acks: float) -> tuple[EvidenceRow, ...]:
    return (
        _row(component, "answered", "requests/s", 440.0, 440.0),
        _row(component, "mean response time", "ms", 0.7, 44.8),
        _row(component, "CPU usage of its allocation", "%", 41.0, 43.0),
        _row(component, "waiting for CPU", "ms per request", 0.021, 0.024),
        _row(component, "late acknowledgements", "per request", 0.0, acks),
        _row(component, "context switches, voluntary", "per request", 2.1, 3.9),
        _row(component, "major faults", "per request", None, None, "no control group"),
    )


def explained(question: Diagnose) -> Diagnosis:
    """Of the sample that is named, else of the one at 440/s of the first configuration."""
    target = question.sample.partition("/")[0] or question.chain or SLOW
    configuration = next(c for name, c in configurations(campaign()) if name == target)
    wl = float(question.sample.split("/")[2]) if question.sample else 440.0
    found = Diagnosis(
        target, configuration, wl, f"{target}/c/{wl:g}/0",
        f"{ACKS.sentence[0].upper()}{ACKS.sentence[1:]}", 44.8, 1.4, (ACKS, CHURN),
        (*_rows("tinyproxy", 0.0), *_rows("haproxy", 1.0)),
        (Bound("tinyproxy", "peer or network", 0.97, 0.013, 0.021, 0.0),
         Bound("haproxy", "peer or network", 0.99, 0.005, None, 0.0)),
        30, 33, {"conntrack_used": "conntrack is not loaded on this host"}, {},
        (Suspect(configuration, 0.91, ("mean response time",)),),
        "of 6 configurations by 14 features, over 4/n",
    )  # fmt: skip
    if target == SLOW:
        point = "haproxy-tinyproxy", configuration, wl
        return replace(found, experiments=(Experiment(*point, ORDER, "which of both it is"),))
    words = f"Cannot tell: {NOT_COLLECTED}; measure the point on a real lab"
    return replace(
        found,
        sentence=words,
        verdicts=(),
        rows=(),
        bounds=(),
        suspects=(),
        suspects_note="",
        agree=0,
        missing=dict.fromkeys(("delayed_acks", "cpu_wait_s"), NOT_COLLECTED),
    )


class WhyClient(ComparingClient):
    """Answers at once, or as soon as `gate` is set; `refuses_why` is raised in place of answers."""

    def __init__(self) -> None:
        super().__init__(measured_story())
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuses_why: WorkbenchError | None = None
        self.notes: tuple[str, ...] = ()

    def whys(self) -> list[Diagnose]:
        return [request for request in self.asked if isinstance(request, Diagnose)]

    async def ask(self, request: Request) -> Any:
        if isinstance(request, GetStatus) and not self.gate.is_set():
            doing = "reading the evidence"
            return EngineStatus("0.1.0", "home", 42, 0.0, "", (), 1, scoring=doing)
        if not isinstance(request, Diagnose):
            return await super().ask(request)
        self.asked.append(request)
        await self.until(self.gate, request)
        if self.refuses_why is not None:
            raise self.refuses_why
        return Diagnosed(explained(request), self.notes)


NO_SAMPLES = UsageError(
    f"has no samples of {SLOW}", where="demo-1", remedy="Measure it first (--chain)"
)
