"""Truth for benchmarks: long virtual runs without noise.

Truth of a breakpoint is the same rule on the noise-free dense curve (METHOD.md 7 and 11), not a
formula. Service times still vary from request to request: that is the function's nature, not noise
of the measurement. Every figure pools `RUNS` runs whose quota periods lie differently, as the
drives of a campaign do.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
import platformdirs
from numpy.typing import NDArray

from workbench import queues
from workbench.domain.campaign import Campaign
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import BreakpointRule, BreakpointState
from workbench.domain.topology import Target
from workbench.labs import simulated
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.rivals import beside
from workbench.labs.simulated.scene import Scene, set_scene
from workbench.labs.simulated.stretch import Chance, LoadStretch, run
from workbench.paths import APPLICATION
from workbench.queues.laws import saturated_throughput

Floats = NDArray[np.float64]

RULES: tuple[BreakpointRule, ...] = ("capacity", "knee", "cpu", "sla")
RUNS = 4
"""Runs whose requests are pooled to one figure."""
WARMUP_S = 2.0
"""Left out of each; a whole number of quota periods, as is the rest."""
PRECISION = 1e-3
"""Relative width at which a bisection stops."""
LEAST_SHARE = 1e-3
"""Share of the bottleneck's rate under which a target that still loses carries nothing."""
DENSE = 49
"""Loads of the dense curve, log-spaced over the range."""
NO_BEND = 0.05
"""A curve is one line where that departs from it by less, as log-sd: what windows hide
(METHOD.md 6)."""
PLATEAU_SHARE, GAIN_SHARE, GAIN_STEP = 0.95, 0.10, 1.1
"""Of the rule `cpu`; the gain of throughput is taken over a tenth more load."""


@dataclass(frozen=True)
class TruePoint:
    """Long-run figures at one operating point.

    Attributes
    ----------
    offered_rps, throughput_rps : requests/s due (open loop) or begun, and answered.
    loss : share of the due requests that the answers did not keep up with, at least 0.
    mean_ms, p50_ms, p95_ms, p99_ms : of the time from the planned (open loop) or the request's
        own start. Quantiles are over all requests of the run: unfinished and failed ones count as
        longer than all others, so a quantile among them is infinite. The mean is of the answered.
    usage : CPU of the function that used most of its allotment, as a share of that.
    """

    wl: float
    offered_rps: float
    throughput_rps: float
    loss: float
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    usage: float

    def kpi(self, name: str) -> float:
        """By the names of `domain.kpis`."""
        return self.loss * 100.0 if name == "loss_pct" else float(getattr(self, name))


@dataclass(frozen=True)
class TrueBreakpoint:
    """Where a rule's breakpoint lies; `wl` is None unless the state is `found`."""

    state: BreakpointState
    wl: float | None = None


