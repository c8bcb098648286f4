"""What looking after every other sample costs a trial, and what more samples bring it.

    python benchmarks/peeking.py [--trials 20000]

A deployment is sampled until the interval of its median leaves out the limit, at most so many
times (`engine.answers.proving_steps`). Where the limit is the very median no side is right: how
often one is decided nevertheless, and with room to the limit how often the right one, by the law
of what the samples scatter by. What luck a start adds is not among it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping

import numpy as np

from workbench.domain.samples import Estimate
from workbench.domain.trials import REPEATS
from workbench.engine.answers.verification_steps import UNDECIDED_REPEATS, median_of
from workbench.models.base import Floats

KPI = "p95_ms"
SCATTER = 0.02
"""Log standard deviation of p95 of a window on a plateau of the simulated lab."""
OUTLIERS, FACTOR = 0.05, 2.0
"""METHOD.md 11: one window in twenty is off by a factor of two."""
ROOMS = (1.0, 1.05, 1.1)
"""Limit over median."""
MOST = (REPEATS, 9, UNDECIDED_REPEATS)


def normal(random: np.random.Generator, count: int) -> Floats:
    return np.asarray(np.exp(SCATTER * random.standard_normal(count)))


def heavy(random: np.random.Generator, count: int) -> Floats:
    return np.asarray(np.exp(SCATTER * random.standard_t(4.0, count)))


def outlying(random: np.random.Generator, count: int) -> Floats:
    """Slow ones and quick ones alike, so that the median stays."""
    factors = np.array([FACTOR, 1.0, 1.0 / FACTOR])
    odds = [OUTLIERS / 2.0, 1.0 - OUTLIERS, OUTLIERS / 2.0]
    return np.asarray(normal(random, count) * random.choice(factors, count, p=odds))


LAWS: Mapping[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": normal,
    "Student's t, four degrees": heavy,
    "normal, 5 % outliers": outlying,
}


def looked(samples: Floats, limit: float) -> tuple[str, int]:
    """What is said of the median, empty if nothing, and after how many."""
    for count in range(REPEATS, len(samples) + 1, 2):
        told = median_of(KPI, [Estimate(s, s, s) for s in samples[:count].tolist()])
        if told.high < limit:
            return "holds", count
        if told.low > limit:
            return "misses", count
    return "", len(samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20_000)
    trials = parser.parse_args().trials
    print("| law | limit / median | at most | said to hold | said to miss | samples |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, law in LAWS.items():
        for room in ROOMS:
            for most in MOST:
                random = np.random.default_rng(0)
                found = [looked(law(random, most), room) for _ in range(trials)]
                sides = [side for side, _ in found]
                holds, misses = (sides.count(side) / trials for side in ("holds", "misses"))
                used = math.fsum(count for _, count in found) / trials
                print(f"| {name} | {room:g} | {most} | {holds:.1%} | {misses:.1%} | {used:.1f} |")


if __name__ == "__main__":
    main()
