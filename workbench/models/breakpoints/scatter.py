"""What a function carries, from repeated readings: how far they scatter, and where they centre.

An oversaturated sample reads capacity directly: what was answered is what can be answered. One that
carried its load reads it by its usage. The readings of all configurations of a target scatter
together,

    y = θ_c - place(s) + β_block + δ(block) + ε                                  (natural logs)

with θ_c the log capacity of configuration c, place(s) what a shape s of overload makes of loss or
usage (`overload.py`), β a deployment's luck, δ a slow drift of the host (correlated over
neighbouring blocks) and ε the window's own noise. It is
a linear mixed model (Searle, Casella & McCulloch 1992): given the standard deviations, θ_c is
generalised least squares; these are integrated out over a grid by their restricted likelihood, so
that few readings give wide intervals (Student's t, in effect) and many give what was seen. A
sample that carried its load bounds θ from below (Tobin 1958); single wild readings are weighed
down as Student-t noise would be (Lange, Little & Taylor 1989).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from workbench.domain import kpis
from workbench.domain.competitors import COMPETITOR
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.breakpoints.overload import EDGE, SHAPES, Shape
from workbench.models.selection import rate_kpi

WINDOW_SD, RESTART_SD, DRIFT_SD = 0.035, 0.015, 0.02
"""Log standard deviations that are thought likely where the host's own are not known, between
the gentle and the rough of METHOD.md 6 and 11: middles of wide priors, not measurements."""
PRIOR_SPREAD = 1.0
"""Log standard deviation of these priors."""
ALIKE = 0.7
"""Correlation of the logarithms of these three: what disturbs a host within a window, neighbours on
its cores above all, disturbs it over minutes as well. So windows that are seen to scatter widen
what a session cannot see, its drift."""
GUESSED_AS = 2.0
"""Measurements that these guesses are worth beside those of `doctor --measure`, so that a host
whose few starts happened to agree is not believed to be without luck."""
KNOWN_SPREAD = 0.2
"""Log standard deviation of a measured one's prior, beside what few measurements leave open: a
host is not the same from day to day."""
DRIFT_BLOCKS = (4.0, 32.0)
"""Blocks over which drift forgets: minutes, where a block is a round of samples. The second is
longer than most sessions, which then see little of it."""
FAR = math.log(2.0)
FAR_SD = 0.2
"""Log standard deviation per unit of log overload beyond `FAR`: that far nobody promises that the
same law still holds."""
USAGE_SD = 0.02
"""Log error of a capacity that is read from usage below it, beside what scatters capacity itself: a
window of a few dozen quota periods states usage to some per cent."""
LEAST_SHARE = 0.2
"""Share of the plateau from which on usage reads capacity: below, what a function does at idle
counts."""
BELIEVED = 0.1
"""Largest log error of the utilisation law with which it is used."""
NEAR_PLATEAU = 0.9
COMPONENTS = frozenset({"source", "sink", COMPETITOR, "host", "workbench"})
"""Keys of `Sample.usage` that are not functions."""
STUDENT = 4.0
"""Degrees of freedom of the windows' noise (METHOD.md 11)."""
_LEVELS = np.linspace(-2.0, 2.0, 5)
"""Standard deviations of the prior at which the grid stands."""
_FEW_LEVELS = np.linspace(-1.8, 1.8, 4)
_GRID = 241
_SHIFTS = 25
_NEGLIGIBLE = 0.002
"""Probability of a shape that is not worth its arithmetic."""


def saturated(sample: Sample, goal: float, kpi: str = kpis.THROUGHPUT) -> bool:
    """Whether an open-loop sample lost more than the goal and its throughput fell short."""
    shortfall = 1.0 - sample.kpis[kpi].value / sample.point.wl
    loss = (sample.kpi(kpis.LOSS) or 0.0) / 100.0 if kpis.LOSS in sample.kpis else shortfall
    return loss > goal and shortfall > max(goal, EDGE)


@dataclass(frozen=True)
class CapacityReading:
    """One sample's word on a configuration's log capacity: exact, or only that it lies above."""

    configuration: Configuration
    block: int
    log_wl: float
    value: float | None
    """Log throughput; None where the load was carried."""
    share: float | None = None
    """CPU of the busiest function over that at its plateau, of a load that was carried; `log_wl` is
    then what was carried."""

    @property
    def exact(self) -> bool:
        return self.value is not None or self.share is not None


