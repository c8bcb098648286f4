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
from workbench.sampling.crossings import Crossing, Wanted, crossing_of, limit_of
from workbench.sampling.grid_sampler import ConfigurationVisits, GridSampler, NextLoad
from workbench.sampling.intervals import ends

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
BEFORE_LAW = 6
"""Space-filling samples before the law is learned."""
FILLED_EACH, FILLED = 2, 16
"""Space-filling samples before it is followed: twice as many as there are configurations, wherever
they fall, at most so many. What it has learned from fewer it is too sure of: it asks for the same
loads again and again."""
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
HALVINGS = 8
"""Of a step between two of the loads looked at, which place a crossing of the limit in it."""
BESIDE = 0.1
"""Standard deviation in log wl by which points weighed lie beside a crossing: those at the
crossing itself may have been visited."""
_QUANTILES, _SHARE = np.polynomial.hermite_e.hermegauss(15)
_SHARE = _SHARE / _SHARE.sum()


class PooledSampler(GridSampler):
    """Lowers the variance of log KPI over all configurations and loads most per lab second.

    With an SLA that limits the KPI sampled, the loads at which a configuration's curve may cross
    the limit count, by how likely it does so there, as much as all loads of its range together.

    A configuration needs no more samples when its breakpoint is known to `accuracy`, a relative
    half width, with `confidence`, or lies outside the range with that confidence, and so does the
    load at which it crosses the limit: `options` of the plan, 0.1 and 0.95 by default; an accuracy
    of 0 never ends one early. It does not end early where the model without a law explains the
    KPI: then there is no breakpoint to know.

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
        self._filled = max(BEFORE_LAW, min(FILLED_EACH * len(space.configurations), FILLED))
        self._known: dict[int, str] = {}
        self._crossings: dict[int, Crossing] = {}
        """What is known of the crossing of the limit, since the last fit or own sample."""
        self._unseen: dict[int, float] = {}
        """Loads at which is still to be seen that the limit is crossed where the model knows it."""
        self._wanted = Wanted(self.accuracy, self.confidence)
        self._limit, self._unaimed = limit_of(space, self.ceiling)
        self._crosses = f"{space.kpi} crosses {space.sla.limit:g}" if space.sla else ""
        self._sure = f"at {100 * self.confidence:g} % confidence"
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
        is_due = len(samples) >= max(self._learned * REFRESH, self._filled)
        if self._model is None or len(samples) == self._filled or is_due:
            model = Pooled(self._categorical, self.ceiling, self.space.seed)
            self._model = model.fit_over(self._rows, samples)
            self._learned = len(samples)
            self._crossings.clear()
            self._look_up()
        else:
            self._crossings.pop(place, None)
            self._model.update(samples)
            self._weigh_down(place, sample.point.wl)
        if len(samples) >= self._filled:
            self._note_known()

    def choose(self, open_: Sequence[int]) -> NextLoad | None:
        """The sample that teaches most per lab second, or a space-filling one when it is due."""
        count = len(self._y)
        if self._model is None or count < self._filled or count % GUARD == GUARD - 1:
            return self._filling(open_)
        if unseen := sorted(self._unseen.keys() & set(open_)):
            place = self._last if self._last in unseen else unseen[0]
            wl = self._unseen[place]
            why = f"to see that {self._crosses} here, as the law has it"
            return NextLoad(place, wl, wl, wl, why)
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
        most = min(WEIGHED // (1 if self._limit is None else 2), WEIGHED_EACH * len(self._rows))
        place = rng.integers(len(self._rows), size=most)
        wl = np.array([rng.choice(self._grids[p]) for p in place])
        self._share = len(self._rows) / len(place)
        if self._limit is not None:
            place, wl = self._with_crossings(place, wl, rng)
        x = np.log(wl)
        self._weighed, self._rest = (place, wl), self._model.doubts(place, x)
        flat, jitter = self._noise_of()
        level = law.base.posterior[place] + law.family.slope * x + self._drift_of(place, x)
        u = (x - law.capacity.posterior[place]) / np.exp(law.stretch[place])
        self._blur = flat**2 + (jitter * law.slope(level, u)) ** 2

    def _weighing(self, open_: Sequence[int]) -> tuple[float, NextLoad] | None:
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
        return float(gain[i]) * self._share, NextLoad(int(place[i]), load, load, load, why)

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

    def _filling(self, open_: Sequence[int]) -> NextLoad | None:
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
        return NextLoad(place, wl, wl, wl, "fills the space: guards against a wrong law")

    def _unit(self) -> Floats:
        rows = self._rows
        span = np.ptp(rows, axis=0)
        return np.asarray((rows - rows.min(axis=0, initial=np.inf)) / np.where(span > 0, span, 1.0))

    def _telling(self, open_: Sequence[int]) -> tuple[float, NextLoad] | None:
        """Where the expected variance of log KPI falls most per lab second."""
        assert self._model is not None
        law = self._model.law_
        mean, variance = law.capacity.posterior, law.capacity.variance
        sd = np.sqrt(variance)
        nodes, level, values = self._possible()
        # Variance of log KPI that a doubtful capacity leaves, mean over the loads.
        middle = values @ _SHARE
        worth = np.mean(np.square(values - middle[..., None]) @ _SHARE, axis=1)
        if self._limit is not None:
            worth = worth + self._doubt_at_crossings(nodes, values)
        # How much of it goes, everywhere, for each part of its own variance that one loses.
        shared = np.square(law.capacity.covariance) / np.outer(variance, variance)
        reach = shared @ (self._model.weights * worth)
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
        return gain, NextLoad(place, wl, low, high, why)

    def _possible(self) -> tuple[Floats, Floats, Floats]:
        """Capacities of the configurations at their nodes, (k, 15), the base line at the loads
        looked at, (k, LOADS), and log KPI there for each of these capacities, (k, LOADS, 15)."""
        assert self._model is not None
        law = self._model.law_
        sd = np.sqrt(law.capacity.variance)
        nodes = law.capacity.posterior[:, None] + sd[:, None] * _QUANTILES
        x = self._loads_x
        level = law.base.posterior[:, None] + law.family.slope * x + self._drift
        values = np.minimum(
            law.kpi(
                level[..., None],
                (x[None, :, None] - nodes[:, None, :]) / np.exp(law.stretch)[:, None, None],
            ),
            self.ceiling,
        )
        return nodes, level, values

    def _crossed(self, nodes: Floats, values: Floats) -> tuple[Floats, Floats, np.ndarray]:
        """Log load at which the law first crosses the limit for each capacity, (k, 15), the base
        line there, and whether that is in the configuration's range."""
        assert self._model is not None
        assert self._limit is not None
        law, rows = self._model.law_, np.arange(len(nodes))[:, None]
        over = values > self._limit
        first = np.argmax(over, axis=1)
        low, high = self._loads_x[np.maximum(first - 1, 0)], self._loads_x[first]
        for _ in range(HALVINGS):
            x = 0.5 * (low + high)
            level = law.base.posterior[:, None] + law.family.slope * x + self._drift_of(rows, x)
            above = law.kpi(level, (x - nodes) / np.exp(law.stretch)[:, None]) > self._limit
            low, high = np.where(above, low, x), np.where(above, x, high)
        begin, end = (np.log([[grid[i]] for grid in self._grids]) for i in (0, -1))
        inside = over.any(axis=1) & (first > 0) & (begin <= x) & (x <= end)
        return x, level, inside

    def _doubt_at_crossings(self, nodes: Floats, values: Floats) -> Floats:
        """Variance of log KPI that a doubtful capacity leaves where the limit is crossed, mean over
        where that may be, (k,); as far as it is in the range."""
        assert self._model is not None
        law = self._model.law_
        x, level, inside = self._crossed(nodes, values)
        u = (x[:, :, None] - nodes[:, None, :]) / np.exp(law.stretch)[:, None, None]
        seen = np.minimum(law.kpi(level[..., None], u), self.ceiling)
        spread = np.square(seen - (seen @ _SHARE)[..., None]) @ _SHARE
        return np.asarray(np.where(inside, spread, 0.0) @ _SHARE)

    def _with_crossings(
        self, place: np.ndarray, wl: Floats, rng: np.random.Generator
    ) -> tuple[np.ndarray, Floats]:
        """Points drawn over the range (m,), and as many drawn as the limit may be crossed there,
        without those whose crossing is not in the range."""
        nodes, _, values = self._possible()
        x, _, inside = self._crossed(nodes, values)
        own = rng.integers(len(x), size=len(place))
        node = rng.choice(len(_SHARE), size=len(place), p=_SHARE)
        beside = x[own, node] + BESIDE * rng.standard_normal(len(place))
        there = inside[own, node]
        near = []
        for one, at in zip(own[there], beside[there], strict=True):
            grid = self._grids[one]
            near.append(grid[np.argmin(np.abs(np.log(grid) - at))])
        return np.concatenate([place, own[there]]), np.concatenate([wl, near])

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
        """Configurations of which is known what was asked for; they stay so."""
        found = self._breakpoints_known()
        if self._limit is not None:
            # Until the next fit little but its own samples moves a crossing: it is not looked up
            # again. The others are not looked up as long as nothing depends on them.
            for place, visits in enumerate(self.visits):
                wanted = place in found or not self._is_open(visits)
                if wanted and place not in self._known and place not in self._crossings:
                    self._crossings[place] = self._crossing(place)
        self._unseen = {}
        for place in found.keys() - self._known.keys():
            if self._limit is None:
                self._known[place] = found[place]
            elif self._crossings[place].is_known:
                is_seen, load = self._seen(place, self._crossings[place].at)
                if is_seen:
                    self._known[place] = found[place] + self._crossings[place].note
                elif load is not None:
                    self._unseen[place] = load

    def _crossing(self, place: int) -> Crossing:
        """What is known of the crossing of the limit."""
        assert self._model is not None
        assert self._limit is not None
        return crossing_of(
            self._model, place, self._grids[place], self._limit, self._wanted, self._crosses
        )

    def _seen(self, place: int, at: float) -> tuple[bool, float | None]:
        """Whether own samples agree with the model where it has the crossing, and if not, the load
        that is missing for it, where there is one.

        The law says where to look, but not for sure what is there: how soft a knee is may be a
        configuration's own. A crossing that no load can show is left to the law.
        """
        assert self._model is not None
        grid, near = np.log(self._grids[place]), 0.5 * math.log1p(self.accuracy)
        if not grid[0] <= at <= grid[-1]:
            return True, None
        x = np.array(self._x)
        own = np.flatnonzero((np.array(self._places) == place) & (np.abs(x - at) <= near))
        if len(own):
            mean, _ = self._model.own_moments(np.full(len(own), place), x[own])
            z = (np.array(self._y)[own] - mean) / np.array(self._noise)[own]
            sigmas = NormalDist().inv_cdf(0.5 + 0.5 * self.confidence)
            if abs(z.sum()) <= sigmas * math.sqrt(len(own)):
                return True, None
        left = self._candidates(place)
        left = left[np.abs(np.log(left) - at) <= near]
        if not len(left):
            return not len(own), None
        return False, float(left[np.argmin(np.abs(np.log(left) - at))])

    def _breakpoints_known(self) -> dict[int, str]:
        """Configurations whose breakpoint is known as was asked for, and what is known of it."""
        model, found = self._model, dict[int, str]()
        if self.accuracy <= 0.0 or model is None:
            return found
        sigmas = NormalDist().inv_cdf(0.5 + 0.5 * self.confidence) * model.widenings
        capacity = model.law_.capacity
        off = sigmas * np.sqrt(capacity.variance)
        half = np.expm1(off)
        low, high = (np.array([math.log(grid[i]) for grid in self._grids]) for i in (0, -1))
        is_lawful = model.weights >= LAWFUL
        for place in np.flatnonzero(is_lawful & (half <= self.accuracy)):
            found[int(place)] = f"breakpoint known to {100 * half[place]:.2g} % {self._sure}"
        for place in np.flatnonzero(is_lawful & (capacity.posterior - off > high)):
            found.setdefault(int(place), f"breakpoint above the range {self._sure}")
        for place in np.flatnonzero(is_lawful & (capacity.posterior + off < low)):
            found.setdefault(int(place), f"breakpoint below the range {self._sure}")
        return found

    def _is_open(self, visits: ConfigurationVisits) -> bool:
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
                note = f"{self._known[place]}, {taken} samples of its own{self._unaimed}"
                found[configuration] = Ending("converged", note)
            elif self._model is not None:
                doubt = math.sqrt(self._model.law_.capacity.variance[place])
                note = f"{ending.note}; unresolved: "
                if self._model.weights[place] < LAWFUL:
                    note += "the law explains too little of the KPI to tell a breakpoint"
                else:
                    factor = math.exp(min(NORMAL_95 * doubt, 20.0))
                    note += f"breakpoint known to a factor of {factor:.3g}"
                note += self._crossings[place].note if place in self._crossings else self._unaimed
                found[configuration] = Ending(ending.outcome, note)
        return found
