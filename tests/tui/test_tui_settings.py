"""Settings of a campaign: what is shown is what stands there, whatever stands there."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import paths
from workbench.descriptors.drafts import beginning, checked, document_of, text_from
from workbench.descriptors.loading import library_for
from workbench.descriptors.palette import palette
from workbench.domain.drafts import Palette
from workbench.domain.errors import Mistake
from workbench.domain.resources import allotted_words
from workbench.tui.screens.campaign.allocation_settings import (
    EVERY,
    allocation,
    combination,
    functions,
)
from workbench.tui.screens.campaign.campaign_settings import LOADS, campaign_settings
from workbench.tui.screens.campaign.settings import Setting, placed, scalar, scalars

WORKSPACE = paths.Workspace(Path("/nowhere"))
CAMPAIGNS = library_for(WORKSPACE).names("campaign")


@pytest.fixture(scope="module")
def known() -> Palette:
    return palette(WORKSPACE)


def all_settings(document: dict[str, Any], known: Palette, chosen: int) -> list[Setting]:
    rest = campaign_settings(document, known, chosen)
    own = [combination(chosen), *allocation(document, known, chosen)]
    return [*own, *(setting for found in rest.values() for setting in found)]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_writing_what_is_shown_leaves_a_campaign_as_it_is(name: str, known: Palette) -> None:
    text = beginning(name, WORKSPACE)
    _, before, mistakes = checked("x", text, WORKSPACE)
    assert not mistakes
    assert before is not None
    for chosen in range(len(before.targets)):
        document = document_of(text)
        assert document is not None
        for setting in all_settings(document, known, chosen):
            if setting.here and (setting.options is None or setting.read(document)):
                shown = setting.read(document)
                setting.write(document, shown)
                assert setting.read(document) == shown, setting.name
        _, after, mistakes = checked("x", text_from(document), WORKSPACE)
        assert not mistakes
        assert after == before


@pytest.mark.parametrize("load", LOADS)
def test_every_load_can_be_gone_to_and_back(load: str, known: Palette) -> None:
    document = document_of(beginning("demo", WORKSPACE))
    assert document is not None
    by_name = {s.name: s for s in all_settings(document, known, 0)}
    by_name["load"].write(document, load)
    assert by_name["load"].read(document) == load
    by_name["load"].write(document, "open, constant")
    by_name["sla"].write(document, "")
    _, campaign, mistakes = checked("x", text_from(document), WORKSPACE)
    assert not mistakes
    assert campaign is not None
    assert campaign.load.key == "open-constant"


def test_a_router_of_a_draft_from_nothing_needs_no_more_than_its_load(known: Palette) -> None:
    document = document_of(beginning("", WORKSPACE))
    assert document is not None
    document["targets"] = [{"vnf": "firewall"}]
    by_name = {s.name: s for s in all_settings(document, known, 0)}
    _, _, (mistake,) = checked("x", text_from(document), WORKSPACE)
    assert "choose a load of packets" in mistake.message
    by_name["load"].write(document, "packets")
    assert (by_name["kpi"].read(document), by_name["kpi_max"].read(document)) == ("loss_pct", "90%")
    assert not checked("x", text_from(document), WORKSPACE)[2]
    hint = {s.name: s for s in all_settings(document, known, 0)}["sla"].hint
    assert hint == "none; e.g. loss<=1% @ packet_rate=10000/s"
    by_name["kpi"].write(document, "jitter_ms")
    assert by_name["kpi_max"].read(document) == "1000 ms"
    by_name["load"].write(document, "closed")
    assert (by_name["kpi"].read(document), by_name["kpi_max"].read(document)) == (
        "p95_ms",
        "1000 ms",
    )


def test_a_ceiling_of_ones_own_stays_with_a_kpi_in_the_same_unit(known: Palette) -> None:
    document = document_of(beginning("", WORKSPACE))
    assert document is not None
    by_name = {s.name: s for s in all_settings(document, known, 0)}
    by_name["kpi_max"].write(document, "300 ms")
    by_name["kpi"].write(document, "p99_ms")
    assert by_name["kpi_max"].read(document) == "300 ms"
    by_name["kpi"].write(document, "throughput_rps")
    assert by_name["kpi_max"].read(document) == "", "of a rate there is no usual one"


def test_what_a_chain_is_given_and_its_functions_alone_are_not() -> None:
    document = document_of(beginning("", WORKSPACE))
    assert document is not None
    shares = {"tinyproxy": ["25%", "50%"], "haproxy": ["50%", "100%"]}
    given = [{"vnf": vnf, "name": "vcpu", "values": own} for vnf, own in shares.items()]
    document["targets"] = [
        {"name": "both", "series": [*shares], "resource_parameters": given},
        {"vnf": "tinyproxy", "resource_parameters": [{"name": "vcpu", "values": ["10%", "80%"]}]},
        {"vnf": "haproxy"},
    ]
    _, campaign, mistakes = checked("x", text_from(document), WORKSPACE)
    assert not mistakes
    assert campaign is not None
    assert campaign.beyond_alone() == {"haproxy.vcpu": (0.5, 1.0)}, "25 % is its template's"
    assert campaign.beyond_alone("both") == campaign.beyond_alone()
    assert not campaign.beyond_alone("haproxy")
    assert allotted_words(campaign.beyond_alone()) == "haproxy with 50% and 100%"


KEYS = st.sampled_from(
    ("targets", "vnf", "chain", "series", "parallel", "name", "resource_parameters", "values",
     "primary_workload_parameter", "range", "scale", "load", "kind", "arrivals", "sampling",
     "method", "workload_parameters", "flavors", "windows", "kpi", "sla", "combine")
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=examples(200), deadline=None)
@given(
    document=st.dictionaries(KEYS, JSON, max_size=8),
    text=st.text(max_size=10),
    at=st.integers(-1, 3),
)
def test_no_draft_is_too_broken_to_be_shown_and_written(
    document: dict[str, Any], text: str, at: int, known: Palette
) -> None:
    for setting in all_settings(document, known, at):
        assert isinstance(setting.read(document), str)
        changed = copy.deepcopy(document)
        setting.write(changed, setting.options[0] if setting.options else text)
        assert isinstance(setting.read(changed), str)


def test_values_are_what_yaml_would_make_of_them() -> None:
    assert scalars("25%, 0.5,1 ,, 10 kB") == ["25%", 0.5, 1, "10 kB"]
    assert scalar("  ") is None
    assert scalar("1e3") == "1e3"
    assert scalar("007") == 7


def test_functions_are_found_wherever_they_stand(known: Palette) -> None:
    assert functions({"vnf": "haproxy", "name": "mine"}, known) == ["haproxy"]
    assert functions({"chain": "tinyproxy-haproxy"}, known) == ["tinyproxy", "haproxy"]
    nested = {
        "series": [
            "squid",
            {"parallel": [{"vnf": "haproxy", "name": "ha-1"}, {"chain": "tinyproxy-haproxy"}]},
        ]
    }
    assert functions(nested, known) == ["squid", "ha-1", "tinyproxy", "haproxy"]
    assert functions({"chain": "nowhere"}, known) == []


def test_a_mistake_belongs_to_the_line_that_names_most_of_its_field(known: Palette) -> None:
    document = document_of(beginning("demo", WORKSPACE))
    assert document is not None
    fields = (
        ("targets[0].resource_parameters[0].values[1]", "vcpu of haproxy"),
        ("load.think_time", "think_time"),
        ("load.kind", "load"),
        ("workload_parameters[0].values[0]", "filesize"),
        ("primary_workload_parameter.range[1]", "range"),
        ("targets[0].primary_workload_parameter.range", "own-range"),
        ("kpi_max", "kpi_max"),
        ("sampling.method", "sampler"),
        ("targets[1].vnf", ""),
        ("agents", ""),
    )
    mistakes = [Mistake("x.yaml", 1, 1, field, field) for field, _ in fields]
    own, others = placed(mistakes, all_settings(document, known, 0))
    assert own == {name: field for field, name in fields if name}
    assert [m.field for m in others] == ["targets[1].vnf", "agents"]


def test_all_targets_at_once_is_no_target_of_its_own(known: Palette) -> None:
    document = document_of(beginning("demo", WORKSPACE))
    assert document is not None
    assert not combination(EVERY).here
    lines = {s.name: s for s in allocation(document, known, EVERY)}
    assert lines["vcpu of haproxy"].read(document) == ""
    lines["vcpu of haproxy"].write(document, "")
    assert "resource_parameters" not in document["targets"][0]
    assert document["targets"][2]["resource_parameters"][0]["vnf"] == "tinyproxy"
