"""The built-in rules that make a chain's KPI of its functions' KPIs (METHOD.md 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.chains.base import (
    ChainRule,
    Figures,
    LoadFamily,
    fold,
    functions_of,
)
from workbench.chains.distributions import Percentile, ResponseTimes, percentile_of_sum
from workbench.chains.quasi_random import uniforms
from workbench.domain import kpis
from workbench.domain.errors import UsageError
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.base import Floats

_FLOOR_SLACK = 1.0 + 1e-6


@dataclass(frozen=True)
class WeakestLink:
    """The worst of the functions (paper A, section 5.3, Eq. 4): the papers' baseline.

    It is right where one function is saturated and holds all requests. Of branches a request takes
    one: means and shares are weighted by what each branch gets; of a percentile the worst branch's
    is an upper bound, and exact where branches are alike.
    """

    name: ClassVar[str] = "weakest-link"

    def refusal(self, kpi: str, load: LoadFamily) -> str:
        if kpis.of(kpi).more_is_better:
            return f"{self.name} takes the largest figure, and of {kpi} the least limits"
        known = kpis.find(kpi) is not None
        return _no_loss_in_a_closed_loop(kpi, load) if known else _unknown(self.name, kpi)

    def needs(self, kpi: str) -> tuple[str, ...]:
        return (kpi,)

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        return fold(graph, lambda v: figures.loaded(v.name, kpi), _largest, _over_branches(kpi))


@dataclass(frozen=True)
class BottleneckAndSum:
    """R = max(κ·max_i R_i, Σ_i R_i(1) + Δ) (METHOD.md 9).

    Saturated, the slowest function holds all requests; below saturation none waits and the times
    of the idle functions add, the path from source to sink counted once where it was measured. An
    unloaded time counts as no longer than the loaded one, as some functions are slow at the least
    load: so a chain of one is its function. Branches are taken as in `WeakestLink`.

    Parameters
    ----------
    scale : float, default=1.0
        κ, by which the slowest function is slower in the chain than on its own.
    handover_ms : float, default=0.0
        Δ, what passing from function to function adds. It may be negative: a path that was not
        measured is in every stand-alone time.
    """

    scale: float = 1.0
    handover_ms: float = 0.0
    name: ClassVar[str] = "bottleneck-and-sum"

    def refusal(self, kpi: str, load: LoadFamily) -> str:  # noqa: ARG002  # applies to every load
        return "" if kpis.of(kpi).kind == "response_time" else _for_response_times(self.name, kpi)

    def needs(self, kpi: str) -> tuple[str, ...]:
        return (kpi,)

    def terms(self, graph: Node, kpi: str, figures: Figures) -> tuple[Floats, Floats]:
        """max_i R_i and Σ_i R_i(1), each of shape (rows, m): what κ and Δ are learned on."""
        path = figures.path_ms

        def added(vnf: Vnf) -> Floats:
            idle, busy = figures.unloaded(vnf.name, kpi), figures.loaded(vnf.name, kpi)
            return np.minimum(idle, busy) - path

        branches = _over_branches(kpi)
        slowest = fold(graph, lambda v: figures.loaded(v.name, kpi), _largest, branches)
        return slowest, fold(graph, added, _total, branches) + path

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        slowest, added = self.terms(graph, kpi, figures)
        return np.asarray(np.maximum(self.scale * slowest, added + self.handover_ms))


@dataclass(frozen=True)
class ThinnedLoss:
    """What is lost: 1 - Π_i (1 - loss_i), each at the load that reaches it (METHOD.md 9).

    Errors count as losses do: what one function answers with an error never gets to the next.
    Branches are weighted by their shares. A loss at its floor counts as none.
    """

    name: ClassVar[str] = "thinned-loss"

    def refusal(self, kpi: str, load: LoadFamily) -> str:
        if kpis.of(kpi).kind != "share":
            shares = ", ".join(kpis.names("share"))
            return f"{self.name} composes what is lost ({shares}), not {kpi}"
        return _no_loss_in_a_closed_loop(kpi, load)

    def needs(self, kpi: str) -> tuple[str, ...]:
        return (kpi,)

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        passed = fold(graph, lambda v: 1.0 - lost(figures.loaded(v.name, kpi), kpi), _all, _shared)
        return 100.0 * (1.0 - passed)


@dataclass(frozen=True)
class AddedMeans:
    """Mean delays add along the chain (METHOD.md 9; paper D, section VI.C), however they hang
    together; the path from source to sink counts once where it was measured. Branches are weighted
    by their shares.

    Parameters
    ----------
    handover_ms : float, default=0.0
        As in `BottleneckAndSum`.
    """

    handover_ms: float = 0.0
    name: ClassVar[str] = "added-means"

    def refusal(self, kpi: str, load: LoadFamily) -> str:
        if kpis.of(kpi).quantile is not None:
            return f"percentiles such as {kpi} do not add; only means do"
        return _clients_divide(load) if kpi == kpis.MEAN else f"{kpi} is not a mean that adds"

    def needs(self, kpi: str) -> tuple[str, ...]:
        return (kpi,)

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        path = figures.path_ms
        added = fold(graph, lambda v: figures.loaded(v.name, kpi) - path, _total, _shared)
        return np.asarray(np.maximum(added + path + self.handover_ms, kpis.SMALLEST))


@dataclass(frozen=True)
class Convolved:
    """Percentiles of the sum of the functions' response times (METHOD.md 9).

    Each function's distribution is made from its percentiles, and its mean where stated
    (`ResponseTimes`). Times are drawn evenly and added along the way that a request takes, the path
    from source to sink counted once where it was measured; at a split it takes one branch, so that
    branches are a mixture. What is expected is that functions
    are independent. They need not be: quota periods in phase make all of them slow at once. So the
    draws that intervals are made of go from independent times to comonotone ones, all functions at
    the same quantile.

    Parameters
    ----------
    handover_ms : float, default=0.0
        As in `BottleneckAndSum`; moves the whole distribution.
    points : int, default=4096
        Drawn requests.
    seed : int, default=0
        The same seed draws the same requests at every operating point: curves stay smooth.
    """

    handover_ms: float = 0.0
    points: int = 4096
    seed: int = 0
    name: ClassVar[str] = "convolved"

    def refusal(self, kpi: str, load: LoadFamily) -> str:
        if kpis.of(kpi).quantile is None:
            return f"{self.name} composes percentiles such as {kpis.P95}, not {kpi}"
        return _clients_divide(load)

    def needs(self, kpi: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((kpis.MEDIAN, kpis.P95, kpi)))

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        names = [vnf.name for vnf in functions_of(graph)]
        said = np.stack([figures.loaded(name, kpi) for name in names])
        if len(names) == 1:
            moved = said[0]
        else:
            factors = np.concatenate([said / said[:, :1], np.ones_like(said[:1])])
            alone, together = self._percentiles(graph, names, kpi, figures)
            weight = figures.dependence[:, None]
            # Functions drawn faster than the path alone would leave a time below zero.
            apart, alike = (np.maximum(p.scaled(factors), kpis.SMALLEST) for p in (alone, together))
            moved = apart ** (1.0 - weight) * alike**weight
        return np.asarray(np.maximum(moved + self.handover_ms, kpis.SMALLEST))

    def _percentiles(
        self, graph: Node, names: Sequence[str], kpi: str, figures: Figures
    ) -> tuple[Percentile, Percentile]:
        """Of what is expected (row 0): with independent and with comonotone functions.

        Parts are the functions, and last what the path is counted too often.
        """
        k = len(names)
        u = uniforms(self.points, k + 1 + _splits(graph), self.seed)
        passed = _passed(graph, u[:, k + 1 :])
        laws = [_law(figures, name) for name in names]

        def percentile(columns: Sequence[int]) -> Percentile:
            drawn = zip(names, laws, columns, strict=True)
            times = [law.quantiles(u[:, c]) * passed[name] for name, law, c in drawn]
            path = figures.path_ms * (1.0 - np.sum(list(passed.values()), axis=0))
            times.append(np.broadcast_to(path, times[0].shape))
            return percentile_of_sum(np.stack(times), kpis.of(kpi).quantile or 0.5)

        return percentile(range(k)), percentile([k] * k)


@dataclass(frozen=True)
class LeastThroughput:
    """Throughput: the least in a series, the sum over branches, each at its share (METHOD.md 9)."""

    name: ClassVar[str] = "least-throughput"

    def refusal(self, kpi: str, load: LoadFamily) -> str:  # noqa: ARG002  # applies to every load
        if kpis.of(kpi).kind == "rate":
            return ""
        return f"{self.name} composes {', '.join(kpis.names('rate'))}, not {kpi}"

    def needs(self, kpi: str) -> tuple[str, ...]:
        return (kpi,)

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        return fold(
            graph,
            lambda v: figures.loaded(v.name, kpi),
            lambda parts: np.asarray(np.minimum.reduce(list(parts))),
            lambda branches, _: _total(branches),
        )


def default_rule(kpi: str, load: LoadFamily) -> ChainRule:
    """The rule that is right for a KPI under a kind of load (docs/chains.md).

    Raises
    ------
    UsageError
        If no built-in rule composes the KPI, or not under that load.
    """
    rule: ChainRule
    if kpis.find(kpi) is None:
        raise UsageError(
            f"no built-in rule composes {kpi}, which is no known KPI",
            remedy="Name a rule of a plug-in that does",
        )
    known = kpis.of(kpi)
    if known.kind == "rate":
        rule = LeastThroughput()
    elif known.kind == "share":
        rule = ThinnedLoss()
    elif known.kind == "response_time" and load == "closed":
        rule = BottleneckAndSum()
    elif kpi == kpis.MEAN:
        rule = AddedMeans()
    elif known.quantile is not None:
        rule = Convolved()
    else:
        rule = WeakestLink()
    must_apply(rule, kpi, load)
    return rule


def must_apply(rule: ChainRule, kpi: str, load: LoadFamily) -> None:
    """Raises `UsageError` where the rule refuses."""
    if why := rule.refusal(kpi, load):
        raise UsageError(
            why, where=f"rule {rule.name}", remedy="Choose another rule, or leave it to the default"
        )


def lost(per_cent: Floats, kpi: str) -> Floats:
    """A loss as a share; none at its floor, below which it cannot be told from zero."""
    floor = kpis.of(kpi).floor * _FLOOR_SLACK
    return np.asarray(np.where(per_cent <= floor, 0.0, np.minimum(per_cent, 100.0) / 100.0))


def _largest(parts: Sequence[Floats]) -> Floats:
    return np.asarray(np.maximum.reduce(list(parts)))


def _total(parts: Sequence[Floats]) -> Floats:
    return np.asarray(np.add.reduce(list(parts)))


def _all(parts: Sequence[Floats]) -> Floats:
    return np.asarray(np.multiply.reduce(list(parts)))


def _shared(branches: Sequence[Floats], shares: Sequence[float]) -> Floats:
    return _total([share * branch for branch, share in zip(branches, shares, strict=True)])


def _over_branches(kpi: str) -> Callable[[Sequence[Floats], Sequence[float]], Floats]:
    """Means and shares of branches are averaged; of percentiles the worst is a bound."""
    if kpi == kpis.MEAN or kpis.of(kpi).kind == "share":
        return _shared
    return lambda branches, _: _largest(branches)


def _law(figures: Figures, vnf: str) -> ResponseTimes:
    def told(kpi: str) -> Floats | None:
        return figures.loaded(vnf, kpi)[0] if figures.states(vnf, kpi) else None

    median, p95 = (figures.loaded(vnf, kpi)[0] for kpi in (kpis.MEDIAN, kpis.P95))
    return ResponseTimes.of(median, p95, told(kpis.P99), told(kpis.MEAN))


def _splits(node: Node) -> int:
    def counted(parts: Sequence[int]) -> int:
        return sum(parts)

    return fold(node, lambda _: 0, counted, lambda branches, _: 1 + sum(branches))


def _passed(graph: Node, u: Floats) -> dict[str, Floats]:
    """By function, 1 for each drawn request that passes it and 0 for others, of shape (n,).

    `u` of shape (n, splits) decides at each split.
    """
    passed: dict[str, Floats] = {}
    splits = iter(u.T)

    def walk(node: Node, mask: Floats) -> None:
        match node:
            case Vnf(name):
                passed[name] = mask
            case Series(parts):
                for part in parts:
                    walk(part, mask)
            case Parallel(branches, shares):
                branch = np.searchsorted(np.cumsum(shares[:-1]), next(splits), side="right")
                for place, part in enumerate(branches):
                    walk(part, mask * (branch == place))

    walk(graph, np.ones(len(u)))
    return passed


def _clients_divide(load: LoadFamily) -> str:
    if load != "closed":
        return ""
    return (
        "in a closed loop the clients are divided among the functions, so that times that each "
        "has with all clients do not add"
    )


def _no_loss_in_a_closed_loop(kpi: str, load: LoadFamily) -> str:
    if kpi == kpis.LOSS and load == "closed":
        return "in a closed loop clients wait for their answers and no plan is missed"
    return ""


def _for_response_times(name: str, kpi: str) -> str:
    return f"{name} composes response times ({', '.join(kpis.names('response_time'))}), not {kpi}"


def _unknown(name: str, kpi: str) -> str:
    return f"{name} does not know {kpi}, nor whether more of it is worse"
