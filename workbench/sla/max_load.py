"""The largest load that a deployment carries: paper A, Eq. 3, with a confidence.

Eq. 3 asks for the load at which the KPI is closest to its limit. With a confidence it is the
largest load at which the limit still holds with it; and since a KPI need not rise with the load,
the largest one *below which all others hold, too*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from workbench.domain.parameters import Sla
from workbench.domain.recommendations import Deployment
from workbench.models.base import Floats
from workbench.models.forecast import Bools
from workbench.models.scales import log_kpi
from workbench.sla.performance import Performance, joint, judged
from workbench.sla.profiled import Profiled
from workbench.sla.sla_query import Question

LOADS = 33
"""Loads that are looked at over the profiled range before one is searched between two of them: a
bump between two neighbours, a ninth of a decade apart over four decades, goes unseen."""
ROUNDS = 16
"""Halvings of such an interval: 0.001 % of it is left."""
EVEN = 0.0
"""Margin that is asked of loads below the asked one. The SLA is about the asked load, and a KPI
that gets better as the load grows is the exception (R(1) = 1.4 R(4), METHOD.md 11): it takes a
forecast that says so, not one that is unsure."""


@dataclass(frozen=True)
class Carried:
    """What k deployments carry; all of shape (k,).

    Attributes
    ----------
    wl : the largest load up to which all limits hold; NaN where there is none.
    open : whether they still hold where the profile ends.
    margin : in standard deviations, at the asked load.
    """

    wl: Floats
    open: Bools
    margin: Floats


def carried(
    question: Question,
    performance: Performance,
    deployments: Sequence[Deployment],
    profiled: Profiled,
    threshold: float,
) -> Carried:
    """The largest load that each deployment carries with a margin of at least `threshold`.

    Upper limits must hold more likely than not (`EVEN`) from the lowest profiled load on. Lower
    ones are judged from the asked load on: throughput is small at small loads for no fault of a
    function. Loads under the asked one about which nothing is known are passed over, and never the
    answer; from it on, the first load without the margin or the knowledge ends the search.

    The load is inverted by the model where it can (`Performance.inverse`: one upper limit, no
    window), else by a scan and a bisection of all deployments at once.
    """
    analytic = _inverted(question, performance, deployments, threshold)
    told = ~np.isnan(analytic)
    top = max(profiled.wl[1], question.wl)
    search = _Search(question, performance)
    loads = np.union1d(np.geomspace(profiled.wl[0], top, LOADS), [question.wl])
    many, each = len(deployments), len(loads)
    spread = [one for one in deployments for _ in loads]
    flat, blind = search.at(spread, np.tile(loads, many))
    margin, unknown = flat.reshape(many, each), blind.reshape(many, each)
    below = loads < question.wl
    sure = (margin >= threshold) & ~unknown
    likely = (margin >= min(threshold, EVEN)) | unknown
    holds = np.logical_and.accumulate(np.where(below, likely, sure), axis=1) & sure
    steps = np.where(holds.any(axis=1), each - np.argmax(holds[:, ::-1], axis=1), 0)
    asked = int(np.searchsorted(loads, question.wl))

    low = loads[np.maximum(steps - 1, 0)]
    high = loads[np.minimum(steps, each - 1)]
    for _ in range(0 if told.all() else ROUNDS):
        middle = np.sqrt(low * high)
        here, blind = search.at(deployments, middle)
        good = (here >= threshold) & ~blind
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    end, blind = search.at(deployments, high)
    opened = (steps == each) | ((steps > 0) & blind & (end >= threshold))
    wl = np.where(steps > 0, np.where(steps == each, loads[-1], low), np.nan)

    wl = np.where(told, np.minimum(analytic, top), wl)
    opened = np.where(told, analytic >= top, opened)
    wl = np.where(wl < profiled.wl[0] * (1.0 - 1e-9), np.nan, wl)
    if any(sla.direction == ">=" for sla in question.limits):
        wl = np.where(wl < question.wl, np.nan, wl)
    if profiled.integer:
        wl = np.floor(wl + 1e-3)
    return Carried(wl, opened, margin[:, asked])


class _Search:
    """Margins at any load: under the asked one of the upper limits alone."""

    def __init__(self, question: Question, performance: Performance) -> None:
        self._question, self._performance = question, performance
        self._all = question.limits
        self._upper = tuple(sla for sla in self._all if sla.direction == "<=")

    def at(self, deployments: Sequence[Deployment], wl: Floats) -> tuple[Floats, Bools]:
        margin, unknown = np.full(len(wl), np.inf), np.zeros(len(wl), dtype=bool)
        under = wl < self._question.wl
        for places, limits in ((under, self._upper), (~under, self._all)):
            margin[places], unknown[places] = self._judged(
                [one for one, taken in zip(deployments, places, strict=True) if taken],
                wl[places],
                limits,
            )
        return margin, unknown

    def _judged(
        self, deployments: Sequence[Deployment], wl: Floats, limits: Sequence[Sla]
    ) -> tuple[Floats, Bools]:
        if not limits or not deployments:
            return np.full(len(wl), np.inf), np.zeros(len(wl), dtype=bool)
        each, unknown = judged(self._question, self._performance, deployments, wl, limits)
        return joint(each), unknown


def _inverted(
    question: Question,
    performance: Performance,
    deployments: Sequence[Deployment],
    threshold: float,
) -> Floats:
    """Loads that the model itself inverts; NaN where it does not."""
    inverse = getattr(performance, "inverse", None)
    (sla, *others) = question.limits
    if inverse is None or others or sla.direction == ">=" or question.window_sd:
        return np.full(len(deployments), math.nan)
    probability = float(ndtr(threshold))
    return np.asarray(inverse(sla.kpi, deployments, log_kpi(sla.kpi, sla.limit), probability))
