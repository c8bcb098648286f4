"""Paper B's whole sampling heuristic: edges, feature selection, Algorithm 3, Algorithms 1 and 2.

"Optimized Sampling Strategies to Model the Performance of Virtualized Network Functions", 6.3-6.5,
Fig. 11, Tables 2 and 3.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.base import ProfileModel
from workbench.models.scales import log_kpi
from workbench.models.selection import capped_log_kpi
from workbench.sampling.base import Ask, Ending, Space
from workbench.sampling.edges import edges
from workbench.sampling.factors import Coordinates, Factor
from workbench.sampling.growth import Growth
from workbench.sampling.influence import EDGES, Influence, influence_of
from workbench.sampling.surface import Seen, change_of_rmse
from workbench.sampling.track import Track

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
STANDS_OUT = 2.0
"""Times the share of the second parameter that the first must have for an order of significance."""


class HeuristicSampler:
    """Edges of all parameters, then configuration by configuration as Algorithm 3 chooses them.

    1. The edges: lowest and highest value of every parameter and of `wl`, or a fraction of them.
    2. Their influence by PLS. Where one parameter stands out, parameters are sampled in order of
       significance, the others in the middle of their values until their turn comes (Table 2);
       else all begin with both ends of their values and take turns (Table 3).
    3. Algorithm 3 adds a value of the parameter whose turn it is: the middle one of the two
       neighbours whose mean KPI differs most. All configurations that it makes with the values
       chosen of the others are sampled by Algorithms 1 and 2 (`bisection`), interleaved.
    4. A parameter is left when its last value changed the RMSE of an interpolation, over all
       samples (`surface`), by less than `epsilon` of the KPI's range, or when it has no more
       values. When all are left, sampling ends; configurations not needed end without a sample.

    Parameters
    ----------
    space : Space
    plan : SamplingPlan
        `max_samples`, `epsilon` and `repetitions` are of each configuration, as for `bisection`.
        `options`: `edges` (64), most points of the edges; `kpis`, names of the KPIs whose mean
        influence orders the parameters, by comma (the campaign's own); `stands_out` (2), how many
        times the influence of the second the first must have; `configuration_epsilon` (`epsilon`),
        of step 4, 0 to leave none before its last value.
    model_factory : callable
        Makes the model behind dRMSE of Algorithm 1.

    Attributes
    ----------
    influence : Influence or None
        What the edges said; None before they are measured, or if they were of no use.

    Raises
    ------
    DataError
        If the range of the primary workload holds no load above zero.
    """

    def __init__(
        self,
        space: Space,
        plan: SamplingPlan,
        *,
        model_factory: Callable[[], ProfileModel],
    ) -> None:
        self.space = space
        self.plan = plan
        self.influence: Influence | None = None
        options = plan.options
        self._epsilon = float(options.get("configuration_epsilon", plan.epsilon))
        self._stands_out = float(options.get("stands_out", STANDS_OUT))
        self._kpis = [k.strip() for k in str(options.get("kpis", space.kpi)).split(",")]
        # Configurations are known by their place: hashing one costs as much as a round of asking.
        self._tracks = [Track(c, space, plan, model_factory) for c in space.configurations]
        self._place = {c: place for place, c in enumerate(space.configurations)}
        self._keys = [c.key for c in space.configurations]
        self._samples: list[Sample] = []
        self._taken_at: list[int] = []
        """Places of the configurations of `_samples`."""
        self._skipped: set[int] = set()
        points = edges(space, int(options.get("edges", EDGES)))
        self._edges = [(self._place[c], wl) for c, wl in points]
        # In a random order: the host drifts, and no parameter may take that for its own influence.
        random.Random(f"{space.seed}/{space.target}/edges").shuffle(self._edges)
        self._where = Coordinates(space.configurations, space.primary)
        self._growth: Growth | None = None
        """None while the edges are measured."""
        self._is_over = not space.configurations

    def tell(self, samples: Sequence[Sample]) -> None:
        """New samples, valid or not, in the order they were taken; strangers are ignored."""
        for sample in samples:
            point = sample.point
            place = self._place.get(point.configuration)
            in_range = self.space.primary.low <= point.wl <= self.space.primary.high
            if place is not None and point.target == self.space.target and in_range:
                # Whoever took it had come this far with the samples before: so must we, whatever
                # the user skipped since.
                while not self._is_over and not self._expects(place, point.wl):
                    self._advance()
                self._tracks[place].observe(sample)
                self._samples.append(sample)
                self._taken_at.append(place)

    def skip(self, configuration: Configuration) -> None:
        """The user wants no more of it."""
        if configuration in self._place:
            self._skipped.add(self._place[configuration])

    def ask(self) -> Ask | None:
        """The next point; None when every configuration has ended. Asking again changes nothing."""
        while not self._is_over:
            if asked := self._edge() if self._growth is None else self._turn(self._growth.selected):
                return asked
            self._advance()
        return None

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations that need no more samples; all of them when sampling is over."""
        self.ask()
        found: dict[Configuration, Ending] = {}
        for place, track in enumerate(self._tracks):
            configuration = track.configuration
            if track.ending:
                found[configuration] = track.ending
            elif place in self._skipped:
                found[configuration] = Ending("skipped", f"skipped after {track.taken} samples")
            elif self._is_over and track.taken and not track.any_valid:
                found[configuration] = Ending(
                    "unusable", f"none of its {track.taken} edges is valid"
                )
            elif self._is_over:
                note = "not needed" if not track.taken else f"its {track.taken} edges suffice"
                found[configuration] = Ending(
                    "converged", f"{note}: the profile is stable over all configurations"
                )
        return found

    def _expects(self, place: int, wl: float) -> bool:
        if self._growth is None:
            # A second sample at an edge is taken later, when its configuration has its turn.
            return (place, wl) in self._edges and not self._tracks[place].has_visited(wl)
        return place in self._growth.selected

    def _edge(self) -> Ask | None:
        """The next edge that was not visited, unless its configuration has had its samples."""
        for place, wl in self._edges:
            track = self._tracks[place]
            if place not in self._skipped and not track.is_sampled and not track.has_visited(wl):
                return Ask(track.configuration, wl, 0, wl, wl, "an edge of the space")
        return None

    def _turn(self, selected: frozenset[int]) -> Ask | None:
        """As `bisection` does: the selected take turns, each round in its own seeded order."""
        active = [
            place
            for place in sorted(selected - self._skipped)
            if self._tracks[place].ending is None
        ]
        if not active:
            return None
        turn = min(self._tracks[place].taken for place in active)
        waiting = [place for place in active if self._tracks[place].taken == turn]
        seed = f"{self.space.seed}/{self.space.target}/{turn}"
        # Every configuration draws its own place: the order does not depend on who else waits.
        first = min(waiting, key=lambda i: random.Random(f"{seed}/{self._keys[i]}").random())
        return self._tracks[first].next()

    def _advance(self) -> None:
        """The next stage, by the samples so far."""
        if self._growth is None:
            self._growth = self._first()
            return
        if not self._growth.grow(self._samples, self._still_changes):
            self._is_over = True

    def _first(self) -> Growth:
        """Influence, order of the factors and start grid."""
        try:
            self.influence = influence_of(self.space, self._samples, self._kpis)
        except DataError:  # too few edges are valid: then no parameter stands out
            self.influence = None
        shares = self.influence.overall if self.influence else {}
        factors = sorted(self._where.factors, key=lambda f: -shares.get(f.key, 0.0))
        first, second, *_ = (*(shares.get(f.key, 0.0) for f in factors), 0.0, 0.0)
        in_order = len(factors) > 1 and first > 0.0 and first >= self._stands_out * second
        return Growth(self.space, factors, in_order, self._level)

    def _level(self, sample: Sample) -> float:
        ceiling = log_kpi(self.space.kpi, self.space.kpi_max)
        return capped_log_kpi(sample, self.space.kpi, ceiling)

    def _still_changes(self, factor: Factor, new: frozenset[int]) -> bool:
        """Whether the configurations that came with a value of a factor changed the profile."""
        ceiling = log_kpi(self.space.kpi, self.space.kpi_max)
        seen: dict[bool, list[Seen]] = {False: [], True: []}
        for sample, place in zip(self._samples, self._taken_at, strict=True):
            if sample.valid:
                row = tuple(self._where.row(sample.point.configuration))
                at = self._where.load(sample.point.wl)
                seen[place in new].append(Seen(row, at, self._level(sample)))
        along = self._where.factors.index(factor)
        return change_of_rmse(seen[False], seen[True], along, ceiling) >= self._epsilon
