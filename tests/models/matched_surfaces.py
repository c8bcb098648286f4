"""Surfaces drawn from the family that each registered model is made for, and seen with noise.

Every draw is log KPI over one parameter and log `wl`, or for the models that take a configuration
at a time over some of them. Where a model has no family of functions (neighbours, support vectors)
it is the smooth surface of a Gaussian process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.models.interpolation import LogInterpolation
from workbench.models.pooled.shapes import FAMILIES, FittedShape

Floats = NDArray[np.float64]
Truth = Callable[[Floats], Floats]
Random = np.random.Generator

EDGE = 1.7
"""Both axes of a cloud go from -1.7 to 1.7: standard deviations of about 1."""
CEILING = math.log(30.0)


@dataclass(frozen=True)
class Drawn:
    """Training samples and others of the same surface; `told` is what the model is told of it."""

    X: Floats
    y: Floats
    noise: Floats
    rows: Floats
    truth: Floats
    seen: Floats
    its_noise: Floats
    told: Mapping[str, float]


@dataclass(frozen=True)
class Family:
    """`truth` draws a surface, `design` samples and test rows of it."""

    truth: Callable[[Random], Truth]
    design: Callable[[Random], tuple[Floats, Floats]]
    noise: tuple[float, float] = (0.05, 0.15)
    told: Mapping[str, float] | None = None

    def draw(self, seed: int) -> Drawn:
        random = np.random.default_rng([20261121, seed])
        truth = self.truth(random)
        X, rows = self.design(random)
        noise, its_noise = (random.uniform(*self.noise, len(some)) for some in (X, rows))
        told = self.told or {}
        most = told.get("ceiling", math.inf)
        y = np.minimum(truth(X) + random.normal(0.0, noise), most)
        seen = np.minimum(truth(rows) + random.normal(0.0, its_noise), most)
        return Drawn(X, y, noise, rows, truth(rows), seen, its_noise, told)


# --- designs


def cloud(n: int) -> Callable[[Random], tuple[Floats, Floats]]:
    """Samples anywhere, and so are the rows that are asked for."""

    def design(random: Random) -> tuple[Floats, Floats]:
        return random.uniform(-EDGE, EDGE, (n, 2)), random.uniform(-EDGE, EDGE, (300, 2))

    return design


def profiled(
    configurations: int, loads: int, low: float, high: float
) -> Callable[[Random], tuple[Floats, Floats]]:
    """Even loads of some configurations; asked for are others between them, of the same ones."""

    def design(random: Random) -> tuple[Floats, Floats]:
        own = np.linspace(-1.0, 1.0, configurations)
        X = np.array([[c, x] for c in own for x in np.linspace(low, high, loads)])
        rows = np.column_stack([random.choice(own, 300), random.uniform(low, high, 300)])
        return X, rows

    return design


# --- surfaces


def polynomial(degree: int) -> Callable[[Random], Truth]:
    def truth(random: Random) -> Truth:
        terms = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i) if i + j]
        size = [math.factorial(i + j) for i, j in terms]
        factors = random.normal(0.0, 1.0, len(terms)) / size
        return lambda X: np.sum(
            [f * X[:, 0] ** i * X[:, 1] ** j for f, (i, j) in zip(factors, terms, strict=True)],
            axis=0,
        )

    return truth


def process(length: float, trend: float = 0.0) -> Callable[[Random], Truth]:
    """A Gaussian process with an RBF kernel, as 200 of its waves (Rahimi & Recht 2007)."""

    def truth(random: Random) -> Truth:
        waves, phases = random.normal(0.0, 1.0 / length, (2, 200)), random.uniform(0.0, 6.3, 200)
        sizes = random.normal(0.0, 1.0, 200) * math.sqrt(2.0 / 200.0)
        slopes = trend * random.normal(0.0, 1.0, 2)
        return lambda X: np.cos(X @ waves + phases) @ sizes + X @ slopes

    return truth


def network(random: Random) -> Truth:
    """Ten nodes in one layer."""
    weights, offsets = random.normal(0.0, 1.0, (2, 10)), random.normal(0.0, 1.0, 10)
    out = random.normal(0.0, 0.5, 10)
    return lambda X: np.tanh(X @ weights + offsets) @ out


def boxes(random: Random) -> Truth:
    """A tree of depth two: a level in each of four boxes."""

    def tree(depth: int, low: list[float], high: list[float]) -> Truth:
        if depth == 0:
            level = random.normal()
            return lambda X: np.full(len(X), level)
        axis = int(random.integers(2))
        cut = low[axis] + random.uniform(0.25, 0.75) * (high[axis] - low[axis])
        under = tree(depth - 1, low, [cut if a == axis else h for a, h in enumerate(high)])
        over = tree(depth - 1, [cut if a == axis else v for a, v in enumerate(low)], high)
        return lambda X: np.where(X[:, axis] < cut, under(X), over(X))

    return tree(2, [-EDGE, -EDGE], [EDGE, EDGE])


KNOTS = profiled(6, 9, -EDGE, EDGE)


def facets(random: Random) -> Truth:
    """Linear between the samples of `KNOTS`."""
    knots, _ = KNOTS(random)
    surface = LogInterpolation().fit(knots, random.normal(0.0, 1.0, len(knots)))
    return surface.predict


def by_configuration(curve: Callable[[Random, float], Truth]) -> Callable[[Random], Truth]:
    """A curve over the load of each of three configurations, breaking at loads of its own."""

    def truth(random: Random) -> Truth:
        curves = {c: curve(random, 20.0 * math.exp(0.7 * c)) for c in (-1.0, 0.0, 1.0)}
        return lambda X: np.sum(
            [np.where(X[:, 0] == c, f(np.exp(X[:, 1])), 0.0) for c, f in curves.items()], axis=0
        )

    return truth


def eq2(random: Random, at: float) -> Truth:
    """Paper B's Eq. 2, both pieces of which meet at the load `at`."""
    level, rate = random.uniform(2.0, 6.0), random.uniform(3.0, 8.0) / at
    rise = random.uniform(0.3, 1.0) * level
    pole = random.uniform(0.2, 0.5) * at
    width = (1.0 - (level + rise) / 100.0) * (at - pole)
    return lambda r: np.log(
        np.where(
            r < at,
            level + rise * np.exp(np.minimum(rate * (r - at), 0.0)),
            100.0 * (1.0 - width / np.maximum(r - pole, at - pole)),
        )
    )