class Truth:
    """What a configuration of a target really does.

    Parameters
    ----------
    options : of the lab that is to be judged; its noise and faults are switched off.
    seconds : length of all runs of a figure together, after the warm-up.
    """

    def __init__(
        self,
        campaign: Campaign,
        target: Target,
        configuration: Configuration,
        options: SimulationOptions | None = None,
        *,
        seconds: float = 24.0,
        seed: int = 0,
    ) -> None:
        self._campaign = campaign
        self._primary = campaign.target_plan(target.name).primary
        self._scene: Scene = beside(
            set_scene(campaign, target, configuration, quiet(options or SimulationOptions()))
        )
        self._seconds = max(round(seconds / RUNS, 1), 0.1)
        self._words = ("truth", target.name, configuration.key)
        self._seed = seed
        self._points: dict[float, TruePoint] = {}

    def at(self, wl: float) -> TruePoint:
        """One long run; the same random numbers at every `wl`, so that curves are smooth.

        Between whole numbers of clients figures are interpolated, in logs.
        """
        closed = self._campaign.load.kind == "closed"
        if closed and wl != round(wl) and wl > 1.0:
            return _between(wl, self.at(math.floor(wl)), self.at(math.ceil(wl)))
        if wl not in self._points:
            self._points[wl] = self._run(wl)
        return self._points[wl]

    def _run(self, wl: float) -> TruePoint:
        load, timeout_s = self._campaign.load, self._campaign.windows.request_timeout_s
        stretches = [
            run(
                self._scene,
                load,
                wl,
                WARMUP_S + self._seconds,
                timeout_s,
                Chance(self._seed, (*self._words, number)),
            )
            for number in range(RUNS)
        ]
        return _figures(self._scene, wl, stretches, self._seconds)

    def curve(self, wls: Floats) -> tuple[TruePoint, ...]:
        return tuple(self.at(float(wl)) for wl in wls)

    def dense(self) -> tuple[TruePoint, ...]:
        """The dense curve over the campaign's range; whole clients in a closed loop."""
        wls = np.geomspace(self._primary.low, self._primary.high, DENSE)
        if self._campaign.load.kind == "closed":
            wls = np.unique(np.round(wls))
        return self.curve(wls)

    def breakpoints(
        self, folder: Path | None = None, rules: Collection[BreakpointRule] = RULES
    ) -> Mapping[BreakpointRule, TrueBreakpoint]:
        """By every one of these rules that applies, and its state.

        Parameters
        ----------
        folder : where answers are kept; the user's cache folder where it is not given. They are
            keyed by all that shapes them, the simulation's own source included.
        rules : fewer than all of them are found in less time; `cpu` takes half of it.
        """
        asked = tuple(rule for rule in RULES if rule in rules)
        place = folder or cache_folder()
        return _remembered(self._key(asked), lambda: self._breakpoints(asked), place)

    def _breakpoints(
        self, rules: Collection[BreakpointRule]
    ) -> dict[BreakpointRule, TrueBreakpoint]:
        ways: dict[BreakpointRule, Callable[[], TrueBreakpoint]] = {
            "capacity": lambda: self._within_range(self.capacity()),
            "knee": self.knee,
            "cpu": self.cpu,
        }
        if self._campaign.sla:
            ways["sla"] = self.sla
        return {rule: way() for rule, way in ways.items() if rule in rules}

    def _key(self, rules: tuple[BreakpointRule, ...]) -> str:
        campaign = self._campaign
        shaping: tuple[object, ...] = (
            self._scene,
            campaign.load,
            campaign.windows.request_timeout_s,
            campaign.kpi,
            campaign.kpi_max,
            campaign.loss_goal,
            campaign.sla,
            self._primary,
            self._seconds,
            self._seed,
            self._words,
            source_digest(),
        )
        if rules != RULES:  # else a file that is there already is still found
            shaping = (*shaping, rules)
        return hashlib.blake2b(repr(shaping).encode(), digest_size=16).hexdigest()

    def _within_range(self, wl: float) -> TrueBreakpoint:
        if wl > self._primary.high:
            return TrueBreakpoint("none_in_range")
        return TrueBreakpoint("found", wl) if wl >= self._primary.low else BELOW

    def capacity(self) -> float:
        """By rule `capacity`, as `wl`, in the range or not.

        Open loop: the largest rate whose long-run loss stays within the campaign's goal. Closed
        loop: N* = (Z + R(1)) · X_max, with both measured (METHOD.md 2). 0 if nothing is carried
        within the goal.
        """
        nominal = saturated_throughput(self._scene.demands_s)
        if self._campaign.load.kind == "closed":
            think_s = self._campaign.load.think_time_s
            cycle_s = self.at(1).mean_ms * 1e-3 + think_s
            star = nominal * cycle_s
            crowds = {math.ceil(factor * star) for factor in (1.0, 1.5, 2.0, 4.0)}
            return cycle_s * max(self.at(n).throughput_rps for n in {*crowds, 64})
        goal = self._campaign.loss_goal

        def carries(wl: float) -> bool:
            return self.at(wl).loss <= goal

        low, high = 0.5 * nominal, 1.5 * nominal
        # A small buffer or a crowded host loses long before the bottleneck is busy, and a goal
        # of a third and more is met well above it.
        while not carries(low):
            if low < LEAST_SHARE * nominal:
                return 0.0
            low, high = low / 2.0, low
        while carries(high):
            low, high = high, 2.0 * high
        return _largest(carries, low, high)

    def knee(self) -> TrueBreakpoint:
        """By rule `knee`: the change point of the two-piece line through the log KPI on the
        dense curve. Overload enters once, as the lowest load at the KPI's ceiling."""
        kpi, ceiling = self._campaign.kpi, self._campaign.kpi_max
        dense = self.dense()
        values = np.minimum([p.kpi(kpi) for p in dense], ceiling)
        over = np.flatnonzero(values >= ceiling)
        if over.size and over[0] == 0:
            return BELOW
        used = slice(0, int(over[0]) + 1 if over.size else len(dense))
        x = np.log([p.wl for p in dense][used])
        y = np.log(np.maximum(values[used], 1e-9))
        if x.size < 4 or math.sqrt(_misfit(x, y)[0] / x.size) < NO_BEND:
            return NONE
        candidates = np.linspace(x[0], x[-1], 402)[1:-1]
        fits = [_misfit(x, y, place) for place in candidates]
        best = min(range(len(fits)), key=lambda i: fits[i][0] if fits[i][1] > 0.0 else math.inf)
        if fits[best][1] <= 0.0:
            return NONE
        return TrueBreakpoint("found", float(np.exp(candidates[best])))

    def cpu(self) -> TrueBreakpoint:
        """By rule `cpu`: the first load with usage at 95 % of its own plateau at which throughput
        gains less than 10 % of the load's increase."""
        dense = self.dense()
        plateau = max(p.usage for p in dense)

        def holds(wl: float) -> bool:
            more = wl * GAIN_STEP
            if self._campaign.load.kind == "closed":
                more = max(round(more), wl + 1.0)
            here, there = self.at(wl), self.at(more)
            gain = math.log(there.throughput_rps / here.throughput_rps) / math.log(more / wl)
            return here.usage >= PLATEAU_SHARE * plateau and gain < GAIN_SHARE

        first = next((i for i, point in enumerate(dense) if holds(point.wl)), None)
        if first is None:
            return NONE
        if first == 0:
            return BELOW
        low, high = dense[first - 1].wl, dense[first].wl
        if self._campaign.load.kind == "closed":
            return TrueBreakpoint("found", math.sqrt(low * high))
        return TrueBreakpoint("found", _largest(lambda wl: not holds(wl), low, high))

    def sla(self) -> TrueBreakpoint:
        """By rule `sla`: the load from which on the KPI keeps to its limit no more."""
        sla = self._campaign.sla
        assert sla is not None
        dense = self.dense()
        keeps = [sla.holds(point.kpi(sla.kpi)) for point in dense]
        if not any(keeps):
            return BELOW
        if keeps[-1]:
            return NONE
        last = max(i for i, kept in enumerate(keeps) if kept)
        wl = _largest(
            lambda wl: sla.holds(self.at(wl).kpi(sla.kpi)), dense[last].wl, dense[last + 1].wl
        )
        return TrueBreakpoint("found", wl)

    def crossing(self, kpi: str, limit: float, low: float, high: float) -> float | None:
        """The `wl` where a KPI that grows crosses its limit; None if not in range.

        Parameters
        ----------
        kpi, limit : name and limit in the KPI's unit.
        low, high : range of `wl`.
        """
        if self.at(low).kpi(kpi) > limit or self.at(high).kpi(kpi) <= limit:
            return None
        return _largest(lambda wl: self.at(wl).kpi(kpi) <= limit, low, high)


