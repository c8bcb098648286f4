"""How far a chain is from its prediction, as people say it: `34 times slower`, `12 % faster`.

The one place that words it, for screens, commands and exports. The statistics (errors in per cent,
logs, coverage) stand behind these words wherever there is room.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from workbench.domain.counts import counted
from workbench.domain.kpis import of

if TYPE_CHECKING:
    from workbench.domain.retraining import ChainComparison, ConfigurationScore, Outlier, Proposal

SLOWER_FASTER = ("slower", "faster")
MORE_LESS = ("more", "less")
ALIKE = 1.005
"""Factor below which two figures are called the same."""
_WORTH = re.compile(r"^The median error on \d+ held-out samples falls from \S+ to \S+%\. ?")
"""How statements began that were stored before 2026-11."""


def than_predicted(kpi: str, ratio: float, *, at_least: bool = False) -> str:
    """`34 times slower`, `12 % faster`, `as predicted`; `ratio` is measured over predicted.

    Where the chain was so overloaded that its figure is only a lower bound: `at least 4 times ...`.
    """
    told = _apart(kpi, ratio)
    return f"{'at least ' * at_least}{told}" if told else "as predicted"


def than_alone(kpi: str, ratio: float) -> str:
    """`34 % slower`, `12 % less`, `as alone`; `ratio` is beside others over alone."""
    return _apart(kpi, ratio) or "as alone"


def _apart(kpi: str, ratio: float) -> str:
    """Empty where two figures are called the same."""
    size = max(ratio, 1.0 / ratio) if ratio > 0.0 else math.inf
    if size < ALIKE:
        return ""
    more, less = SLOWER_FASTER if of(kpi).kind == "response_time" else MORE_LESS
    return f"{_size(size)} {more if ratio > 1.0 else less}"


def sentence(words: str) -> str:
    """The same where no heading says what it is compared with: `34 times slower than predicted`."""
    if words == "as predicted":
        return words
    if words.endswith(" off"):
        return f"{words} what was predicted"
    return f"{words} than predicted"


def off(log_error: float) -> str:
    """`12 times off`, `6 % off`: of a typical |log(predicted / measured)|, which has no side."""
    size = math.exp(min(abs(log_error), 20.0))
    return f"{_size(size)} off" if size >= ALIKE else "0 % off"


def typically(kpi: str, log_error: float, ratio: float) -> str:
    """Of many samples: the size of the typical error, and its side where they lean to one."""
    lean = math.log(ratio) if ratio > 0.0 else 0.0
    if abs(lean) < abs(log_error) / 2 and math.exp(min(abs(log_error), 20.0)) >= ALIKE:
        return off(log_error)
    return than_predicted(kpi, math.exp(math.copysign(min(abs(log_error), 20.0), lean)))


def of_noise(floor: float) -> str:
    """`1.9 times`, `12 %`: by how much the host may differ from itself, as departures are said."""
    return _size(1.0 + floor) if not 0.5 <= floor < 1.0 else f"{1.0 + floor:.1f} times"


def error_of_noise(found: ChainComparison) -> float:
    """The relative error that noise alone may make, on the side where the chain departs.

    Of a figure that is twice the prediction the error is 50 %, of one that is half of it 100 %.
    """
    return found.ab_floor if _lean(found) < 0.0 else found.ab_floor / (1.0 + found.ab_floor)


def _lean(found: ChainComparison) -> float:
    """Mean log of measured over predicted; positive where the prediction is too low."""
    many = sum(score.samples for score in found.configurations)
    lean = sum(score.samples * math.log(score.ratio) for score in found.configurations)
    return lean / many if many else 0.0


def of_configuration(kpi: str, score: ConfigurationScore) -> str:
    """Where a configuration of the chain is, over its loads."""
    return typically(kpi, score.log_error, score.ratio)


def of_chain(found: ChainComparison) -> str:
    """Where the chain is, over all its samples."""
    return typically(found.kpi, found.log_error, math.exp(_lean(found)))


def of_all_samples(found: ChainComparison) -> str:
    """The same as a clause that says what it is the median of: at one load it is another figure."""
    return f"{sentence(of_chain(found))} (median of {counted(found.samples, 'sample')})"


def of_outlier(kpi: str, outlier: Outlier) -> str:
    """Where it departs most."""
    return than_predicted(kpi, outlier.ratio, at_least=outlier.bounded and outlier.ratio > 1.0)


def worth(samples: int, before: float, after: float) -> str:
    """What a retraining brings, from the typical log errors on samples that it has not seen."""
    held = counted(samples, "held-out sample")
    return f"Before it was {off(before)}, now {off(after)} (median of {held})."


def statement_of(proposal: Proposal) -> str:
    """What is said for a proposal, also where its session words that otherwise."""
    rest, older = _WORTH.subn("", proposal.statement)
    if not older:
        return proposal.statement
    said = worth(proposal.before.samples, proposal.before.log_error, proposal.after.log_error)
    return f"{said} {rest}".rstrip()


def _size(size: float) -> str:
    """`12 %` up to twice, then `3.1 times`, `34 times`, `1200 times`."""
    if size < 2.0:
        return f"{100.0 * (size - 1.0):.0f} %"
    if not math.isfinite(size):
        return "endlessly"
    if size < 9.95:
        return f"{size:.1f}".removesuffix(".0") + " times"
    digits = max(0, math.floor(math.log10(size)) - 1)
    return f"{round(size, -digits):.0f} times"
