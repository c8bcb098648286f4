"""Price tables: read as written, found by name, their mistakes located."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench import plugins
from workbench.descriptors.checking import lint
from workbench.descriptors.prices import load_prices
from workbench.domain.errors import DescriptorError, UsageError
from workbench.domain.recommendations import Deployment, PriceTable
from workbench.paths import Workspace
from workbench.sla.costs import Prices, cost_of


def written(folder: Path, text: str) -> Path:
    file = folder / "templates" / "prices" / "mine.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_the_shipped_example_is_found_by_name_and_prices_a_deployment(tmp_path: Path) -> None:
    table = load_prices("example", workspace=Workspace(tmp_path))
    assert table == PriceTable(
        "example",
        "EUR",
        {"small": 0.02, "large": 0.07},
        {"vcpu": 0.04, "memory_gib": 0.005, "bandwidth_gbps": 0.02},
        0.005,
    )
    deployment = Deployment({"a.vcpu": 0.5, "b.flavor": "small", "b.vcpu": 9.0}, {"a": 2})
    assert cost_of(deployment, Prices(table)) == pytest.approx(2 * 0.025 + 0.025)


def test_a_table_of_the_workspace_comes_first_and_may_price_flavors_alone(tmp_path: Path) -> None:
    written(tmp_path, "currency: USD\nflavors: {small: 1}\n")
    table = load_prices("mine", workspace=Workspace(tmp_path))
    assert table == PriceTable("mine", "USD", {"small": 1.0})


def test_a_table_can_be_given_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("kind: prices\ncurrency: CHF\nper_hour: {vcpu: 0.1}\n")
    assert load_prices(str(file), workspace=Workspace(tmp_path)).per_hour == {"vcpu": 0.1}
    assert lint(file, workspace=Workspace(tmp_path)) == ()


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("currency: EUR\n", "1:1: file: prices nothing; give flavors"),
        ("currency: euro\nflavors: {s: 1}\n", "1:11: currency: is 'euro', must be three capitals"),
        ("currency: EUR\nflavors: {s: -1}\n", "2:14: flavors.s: is -1, must be at least 0"),
        ("currency: EUR\nper_hour: {cpu: 1}\n", "2:12: per_hour.cpu: is not known here; did you"),
        ("currency: EUR\nflavors: {s: cheap}\n", "2:14: flavors.s: is 'cheap', must be a number"),
    ],
)
def test_a_mistake_is_a_sentence_at_its_place(tmp_path: Path, text: str, mistake: str) -> None:
    file = written(tmp_path, text)
    found = lint(file, workspace=Workspace(tmp_path))
    assert str(found[0]).removeprefix(f"{file}:").startswith(mistake)
    with pytest.raises(DescriptorError):
        load_prices("mine", workspace=Workspace(tmp_path))


def test_an_unknown_table_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="no price table is called 'exampel'; did you mean example"
    ):
        load_prices("exampel", workspace=Workspace(tmp_path))


def test_cost_functions_are_a_group_of_plugins() -> None:
    assert "costs" in plugins.GROUPS
