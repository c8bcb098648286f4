"""A canary laid out: what each step carried, and how far off the model is before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.domain.answer_tables import AnswerColumn, AnswerTable, Cell
from workbench.domain.chain_figures import figure
from workbench.domain.retraining import CanaryStep, Proposal
from workbench.domain.samples import Estimate

VERDICTS = {
    "kept": "kept",
    "invalid": "not valid",
    "guard": "past the guard",
    "restored": "restored",
    "measuring": "measuring",
    "planned": "planned",
    "left": "not measured",
}
"""What became of a load, in words."""


@dataclass(frozen=True)
class StepLine:
    """A load of the plan, or a measurement of it: the attempts have a line each."""

    number: int
    wl: float
    verdict: str
    expected: Estimate | None = None
    value: Estimate | None = None
    margin: float | None = None
    """Share of the nearest guard that is left; below zero where it was passed."""
    note: str = ""
    sample: str = ""

    @classmethod
    def of(cls, step: CanaryStep, margin: float | None = None) -> StepLine:
        return cls(
            step.number, step.wl, step.verdict, step.forecast, step.value, margin, step.note,
            step.sample_id,
        )  # fmt: skip


def steps(
    lines: Iterable[StepLine], per: str = "", *, margins: bool = False, intervals: bool = False
) -> AnswerTable:
    """Every load as it was predicted and measured, what became of it and why.

    `per` is the unit of the load; `margins` are shares of the guard that are left; `intervals`:
    what was expected has its own beside it.
    """
    load = AnswerColumn(f"load {per}".rstrip(), ".6g", width=8)
    expected, measured = AnswerColumn("expected", width=8), AnswerColumn("measured", width=18)
    left = (AnswerColumn("margin", ".0%", width=6),) if margins else ()
    return AnswerTable.of(
        ("step", load, expected, measured, *left, "verdict"),
        (
            (
                line.number,
                line.wl,
                line.expected if intervals or not line.expected else line.expected.value,
                _measured(line),
                *((line.margin,) if margins else ()),
                f"{VERDICTS.get(line.verdict, line.verdict)}{f': {line.note}' * bool(line.note)}",
            )
            for line in lines
        ),
    )


def _measured(line: StepLine) -> Cell:
    """Nothing before it is measured; a sample that does not state the KPI says so."""
    if line.value is None and line.verdict not in ("measuring", "planned", "left"):
        return "not stated"
    return line.value


def terms(proposal: Proposal, places: Iterable[str]) -> AnswerTable:
    """What is learned, with 95 % intervals; `places` are the configurations, one a change."""
    return AnswerTable.of(
        ("term", "of", "before", "after", AnswerColumn("95 % interval", width=20)),
        (
            (
                change.title,
                place,
                change.before,
                change.after,
                f"[{figure(change.low)}, {figure(change.high)}] {change.unit}".rstrip(),
            )
            for change, place in zip(proposal.changes, places, strict=True)
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
