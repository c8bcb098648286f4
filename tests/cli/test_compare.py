"""`doctor --measure`, `compare` and what `show` says of a host, by the installed command."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest
from driving import REPOSITORY, Workbench


def run(workbench: Workbench, campaign: Path, session: str, lab: str, seed: int = 1) -> None:
    workbench.run(
        "run", str(campaign), *f"--lab {lab} --seed {seed} --session {session} --headless".split()
    )


@pytest.mark.slow
def test_the_host_is_measured_and_sessions_are_compared_by_that(
    workbench: Workbench, small_campaign: Path
) -> None:
    measured = workbench.run("doctor", "--measure", "--lab", "sim", "--pairs", "4")
    assert "smallest visible difference" in measured.stdout
    # Twice a second: a fast host may be through with some of them in between.
    phases = ("Generator against the bare sink", "Capacity of the function", "A/A run, deployment")
    assert any(phase in measured.stderr for phase in phases)
    short = small_campaign.read_text().replace("max_samples: 6", "max_samples: 4")
    small_campaign.write_text(short)
    run(workbench, small_campaign, "one", "sim", 1)
    run(workbench, small_campaign, "other", "sim", 2)
    noise = workbench.json("show", "one", "--json")["noise"]
    assert noise["lab"] == "sim"
    assert "Smallest visible difference of this host" in workbench.run("show", "one").stdout

    compared = workbench.json("compare", "one", "other", "--json")
    judged = [d for d in compared["differences"] if d["ratio"] is not None]
    assert {d["figure"] for d in judged} >= {"mean_ms", "p95_ms", "capacity"}
    for d in judged:
        assert d["floor"] in noise["smallest_difference"].values()
        if abs(d["ratio"] - 1) <= d["floor"] / (1 + d["floor"]):
            assert d["verdict"] == "no_visible_difference"
    printed = workbench.run("compare", "one", "one", "--exit-code").stdout
    assert "0 of " in printed
    assert "figures differ visibly" in printed


@pytest.mark.slow
def test_a_true_difference_is_claimed_and_can_be_asked_for_as_exit_code(
    workbench: Workbench, small_campaign: Path
) -> None:
    """haproxy burns some three times as much per request in the workspace's own template."""
    short = small_campaign.read_text().replace("max_samples: 6", "max_samples: 4")
    small_campaign.write_text(short)
    run(workbench, small_campaign, "before", "sim:noise=0")
    own = workbench.root / "templates" / "vnfs" / "haproxy"
    shutil.copytree(REPOSITORY / "templates" / "vnfs" / "haproxy", own)
    descriptor = own / "vnf.yaml"
    shipped = descriptor.read_text()
    slower, found = re.subn(
        r"service_us: (\d+)", lambda match: f"service_us: {4 * int(match[1])}", shipped
    )
    assert found == 1
    descriptor.write_text(slower)
    run(workbench, small_campaign, "after", "sim:noise=0")

    compared = workbench.json("compare", "before", "after", "--json")
    claims = {(d["figure"], d["wl"]): d for d in compared["differences"] if d["ratio"]}
    overloaded = claims["throughput_rps", 8000.0]
    assert overloaded["verdict"] == "lower"
    assert 0.2 < overloaded["ratio"] < 0.6
    assert claims["capacity", None]["verdict"] == "lower"
    assert ("throughput_rps", 500.0) not in claims, "that is the plan, not the function"
    text = workbench.run("compare", "before", "after", "--exit-code", expect=1).stdout
    assert "general figures stand in" in text
    assert "the image of haproxy is not the same" in text
    assert workbench.run("compare", "before", "after").returncode == 0


def test_compare_needs_two_sessions_that_are_there(workbench: Workbench) -> None:
    done = workbench.run("compare", "nobody", "nothing", expect=2)
    assert "nobody" in done.stderr


def test_options_of_measuring_without_measuring_are_wrong_use(workbench: Workbench) -> None:
    done = workbench.run("doctor", "--pairs", "4", expect=2)
    assert "Add --measure" in done.stderr


def test_ctrl_c_ends_measuring_with_nothing_kept(workbench: Workbench) -> None:
    with workbench.begin("doctor", "--measure", "--lab", "sim", "--pairs", "1000") as running:
        assert running.stderr is not None
        while "A/A run, deployment" not in (line := running.stderr.readline()):
            assert line, "it ended before it was interrupted"
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
    assert not list((workbench.runtime / "state").rglob("*.json"))
