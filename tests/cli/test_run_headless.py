"""The main job without a screen, on the simulated lab: run, look, export, recall."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from driving import REPOSITORY, Workbench

WALL_TIMES = ("started_at",)


def taken(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    samples = [event["sample"] for event in events if event["event"] == "SampleTaken"]
    return [{k: v for k, v in sample.items() if k not in WALL_TIMES} for sample in samples]


SMALL = REPOSITORY / "tests" / "data" / "small.yaml"
SMALL_RUN = (str(SMALL), "1m", 2, ("haproxy", "capacity", "seed 7", "done"), "haproxy haproxy")
DEMO_RUN = (
    "demo",
    "2m",
    8,
    ("haproxy-tinyproxy", "tinyproxy-haproxy", "capacity", "seed 7", "done"),
    "tinyproxy-haproxy haproxy",
)
"""A campaign, a budget that ends it early, its configurations, words of `show`, whose log."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("campaign", "budget", "configurations", "words", "whose"),
    [
        pytest.param(*SMALL_RUN, id="small"),
        pytest.param(*DEMO_RUN, id="demo", marks=pytest.mark.long),
    ],
)
def test_run_prints_every_event_and_ends_with_the_breakpoints(
    workbench: Workbench,
    campaign: str,
    budget: str,
    configurations: int,
    words: tuple[str, ...],
    whose: str,
) -> None:
    run = ("run", campaign, "--lab", "sim", "--headless", "--json")
    events = workbench.events(*run, "--seed", "7", "--session", "t1")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {event["session"] for event in events} == {"t1"}
    last = events[-1]
    assert last["event"] == "RunFinished"
    assert last["outcome"] == "done"
    samples = taken(events)
    assert last["samples"] == len(samples) == len({sample["id"] for sample in samples})
    assert last["invalid"] == sum(not sample["valid"] for sample in samples)
    found = {(b["target"], json.dumps(b["configuration"]), b["rule"]) for b in last["breakpoints"]}
    assert len(found) == len(last["breakpoints"]) == configurations * 5
    for one in last["breakpoints"]:
        assert one["state"] in {"found", "none_in_range", "below_range", "unresolved"}
        if one["state"] == "found":
            assert one["low"] <= one["wl"] <= one["high"]

    # The plan told the lab time within 25 %.
    plan = next(event["plan"] for event in events if event["event"] == "CampaignPlanned")
    assert 0.75 <= plan["lab_s"] / last["measured_s"] <= 1.25

    # The same seed gives the same samples; another one does not.
    begun = {
        seed: taken(
            workbench.events(
                *run, "--seed", str(seed), "--session", f"seed-{seed}", "--budget", budget
            )
        )
        for seed in (7, 8)
    }
    assert begun[7] == samples[: len(begun[7])]
    assert len(begun[7]) >= 2
    assert begun[8] != samples[: len(begun[8])]

    # What the functions wrote is in the session, and told as what it is: simulated.
    logged = workbench.run("show", "t1", "--logs").stdout.splitlines()
    assert any(f"{whose}: simulated: a queue with" in line for line in logged)
    stored = workbench.run("show", "t1", "--logs", "--json").stdout.splitlines()
    assert [json.loads(line) for line in stored] == [
        event for event in events if event["event"] == "LogWritten"
    ]
    assert sum(len(json.loads(line)["log"]["lines"]) for line in stored) == len(logged)

    # The session explains itself.
    shown = workbench.run("show", "t1").stdout
    for word in ("t1", *words):
        assert word in shown
    listed = {row["name"]: row for row in workbench.json("ls", "--json")}
    assert listed["t1"]["state"] == "finished"
    assert listed["t1"]["samples"] == len(samples)


def test_the_demo_begins_with_its_plan(workbench: Workbench) -> None:
    run = ("run", "demo", "--lab", "sim", "--seed", "7", "--headless", "--json", "--budget", "1m")
    events = workbench.events(*run)
    plan = next(event["plan"] for event in events if event["event"] == "CampaignPlanned")
    planned = {one["target"] for one in plan["configurations"]}
    assert {"haproxy-tinyproxy", "tinyproxy-haproxy"} < planned
    assert len(plan["configurations"]) == 8
    assert events[-1]["outcome"] == "budget"
    begun = {sample["point"]["target"] for sample in taken(events)}
    assert begun
    assert begun <= planned


