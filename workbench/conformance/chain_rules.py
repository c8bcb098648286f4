"""What every rule of composition must do; each check raises `AssertionError` with the sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

import numpy as np

from workbench.chains.base import ChainRule, LoadFamily
from workbench.domain import kpis
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.base import Floats

Factory = Callable[[], ChainRule]
Check = Callable[[Factory], None]

TRIED = kpis.names("response_time", "share", "rate")
FIRST, SECOND = Vnf("first", "first"), Vnf("second", "second")
LINE = Series((FIRST, SECOND))
SPLIT = Parallel((FIRST, SECOND), (0.25, 0.75))
ROWS, LOADS = 6, 4


class KnownFigures:
    """Figures of two functions; the second is the slower one. `order` of the rows, 0 first."""

    def __init__(
        self, order: Sequence[int] = range(ROWS), worse: Mapping[str, float] | None = None
    ) -> None:
        self._order, self._worse = list(order), worse or {}
        self.dependence: Floats = np.linspace(0.0, 1.0, ROWS)[self._order]
        self.path_ms = 0.2

    def loaded(self, vnf: str, kpi: str) -> Floats:
        return self._figure(vnf, kpi, np.linspace(1.0, 2.5, LOADS))

    def unloaded(self, vnf: str, kpi: str) -> Floats:
        return self._figure(vnf, kpi, np.ones(LOADS))

    def states(self, vnf: str, kpi: str) -> bool:  # noqa: ARG002  # profiles of everything
        return True

    def _figure(self, vnf: str, kpi: str, growth: Floats) -> Floats:
        size = {"p50_ms": 2.0, "p95_ms": 6.0, "p99_ms": 9.0, "mean_ms": 3.0}.get(kpi, 1.0)
        luck = np.linspace(1.0, 1.25, ROWS)[self._order]
        made = size * (1.0 if vnf == "first" else 1.5) * luck[:, None] * growth[None, :]
        factor = self._worse.get(vnf, 1.0)
        if kpis.of(kpi).more_is_better:
            return np.asarray(1000.0 / made / factor)
        return np.asarray(made * factor)


def _applied(rule: ChainRule) -> Iterator[str]:
    """KPIs that it composes under some load. Raises `AssertionError` for a refusal of no text."""
    for kpi in kpis.names("response_time", "share", "rate"):
        said = [rule.refusal(kpi, load) for load in get_args(LoadFamily)]
        assert all(isinstance(one, str) for one in said), f"refusal({kpi!r}, …) is no text"
        if not all(said):
            yield kpi


def applies_to_something(factory: Factory) -> None:
    """It has a name, composes at least one KPI, and says which KPIs that takes."""
    rule = factory()
    assert isinstance(rule.name, str), "its name is no text"
    assert rule.name, "it has no name"
    applied = list(_applied(rule))
    assert applied, f"it refuses all of {', '.join(TRIED)} under every load"
    for kpi in applied:
        unknown = set(rule.needs(kpi)) - set(TRIED)
        assert not unknown, f"for {kpi} it needs {', '.join(sorted(unknown))}, which no profile has"


def a_chain_of_one_is_its_function(factory: Factory) -> None:
    """There is nothing to compose."""
    rule = factory()
    for kpi in _applied(rule):
        got = _composed(rule, FIRST, kpi, KnownFigures())
        due = KnownFigures().loaded("first", kpi)
        floor = kpis.of(kpi).floor if kpi in kpis.names("share") else 0.0  # below it: none
        assert np.allclose(got, due, rtol=1e-6, atol=floor), (
            f"{kpi} of a chain of one is not its function's"
        )


def figures_are_sound(factory: Factory) -> None:
    """In series and in parallel: the right shape, finite, and from 0 on."""
    rule = factory()
    for kpi in _applied(rule):
        for graph in (LINE, SPLIT):
            got = _composed(rule, graph, kpi, KnownFigures())
            assert np.all(np.isfinite(got)), f"{kpi} is not finite"
            assert np.all(got >= 0.0), f"{kpi} is below 0"


def a_worse_function_makes_no_better_chain(factory: Factory) -> None:
    """Of response times and losses more is worse, of rates less."""
    rule = factory()
    for kpi in _applied(rule):
        sign = -1.0 if kpis.of(kpi).more_is_better else 1.0
        before = _composed(rule, LINE, kpi, KnownFigures())
        for vnf in ("first", "second"):
            after = _composed(rule, LINE, kpi, KnownFigures(worse={vnf: 1.5}))
            better = sign * (after - before) < -1e-9 * np.abs(before)
            assert not better.any(), f"{kpi} is better where {vnf} is worse"


def rows_are_treated_alike(factory: Factory) -> None:
    """Rows are ways in which profiles may be wrong: their order is nothing that a rule may use."""
    rule, order = factory(), (0, *reversed(range(1, ROWS)))
    for kpi in _applied(rule):
        straight = _composed(rule, LINE, kpi, KnownFigures())
        turned = _composed(rule, LINE, kpi, KnownFigures(order))
        assert np.allclose(turned, straight[list(order)]), f"{kpi} depends on the order of rows"


def the_same_figures_again(factory: Factory) -> None:
    """A stored prediction can be made again."""
    for kpi in _applied(factory()):
        one, other = (_composed(factory(), LINE, kpi, KnownFigures()) for _ in range(2))
        assert np.array_equal(one, other), f"{kpi} differs from call to call; take a seed"


def _composed(rule: ChainRule, graph: Node, kpi: str, figures: KnownFigures) -> Floats:
    got = np.asarray(rule.compose(graph, kpi, figures))
    assert got.shape == (ROWS, LOADS), f"{kpi} has shape {got.shape}, {(ROWS, LOADS)} is due"
    return got


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        applies_to_something,
        a_chain_of_one_is_its_function,
        figures_are_sound,
        a_worse_function_makes_no_better_chain,
        rows_are_treated_alike,
        the_same_figures_again,
    )
}
OPTIONAL = frozenset[str]()
