"""`--shared-cores`: two functions on one core of the simulated lab, from run to answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from documented import described
from driving import Workbench

CAMPAIGN = Path(__file__).with_name("shared_core.yaml")
CHAIN = ("--chain", "haproxy-tinyproxy")


@pytest.mark.slow
def test_what_functions_on_one_core_cost_each_other_is_told(served: Workbench) -> None:
    run = ("run", str(CAMPAIGN), "--session", "core", "--lab", "sim", "--headless", "--json")
    assert served.events(*run)[-1]["outcome"] == "done"

    asked = ("predict", "core", *CHAIN, "--shared-cores", "--at")
    (told,) = served.json(*asked, "rate=800/s, competitor=none", "--json")
    described([told], "`predict`")
    shared = told["shared_cores"]
    haproxy = next(one for one in shared["functions"] if one["vnf"] == "haproxy")
    assert (haproxy["neighbours"], haproxy["cores"]) == (["tinyproxy"], 1)
    assert 0.2 < haproxy["share"]["value"] < 0.6, "tinyproxy takes 0.5 ms a request"
    assert haproxy["alone"]["value"] < haproxy["beside"]["value"]
    assert told["value"]["value"] < shared["value"]["value"] <= shared["value"]["high"]

    words = served.run(*asked, "rate=800/s, competitor=none").stdout
    assert "slower beside tinyproxy (0." in " ".join(words.split())
    untold = "haproxy and tinyproxy are pinned to the same cores: what they cost each other there"
    ask = ("predict", "core", *CHAIN, "--at", "rate=800/s, competitor=none")
    assert untold in " ".join(served.run(*ask).stdout.split())
    assert untold not in " ".join(words.split())

    refused = served.run(*asked, "rate=800/s, competitor=cpu").stdout
    assert "neighbours and a competitor at once were not measured" in " ".join(refused.split())


def test_a_chain_whose_functions_share_no_core_is_wrong_use(served: Workbench) -> None:
    asked = ("predict", "demo-real", "--chain", "tinyproxy-haproxy", "--shared-cores")
    done = served.run(*asked, "--at", "rate=300/s, filesize=10kB", expect=2)
    assert "no two of its functions are pinned to the same cores" in " ".join(done.stderr.split())
