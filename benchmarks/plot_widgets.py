"""Compare plot widgets on the figure that the live screen needs.

Runs with whichever of textual-plot and textual-plotext is installed, and with our own canvas. Each
candidate draws the same profile at 100x24: n samples with unequal intervals on log axes, a fitted
curve of 200 points with its band, an interval, two labelled breakpoints and a labelled limit.
Candidates run in a process of their own, so that imports and memory are their own too.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.widget import Widget

CANDIDATES = {
    "own canvas": ("workbench.tui.plots.plot", "workbench"),
    "textual-plot": ("textual_plot", "textual_plot"),
    "textual-plotext": ("textual_plotext", "textual_plotext"),
}
SIZE = (100, 24)
REDRAWS = 40
COUNTS = (60, 200)
LIMIT, KNEE, CAPACITY = 200.0, 512.0, 780.0


def truth(wl: float) -> float:
    return 2 + 0.0004 * wl + (max(0.0, wl - 700) / 150) ** 2 * 3


CURVE = [10 * 160 ** (i / 199) for i in range(200)]
MEAN = [truth(x) for x in CURVE]
LOW, HIGH = [0.8 * y for y in MEAN], [1.25 * y for y in MEAN]


def samples(count: int) -> list[tuple[float, float, float, float, bool]]:
    source = random.Random(7)
    points = [10 * 160 ** source.random() for _ in range(count)]
    return [(x, truth(x), 0.9 * truth(x), 1.3 * truth(x), source.random() > 0.1) for x in points]


def own() -> tuple[Widget, Callable[[int], None]]:
    from workbench.tui.plots.figure import Asked, BreakpointLine, Figure, Fit, Limit, Mark
    from workbench.tui.plots.plot import ProfilePlot

    plot = ProfilePlot(glyphs="braille")
    turn = iter(range(10**6))

    def update(count: int) -> None:
        plot.show(
            Figure(
                (10, 1600 + next(turn) / 1e3),
                tuple(Mark(*sample) for sample in samples(count)),
                Fit(CURVE, MEAN, LOW, HIGH),
                Asked(850, 780, 920),
                (
                    BreakpointLine(CAPACITY, 740, 820, "capacity"),
                    BreakpointLine(KNEE, 480, 560, "knee"),
                ),
                Limit(LIMIT, "SLA p95 <= 200 ms"),
            )
        )

    return plot, update


def textual_plot() -> tuple[Widget, Callable[[int], None]]:
    from textual_plot import HiResMode, PlotWidget

    plot = PlotWidget()

    def logs(values: list[float]) -> list[float]:
        return [math.log10(value) for value in values]

    def update(count: int) -> None:
        plot.clear()  # no log axes: logs are plotted, and ticks would need a formatter of ours
        for values, style in ((LOW, "blue"), (HIGH, "blue"), (MEAN, "green")):
            plot.plot(logs(CURVE), logs(values), style, HiResMode.BRAILLE)
        for valid, marker in ((True, "o"), (False, "x")):
            chosen = [s for s in samples(count) if s[4] is valid]
            x, y = logs([s[0] for s in chosen]), logs([s[1] for s in chosen])
            upper = [math.log10(s[3]) - at for s, at in zip(chosen, y, strict=True)]
            plot.errorbar(x, y, yerr=upper, marker=marker)  # symmetric only
        plot.add_v_line(math.log10(KNEE), "red", "knee")
        plot.add_v_line(math.log10(CAPACITY), "red", "capacity")  # named in the legend only
        plot.plot([1, math.log10(1600)], [math.log10(LIMIT)] * 2, "magenta", HiResMode.BRAILLE)

    return plot, update


def textual_plotext() -> tuple[Widget, Callable[[int], None]]:
    from textual_plotext import PlotextPlot

    plot = PlotextPlot()

    def update(count: int) -> None:
        plt = plot.plt
        plt.clear_figure()
        plt.xscale("log")
        plt.yscale("log")
        for values in (LOW, HIGH, MEAN):  # a band can only be two more lines
            plt.plot(CURVE, values, marker="braille")
        for valid, marker in ((True, "o"), (False, "x")):
            chosen = [s for s in samples(count) if s[4] is valid]
            x, y = [s[0] for s in chosen], [s[1] for s in chosen]
            # `error` centres its bars on the point, so unequal intervals are lines of our own.
            for sample in chosen:
                plt.plot([sample[0]] * 2, [sample[2], sample[3]], marker="|")
            plt.scatter(x, y, marker=marker)
        for at, label in ((KNEE, "knee"), (CAPACITY, "capacity")):
            plt.vertical_line(at)
            plt.text(label, at, 100)
        plt.horizontal_line(LIMIT)
        plt.text("SLA p95 <= 200 ms", 20, LIMIT)
        plot.refresh()

    return plot, update


BUILDERS = {"own canvas": own, "textual-plot": textual_plot, "textual-plotext": textual_plotext}


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def redraws(widget: Widget, update: Callable[[int], None], count: int) -> list[float]:
    class Host(App[None]):
        ENABLE_COMMAND_PALETTE = False

        def compose(self) -> ComposeResult:
            yield widget

    taken: list[float] = []
    async with Host().run_test(size=SIZE) as pilot:
        for _ in range(REDRAWS):
            start = time.perf_counter()
            update(count)
            for part in (widget, *widget.query("*")):
                part.render_lines(part.size.region)
            taken.append(1e3 * (time.perf_counter() - start))
            await pilot.pause()
    return taken


def measure(name: str) -> dict[str, Any]:
    """Everything about one candidate, in this process."""
    import textual.css.query
    import textual.strip  # noqa: F401  # what every screen has loaded anyway

    before, start = resident_mib(), time.perf_counter()
    widget, _ = BUILDERS[name]()
    figures: dict[str, Any] = {
        "import_ms": 1e3 * (time.perf_counter() - start),
        "import_mib": resident_mib() - before,
        "numpy": "numpy" in sys.modules,
    }
    for count in COUNTS:
        widget, update = BUILDERS[name]()
        taken = sorted(asyncio.run(redraws(widget, update, count)))
        figures[f"redraw_{count}"] = statistics.median(taken)
        figures[f"worst_{count}"] = taken[int(0.95 * len(taken))]
    return figures


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    print(
        f"{'':16}{'import ms':>10}{'MiB':>7}{'numpy':>7}"
        + "".join(f"{f'{n} pts ms':>12}{'p95':>7}" for n in COUNTS)
    )
    for name, (module, _) in CANDIDATES.items():
        if find_spec(module.partition(".")[0]) is None:
            print(f"{name:16}not installed")
            continue
        run = subprocess.run(
            [sys.executable, __file__, name], capture_output=True, text=True, check=False
        )
        if run.returncode:
            print(f"{name:16}{run.stderr.strip().splitlines()[-1]}")
            continue
        row = json.loads(run.stdout)
        print(
            f"{name:16}{row['import_ms']:10.0f}{row['import_mib']:7.1f}"
            f"{'yes' if row['numpy'] else 'no':>7}"
            + "".join(f"{row[f'redraw_{n}']:12.1f}{row[f'worst_{n}']:7.1f}" for n in COUNTS)
        )


if __name__ == "__main__":
    main()
