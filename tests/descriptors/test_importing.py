"""Somebody else's table: what its columns become, what is set aside, what is written for it.

The two formats are public ones: experiments of the Softwarised Network Data Zoo (a Squid cache,
tng-bench's column names), and MoonGen's counters as paper C's data hold them. The figures are made
up here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.importing import (
    TableRead,
    check,
    descriptors,
    explained,
    load_mapping,
    read_table,
)
from workbench.descriptors.library import library_for
from workbench.descriptors.loading import load_campaign
from workbench.descriptors.mapping import MappingText
from workbench.domain.campaign import Campaign
from workbench.domain.errors import DescriptorError, UsageError
from workbench.labs.recorded.table import read_table as read_recording
from workbench.paths import Workspace

SQUID = "param__func__de.upb.px-squid.0.1__"
AB = "metric__mp.input.vdu01.0__ab_"
ZOO = f"""\
experiment_name,{SQUID}cpu_bw,{SQUID}mem_max,param__func__mp.input__cmd_start,\
{AB}request_per_second,{AB}mean_time_per_request
zoo_1,0.1,64,ab -c 1 -i http://40.0.0.254:80/,90,11.1
zoo_2,0.1,64,"ab -c 1 http://40.0.0.254:80/bunny.mp4",0.09,11100
zoo_3,0.2,64,ab -c 1 -i http://40.0.0.254:80/,180,5.6
zoo_4,0.2,64,ab -c 1 http://40.0.0.254:80/bunny.mp4,0.18,5600
zoo_5,0.2,64,wget http://elsewhere/,0.18,5600
zoo_6,0.2,64,ab -c 1 -i http://40.0.0.254:80/,fast,5.5
zoo_7,0.2,64
"""
PAIRS = [(0.05, 0.5), (0.1, 0.25), (0.2, 0.125)]
MOONGEN = """\
Time,Device,Direction,PacketRate,Mbit,TotalPackets
1679587546,Device: id=0,RX,0.55,1562,552011
1679587547,Device: id=0,RX,1.73,4874,2278346
1679587548,Device: id=0,RX,1.76,4976,4039217
"""


def read(folder: Path, table: str, mapping: str) -> tuple[TableRead, MappingText]:
    """By a mapping that ships, or by a text of one."""
    (folder / "theirs.csv").write_text(table, encoding="utf-8")
    if "\n" in mapping:
        (folder / "theirs.yaml").write_text(mapping, encoding="utf-8")
        mapping = str(folder / "theirs.yaml")
    text = load_mapping(mapping, workspace=Workspace(folder))
    return read_table(folder / "theirs.csv", text), text


def imported(folder: Path, table: TableRead, text: MappingText) -> Campaign:
    workspace = Workspace(folder)
    files = descriptors("theirs", table, text, library_for(workspace), "theirs.csv")
    check(files, "theirs", workspace=workspace)
    for file, body in files.items():
        path = workspace.templates / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
    return load_campaign("theirs", workspace=workspace).campaign


def test_columns_of_a_data_zoo_become_ours_and_other_rows_are_set_aside(tmp_path: Path) -> None:
    table, text = read(tmp_path, ZOO, "data-zoo-squid")
    assert table.rows[0] == {
        "target": "px-squid",
        "wl": 1,
        "px-squid.vcpu": 0.1,
        "px-squid.memory_bytes": 64e6,
        "filesize_bytes": 1,
        "throughput_rps": 90.0,
        "mean_ms": 11.1,
    }
    assert len(table.rows) == 4
    assert [line for line, _ in table.set_aside] == [6, 7, 8]
    said = "\n".join(explained(table, ["campaigns/theirs.yaml"]))
    for words in (
        "experiment_name -> nothing (left out",
        f"{SQUID}mem_max -> px-squid.memory_bytes (times 1e+06)",
        "line 6: filesize_bytes is 'wget http://elsewhere/', for which the mapping's `values`",
        "line 7: throughput_rps is 'fast', not a number",
        "line 8: 3 cells under 6 names",
        "4 rows are used",
    ):
        assert words in said
    campaign = imported(tmp_path, table, text)
    (plan,) = campaign.targets
    assert plan.target.name == "px-squid"
    assert {p.key: p.values for p in plan.resources} == {
        "px-squid.vcpu": (0.1, 0.2),
        "px-squid.memory_bytes": (64e6,),
    }
    recording = tmp_path / "ours.csv"
    recording.write_text(table.as_csv(), encoding="utf-8")
    samples = read_recording(recording, campaign, 0.1).samples
    assert {s.point.configuration for s in samples} == set(campaign.configurations(plan))


def test_seconds_of_one_run_are_one_sample_of_a_chain_of_routers(tmp_path: Path) -> None:
    table, text = read(tmp_path, MOONGEN, "moongen")
    (row,) = table.rows
    assert row["throughput_pps"] == pytest.approx(1e6 * (0.55 + 1.73 + 1.76) / 3)
    assert (row["measured_s"], table.merged) == (3.0, 3)
    campaign = imported(tmp_path, table, text)
    assert [vnf.name for vnf in campaign.targets[0].target.vnfs] == [
        "bridge",
        "payload-scan",
        "firewall",
    ]
    assert campaign.load.kind == "open"
    assert campaign.template("bridge").passage == "router"


def test_columns_that_samples_print_are_no_riddles(tmp_path: Path) -> None:
    """What `workbench samples --format csv` says of use and purpose is no allocation."""
    head = "target,haproxy.vcpu,wl,p95_ms,usage.haproxy.memory_bytes,purpose\n"
    rows = "haproxy,0.5,10,2,1e6,profile\nhaproxy,0.5,20,3,2e6,profile\n"
    table, text = read(tmp_path, head + rows, "kind: mapping\nload: {kind: open}\n")
    assert [row["purpose"] for row in table.rows] == ["profile", "profile"]
    campaign = imported(tmp_path, table, text)
    assert [p.key for p in campaign.targets[0].resources] == ["haproxy.vcpu"]


def test_pairs_of_allocations_stay_pairs(tmp_path: Path) -> None:
    """Of all combinations most would have no row, and end as stopped after no sample."""
    rows = "".join(
        f"haproxy-tinyproxy,{wl},3,{ha},{tiny}\n" for ha, tiny in PAIRS for wl in (10, 20)
    )
    head = "target,wl,p95_ms,haproxy.vcpu,tinyproxy.vcpu\n"
    table, text = read(tmp_path, head + rows, "kind: mapping\nload: {kind: open}\n")
    campaign = imported(tmp_path, table, text)
    (plan,) = campaign.targets
    found = campaign.configurations(plan)
    assert {(c.vcpu("haproxy"), c.vcpu("tinyproxy")) for c in found} == set(PAIRS)
    assert len(found) == len(PAIRS)


def test_the_order_of_a_chain_comes_from_its_name_or_is_asked_for(tmp_path: Path) -> None:
    head = "target,wl,p95_ms,haproxy.vcpu,tinyproxy.vcpu\n"
    plain = "kind: mapping\nload: {kind: closed}\n"
    table, text = read(tmp_path, f"{head}tinyproxy-haproxy,1,5,0.1,0.2\n", plain)
    campaign = imported(tmp_path, table, text)
    assert [v.name for v in campaign.targets[0].target.vnfs] == ["tinyproxy", "haproxy"]
    table, text = read(tmp_path, f"{head}mine,1,5,0.1,0.2\n", plain)
    with pytest.raises(UsageError, match=r"in which order.*chains: \{mine: \[haproxy, tinyproxy"):
        imported(tmp_path, table, text)


@pytest.mark.parametrize("order", [("small", "x-small"), ("x-small", "small")])
def test_a_cell_means_what_it_is_to_the_letter_whatever_stands_first(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    bytes_of = {"small": 64e6, "x-small": 32e6}
    meanings = ", ".join(f"{name}: {bytes_of[name]:.0f}" for name in order)
    mapping = (
        "kind: mapping\nload: {kind: open}\ncolumns: {mine.memory_bytes: size}\n"
        f"values: {{mine.memory_bytes: {{{meanings}}}}}\n"
    )
    rows = "target,wl,p95_ms,size\nmine,1,5,small\nmine,2,5,x-small\nmine,3,5,a small one\n"
    table, _ = read(tmp_path, rows, mapping)
    assert [row["mine.memory_bytes"] for row in table.rows] == [64e6, 32e6, 64e6]


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ("columns: {p95: rps}", "is no column of ours"),
        ("units: {p95_ms: hours}", "is 'hours', must be a number or one of: us, µs, ms, s, min"),
        ("rows: minutes", "rows"),
        ("units: {filesize_bytes: kB}\nconstants: {filesize_bytes: 10}", "in our own unit already"),
        ("colour: red", "is not known here"),
    ],
)
def test_mistakes_of_a_mapping_are_located(tmp_path: Path, mapping: str, says: str) -> None:
    with pytest.raises(DescriptorError) as refused:
        read(tmp_path, ZOO, f"kind: mapping\nload: {{kind: closed}}\n{mapping}\n")
    assert "theirs.yaml:3:" in str(refused.value)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("target,wl,rps\na,1,2\n", "has no KPI"),
        ("wl,p95_ms\n1,2\n", "has no column target.*constants"),
        ("target,wl,p95_ms\n,1,2\n", r"no row that can be used: target is ''.*line 2"),
    ],
)
def test_a_table_that_says_too_little_is_refused(tmp_path: Path, table: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(tmp_path, table, "kind: mapping\nload: {kind: closed}\n")


def test_a_column_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"column 'latncy'.*did you mean latency"):
        read(
            tmp_path,
            "target,wl,latency\na,1,2\n",
            "kind: mapping\ncolumns: {p95_ms: latncy}\nload: {kind: closed}\n",
        )


def test_points_that_were_repeated_unequally_are_said(tmp_path: Path) -> None:
    rows = "target,wl,p95_ms\nmine,1,5\nmine,1,6\nmine,1,7\nmine,2,9\n"
    table, text = read(tmp_path, rows, "kind: mapping\nload: {kind: closed}\n")
    assert "points were measured 1 to 3 times" in "\n".join(explained(table, []))
    assert imported(tmp_path, table, text).sampling.repetitions == 1
