"""`counters`: somebody's published counters become a table of models, weights and a figure."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from workbench.models.counter_rows import DroppedFeature


class Layout(StrEnum):
    """How files of counters are laid out."""

    TABLE = "table"
    CO_LOCATED = "co-located"


def register(app: typer.Typer) -> None:
    app.command("counters")(counters)


def counters(
    paths: Annotated[list[Path], typer.Argument(help="Files, or one folder of them.")],
    layout: Annotated[
        Layout | None,
        typer.Option("--as", help="Paper C's tables or Yala's rows; default: seen from the files."),
    ] = None,
    kpi: Annotated[str, typer.Option(help="Of tables: the column to predict.")] = "output_rate",
    seeds: Annotated[
        int, typer.Option(min=1, max=50, help="Of Yala's rows: models averaged.")
    ] = 10,
    plot: Annotated[bool, typer.Option("--plot", help="Predicted over measured, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Predict a KPI from low-level counters that others published: models, weights, a figure.

    Experiments are held out whole; rows drawn at random, as papers do, stand beside.

    Example: workbench counters profile/flowmon --plot
    """
    from workbench.cli.context import put, put_json, say
    from workbench.descriptors.co_located_files import is_co_located

    files = _files(paths)
    if layout is None:
        layout = Layout.CO_LOCATED if all(map(is_co_located, files)) else Layout.TABLE
    say(f"{len(files)} file{'s' * (len(files) != 1)}, read as {layout.value}")
    answer = _co_located(files, seeds) if layout is Layout.CO_LOCATED else _table(files, kpi)
    for note in answer["notes"]:
        say(note)
    if json:
        put_json(answer)
        return
    from workbench.cli.counter_words import figure_text, text_of

    put(text_of(answer))
    if plot:
        put(figure_text(answer["points"], str(answer["kpi"])))


def _files(paths: list[Path]) -> list[Path]:
    from workbench.domain.errors import UsageError

    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.is_file() and p.name[0] != ".")
        elif path.exists():
            found.append(path)
        else:
            raise UsageError(
                "there is no such file or folder", where=str(path), remedy="Give one that is there"
            )
    if not found:
        raise UsageError(
            "no file is in this folder",
            where=", ".join(map(str, paths)),
            remedy="Give a folder with tables of counters, or the files themselves",
        )
    return found


def _co_located(files: list[Path], seeds: int) -> dict[str, Any]:
    """Models of co-location on the test rows that were published with the training rows."""
    import numpy as np

    from workbench.descriptors.co_located_files import read_co_located
    from workbench.models.co_located import CO_LOCATED, predicted
    from workbench.models.counter_models import CounterBoosting, OwnCounterModel
    from workbench.models.counter_scores import (
        group_reach,
        misses_of,
        out_of_group,
        score_of,
        weights_of,
    )

    profile, dropped, notes = read_co_located(files)
    taught, true = profile.taught, profile.unseen.y
    reach = group_reach(
        misses_of(taught.y, out_of_group(taught, OwnCounterModel, 0)), taught.groups, 0
    )
    rows: list[dict[str, Any]] = []
    points: list[dict[str, float]] = []
    for method in CO_LOCATED:
        scores, chosen = [], set()
        for seed in range(seeds):
            said, model = predicted(profile, method, seed)
            band = (said * np.exp(-reach), said * np.exp(reach)) if method == "ours" else None
            scores.append(score_of(method, true, said, band))
            chosen.add(getattr(model, "chosen_", ""))
            if method == "ours" and seed == 0:
                points = _points(true, said)
        rows.append(_averaged(scores, sorted(chosen - {""})))
    return {
        "layout": Layout.CO_LOCATED.value,
        "kpi": "throughput",
        "rows": len(taught.y) + len(profile.accelerator),
        "held_out": len(true),
        "seeds": seeds,
        "features": list(taught.features),
        "dropped": _dropped(dropped),
        "models": rows,
        "weights": _plain(weights_of(taught, CounterBoosting, 0)),
        "points": points,
        "notes": [*notes, "SLOMO's extrapolation needs runs that are not published: its figure "
                  "is without it"],
    }  # fmt: skip


def _table(files: list[Path], kpi: str) -> dict[str, Any]:
    """Models of each second's counters, by experiment and by row."""
    from workbench.descriptors.counter_tables import read_counters
    from workbench.domain.errors import UsageError
    from workbench.models.counter_rows import without_idle_features
    from workbench.models.counter_scores import (
        FEWEST_GROUPS,
        compared,
        makers_for,
        weights_of,
    )

    read = read_counters(files, kpi)
    rows, dropped = without_idle_features(read.rows)
    if rows.group_count < FEWEST_GROUPS or not rows.features:
        raise UsageError(
            f"{rows.group_count} experiments with {len(rows.features)} counters that vary, where "
            f"{FEWEST_GROUPS} and one are needed to hold an experiment out",
            where=", ".join(file.name for file in files),
            remedy="Give more files, one for each experiment",
        )
    makers = makers_for(rows.features)
    scores = {name: compared(rows, name, make, 0) for name, make in makers.items()}
    models = [
        {**_plain([score.by_experiment])[0], "by_row": _plain([score.by_row])[0]}
        for score in scores.values()
    ]
    return {
        "layout": Layout.TABLE.value,
        "kpi": kpi,
        "rows": read.read,
        "held_out": len(rows.y),
        "experiments": rows.group_count,
        "features": list(rows.features),
        "dropped": _dropped(dropped),
        "models": models,
        "weights": _plain(weights_of(rows, makers["boosting (SLOMO)"], 0)),
        "points": _points(rows.y, scores["ours"].predicted),
        "notes": list(read.notes),
    }


MOST_POINTS = 400
"""Of the figure."""


def _points(true: Any, said: Any) -> list[dict[str, float]]:
    from workbench.models.estimator import seeded_subset

    kept = seeded_subset(len(true), MOST_POINTS, 0)
    return [{"measured": float(true[i]), "predicted": float(said[i])} for i in kept]


def _averaged(scores: list[Any], chosen: list[str]) -> dict[str, Any]:
    """Means over seeds, with the least and largest error."""
    import numpy as np

    plain = _plain(scores)
    figures = [name for name in plain[0] if name not in ("model", "rows")]
    row: dict[str, Any] = {"model": plain[0]["model"], "rows": plain[0]["rows"]}
    for name in figures:
        values = [one[name] for one in plain]
        row[name] = None if values[0] is None else float(np.mean(values))
    errors = [one["mape"] for one in plain]
    return {**row, "mape_low": min(errors), "mape_high": max(errors), "chosen": chosen}


def _plain(items: list[Any]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(item) for item in items]


def _dropped(features: tuple[DroppedFeature, ...]) -> list[dict[str, str]]:
    return _plain(list(features))
