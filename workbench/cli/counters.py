"""`counters`: somebody's published counters become a table of models, weights and a figure."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.completion import chains, sessions_and_recordings
from workbench.cli.counter_explaining import components, explained, transfer
from workbench.cli.option_values import with_values

if TYPE_CHECKING:
    from workbench.models.counter_rows import CounterRows, DroppedFeature


SEEDS = 10
"""Of Yala's rows, models whose predictions are averaged."""


class Layout(StrEnum):
    """How files of counters are laid out."""

    TABLE = "table"
    CO_LOCATED = "co-located"


@dataclass(frozen=True)
class CountersReading:
    """How files or samples are read."""

    layout: Annotated[
        Layout | None,
        typer.Option("--as", help="Layout: Paper C's tables or Yala's rows; default: detected."),
    ] = None
    kpi: Annotated[
        str,
        typer.Option(
            help="What to predict: a table's column (output_rate), a session's KPI (p95, ...)."
        ),
    ] = ""
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=50, help=f"Of Yala's rows: number of models to average; default: {SEEDS}."
        ),
    ] = None


@dataclass(frozen=True)
class CountersOfSession:
    """Counters that stand in a session instead of in files."""

    session: Annotated[
        str,
        typer.Option(
            help="Learn from this session's samples instead of files; needs --function.",
            autocompletion=sessions_and_recordings,
        ),
    ] = ""
    function: Annotated[str, typer.Option(help="A function that --session measured alone.")] = ""
    chain: Annotated[
        str,
        typer.Option(
            help="Predict this chain of --session, or A,B,C in a series, by models of its "
            "functions alone and beside competitors.",
            autocompletion=chains,
        ),
    ] = ""


@dataclass(frozen=True)
class MoreOfCounters:
    """What is asked beyond models and weights."""

    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="SHAP values: which counter moved the predictions (needs the extra `explain`).",
        ),
    ] = False
    unseen: Annotated[
        str | None,
        typer.Option(help="Predict this function by models of the others, not trained on it."),
    ] = None


def register(app: typer.Typer) -> None:
    app.command("counters")(with_values(counters))


