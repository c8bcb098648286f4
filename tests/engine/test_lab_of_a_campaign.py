"""Which lab a campaign gets, and what it asks of a lab that this one cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_watching import SMALL

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, UsageError
from workbench.engine.runs.opening import choose_lab, made_lab, opened
from workbench.labs.base import LabSettings
from workbench.paths import Workspace

SETTINGS = LabSettings(session="t")


def loaded(name: str, folder: Path) -> Campaign:
    return load_campaign(name, workspace=Workspace(folder)).campaign


async def test_the_case_study_brings_its_cores_along(tmp_path: Path) -> None:
    campaign = loaded("case-study", tmp_path)
    for wanted in (None, "sim"):
        lab, why = await choose_lab(wanted, campaign.lab)
        assert (lab, why) == ("sim:host_cores=16", "")
    settings = LabSettings(session="t", argument=lab.partition(":")[2])
    made, host = await opened(lab, campaign, settings)
    assert host.cores == 16
    await made.close()
    assert await choose_lab("sim:host_cores=2", campaign.lab) == ("sim:host_cores=2", "")
    assert await choose_lab("docker", campaign.lab) == ("docker", "")


async def test_a_passive_function_is_refused_before_it_is_measured_in_the_path(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mirrored.yaml"
    text = Path(SMALL).read_text(encoding="utf-8")
    path.write_text(
        text.replace(
            "- vnf: tinyproxy\n",
            "- {name: tap, series: [{vnf: tinyproxy, "
            "placement: passive}], resource_parameters: [{vnf: tinyproxy, name: vcpu, "
            "values: [25%, 50%]}]}\n",
        ).replace(
            "    resource_parameters:\n      - {vnf: tinyproxy, name: vcpu, values: [25%, 50%]}\n",
            "",
        ),
        encoding="utf-8",
    )
    campaign = loaded(str(path), tmp_path)
    with pytest.raises(UsageError, match=r"tinyproxy is placed passive.*the lab sim mirrors"):
        await made_lab("sim", campaign, SETTINGS)
    assert await made_lab("docker", campaign, SETTINGS), "it mirrors"


@pytest.mark.parametrize("how", ["alone", "flavor"])
async def test_memory_is_refused_where_it_is_not_simulated(tmp_path: Path, how: str) -> None:
    text = Path(SMALL).read_text(encoding="utf-8")
    values = "{vnf: tinyproxy, name: vcpu, values: [25%, 50%]}"
    if how == "alone":
        text = text.replace(values, f"{values}\n      - {{name: memory, values: [16 MiB, 32 MiB]}}")
    else:
        text = "flavors:\n  small: {vcpu: 25%, memory: 64 MiB}\n" + text.replace(
            values, "{vnf: tinyproxy, name: flavor, values: [small]}"
        )
    path = tmp_path / "memory.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=r"memory is not simulated.*tinyproxy.*--lab docker"):
        await opened("sim", loaded(str(path), tmp_path), SETTINGS)
