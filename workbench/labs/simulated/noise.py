"""Seeded randomness: the same point gives the same numbers, whatever was measured before it.

Two families, by `SimulationOptions.noise_law`. `student` is two-sided: Student's t (or normal)
factors and an Ornstein-Uhlenbeck drift (Uhlenbeck & Ornstein 1930), whose samples are AR(1).
`interference` is one-sided: slow-downs with an exponential tail about a median of none, and a
drift that switches between two levels at random instants (a telegraph process, Kac 1974). Both
have the same standard deviations and the same correlation e^(-t/τ).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.labs.simulated.options import SimulationOptions

Floats = NDArray[np.float64]

STEPS = 20
"""Instants per correlation time at which a drift is drawn; between them it is interpolated."""


def stream(seed: int, *words: str | int) -> np.random.Generator:
    """A generator of its own for what the words name; the same in every process."""
    text = "\x1f".join(map(str, words)).encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    entropy = [seed, *np.frombuffer(digest, dtype="<u4").tolist()]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


class HostDrift:
    """A slow log factor over nominal campaign time; a path of its own per seed.

    The path is drawn from its beginning on, so its value at an instant does not depend on which
    instants were asked before.
    """

    def __init__(self, options: SimulationOptions, seed: int) -> None:
        self._options = options
        self._on = options.noise and options.drift_sd > 0.0
        self._step_s = max(options.drift_s, 1e-3) / STEPS
        self._rng = stream(seed, "drift")
        self._levels: list[float] = []

    def at(self, nominal_s: float) -> float:
        """Log factor on service times at that instant of the nominal schedule."""
        if not self._on:
            return 0.0
        place = nominal_s / self._step_s
        index = int(place)
        while len(self._levels) < index + 2:
            self._levels.append(self._next())
        one, other = self._levels[index : index + 2]
        if self._options.noise_law == "interference":
            return one
        return one + (place - index) * (other - one)

    def _next(self) -> float:
        sd = self._options.drift_sd
        if self._options.noise_law == "interference":
            # A symmetric telegraph that switches at rate λ is correlated as e^(-2λt).
            switches = 0.5 * (1.0 - math.exp(-1.0 / STEPS)) if self._levels else 0.5
            level = self._levels[-1] if self._levels else sd
            return -level if self._rng.random() < switches else level
        shock = float(self._rng.normal(0.0, sd))
        if not self._levels:
            return shock
        kept = math.exp(-1.0 / STEPS)
        return kept * self._levels[-1] + math.sqrt(1.0 - kept**2) * shock


def restart(options: SimulationOptions, seed: int, *start: str | int) -> float:
    """Log factor that a function keeps from one start to the next."""
    if not options.noise:
        return 0.0
    return float(stream(seed, "restart", *start).normal(0.0, options.restart_sd))


def pass_step(options: SimulationOptions, seed: int, block: int) -> float:
    """Log factor of a block: half a step above or below the truth, in turns."""
    if not options.noise or options.pass_step_high <= 0.0:
        return 0.0
    first = 1.0 if stream(seed, "pass").random() < 0.5 else -1.0
    size = stream(seed, "pass", block).uniform(options.pass_step_low, options.pass_step_high)
    return first * (-1.0) ** block * float(size) / 2.0


@dataclass(frozen=True)
class Luck:
    """What one drive has of noise.

    Attributes
    ----------
    service : log factor of each request's service times at the functions, shape (requests,).
    hop : log factor on pure delays.
    stretch : factor on what a response takes longer than at idle.
    lengthen : factor on whole response times.
    """

    service: Floats
    hop: float = 0.0
    stretch: float = 1.0
    lengthen: float = 1.0


def luck(
    options: SimulationOptions, rng: np.random.Generator, requests: int, rate_rps: float
) -> Luck:
    """Of one drive.

    Parameters
    ----------
    rate_rps : expected requests/s, which says how many requests half a second holds.
    """
    if not options.noise:
        return Luck(np.zeros(requests))
    window, tail, hop = (_deviate(options, rng) for _ in range(3))
    odd, second = rng.random(2)
    level = options.window_sd * window
    if second < options.band_share:
        level -= math.log(options.band_factor)
    size = max(1, round(0.5 * rate_rps))
    jitter = rng.normal(0.0, options.jitter_sd, requests // size + 1)
    return Luck(
        level + np.repeat(jitter, size)[:requests],
        options.delay_sd * hop,
        math.exp(options.tail_sd * tail),
        options.outlier_factor if odd < options.outlier_share else 1.0,
    )


def _deviate(options: SimulationOptions, rng: np.random.Generator) -> float:
    """A deviate with standard deviation 1 and median 0."""
    if options.noise_law == "interference":
        return float(rng.exponential() - math.log(2.0))
    if options.freedom:
        return float(rng.standard_t(options.freedom)) / math.sqrt(
            options.freedom / (options.freedom - 2.0)
        )
    return float(rng.normal())