@pytest.fixture
def session(workbench: Workbench, small_session: Path) -> str:
    shutil.copy(small_session, workbench.root / "sessions")
    return small_session.stem


@pytest.mark.slow
def test_samples_in_every_format(workbench: Workbench, session: str, tmp_path: Path) -> None:
    rows = workbench.samples(session)
    wanted = {
        *("target", "haproxy.vcpu", "filesize_bytes", "wl", "repetition", "throttled_share"),
        *("p95_ms", "p95_ms_low", "p95_ms_high", "throughput_rps", "load_model", "kpi_definition"),
        *("labels", "valid", "reason", "started_at", "measured_s"),
    }
    assert wanted <= set(rows[0])
    text = workbench.run("samples", session, "--format", "csv").stdout
    as_csv = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["wl"]) for row in as_csv] == [row["wl"] for row in rows]
    table = workbench.run("samples", session).stdout.splitlines()
    assert len(table) == len(rows) + 2
    parquet = tmp_path / "one.parquet"
    workbench.run("samples", session, "--format", "parquet", "--output", str(parquet))
    import duckdb

    read = duckdb.sql(f"SELECT wl FROM read_parquet('{parquet}')").fetchall()
    assert [wl for (wl,) in read] == [row["wl"] for row in rows]
    refused = workbench.run("samples", session, "--format", "parquet", expect=2)
    assert "--output" in refused.stderr


def test_a_taken_name_is_refused_with_the_way_to_resume(
    workbench: Workbench, session: str, small_campaign: Path
) -> None:
    refused = workbench.run(
        "run", str(small_campaign), "--lab", "sim", "--session", session, "--headless", expect=2
    )
    assert f"workbench resume {session}" in refused.stderr


def test_sessions_are_counted_up(workbench: Workbench, small_campaign: Path) -> None:
    for _ in range(2):
        workbench.run("run", str(small_campaign), "--lab", "sim", "--headless", "--budget", "5s")
    assert {row["name"] for row in workbench.json("ls", "--json")} >= {"small-1", "small-2"}


@pytest.mark.slow
def test_a_budget_ends_the_run_and_resume_goes_on(
    workbench: Workbench, small_campaign: Path
) -> None:
    first = workbench.events(
        "run", str(small_campaign), "--lab", "sim", "--session", "b", "--json", "--budget", "20s"
    )
    assert first[-1]["outcome"] == "budget"
    rest = workbench.events("resume", "b", "--json")
    assert rest[-1]["outcome"] == "done"
    assert rest[0]["seq"] == first[-1]["seq"] + 1
    whole = workbench.events("run", str(small_campaign), "--lab", "sim", "--session", "w", "--json")
    assert sorted(s["id"] for s in taken(first) + taken(rest)) == sorted(
        s["id"] for s in taken(whole)
    )


def test_bundle_import_and_recorded_lab_give_the_same_again(
    workbench: Workbench, session: str, small_campaign: Path
) -> None:
    bundle = workbench.run("export", session, "--as", "bundle").stdout.strip()
    assert {path.suffix for path in Path(bundle).iterdir()} == {".parquet", ".json"}
    workbench.run("import", bundle, "--session", "copy")
    assert workbench.samples("copy") == workbench.samples(session) == workbench.samples(bundle)

    recalled = workbench.events(
        "run", str(small_campaign), "--lab", f"recorded:{bundle}", "--session", "again", "--json"
    )
    original = workbench.json("show", session, "--json")

    def states(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
        return sorted((json.dumps(b["configuration"]), b["rule"], b["state"]) for b in found)

    assert states(recalled[-1]["breakpoints"]) == states(original["finished"]["breakpoints"])

    def figures(name: str) -> list[dict[str, Any]]:
        rows = sorted(workbench.samples(name), key=lambda row: str(row["id"]))
        return [{k: v for k, v in row.items() if k not in WALL_TIMES} for row in rows]

    assert figures("again") == figures(session)
