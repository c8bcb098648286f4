"""What a chain adds to its prediction, learned from few samples without forgetting the profiles.

METHOD.md 9: below saturation times add and the order of the functions adds its own; at saturation
the bottleneck alone counts. Both are learned as two coefficients, each configuration's drawn to
what its order shares (`workbench.chains.shrinkage`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from workbench.chains.alignment import Measured
from workbench.chains.capacity import CpuScale
from workbench.chains.correction_models import (
    LITTLE_LEFT,
    UNKNOWN_KAPPA,
    AtSamples,
    Basis,
    CurveForm,
    ProfileTerms,
    SlopeForm,
    TwoTermForm,
)
from workbench.chains.residual import residual_of
from workbench.chains.shrinkage import (
    MISFIT_GUESS,
    MISFITS,
    Belief,
    log_sum,
    log_weights,
    scatter,
    shrunk,
)
from workbench.domain.counts import counted
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.retraining import Reach, TermChange
from workbench.models.base import Floats
from workbench.models.estimator import one_thread
from workbench.models.folds import Ints
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import NORMAL_95

FEWEST_POINTS = 2
"""Operating points below which nothing can be told apart from one sample's luck."""
SHARED_SD = 0.05
"""Log standard deviation that all samples of one deployment share: its start's (METHOD.md 11)."""
CARRIED_SD = 0.05
"""Log standard deviation of what a window carries (METHOD.md 6): where a KPI grows steeply with the
load, that moves it by so many times more."""
CLEAR = 2.0
"""Log evidence by which a correction must beat the prediction as it is: about 7 to 1."""
CPU_OF = "CPU per request of {}"
"""How `TermChange` names a ratio; 1 is what the function needs alone."""
_ENDS = (0.025, 0.5, 0.975)


