"""What `counters` prints for people: tables, and predicted over measured in terminal cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from workbench.cli.tables import laid_out, prose, terminal_columns
from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.counts import counted

MOST_WEIGHTS = 10
"""Counters in the table; `--json` has all."""
CLEAR_DIRECTION = 0.5
"""Rank correlation of a counter and what it does, from which it has one direction."""
WIDTH, HEIGHT = 80, 20


def text_of(answer: dict[str, Any], columns: int | None = None) -> str:
    """Models, then counters, no wider than a terminal of that many columns."""
    words, kpi = partial(prose, columns=columns), answer["kpi"]
    strongest = answer["weights"][:MOST_WEIGHTS]
    parts = [
        words(answer["summary"]["sentence"]),
        "",
        words(_heading(answer)),
        *_models(answer, columns),
        "",
    ]
    if dropped := _dropped(answer["dropped"]):
        parts += [*map(words, dropped), ""]
    parts += [
        words(
            f"{kpi} by counter, the strongest {MOST_WEIGHTS} (Pearson with 95 % bootstrap "
            "interval; importance by partial least squares, 1 being its share; what shuffling it "
            "adds to the error)"
        ),
        laid_out(_weights(strongest), columns),
        *_by_stimulus(strongest, columns),
        "",
        words(f"principal components of the counters, and how {kpi} goes with each"),
        laid_out(_components(answer["components"]), columns),
    ]
    if answer["explained"] is not None:
        parts += ["", *_explained(answer["explained"], answer["weights"], columns)]
    if answer.get("transfer") is not None:
        parts += ["", *map(words, _transfer(answer["transfer"], kpi))]
    return "\n".join(parts)


def figure_text(points: Sequence[dict[str, float]], kpi: str) -> str:
    """Predicted over measured; on the line they are equal."""
    from workbench.tui.plots.canvas import GLYPHS
    from workbench.tui.plots.figure import Figure, Fit, Mark, draw
    from workbench.tui.plots.plot import terminal_glyphs

    ends = [min(p["measured"] for p in points), max(p["measured"] for p in points)]
    marks = tuple(Mark(p["measured"], max(p["predicted"], 0.0), None, None, True) for p in points)
    equal = Fit(ends, ends, ends, ends, label="equal")
    figure = Figure(
        marks=marks, fit=equal, log_x=False, log_y=False, series=("held out",)
    )  # fmt: skip
    glyphs = GLYPHS[terminal_glyphs()]
    canvas = draw(figure, min(terminal_columns() or WIDTH, 120), HEIGHT, glyphs)
    key = "  ".join(figure.key(glyphs))
    lines = ["".join(character for character, _ in row).rstrip() for row in canvas.cells]
    return "\n".join([f"\n{kpi}, predicted (up) over measured (across): ours   {key}", *lines])


def _heading(answer: dict[str, Any]) -> str:
    if "seeds" in answer:
        return (
            f"{answer['rows']} rows learned from, {answer['held_out']} published test rows "
            f"predicted, mean of {answer['seeds']} seeds; ours is chosen on the rows learned from "
            "alone"
        )
    told = (
        f"{answer['rows']:,} rows read, {answer['held_out']:,} of {answer['experiments']} "
        "experiments"
    )
    if not answer["models"]:
        return f"{told}: too few to hold any out"
    return (
        f"{told} predicted, each by models that had not seen its experiment; beside it, 30 % of "
        "the rows drawn at random"
    )


def _models(answer: dict[str, Any], columns: int | None) -> list[str]:
    by_row = "seeds" not in answer
    headings: list[str | AnswerColumn] = [
        AnswerColumn("model", wraps=True),
        "MAPE",
        "median error",
        "within 5 %",
        AnswerColumn("within 10 %", spare=3),
        "95 % interval holds",
        AnswerColumn("half width", spare=2),
    ]
    rest = (
        ("by row: MAPE", "by row: within 5 %", "by row: within 10 %")
        if by_row
        else ("learned from", "MAPE: least", "MAPE: most")
    )
    headings += [AnswerColumn(title, spare=4 + place) for place, title in enumerate(rest)]
    lines = []
    for row in answer["models"]:
        figures = (row[name] for name in ("mape", "median", "within_5", "within_10"))
        cells = [row["model"], *map(_share, figures)]
        cells += [_share(row["coverage"]), _share(_half(row["width"]))]
        if by_row:
            other = row["by_row"]
            cells += map(_share, (other["mape"], other["within_5"], other["within_10"]))
        else:
            cells.append(counted(row["learned_from"], "row"))
            cells += [_share(row["mape_low"]), _share(row["mape_high"])]
        lines.append(cells)
    chosen = [row for row in answer["models"] if row.get("chosen")]
    words = [f"{row['model']}: {', '.join(row['chosen'])}" for row in chosen]
    return [laid_out(AnswerTable.of(headings, lines), columns), *(prose(w, columns) for w in words)]


def _dropped(dropped: list[dict[str, str]]) -> list[str]:
    if not dropped:
        return []
    names = "; ".join(f"{one['name']} ({one['why']})" for one in dropped)
    return [f"dropped, as they teach nothing: {names}"]


def _weights(weights: list[dict[str, Any]]) -> AnswerTable:
    return AnswerTable.of(
        ("counter", AnswerColumn("Pearson", "+.2f"), "95 %", AnswerColumn("PLS (VIP)", ".2f"),
         "error if shuffled"),
        (
            (one["name"], one["pearson"], _ends(one), one["projected"], _share(one["importance"]))
            for one in weights
        ),
    )  # fmt: skip


def _by_stimulus(weights: list[dict[str, Any]], width: int | None) -> list[str]:
    """Correlations under load alone and beside competitors, where there are both."""
    apart = [(one["name"], one["by_load"], one["by_others"]) for one in weights if one["by_load"]]
    if not apart:
        return []
    columns = ("counter", AnswerColumn("alone", "+.2f"), "95 %",
               AnswerColumn("beside others", "+.2f"), "95 %")  # fmt: skip
    rows = [
        (name, load["pearson"], _ends(load), others["pearson"], _ends(others))
        for name, load, others in apart
    ]
    few = any(load["low"] is None or others["low"] is None for _, load, others in apart)
    said = "the same (Pearson) by stimulus" + "; no interval of fewer than three experiments" * few
    return ["", prose(said, width), laid_out(AnswerTable.of(columns, rows), width)]


def _ends(correlation: dict[str, Any]) -> str | None:
    """Of an interval; None of fewer experiments than one can be drawn from."""
    if correlation["low"] is None:
        return None
    return f"{correlation['low']:+.2f} to {correlation['high']:+.2f}"


def _components(components: list[dict[str, Any]]) -> AnswerTable:
    columns = ("component", "of their variance", AnswerColumn("Pearson", "+.2f"),
               AnswerColumn("95 %", spare=1),
               "of the KPI's variance so far", AnswerColumn("mostly", wraps=True))  # fmt: skip
    rows = [
        (
            str(one["number"]),
            _share(one["share"]),
            one["pearson"],
            _ends(one),
            _share(one["told"]),
            ", ".join(one["counters"]),
        )
        for one in components
    ]
    return AnswerTable.of(columns, rows)


def _explained(
    explained: dict[str, Any], weights: list[dict[str, Any]], columns: int | None
) -> list[str]:
    """SHAP beside the importance by shuffling, then by competitor."""
    shuffled = {one["name"]: one["importance"] for one in weights}
    answer = AnswerTable.of(
        ("counter", AnswerColumn("what it counts", wraps=True), "factor", "more of it",
         "error if shuffled"),
        (
            (one["name"], one["says"], _times(one["factor"]), _direction(one["rises"]),
             _share(shuffled.get(one["name"])))
            for one in explained["counters"][:MOST_WEIGHTS]
        ),
    )  # fmt: skip
    said = (
        f"what moved the predictions of ours on {explained['rows']} held-out rows, the strongest "
        f"{MOST_WEIGHTS} (SHAP: the factor that a counter moves them by on average, up or down)"
    )
    lines = [prose(said, columns), laid_out(answer, columns)]
    if beside := explained["beside"]:
        lines += [
            "",
            "beside each competitor, against rows alone at the nearest load",
            laid_out(
                AnswerTable.of(
                    ("competitor", AnswerColumn("counter", wraps=True),
                     AnswerColumn("what it counts", wraps=True), "the counter is", "predicted KPI"),
                    (
                        (one["competitor"], _with_alike(one), one["says"], _times(one["moved"]),
                         _times(one["factor"]))
                        for one in beside
                    ),
                ),
                columns,
            ),
        ]  # fmt: skip
    return lines


def _transfer(found: dict[str, Any], kpi: str) -> list[str]:
    """An unseen function, in sentences."""
    function, rows = found["function"], found["rows"]
    lines = [
        f"{function}, not trained on: {kpi} by {len(found['features'])} counters of "
        f"{', '.join(found['learned_from'])} ({found['learned']} rows)"
    ]
    if len(found["learned_from"]) == 1:
        lines.append("one other function alone: how far functions differ was not learned")
    if found["outside"]:
        lines.append(f"  {found['outside']} of {rows} rows: {found['why_outside']}")
    if found["coverage"] is not None:
        lines.append(
            f"  {rows - found['outside']} of {rows} rows: median error "
            f"{_share(found['median_error'])}, their interval holds {_share(found['coverage'])} "
            f"(half width {_share(_half(found['width']))})"
        )
    lines.append(
        "  if nothing counted as outside, its median error would be "
        f"{_share(found['unguarded_error'])}"
    )
    return lines


def _times(factor: float | None) -> str | None:
    return None if factor is None else f"×{factor:.3g}"


def _with_alike(effect: dict[str, Any]) -> str:
    others = len(effect["alike"])
    return f"{effect['name']} (and {others} that go with it)" if others else str(effect["name"])


def _direction(rises: float | None) -> str:
    """Whether the KPI rises with a counter, by the rank correlation of counter and SHAP value."""
    if rises is None or abs(rises) < CLEAR_DIRECTION:
        return "either way"
    return "raises it" if rises > 0.0 else "lowers it"


def _half(width: float | None) -> float | None:
    """Half of an interval's width that is the same factor up and down."""
    return None if width is None else float((1.0 + width) ** 0.5 - 1.0)


def _share(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{100.0 * value:.1f} %" if abs(value) < 10.0 else f"{100.0 * value:.0f} %"
