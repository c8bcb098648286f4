"""`recommend` and what is exported of it, by the installed command."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import yaml
from driving import REPOSITORY, Workbench
from recommending_session import CHAIN, campaign, write_session

FIELDS = {
    "id", "sla", "confidence", "met", "allocation", "replicas", "usage", "cost", "probability",
    "margin_wl", "runners_up", "extrapolated", "model_version",
    "after", "lab_iterations", "lab_s", "whose",
}  # fmt: skip
SLA = "p95<=1000ms @ concurrent=80, filesize=10kB"
MANY = "p95<=2200ms @ concurrent=300, filesize=10kB"
FUNCTIONS = REPOSITORY / "tests" / "engine" / "canary_functions.yaml"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "session.duckdb"
    asyncio.run(write_session(path, campaign()))
    return path


@pytest.fixture
def session(shared: Workbench, written: Path, request: pytest.FixtureRequest) -> str:
    """A session of the test's own in the workspace of all, whose engine runs."""
    name = request.node.name.removeprefix("test_")[:30]
    shutil.copy(written, shared.root / "sessions" / f"{name}.duckdb")
    return name


def test_an_allocation_is_recommended_beside_greedy_scaling_and_exported(
    shared: Workbench, session: str
) -> None:
    asked = ("recommend", session, "--chain", CHAIN, "--sla", MANY, "--compare", "greedy")
    found = shared.json(*asked, "--json")
    assert found.keys() == FIELDS | {"greedy"}
    assert (found["id"], found["sla"], found["met"]) == ("r1", MANY, True)
    assert found["allocation"] == {"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 1.0}
    assert found["replicas"] == {"haproxy": 1, "tinyproxy": 3}
    assert found["cost"] == 3.25
    assert 0.95 <= found["probability"] <= 1
    assert found["margin_wl"] > 0
    assert found["usage"].keys() == {"haproxy", "tinyproxy"}
    assert found["extrapolated"] == []
    assert (found["model_version"], found["lab_iterations"], found["lab_s"]) == (0, 0, 0)
    for other in found["runners_up"]:
        assert other.keys() == {
            "allocation", "replicas", "usage", "cost", "probability", "margin_wl", "extrapolated",
        }  # fmt: skip
        assert other["cost"] >= found["cost"]
    greedy = found["greedy"]
    assert greedy["met"]
    assert greedy["iterations"] == len(greedy["steps"]) > 4
    assert greedy["lab_iterations"] == 0

    path = shared.run("export", session, "--recommendation", "r1", "--as", "compose").stdout
    services = yaml.safe_load(Path(path.strip()).read_text(encoding="utf-8"))["services"]
    assert services["tinyproxy"]["deploy"]["replicas"] == 3
    assert services["haproxy"]["labels"]["workbench.sla"] == MANY
    failing = shared.run("export", session, "--recommendation", "r7", "--as", "json", expect=2)
    assert "no recommendation 'r7'" in failing.stderr

    # Nobody has measured the chain: the interval holds what the hand-over of others has added.
    wide = SLA.replace("1000ms", "2500ms")
    text = shared.run("recommend", session, "--chain", CHAIN, "--sla", wide).stdout
    assert max(map(len, text.splitlines())) < 80
    rows = {line.split("  ")[0]: line.split()[1:] for line in text.splitlines()}
    assert rows["haproxy"] == ["25%", "20%"]
    assert rows["tinyproxy"][0] == "50%"
    assert "Recommendation r2" in text, "each answer is one of its own"


def test_what_nothing_meets_is_a_finding_and_says_what_comes_closest(
    shared: Workbench, session: str
) -> None:
    wanted = ("recommend", session, "--chain", CHAIN, "--sla", "p95<=10ms @ concurrent=80")
    failing = shared.run(*wanted, expect=1)
    assert "nothing meets" in failing.stdout
    assert "comes closest" in failing.stdout
    assert (
        shared.json("show", session, "--json")["recommendations"][0]["recommendation"]["chosen"]
        is None
    )


def test_what_cannot_be_asked_is_a_sentence(shared: Workbench, session: str) -> None:
    for wrong, sentence in (
        (("--sla", "p95<1s", "--chain", CHAIN), "compares with '<'"),
        (("--sla", SLA), "nothing says which is meant"),
        (("--sla", SLA, "--chain", CHAIN, "--confidence", "1"), "under 1"),
        (("--sla", SLA, "--chain", CHAIN, "--cost", "./none.yaml"), "none.yaml"),
        ((), "--sla"),
    ):
        failing = shared.run("recommend", session, *wrong, expect=2)
        assert sentence in failing.stderr
        assert "Traceback" not in failing.stderr


@pytest.mark.slow
def test_what_is_recommended_is_verified_on_the_lab_beside_greedy_scaling(
    shared: Workbench,
) -> None:
    shared.run("run", str(FUNCTIONS), "--session", "f", "--lab", "sim", "--seed", "3", "--headless")
    asked = ("recommend", "f", "--chain", CHAIN, "--sla", "mean<=100ms @ rate=300/s", "--verify")
    found = shared.json(*asked, "--compare", "greedy", "--on-lab", "--budget", "5m", "--json")
    assert found.keys() == FIELDS | {"greedy", "verified"}
    verified = found["verified"]
    assert verified.keys() == {"sample_id", "kpis", "met", "lab_s", "note"}
    assert verified["met"]
    assert verified["kpis"]["mean_ms"]["value"] <= 100.0
    assert found["lab_iterations"] == 1 + (found["lab_s"] > verified["lab_s"])
    assert found["lab_s"] >= verified["lab_s"] > 0.0
    assert found["greedy"]["lab_iterations"] == found["greedy"]["iterations"]
    assert found["greedy"]["lab_s"] > 0.0
    text = shared.run(*asked).stdout
    assert "Measured there, it holds: mean_ms of" in text
    assert max(map(len, text.splitlines())) < 80


def test_what_cannot_be_measured_is_a_sentence_and_the_recommendation_stays(
    shared: Workbench, session: str
) -> None:
    asked = ("recommend", session, "--chain", CHAIN, "--sla", SLA)
    failing = shared.run(*asked, "--verify", expect=3)
    assert "r1 is stored, and was not verified: the image of haproxy is" in failing.stderr
    shared.run("export", session, "--recommendation", "r1", "--as", "json")
    for wrong, sentence in (
        (("--on-lab",), "Add --compare greedy"),
        (("--budget", "5m"), "nothing is measured"),
        (("--verify", "--budget", "soon"), "is not a duration"),
    ):
        failing = shared.run(*asked, *wrong, expect=2)
        assert sentence in failing.stderr