@dataclass(frozen=True)
class Posterior:
    """Log capacity of a configuration: the load whose loss stands at the goal.

    `densities` has the shape (shapes, grid); `sd` is that of one sample around it.
    """

    grid: Floats
    densities: Floats
    sd: float
    shapes: Sequence[Shape]

    def quantiles(self, probabilities: Sequence[float]) -> Floats:
        """Log capacities at these probabilities."""
        density = self.densities.sum(axis=0)
        cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        found: Floats = np.interp(np.array(probabilities) * cumulative[-1], cumulative, self.grid)
        return found

    @property
    def odds(self) -> Floats:
        """Probability of each shape."""
        mass = self.densities.sum(axis=1)
        found: Floats = mass / mass.sum()
        return found

    def draws(self, count: int) -> list[tuple[Shape, float]]:
        """Shapes and log capacities at even probabilities, shape by shape."""
        cumulative = np.cumsum(self.densities)
        wanted = cumulative[-1] * (np.arange(count) + 0.5) / count
        shape, place = np.unravel_index(np.searchsorted(cumulative, wanted), self.densities.shape)
        return [(self.shapes[k], float(self.grid[i])) for k, i in zip(shape, place, strict=True)]

    def moved(self, shifts: Sequence[Floats]) -> Posterior:
        """The posterior of a place that lies, for each shape, by one of these equally likely
        shifts above the capacity."""
        likely = [k for k, odds in enumerate(self.odds) if odds >= _NEGLIGIBLE]
        lowest = min(float(np.min(shifts[k])) for k in likely)
        highest = max(float(np.max(shifts[k])) for k in likely)
        grid = np.linspace(self.grid[0] + lowest, self.grid[-1] + highest, 2 * _GRID)
        densities = np.zeros((len(self.shapes), grid.size))
        for k in likely:
            each = [
                np.interp(grid - by, self.grid, self.densities[k], 0.0, 0.0) for by in shifts[k]
            ]
            densities[k] = np.mean(each, axis=0)
        return replace(self, grid=grid, densities=densities)


def evenly(low: float, high: float) -> Floats:
    """Shifts that lie evenly likely between two."""
    if high - low < 1e-9:
        return np.array([low])
    found: Floats = low + (high - low) * (np.arange(_SHIFTS) + 0.5) / _SHIFTS
    return found


@dataclass(frozen=True)
class _Deviations:
    """Grid of standard deviations: arrays of the same length, with their log prior."""

    window: Floats
    restart: Floats
    drift: Floats
    blocks: Floats
    log_prior: Floats

    @property
    def total(self) -> Floats:
        return np.sqrt(self.window**2 + self.restart**2 + self.drift**2)


def _middles(noise: HostNoise | None, kpi: str) -> list[tuple[float, float]]:
    """Median and log standard deviation of the priors of window, restart and drift."""
    guesses = (WINDOW_SD, RESTART_SD, DRIFT_SD)
    if noise is None:
        return [(sd, PRIOR_SPREAD) for sd in guesses]
    known = (noise.window_sd, noise.restart_sd, noise.drift_sd)
    counts = (noise.samples, noise.deployments, noise.deployments)
    found = []
    for sd, count, guess in zip(known, counts, guesses, strict=True):
        if kpi not in sd or count < 1:
            found.append((guess, PRIOR_SPREAD))
            continue
        variance = (count * sd[kpi] ** 2 + GUESSED_AS * guess**2) / (count + GUESSED_AS)
        found.append((math.sqrt(variance), math.hypot(KNOWN_SPREAD, math.sqrt(0.5 / count))))
    return found


def unseen_sd(noise: HostNoise | None, *, drift_only: bool = False) -> float:
    """Log standard deviation of a sample before any was seen to scatter, or of its slow part."""
    sds = [sd for sd, _ in _middles(noise, kpis.THROUGHPUT)]
    return sds[-1] if drift_only else math.hypot(*sds)


def _deviations(noise: HostNoise | None, kpi: str) -> _Deviations:
    middles, spreads = np.array(_middles(noise, kpi)).T
    alike = 0.0 if noise is not None and kpi in noise.window_sd else ALIKE
    precision = np.linalg.inv(np.eye(3) * (1.0 - alike) + alike)
    cells = product(_LEVELS, _FEW_LEVELS, _FEW_LEVELS, DRIFT_BLOCKS)
    levels = np.array(list(cells)).T
    z, blocks = levels[:3], levels[3]
    window, restart, drift = middles[:, None] * np.exp(spreads[:, None] * z)
    log_prior = -0.5 * np.sum(z * (precision @ z), axis=0)
    return _Deviations(window, restart, drift, blocks, log_prior)


