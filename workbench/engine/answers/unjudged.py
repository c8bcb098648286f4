"""Why allocations of a chain are not judged, function by function, and which of them fail anyway.

A chain's forecast is extrapolated where one of its functions was never asked that much. In a closed
loop response times grow with the clients, and by every rule of docs/chains.md a series is no faster
than each of its functions: what one of them breaks alone with fewer clients, the chain breaks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.domain.counts import counted
from workbench.domain.load_words import load_words
from workbench.domain.parameters import Configuration
from workbench.domain.recommendations import Deployment
from workbench.engine.answers.performance import PredictedDeployments
from workbench.engine.answers.recommend_request import terms_of

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.chains.function_profiles import Part
    from workbench.chains.measured_limits import LimitCrossing

_SLACK = 1.0 + 1e-9
"""Through a logarithm and back a load is not quite itself."""


def told_of_unjudged(
    predicted: PredictedDeployments, unjudged: Sequence[Deployment], thing: str
) -> Iterator[str]:
    """What is known of deployments whose forecasts are extrapolated, as sentences.

    `thing` is what one of them is called: `cheaper allocation`.
    """
    if not unjudged:
        return
    from workbench.models.scales import figure

    functions = _reaches(predicted)
    failing = dict.fromkeys((one.vnf for one in functions), 0)
    beyond: dict[str, list[float]] = {one.vnf: [] for one in functions}
    for deployment in unjudged:
        chain = Configuration(deployment.allocation, predicted.question.workload)
        breaks = (one.vnf for one in functions if one.breaks(deployment, chain))
        if vnf := next(breaks, ""):
            failing[vnf] += 1
            continue
        for one in functions:
            wl = one.wl / deployment.instances(one.vnf)
            beyond[one.vnf] += [wl] if wl > one.top * _SLACK else []
    failed, name = sum(failing.values()), predicted.order.primary.name
    if failed:
        each = ", ".join(
            f"{one.vnf} at {load_words(name, figure(one.by))}: {failing[one.vnf]}"
            for one in functions
            if failing[one.vnf]
        )
        why = "because one function alone breaks a limit already"
        yield f"Failing, {why}: {counted(failed, thing)} ({each})."
    if left := len(unjudged) - failed:
        yield f"Not judged, because outside of the samples: {counted(left, thing)}."
        for one in functions:
            if loads := sorted({figure(wl): wl for wl in beyond[one.vnf]}.values()):
                asked = " to ".join(dict.fromkeys(map(figure, (loads[0], loads[-1]))))
                yield (
                    f"{one.vnf} was measured up to {load_words(name, figure(one.top))}; "
                    f"at {asked} nobody knows."
                )


class _FunctionReach:
    """How far a function of a chain was profiled on its own.

    Attributes
    ----------
    wl : the load that reaches it where it is had once.
    top : the highest load that states each KPI which the question limits.
    """

    def __init__(
        self, vnf: str, part: Part, wl: float, top: float, broken: Sequence[LimitCrossing]
    ) -> None:
        self.vnf, self.wl, self.top = vnf, wl, top
        self._part, self._broken = part, tuple(broken)
        self._known: dict[Configuration, bool] = {}

    @property
    def by(self) -> float:
        """The highest load that it was profiled at, of those that the chain leads to it."""
        return min(self.wl, self.top)

    def breaks(self, deployment: Deployment, chain: Configuration) -> bool:
        """Whether it was measured to break a limit there, surely at less than the chain's load.

        Of several instances each has a share of the clients, and is not spoken for.
        """
        if not self._broken or deployment.instances(self.vnf) > 1:
            return False
        own = self._part.configuration(chain, self.vnf)
        if own not in self._known:
            self._known[own] = any(self._surely(one) for one in self._broken if one.bounds(own))
        return self._known[own]

    def _surely(self, one: LimitCrossing) -> bool:
        from workbench.models.scales import NORMAL_95

        return one.room(self.by) < 0.0 and one.room(self.wl) < -NORMAL_95


def _reaches(predicted: PredictedDeployments) -> list[_FunctionReach]:
    """Of the functions of a chain, those that were profiled the least far first."""
    if not predicted.parts:  # the chain itself was profiled, and its functions were not
        return []
    from workbench.chains.base import family_of, visits_of
    from workbench.chains.measured_limits import crossings

    order, question = predicted.order, predicted.question
    # What was seen of the chain itself goes before what its functions let expect.
    alone = all(one.unmeasured for one in predicted.first.values())
    grows = family_of(order.campaign.load.key) == "closed"
    found = []
    for vnf, visits in visits_of(order.chain.graph).items():
        asked = [(limit, predicted.parts[limit.kpi][vnf]) for limit in question.limits]
        part = asked[0][1]
        broken: list[LimitCrossing] = []
        if alone and grows and visits * _SLACK >= 1.0:  # a branch of a split bounds nothing
            # The share within a limit is of the SLA of whoever profiled it: the KPI alone counts.
            plan = order.campaign.target_plan(part.target)
            terms = replace(terms_of(order, plan.primary), sla=None)
            for limit, _ in asked:
                broken += crossings(part.target, order.samples, terms, limit)
        top = min(one.loads.get(limit.kpi, (0.0, math.inf))[1] for limit, one in asked)
        found.append(_FunctionReach(vnf, part, question.wl * visits, top, broken))
    return sorted(found, key=lambda one: one.top / one.wl)
