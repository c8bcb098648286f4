"""The cheapest deployment that holds every limit with the asked confidence: paper A, Eq. 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from workbench.domain.errors import NothingAllowed, OutsideProfile
from workbench.domain.load_words import load_words, profiled_words
from workbench.domain.recommendations import Choice, Deployment, Recommendation
from workbench.models.base import Floats
from workbench.models.forecast import Bools
from workbench.models.scales import figure
from workbench.sla.calibration import Calibration, calibrated
from workbench.sla.costs import Cost, cost_of
from workbench.sla.max_load import carried
from workbench.sla.performance import Performance, joint, judged
from workbench.sla.profiled import Profiled
from workbench.sla.sla_query import Question

MOST_JUDGED = 20_000
"""Deployments that are compared at most, of single instances and of replicas each."""

_AT_ONCE = 512


@dataclass(frozen=True)
class Answer:
    """What is recommended, before it has a name and a date; fields as in `Recommendation`.

    `unjudged` are those that come before what is chosen and were left out, since their forecasts
    are extrapolated; `is_first` says that the first of several candidates was chosen.
    """

    question: Question
    chosen: Choice | None
    closest: Choice | None
    runners_up: tuple[Choice, ...]
    judged: int
    note: str
    rests_on: int = 0
    unjudged: tuple[Deployment, ...] = ()
    is_first: bool = False

    def recommendation(
        self,
        id: str,
        session: str,
        chain: str,
        *,
        model_version: int,
        at: float,
        profiling_s: float = 0.0,
    ) -> Recommendation:
        return Recommendation(
            id=id,
            session=session,
            chain=chain,
            slas=self.question.slas,
            confidence=self.question.confidence,
            met=self.chosen is not None,
            chosen=self.chosen,
            closest=self.closest,
            runners_up=self.runners_up,
            model_version=model_version,
            at=at,
            profiling_s=profiling_s,
            note=self.note,
            judged=self.judged,
            rests_on=self.rests_on,
            probability_of="next_window" if self.question.window_sd else "long_run",
        )


def recommend(
    question: Question,
    performance: Performance,
    candidates: Sequence[Iterable[Deployment]],
    profiled: Profiled,
    cost: Cost,
    *,
    runners_up: int = 3,
) -> Answer:
    """The cheapest deployment that holds, or what comes closest.

    A deployment is recommended if every limit holds at the asked load with a probability of at
    least the confidence after selection (`calibration`), more likely than not at all lower ones
    that were profiled (`max_load`), and if nothing that this rests on is extrapolated.

    Parameters
    ----------
    question : from `sla_query.asked`.
    candidates : each by rising cost (`costs.allowed`, `replicas.replicated`); the next are looked
        at only where none of those before holds.
    cost : what they are ordered by.
    runners_up : how many others are listed.

    Raises
    ------
    NothingAllowed
        If there is no candidate.
    OutsideProfile
        If the forecasts of all candidates are extrapolated.
    """
    path = _Path(question, performance, profiled, cost, 1 + runners_up)
    for source in candidates:
        waiting = iter(islice(source, MOST_JUDGED))
        while batch := list(islice(waiting, _AT_ONCE)):
            path.add(batch)
            if path.settle():
                break
        path.cut |= len(path) >= MOST_JUDGED
        if path.found or path.find():
            break
    return path.answer()


def _never_falling(found: Iterable[Choice]) -> tuple[Choice, ...]:
    """The same, none less sure, nor with less margin, than one that gives no function more.

    What carries a load with less carries it with more, so that the event of the smaller one is part
    of the larger one's: each was estimated by itself, and the estimates need not obey that. Nothing
    is chosen by it.
    """
    held = list(found)
    for place, one in enumerate(held):
        for less in held:
            if less is one or not one.deployment.gives_at_least(less.deployment):
                continue
            margin = one.margin_wl
            if less.margin_wl is not None:
                margin = max(less.margin_wl, less.margin_wl if margin is None else margin)
            held[place] = one = replace(
                one,
                probability=max(one.probability, less.probability),
                margin_wl=margin,
                margin_open=one.margin_open or (less.margin_open and margin == less.margin_wl),
            )
    return tuple(held)


class _Path:
    """Deployments in the order of selection, judged at the asked load as they come.

    Attributes
    ----------
    found : the first that hold at the asked load and at all lower ones, by place.
    cut : whether there were too many to look at all of them.
    """

    def __init__(
        self,
        question: Question,
        performance: Performance,
        profiled: Profiled,
        cost: Cost,
        wanted: int,
    ) -> None:
        self._question, self._performance = question, performance
        self._profiled, self._cost, self._wanted = profiled, cost, wanted
        self._deployments: list[Deployment] = []
        self._each: Floats = np.empty((0, len(question.limits)))
        self._unknown: Bools = np.empty(0, dtype=bool)
        self.found: dict[int, Choice] = {}
        self.cut = False
        self._dips = 0

    def __len__(self) -> int:
        return len(self._deployments)

    def add(self, batch: Sequence[Deployment]) -> None:
        question = self._question
        wl = np.full(len(batch), question.wl)
        each, unknown = judged(question, self._performance, batch, wl, question.limits)
        self._deployments += batch
        self._each = np.concatenate([self._each, each])
        self._unknown = np.concatenate([self._unknown, unknown])

    def settle(self) -> bool:
        """Look for those that hold, if there are enough and no dearer one can change that."""
        calibration = self._calibration()
        enough = len(self._passing(calibration)) >= self._wanted
        return enough and calibration.settled and self.find()

    def find(self) -> bool:
        """Look for those that hold; whether there is any."""
        calibration = self._calibration()
        passing = self._passing(calibration)
        self.found, self._dips = {}, 0
        for start in range(0, len(passing), self._wanted):  # most of these are found
            for place, choice, holds in self._choices(
                passing[start : start + self._wanted], calibration
            ):
                if holds and len(self.found) < self._wanted:
                    self.found[place] = choice
                elif not holds and not self.found:
                    self._dips += 1
            if len(self.found) >= self._wanted:
                break
        return bool(self.found)

    def answer(self) -> Answer:
        if not self._deployments:
            raise NothingAllowed(
                "no allocation is allowed", remedy="Say which values each function may be given"
            )
        held = _never_falling(self.found.values())
        chosen = held[0] if held else None
        return Answer(
            self._question,
            chosen,
            None if chosen else self._closest(),
            held[1:],
            len(self._deployments),
            " ".join(self._sentences(chosen)),
            unjudged=self._unjudged(),
            is_first=chosen is not None and not self._first and len(self._deployments) > 1,
        )

    def _calibration(self) -> Calibration:
        # What is unknown is never selected, so that its luck cannot matter.
        return calibrated(self._each[~self._unknown], self._question.confidence)

    def _passing(self, calibration: Calibration) -> list[int]:
        passes = (joint(self._each) >= calibration.threshold) & ~self._unknown
        return [int(place) for place in np.flatnonzero(passes)]

    def _closest(self) -> Choice:
        """The most probable of those of which something is known; of equals the cheapest."""
        if self._unknown.all():
            raise self._nothing_known()
        # Margins, unlike probabilities, still differ where all are all but 0.
        margin, worst = joint(self._each), self._each.min(axis=1)
        if np.isneginf(margin[~self._unknown]).all():
            margin = worst
        place = int(np.argmax(np.where(self._unknown, -np.inf, margin)))
        ((_, choice, _),) = self._choices([place], self._calibration())
        return choice

    def _choices(
        self, places: Sequence[int], calibration: Calibration
    ) -> list[tuple[int, Choice, bool]]:
        """Choices of these places, and whether each holds at all loads up to the asked one."""
        question = self._question
        chosen = [self._deployments[place] for place in places]
        loads = carried(question, self._performance, chosen, self._profiled, calibration.threshold)
        probability = calibration.probability(loads.margin)
        at = np.full(len(chosen), question.wl)
        told = {sla.kpi: self._performance.forecast(sla.kpi, chosen, at) for sla in question.limits}
        usage = self._performance.usage(chosen, question.wl)
        found = []
        for number, (place, deployment) in enumerate(zip(places, chosen, strict=True)):
            wl = float(loads.wl[number])
            kpis = {kpi: forecast.estimate(number) for kpi, forecast in told.items()}
            choice = Choice(
                allocation=deployment.allocation,
                replicas={vnf: deployment.instances(vnf) for vnf in deployment.functions},
                cost=cost_of(deployment, self._cost),
                cost_unit=self._cost.unit,
                probability=float(probability[number]),
                margin_wl=None if np.isnan(wl) else wl - question.wl,
                kpis=kpis,
                usage=dict(usage[number]),
                profiled=self._profiled.covers(deployment),
                extrapolated=self._outside(deployment),
                margin_open=bool(loads.open[number]),
            )
            found.append((place, choice, wl >= question.wl))
        return found

    def _outside(self, deployment: Deployment) -> tuple[str, ...]:
        question = self._question
        return self._profiled.outside(deployment, question.workload, question.wl)

    def _nothing_known(self) -> OutsideProfile:
        name = self._profiled.primary
        keys = dict.fromkeys(
            key for one in self._deployments[:_AT_ONCE] for key in self._outside(one)
        )
        what = ", ".join(keys) or "the combination of load and resources"
        return OutsideProfile(
            f"none of the {len(self._deployments)} allowed allocations was profiled around "
            f"{load_words(name, figure(self._question.wl))}: {what} lies outside of the samples, "
            f"which are of {profiled_words(name, self._profiled.loads)}",
            remedy="Profile there, or allow allocations between those that were profiled",
        )

    @property
    def _first(self) -> int:
        """The place of what is chosen; that behind the last one where nothing is."""
        return next(iter(self.found), len(self._deployments))

    def _unjudged(self) -> tuple[Deployment, ...]:
        return tuple(self._deployments[p] for p in np.flatnonzero(self._unknown[: self._first]))

    def _sentences(self, chosen: Choice | None) -> Iterator[str]:
        question, name = self._question, self._profiled.primary
        if chosen is None:
            yield (
                f"None of {len(self._deployments)} allowed allocations holds with a confidence of "
                f"{100 * question.confidence:g}%. What may help: a milder SLA, less confidence, "
                "larger allocations, or more samples where intervals are wide."
            )
            if self.cut:
                yield "Dearer ones were not looked at: there are too many."
        if chosen is not None and not chosen.profiled:
            yield "Nobody measured this allocation; its figures are interpolated."
        if self._dips:
            yield (
                f"Passed over, because they hold at {load_words(name, figure(question.wl))} but "
                f"not at every lower load: {self._dips} allocations."
            )
