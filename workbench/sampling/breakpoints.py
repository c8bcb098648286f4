"""One breakpoint after the other, each searched to a stated width, its neighbours' as a guess."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.domain import kpis
from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.domain.sessions import ConfigurationOutcome
from workbench.sampling.base import Ask, Ending, Space
from workbench.sampling.factors import Coordinates
from workbench.sampling.intervals import axis, ends, rounded
from workbench.sampling.search import BreakpointSearch, Found
from workbench.sampling.track import UNUSABLE_LOADS

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
WIDTH = 0.1
CLOSE = 1.1
"""Least load without a valid sample over the largest with one, at which the limit of the source is
known well enough: it is not what is searched."""
LIMITS = frozenset(
    {
        "source_saturated",
        "sink_saturated",
        "bypass_limited",
        "conntrack_full",
        "mirror_lost",
        "competitor_failed",
    }
)
"""Reasons that come back as they were at any higher load. Other loads are measured once more before
they bound the search."""
SPARSE = frozenset({"little", "too_few"})
"""Reasons that come back at any lower load."""
LEAST_S = 1e-3
"""Seconds that a sample counts for at least."""
INTERCEPT_SD, SLOPE_SD, OWN_SD = 3.0, 0.5, 0.15
"""What log breakpoints are like before any is known: standard deviations of their level, of how
much a parameter changes them from its one end to the other, and of what each has to itself."""


class BreakpointSampler:
    """Searches the breakpoint of every configuration by the loss that its open-loop samples state.

    The breakpoint is the load at which the long-run loss passes the campaign's `loss_goal`. For
    whoever wants just that, narrow and soon: nothing is sampled for the sake of the profile, whose
    flat piece it leaves nearly empty. A configuration is searched to its end before the next one
    begins, so that allocations change least often; next is the one nearest to those that ended,
    which tell where to look (a linear model of log breakpoints) and how noisy the function is.

    Parameters
    ----------
    space : Space
        Its load must be an open loop. Of recorded loads, the nearest is asked for, once.
    plan : SamplingPlan
        `options["width"]` (0.1): relative width of the 95 % interval at which a search ends.
        `max_samples` ends it unresolved. `repetitions` are not counted: a search repeats what it
        wants to see again.

    Raises
    ------
    DataError
        If the load is a closed loop, whose clients wait instead of losing, if the width is no
        number above 0 or the loss goal no share below one half, or if the range holds no load
        above zero. Later, if a valid sample states neither its loss nor its throughput.
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        self.space, self.plan = space, plan
        if space.load.kind != "open":
            raise DataError(
                "clients of a closed loop wait instead of losing: there is no loss to search by",
                where=f"sampling of {space.target}",
                remedy="Offer an open loop, or take another sampling method, such as pooled",
            )
        self._width = _width_of(plan)
        if not (0.0 < self._width < math.inf and 0.0 <= space.loss_goal < 0.5):
            raise DataError(
                f"width is {plan.options.get('width', WIDTH)}, loss goal {space.loss_goal:g}",
                where=f"sampling of {space.target}",
                remedy="Give the relative width of the interval as a number above 0, such as 0.05,"
                " and a loss goal below 50 %",
            )
        ends(space.primary)
        self._where = Coordinates(space.configurations, space.primary)
        self._searches = {c: _Search(c, space, plan) for c in space.configurations}
        draw = random.Random(f"{space.seed}/{space.target}/breakpoints")
        self._luck = {c: draw.random() for c in space.configurations}
        self._skipped: set[Configuration] = set()
        self._begun: list[_Search] = []
        """In the order of their first samples."""
        self._found: list[_Search] = []
        """Those with a breakpoint, in the order in which they came to it."""

    teaches_little = (
        "it measures around breakpoints alone: whether an SLA holds at other loads cannot be "
        "predicted from it; take blocks or pooled to recommend by"
    )

    @staticmethod
    def blocks(_plan: SamplingPlan) -> int:
        """All samples share one deployment."""
        return 1

    def tell(self, samples: Sequence[Sample]) -> None:
        """New samples, valid or not, in the order they were taken; strangers are ignored."""
        primary = self.space.primary
        for sample in samples:
            configuration, wl = sample.point.configuration, sample.point.wl
            own = self._searches.get(configuration)
            in_range = primary.low <= wl <= primary.high
            if own is None or not in_range or sample.point.target != self.space.target:
                continue
            if not own.taken:
                self._begin(own)
                self._begun.append(own)
            own.observe(sample)
            if own.breakpoint is not None and own not in self._found:
                self._found.append(own)

    def skip(self, configuration: Configuration) -> None:
        """The user wants no more of it."""
        self._skipped.add(configuration)

    def ask(self) -> Ask | None:
        """The next point; None when every configuration has ended. Asking again changes nothing."""
        waiting = [
            own
            for configuration, own in self._searches.items()
            if configuration not in self._skipped and own.ending is None
        ]
        if not waiting:
            return None
        chosen = next((own for own in self._begun if own in waiting), None)
        if chosen is None:
            chosen = min(waiting, key=self._distance)
            self._begin(chosen)
        return chosen.ask()

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations that need no more samples."""
        found: dict[Configuration, Ending] = {}
        for configuration, own in self._searches.items():
            if own.ending is not None:
                found[configuration] = own.ending
            elif configuration in self._skipped:
                found[configuration] = Ending("skipped", f"skipped after {own.taken} samples")
        return found

    def _distance(self, own: _Search) -> tuple[float, float]:
        """To the nearest one that was searched, then the luck of the seed."""
        mine = np.array(self._where.row(own.configuration))
        known = [np.array(self._where.row(o.configuration)) for o in self._begun]
        nearest = min((float(np.abs(mine - other).sum()) for other in known), default=0.0)
        return nearest, self._luck[own.configuration]

    def _begin(self, own: _Search) -> None:
        """With what is known by now: the same after the same samples."""
        alike = self._found[-1] if self._found else None
        own.begin(self._width, self._guess(own.configuration), alike)

    def _guess(self, configuration: Configuration) -> tuple[float, float] | None:
        """A breakpoint and its log standard deviation, by a linear model of those that are known.

        Bayesian regression (a normal prior of level and slopes, closed form). Shares of the CPU
        are expected to carry in proportion if all rise together, each an equal part of that:
        which of them binds is not known.
        """
        if not self._found:
            return None
        y = np.log([own.breakpoint or math.nan for own in self._found])
        X = np.array([[1.0, *self._where.row(own.configuration)] for own in self._found])
        at = np.array([1.0, *self._where.row(configuration)])
        cores = [f.log and f.key.endswith(".vcpu") for f in self._where.factors]
        spans = [
            math.log(float(f.values[-1]) / float(f.values[0])) / sum(cores) if is_core else 0.0
            for f, is_core in zip(self._where.factors, cores, strict=True)
        ]
        expected = np.array([float(y[0] - X[0, 1:] @ spans), *spans])
        sds = np.array([INTERCEPT_SD, *(max(SLOPE_SD, 0.5 * span) for span in spans)])
        precision = np.diag(sds**-2.0) + X.T @ X / OWN_SD**2
        shift = np.linalg.solve(precision, X.T @ (y - X @ expected) / OWN_SD**2)
        variance = float(at @ np.linalg.solve(precision, at)) + OWN_SD**2
        return math.exp(float(at @ (expected + shift))), math.sqrt(variance)


class _Search:
    """The search of one configuration, fed with samples."""

    def __init__(self, configuration: Configuration, space: Space, plan: SamplingPlan) -> None:
        self.configuration = configuration
        self.taken = 0
        self.ending: Ending | None = None
        self.breakpoint: float | None = None
        """Middle of the interval where it was found, on the scale of `wl`."""
        self._space, self._plan = space, plan
        self._recorded = tuple(space.loads.get(configuration, ()))
        self._repetitions: dict[float, int] = {}
        self._width = WIDTH
        self._reasons: set[str] = set()
        self._bounded_by: set[str] = set()
        """Reasons of the loads that bound the search."""
        self._once_more: float | None = None
        """A load that was not valid for a reason that may pass."""
        self._failures = 0
        """Loads that bound the search."""
        self._valid: list[float] = []
        self._closed, self._sparse = math.inf, 0.0
        """Least load beyond which, largest up to which nothing valid can be measured."""
        self._search: BreakpointSearch | None = None

    def begin(self, width: float, guess: tuple[float, float] | None, alike: _Search | None) -> None:
        """Before the first sample."""
        bounds = ends(self._space.primary, self._recorded)
        self._width = width
        self._search = BreakpointSearch(
            bounds[0],
            bounds[-1] if len(bounds) > 1 else bounds[0] * (1.0 + width),
            width=width,
            goal=self._space.loss_goal,
            shortest_s=max(self._space.costs.sample_s, LEAST_S),
            prior=guess,
            alike=alike._search if alike else None,
            visits=True,
            budget_s=math.inf,
        )
        self._search.bound(bounds[0], bounds[-1])

    def observe(self, sample: Sample) -> None:
        """What it says of the breakpoint; the first samples come after `begin`."""
        assert self._search is not None
        wl, reason = sample.point.wl, sample.reason
        self.taken += 1
        is_first = wl not in self._repetitions
        self._once_more = None
        self._repetitions[wl] = max(self._repetitions.get(wl, -1), sample.point.repetition)
        if sample.valid:
            self._learn(sample)
        else:
            self._reasons |= {reason} - {""}
            if is_first and reason not in LIMITS and not self._recorded:
                self._once_more = wl
            elif wl not in self._valid:
                self._failures += 1
                self._bounded_by |= {reason} - {""}
                # Nobody knows what the function would have done there.
                if reason in SPARSE and wl < min(self._valid, default=math.inf):
                    self._sparse = max(self._sparse, wl)
                else:
                    self._closed = min(self._closed, wl)
                self._bound()
        self.ending = self.ending or self._end()

    def _learn(self, sample: Sample) -> None:
        """A valid sample is a trial; the next one is expected to last as long."""
        assert self._search is not None
        wl, seconds = sample.point.wl, max(sample.measured_s, LEAST_S)
        sent = wl * seconds
        self._search.tell(wl, seconds, sent, sent * (1.0 - lost(sample)))
        self._search.shortest_s = self._search.longest_s = seconds
        if self._space.primary.integer:
            # No width can be less than a step between whole loads.
            low, _ = self._search.belief
            self._search.width = max(self._width, 1.0 / max(math.floor(low), 1))
        self._valid.append(wl)
        self._bound()

    def _bound(self) -> None:
        """Half-way, in logs, from what could be measured to what could not."""
        assert self._search is not None
        bounds = ends(self._space.primary, self._recorded)
        low, high = bounds[0], bounds[-1]
        if self._sparse:
            above = min(self._valid, default=min(self._closed, high))
            low = above if above <= CLOSE * self._sparse else math.sqrt(self._sparse * above)
        if self._closed < math.inf:
            below = max(self._valid, default=low)
            high = below if self._closed <= CLOSE * below else math.sqrt(below * self._closed)
        self._search.bound(low, high)

    def ask(self) -> Ask:
        """The next point of a search that has not ended."""
        wl, again = self._next()
        low, high = self._bracket(wl)
        why = "a trial of the breakpoint search" + (", once more" if again else "")
        return Ask(self.configuration, wl, again, low, high, why)

    def _next(self) -> tuple[float, int]:
        assert self._search is not None
        if self._once_more is not None:
            return self._once_more, self._repetitions[self._once_more] + 1
        asked = self._search.ask()
        assert asked is not None
        primary = self._space.primary
        if self._recorded:
            at = axis(asked[0], primary)
            known = [wl for wl in self._recorded if self._sparse < wl < self._closed]
            if not self._valid:
                known = [wl for wl in known if wl not in self._repetitions]
            known = known or list(self._recorded)
            wl = min(known, key=lambda one: abs(axis(one, primary) - at))
        else:
            bounds = ends(primary)
            wl = rounded(asked[0], bounds[0], bounds[-1], primary)
        return wl, self._repetitions.get(wl, -1) + 1

    def _bracket(self, wl: float) -> tuple[float, float]:
        """Visited loads around it."""
        below = max((known for known in self._repetitions if known < wl), default=wl)
        above = min((known for known in self._repetitions if known > wl), default=wl)
        return below, above

    def _end(self) -> Ending | None:
        """How it ended, if it did."""
        assert self._search is not None
        is_over = self.taken >= self._plan.max_samples
        found = self._search.found
        told_all = found is None and bool(self._recorded) and self._next()[1] > 0
        if not self._valid and (self._failures >= UNUSABLE_LOADS or is_over or told_all):
            reasons = ", ".join(sorted(self._reasons))
            return Ending("unusable", f"none of {self.taken} samples is valid: {reasons}")
        if found is not None and self._valid:
            return self._said(found)
        if is_over:
            low, high = self._search.belief
            return Ending(
                "max_samples",
                f"unresolved after {self.taken} samples: breakpoint within {low:.4g}-{high:.4g}",
            )
        if told_all:
            low, high = self._search.belief
            note = f"the recorded loads tell no more: breakpoint within {low:.4g}-{high:.4g}"
            return Ending("converged", note)
        return None

    def _said(self, found: Found) -> Ending:
        """An answer of the search, as a sentence."""
        goal = f"{100.0 * self._space.loss_goal:g} % loss"
        reasons = ", ".join(sorted(self._bounded_by))
        after = f"{self.taken} samples, {found.seconds:.0f} s of load"
        outcome: ConfigurationOutcome = "converged"
        if found.outcome == "found":
            self.breakpoint = math.sqrt(found.low * found.high)
            said = f"breakpoint at {goal}: {found.low:.4g}-{found.high:.4g} (95 %)"
        elif found.outcome == "above range" or (
            found.outcome == "source limited" and self._closed == math.inf
        ):
            said = f"breakpoint at {goal} lies above the range, beyond {found.low:.4g}"
        elif found.outcome == "source limited":
            said = f"breakpoint at {goal} lies beyond {found.low:.4g}, the most that was valid"
            said += f" ({reasons})"
        elif found.outcome == "below range":
            said = f"breakpoint at {goal} lies below "
            said += (
                f"{found.high:.4g}, the least that was valid ({reasons})"
                if self._sparse
                else (f"the range, under {found.high:.4g}")
            )
        else:
            outcome = "max_samples"
            said = f"unresolved: breakpoint at {goal} within {found.low:.4g}-{found.high:.4g}"
        return Ending(outcome, f"{said}, after {after}")


def _width_of(plan: SamplingPlan) -> float:
    """NaN where it is no number."""
    try:
        return float(plan.options.get("width", WIDTH))
    except ValueError:
        return math.nan


def lost(sample: Sample) -> float:
    """Share of the load that was not carried (0-1): the loss that a sample states, else the part
    of the load that its throughput falls short of.

    Raises
    ------
    DataError
        If it states neither, as a number.
    """
    share = math.nan
    if (stated := sample.kpi(kpis.LOSS)) is not None:
        share = stated / 100.0
    else:
        for rate in kpis.all_carried():
            if (carried := sample.kpi(rate)) is not None:
                share = 1.0 - carried / sample.point.wl
    if not math.isfinite(share):
        raise DataError(
            "states neither its loss nor its throughput: there is nothing to search by",
            where=f"sample {sample.id}",
            remedy="Take another sampling method, such as pooled",
        )
    return min(max(share, 0.0), 1.0)