def counters(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files, or one folder of them.")
    ] = None,
    of: CountersOfSession = CountersOfSession(),
    reading: CountersReading = CountersReading(),
    more: MoreOfCounters = MoreOfCounters(),
    plot: Annotated[
        bool, typer.Option("--plot", help="Also plot predicted against measured.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Predict a KPI from low-level counters: models, weights, what moves it, a figure.

    Of files that others published, or of a session. Experiments are held out whole; rows drawn at
    random, as papers do, stand beside.

    Example: workbench counters profile/flowmon --plot
    """
    from workbench.cli.context import put, put_json, say
    from workbench.cli.counter_summary import with_summary

    if more.explain:
        from workbench.models.counter_effects import shap_package

        shap_package()  # what is missing is said before anything is learned
    _refuse_what_is_ignored(of, reading, more)
    if of.chain:
        answer = _composed(paths or [], of, reading.kpi, more)
    elif of.session:
        answer = _session(paths or [], of, reading.kpi, more)
    else:
        answer = _published(paths or [], of, reading, more)
    answer = with_summary(answer)
    for note in answer["notes"]:
        say(note)
    if json:
        put_json(answer)
        return
    from workbench.cli.counter_chain_words import chain_text, measured_and_predicted
    from workbench.cli.counter_words import figure_text, text_of
    from workbench.cli.tables import terminal_columns

    put(chain_text(answer) if of.chain else text_of(answer, terminal_columns()))
    points = measured_and_predicted(answer) if of.chain else answer["points"]
    if plot and points:
        put(figure_text(points, str(answer["kpi"])))


def _refuse_what_is_ignored(
    of: CountersOfSession, reading: CountersReading, more: MoreOfCounters
) -> None:
    """Raises `UsageError` of options that say nothing, or nothing of a session."""
    from workbench.domain.errors import UsageError

    if more.unseen is not None and not more.unseen.strip():
        raise UsageError(
            "names no function", where="--unseen", remedy="Name one that is there, or leave it out"
        )
    if of.session and reading.layout:
        raise UsageError("is of files, and a session is read", where="--as", remedy="Leave it out")
    if of.session and reading.seeds is not None:
        raise UsageError(
            "is of Yala's rows, and a session is read", where="--seeds", remedy="Leave it out"
        )


def _session(
    paths: list[Path], of: CountersOfSession, kpi: str, more: MoreOfCounters
) -> dict[str, Any]:
    """Models of the windows of a session's samples of one function alone."""
    from workbench.cli.context import execute, learned_here, session_name
    from workbench.cli.session_counters import counted_of, told_kpi
    from workbench.domain.errors import UsageError
    from workbench.models.counter_transfer import of_own_experiments

    function = of.function or more.unseen
    if paths or not function or (more.unseen or function) != function:
        raise UsageError(
            "a session is read by function, and files are not read beside it",
            where="--session",
            remedy="Write --session NAME --function NAME, or --session NAME --unseen NAME",
        )
    name = told_kpi(kpi or "throughput")
    counted = execute(counted_of(session_name(of.session), function, name, bool(more.unseen)))
    own = counted[function]
    notes = [
        f"{function}: {len(own.rows.y)} windows of {own.window_s:g} s (median) in {own.samples} of "
        f"{own.of} samples"
    ]

    def learned() -> dict[str, Any]:
        found = None
        if more.unseen:
            rows = {name: one.rows for name, one in counted.items()}
            found = transfer(of_own_experiments(rows), more.unseen)
        answer = _compared(own.rows, own.dropped, (name, notes, len(own.rows.y)), more)
        return {"layout": "session", "function": function, **answer, "transfer": found}

    return learned_here(learned)


def _composed(
    paths: list[Path], of: CountersOfSession, kpi: str, more: MoreOfCounters
) -> dict[str, Any]:
    """A chain by models of its functions."""
    from workbench.cli.chain_from_counters import chain_from_counters
    from workbench.cli.context import session_name
    from workbench.cli.session_counters import told_kpi
    from workbench.domain.errors import UsageError

    if not of.session or paths or of.function or more.unseen or more.explain:
        raise UsageError(
            "a chain is composed of a session's functions, and nothing else is asked with it",
            where="--chain",
            remedy="Write --session NAME --chain NAME, or A,B,C, with --kpi, --plot or --json",
        )
    return chain_from_counters(session_name(of.session), of.chain, told_kpi(kpi or "throughput"))


def _published(
    paths: list[Path], of: CountersOfSession, reading: CountersReading, more: MoreOfCounters
) -> dict[str, Any]:
    """Models of files that others published."""
    from workbench.cli.context import learned_here, say
    from workbench.descriptors.co_located_files import is_co_located
    from workbench.domain.errors import UsageError

    if of.function or not paths:
        raise UsageError(
            "there is nothing to read",
            where="FILE…" if not paths else "--function",
            remedy="Name files or a folder, or a function of --session",
        )
    files = _files(paths)
    layout = reading.layout
    if layout is None:
        layout = Layout.CO_LOCATED if all(map(is_co_located, files)) else Layout.TABLE
    say(f"{len(files)} file{'s' * (len(files) != 1)}, read as {layout.value}")
    if layout is Layout.TABLE:
        if reading.seeds is not None:
            raise UsageError(
                "is of Yala's rows, and these are tables", where="--seeds", remedy="Leave it out"
            )
        return learned_here(_table, files, reading.kpi or "output_rate", more)
    if more.unseen:
        raise UsageError(
            "these files have counters of one function's competitors only",
            where="--unseen",
            remedy="Give tables or a session with several functions",
        )
    if reading.kpi not in ("", "throughput"):
        raise UsageError(
            f"is {reading.kpi!r}: Yala's rows have throughput alone",
            where="--kpi",
            remedy="Leave it out",
        )
    return learned_here(_co_located, files, reading.seeds or SEEDS, more)


def _files(paths: list[Path]) -> list[Path]:
    """Those that are named, and of folders their CSV files, or all where there are none."""
    from workbench.cli.context import say
    from workbench.descriptors.counter_tables import few
    from workbench.domain.errors import UsageError

    found: list[Path] = []
    for path in paths:
        try:
            if path.is_dir():
                there = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] != ".")
                tables = [p for p in there if p.suffix.casefold() == ".csv"]
                found += tables or there
                if tables and (others := [p.name for p in there if p not in tables]):
                    say(f"{path}: left out, as no CSV: {few(others)}")
                continue
            regular = stat.S_ISREG(path.stat().st_mode)
        except OSError as error:
            raise UsageError(
                f"cannot be read: {error.strerror}", where=str(path), remedy="Give another file"
            ) from None
        if not regular:  # it is read more than once
            raise UsageError("is no file but a pipe or device", where=str(path),
                             remedy="Write it into a file first")  # fmt: skip
        found.append(path)
    if not found:
        raise UsageError(
            "no file is in this folder",
            where=", ".join(map(str, paths)),
            remedy="Give a folder with tables of counters, or the files themselves",
        )
    return found


