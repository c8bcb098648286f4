"""Campaigns by name and by path: what wins, what is resolved, what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workbench import plugins
from workbench.descriptors.capacity import check_fits_host
from workbench.descriptors.checking import lint
from workbench.descriptors.loading import list_campaigns, load_campaign
from workbench.domain.campaign import Agent, InitializationCommand, Manager
from workbench.domain.codec import from_plain, to_plain
from workbench.domain.errors import DescriptorError, PluginError, UsageError
from workbench.domain.parameters import LoadModel
from workbench.domain.topology import Parallel, Series, Vnf
from workbench.engine.runs.fitting import fit
from workbench.paths import Workspace

SMALL = """\
kind: campaign
targets:
  - vnf: haproxy
primary_workload_parameter: {name: concurrent, range: [1, 64]}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def _put(workspace: Workspace, relative: str, text: str) -> Path:
    path = workspace.templates / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_defaults_are_those_of_the_domain(workspace: Workspace) -> None:
    _put(workspace, "campaigns/small.yaml", SMALL)

    campaign = load_campaign("small", workspace=workspace).campaign

    assert campaign.load == LoadModel("closed")
    assert (campaign.kpi, campaign.kpi_max, campaign.loss_goal) == ("p95_ms", 1000.0, 0.005)
    assert campaign.sla is None
    assert campaign.budget_s is None
    (plan,) = campaign.targets
    assert plan.resources[0].key == "haproxy.vcpu"
    assert plan.resources[0].values == (campaign.template("haproxy").default_vcpu,)


def test_everything_that_is_written_arrives_in_its_unit(workspace: Workspace) -> None:
    path = _put(
        workspace,
        "campaigns/full.yaml",
        SMALL
        + """\
agents: {lab: {class: docker, url: "${LAB_ENGINE}"}}
managers: {haproxy: {agent: lab, cpuset: 0-1}}
workload_parameters: [{name: filesize, values: [10kB, 1 MiB]}]
load: {kind: closed, think_time: 100 ms}
kpi: loss
kpi_max: 5%
sla: loss<=0.5% @ concurrent=32, filesize=10000B
sampling: {model: interpolation, epsilon: 2%, repetitions: 3, options: {seedling: 4, mode: wide}}
windows: {warmup: 500ms, window: 5s, timeout: 1min, request_timeout: 10s}
budget: 1.5h
initialization: [{manager: source, command: [sync, -f]}]
""",
    )

    campaign = load_campaign(str(path), workspace=workspace).campaign

    assert campaign.agents == (Agent("lab", "docker", "${LAB_ENGINE}"),)
    assert campaign.managers == (Manager("haproxy", "lab", "0-1"),)
    assert campaign.workload[0].values == (10_000.0, 2.0**20)
    assert campaign.load == LoadModel("closed", think_time_s=0.1)
    assert (campaign.kpi, campaign.kpi_max) == ("loss_pct", 5.0)
    assert campaign.sla is not None
    assert (campaign.sla.limit, campaign.sla.wl) == (0.5, 32.0)
    assert campaign.sla.workload == {"filesize_bytes": 10_000.0}
    assert (campaign.sampling.model, campaign.sampling.epsilon) == ("interpolation", 0.02)
    assert campaign.sampling.options == {"seedling": 4, "mode": "wide"}
    assert (campaign.windows.warmup_s, campaign.windows.timeout_s) == (0.5, 60.0)
    assert campaign.budget_s == 5400.0
    assert campaign.initialization == (InitializationCommand("source", ("sync", "-f")),)


