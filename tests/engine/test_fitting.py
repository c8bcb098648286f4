"""`--fit`: what of a campaign a host and a budget can give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workbench.descriptors.capacity import check_fits_host
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Parameter
from workbench.engine.runs.fitting import FEWEST_LOADS, fit
from workbench.engine.runs.planning import make_plan
from workbench.labs.base import LabCosts
from workbench.paths import Workspace

COSTS = LabCosts(deploy_s=2.0, allocate_s=0.02, drive_overhead_s=0.3)


@pytest.fixture
def table2(tmp_path: Path) -> Campaign:
    return load_campaign("table2", workspace=Workspace(tmp_path)).campaign


def cost_s(campaign: Campaign) -> float:
    return make_plan(campaign, "docker", COSTS).lab_s


def values(campaign: Campaign, target: str) -> dict[str, tuple[float | str, ...]]:
    return {p.key: p.values for p in campaign.target_plan(target).resources}


def test_two_cores_keep_what_two_cores_can_give(table2: Campaign) -> None:
    with pytest.raises(UsageError, match="need up to 8 cores"):
        check_fits_host(table2, 2)
    fitted = fit(table2, 2, None, cost_s)
    check_fits_host(fitted.campaign, 2)
    assert values(fitted.campaign, "tinyproxy") == {"tinyproxy.vcpu": (0.25, 0.5, 0.75, 1.0)}
    assert values(fitted.campaign, "haproxy-tinyproxy") == {
        "haproxy.vcpu": (0.25, 0.5),
        "tinyproxy.vcpu": (0.25, 0.5),
    }
    assert fitted.campaign.sampling == table2.sampling, "without a budget nothing is thinned"
    assert fitted.notes[1] == (
        "tinyproxy keeps tinyproxy.vcpu 0.25/0.5/0.75/1.0: this host has 2 cores, "
        "too few for 4 larger allocations"
    )


def test_a_large_host_gives_all(table2: Campaign) -> None:
    assert fit(table2, 64, None, cost_s) == fit(table2, 9, None, cost_s)
    assert fit(table2, 64, None, cost_s).campaign == table2
    assert fit(table2, 64, None, cost_s).notes == ()


@pytest.mark.parametrize("hours", [200, 24, 4])
def test_a_budget_thins_until_it_fits(table2: Campaign, hours: int) -> None:
    fitted = fit(table2, 2, hours * 3600, cost_s)
    assert cost_s(fitted.campaign) <= hours * 3600
    sampling = fitted.campaign.sampling
    assert sampling.max_samples // sampling.repetitions >= FEWEST_LOADS
    assert {t.target.name for t in fitted.campaign.targets} == {
        t.target.name for t in table2.targets
    }


def test_a_budget_too_small_for_anything_says_so(table2: Campaign) -> None:
    fitted = fit(table2, 2, 60.0, cost_s)
    assert "ends it early" in fitted.notes[-1]
    assert cost_s(fitted.campaign) > 60.0


def test_flavors_count_by_their_cores(table2: Campaign) -> None:
    plan = table2.target_plan("haproxy")
    flavors = {"small": {"vcpu": 0.5}, "large": {"vcpu": 4.0}}
    flavored = replace(
        plan, resources=(Parameter("haproxy.flavor", ("small", "large"), flavors=flavors),)
    )
    fitted = fit(replace(table2, targets=(flavored,)), 2, None, cost_s)
    assert values(fitted.campaign, "haproxy") == {"haproxy.flavor": ("small",)}
    with pytest.raises(UsageError, match="none of its configurations fits a host of 1 cores"):
        fit(replace(table2, targets=(flavored,)), 1, None, cost_s)


def test_a_target_that_does_not_fit_is_left_out(table2: Campaign) -> None:
    plan = table2.target_plan("haproxy")
    large = replace(plan, resources=(Parameter("haproxy.vcpu", (8.0,)),))
    small = table2.target_plan("tinyproxy")
    fitted = fit(replace(table2, targets=(large, small)), 2, None, cost_s)
    assert [t.target.name for t in fitted.campaign.targets] == ["tinyproxy"]
    assert "haproxy has nothing left" in fitted.notes[0]
