"""A chain against its prediction, laid out: where it deviates, how far off it is predicted."""

from __future__ import annotations

from workbench.domain import departures, kpis
from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.chain_figures import figure, interval
from workbench.domain.questions import ChainCompared
from workbench.domain.retraining import ChainComparison, Outlier

_MAPE, _LOG = AnswerColumn("MAPE", ".1%"), AnswerColumn("|log error|", ".3f")
_BASELINE = AnswerColumn("MAPE directly", ".1%")


def compared_with(found: ChainComparison) -> str:
    """What it was held against, as a sentence without its full stop."""
    by = f"what {found.rule} makes of stand-alone profiles"
    if found.model_version:
        by = f"{found.rule}, which has not learned from them"
    return f"{found.chain}: {found.samples} samples of {found.kpi} against {by}"


def beyond(found: ChainComparison) -> str:
    """What a deviation must be beyond."""
    return f"beyond both 95 % intervals and this host's own noise ({found.ab_floor:.0%})"


def deviations(found: ChainComparison) -> AnswerTable:
    """Numbered as `found.outliers`; empty where the chain is as predicted."""
    return AnswerTable.of(
        ("", "loads", "most at", "measured", "predicted", "there it is"),
        (
            (
                number,
                f"{len(outlier.loads)} of {outlier.points}",
                outlier.wl,
                _seen(outlier),
                outlier.predicted,
                departures.of_outlier(found.kpi, outlier),
            )
            for number, outlier in enumerate(found.outliers, 1)
        ),
    )


def _seen(outlier: Outlier) -> str:
    """What was measured; of overload nobody knows more than how high it was when last seen."""
    if outlier.bounded:
        return f"≥ {figure(outlier.measured.low)}"
    return interval(outlier.measured)


def scores(reply: ChainCompared) -> AnswerTable:
    """The errors of what predicted, of the profiles alone, of a model trained on the chain."""
    found = reply.comparison
    judged = (c for c in (found, reply.profiles, reply.weakest_link) if c is not None)
    rows = [(c.rule, c.rmse, c.mae, c.mad, c.mape, c.log_error, c.coverage) for c in judged]
    trained: list[tuple[str | float | None, ...]] = []
    if found.baseline_rmse is not None:
        trained = [(f"{found.baseline}, trained directly", found.baseline_rmse, *[None] * 5)]
    cover = AnswerColumn("cover", ".0%")
    return AnswerTable.of(
        ("predicted by", "RMSE", "MAE", "MAD", _MAPE, _LOG, cover), (*rows, *trained)
    )


def by_configuration(found: ChainComparison) -> AnswerTable:
    """Numbered as `found.configurations`, the worst first."""
    return AnswerTable.of(
        ("", "samples", "than predicted", _MAPE, _LOG, _BASELINE),
        (
            (
                number,
                row.samples,
                departures.of_configuration(found.kpi, row),
                row.mape,
                row.log_error,
                row.baseline_mape,
            )
            for number, row in enumerate(found.configurations, 1)
        ),
    )


def by_bucket(found: ChainComparison) -> AnswerTable:
    """By how high the KPI was measured; of all samples together in the last line, where there are
    several."""
    known = kpis.of(found.kpi)
    rows: list[tuple[str | int | float | None, ...]] = [
        (
            f"{figure(row.low)} to {figure(row.high)}",
            row.samples,
            row.mape,
            row.log_error,
            row.baseline_mape,
        )
        for row in found.buckets
    ]
    if len(rows) > 1:
        rows.append(("all", found.samples, found.mape, found.log_error, None))
    return AnswerTable.of(
        (f"measured {known.short} ({known.unit})", "samples", _MAPE, _LOG, _BASELINE), rows
    )