class CorrectedForecaster:
    """A prediction with what the real chain adds to it, from measured samples.

    With `terms`: R = max(κ·max_i R_i, Σ_i R_i(1) + Δ), METHOD.md 9; where clients think, the
    bottleneck is max_i R_i(κ·n) instead, that of a function which carries 1/κ. Without: log KPI is
    that of the prediction plus an offset and a slope over log load; beyond the highest sample of a
    configuration this may fade, but neither grow nor change its sign, since a ratio that falls
    from 16 to 1 would else fall on below 1. Priors say κ = 1, Δ = 0, offset and slope 0.

    What either leaves over the load is modelled by a Gaussian process where samples that were held
    out ask for it (`workbench.chains.residual`). Where the samples do not speak for a correction
    (log evidence, `CLEAR`) it is not `applied`: forecasts are the prediction's own. What all
    samples of a configuration are off by alike may be luck of one start, and speaks for nothing
    unless configurations agree.

    The 95 % interval holds the uncertainty of the coefficients, the misfit of the curve, the luck
    of a start, and what the prediction is less sure of there than at the samples.

    Parameters
    ----------
    prediction : Forecaster
        What stand-alone profiles say; also says where these extrapolate.
    seen : Measured
        Samples of the chain.
    terms : Terms, optional
        Both terms, from the same profiles.
    shared_sd : float
        What samples of one deployment share, as a log standard deviation; the host's own where it
        is known.
    scales : mapping of str to CpuScale or None, optional
        What the samples say of each function's CPU per request, None where they do not. By those
        `prediction` and `terms` are asked already. Where all were measured, little is left for κ.

    Raises
    ------
    DataError
        With fewer than two operating points, or if the profiles say what is not finite.

    Attributes
    ----------
    applied : whether there is anything to add.
    log_odds : log evidence for the correction, over that for the prediction as it is.
    coefficients : all that was learned, of shape (k,).
    """

    def __init__(
        self,
        prediction: Forecaster,
        seen: Measured,
        terms: ProfileTerms | None = None,
        *,
        shared_sd: float = SHARED_SD,
        scales: Mapping[str, CpuScale | None] | None = None,
    ) -> None:
        self.kpi = prediction.kpi
        scales = scales or {}
        self.scales = {name: scale for name, scale in scales.items() if scale is not None}
        all_known = bool(scales) and len(self.scales) == len(scales)
        self.prediction, self.seen, self.shared_sd = prediction, seen, shared_sd
        table = seen.table
        said = prediction.forecast(seen.points)
        points = len(np.unique(table.points))
        if points < FEWEST_POINTS:
            raise DataError(
                f"{counted(len(seen), 'sample')} at {points} operating point cannot "
                f"tell what the chain adds",
                where=f"{table.target}, {self.kpi}",
                remedy=f"Measure at {FEWEST_POINTS} loads at least",
            )
        if not np.isfinite(said.mean).all():
            raise DataError("the prediction is not finite", where=f"{table.target}, {self.kpi}")
        # A part of a table keeps the numbers of the whole; the fit counts from 0.
        _, first = np.unique(table.configurations, return_index=True)
        self._number = {seen.points[place][0]: k for k, place in enumerate(first)}
        self._reach = {
            configuration: max(wl for c, wl in seen.points if c == configuration)
            for configuration in self._number
        }
        form: CurveForm = (
            SlopeForm(prediction, self._ends)
            if terms is None
            else TwoTermForm(terms, seen, self.kpi, LITTLE_LEFT if all_known else UNKNOWN_KAPPA)
        )
        basis = form.lay(seen.points)
        self._form = form
        noise = table.noise
        if terms is not None and terms.think_ms:
            noise = np.hypot(noise, CARRIED_SD * np.maximum(_steepness(seen) - 1.0, 0.0))
        with one_thread():
            self._fit = shrunk(
                AtSamples(form, basis, table.ceiling), table.y, noise, table.configurations
            )
        self.log_odds = self._fit.log_evidence - _evidence_as_it_is(
            table.y - np.minimum(said.mean, table.ceiling),
            noise,
            table.configurations,
            shared_sd,
        )
        self.applied = self.log_odds >= CLEAR

        numbers = self._numbers(seen.points)
        curve, _, active = self._curves(basis, numbers)
        left = table.y - curve[1]
        self._residual = residual_of(table.X[:, -1], numbers, table.points, left, noise)
        known = np.concatenate([b.first for b in (self._fit.new, *self._fit.own)])
        self._form = form.within(float(known.min()), float(known.max()))
        # What the bottleneck's profile is off by, κ has taken up, at loads where it was active.
        taught = active > 0.5
        self._taught_sd = tuple(
            float(np.median(side[taught])) if taught.any() else 0.0 for side in said.sd
        )

    @property
    def changes_anything(self) -> bool:
        """Whether it says anything but what the profiles say."""
        return self.applied or any(scale.differs_from(1.0) for scale in self.scales.values())

    @property
    def method(self) -> str:
        return self._form.name

    @property
    def coefficients(self) -> Floats:
        fit = self._fit
        middles = [_middle(belief) for belief in (fit.common, *fit.own)]
        head = [float(self.applied), fit.shape, fit.misfit, *fit.taus]
        tail = [] if self._residual is None else [self._residual.coefficients]
        cpu = [[scale.log, scale.sd, scale.spread] for scale in self.scales.values()]
        return np.concatenate([head, *middles, *tail, *cpu])

    @property
    def reach(self) -> tuple[Reach, ...]:
        """The highest load of each configuration that was sampled."""
        return tuple(Reach(configuration, wl) for configuration, wl in self._reach.items())

    def changes(self) -> tuple[TermChange, ...]:
        """CPU per request of each function, as a ratio to that alone, and each term before and
        after: of the order, then of each configuration."""
        rows = [
            TermChange(
                CPU_OF.format(name),
                None,
                1.0,
                scale.factor,
                *scale.interval,
            )
            for name, scale in self.scales.items()
        ]
        beliefs: list[tuple[Configuration | None, Belief]] = [(None, self._fit.common)]
        beliefs += [(c, self._fit.own[k]) for c, k in self._number.items()]
        for configuration, belief in beliefs:
            for name, unit, before, values in self._form.terms(belief):
                low, middle, high = belief.quantiles(values[:, None], _ENDS)[:, 0]
                after = middle if self.applied else before
                rows.append(
                    TermChange(
                        name, configuration, before, float(after), float(low), float(high), unit
                    )
                )
        return tuple(rows)

    def forecast(self, points: Points) -> Forecast:
        """The prediction with what the chain adds.

        It extrapolates where the prediction does, and above the highest sample: by terms, above
        twice that (`REACH`). A configuration that was not sampled gets what the order shares, and
        a wider interval; the highest load of any counts for it.
        """
        said = self.prediction.forecast(points)
        if not self.applied or not len(points):
            return said
        numbers = self._numbers(points)
        (low, mean, high), spread, active = self._curves(self._form.lay(points), numbers)
        if self._residual is not None:
            left, variance = self._residual.at(np.log([wl for _, wl in points]), numbers)
            low, mean, high = low + left, mean + left, high + left
            spread = variance + self.shared_sd**2
        halves = []
        for side, taught, gap in zip(
            said.sd, self._taught_sd, (mean - low, high - mean), strict=True
        ):
            unsure = np.maximum(np.square(side) - taught**2, 0.0) * active
            halves.append(np.hypot(gap, NORMAL_95 * np.sqrt(spread + unsure)))
        reach = self._ends(points) * self._form.reach
        beyond = np.array([wl for _, wl in points]) > reach * (1.0 + 1e-9)
        ceiling = self.seen.table.ceiling
        return Forecast(
            np.minimum(mean, ceiling),
            np.minimum(mean - halves[0], ceiling),
            np.minimum(mean + halves[1], ceiling),
            said.extrapolates | beyond,
        )

    def carried_to(
        self, prediction: Forecaster, terms: ProfileTerms | None = None
    ) -> CorrectedForecaster:
        """What the order shares, added to another prediction of the same functions.

        Such as one of several instances, which nobody measured: none of its configurations was
        sampled. `terms` are of that prediction, given where this model has some.
        """
        other = copy.copy(self)
        other.prediction, other._number = prediction, {}
        other._form = self._form.carried_to(prediction, terms)
        return other

    def _curves(self, basis: Basis, numbers: Ints) -> tuple[Floats, Floats, Floats]:
        """Ends and median of log KPI (3, m), variance of what is beside it, bottleneck's share."""
        ends = np.empty((3, len(numbers)))
        active = np.empty(len(numbers))
        for number in np.unique(numbers):
            rows = numbers == number
            belief = self._fit.new if number < 0 else self._fit.own[number]
            own = tuple(column[rows] for column in basis)
            first, second = belief.first[:, None], belief.second[:, None]
            curve = self._form.curve(first, second, self._fit.shape, own)
            curve = np.minimum(curve, self.seen.table.ceiling)
            ends[:, rows] = belief.quantiles(curve, _ENDS)
            active[rows] = belief.weight @ self._form.bottleneck(first, second, own)
        spread = np.full(len(numbers), self._fit.misfit**2 + self.shared_sd**2)
        return ends, spread, active

    def _numbers(self, points: Points) -> Ints:
        """The number of each point's configuration, -1 for one that was not sampled."""
        return np.array([self._number.get(c, -1) for c, _ in points], dtype=np.int64)

    def _ends(self, points: Points) -> Floats:
        """The highest load that was sampled in each point's configuration, else in any."""
        highest = max(self._reach.values())
        return np.array([self._reach.get(c, highest) for c, _ in points])


