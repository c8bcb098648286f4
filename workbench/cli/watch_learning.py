"""What `watch` learns before its first look, and how far that can be trusted, as sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.chains.drift import ALLOWANCE
from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.function_watches import HeldOutRates
from workbench.domain.parameters import Sla

if TYPE_CHECKING:
    from workbench.models.counter_contention import ContentionTest
    from workbench.models.counter_rows import CounterRows
    from workbench.models.counter_watch import CounterWatch


@dataclass(frozen=True)
class Learned:
    """What a watch looks by.

    Attributes
    ----------
    test : of others' load; None where the session does not teach that.
    rates : how often single looks would have been wrong at experiments held out.
    accuracy : the same and more, as sentences.
    """

    model: CounterWatch
    test: ContentionTest | None
    rates: HeldOutRates
    accuracy: tuple[str, ...]


def learned(rows: CounterRows, sla: Sla | None, kpi: str, window_s: float) -> Learned:
    """Learn from these rows, for looks that span `window_s` seconds.

    Raises `DataError` where they are too few for a KPI; of others' load that is a sentence.
    """
    from workbench.models.counter_watch import CounterWatch

    model = CounterWatch(rows)
    rates, said = _of_the_kpi(model, sla)
    test, rates, others = _of_others(rows, rates, window_s)
    return Learned(model, test, rates, (_origin(model, kpi), *said, *others))


def _origin(model: CounterWatch, kpi: str) -> str:
    score = model.score
    return (
        f"{kpis.of(kpi).short} by {len(model.features)} counters, from {model.rows.group_count} "
        f"experiments, model: {model.chosen}; on those that it had not seen it errs by "
        f"{score.mape:.1%} (mean), {score.within_5:.0%} within 5 %, the interval holds "
        f"{score.coverage or 0.0:.0%}"
    )


def _of_the_kpi(model: CounterWatch, sla: Sla | None) -> tuple[HeldOutRates, list[str]]:
    """Of figures, drift and the alarm of the SLA."""
    found = model.rates(sla, ALLOWANCE)
    rates = HeldOutRates(found.rows, found.silent, found.strayed)
    said = [
        f"each experiment held out, of {found.rows} windows {found.silent} would have had no "
        f"figure, and a function that stayed at one of {found.strayed} would be told to drift"
    ]
    if sla is None:
        return rates, said
    held = found.rows - found.silent - found.broken
    broken = (
        f"of {found.broken} windows that broke the SLA {found.missed} were not predicted to"
        if found.broken
        else "how many breaches it would miss is not known, as none was measured"
    )
    said.append(f"there, {broken}; of {held} that held it, {found.false} were predicted to break")
    return (
        replace(rates, broken=found.broken, missed=found.missed, held=held, false=found.false),
        said,
    )


def _of_others(
    rows: CounterRows, rates: HeldOutRates, window_s: float
) -> tuple[ContentionTest | None, HeldOutRates, list[str]]:
    """Whether others slow it, as far as the session can teach that."""
    from workbench.models.counter_contention import ContentionTest, rates_of

    try:
        test = ContentionTest(rows, window_s)
    except DataError as error:
        remedy = f" ({error.remedy})" if error.remedy else ""
        return None, rates, [f"others' load is not told: {error.what}{remedy}"]
    said = _signs(test)
    try:
        found = rates_of(rows, window_s)
    except DataError as error:
        said.append(
            "how often a look is wrong about others' load is not known, with an experiment held "
            f"out: {error.what}"
        )
        return test, rates, said
    missed = (
        f"of {found.beside} beside competitors {found.missed} were missed"
        if found.beside
        else "how many it would miss is not known, as nobody competed"
    )
    said.append(
        f"of {found.quiet} windows alone, held out, {found.false} were taken for contended; "
        f"{missed}"
    )
    known = replace(rates, alone=found.quiet, alone_contended=found.false)
    return test, replace(known, beside=found.beside, beside_missed=found.missed), said


def _signs(test: ContentionTest) -> list[str]:
    """What tells others' load, and how often by chance."""
    from workbench.models.counter_contention import FEWEST_EXPERIMENTS, SURE_OF_SCATTER

    few = (
        f"; windows of {test.experiments} experiments alone count as independent, which is too good"
        if test.experiments < FEWEST_EXPERIMENTS
        else ""
    )
    expected, most = (max(each, 0.01) for each in test.false_a_day)
    said = [
        f"others' load shows in {', '.join(test.signs)}: more of it than its own traffic explains",
        f"false alarms of it in a day of quiet: {expected:.2g} expected, at most {most:.2g} "
        f"({SURE_OF_SCATTER:.0%} sure of each sign's scatter; seconds independent, logs normal"
        f"{few})",
    ]
    if test.disturbed:
        said.append(
            f"{test.disturbed} of {test.quiet} windows alone were disturbed by something else, and "
            "are left out of what is quiet"
        )
    return said
