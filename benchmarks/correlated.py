"""Do intervals of a mean and of p95 hold where the work is correlated?

    python benchmarks/correlated.py [--visits 400] [--publish]

Response times are an autoregressive sequence of first order, bent to a distribution: exponential,
log-normal (log-sd 0.8), Pareto (2.2); 200 requests a second, so that a window of 3 s holds 600.
Each visit goes through the judge: `one window` is what the first drive states, `as judged` what
stands when the judge is done, which drives on while a sample is `correlated`. `plain` is the same
interval with batches counted as independent. The floor, which pays for visits that differ, is off.

What heavy tails cost ordinary samples is told from the recordings that ship, whose windows keep
their histograms: of the valid samples, the upper side of mean and p95 as it is stated there and as
it would be with the tail. They keep no batches, so that how many of them are correlated cannot be
told.

`--publish` writes benchmarks/results/correlated.md, which docs/validity.md quotes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from scipy.signal import lfilter
from scipy.special import ndtr, ndtri

from workbench.domain import kpis as registry
from workbench.domain.campaign import WindowPlan
from workbench.domain.parameters import Configuration, LoadModel, OperatingPoint
from workbench.domain.samples import Estimate, LatencyHistogram
from workbench.measuring.censoring import Distribution
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.histograms import merge
from workbench.measuring.intervals import log_interval
from workbench.measuring.judging import Terms, first_drive_s, judge
from workbench.measuring.kpis import tail_of
from workbench.measuring.records import ComponentCounters, Counters, Drive, Floats, RequestRecords
from workbench.measuring.stretches import cut

RATE = 200.0
BETWEEN_S = 1.0
"""Between two drives, in which the sequence goes on."""
SCALE_S = 0.005
OPEN, PLAN = LoadModel("open"), WindowPlan()
NO_FLOOR = VarianceFloor({}, {}, {})
POINT = OperatingPoint(
    "function", Configuration({"function.vcpu": 1.0}, {"filesize_bytes": 1e4}), RATE
)
RESULT = Path(__file__).parent / "results" / "correlated.md"
SHIPPED = Path(__file__).parents[1] / "sessions" / "recorded"
CORRELATIONS = (0.0, 0.9, 0.99)
KPIS = ("mean_ms", "p95_ms")


@dataclass(frozen=True)
class Law:
    """A distribution of response times over `SCALE_S`."""

    name: str
    quantile: Callable[[Floats], Floats]
    """From the probability of a larger one."""
    mean: float

    def truth_ms(self, kpi: str) -> float:
        q = registry.of(kpi).quantile
        one = self.mean if q is None else float(self.quantile(np.array(1 - q)))
        return one * SCALE_S * 1e3


LAWS = (
    Law("exponential", lambda above: -np.log(above), 1.0),
    Law("log-normal", lambda above: np.exp(-0.8 * ndtri(above)), float(np.exp(0.32))),
    Law("Pareto 2.2", lambda above: above ** (-1 / 2.2), 2.2 / 1.2),
)


@dataclass(frozen=True)
class Visit:
    first: Mapping[str, Estimate]
    plain: Mapping[str, Estimate]
    last: Mapping[str, Estimate]
    called_first: bool
    called: bool
    driven_s: float


def sequence(law: Law, correlation: float, seconds: float, rng: np.random.Generator) -> Floats:
    """Response times of all requests of a visit, in seconds."""
    innovations = rng.standard_normal(int(seconds * RATE))
    innovations[1:] *= np.sqrt(1 - correlation**2)
    normal = lfilter([1.0], [1.0, -correlation], innovations)
    times: Floats = SCALE_S * law.quantile(ndtr(-normal))
    return times


def drive(times: Floats, seconds: float, begin_s: float) -> Drive:
    """As a generator would record it: a request every 5 ms, answered or not by the end."""
    due = begin_s + np.arange(int(seconds * RATE)) / RATE
    end = due + times[: due.size]
    end = np.where(end < begin_s + seconds, end, np.nan)
    status = np.where(np.isfinite(end), 200, 0).astype(np.int64)
    body = np.zeros(due.size, dtype=np.int64)
    idle = ComponentCounters(0.0)
    instants = (*(begin_s + np.arange(seconds)), begin_s + seconds)
    counters = tuple(
        Counters(float(at), {"function": idle, "source": idle, "sink": idle}, 0.0)
        for at in instants
    )
    cores = {"function": 1.0, "source": 1.0, "sink": 1.0, "host": 4.0}
    records = RequestRecords(due, due, np.full(due.size, np.nan), end, status, body)
    return Drive(
        begin_s, begin_s + seconds, records, counters, "synthetic", "planned", 1000, cores, {}
    )


def visit(law: Law, correlation: float, rng: np.random.Generator) -> Visit:
    times = sequence(law, correlation, 2 * PLAN.timeout_s, rng)
    seconds, at, drives = first_drive_s(POINT, TERMS), 0.0, []
    first = plain = None
    while seconds:
        drives.append(drive(times[int(at * RATE) :], seconds, at))
        at += seconds + BETWEEN_S
        said = judge(drives, POINT, TERMS, started_at=0.0, lab_s=at)
        sample = said.measurement.sample
        if first is None:
            first, called_first = sample.kpis, "correlated" in sample.labels
            plain = plainly(drives[0], sample.kpis)
        seconds = said.next_s
    assert first is not None
    assert plain is not None
    driven_s = sum(d.stop_s - d.begin_s for d in drives)
    return Visit(first, plain, sample.kpis, called_first, "correlated" in sample.labels, driven_s)


TERMS = Terms(OPEN, PLAN, None, "mean_ms", NO_FLOOR)


def plainly(one: Drive, kpis: Mapping[str, Estimate]) -> Mapping[str, Estimate]:
    """Student's t over the batches of the window as if they were independent."""
    stated: dict[str, Estimate] = {}
    for kpi in KPIS:
        responses = cut(one, OPEN, PLAN).responses
        q = registry.of(kpi).quantile
        figures = [r.mean() if q is None else r.quantile(q) for r in responses]
        batches = np.array([np.nan if f is None else f * 1e3 for f in figures])
        estimate = log_interval(kpis[kpi].value, batches, 0.0) if kpi in kpis else None
        if estimate is not None:
            stated[kpi] = estimate
    return stated


