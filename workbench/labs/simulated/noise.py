"""Seeded randomness: the same point gives the same numbers, whatever was measured before it."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from workbench.labs.simulated.options import SimulationOptions

Floats = NDArray[np.float64]


def stream(seed: int, *words: str | int) -> np.random.Generator:
    """A generator of its own for what the words name; the same in every process."""
    text = "\x1f".join(map(str, words)).encode()
    digest = hashlib.blake2b(text, digest_size=16).digest()
    entropy = [seed, *np.frombuffer(digest, dtype="<u4").tolist()]
    return np.random.default_rng(np.random.SeedSequence(entropy))


def drift(options: SimulationOptions, seed: int, block: int, block_s: float) -> float:
    """Log factor of the block with that number on the nominal schedule (AR(1), METHOD.md 11)."""
    if not options.noise:
        return 0.0
    rng = stream(seed, "drift")
    kept = math.exp(-block_s / options.drift_s) if options.drift_s else 0.0
    innovations = rng.normal(0.0, options.drift_sd, block + 1)
    level = float(innovations[0])
    for innovation in innovations[1:]:
        level = kept * level + math.sqrt(1.0 - kept**2) * float(innovation)
    return level


def restart(options: SimulationOptions, seed: int, *start: str | int) -> float:
    """Log factor that a function keeps from one start to the next."""
    if not options.noise:
        return 0.0
    return float(stream(seed, "restart", *start).normal(0.0, options.restart_sd))


def delay(options: SimulationOptions, rng: np.random.Generator) -> float:
    """Log factor on the pure delay of one drive."""
    return float(rng.normal(0.0, options.delay_sd)) if options.noise else 0.0


def window(
    options: SimulationOptions, rng: np.random.Generator, requests: int, rate_rps: float
) -> Floats:
    """Log factors of each request of one drive: the drive's own, and one per half second.

    Parameters
    ----------
    rate_rps : expected requests/s, which says how many requests half a second holds.
    """
    if not options.noise:
        return np.zeros(requests)
    level = rng.normal(0.0, options.window_sd)
    size = max(1, round(0.5 * rate_rps))
    jitter = rng.normal(0.0, options.jitter_sd, requests // size + 1)
    return np.asarray(level + np.repeat(jitter, size)[:requests])