def _co_located(files: list[Path], seeds: int, more: MoreOfCounters) -> dict[str, Any]:
    """Models of co-location on the test rows that were published with the training rows."""
    from workbench.cli.context import say
    from workbench.descriptors.co_located_files import read_co_located
    from workbench.models.co_located import all_co_located
    from workbench.models.counter_models import CounterBoosting
    from workbench.models.counter_weights import weights_of

    profile, dropped, notes = read_co_located(files)
    taught = profile.taught
    scores = all_co_located(profile, seeds, say)
    ours = scores[0]
    return {
        "layout": Layout.CO_LOCATED.value,
        "kpi": "throughput",
        "rows": len(taught.y) + len(profile.accelerator),
        "held_out": len(profile.unseen.y),
        "seeds": seeds,
        "features": list(taught.features),
        "dropped": _dropped(dropped),
        "models": [
            {
                **_plain([one.score])[0],
                "learned_from": one.learned_from,
                "by_accelerator": one.by_accelerator,
                "mape_low": one.mape_low,
                "mape_high": one.mape_high,
                "chosen": list(one.chosen),
            }
            for one in scores
        ],
        "weights": _plain(weights_of(taught, CounterBoosting, 0)),
        "components": components(taught),
        "explained": explained(taught, ours.models) if more.explain else None,
        "points": _points(profile.unseen.y, ours.predicted),
        "notes": [*notes, "SLOMO's extrapolation needs runs that are not published: its figure "
                  "is without it"],
    }  # fmt: skip


def _table(files: list[Path], kpi: str, more: MoreOfCounters) -> dict[str, Any]:
    """Models of each second's counters, by experiment and by row."""
    from workbench.cli.context import say
    from workbench.descriptors.counter_functions import files_with, read_by_function
    from workbench.descriptors.counter_tables import read_counters

    own = files_with(files, kpi, more.unseen) if more.unseen else files
    read = read_counters(own, kpi, say)
    found = None
    if more.unseen:  # what it refuses is told before models are compared for minutes
        found = transfer(read_by_function(files, kpi, more.unseen), more.unseen)
    answer = _compared(read.rows, (), (kpi, list(read.notes), read.read), more)
    return {"layout": Layout.TABLE.value, **answer, "transfer": found}


def _compared(
    counted: CounterRows,
    absent: tuple[DroppedFeature, ...],
    told: tuple[str, list[str], int],
    more: MoreOfCounters,
) -> dict[str, Any]:
    """All models on rows held out by experiment and by row.

    Parameters
    ----------
    absent : features that were left out when the rows were read.
    told : KPI, notes, and how many rows were read.
    """
    from workbench.cli.context import say
    from workbench.models.counter_models import CounterBoosting
    from workbench.models.counter_rows import without_idle_features
    from workbench.models.counter_scores import FEWEST_GROUPS, all_compared, curve_words
    from workbench.models.counter_weights import weights_of

    kpi, notes, read = told
    rows, dropped = without_idle_features(counted)
    common = {
        "kpi": kpi,
        "rows": read,
        "held_out": len(rows.y),
        "experiments": rows.group_count,
        "features": list(rows.features),
        "dropped": _dropped((*absent, *dropped)),
        "components": components(rows),
        "notes": notes,
    }
    if more.unseen and (rows.group_count < FEWEST_GROUPS or not rows.features):
        # others can say something of it
        experiments = f"{rows.group_count} experiment{'s' * (rows.group_count != 1)}"
        notes.append(f"{experiments}: too few for models of its own")
        return {**common, "models": [], "weights": [], "explained": None, "points": []}
    _must_teach(rows, kpi)
    scores = all_compared(rows, 0, say)
    notes += [words for score in scores.values() for words in curve_words(score.models)]
    return {
        **common,
        "models": [
            {**_plain([score.by_experiment])[0], "by_row": _plain([score.by_row])[0]}
            for score in scores.values()
        ],
        "weights": _plain(weights_of(rows, CounterBoosting, 0)),
        "explained": explained(rows, scores["ours"].models) if more.explain else None,
        "points": _points(rows.y, scores["ours"].predicted),
    }


def _must_teach(rows: CounterRows, kpi: str) -> None:
    """Raises `UsageError` of rows that nothing can be held out of, or that do not differ."""
    from workbench.domain.errors import UsageError
    from workbench.models.counter_scores import FEWEST_GROUPS

    if rows.group_count < FEWEST_GROUPS or not rows.features:
        raise UsageError(
            f"{rows.group_count} experiments with {len(rows.features)} counters that vary, where "
            f"{FEWEST_GROUPS} and one are needed to hold an experiment out",
            where=kpi,
            remedy="Give more files or samples, at least one for each experiment",
        )
    if not rows.y.max() > rows.y.min():
        raise UsageError(
            f"{kpi} is {rows.y[0]:g} in all rows: nothing to learn",
            where=kpi,
            remedy="Name another KPI, or rows in which it differs",
        )


MOST_POINTS = 400
"""Of the figure."""


def _points(true: Any, said: Any) -> list[dict[str, float]]:
    from workbench.models.estimator import seeded_subset

    kept = seeded_subset(len(true), MOST_POINTS, 0)
    return [{"measured": float(true[i]), "predicted": float(said[i])} for i in kept]


def _plain(items: list[Any]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(item) for item in items]


def _dropped(features: tuple[DroppedFeature, ...]) -> list[dict[str, str]]:
    return _plain(list(features))