BELOW, NONE = TrueBreakpoint("below_range"), TrueBreakpoint("none_in_range")

LASTING = (
    "host_cores",
    "host_speed",
    "source_cores",
    "sink_cores",
    "world",
    "capacity_spread",
    "capacity_law",
    "functions",
    "hop_us",
    "delayed_ack",
    "delayed_ack_share",
    "coalescing",
    "stall_share",
    "stall_ms",
    "stall_from_kb",
    "bypass_share",
    "in_phase",
)
"""Options that belong to the target and not to noise, faults or costs."""


def quiet(options: SimulationOptions) -> SimulationOptions:
    """Of the same target, without noise and faults."""
    lasting = {name: getattr(options, name) for name in LASTING}
    return SimulationOptions(noise=False, **lasting)


def cache_folder() -> Path:
    """Where truths are kept, in the user's cache folder."""
    return Path(platformdirs.user_cache_dir(APPLICATION)) / "truth"


@cache
def source_digest() -> str:
    """Of the source of the simulation: another simulation has another truth."""
    rooms = (simulated.__file__, queues.__file__)
    files = sorted(p for room in rooms for p in Path(room).parent.glob("*.py"))
    files.append(Path(__file__))
    return hashlib.blake2b(b"".join(p.read_bytes() for p in files)).hexdigest()


