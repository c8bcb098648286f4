"""What a campaign would cost with each sampler, before anything runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from driving import REPOSITORY, Workbench

from workbench import plugins


def test_plan_tells_what_each_sampler_would_cost(
    workbench: Workbench, small_campaign: Path
) -> None:
    plan = workbench.json("plan", str(small_campaign), "--lab", "sim", "--json")
    costs = plan["samplers"]
    assert {c["sampler"] for c in costs} == set(plugins.names("samplers"))
    assert [c["sampler"] for c in costs if c["chosen"]] == ["bisection"]
    assert [c["lab_s"] for c in costs] == sorted(c["lab_s"] for c in costs)
    assert not [c["note"] for c in costs if c["figure"] == "unknown"]
    for cost in costs:
        assert 0 < cost["samples"] <= plan["samples"] == 12
        assert cost["lab_s"] > 0.0

    done = workbench.run("plan", str(small_campaign), "--lab", "sim")
    shown = done.stdout.splitlines()
    assert any(line.split()[:3] == ["bisection", "(chosen)", "12"] for line in shown)
    assert any(line.split()[:1] == ["heuristic"] for line in shown)
    assert "against a stand-in" in done.stderr
    assert not list((workbench.root / "sessions").iterdir()), "nothing is stored"


def test_what_a_fleet_would_take_is_told_without_the_configurations(
    workbench: Workbench, small_campaign: Path
) -> None:
    done = workbench.run("plan", str(small_campaign), "--lab", "sim", "--hosts", "2")
    shown = [line.split() for line in done.stdout.splitlines()]
    assert "configuration" not in done.stdout
    assert shown[0][1:5] == ["on", "lab", "sim:", "at"]
    place = shown.index(["hosts", "shards", "lab", "time", "efficiency"])
    one, two = shown[place + 2 : place + 4]
    assert (one[0], one[-1], two[0]) == ("1", "100%", "2")
    assert 0 < int(two[-1].rstrip("%")) < 100
    assert "efficiency: speed-up over one host" in done.stderr
    assert "more would save less than a tenth" in done.stderr


@pytest.mark.long
def test_a_campaign_of_nine_parameters_is_planned(workbench: Workbench) -> None:
    campaign = REPOSITORY / "tests" / "data" / "wide.yaml"
    plan = workbench.json("plan", str(campaign), "--lab", "sim", "--json")
    assert len(plan["configurations"]) == 2**9
    assert plan["samples"] == 2**9 * 10
    assert {c["sampler"] for c in plan["samplers"]} == set(plugins.names("samplers"))
    costs = {cost["sampler"]: cost for cost in plan["samplers"]}
    assert {cost["figure"] for cost in costs.values()} <= {"scaled", "at_most"}
    assert costs["uniform"]["figure"] == "scaled"
    assert "of 512 configurations" in costs["uniform"]["note"]
    assert costs["uniform"]["samples"] == plan["samples"], "each configuration takes all it may"


def test_a_recording_is_found_from_the_folder_in_which_it_was_typed(
    served: Workbench,
    small_campaign: Path,
    small_session: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The engine stands in another one."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    recording = Path(shutil.copy(small_session, elsewhere / "theirs.duckdb"))
    there = Workbench(elsewhere, served.runtime, {"WORKBENCH_WORKSPACE": str(served.root)})
    lab = f"recorded:./{recording.name}"
    plan = there.json("plan", str(small_campaign), "--lab", lab, "--json")
    assert plan["lab"] == f"recorded:{recording}"
