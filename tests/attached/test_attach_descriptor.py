"""What a campaign may say of functions that run already, and when a guard is broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from running_system import RunningSystem

from workbench.descriptors.loading import load_campaign
from workbench.descriptors.sla_text import parse_sla
from workbench.domain.attaching import SshAddress
from workbench.domain.errors import DescriptorError
from workbench.labs.attached.load_guard import GuardRequest, broken
from workbench.paths import Workspace


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    system = RunningSystem((), "/web", tmp_path / "delay", port=8080)
    return system.campaign(tmp_path, "container: web", guard="p95<=250ms", when_wrong="wait")


def test_it_is_read(campaign: Path, tmp_path: Path) -> None:
    read = load_campaign(str(campaign), workspace=Workspace(tmp_path)).campaign
    assert read.lab == "attach"
    (web,) = read.attached
    assert (web.found_by, web.found_at, web.max_load) == ("container", "web", 150)
    assert web.guard is not None
    assert (web.guard.kpi, web.guard.limit) == ("p95_ms", 250)
    assert web.when_wrong == "wait"
    (plan,) = read.targets
    assert [parameter.key for parameter in plan.resources] == ["web.vcpu", "web.memory_bytes"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("lab-a", SshAddress("lab-a")),
        ("root@10.0.0.7:2222", SshAddress("10.0.0.7", 2222, "root")),
        ("me@[fe80::1]:22", SshAddress("fe80::1", 22, "me")),
        ("[fe80::1]", SshAddress("fe80::1")),
    ],
)
def test_a_host_is_read_and_written(text: str, address: SshAddress) -> None:
    assert SshAddress.parse(text) == address
    assert str(address) == text


def test_what_is_fixed_has_no_vcpu_of_a_template(campaign: Path, tmp_path: Path) -> None:
    text = campaign.read_text().replace("resources: cgroup", "resources: fixed")
    lines = [line for line in text.splitlines() if "values" not in line and "resource_" not in line]
    campaign.write_text("\n".join(lines))
    read = load_campaign(str(campaign), workspace=Workspace(tmp_path)).campaign
    assert [c.resources for c in read.configurations(read.targets[0])] == [{}]


@pytest.mark.parametrize(
    ("given", "written", "field", "said"),
    [
        ("container: web", "port: 1", "attach.web", "does not say how it is found"),
        ("container: web", "container: web\n    pid: 7", "attach.web.pid", "beside container"),
        ("container: web", "pod: a/b=c\n    host: lab-a", "attach.web.host", "by its API"),
        ("container: web", "pid: 7\n    host: lab a", "attach.web.host", "write it like root@"),
        ("container: web", "pid: 7\n    host: -oX=y", "attach.web.host", "write it like root@"),
        ("container: web", "pid: 7\n    host: lab-a:99999", "attach.web.host", "1 to 65535"),
        ("container: web", "pid: 7\n    host: lab-a", "attach.web.url", "write {address}"),
        ("max_load: 150/s", "max_load: 90/s", "targets[0]", "never"),
        ("max_load: 150/s", "max_load: 9 ms", "attach.web.max_load", "is not a unit"),
        ("    max_load: 150/s\n", "", "attach.web.max_load", "is missing"),
        ("guard: p95<=250ms", "guard: throughput>=5/s", "attach.web.guard", "response time"),
        ("guard: p95<=250ms", "guard: p95<=1s @ rate=5/s", "attach.web.guard", "at every load"),
        ("    guard: p95<=250ms\n", "", "attach.web.guard", "is missing"),
        ("url: http://", "url: https://", "attach.web.url", "must be a URL such as"),
        ("url: http://", "url: http://me:secret@", "attach.web.url", "a password"),
        ("resources: cgroup", "resources: fixed", "targets[0].resource_parameters[0]", "fixed"),
        ("name: memory, values: [64 MiB]", "name: bandwidth, values: [1Mbit/s]", "", "allowed"),
        ("kind: campaign", "kind: campaign\nlab: sim", "lab", "leave it out"),
        ("- vnf: web", "- vnf: haproxy", "targets[0]", "which `attach` does not name"),
    ],
)
def test_mistakes(
    campaign: Path, tmp_path: Path, given: str, written: str, field: str, said: str
) -> None:
    text = campaign.read_text()
    assert given in text
    campaign.write_text(text.replace(given, written))
    with pytest.raises(DescriptorError) as caught:
        load_campaign(str(campaign), workspace=Workspace(tmp_path))
    assert any(m.field.startswith(field) and said in m.message for m in caught.value.mistakes), (
        caught.value.what
    )


WELL, SLOW, FAILED = GuardRequest(20, True), GuardRequest(300, True), GuardRequest(5, False)


@pytest.mark.parametrize(
    ("guard", "seen", "breaks"),
    [
        ("p95<=200ms", [WELL] * 40, False),
        ("p95<=200ms", [WELL] * 38 + [SLOW] * 2, False),
        ("p95<=200ms", [WELL] * 37 + [SLOW] * 3, True),
        ("p95<=200ms", [SLOW], False),
        ("p95<=200ms", [SLOW, FAILED], True),
        ("p50<=200ms", [WELL] * 21 + [SLOW] * 19, False),
        ("p50<=200ms", [WELL] * 19 + [SLOW] * 21, True),
        ("mean<=200ms", [WELL] * 10 + [SLOW] * 2, False),
        ("mean<=200ms", [WELL] * 2 + [SLOW] * 10, True),
        ("errors<=10%", [WELL] * 10 + [FAILED], False),
        ("errors<=10%", [WELL] * 10 + [FAILED] * 2, True),
        ("errors<=10%", [SLOW] * 40, False),
    ],
)
def test_a_guard_is_broken_by_two_requests_at_least(
    guard: str, seen: list[GuardRequest], breaks: bool
) -> None:
    assert bool(broken(parse_sla(guard, "rate"), seen)) == breaks