def centre(
    readings: Sequence[CapacityReading],
    noise: HostNoise | None = None,
    kpi: str = kpis.THROUGHPUT,
    *,
    goal: float = 0.0,
    shapes: Sequence[Shape] = SHAPES,
) -> Mapping[Configuration, Posterior]:
    """Posterior log capacity of every configuration that has an exact reading."""
    exact = [r for r in readings if r.exact]
    if not exact:
        return {}
    names = list(dict.fromkeys(r.configuration for r in exact))
    member = np.array([[r.configuration == name for name in names] for r in exact], dtype=float)
    grid, told = _deviations(noise, kpi), _told(exact, goal, shapes)
    means, variances, log_weight = _fitted(grid, told, member, shapes)

    slack = np.array([s.blur(np.array([goal]))[0] for s in shapes])
    densities: dict[Configuration, tuple[Floats, Floats, Floats]] = {}
    for k, name in enumerate(names):
        bounds = [r.log_wl for r in readings if r.configuration == name and not r.exact]
        theta, density = _density(
            means[:, :, k],
            variances[:, :, k],
            grid,
            bounds,
            slack,
            member[:, k].sum(),
            log_weight,
        )
        evidence = np.maximum(density.sum(axis=2).T * (theta[1] - theta[0]), 1e-300)
        densities[name] = theta, density, evidence
        log_weight = log_weight + np.log(evidence)
    odds = _odds(log_weight)
    sd = _typical(grid, odds)
    return {
        name: Posterior(theta, ((odds / evidence).T[:, None, :] @ density)[:, 0], sd, shapes)
        for name, (theta, density, evidence) in densities.items()
    }


@dataclass(frozen=True)
class _Told:
    """What exact readings say of log capacity.

    Attributes
    ----------
    by_shape : under each shape, (shapes, readings).
    roughly : under none, (readings,).
    alike : shapes of one width, a mask each, (shapes,).
    own : log error of the readings under these, (readings,) each.
    block : (readings,).
    """

    by_shape: Floats
    roughly: Floats
    alike: Sequence[NDArray[np.bool_]]
    own: Sequence[Floats]
    block: Floats


def _told(exact: Sequence[CapacityReading], goal: float, shapes: Sequence[Shape]) -> _Told:
    x = np.array([r.log_wl for r in exact])
    share = np.array([r.share or 1.0 for r in exact])
    carried = np.array([r.value is None for r in exact])
    y = np.array([x if r.value is None else r.value for r, x in zip(exact, x, strict=True)])
    shortfall = np.maximum(-np.expm1(y - x), 0.0)
    far = FAR_SD * np.maximum(x - y - FAR, 0.0)
    place = np.array(
        [
            np.where(carried, s.carried_place(share)[0], s.overload(shortfall)) - s.goal(goal)
            for s in shapes
        ]
    )
    alike = [np.array([s.width == w for s in shapes]) for w in sorted({s.width for s in shapes})]
    firsts = [shapes[int(np.argmax(one))] for one in alike]
    own = [
        np.where(
            carried,
            np.hypot(USAGE_SD, first.carried_place(share)[1]),
            np.hypot(far, first.blur(shortfall)),
        )
        for first in firsts
    ]
    block = np.array([r.block for r in exact], dtype=float)
    return _Told(x - place, y - np.log(share), alike, own, block)


def _fitted(
    grid: _Deviations, told: _Told, member: Floats, shapes: Sequence[Shape]
) -> tuple[Floats, Floats, Floats]:
    """Least squares, wild readings weighed down in three rounds.

    Parameters
    ----------
    member : 1 where a reading is of a configuration, (readings, configurations).

    Returns
    -------
    Means and variances of θ (H, shapes, configurations), log weights of the grid (H, shapes).
    """
    together = _shared(grid, told.block)
    prior = grid.log_prior[:, None] + np.log([s.prior for s in shapes])
    y = told.roughly
    alone = y - member @ np.array([np.median(y[mine > 0.0]) for mine in member.T])
    typical = max(float(np.median(np.abs(alone))) / 0.6745, WINDOW_SD)
    weights = [_student(alone / np.hypot(typical, o)) for o in told.own]
    log_likelihood = np.empty((grid.window.size, len(shapes)))
    means = np.empty((*log_likelihood.shape, member.shape[1]))
    variances = np.empty_like(means)
    log_weight = prior
    for _ in range(3):
        for mine, o, weight in zip(told.alike, told.own, weights, strict=True):
            likely, mean, variance = _solve(grid, told.by_shape[mine], member, o, weight, together)
            log_likelihood[:, mine], means[:, mine] = likely, mean
            variances[:, mine] = variance[:, None]
        log_weight = log_likelihood + prior
        odds = _odds(log_weight)
        typical = _typical(grid, odds)
        for k, (mine, o) in enumerate(zip(told.alike, told.own, strict=True)):
            chance = odds[:, mine] / max(odds[:, mine].sum(), 1e-300)
            apart = told.by_shape[mine] - means[:, mine] @ member.T
            residual = np.einsum("hd,hdn->n", chance, apart)
            weights[k] = _student(residual / np.hypot(typical, o))
    return means, variances, log_weight


