"""Paper A's tables 3 and 4 and figures 8, 12, 13 and 14, of our grids, as Markdown and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from science import svg, tables

from chain_science.figuring import (
    BASELINE,
    CANARY,
    METHODS,
    PREDICTED,
    RANDOM,
    STEPS,
    WEAKEST,
    Figured,
)
from chain_science.stored import ROOT
from workbench.domain.retraining import ChainComparison

IMAGES = ROOT / "docs" / "images" / "chain-science"


def report(found: Sequence[Figured], name: str) -> str:
    """All of a grid, whose seeds these are."""
    count = f"{len(found)} seeds" if len(found) > 1 else "one seed"
    parts = [
        f"Table 3, RMSE of p95 in ms, five folds, {count}:",
        table_3(found),
        "Table 4:",
        table_4(found),
        figure_8(found, name),
        figure_12(found, name),
    ]
    courses = (figure(found, name, number, way) for number, way in ((13, RANDOM), (14, CANARY)))
    return "\n\n".join([*parts, *(course for course in courses if course)])


def table_3(found: Sequence[Figured]) -> str:
    """Mean over seeds. The average is of those targets that all methods have scores of; below the
    table stands why a method has none."""
    every = [row for one in found for row in one.rows]
    rows, whole, troubles = [], [], []
    for target in dict.fromkeys(row.target for row in every):
        cells: list[float | None] = []
        for method in METHODS:
            own = [r for r in every if (r.target, r.method) == (target, method)]
            trouble = next((r.trouble for r in own if r.trouble), "")
            rmse = [r.scores.rmse for r in own if r.scores]
            cells.append(None if trouble else float(np.mean(rmse)))
            troubles += [f"- {target}, {method}: {trouble}"] * bool(trouble)
        rows.append([target, *("failed" if c is None else tables.number(c) for c in cells)])
        known = [c for c in cells if c is not None]
        whole += [known] * (len(known) == len(METHODS))
    if whole:
        average = map(tables.number, np.mean(whole, axis=0).tolist())
        rows.append([f"average of {len(whole)}", *average])
    text = tables.table(["target", *METHODS], rows)
    return "\n\n".join([text, *(["\n".join(troubles)] if troubles else [])])


def table_4(found: Sequence[Figured]) -> str:
    """RMSE in ms: the chain's own model, and predictions of it; mean over seeds."""
    rows = []
    for chain in _chains(found):
        each = [_of(found, who, chain) for who in PREDICTED]
        direct = float(np.mean([one.baseline_rmse or math.nan for one in each[0]]))
        rmse = [float(np.mean([one.rmse for one in own])) for own in each]
        mape = [float(np.mean([one.mape for one in own])) for own in each]
        rows.append([chain, *map(tables.number, (direct, *rmse, *mape))])
    head = [f"{who}, {what}" for what in ("RMSE", "MAPE") for who in PREDICTED]
    return tables.table(["chain", f"{BASELINE} on the chain, RMSE", *head], rows)


def figure_8(found: Sequence[Figured], name: str) -> str:
    """MAPE of each configuration, sorted by that of the weakest link; the median over seeds."""
    lines: dict[str, list[float]] = {who: [] for who in (BASELINE, *PREDICTED)}
    for chain in _chains(found):
        for first in _of(found, WEAKEST, chain)[0].configurations:
            for who in PREDICTED:
                own = [
                    score
                    for one in _of(found, who, chain)
                    for score in one.configurations
                    if score.configuration == first.configuration
                ]
                lines[who].append(float(np.median([score.mape for score in own])))
                if who == WEAKEST:
                    direct = [score.baseline_mape or math.nan for score in own]
                    lines[BASELINE].append(float(np.median(direct)))
    numbers = range(1, len(lines[WEAKEST]) + 1)
    plot = svg.lines(
        f"{name}: error by configuration",
        "configuration",
        "MAPE of p95 (1 is 100 %)",
        [svg.Series(who, numbers, values) for who, values in lines.items()],
        log_x=False,
    )
    text = [
        [who, *(tables.number(float(q)) for q in np.nanquantile(values, (0.0, 0.5, 1.0)))]
        for who, values in lines.items()
    ]
    table = tables.table(["", "lowest", "median", "highest"], text)
    return f"{save(f'fig8-{name}', plot)}\n\n{table}"


def figure_12(found: Sequence[Figured], name: str) -> str:
    """Median |log error| by decade of the KPI; the median over seeds and chains."""
    by = {who: [(b.low, b) for one in _of(found, who) for b in one.buckets] for who in PREDICTED}
    decades = sorted({low for low, _ in by[WEAKEST]})
    errors = {
        who: [float(np.median([b.log_error for low, b in own if low == d])) for d in decades]
        for who, own in by.items()
    }
    centres = [low * math.sqrt(10.0) for low in decades]
    series = [svg.Series(who, centres, values) for who, values in errors.items()]
    plot = svg.lines(f"{name}: error by response time", "p95, ms", "median |log error|", series)
    rows = [
        [
            f"{decade:g} to {10 * decade:g}",
            str(sum(b.samples for low, b in by[WEAKEST] if low == decade)),
            *(tables.number(values[place]) for values in errors.values()),
        ]
        for place, decade in enumerate(decades)
    ]
    text = tables.table(["p95, ms", "samples", *errors], rows)
    return f"{save(f'fig12-{name}', plot)}\n\n{text}"


def figure(found: Sequence[Figured], name: str, number: int, way: str) -> str:
    """Error against the number of samples; the median over configurations, chains and seeds."""
    what = "whole range" if way == RANDOM else "upper half"
    plots, rows = [], []
    for side, of, predicted in (("a", "the predicted chain", True), ("b", "the real chain", False)):
        courses = [
            c.errors
            for one in found
            for c in one.courses
            if (c.way, c.predicted) == (way, predicted)
        ]
        if not courses:
            return ""
        middles = {who: np.median([c[who] for c in courses], axis=0).tolist() for who in courses[0]}
        series = [svg.Series(who, STEPS, errors) for who, errors in middles.items()]
        title, y = f"{name}: {way} samples of {of}", f"|log error|, {what}"
        plot = svg.lines(title, "samples", y, series, log_x=False)
        plots.append(save(f"fig{number}{side}-{name}", plot))
        rows += [
            [f"{side}: {of}, {who}", *map(tables.number, errors)] for who, errors in middles.items()
        ]
    head = [f"Fig. {number}, {way}, error on the {what}", *map(str, STEPS)]
    return "\n\n".join([*plots, tables.table(head, rows)])


def save(name: str, plot: str) -> str:
    """A figure on disk, and the Markdown that shows it."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{name}.svg").write_text(plot, encoding="utf-8")
    return f"![{name}](images/chain-science/{name}.svg)"


def _chains(found: Sequence[Figured]) -> list[str]:
    return list(dict.fromkeys(one.chain for one in _of(found, WEAKEST)))


def _of(found: Sequence[Figured], who: str, chain: str = "") -> list[ChainComparison]:
    return [
        one
        for each in found
        for one in each.comparisons
        if one.rule == who and chain in ("", one.chain)
    ]
