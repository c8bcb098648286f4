"""`workbench chains POLICY`: all chains that obey it, as a table and for descriptors."""

from __future__ import annotations

from driving import Workbench


def test_chains_are_listed_for_people_and_for_descriptors(workbench: Workbench) -> None:
    done = workbench.run("chains", "squid > haproxy & (tinyproxy | nginx)")
    lines = done.stdout.splitlines()
    assert lines[2] == "1  squid → haproxy → tinyproxy"
    assert len(lines) == 8
    assert done.stderr == "6 chains\n"
    found = workbench.json("chains", "haproxy", "--free", "tinyproxy", "--json")
    assert found == [
        {"name": "haproxy", "series": ["haproxy"]},
        {"name": "haproxy-tinyproxy", "series": ["haproxy", "tinyproxy"]},
        {"name": "tinyproxy-haproxy", "series": ["tinyproxy", "haproxy"]},
    ]


def test_a_policy_that_is_wrong_is_wrong_use(workbench: Workbench) -> None:
    for arguments, sentence in (
        (
            ["haproxy > tinyproxi"],
            "policy:1:11: vnf: is 'tinyproxi', but there is no VNF of that",
        ),
        (["haproxy >"], "policy:1:10: policy: the text ends"),
        (["haproxy & tinyproxy", "--limit", "1"], "policy:1:1: policy: makes more than 1 chain"),
        (["haproxy", "--limit", "0"], "0 is not a limit. Give a whole number from 1"),
    ):
        done = workbench.run("chains", *arguments, expect=2)
        assert sentence in done.stderr
        assert not done.stdout