def _remembered(
    key: str, find: Callable[[], dict[BreakpointRule, TrueBreakpoint]], folder: Path
) -> Mapping[BreakpointRule, TrueBreakpoint]:
    """What was found before under that key, else what is found now.

    Files appear whole or not at all, so several processes may look for the same truth.
    """
    path = folder / f"{key}.json"
    try:
        kept = json.loads(path.read_text())
        return {rule: TrueBreakpoint(**found) for rule, found in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        pass  # not there, or not ours
    found = find()
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    with os.fdopen(handle, "w") as file:
        json.dump({rule: asdict(one) for rule, one in found.items()}, file)
    Path(temporary).replace(path)
    return found


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at `low` and not at `high` ceases to, by bisection in logs."""
    while high / low > 1.0 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return math.sqrt(low * high)


def _misfit(x: Floats, y: Floats, place: float | None = None) -> tuple[float, float]:
    """Squared residuals of the line through y, bent at `place`, and by how much it bends."""
    columns = [np.ones_like(x), x]
    if place is not None:
        columns.append(np.maximum(x - place, 0.0))
    design = np.stack(columns, axis=1)
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    return float(np.sum((y - design @ coefficients) ** 2)), float(coefficients[-1])


def _between(wl: float, one: TruePoint, other: TruePoint) -> TruePoint:
    """Figures between two points, on a line in logs where both are above zero."""
    share = math.log(wl / one.wl) / math.log(other.wl / one.wl)

    def middle(a: float, b: float) -> float:
        if a > 0.0 and 0.0 < b < math.inf:
            return float(a ** (1.0 - share) * b**share)
        return (1.0 - share) * a + share * b

    pairs = {f.name: (getattr(one, f.name), getattr(other, f.name)) for f in fields(TruePoint)}
    return TruePoint(**{**{name: middle(a, b) for name, (a, b) in pairs.items()}, "wl": wl})


def _figures(
    scene: Scene, wl: float, stretches: Sequence[LoadStretch], seconds: float
) -> TruePoint:
    times, offered, answered, usage = [], 0, 0, np.zeros(len(scene.functions))
    stop_s = WARMUP_S + seconds
    for stretch in stretches:
        passage = stretch.passage
        planned = passage.start_s if stretch.due_s is None else stretch.due_s
        end = np.full(planned.size, np.inf)
        end[: passage.end_s.size] = np.where(
            passage.failed | (passage.end_s > stop_s), np.inf, passage.end_s
        )
        offered += int(np.sum(planned >= WARMUP_S))
        answered += int(np.sum((end >= WARMUP_S) & (end <= stop_s)))
        # Requests that are under way when the run stops are no backlog.
        times.append((end - planned)[planned >= WARMUP_S] * 1e3)
        window = np.array([WARMUP_S, stop_s])
        for index, component in enumerate(scene.functions):
            burnt_s = np.diff(passage.consumption[index + 1].cpu_until(window))[0]
            usage[index] += burnt_s * stretch.burnt[index + 1] / component.cores
    times_ms = np.sort(np.concatenate(times))
    p50, p95, p99 = (_quantile(times_ms, share) for share in (0.50, 0.95, 0.99))
    finite = times_ms[np.isfinite(times_ms)]
    total_s = seconds * len(stretches)
    return TruePoint(
        wl=wl,
        offered_rps=offered / total_s,
        throughput_rps=answered / total_s,
        loss=max(0.0, 1.0 - answered / offered) if offered else 0.0,
        mean_ms=float(finite.mean()) if finite.size else math.inf,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        usage=float(usage.max()) / total_s,
    )


def _quantile(ordered: Floats, share: float) -> float:
    if ordered.size == 0:
        return math.inf
    return float(ordered[min(math.ceil(share * ordered.size), ordered.size) - 1])
