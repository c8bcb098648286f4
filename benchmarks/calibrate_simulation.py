"""Stand-ins of the simulated lab from a recorded real session, and how far the two then differ.

    python benchmarks/calibrate_simulation.py [--session sessions/recorded/demo-real]

What is fitted goes into `simulated:` of templates/vnfs/*/vnf.yaml and into the defaults of
`SimulationOptions` by hand, in this order: fit, copy, run again for the comparison. A test asserts
that they agree with benchmarks/results/calibration.json.

cost        from
==========  ====================================================================================
function    CPU over throughput where it is saturated (usage from 95 % of its allotment on)
connection  what the same costs more beside a function that closes every connection
source,     CPU over throughput, median of all samples of targets that keep connections; and what
sink        it is more where they are closed
hop         p50 at idle (unthrottled, under half of what is carried) less all CPU, per hop; over
            targets that keep connections, since a source that connects burns CPU beside the path
throughput  robust log-sd of the throughput of saturated samples about their configuration: of
            `window_sd`, `drift_sd` and `jitter_sd` together
tail        robust log-sd of p95 over mean at idle, about its configuration
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.samples import Sample
from workbench.engine.learning.sampler_worker import judge_drives, terms
from workbench.labs.base import LabSettings
from workbench.labs.recorded.recording import read_recording
from workbench.labs.simulated import SimulatedLab
from workbench.labs.simulated.component_models import stand_in
from workbench.measuring.judging import first_drive_s
from workbench.paths import Workspace

ROOT = Path(__file__).parent.parent
SESSION = ROOT / "sessions" / "recorded" / "demo-real"
RESULT = Path(__file__).parent / "results" / "calibration.json"
SATURATED = 0.95
COMPARED = ("throughput_rps", "p95_ms")


@dataclass(frozen=True)
class Fitted:
    """Costs in µs per request of 10 kB, and log standard deviations.

    Attributes
    ----------
    service_us : by template, everything kept open.
    connection_us : what it costs more beside a function that closes.
    """

    service_us: Mapping[str, float]
    connection_us: Mapping[str, float]
    hop_us: float
    throughput_sd: float
    tail_sd: float


@dataclass(frozen=True)
class Difference:
    """Simulated against real over the points at which both are valid: |log| of the ratio."""

    points: int
    median: float
    upper_quartile: float
    bias: float
    """Median of the log itself; above zero where the simulation says more."""


def recorded(session: Path, campaign: Campaign) -> list[Sample]:
    """Valid samples with throughput."""
    measurements = read_recording(session, campaign).measurements
    return [m.sample for m in measurements if m.sample.valid and m.sample.kpi("throughput_rps")]


def fit(campaign: Campaign, samples: Sequence[Sample]) -> Fitted:
    closing = {t.name for t in campaign.templates if stand_in(t).closes}
    functions = {t.name for t in campaign.templates if t.role == "function"}
    alone = {s.point.target: s.point.target in closing for s in samples}
    service, connection = {}, {}
    for name in sorted(functions):
        own = [s for s in samples if s.point.target == name]
        service[name] = median(_cost_us(s, name) for s in own if _share(s, name) >= SATURATED)
        beside = [_cost_us(s, name) for s in samples if s.point.target != name and name in s.usage]
        connection[name] = 0.0 if name in closing else max(0.0, median(beside) - service[name])
    for name in ("source", "sink"):
        kept = [
            _cost_us(s, name)
            for s in samples
            if alone[s.point.target] is False and s.point.target in functions
        ]
        closed = [_cost_us(s, name) for s in samples if s.point.target in closing]
        service[name] = median(kept)
        connection[name] = max(0.0, median(closed) - service[name])
    keeping = [s for s in samples if s.point.target in functions - closing]
    hops = [
        (s.kpis["p50_ms"].value * 1e3 - sum(service[n] for n in (s.point.target, "source", "sink")))
        / 2.0
        for s in keeping
        if s.throttled_share == 0.0 and _share(s, s.point.target) < 0.5
    ]
    saturated, idle = defaultdict(list), defaultdict(list)
    for s in samples:
        place = (s.point.target, s.point.configuration.key)
        busiest = max(_share(s, name) for name in s.usage if name in functions)
        if busiest >= SATURATED and "overloaded" in s.labels:
            saturated[place].append(math.log(s.kpis["throughput_rps"].value))
        elif s.throttled_share == 0.0:
            idle[place].append(math.log(s.kpis["p95_ms"].value / s.kpis["mean_ms"].value))
    return Fitted(
        {name: round(us, 1) for name, us in service.items()},
        {name: round(us, 1) for name, us in connection.items()},
        round(max(median(hops), 1.0), 1),
        round(_scatter(saturated.values()), 3),
        round(_scatter(idle.values()), 3),
    )


def _share(sample: Sample, name: str) -> float:
    return sample.usage[name].cpu_share if name in sample.usage else 0.0


def _cost_us(sample: Sample, name: str) -> float:
    return sample.usage[name].cpu_cores / sample.kpis["throughput_rps"].value * 1e6


def _scatter(groups: Iterable[Sequence[float]]) -> float:
    """Robust standard deviation about the median of each group of three and more."""
    away = [
        abs(v - median(g)) * math.sqrt(len(g) / (len(g) - 1))
        for g in groups
        if len(g) > 2
        for v in g
    ]
    return 1.4826 * median(away)


async def simulate(
    campaign: Campaign, samples: Sequence[Sample], options: str = "noise=0", seed: int = 1
) -> list[Sample]:
    """The same points on the simulated lab, as the engine drives and judges them.

    Without noise, which is no part of what is fitted: two real runs differ by it as well.
    """
    lab = SimulatedLab(campaign, LabSettings("calibration", seed=seed, argument=options))
    await lab.open()
    simulated = []
    for sample in samples:
        point = sample.point
        await lab.deploy(campaign.target_plan(point.target).target, point.configuration)
        drives, settled = [], False
        seconds = first_drive_s(point, terms(campaign))
        while not settled:
            drives.append(await lab.drive(point, seconds, lambda _: None))
            measurement, settled, seconds = judge_drives(campaign, drives, point, 0.0, 0.0)
        simulated.append(measurement.sample)
    return simulated


def compare(real: Sequence[Sample], simulated: Sequence[Sample]) -> dict[str, Difference]:
    """By KPI, and over both."""
    logs: dict[str, list[float]] = {kpi: [] for kpi in COMPARED}
    for one, other in zip(real, simulated, strict=True):
        for kpi in COMPARED:
            a, b = one.kpi(kpi), other.kpi(kpi)
            if other.valid and a and b:
                logs[kpi].append(math.log(b / a))
    logs["both"] = [value for kpi in COMPARED for value in logs[kpi]]
    return {
        kpi: Difference(
            len(values),
            round(median(map(abs, values)), 3),
            round(sorted(map(abs, values))[3 * len(values) // 4], 3),
            round(median(values), 3),
        )
        for kpi, values in logs.items()
    }


def demo() -> Campaign:
    return load_campaign("demo", workspace=Workspace(ROOT)).campaign


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--session", type=Path, default=SESSION, help="folder of a recorded session"
    )
    parser.add_argument("--options", default="noise=0", help="of the simulated lab")
    parser.add_argument("--show", action="store_true", help="every point")
    given = parser.parse_args()
    campaign = demo()
    real = recorded(given.session, campaign)
    fitted = fit(campaign, real)
    simulated = asyncio.run(simulate(campaign, real, given.options))
    if given.show:
        for one, other in zip(real, simulated, strict=True):
            pairs = " ".join(
                f"{kpi} {one.kpi(kpi):9.2f} {other.kpi(kpi) or math.nan:9.2f}" for kpi in COMPARED
            )
            print(f"{one.point.target:18} {one.point.wl:7.0f} {pairs} {other.reason}")
    differences = compare(real, simulated)
    result = {
        "session": given.session.name,
        "options": given.options,
        "fitted": asdict(fitted),
        "difference": {kpi: asdict(one) for kpi, one in differences.items()},
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