def _odds(log_weight: Floats) -> Floats:
    """Probability of each cell of the grid and shape, of shape (H, shapes)."""
    odds = np.exp(log_weight - log_weight.max())
    found: Floats = odds / odds.sum()
    return found


def _typical(grid: _Deviations, odds: Floats) -> float:
    """Log standard deviation of one sample."""
    return float(np.sqrt(odds.sum(axis=1) @ grid.total**2))


def _student(z: Floats) -> Floats:
    """Weights of residuals in standard deviations, as Student-t noise would have them."""
    weight: Floats = np.minimum((STUDENT + 1.0) / (STUDENT + z * z), 1.0)
    return weight


def _shared(grid: _Deviations, block: Floats) -> Floats:
    """Covariance that readings have by the same block and by the drift between blocks, for every
    cell of the grid: (H, readings, readings)."""
    apart = np.abs(block[:, None] - block[None, :])
    restart, drift = grid.restart[:, None, None] ** 2, grid.drift[:, None, None] ** 2
    found: Floats = restart * (apart == 0.0)
    for blocks in np.unique(grid.blocks):
        alike = grid.blocks == blocks
        found[alike] += drift[alike] * np.exp(-apart / blocks)
    return found


def _solve(
    grid: _Deviations, y: Floats, member: Floats, own: Floats, weight: Floats, together: Floats
) -> tuple[Floats, Floats, Floats]:
    """Generalised least squares for every cell of the grid.

    Parameters
    ----------
    y : (shapes, readings)
    together : what readings share by block and drift, (H, readings, readings)

    Returns
    -------
    Restricted log likelihood (H, shapes), means (H, shapes, configurations) and variances
    (H, configurations) of θ.
    """
    covariance = together.copy()
    index = np.arange(own.size)
    covariance[:, index, index] += grid.window[:, None] ** 2 / weight + own**2
    right = np.concatenate([member, y.T], axis=1)
    # The inverse would take three times as long, and so would its determinant by another way.
    weighted = np.linalg.solve(covariance, np.broadcast_to(right, (len(covariance), *right.shape)))
    root = np.diagonal(np.linalg.cholesky(covariance), axis1=1, axis2=2)
    weighted, weighted_y = weighted[:, :, : member.shape[1]], weighted[:, :, member.shape[1] :]
    information = member.T @ weighted
    variance = np.linalg.inv(information)
    mean = y @ weighted @ variance
    residual = y - mean @ member.T
    weighted_residual = weighted_y - weighted @ mean.transpose(0, 2, 1)
    squares = np.sum(weighted_residual.transpose(0, 2, 1) * residual, axis=2)
    freedom = 2.0 * np.log(root).sum(axis=1) + np.linalg.slogdet(information)[1]
    return (
        -0.5 * (squares + freedom[:, None]),
        mean,
        np.diagonal(variance, axis1=1, axis2=2),
    )


def _density(
    mean: Floats,
    variance: Floats,
    grid: _Deviations,
    bounds: Sequence[float],
    slack: Floats,
    count: float,
    log_weight: Floats,
) -> tuple[Floats, Floats]:
    """Grid of θ, and density there (shapes, H, grid) with the lower bounds worked in.

    Shape by shape: what one of them needs at a time stays in the processor's cache.
    """
    likely = log_weight > log_weight.max() - 12.0
    sd = np.sqrt(variance)
    reach = 6.0 * sd[likely]
    low, high = float(np.min(mean[likely] - reach)), float(np.max(mean[likely] + reach))
    if bounds:
        high = max(high, max(bounds))
    theta = np.linspace(low, high, _GRID)
    shrink = np.minimum(grid.total[:, None] ** 2 / count / variance, 1.0)
    bounded = _bounded(theta, bounds, grid.total, slack)
    scale, log_scale = -0.5 / variance, np.log(sd) + 0.5 * math.log(2.0 * math.pi)
    density = np.empty((len(slack), len(mean), theta.size))
    for k, (of_shape, blur) in enumerate(zip(density, slack, strict=True)):
        np.subtract(theta, mean[:, k, None], out=of_shape)
        of_shape *= of_shape
        of_shape *= scale[:, k, None]
        of_shape -= log_scale[:, k, None]
        if bounds:
            of_shape += shrink[:, k, None] * bounded[blur]
        np.exp(of_shape, out=of_shape)
    return theta, density