def test_memory_bandwidth_and_flavors_are_resources_of_the_configuration(
    workspace: Workspace,
) -> None:
    _put(
        workspace,
        "campaigns/sizes.yaml",
        """\
kind: campaign
flavors:
  small: {vcpu: 25%, memory: 64 MiB}
  large: {vcpu: 200%, memory: 128 MiB}
targets:
  - chain: haproxy-tinyproxy
    resource_parameters:
      - {vnf: haproxy, name: flavor, values: [small, large]}
      - {vnf: haproxy, name: bandwidth, values: [100 Mbit/s]}
      - {vnf: tinyproxy, name: memory, values: [32 MiB]}
primary_workload_parameter: {name: concurrent, range: [1, 64]}
load: {kind: closed, think_time: 1s, generator: locust}
windows: {interval: 5%}
""",
    )

    campaign = load_campaign("sizes", workspace=workspace).campaign

    (plan,) = campaign.targets
    small, large = campaign.configurations(plan)
    assert small.resources == {
        "haproxy.flavor": "small",
        "haproxy.vcpu": 0.25,
        "haproxy.memory_bytes": 64 * 2**20,
        "haproxy.bandwidth_mbps": 100.0,
        "tinyproxy.vcpu": campaign.template("tinyproxy").default_vcpu,
        "tinyproxy.memory_bytes": 32 * 2**20,
    }
    assert large.vcpu("haproxy") == 2.0
    assert campaign.generator == "locust"
    assert campaign.windows.interval == 0.05
    assert from_plain(to_plain(campaign), type(campaign)) == campaign
    with pytest.raises(UsageError, match=r"need up to 2\.25 cores"):
        check_fits_host(campaign, 3)


def test_pairs_of_allocations_are_combined_by_their_places(workspace: Workspace) -> None:
    _put(
        workspace,
        "campaigns/pairs.yaml",
        """\
kind: campaign
targets:
  - chain: haproxy-tinyproxy
    combine: places
    resource_parameters:
      - {vnf: haproxy, name: vcpu, values: [5%, 10%, 200%]}
      - {vnf: tinyproxy, name: vcpu, values: [25%, 50%, 100%]}
      - {vnf: tinyproxy, name: memory, values: [32 MiB]}
workload_parameters:
  - {name: filesize, values: [10kB, 20kB]}
primary_workload_parameter: {name: rate, range: [100/s, 2000/s]}
""",
    )
    campaign = load_campaign("pairs", workspace=workspace).campaign
    (plan,) = campaign.targets
    found = campaign.configurations(plan)
    pairs = [(c.vcpu("haproxy"), c.vcpu("tinyproxy")) for c in found]
    assert pairs == [(0.05, 0.25)] * 2 + [(0.1, 0.5)] * 2 + [(2.0, 1.0)] * 2
    assert [c.parameter("filesize_bytes") for c in found] == [1e4, 2e4] * 3
    assert {c.resource("tinyproxy.memory_bytes") for c in found} == {32 * 2**20}
    fitted = fit(campaign, 2, None, lambda c: 0.0)
    (kept,) = fitted.campaign.targets
    assert [c.vcpu("haproxy") for c in fitted.campaign.configurations(kept)] == [
        0.05,
        0.05,
        0.1,
        0.1,
    ]
    assert "haproxy.vcpu 0.05/0.1" in fitted.notes[0]


def test_a_loaded_campaign_survives_the_codec(workspace: Workspace) -> None:
    campaign = load_campaign("demo", workspace=workspace).campaign

    assert from_plain(to_plain(campaign), type(campaign)) == campaign