def _steepness(seen: Measured) -> Floats:
    """Largest |slope| of log KPI over log load, to either neighbour of a sample, of shape (n,)."""
    table, found = seen.table, np.zeros(len(seen))
    for number in np.unique(table.configurations):
        own = np.flatnonzero(table.configurations == number)
        own = own[np.argsort(table.X[own, -1], kind="stable")]
        step = np.diff(table.X[own, -1])
        slope = np.abs(np.diff(table.y[own])) / np.where(step > 0.0, step, np.inf)
        found[own[1:]] = slope
        found[own[:-1]] = np.maximum(found[own[:-1]], slope)
    return found


def _middle(belief: Belief) -> Floats:
    """Medians of both coefficients, of shape (2,)."""
    both = np.column_stack([belief.first, belief.second])
    return np.asarray(belief.quantiles(both, (0.5,))[0])


def _evidence_as_it_is(gap: Floats, sd: Floats, groups: Ints, shared_sd: float) -> float:
    """Log evidence for the prediction as it is, which misses the samples by `gap` (n,)."""
    luck = np.linspace(-4.0, 4.0, 61)
    weight = -0.5 * np.square(luck) - log_sum(-0.5 * np.square(luck))
    found = []
    for misfit, prior in zip(MISFITS, log_weights(MISFITS, MISFIT_GUESS), strict=True):
        total = float(prior)
        for group in np.unique(groups):
            own = groups == group
            apart = gap[own] - shared_sd * luck[:, None]
            total += log_sum(weight + scatter(apart, sd[own], misfit).sum(axis=1))
        found.append(total)
    return log_sum(np.array(found))