def _bounded(
    theta: Floats, bounds: Sequence[float], total: Floats, slack: Floats
) -> dict[float, Floats]:
    """Log probability that capacity θ carried the loads that it did, by how far a shape blurs it:
    (H, grid) each."""
    # Loads are offered again and again, and deviations meet with every memory.
    loads, times = np.unique(bounds, return_counts=True)
    totals, which = np.unique(total, return_inverse=True)
    found = {}
    for blur in np.unique(slack):
        width = np.hypot(totals, blur)[:, None]
        bounded = np.zeros((width.size, theta.size))
        for load, count_of in zip(loads, times, strict=True):
            bounded += count_of * np.log(normal_distribution((theta - load) / width))
        found[float(blur)] = bounded[which]
    return found


def normal_distribution(z: Floats) -> Floats:
    """Distribution function of the normal, kept above 1e-4: no single sample forbids anything."""
    from scipy.special import ndtr

    bounded: Floats = np.maximum(ndtr(z), 1e-4)
    return bounded


def read(samples: Sequence[Sample], goal: float) -> list[CapacityReading]:
    """Readings of open-loop samples of a target: valid ones that state a rate."""
    found = []
    for configuration in dict.fromkeys(s.point.configuration for s in samples):
        own = [s for s in samples if s.point.configuration == configuration and rate_kpi(s)]
        found += _believed(_read(own, goal))
    return found


def _read(samples: Sequence[Sample], goal: float) -> list[CapacityReading]:
    """Of one configuration."""
    tolerated = -math.log1p(-goal)
    broken = [saturated(s, goal, rate_kpi(s) or "") for s in samples]
    name = busiest([s for s, over in zip(samples, broken, strict=True) if over])
    top = plateau(name, samples) if name else 0.0
    found = []
    for s, over in zip(samples, broken, strict=True):
        x = math.log(s.point.wl)
        carried = math.log(s.kpis[rate_kpi(s) or ""].value)
        used = s.usage.get(name) if name else None
        share = used.cpu_share / top if used and top > 0.0 else 0.0
        if over:
            found.append(CapacityReading(s.point.configuration, s.block, x, carried))
        elif share >= LEAST_SHARE:
            found.append(CapacityReading(s.point.configuration, s.block, carried, None, share))
        else:
            # What fell short within the edges of a window was carried only as far as it was.
            bound = min(x, carried + tolerated)
            found.append(CapacityReading(s.point.configuration, s.block, bound, None))
    return found


def _believed(readings: list[CapacityReading]) -> list[CapacityReading]:
    """Usage is believed where some knee makes it point to the capacity that was read."""
    saturated = [r.value for r in readings if r.value is not None]
    used = [r for r in readings if r.share is not None]
    if not saturated or not used:
        return readings
    x, share = np.array([r.log_wl for r in used]), np.array([r.share for r in used])
    at = float(np.median(saturated))
    apart = min(abs(float(np.median(x - s.usage_place(share))) - at) for s in SHAPES)
    if apart <= BELIEVED:
        return readings
    return [replace(r, share=None) for r in readings]


def busiest(samples: Sequence[Sample]) -> str | None:
    """The function with the highest share of its allocation in any sample."""
    highest: dict[str, float] = {}
    for s in samples:
        for name in sorted(set(s.usage) - COMPONENTS):
            highest[name] = max(highest.get(name, 0.0), s.usage[name].cpu_share)
    return max(sorted(highest), key=lambda name: highest[name]) if highest else None


def plateau(name: str, samples: Sequence[Sample]) -> float:
    """Usage of a function at its plateau: the median of the shares within a tenth of the
    highest."""
    shares = np.array([s.usage[name].cpu_share for s in samples if name in s.usage])
    return float(np.median(shares[shares >= NEAR_PLATEAU * shares.max()]))
