"""A canary laid out: what each step carried, and how far off the model is before and after."""

from __future__ import annotations

from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.retraining import CanaryRun, Proposal


def steps(run: CanaryRun) -> AnswerTable:
    """Every load as it was predicted and measured; the last column is a remark."""
    return AnswerTable.of(
        ("step", AnswerColumn("load", ".6g"), "expected", "measured", "verdict", ""),
        (
            (
                step.number,
                step.wl,
                step.forecast.value if step.forecast else None,
                step.value,
                step.verdict,
                step.note,
            )
            for step in run.steps
        ),
    )


def errors(proposal: Proposal) -> AnswerTable:
    """Of samples that were held out, without what is proposed and with it."""
    return AnswerTable.of(
        ("held out", "samples", "RMSE", "MAE", AnswerColumn("MAPE", ".1%"), "|log error|"),
        (
            (name, scores.samples, scores.rmse, scores.mae, scores.mape, scores.log_error)
            for name, scores in (("before", proposal.before), ("after", proposal.after))
        ),
    )
