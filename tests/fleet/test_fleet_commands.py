"""`fleet hold`, `release`, `prefer` and `ls --fleet`, as they are typed."""

from __future__ import annotations

import pytest
from driving import Workbench


@pytest.fixture
def hosts(workbench: Workbench) -> Workbench:
    (workbench.root / "hosts.yaml").write_text(
        "kind: hosts\nhosts: {alpha: {kind: simulated}, beta: {kind: simulated}}\n"
    )
    return workbench


def test_a_host_is_held_named_and_given_back(hosts: Workbench) -> None:
    held = hosts.run("fleet", "hold", "alpha", "--for", "2h", "--why", "new cable")
    assert "alpha is held by" in held.stderr
    assert "new cable" in held.stderr
    status = hosts.run("fleet", "status", expect=1).stderr
    assert "alpha is held by" in status
    assert "beta is held" not in status

    assert "alpha is free" in hosts.run("fleet", "release", "alpha").stderr
    assert "alpha was not held" in hosts.run("fleet", "release", "alpha").stderr
    assert "held" not in hosts.run("fleet", "status", expect=1).stderr


def test_what_cannot_be_held_is_a_sentence(hosts: Workbench) -> None:
    for words in ("hold alpah --for 2h", "release alpah"):
        assert "Did you mean alpha?" in hosts.run("fleet", *words.split(), expect=2).stderr
    assert "30 days" in hosts.run("fleet", "hold", "alpha", "--for", "800h", expect=2).stderr


def test_a_campaign_that_is_not_measured_cannot_be_preferred(hosts: Workbench) -> None:
    refused = hosts.run("fleet", "prefer", "nobody", "--priority", "5", expect=2)
    assert "nobody" in refused.stderr


def test_sessions_of_hosts_are_listed(hosts: Workbench) -> None:
    assert hosts.json("ls", "--fleet", "hosts.yaml", "--json") == {"alpha": [], "beta": []}
