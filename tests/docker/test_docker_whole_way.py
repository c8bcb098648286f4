"""From two profiles to a deployment on the real lab: predict, canary, accept, recommend, verify.

A shared host may spoil any measurement, so each is asked for again until it says something, and
waits `BUDGET` at most for a quiet host; what is asserted then has margins that noise does not
reach: 44 ms of delayed acknowledgements against the 1.5 ms that the profiles of both functions say.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from docker_targets import left_of
from driving import REPOSITORY, Workbench

pytestmark = [
    pytest.mark.docker,
    pytest.mark.usefixtures("known"),  # its images are built
]

CHAIN = ("--chain", "tinyproxy-haproxy")
TRAINED = "haproxy=25%, tinyproxy=50%"
"""Where the model learns."""
UNSEEN = "haproxy=50%, tinyproxy=25%"
"""Where it is asked."""
GUARD = ("--guard", "mean<=500ms")
HOLDS = "mean<=200ms @ rate=100/s, filesize=10kB"
BEYOND = "mean<=10ms @ rate=100/s, filesize=10kB"
"""The profiles promise a tenth of it, and no allocation of the chain holds it."""
ATTEMPTS = 3
BUDGET, FULL_BUDGET = "150s", "20m"
"""Of each command that measures: about twice what it takes on a quiet host."""


def test_two_profiles_become_a_verified_deployment_of_their_chain(
    served: Workbench, full_length: bool
) -> None:
    served.longest_s = 1500
    allocations = 4 if full_length else 2
    budget = FULL_BUDGET if full_length else BUDGET
    session = profiled(served, full_length, budget)
    weakest = ("--rule", "weakest-link", "--json")
    for chain in ("tinyproxy-haproxy", "haproxy-tinyproxy"):
        asked = ("predict", session, "--chain", chain, "--at", "rate=100/s, filesize=10kB")
        predicted = served.json(*asked, *weakest)
        assert len(predicted) == allocations, "every combination of what was profiled"
        assert all(p["value"]["value"] < 15.0 for p in predicted)

    steps = "10" if full_length else "3"
    asked = ("canary", session, *CHAIN, *GUARD, "--allocate", TRAINED, "--steps", steps, "--json")
    proposed = until(served, asked, walked, budget)
    assert all(s["value"]["value"] > 30.0 for s in kept(proposed))
    assert proposed["after"]["rmse"] < 0.5 * proposed["before"]["rmse"], "by held-out loads"

    # The weakest link was wrong, beyond both intervals and the noise of this host.
    wrong = json.loads(served.run("compare", session, *CHAIN, *weakest, expect=1).stdout)
    assert [outlier["verdict"] for outlier in wrong["outliers"]] == ["worse"]
    assert wrong["outliers"][0]["ratio"] > 5.0

    accepted = served.json("canary", session, *CHAIN, "--accept", "--why", "as measured", "--json")
    assert (accepted["decision"], accepted["version"]) == ("accepted", 1)
    refused = served.run("recommend", session, *CHAIN, "--sla", BEYOND, "--json", expect=1)
    assert not json.loads(refused.stdout)["met"]

    if full_length:
        assert_right_where_it_was_not_trained(served, session)

    asked = ("recommend", session, *CHAIN, "--sla", HOLDS, "--compare", "greedy", "--on-lab")
    found = until(served, (*asked, "--verify", "--json"), confirmed, budget)
    assert (found["met"], found["model_version"]) == (True, 1)
    assert found["probability"] >= 0.95
    assert found["lab_iterations"] == 1
    assert found["verified"]["kpis"]["mean_ms"]["value"] > 30.0
    assert found["greedy"]["lab_iterations"] >= 1

    exported = ("export", session, "--recommendation", found["id"], "--as", "compose")
    deployed = yaml.safe_load(Path(served.run(*exported).stdout.strip()).read_text("utf-8"))
    for function in ("tinyproxy", "haproxy"):
        limits = deployed["services"][function]["deploy"]["resources"]["limits"]
        assert float(limits["cpus"]) == found["allocation"][f"{function}.vcpu"]
    assert left_of(session) == ([], [])


def assert_right_where_it_was_not_trained(served: Workbench, session: str) -> None:
    """What was accepted, at another allocation and other loads."""
    asked = ("canary", session, *CHAIN, *GUARD, "--allocate", UNSEEN, "--steps", "2", "--json")
    until(served, (*asked, "--share", "0.8"), kept, FULL_BUDGET)
    right = json.loads(served.run("compare", session, *CHAIN, "--json", expect=None).stdout)
    assert right["model_version"] == 1
    asked = ("compare", session, *CHAIN, "--rule", "weakest-link", "--json")
    alone = json.loads(served.run(*asked, expect=1).stdout)
    assert error_at(right, UNSEEN) < 0.5 * error_at(alone, UNSEEN)
    assert right["mape"] < 0.5 * alone["mape"]


def profiled(served: Workbench, full_length: bool, budget: str) -> str:
    """The name of a session in which two thirds of each function's samples are valid; in the gate,
    which asks for two of each, half of them."""
    text = (REPOSITORY / "tests" / "data" / "whole_way.yaml").read_text(encoding="utf-8")
    if full_length:
        text = text.replace("max_samples: 3", "max_samples: 8")
    else:  # both ends of the range, and tinyproxy at the one allocation at which the model learns
        text = text.replace("max_samples: 3", "max_samples: 2")
        head, _, tail = text.rpartition("values: [25%, 50%]")
        text = f"{head}values: [50%]{tail}"
    configurations = 4 if full_length else 3
    enough = 2 / 3 if full_length else 1 / 2
    campaign = served.root / "whole_way.yaml"
    campaign.write_text(text, encoding="utf-8")
    for _ in range(ATTEMPTS):
        session = f"way-{secrets.token_hex(4)}"
        asked = ("run", str(campaign), "--session", session, "--lab", "docker", "--headless")
        asked += ("--budget", budget, "--json")
        done = served.run(*asked, expect=None)  # 1: a configuration without any result
        assert done.returncode in (0, 1), done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert events[-1]["outcome"] in ("done", "budget")
        taken = [event["sample"] for event in events if event["event"] == "SampleTaken"]
        held = Counter(configured(sample) for sample in taken if sample["valid"])
        least = enough * len(taken) / configurations
        if len(held) == configurations and min(held.values()) >= least:
            return session
    pytest.fail(f"no profile of {ATTEMPTS} says enough: {[s['findings'] for s in taken]}")


def configured(sample: dict[str, Any]) -> tuple[str, float]:
    """The function and its vCPUs."""
    (vcpu,) = sample["point"]["configuration"]["resources"].values()
    return sample["point"]["target"], vcpu


def until(
    served: Workbench,
    command: tuple[str, ...],
    says_something: Callable[[dict[str, Any]], Any],
    budget: str,
) -> dict[str, Any]:
    """What a command printed that measures, the first time that the host let it."""
    spoiled = []
    for _ in range(ATTEMPTS):
        done = served.run(*command, "--budget", budget, expect=None)
        assert done.returncode != 2, done.stderr
        if done.returncode in (0, 1) and says_something(told := json.loads(done.stdout)):
            found: dict[str, Any] = told
            return found
        spoiled.append(done.stdout + done.stderr)
    pytest.fail(f"none of {ATTEMPTS} says anything: {spoiled}")


def walked(told: dict[str, Any]) -> bool:
    """The canary came to the end of its steps."""
    return bool(told["canary"]["ending"]["state"] == "done")


def kept(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps of a canary that count."""
    return [step for step in told["canary"]["steps"] if step["verdict"] == "kept"]


def confirmed(found: dict[str, Any]) -> bool:
    """Both were measured: what is recommended holds, and greedy scaling came to an end."""
    asked = (found.get("verified"), found.get("greedy"))
    return all(one is not None and one["met"] for one in asked)


def error_at(compared: dict[str, Any], allocation: str) -> float:
    """Mean relative error of the mean response time in one configuration."""
    words = dict(word.split("=") for word in allocation.replace("%", "").split(", "))
    wanted = {f"{vnf}.vcpu": float(share) / 100 for vnf, share in words.items()}
    (error,) = (
        row["mape"]
        for row in compared["configurations"]
        if row["configuration"]["resources"] == wanted
    )
    return float(error)
