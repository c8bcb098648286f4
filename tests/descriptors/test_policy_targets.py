"""A policy among the targets of a campaign stands for its chains."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.errors import DescriptorError
from workbench.paths import Workspace


def loaded(folder: Path, targets: str) -> Campaign:
    path = folder / "policy.yaml"
    path.write_text(
        f"kind: campaign\ntargets:\n{targets}"
        "primary_workload_parameter: {name: rate, range: [10, 500]}\n",
        encoding="utf-8",
    )
    return load_campaign(str(path), workspace=Workspace(folder)).campaign


def test_every_chain_is_a_target_with_the_resources_of_its_functions(tmp_path: Path) -> None:
    campaign = loaded(
        tmp_path,
        "  - vnf: nginx\n"
        "  - policy: haproxy > (tinyproxy | nginx)\n    sure_to: 10%\n    resource_parameters:\n"
        "      - {vnf: haproxy, name: vcpu, values: [12.5%, 25%]}\n"
        "      - {vnf: tinyproxy, name: vcpu, values: [50%]}\n"
        "  - policy: nginx | squid\n",
    )
    plans = {plan.target.name: plan for plan in campaign.targets}
    assert list(plans) == ["nginx", "haproxy-tinyproxy", "haproxy-nginx", "squid"]
    assert [v.name for v in plans["haproxy-nginx"].target.vnfs] == ["haproxy", "nginx"]
    keys = {p.key: p.values for p in plans["haproxy-tinyproxy"].resources}
    assert keys == {"haproxy.vcpu": (0.125, 0.25), "tinyproxy.vcpu": (0.5,)}
    assert [plan.sure_to for plan in campaign.targets] == [0.0, 0.1, 0.1, 0.0]


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ("  - policy: haproxy >\n", r"targets\[0\].policy: "),
        ("  - policy: haproxy > nothing\n", "no VNF of that name"),
        ("  - policy: haproxy > nginx\n    name: x\n", "named by their functions"),
        ("  - vnf: haproxy\n    sure_to: 10%\n", "belongs to a policy"),
        (
            "  - policy: haproxy > nginx\n    resource_parameters:\n"
            "      - {vnf: squid, name: vcpu, values: [1]}\n",
            r"resource_parameters\[0\].vnf: is 'squid', which no chain of this policy has",
        ),
    ],
)
def test_what_is_wrong_is_told_in_its_place(tmp_path: Path, targets: str, sentence: str) -> None:
    with pytest.raises(DescriptorError, match=sentence):
        loaded(tmp_path, targets)
