"""Competitors in campaigns and SLAs: how they are written, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.descriptors.sla_text import parse_sla
from workbench.domain.competitors import Competitor, competitor_of
from workbench.domain.errors import WorkbenchError
from workbench.paths import Workspace

CAMPAIGN = """
kind: campaign
targets:
  - vnf: haproxy
    resource_parameters: [{name: vcpu, values: [25%]}]
workload_parameters:
  - {name: filesize, values: [10kB]}
  - {name: competitor, values: [VALUES]}
primary_workload_parameter: {name: rate, range: [100/s, 1000/s]}
"""


def loaded(tmp_path: Path, values: str):  # type: ignore[no-untyped-def]
    path = tmp_path / "contended.yaml"
    path.write_text(CAMPAIGN.replace("VALUES", values))
    return load_campaign(str(path), workspace=Workspace(tmp_path)).campaign


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("cpu", "cpu"),
        ("cpu:100@function", "cpu"),
        ("cache:50%", "cache:50"),
        ("memory:100@others", "memory@others"),
        ("disk:5@neighbours", "disk:5@neighbours"),
    ],
)
def test_a_competitor_has_one_text_however_it_was_written(text: str, same: str) -> None:
    competitor = Competitor.parse(text)
    assert competitor is not None
    assert competitor.text == same
    assert Competitor.parse(same) == competitor


def test_a_campaign_has_a_configuration_for_each(tmp_path: Path) -> None:
    campaign = loaded(tmp_path, 'none, "cpu:50@function", memory')
    given = [competitor_of(c) for c in campaign.configurations(campaign.targets[0])]
    assert given == [None, Competitor("cpu", 50), Competitor("memory")]
    assert campaign.template("stressor").role == "competitor"
    alone = loaded(tmp_path, "none")
    assert "stressor" not in {template.name for template in alone.templates}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("gpu", "is 'gpu', must be none or one of cpu, cache, memory, disk"),
        ('"cpu:0"', "whose intensity must be 1 to 100 per cent"),
        ("cpu@moon", "whose place must be one of: function, neighbours, others"),
        ('cpu, "cpu:100"', "which is given twice"),
        ("50", "must be a competitor such as cpu:50@function"),
    ],
)
def test_what_is_none_is_a_sentence(tmp_path: Path, values: str, said: str) -> None:
    with pytest.raises(WorkbenchError) as caught:
        loaded(tmp_path, values)
    assert said in str(caught.value)


def test_an_sla_may_say_beside_whom_it_holds() -> None:
    sla = parse_sla("p95<=200ms @ rate=300/s, competitor=cpu:100", "rate")
    assert sla.workload == {"competitor": "cpu"}