def cells(law: Law, kpi: str, visits: Sequence[Visit]) -> list[str]:
    true = law.truth_ms(kpi)

    def coverage(stated: Sequence[Mapping[str, Estimate]]) -> str:
        held = [k[kpi].low <= true <= k[kpi].high for k in stated if kpi in k]
        return f"{100 * np.mean(held):.1f} %"

    def width(stated: Sequence[Mapping[str, Estimate]]) -> str:
        ratios = [np.sqrt(k[kpi].high / k[kpi].low) - 1 for k in stated if kpi in k]
        return f"{100 * np.median(ratios):.3g} %"

    plain, first = [v.plain for v in visits], [v.first for v in visits]
    last, known = [v.last for v in visits], [v.last for v in visits if not v.called]
    return [
        f"{coverage(plain)} ({width(plain)})",
        f"{coverage(first)} ({width(first)})",
        f"{np.mean([v.called_first for v in visits]):.0%}",
        f"{coverage(last)} ({width(last)})",
        f"{coverage(known)}" if known else "-",
        f"{np.mean([v.called for v in visits]):.0%}",
        f"{np.mean([v.driven_s for v in visits]):.1f} s",
    ]


def recordings() -> list[str]:
    """What the tail adds to the samples that ship, as lines of a table."""
    lines = [
        "| recording | valid samples, no bounds | mean: upper side | with the tail "
        "| p95: upper side | with the tail |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for folder in sorted(p for p in SHIPPED.iterdir() if (p / "windows.parquet").exists()):
        table = {
            name: pq.read_table(folder / f"{name}.parquet").to_pylist()
            for name in ("samples", "sample_kpis", "windows")
        }
        bounded = {"overloaded", "censored"}
        valid = {
            row["seq"]
            for row in table["samples"]
            if row["valid"] and not bounded & set(row["labels"])
        }
        counts: dict[int, list[LatencyHistogram]] = {}
        for row in table["windows"]:
            if row["seq"] in valid:
                names = ("growth", "buckets", "counts", "censored_buckets", "censored_counts")
                made = LatencyHistogram(*(row[f"response_{name}"] for name in names))
                counts.setdefault(row["seq"], []).append(made)
        tails = {
            seq: tail_of(Distribution.of(merge(some)), float("inf")) for seq, some in counts.items()
        }
        cells = []
        for kpi in KPIS:
            halves = []
            for row in table["sample_kpis"]:
                tail = tails.get(row["seq"])
                if row["kpi"] != kpi or tail is None or not row["value"] > row["low"] > 0:
                    continue
                half = math.log(row["high"] / row["value"])
                q = registry.of(kpi).quantile
                more = half + tail.above_mean() if q is None else max(half, tail.above_quantile(q))
                halves.append((half, more))
            cells += [f"{100 * float(np.median([h[i] for h in halves])):.1f} %" for i in (0, 1)]
        lines.append(f"| {folder.name} | {len(valid)} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", type=int, default=400)
    parser.add_argument("--publish", action="store_true")
    given = parser.parse_args()
    lines = [
        f"`python benchmarks/correlated.py --visits {given.visits}`: coverage of 95 % intervals "
        "(median half width), simulated sequences. The mean is the KPI that is looked at.",
        "",
        "| requests | r | KPI | plain | one window | called | as judged | not called | called "
        "| driven |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for correlation in CORRELATIONS:
        for place, law in enumerate(LAWS):
            rng = np.random.default_rng([20, place, int(1000 * correlation)])
            visits = [visit(law, correlation, rng) for _ in range(given.visits)]
            for kpi in KPIS:
                row = " | ".join(cells(law, kpi, visits))
                lines.append(
                    f"| {law.name} | {correlation:g} | {kpi.removesuffix('_ms')} | {row} |"
                )
                print(lines[-1], flush=True)
    shipped = recordings()
    print("\n".join(shipped))
    lines += ["", "Recordings that ship, median half widths in logs:", "", *shipped]
    if given.publish:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
