"""What `counters` prints for people: tables, and predicted over measured in terminal cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.cli.tables import terminal_columns, whole
from workbench.domain.answer_tables import AnswerColumn, AnswerTable

MOST_WEIGHTS = 10
"""Counters in the table; `--json` has all."""
WIDTH, HEIGHT = 80, 20


def text_of(answer: dict[str, Any]) -> str:
    """Models, then counters."""
    parts = [_heading(answer), _models(answer), "", *_dropped(answer["dropped"])]
    parts += [
        "",
        f"{answer['kpi']} by counter, the strongest {MOST_WEIGHTS} (Pearson with 95 % bootstrap "
        "interval; what shuffling it adds to the error)",
        _weights(answer["weights"][:MOST_WEIGHTS]),
    ]
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
    return (
        f"{answer['rows']:,} rows of {answer['experiments']} experiments; each is predicted by "
        "models that had not seen its experiment, beside 30 % of rows drawn at random"
    )


def _models(answer: dict[str, Any]) -> str:
    by_row = "seeds" not in answer
    headings = ["model", "MAPE", "within 5 %", "within 10 %", "95 % interval holds", "± about"]
    if by_row:
        headings += ["by row: MAPE", "within 5 %", "within 10 %"]
    else:
        headings += ["least", "most"]
    lines = []
    for row in answer["models"]:
        cells = [row["model"], *map(_share, (row["mape"], row["within_5"], row["within_10"]))]
        cells += [_share(row["coverage"]), _share(_half(row["width"]))]
        if by_row:
            other = row["by_row"]
            cells += map(_share, (other["mape"], other["within_5"], other["within_10"]))
        else:
            cells += [_share(row["mape_low"]), _share(row["mape_high"])]
        lines.append(cells)
    chosen = [row for row in answer["models"] if row.get("chosen")]
    words = [f"{row['model']}: {', '.join(row['chosen'])}" for row in chosen]
    return "\n".join([whole(AnswerTable.of(headings, lines)), *words])


def _dropped(dropped: list[dict[str, str]]) -> list[str]:
    if not dropped:
        return []
    names = "; ".join(f"{one['name']} ({one['why']})" for one in dropped)
    return [f"dropped, as they teach nothing: {names}"]


def _weights(weights: list[dict[str, Any]]) -> str:
    answer = AnswerTable.of(
        ("counter", AnswerColumn("Pearson", "+.2f"), "95 %", "shuffled"),
        (
            (
                one["name"],
                one["pearson"],
                f"{one['low']:+.2f} to {one['high']:+.2f}",
                _share(one["importance"]),
            )
            for one in weights
        ),
    )
    return whole(answer)


def _half(width: float | None) -> float | None:
    """Half of an interval's width that is the same factor up and down."""
    return None if width is None else float((1.0 + width) ** 0.5 - 1.0)


def _share(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{100.0 * value:.1f} %" if abs(value) < 10.0 else f"{100.0 * value:.0f} %"
