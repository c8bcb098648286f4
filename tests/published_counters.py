"""Small files in the layouts that others publish, made here: no row of theirs is in this tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.models.counter_models import CounterModel, own_families


class LineModel(CounterModel):
    """Ours where it is a line over the counters as they are: it takes no time to choose."""

    chosen_ = "line"

    def _made(self, x: Any, y: Any, groups: Any) -> Any:
        return own_families(self.random_state, x.shape[1])["line"]().fit(x, y)


class QuadraticModel(CounterModel):
    """Ours where it is a quadratic ridge in logs, for counters that are no straight line."""

    chosen_ = "quadratic"

    def _made(self, x: Any, y: Any, groups: Any) -> Any:
        return own_families(self.random_state, x.shape[1])["quadratic"]().fit(x, y)


EVENTS = ("instructions", "cache-references", "LLC-loads", "cycles", "mem-stores")


def experiment(path: Path, number: int, seconds: int = 40) -> Path:
    """A table as paper C's: seconds of one experiment of a bridge that slows with its misses.

    Each experiment has a level of its own, so that its seconds are nearly copies of each other;
    `cycles` repeats `instructions` and `mem-stores` never counts.
    """
    random = np.random.default_rng(number)
    lines = [
        ",".join(["", "input_rate", "output_rate", "latency", *(f"bridge_{e}" for e in EVENTS)])
    ]
    level = 200.0 * (1 + number)
    for second in range(seconds):
        rate = level * (1.0 + 0.02 * random.standard_normal())
        loads = 900.0 * rate * (1.0 + 0.1 * np.sin(number)) * (1 + 0.01 * random.standard_normal())
        work = 5e6 + 3e3 * rate * (1.0 + 0.02 * random.standard_normal())
        figures = (rate, rate, 10.0 + rate / 50.0, work, loads * random.uniform(1.5, 1.9), loads)
        lines.append(
            ",".join([str(second), *(repr(float(f)) for f in figures), repr(2.0 * work), "0.0"])
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def experiments(folder: Path, count: int = 6, seconds: int = 40) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [experiment(folder / f"exp-{n}.csv", n, seconds) for n in range(count)]


def co_located(folder: Path, count: int = 40) -> Path:
    """A folder as Yala's: a function that slows with its flows and its competitors' reads, and with
    an accelerator that takes one after the other."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)

    def rows(flows: np.ndarray) -> np.ndarray:
        reads = random.uniform(5e8, 1.5e9, len(flows))
        size = random.uniform(0.1, 12.0, len(flows))
        memory = 1500.0 * flows**-0.08 * np.exp(-0.2 * reads / 1e9 - 0.01 * size)
        cached = 0.05 * reads * (1.0 + 0.1 * np.sin(np.arange(len(flows))))
        counters = (reads / 1e9, 2.3 * reads, cached, 0.02 * reads, reads, 0.3 * reads, size)
        columns = (flows, np.full(len(flows), 1518.0), *counters, memory)
        return np.column_stack(columns)

    one = rows(np.full(count, 16384.0))
    many = rows(np.round(random.uniform(500.0, 30_000.0, count)))
    test = rows(np.full(24, 16384.0))
    matches, others = random.uniform(100.0, 700.0, 24), random.choice([0.0, 0.002], 24)
    test[:, -1] = np.minimum(test[:, -1], 1.0 / (2e-4 + 2e-6 * matches + others))
    np.savetxt(folder / "sample_slomo_train", np.vstack([one, one[-1:]]))
    np.savetxt(folder / "sample_yala_mem_train", many)
    np.savetxt(folder / "sample_yala_reg_train", [[300.0, 8e-4], [600.0, 1.4e-3]])
    np.savetxt(folder / "sample_test", np.column_stack([matches, others, test]))
    return folder


def chain_table(path: Path, functions: tuple[str, ...], seconds: int = 40, level: int = 1) -> Path:
    """A table as paper C's of a chain: each function's instructions and loads go with its rate, at
    a cost of its own."""
    random = np.random.default_rng(level)
    names = [f"{f}_{event}" for f in functions for event in ("instructions", "LLC-loads")]
    lines = [",".join(["", "input_rate", "output_rate", "latency", *names])]
    for second in range(seconds):
        rate = 200.0 * level * (1.0 + 0.02 * random.standard_normal())
        figures = [rate, rate, 10.0 + rate / 50.0]
        for place, _ in enumerate(functions):
            cost = (1.0 + 0.1 * place) * (1.0 + 0.01 * random.standard_normal(2))
            figures += [3e3 * rate * cost[0], 900.0 * rate * cost[1]]
        lines.append(",".join([str(second), *(repr(float(f)) for f in figures)]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
