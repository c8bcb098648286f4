"""What ships loads, lints clean, fits its JSON Schema and says what the documents say."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from ruamel.yaml import YAML

from workbench import paths
from workbench.descriptors.checking import lint
from workbench.descriptors.loading import list_campaigns, load_campaign, load_vnf_templates
from workbench.descriptors.lookups import KINDS, Kind
from workbench.descriptors.schemas import DIALECT, json_schema
from workbench.descriptors.vnf import SimulatedKey
from workbench.domain.kpis import known
from workbench.domain.samples import Usage
from workbench.labs.components import wiring
from workbench.paths import Workspace, located

TEMPLATES = paths.shipped("templates")
ROOT = Path(__file__).parents[2]
FOLDER_KINDS: dict[str, Kind] = {
    "vnfs": "vnf",
    "chains": "chain",
    "campaigns": "campaign",
    "metrics": "metrics",
    "prices": "prices",
    "mappings": "mapping",
}
SHIPPED = sorted(TEMPLATES.rglob("*.yaml"))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def _name(path: Path) -> str:
    return str(path.relative_to(TEMPLATES))


@pytest.mark.parametrize("path", SHIPPED, ids=_name)
def test_shipped_descriptor_has_no_mistake(path: Path, workspace: Workspace) -> None:
    assert lint(path, workspace=workspace) == ()


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """JSON Schema, as far as ours use it."""
    if "$ref" in schema:
        named = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        return fits(value, named, root)
    if "anyOf" in schema and not any(fits(value, option, root) for option in schema["anyOf"]):
        return False
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "number": int | float,
        "integer": int,
        "boolean": bool,
        "null": type(None),
    }
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return False
    if isinstance(value, list):
        most = schema.get("maxItems", len(value))
        return schema.get("minItems", 0) <= len(value) <= most and all(
            fits(item, schema.get("items", {}), root) for item in value
        )
    if isinstance(value, dict):
        known = schema.get("properties", {})
        other = schema.get("additionalProperties", True)
        return set(schema.get("required", ())) <= value.keys() and all(
            fits(below, known[key], root)
            if key in known
            else other is True or (isinstance(other, dict) and fits(below, other, root))
            for key, below in value.items()
        )
    return True


@pytest.mark.parametrize("path", SHIPPED, ids=_name)
def test_shipped_descriptor_fits_its_json_schema(path: Path) -> None:
    schema = json_schema(FOLDER_KINDS[path.relative_to(TEMPLATES).parts[0]])
    value = YAML(typ="safe", pure=True).load(path.read_text())

    assert fits(value, schema, schema)
    assert not fits({**value, "nonsense": 1}, schema, schema)


def test_json_schema_refuses_wrong_units_and_types() -> None:
    schema = json_schema("campaign")
    campaign = YAML(typ="safe", pure=True).load((TEMPLATES / "campaigns/demo.yaml").read_text())

    assert fits(campaign, schema, schema)
    for wrong in ({"budget": "8 parsecs"}, {"kpi_max": [1]}, {"targets": "haproxy"}):
        assert not fits({**campaign, **wrong}, schema, schema), wrong


@pytest.mark.parametrize("kind", KINDS)
def test_json_schema_states_its_dialect(kind: str) -> None:
    schema = json_schema(kind)

    assert schema["$schema"] == DIALECT
    assert schema["title"] == f"workbench {kind}"
    assert schema["additionalProperties"] is False


def test_demo_is_what_the_issue_asks_for(workspace: Workspace) -> None:
    campaign = load_campaign("demo", workspace=workspace).campaign

    allotted = {
        plan.target.name: [
            tuple(c.vcpu(vnf.name) for vnf in plan.target.vnfs)
            for c in campaign.configurations(plan)
        ]
        for plan in campaign.targets
    }
    assert allotted == {
        "haproxy": [(0.125,), (0.25,)],
        "tinyproxy": [(0.25,), (0.5,)],
        "haproxy-tinyproxy": [(0.25, 0.25), (0.25, 0.5)],
        "tinyproxy-haproxy": [(0.25, 0.25), (0.25, 0.5)],
    }
    assert campaign.load.kind == "open"
    assert campaign.sampling.max_samples == 10
    assert [p.values for p in campaign.workload] == [(10_000.0,)]
    assert {plan.primary.name for plan in campaign.targets} == {"rate"}
    templates = {t.name: t for t in campaign.templates}
    assert all(wiring.stages(plan.target, templates) for plan in campaign.targets)
    assert {t.name for t in campaign.templates} == {"haproxy", "tinyproxy", "source", "sink"}


def test_demo_closed_is_the_same_with_clients_that_think(workspace: Workspace) -> None:
    rates = load_campaign("demo", workspace=workspace).campaign
    clients = load_campaign("demo-closed", workspace=workspace).campaign

    # haproxy alone gets less, so that it saturates within Locust's reach.
    assert [p.resources for p in clients.targets][1:] == [p.resources for p in rates.targets][1:]
    assert clients.targets[0].resources[0].values == (0.04, 0.06)
    assert clients.load.kind == "closed"
    assert clients.load.think_time_s == 0.1
    assert clients.generator == "locust"
    for plan in clients.targets:
        assert (plan.primary.low, plan.primary.high, plan.primary.integer) == (5.0, 200.0, True)


def test_demos_stay_within_ten_minutes_of_lab_time(workspace: Workspace) -> None:
    for name in ("demo", "demo-closed"):
        campaign = load_campaign(name, workspace=workspace).campaign
        configurations = sum(len(campaign.configurations(plan)) for plan in campaign.targets)
        windows = campaign.windows
        seconds = (
            configurations * campaign.sampling.max_samples * (windows.warmup_s + windows.window_s)
        )
        assert seconds < 600.0, name


def test_every_file_that_takes_part_is_kept_without_folders_of_the_machine(
    workspace: Workspace,
) -> None:
    descriptors = load_campaign("demo", workspace=workspace).descriptors

    assert descriptors[0].path == "campaigns/demo.yaml"
    assert {d.path for d in descriptors} >= {
        "chains/haproxy-tinyproxy.yaml",
        "vnfs/source/vnf.yaml",
        "vnfs/sink/vnf.yaml",
        "metrics/http.yaml",
    }
    for descriptor in descriptors:
        assert descriptor.text == (TEMPLATES / descriptor.path).read_text()


def test_metrics_are_named_as_samples_name_them(workspace: Workspace) -> None:
    units = {}
    of = {"demo": "requests", "udp-loss": "packets", "mirror": "packets", "streaming": "streams"}
    for name, kpis in of.items():
        campaign = load_campaign(name, workspace=workspace).campaign
        assert campaign.load.unit == kpis
        units |= {m.name: m.unit for m in campaign.metrics if not m.name.startswith("*:")}
        usage = {m.name.removeprefix("*:") for m in campaign.metrics if m.name.startswith("*:")}
        assert usage == {field.name for field in fields(Usage)} - {"threads"}
    assert units == {name: kpi.unit for name, kpi in known().items()}


def test_stand_ins_have_the_keys_of_the_simulated_lab() -> None:
    from workbench.labs.simulated.component_models import ComponentModel

    assert set(get_args(SimulatedKey)) == {field.name for field in fields(ComponentModel)}


def test_every_shipped_function_has_its_build_folder(workspace: Workspace) -> None:
    templates = load_vnf_templates(workspace=workspace)

    assert {t.name for t in templates} >= {"haproxy", "tinyproxy", "source", "sink"}
    for template in templates:
        assert template.build.startswith("shipped:")
        folder = located(template.build)
        assert folder.is_absolute()
        assert (folder / "Dockerfile").is_file()


def test_campaigns_are_listed_with_their_summaries(workspace: Workspace) -> None:
    choices = {choice.name: choice for choice in list_campaigns(workspace)}

    assert {"demo", "demo-closed"} <= choices.keys()
    assert "rising request rates" in choices["demo"].summary


def _yaml_blocks(path: Path) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL)


def test_bring_your_own_function_as_the_readme_says(workspace: Workspace) -> None:
    function, campaign = _yaml_blocks(TEMPLATES / "vnfs" / "README.md")
    assert len(function.splitlines()) <= 10
    (workspace.templates / "vnfs" / "my-nginx").mkdir(parents=True)
    (workspace.templates / "campaigns").mkdir()
    (workspace.templates / "vnfs" / "my-nginx" / "vnf.yaml").write_text(function)
    (workspace.templates / "campaigns" / "my-nginx.yaml").write_text(campaign)

    loaded = load_campaign("my-nginx", workspace=workspace).campaign

    assert loaded.template("my-nginx").image == "nginx:1.27"
    assert [p.target.name for p in loaded.targets] == ["my-nginx"]


def test_examples_of_the_documentation_have_no_mistake(workspace: Workspace) -> None:
    blocks = _yaml_blocks(ROOT / "docs" / "descriptors.md")
    assert len(blocks) == 4
    for index, block in enumerate(blocks):
        path = workspace.root / f"example-{index}.yaml"
        path.write_text(block)
        assert lint(path, workspace=workspace) == ()
