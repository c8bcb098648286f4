"""A plugin's cost and rule of composition under watch: what breaks its contract is named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from workbench import plugins
from workbench.domain.errors import PluginError, WorkbenchError
from workbench.domain.parameters import ParameterValue

if TYPE_CHECKING:
    from workbench.chains.base import ChainRule, Figures, LoadFamily
    from workbench.domain.topology import Node
    from workbench.models.base import Floats
    from workbench.sla.costs import Cost

T = TypeVar("T")


class CheckedCost:
    """A plugin's cost, each figure of which is looked at: one NaN would put all out of order.

    Parameters
    ----------
    name : str
        As the plugin is registered, for the sentence.

    Raises
    ------
    PluginError
        Where it breaks its contract.
    """

    def __init__(self, name: str, cost: Cost) -> None:
        self.name = name
        self.cost = cost
        unit = getattr(cost, "unit", None)
        if not isinstance(unit, str):
            raise self._broken("does not say in `unit` what its figures are of")
        self.unit = unit

    def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> float:
        amount = tried(lambda: float(self.cost.of_instance(vnf, resources)), self._broken)
        if not (math.isfinite(amount) and amount >= 0.0):
            raise self._broken(f"says that an instance of {vnf} costs {amount:g}")
        return amount

    def _broken(self, how: str) -> PluginError:
        return PluginError(
            f"{self.name!r} {how}", where="workbench.costs", remedy="Choose another cost"
        )


class CheckedRule:
    """A rule of composition, each answer of which is looked at. Raises as `CheckedCost`.

    Parameters
    ----------
    name : str
        As the rule is registered.
    """

    def __init__(self, name: str, rule: ChainRule) -> None:
        self.name = name
        self._rule = rule

    def refusal(self, kpi: str, load: LoadFamily) -> str:
        return tried(lambda: str(self._rule.refusal(kpi, load)), self._broken)

    def needs(self, kpi: str) -> tuple[str, ...]:
        return tried(lambda: tuple(self._rule.needs(kpi)), self._broken)

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        import numpy as np  # what only names a rule does without

        composed = tried(
            lambda: np.asarray(self._rule.compose(graph, kpi, figures), dtype=float), self._broken
        )
        rows = len(figures.dependence)
        if composed.ndim != 2 or len(composed) != rows:
            raise self._broken(f"composes an array of shape {composed.shape}, not of {rows} rows")
        if np.isnan(composed).any():
            raise self._broken(f"composes {kpi} to what is no number")
        return composed

    def _broken(self, how: str) -> PluginError:
        return PluginError(
            f"{self.name!r} {how}",
            where="workbench.chain_rules",
            remedy="Choose another rule, or leave it to the default",
        )


def tried(attempt: Callable[[], T], broken: Callable[[str], PluginError]) -> T:
    """What a plugin answers; errors of ours pass, any other is told in a sentence."""
    try:
        return attempt()
    except WorkbenchError:
        raise
    except plugins.FAILURES as error:
        raise broken(f"raises {type(error).__name__}: {error}") from error