def two_regions(random: Random, at: float) -> Truth:
    """As paper D's delays: offset exponential, and a line above a jump."""
    level, rate = random.uniform(5.0, 10.0), random.uniform(2.0, 5.0) / at
    rise, slope = random.uniform(0.3, 1.0) * level, random.uniform(1.0, 3.0) * level / at
    return lambda r: np.log(
        np.where(
            r < at,
            level + rise * np.exp(np.minimum(rate * (r - at), 0.0)),
            4.0 * level + slope * (r - at),
        )
    )


def quadratics(random: Random) -> Truth:
    """A parabola of log `wl` for each configuration, whose factors are linear in these."""
    fixed, moved = random.normal(0.0, 0.7, 3), random.normal(0.0, 0.5, 3)
    return lambda X: sum(
        (
            (f + m * X[:, 0]) * X[:, 1] ** power
            for power, (f, m) in enumerate(zip(fixed, moved, strict=True))
        ),
        np.zeros(len(X)),
    )


def loss_law(random: Random) -> Truth:
    """The law of `pooled`: one shape, at a capacity that is a power of the parameter."""
    shape = FittedShape.of(FAMILIES[2], np.array([math.log(1000.0), math.log(0.1)]))
    power, offset = random.uniform(0.6, 1.0), random.normal(0.0, 0.3)
    return lambda X: np.minimum(math.log(0.1) + shape(X[:, 1] - offset - power * X[:, 0]), CEILING)


SMOOTH = Family(process(1.0), cloud(80))
MATCHED: Mapping[str, Family] = {
    "catalogue": Family(by_configuration(two_regions), profiled(3, 30, 0.7, 5.0)),
    "curve-fit": Family(by_configuration(eq2), profiled(3, 30, 0.7, 5.0)),
    "elastic-net3": Family(polynomial(3), cloud(80)),
    "gaussian-process": SMOOTH,
    "gaussian-process-a": Family(process(1.0, trend=1.0), cloud(80)),
    "gaussian-process-b": SMOOTH,
    "gradient-boosting": Family(boxes, cloud(150)),
    "interpolation": Family(facets, KNOTS),
    "k-nearest": Family(process(2.0), cloud(80)),
    "lasso1": Family(polynomial(1), cloud(80)),
    "lasso2": Family(polynomial(2), cloud(80)),
    "lasso3": Family(polynomial(3), cloud(80)),
    "multi-lasso": Family(quadratics, profiled(6, 12, -EDGE, EDGE)),
    "neural-network": Family(network, cloud(150)),
    "pooled": Family(loss_law, cloud(80), told={"ceiling": CEILING}),
    "random-forest": Family(boxes, cloud(150)),
    "svr": Family(process(1.0), cloud(150)),
}
