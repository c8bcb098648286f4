"""Saturation breakpoints of one configuration by the five rules of METHOD.md 7, and of collapse.

=============  =========================================================================
module         what
=============  =========================================================================
`case`         what the rules are given, and how they answer
`scatter`      what a function carries, from repeated readings; how far they scatter
`threshold`    a load at which something flips, seen through noise; for `capacity`, `sla`
`collapse`     where what is carried falls, though more is asked for
`capacity`     the largest load that is carried
`knee`         where the KPI's trend breaks
`cpu`          where usage stops following the load
`sla`          where the KPI crosses its limit
`covariance`   paper B's rule
=============  =========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.models.breakpoints.capacity import capacity
from workbench.models.breakpoints.case import RuleInputs, RuleTerms
from workbench.models.breakpoints.collapse import collapse
from workbench.models.breakpoints.covariance import covariance
from workbench.models.breakpoints.cpu import cpu
from workbench.models.breakpoints.knee import knee
from workbench.models.breakpoints.sla import sla as sla_crossing
from workbench.models.selection import must_be_alike, of_configuration


def find_breakpoints(
    target: str,
    configuration: Configuration,
    samples: Sequence[Sample],
    terms: RuleTerms,
) -> tuple[Breakpoint, ...]:
    """The breakpoint of one configuration by every rule of METHOD.md 7 that applies.

    Parameters
    ----------
    samples : sequence of Sample
        Any samples. Valid ones of this target, configuration and load model count as values;
        invalid ones only bound the range that was searched. How far samples scatter is pooled
        over all configurations of the target.
    terms : RuleTerms
        The campaign's range, load model, KPI, limits, and the host's noise.

    Returns
    -------
    tuple of Breakpoint
        One per rule, in the order of `BREAKPOINT_RULES`, each with a 95 % interval or a state
        that says why it has none; `collapse` only where samples fall.

    Raises
    ------
    DataError
        If those that count as values are of different definitions of latency.
    """
    own = of_configuration(target, configuration, samples)
    must_be_alike([s for s in own if s.valid and s.load_model == terms.load.key])
    case = RuleInputs.of(target, configuration, samples, terms)
    answers = [*collapse(case), capacity(case), knee(case), cpu(case)]
    if terms.sla is not None:
        answers.append(sla_crossing(case, terms.sla))
    answers.append(covariance(case))
    return tuple(answers)


__all__ = ["RuleTerms", "find_breakpoints"]
