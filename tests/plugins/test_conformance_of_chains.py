"""Chain rules, costs and exports: what ships conforms, what breaks the contract is named."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from workbench import plugins
from workbench.chains.rules import WeakestLink
from workbench.conformance import chain_rules, costs, recommendation_exports
from workbench.conformance.running import CHECKED
from workbench.domain.topology import Node
from workbench.models.base import Floats

GROUPS: tuple[plugins.Group, ...] = ("chain_rules", "costs", "recommendation_exports")
SHIPPED = [(group, name) for group in GROUPS for name in plugins.names(group)]


@pytest.mark.parametrize(("group", "name"), SHIPPED)
def test_what_ships_keeps_its_contract(group: plugins.Group, name: str) -> None:
    for check in importlib.import_module(CHECKED[group]).CHECKS.values():
        check(plugins.load(group, name))


class Refuses(WeakestLink):
    def refusal(self, kpi: str, load: str) -> str:  # type: ignore[override]
        return "never"


class Halves(WeakestLink):
    def compose(self, graph: Node, kpi: str, figures: Any) -> Floats:
        return np.asarray(super().compose(graph, kpi, figures) / 2.0)


class FirstRowOnly(WeakestLink):
    def compose(self, graph: Node, kpi: str, figures: Any) -> Floats:
        return super().compose(graph, kpi, figures)[:1]


class Sorts(WeakestLink):
    def compose(self, graph: Node, kpi: str, figures: Any) -> Floats:
        return np.sort(super().compose(graph, kpi, figures), axis=0)


class Free:
    unit = " "

    def of_instance(self, vnf: str, resources: Mapping[str, Any]) -> float:
        return -1.0


def elsewhere(recommendation: Any, context: Any) -> Mapping[str, str]:
    return {"../up.txt": recommendation.session}


@pytest.mark.parametrize(
    ("checks", "part", "broken"),
    [
        (chain_rules.CHECKS, Refuses, {"applies_to_something": "it refuses all of"}),
        (chain_rules.CHECKS, Halves, {"a_chain_of_one_is_its_function": "not its function's"}),
        (chain_rules.CHECKS, FirstRowOnly, {"figures_are_sound": r"shape \(1, 4\), \(6, 4\)"}),
        (chain_rules.CHECKS, Sorts, {"rows_are_treated_alike": "depends on the order of rows"}),
        (
            costs.CHECKS,
            Free,
            {"says_what_it_is_of": "no unit", "an_instance_has_a_cost": "below 0"},
        ),
        (
            recommendation_exports.CHECKS,
            elsewhere,
            {"writes_files": "holds a folder", "says_where_it_comes_from": "the date"},
        ),
    ],
)
def test_what_breaks_a_contract_is_named(
    checks: Mapping[str, Any], part: Any, broken: dict[str, str]
) -> None:
    for check, sentence in broken.items():
        with pytest.raises(AssertionError, match=sentence):
            checks[check](part)
