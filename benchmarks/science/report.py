"""Figures and tables of ours for those of paper B, and docs/science.md.

Figures 5, 9, 10, 12, 13 and Tables 2, 3 are made of the same plays and scores as the comparison;
errors are RMSE of log KPI where paper B has per cent. Every table stands in
`benchmarks/results/science/tables.md`, and a few on the page too: text between a pair of markers
`<!-- bench-science: NAME -->` ... `<!-- end -->` is replaced, the rest is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from science import judging, playing, tables
from science.comparing import SAME, Compared
from science.playing import Curve
from science.plays import UNIFORM, Player, budgets, stages
from science.stored import ROOT, Store
from science.svg import Series, boxes, lines

PAGE = ROOT / "docs" / "science.md"
IMAGES = ROOT / "docs" / "images" / "science"
END = "<!-- end -->"
TABLES = ROOT / "benchmarks" / "results" / "science" / "tables.md"
HEURISTIC = "heuristic"
SAMPLES, ERROR = "samples", "RMSE of log KPI"
MOST_FIGURE = 3_000
"""Samples up to which figures go."""


def publish(sections: Mapping[str, str], page: Path = PAGE, every: Path = TABLES) -> None:
    """Each text between its markers, on the page where it has them, and among all tables."""
    tables_text, text = (path.read_text(encoding="utf-8") for path in (every, page))
    for name, section in sections.items():
        begin = f"<!-- bench-science: {name} -->"
        block = f"{begin}\n{section}\n{END}"
        if begin not in tables_text:
            tables_text += f"\n## {name}\n\n{begin}\n{END}\n"
        pattern = re.compile(re.escape(begin) + r".*?" + re.escape(END), flags=re.DOTALL)
        tables_text, text = (
            pattern.sub(lambda _, block=block: block, one, count=1) for one in (tables_text, text)
        )
    every.write_text(tables_text, encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def save(name: str, svg: str) -> str:
    """A figure on disk, and the Markdown that shows it."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{name}.svg").write_text(svg, encoding="utf-8")
    return f"![{name}](../../../docs/images/science/{name}.svg)"


def of_curves(name: str, curves: Sequence[Curve]) -> Series:
    """Median and quartiles of seeds at the budgets that half of them have."""
    by_budget: dict[int, list[float]] = {}
    for curve in curves:
        for samples, score in zip(curve.samples, curve.scores, strict=True):
            by_budget.setdefault(samples, []).append(score.rmse)
    kept = {n: e for n, e in sorted(by_budget.items()) if 2 * len(e) >= len(curves)}
    spread = [tables.quartiles(errors) for errors in kept.values()]
    return Series(
        name,
        list(kept),
        [middle for _, middle, _ in spread],
        [low for low, _, _ in spread],
        [high for _, _, high in spread],
    )


def figure_5(store: Store, name: str) -> str:
    """Error of the ten best models against uniform sampling's number of samples, without `svr`."""
    judged = playing.judge(name)
    models = [m for m in judging.models() if m != "svr"]
    nothing = playing.Goals(0.0, dict.fromkeys(models, 0.0))
    curves = playing.curves_kept(store, name, UNIFORM, 0, models, nothing, MOST_FIGURE)
    series = [of_curves(model, [curve]) for model, curve in curves.items()]
    series.sort(key=lambda one: one.y[-1] if one.y else np.inf)
    title = f"{judged.problem.name}: the ten best models but svr on uniform samples"
    return save(f"fig5-{name}", lines(title, SAMPLES, ERROR, series[:10]))


def figure_9(name: str) -> str:
    """Final error against samples, by the model behind dRMSE and its threshold."""
    from workbench import plugins
    from workbench.domain.campaign import SamplingPlan

    judged = playing.judge(name)
    given = judged.problem
    series = []
    for model in ("interpolation", "gaussian-process"):
        counts, errors = [], []
        for epsilon in (0.3, 0.1, 0.03):
            plan = SamplingPlan("bisection", max_samples=20, epsilon=epsilon, model=model)
            kind = plugins.load("samplers", "bisection")
            # Every sixth configuration: a GP per sample and configuration takes its time.
            chosen = given.configurations[::6]
            space = given.space(0, chosen)
            sampler = kind(space, plan, model_factory=plugins.load("models", model))
            points = []
            while (ask := sampler.ask()) is not None:
                points.append((ask.configuration, ask.wl, ask.repetition))
                draw = {"draw": "train-0", "repetition": ask.repetition}
                sampler.tell([given.measure(ask.configuration, ask.wl, **draw)])
            own = {given.configurations.index(c) for c in chosen}
            keep = np.isin(judged.test.configurations, list(own))
            table = judged.table(points, "train-0")
            final = judging.fitted_to(judging.factory("interpolation")(), table)
            predicted = final.fit(table.X, table.y, table.noise).predict(judged.test.X[keep])
            floor, ceiling = judging.log_kpi(given.kpi, 0.0), table.ceiling
            error = np.clip(predicted, floor, ceiling) - judged.test.y[keep]
            counts.append(len(points) / len(chosen))
            errors.append(float(np.sqrt(np.mean(error**2))))
        order = np.argsort(counts)
        series.append(
            Series(f"dRMSE by {model}", [counts[i] for i in order], [errors[i] for i in order])
        )
    title = f"{name}: the model behind dRMSE, thresholds 0.3, 0.1, 0.03"
    svg = lines(title, "samples per configuration", ERROR, series, log_x=False, log_y=False)
    return save(f"fig9-{name}", svg)