def test_environment_references_stay_references(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_SECRET", "hunter2")
    _put(
        workspace,
        "vnfs/cache/vnf.yaml",
        "image: cache:1\nenvironment: {DB_PASSWORD: '${DB_SECRET}', WORKERS: 4}\n",
    )
    _put(workspace, "campaigns/cached.yaml", SMALL.replace("haproxy", "cache"))

    loaded = load_campaign("cached", workspace=workspace)

    environment = loaded.campaign.template("cache").environment
    assert environment == {"DB_PASSWORD": "${DB_SECRET}", "WORKERS": "4"}
    assert "hunter2" not in "".join(d.text for d in loaded.descriptors)


def test_the_workspace_wins_over_what_ships(workspace: Workspace) -> None:
    path = _put(workspace, "campaigns/demo.yaml", "summary: mine\n" + SMALL)

    assert load_campaign("demo", workspace=workspace).campaign.summary == "mine"
    (choice,) = (c for c in list_campaigns(workspace) if c.name == "demo")
    assert (choice.summary, choice.path) == ("mine", str(path))


def test_what_stands_beside_a_file_wins_over_the_workspace(
    workspace: Workspace, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "vnfs" / "haproxy").mkdir(parents=True)
    (elsewhere / "vnfs" / "haproxy" / "vnf.yaml").write_text("image: mine:1\n")
    (elsewhere / "x.yaml").write_text(SMALL)

    campaign = load_campaign(str(elsewhere / "x.yaml"), workspace=workspace).campaign

    assert campaign.name == "x"
    assert campaign.template("haproxy").image == "mine:1"


def test_a_generator_that_cannot_be_made_is_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ValueError("no licence")

    path = _put(workspace, "campaigns/own.yaml", SMALL + "load: {kind: closed, generator: oha}\n")
    monkeypatch.setattr(plugins, "load", lambda group, name: broken)
    with pytest.raises(PluginError, match="'oha' cannot be made: ValueError: no licence"):
        load_campaign(str(path), workspace=workspace)


def test_an_unknown_name_is_refused_with_the_known_ones(workspace: Workspace) -> None:
    with pytest.raises(
        UsageError,
        match=r"'dmo'; did you mean demo\? allowed: bursts, capture-disk, case-study, contention",
    ):
        load_campaign("dmo", workspace=workspace)


@pytest.mark.parametrize("name", ["", "..", "a b", "ä", "-x", "x" * 5000, "\x1b[31m"])
def test_odd_names_are_refused_politely(name: str, workspace: Workspace) -> None:
    with pytest.raises(UsageError) as raised:
        load_campaign(name, workspace=workspace)
    assert str(raised.value).isprintable()


def test_a_broken_campaign_is_listed_with_its_first_mistake(workspace: Workspace) -> None:
    path = _put(workspace, "campaigns/bad.yaml", SMALL + "kpi: p100\nbudget: 3\n")
    _put(workspace, "campaigns/good.yaml", SMALL)

    summaries = {choice.name: choice.summary for choice in list_campaigns(workspace)}

    assert summaries["bad"].startswith(f"broken: {path}:5:6: kpi: is 'p100'")
    assert summaries["good"] == ""


def test_a_broken_source_of_the_workspace_is_found(workspace: Workspace) -> None:
    _put(workspace, "vnfs/source/vnf.yaml", "image: load:1\nrole: function\n")
    _put(workspace, "campaigns/small.yaml", SMALL)

    with pytest.raises(DescriptorError) as raised:
        load_campaign("small", workspace=workspace)

    (mistake,) = raised.value.mistakes
    assert mistake.field == "targets[0].source"
    assert mistake.message == "is 'source', which is a function, not a source"


def test_chains_are_composed_and_series_are_flattened(workspace: Workspace) -> None:
    _put(workspace, "chains/tail.yaml", "series: [tinyproxy, {vnf: haproxy, name: last}]\n")
    path = _put(
        workspace,
        "campaigns/tree.yaml",
        """\
targets:
  - name: row
    series: [haproxy, {chain: tail}]
  - name: tree
    series:
      - haproxy
      - parallel: [{chain: tail, share: 75%}, {vnf: tinyproxy, name: side, share: 25%}]
  - name: even
    parallel: [haproxy, tinyproxy]
primary_workload_parameter: {name: rate, range: [1, 2]}
""",
    )

    row, tree, even = (
        plan.target.graph for plan in load_campaign(str(path), workspace=workspace).campaign.targets
    )

    tail = (Vnf("tinyproxy", "tinyproxy"), Vnf("last", "haproxy"))
    first = Vnf("haproxy", "haproxy")
    assert row == Series((first, *tail))
    side = Vnf("side", "tinyproxy")
    assert tree == Series((first, Parallel((Series(tail), side), (0.75, 0.25))))
    assert even == Parallel((first, Vnf("tinyproxy", "tinyproxy")), (0.5, 0.5))


def test_a_chain_brings_its_own_source(workspace: Workspace) -> None:
    _put(workspace, "vnfs/cannon/vnf.yaml", "role: source\nimage: cannon:1\nparameters: [flows]\n")
    _put(workspace, "chains/shot.yaml", "series: [haproxy]\nsource: cannon\n")
    text = """\
targets:
  - chain: shot
workload_parameters: [{name: %s, values: [%s]}]
primary_workload_parameter: {name: rate, range: [1, 2]}
"""
    good = _put(workspace, "campaigns/good.yaml", text % ("flows", "10"))
    bad = _put(workspace, "campaigns/bad.yaml", text % ("filesize", "1kB"))

    campaign = load_campaign(str(good), workspace=workspace).campaign

    assert campaign.targets[0].target.source == "cannon"
    assert campaign.workload[0].key == "flows"
    (mistake,) = lint(bad, workspace=workspace)
    assert "which source 'cannon' cannot offer; allowed: flows" in mistake.message


def test_a_passive_function_alone_can_be_described(workspace: Workspace) -> None:
    _put(workspace, "vnfs/sniffer/vnf.yaml", "placement: passive\nimage: sniffer:1\n")
    path = _put(workspace, "campaigns/small.yaml", SMALL.replace("haproxy", "sniffer"))

    assert lint(path, workspace=workspace) == ()
    (vnf,) = load_campaign(str(path), workspace=workspace).campaign.targets[0].target.vnfs
    assert vnf.placement == "passive"


def test_a_campaign_may_name_the_lab_that_it_is_meant_for(workspace: Workspace) -> None:
    path = _put(workspace, "campaigns/own.yaml", f"lab: sim:host_cores=16\n{SMALL}")
    assert load_campaign(str(path), workspace=workspace).campaign.lab == "sim:host_cores=16"
    path = _put(workspace, "campaigns/other.yaml", f"lab: recorded:mine\n{SMALL}")
    (mistake,) = lint(path, workspace=workspace)
    assert mistake.field == "lab"


def test_chains_of_chains_end_somewhere(workspace: Workspace) -> None:
    for index in range(60):
        below = f"{{chain: c{index + 1}}}" if index < 59 else "haproxy"
        _put(workspace, f"chains/c{index}.yaml", f"series: [{below}]\n")

    found = lint(workspace.templates / "chains" / "c0.yaml", workspace=workspace)

    assert len(found) == 1
    assert "is nested deeper than 20 chains" in found[0].message


def test_a_campaign_that_does_not_fit_the_host_is_refused_with_the_figures(
    workspace: Workspace,
) -> None:
    campaign = load_campaign("demo", workspace=workspace).campaign

    check_fits_host(campaign, 1.75)
    with pytest.raises(UsageError) as raised:
        check_fits_host(campaign, 1.5)
    sentence = str(raised.value)
    assert "need up to 0.75 cores" in sentence
    assert "1.75 in all, but this host has 1.5" in sentence
    assert "haproxy.vcpu=0.25,tinyproxy.vcpu=0.5" in sentence or (
        "haproxy.vcpu=0.5,tinyproxy.vcpu=0.25" in sentence
    )
    assert "--oversubscribe" in sentence


def test_a_passive_function_gets_a_copy_of_what_reaches_the_part_behind_it(
    workspace: Workspace,
) -> None:
    campaign = load_campaign("mirror", workspace=workspace).campaign
    alone, tapped = (plan.target for plan in campaign.targets)
    assert alone.copies == ()
    ((passive, copied),) = tapped.copies
    assert (passive.name, copied and copied.name) == ("tcpdump", "firewall")
    last = replace(tapped, graph=Series((Vnf("a", "firewall"), passive)))
    assert last.copies == ((passive, None),), "what reaches the sink"
