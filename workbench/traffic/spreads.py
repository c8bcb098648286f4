"""Gaps between packets and sizes of packets, drawn about a mean."""

from __future__ import annotations

import numpy as np

from workbench.measuring.records import Floats

NORMAL_SD = 0.25
"""Standard deviation of a normal one, as a share of the mean; what is below zero is zero."""
PARETO_SHAPE = 2.5
"""Above 2, so that there is a variance, and the mean of a drive is near the one asked for."""


def draw(spread: str, count: int, rng: np.random.Generator) -> Floats:
    """Figures of mean 1 and not below 0, shape (count,).

    `poisson` are the gaps of a Poisson process, which are exponential; uniform ones lie between 0
    and 2. Raises `ValueError` for another name.
    """
    match spread:
        case "constant":
            return np.ones(count)
        case "poisson" | "exponential":
            return rng.exponential(1.0, count)
        case "uniform":
            return rng.uniform(0.0, 2.0, count)
        case "normal":
            return np.maximum(rng.normal(1.0, NORMAL_SD, count), 0.0)
        case "pareto":
            least = (PARETO_SHAPE - 1.0) / PARETO_SHAPE
            return least * (1.0 + rng.pareto(PARETO_SHAPE, count))
    raise ValueError(f"{spread} is no distribution of gaps or sizes")
