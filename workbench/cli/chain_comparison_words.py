"""What `compare --chain` prints: where a chain deviates, and how far off its prediction is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.cli.chain_words import allocation, figure, interval, model, percent, wrapped
from workbench.cli.tables import table
from workbench.domain import departures

if TYPE_CHECKING:
    from workbench.domain.questions import ChainCompared
    from workbench.domain.retraining import ChainComparison, Outlier


def compared(reply: ChainCompared) -> str:
    """Where the chain deviates, then how far the prediction is off: in all, by configuration, by
    KPI."""
    found = reply.comparison
    lines = [
        *wrapped(
            f"{found.chain}: {found.samples} samples of {found.kpi} against {_said_by(found)}"
        ),
        *wrapped(f"It is {departures.sentence(departures.of_chain(found))}."),
        "",
        *_deviations(found),
        "",
        *_scores(reply),
        "",
        *_configurations(found),
        "",
        *_buckets(found),
    ]
    notes = [f"Models: {'; '.join(map(model, reply.models))}."]
    if found.note:
        notes.insert(0, f"{found.note.rstrip('.')}.")
    return "\n".join([*lines, "", *(line for note in notes for line in wrapped(note))])


def _said_by(found: ChainComparison) -> str:
    if found.model_version:
        return f"{found.rule}, which has not learned from them"
    return f"what {found.rule} makes of stand-alone profiles"


def _deviations(found: ChainComparison) -> list[str]:
    beyond = f"beyond both 95 % intervals and this host's own noise ({found.ab_floor:.0%})"
    if not found.outliers:
        return wrapped(f"In no configuration is the chain better or worse than predicted {beyond}.")
    rows = [
        [
            str(number),
            f"{len(outlier.loads)} of {outlier.points}",
            figure(outlier.wl),
            _seen(outlier),
            interval(outlier.predicted),
            departures.of_outlier(found.kpi, outlier),
        ]
        for number, outlier in enumerate(found.outliers, 1)
    ]
    headings = ["", "loads", "most at", "measured", "predicted", "there it is"]
    return [
        *wrapped(f"The chain is not as predicted, {beyond}:"),
        "",
        *table(headings, rows).splitlines(),
        "",
        *(line for n, o in enumerate(found.outliers, 1) for line in wrapped(_whose(n, o))),
    ]


def _seen(outlier: Outlier) -> str:
    """What was measured; of overload nobody knows more than how high it was when last seen."""
    if outlier.bounded:
        return f"≥ {figure(outlier.measured.low)}"
    return interval(outlier.measured)


def _whose(number: int, outlier: Outlier) -> str:
    return f"{number}: {allocation(outlier.configuration)}"


def _scores(reply: ChainCompared) -> list[str]:
    found = reply.comparison
    rows = [
        [
            one.rule,
            *map(figure, (one.rmse, one.mae, one.mad)),
            f"{one.mape:.1%}",
            f"{one.log_error:.3f}",
            f"{one.coverage:.0%}",
        ]
        for one in (found, reply.profiles, reply.weakest_link)
        if one is not None
    ]
    if found.baseline_rmse is not None:
        rows.append([f"{found.baseline}, trained directly", figure(found.baseline_rmse)])
    rows = [row + ["-"] * (7 - len(row)) for row in rows]
    return table(
        ["predicted by", "RMSE", "MAE", "MAD", "MAPE", "|log error|", "cover"], rows
    ).splitlines()


def _configurations(found: ChainComparison) -> list[str]:
    rows = [
        [
            str(number),
            str(row.samples),
            departures.of_configuration(found.kpi, row),
            f"{row.mape:.1%}",
            f"{row.log_error:.3f}",
            percent(row.baseline_mape),
        ]
        for number, row in enumerate(found.configurations, 1)
    ]
    headings = ["", "samples", "than predicted", "MAPE", "|log error|", "MAPE directly"]
    legend = (f"{n}: {allocation(r.configuration)}" for n, r in enumerate(found.configurations, 1))
    return [
        "By configuration, the worst first:",
        "",
        *table(headings, rows).splitlines(),
        "",
        *(line for text in legend for line in wrapped(text)),
    ]


def _buckets(found: ChainComparison) -> list[str]:
    rows = [
        [
            f"{figure(row.low)} to {figure(row.high)}",
            str(row.samples),
            f"{row.mape:.1%}",
            f"{row.log_error:.3f}",
            percent(row.baseline_mape),
        ]
        for row in found.buckets
    ]
    headings = [f"measured {found.kpi}", "samples", "MAPE", "|log error|", "MAPE directly"]
    return table(headings, rows).splitlines()
