"""Ours: one law for all configurations says where the next sample teaches most per lab second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.pooled import Pooled
from workbench.models.pooled.law import Samples
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD, log_sd
from workbench.models.selection import stated
from workbench.models.table import Column, columns_of, rows_of
from workbench.sampling.base import Ending, Space
from workbench.sampling.exploring import Choice, Explorer, Visits
from workbench.sampling.intervals import ends

BEFORE_LAW = 6
"""Space-filling samples before the law is asked."""
GUARD = 8
"""Every so many asks one is space-filling, whatever the law says (METHOD.md 12, 8)."""
REFRESH = 1.25
"""The law is learned anew each time that there are this many times the samples."""
FINE = 193
"""Loads that may be asked for where nothing was recorded, evenly over the range on its scale."""
LOADS = 48
"""Loads that are looked at for each configuration."""
LOOKED_AT = 48
"""Configurations that are looked at for each ask."""
FILLING = 300
"""Points at which it is asked how much of the variance is the law's."""
_QUANTILES, _SHARE = np.polynomial.hermite_e.hermegauss(15)
_SHARE = _SHARE / _SHARE.sum()


class PooledSampler(Explorer):
    """Lowers the variance of log KPI over all configurations and loads most per lab second.

    Options of the plan (`options`): `accuracy`, the relative half width at which a configuration's
    breakpoint is known well enough (0: never, the default); `confidence`, of that interval (0.95).
    """

    def __init__(self, space: Space, plan: SamplingPlan, **_: object) -> None:
        super().__init__(space, plan)
        self.accuracy = float(plan.options.get("accuracy", 0.0))
        self.confidence = float(plan.options.get("confidence", 0.95))
        self._known: dict[int, float] = {}
        columns = columns_of(space.configurations)
        self._categorical = tuple(i for i, c in enumerate(columns) if c.names)
        self._rows = rows_of(
            (*columns, Column(space.primary.name, "primary")),
            ((c, space.primary.high) for c in space.configurations),
        )[:, :-1]
        self._places: list[int] = []
        self._x: list[float] = []
        self._y: list[float] = []
        self._noise: list[float] = []
        self._model: Pooled | None = None
        self._learned = 0
        self._rng_seed = space.seed
        self._last = -1
        self._grids = [self._loads_of(c) for c in space.configurations]
        self._lost = 0.0

    def _loads_of(self, configuration: Configuration) -> Floats:
        """Loads that may be asked for, rising: what was recorded, else a fine grid of the range."""
        primary = self.space.primary
        recorded = self.space.loads.get(configuration, ())
        if recorded:
            return np.array(recorded, dtype=float)
        low, high = ends(primary)[0], ends(primary)[-1]
        grid = np.geomspace if primary.scale == "log" else np.linspace
        loads = grid(low, high, FINE)
        if primary.integer:
            return np.unique(np.clip(np.round(loads), low, high))
        inside = [float(f"{wl:.4g}") for wl in loads[1:-1]]
        return np.unique(np.clip([low, *inside, high], low, high))

    def observe(self, place: int, sample: Sample) -> None:
        """The first sample of a load."""
        self._last = place
        level = self.level(sample)
        if level is None:
            return
        known = stated(sample, self.space.kpi)
        self._places.append(place)
        self._x.append(math.log(sample.point.wl))
        self._y.append(level)
        self._noise.append(log_sd(self.space.kpi, known) if known else UNKNOWN_LOG_SD)
        samples = Samples(
            np.array(self._places), np.array(self._x), np.array(self._y), np.array(self._noise),
            self.ceiling,
        )  # fmt: skip
        if len(samples) < BEFORE_LAW:
            return
        if self._model is None or len(samples) >= self._learned * REFRESH:
            model = Pooled(self._categorical, self.ceiling, self.space.seed)
            self._model = model.fit_over(self._rows, samples)
            self._learned = len(samples)
            self._lost = self._share_lost()
        else:
            self._model.update(samples)
        self._note_known()

    def choose(self, open_: Sequence[int]) -> Choice | None:
        """The sample that teaches most per lab second, or a space-filling one when it is due."""
        count = len(self._y)
        if self._model is None or count % GUARD == GUARD - 1 or self._law_lost(count):
            return self._filling(open_)
        return self._telling(open_) or self._filling(open_)

    def _law_lost(self, count: int) -> bool:
        """Whether this ask belongs to the share of the variance that is not the law's to lower."""
        lost = self._lost
        return math.floor((count + 1) * lost) > math.floor(count * lost)

    def _share_lost(self) -> float:
        """Of the variance of log KPI over space-filling points, what the law does not explain."""
        assert self._model is not None
        model, rng = self._model, np.random.default_rng(self.space.seed)
        place = rng.integers(len(self._rows), size=FILLING)
        x = np.log([rng.choice(self._grids[p]) for p in place])
        lawful, other = model.variances(place, x)
        law = model.weight_ * float(np.mean(lawful))
        return 1.0 - law / (law + float(np.mean(other)) + 1e-12)

    def _candidates(self, place: int) -> Floats:
        """Loads of a configuration that were not visited."""
        loads = self._grids[place]
        return np.asarray(loads[~np.isin(loads, list(self.visits[place].samples))])

    def _filling(self, open_: Sequence[int]) -> Choice | None:
        """The point farthest from all that were taken; the first one is in the middle."""
        numbers = self._unit()
        low = math.log(min(grid[0] for grid in self._grids))
        high = math.log(max(grid[-1] for grid in self._grids))
        span = max(high - low, 1e-9)
        taken = np.array(
            [
                [*numbers[place], (math.log(wl) - low) / span]
                for place, visits in enumerate(self.visits)
                for wl in visits.samples
            ]
        ).reshape(-1, numbers.shape[1] + 1)
        best: tuple[float, int, float] | None = None
        shift = np.random.default_rng((self._rng_seed, len(taken))).random()
        # What was taken of one configuration says much about its neighbours: its own loads count
        # by their distance, others by the distance of their parameters too.
        for place in open_:
            loads = self._candidates(place)
            if not len(loads):
                continue
            loads = loads[:: max(len(loads) // 16, 1)] if len(loads) > 32 else loads
            at = (np.log(loads) - low) / span
            if len(taken):
                apart = np.sum((taken[:, :-1] - numbers[place]) ** 2, axis=1)
                distance = np.min(apart[:, None] + (taken[:, -1:] - at) ** 2, axis=0)
            else:
                distance = -((at - 0.5) ** 2) - np.sum((numbers[place] - 0.5) ** 2)
            i = int(np.argmax(distance))
            value = float(distance[i]) + 1e-6 * ((place * 0.618034 + shift) % 1.0)
            if best is None or value > best[0]:
                best = value, place, float(loads[i])
        if best is None:
            return None
        _, place, wl = best
        return Choice(place, wl, wl, wl, "fills the space: guards against a wrong law")

    def _unit(self) -> Floats:
        rows = self._rows
        span = np.ptp(rows, axis=0)
        return np.asarray((rows - rows.min(axis=0, initial=np.inf)) / np.where(span > 0, span, 1.0))

    def _telling(self, open_: Sequence[int]) -> Choice | None:
        """Where the expected variance of log KPI falls most per lab second."""
        assert self._model is not None
        law = self._model.law_
        mean, variance = law.capacity.posterior, law.capacity.variance
        sd = np.sqrt(variance)
        nodes = mean[:, None] + sd[:, None] * _QUANTILES
        x = np.linspace(np.log(self._grids[0][0]), np.log(self._grids[0][-1]), LOADS)
        base = law.base.posterior
        slope = law.family.slope
        # Variance of log KPI that a doubtful capacity leaves, mean over the loads.
        values = np.minimum(
            base[:, None, None]
            + slope * x[None, :, None]
            + law.shape(x[None, :, None] - nodes[:, None, :]),
            self.ceiling,
        )
        middle = values @ _SHARE
        worth = np.mean(np.square(values - middle[..., None]) @ _SHARE, axis=1)
        # How much of it goes, everywhere, for each part of its own variance that one loses.
        shared = np.square(law.capacity.covariance) / np.outer(variance, variance)
        reach = shared @ worth
        cost = np.full(len(mean), self.space.costs.sample_s + self.space.costs.change_s)
        if self._last >= 0:
            cost[self._last] -= self.space.costs.change_s
        order = sorted(open_, key=lambda place: -reach[place] / cost[place])[:LOOKED_AT]
        flat, jitter = self._noise_of()
        found: list[tuple[float, int, float, float]] = []
        for place in order:
            loads = self._candidates(place)
            near = loads[np.abs(np.log(loads) - mean[place]) < 4.0 * sd[place] + 0.7]
            loads = near if len(near) else loads
            if not len(loads):
                continue
            loads = loads[:: max(len(loads) // LOADS, 1)]
            x = np.log(loads)[:, None]
            u = x - nodes[place]
            seen = np.minimum(base[place] + slope * x + law.shape(u), self.ceiling)
            noise = flat**2 + (jitter * law.shape.slope(u)) ** 2 + law.base.variance[place]
            noise = noise + law.misfit**2
            # Expected variance after an outcome near each node: likelihoods of pairs overlap.
            both = noise[:, :, None] + noise[:, None, :]
            like = np.exp(-0.5 * (seen[:, :, None] - seen[:, None, :]) ** 2 / both) / np.sqrt(both)
            like = like * _SHARE
            like /= like.sum(axis=2, keepdims=True)
            first = like @ _QUANTILES
            left = (like @ np.square(_QUANTILES) - np.square(first)) @ _SHARE
            gain = np.clip(1.0 - left, 0.0, 1.0) * reach[place] / cost[place]
            i = int(np.argmax(gain))
            found.append((float(gain[i]), place, float(loads[i]), float(sd[place])))
        if not found:
            return None
        _, place, wl, doubt = max(found)
        why = f"capacity is known to a factor of {math.exp(NORMAL_95 * doubt):.3g} here"
        taken = sorted(self.visits[place].samples)
        below = [t for t in taken if t < wl]
        above = [t for t in taken if t > wl]
        return Choice(place, wl, below[-1] if below else wl, above[0] if above else wl, why)

    def _noise_of(self) -> tuple[float, float]:
        """Standard deviation of log KPI where it is flat, and of the capacity a sample meets."""
        noise = np.array(self._noise)
        assert self._model is not None
        found = self._model.law_
        u = np.array(self._x) - found.capacity.posterior[np.array(self._places)]
        steep = np.abs(found.shape.slope(u))
        flat = float(np.median(noise))
        used = (steep > 2.0) & (np.array(self._y) < self.ceiling - 1e-9)
        jitter = float(np.median(noise[used] / steep[used])) if used.sum() > 3 else 0.03
        return min(flat, 0.12), jitter

    def _note_known(self) -> None:
        """Configurations whose breakpoint is known as well as was asked for; they stay so."""
        model = self._model
        if self.accuracy <= 0.0 or model is None or model.weight_ < 0.9:
            return
        sigmas = NormalDist().inv_cdf(0.5 + 0.5 * self.confidence) * model.widening_
        half = np.expm1(sigmas * np.sqrt(model.law_.capacity.variance))
        for place in np.flatnonzero(half <= self.accuracy):
            self._known.setdefault(int(place), float(half[place]))

    def _is_open(self, visits: Visits) -> bool:
        return self._place[visits.configuration] not in self._known and super()._is_open(visits)

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations that need no more samples, and what stays unresolved."""
        found = dict(super().endings)
        for configuration, ending in found.items():
            if ending.outcome == "skipped" or ending.outcome == "unusable":
                continue
            place = self._place[configuration]
            taken = self.visits[place].taken
            if place in self._known:
                note = (
                    f"breakpoint known to {100 * self._known[place]:.2g} % at "
                    f"{100 * self.confidence:g} % confidence, {taken} samples of its own"
                )
                found[configuration] = Ending("converged", note)
            elif self._model is not None:
                doubt = math.sqrt(self._model.law_.capacity.variance[place])
                note = f"{ending.note}; unresolved: breakpoint known to a factor of "
                note += f"{math.exp(min(NORMAL_95 * doubt, 20.0)):.3g}"
                found[configuration] = Ending(ending.outcome, note)
        return found
