"""Where functions share cores and an answer does not account for it, one sentence says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chain_session import chain_campaign

from workbench.domain.campaign import Manager
from workbench.engine.answers.chain_inputs import sharing_untold


@pytest.mark.parametrize(
    ("haproxy", "tinyproxy", "shared"),
    [("1", "1", True), ("0-1", "1-2", True), ("0", "1", False), ("1", "", False), ("", "", False)],
)
def test_functions_that_share_a_core_are_named(haproxy: str, tinyproxy: str, shared: bool) -> None:
    pins = {"haproxy": haproxy, "tinyproxy": tinyproxy}
    managers = tuple(Manager(name, "local", cpuset) for name, cpuset in pins.items())
    campaign = replace(chain_campaign(), managers=managers)
    chain = next(p.target for p in campaign.targets if len(p.target.vnfs) == 2)
    said = sharing_untold(campaign, chain)
    assert len(said) == shared
    if shared:
        names = " and ".join(vnf.name for vnf in chain.vnfs)
        assert said[0].startswith(f"{names} are pinned to the same cores")
    assert sharing_untold(campaign, campaign.target_plan("haproxy").target) == ()
