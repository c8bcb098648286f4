"""Ours: one law for all configurations says where the next sample teaches most per lab second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.pooled import Pooled
from workbench.models.pooled.samples import Samples
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
ACCURACY, CONFIDENCE = 0.1, 0.95
"""Relative half width of a breakpoint at which its configuration ends, and how sure that is."""
LAWFUL = 0.9
"""Weight of the law below which its breakpoints end nothing."""
REFRESH = 1.25
"""The law is learned anew each time that there are this many times the samples."""
FINE = 193
"""Loads that may be asked for where nothing was recorded, evenly over the range on its scale."""
ONE_LOAD = 1e-9
"""Length in log wl that a range of a single load is given."""
LOADS = 48
"""Loads that are looked at for each configuration."""
LOOKED_AT = 48
"""Configurations that are looked at for each ask."""
WEIGHED, WEIGHED_EACH = 1000, 20
"""Points at which is weighed what a sample at one of them teaches of all others: at most, and for
each configuration."""
DRIFTS = 24
"""Loads at which the drift of the base is looked up for each configuration."""
_QUANTILES, _SHARE = np.polynomial.hermite_e.hermegauss(15)
_SHARE = _SHARE / _SHARE.sum()


class PooledSampler(Explorer):
    """Lowers the variance of log KPI over all configurations and loads most per lab second.

    A configuration needs no more samples when its breakpoint is known to `accuracy`, a relative
    half width, with `confidence`, or lies outside the range with that confidence: `options` of the
    plan, 0.1 and 0.95 by default; an accuracy of 0 never ends one early. It does not end early
    where the model without a law explains the KPI: then there is no breakpoint to know.

    Raises
    ------
    DataError
        If the accuracy is below 0 or the confidence not between 0 and 1.
    """

    def __init__(self, space: Space, plan: SamplingPlan, **_: object) -> None:
        super().__init__(space, plan)
        self.accuracy = float(plan.options.get("accuracy", ACCURACY))
        self.confidence = float(plan.options.get("confidence", CONFIDENCE))
        if self.accuracy < 0.0 or not 0.0 < self.confidence < 1.0:
            raise DataError(
                f"accuracy {self.accuracy:g} and confidence {self.confidence:g} of the pooled "
                "sampler must be at least 0, and between 0 and 1"
            )
        self._known: dict[int, str] = {}
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
            self._look_up()
        else:
            self._model.update(samples)
            self._weigh_down(place, sample.point.wl)
        self._note_known()

    def choose(self, open_: Sequence[int]) -> Choice | None:
        """The sample that teaches most per lab second, or a space-filling one when it is due."""
        count = len(self._y)
        if self._model is None or count % GUARD == GUARD - 1:
            return self._filling(open_)
        found = [f for f in (self._telling(open_), self._weighing(open_)) if f is not None]
        return max(found, key=lambda f: f[0])[1] if found else self._filling(open_)

    def _look_up(self) -> None:
        """Once per refresh: the drift of the base, the points weighed and their covariance."""
        assert self._model is not None
        law = self._model.law_
        low = math.log(min(grid[0] for grid in self._grids))
        high = max(math.log(max(grid[-1] for grid in self._grids)), low + ONE_LOAD)
        self._loads_x = np.linspace(low, high, LOADS)
        self._drift = np.zeros((len(self._rows), LOADS))
        if law.field is not None:
            coarse = np.linspace(low, high, DRIFTS)
            for row in range(len(self._rows)):
                there = np.full(DRIFTS, row)
                found = law.field.mean(law.capacity.places.of(there), there, coarse)
                self._drift[row] = np.interp(self._loads_x, coarse, found)
        rng = np.random.default_rng((self._rng_seed, self._learned))
        most = min(WEIGHED, WEIGHED_EACH * len(self._rows))
        place = rng.integers(len(self._rows), size=most)
        wl = np.array([rng.choice(self._grids[p]) for p in place])
        x = np.log(wl)
        self._weighed, self._rest = (place, wl), self._model.doubts(place, x)
        flat, jitter = self._noise_of()
        level = law.base.posterior[place] + law.family.slope * x + self._drift_of(place, x)
        u = (x - law.capacity.posterior[place]) / np.exp(law.stretch[place])
        self._blur = flat**2 + (jitter * law.slope(level, u)) ** 2

    def _weighing(self, open_: Sequence[int]) -> tuple[float, Choice] | None:
        """Where a sample lowers most, per lab second, the variance that is not the capacities'.

        Its mean over the points weighed falls by the mean squared covariance with the sample over
        the sample's own variance and noise (active learning by Cohn's criterion).
        """
        place, wl = self._weighed
        fresh = np.isin(place, list(open_)) & [
            load not in self.visits[p].samples for p, load in zip(place, wl, strict=True)
        ]
        if not fresh.any():
            return None
        cost = np.full(len(place), self.space.costs.sample_s + self.space.costs.change_s)
        cost[place == self._last] -= self.space.costs.change_s
        gain = np.sum(np.square(self._rest), axis=0) / (np.diag(self._rest) + self._blur) / cost
        i = int(np.argmax(np.where(fresh, gain, -1.0)))
        factor = math.exp(NORMAL_95 * min(math.sqrt(max(self._rest[i, i], 0.0)), 9.0))
        why = f"beside the capacities' doubt the KPI is known to a factor of {factor:.3g} here"
        load = float(wl[i])
        share = len(self._rows) / len(place)
        return float(gain[i]) * share, Choice(int(place[i]), load, load, load, why)

    def _weigh_down(self, place: int, wl: float) -> None:
        """Take out of the covariance what a sample has taught, if it is of a point weighed."""
        for i in np.flatnonzero((self._weighed[0] == place) & (self._weighed[1] == wl))[:1]:
            taught = np.outer(self._rest[i], self._rest[i])
            self._rest = self._rest - taught / (self._rest[i, i] + self._blur[i])

    def _drift_of(self, place: np.ndarray, x: Floats) -> Floats:
        """Drift of the base at loads x (m,) of configurations (m,), from the table."""
        step = (x - self._loads_x[0]) / (self._loads_x[1] - self._loads_x[0])
        left = np.clip(step.astype(int), 0, LOADS - 2)
        part = np.clip(step - left, 0.0, 1.0)
        table = self._drift
        return np.asarray((1.0 - part) * table[place, left] + part * table[place, left + 1])

    def _candidates(self, place: int) -> Floats:
        """Loads of a configuration that were not visited."""
        loads = self._grids[place]
        return np.asarray(loads[~np.isin(loads, list(self.visits[place].samples))])

    def _filling(self, open_: Sequence[int]) -> Choice | None:
        """The point farthest from all that were taken; the first one is near the middle."""
        numbers = self._unit()
        low = math.log(min(grid[0] for grid in self._grids))
        high = math.log(max(grid[-1] for grid in self._grids))
        span = max(high - low, ONE_LOAD)
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
                middle = 0.4 + 0.2 * shift
                distance = -((at - middle) ** 2) - np.sum((numbers[place] - 0.5) ** 2)
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

    def _telling(self, open_: Sequence[int]) -> tuple[float, Choice] | None:
        """Where the expected variance of log KPI falls most per lab second."""
        assert self._model is not None
        law = self._model.law_
        mean, variance = law.capacity.posterior, law.capacity.variance
        sd = np.sqrt(variance)
        nodes = mean[:, None] + sd[:, None] * _QUANTILES
        x = self._loads_x
        level = law.base.posterior[:, None] + law.family.slope * x + self._drift
        # Variance of log KPI that a doubtful capacity leaves, mean over the loads.
        values = np.minimum(
            law.kpi(
                level[..., None],
                (x[None, :, None] - nodes[:, None, :]) / np.exp(law.stretch)[:, None, None],
            ),
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
            u = (x - nodes[place]) / math.exp(law.stretch[place])
            here = np.interp(x, self._loads_x, level[place])
            seen = np.minimum(law.kpi(here, u), self.ceiling)
            noise = flat**2 + (jitter * law.slope(here, u)) ** 2 + law.base.variance[place]
            noise = noise + law.misfit**2
            # Expected variance after an outcome near each node: likelihoods of pairs overlap.
            both = noise[:, :, None] + noise[:, None, :]
            like = np.exp(-0.5 * (seen[:, :, None] - seen[:, None, :]) ** 2 / both) / np.sqrt(both)
            like = like * _SHARE
            like /= like.sum(axis=2, keepdims=True)
            first = like @ _QUANTILES
            left = (like @ np.square(_QUANTILES) - np.square(first)) @ _SHARE
            lower = np.clip(1.0 - left, 0.0, 1.0) * reach[place] / cost[place]
            i = int(np.argmax(lower))
            found.append((float(lower[i]), place, float(loads[i]), float(sd[place])))
        if not found:
            return None
        gain, place, wl, doubt = max(found)
        why = f"capacity is known to a factor of {math.exp(NORMAL_95 * doubt):.3g} here"
        taken = sorted(self.visits[place].samples)
        below = [t for t in taken if t < wl]
        above = [t for t in taken if t > wl]
        low, high = below[-1] if below else wl, above[0] if above else wl
        return self._model.weight_ * gain, Choice(place, wl, low, high, why)

    def _noise_of(self) -> tuple[float, float]:
        """Standard deviation of log KPI where it is flat, and of the capacity a sample meets."""
        noise = np.array(self._noise)
        assert self._model is not None
        found = self._model.law_
        place = np.array(self._places)
        u = (np.array(self._x) - found.capacity.posterior[place]) / np.exp(found.stretch[place])
        steep = np.abs(found.slope(found.level(), u))
        flat = float(np.median(noise))
        used = (steep > 2.0) & (np.array(self._y) < self.ceiling - 1e-9)
        jitter = float(np.median(noise[used] / steep[used])) if used.sum() > 3 else 0.03
        return min(flat, 0.12), jitter

    def _note_known(self) -> None:
        """Configurations whose breakpoint is known as well as was asked for; they stay so."""
        model = self._model
        if self.accuracy <= 0.0 or model is None or model.weight_ < LAWFUL:
            return
        sigmas = NormalDist().inv_cdf(0.5 + 0.5 * self.confidence) * model.widening_
        capacity = model.law_.capacity
        off = sigmas * np.sqrt(capacity.variance)
        half = np.expm1(off)
        sure = f"at {100 * self.confidence:g} % confidence"
        low, high = math.log(self._grids[0][0]), math.log(self._grids[0][-1])
        for place in np.flatnonzero(half <= self.accuracy):
            note = f"breakpoint known to {100 * half[place]:.2g} % {sure}"
            self._known.setdefault(int(place), note)
        for place in np.flatnonzero(capacity.posterior - off > high):
            self._known.setdefault(int(place), f"breakpoint above the range {sure}")
        for place in np.flatnonzero(capacity.posterior + off < low):
            self._known.setdefault(int(place), f"breakpoint below the range {sure}")

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
                note = f"{self._known[place]}, {taken} samples of its own"
                found[configuration] = Ending("converged", note)
            elif self._model is not None:
                doubt = math.sqrt(self._model.law_.capacity.variance[place])
                note = f"{ending.note}; unresolved: "
                if self._model.weight_ < LAWFUL:
                    note += "the law explains too little of the KPI to tell a breakpoint"
                else:
                    factor = math.exp(min(NORMAL_95 * doubt, 20.0))
                    note += f"breakpoint known to a factor of {factor:.3g}"
                found[configuration] = Ending(ending.outcome, note)
        return found