def figure_10(name: str, most: int) -> str:
    """Change of RMSE as the heuristic goes on, of Delaunay in logs from budget to budget. Its stop
    criterion is another function, `sampling.surface.change_of_rmse`."""
    judged = playing.judge(name)
    player = Player(judged.problem, HEURISTIC, 0)
    before, counts, changes = None, [], []
    for _, points in stages(judged.problem, player, 0, most):
        table = judged.table(points, "train-0")
        model = judging.fitted_to(judging.factory("interpolation")(), table)
        model.fit(table.X, table.y, table.noise)
        if before is not None:
            rmse = [np.sqrt(np.mean((m.predict(table.X) - table.y) ** 2)) for m in (before, model)]
            counts.append(len(points))
            changes.append(max(abs(float(rmse[0] - rmse[1])), 1e-4))
        before = model
    title = f"{name}: |dRMSE| of Delaunay in logs on the heuristic's samples"
    svg = lines(title, SAMPLES, "|dRMSE|", [Series("dRMSE", counts, changes)])
    return save(f"fig10-{name}", svg)


def figure_12(found: Compared) -> list[str]:
    """Samplers against uniform sampling, by final model."""
    plan, shown = found.plan, []
    for model in plan.models:
        series = [
            of_curves(sampler, found.curves[sampler, model])
            for sampler in sorted(plan.samplers, key=lambda s: (s != UNIFORM, s))
        ]
        error = found.reference[1]
        svg = lines(
            f"{plan.name}: samplers with {model}", SAMPLES, ERROR, series,
            limit=("1.1 x reference", playing.REACHED * error),
        )  # fmt: skip
        shown.append(save(f"fig12-{plan.name.replace(':', '-')}-{model}", svg))
    return shown


def needs_boxes(found: Compared) -> str:
    """Samples to the reference by sampler, with each its own best model."""
    plan = found.plan
    groups = {
        sampler: [n for n, _ in found.needs(sampler, found.best(sampler), found.reference[1])]
        for sampler in sorted(plan.samplers, key=lambda s: (s != UNIFORM, s))
    }
    svg = boxes(f"{plan.name}: samples to 1.1 x the reference error", SAMPLES, groups)
    return save(f"needs-{plan.name.replace(':', '-')}", svg)


def figure_13(store: Store, name: str, most: int) -> str:
    """Final models on what the heuristic sampled."""
    known = judging.models()
    wanted = ("k-nearest", "gaussian-process-b", "interpolation", "curve-fit", "pooled")
    models = [m for m in wanted if m in known]
    nothing = playing.Goals(0.0, dict.fromkeys(models, 0.0))
    curves = playing.curves_kept(store, name, HEURISTIC, 0, models, nothing, most)
    series = [of_curves(model, [curve]) for model, curve in curves.items()]
    title = f"{name}: models on the heuristic's samples"
    return save(f"fig13-{name}", lines(title, SAMPLES, ERROR, series))


def picking_order(name: str, most: int) -> str:
    """Tables 2 and 3: which values the heuristic has sampled, and what that buys."""
    judged = playing.judge(name)
    given = judged.problem
    player = Player(given, HEURISTIC, 0)
    rows = []
    for budget in budgets(most):
        count = player.upto(budget)
        points = [
            (given.configurations[place], wl, again) for place, wl, again, _ in player.asks[:budget]
        ]
        if not points:
            break
        table = judged.table(points, "train-0")
        scores = {m: judged.score(judging.factory(m)(), table) for m in SAME}
        best = min(scores, key=lambda m: scores[m].rmse)
        values = [_values(points, column.key) for column in judged.columns[:-1]]
        error = scores[best]
        rows.append(
            [*values, f"{count:,}", best, tables.number(error.rmse), tables.number(error.rmse_kpi)]
        )
        if count < budget:
            break
    head = [c.key.rpartition(".")[2] for c in judged.columns[:-1]]
    return tables.table([*head, SAMPLES, "best model", "RMSE (log)", "RMSE (%)"], rows)


def _values(points: Sequence[judging.Point], key: str) -> str:
    seen = {({**c.resources, **c.workload})[key] for c, *_ in points}
    texts = [v if isinstance(v, str) else f"{v:g}" for v in sorted(seen)]
    return ", ".join(texts) if len(texts) <= 4 else f"{texts[0]} ... {texts[-1]} ({len(texts)})"
