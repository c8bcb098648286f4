"""A container that somebody started by plain `docker run`: found, profiled, left as it was."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import host_needs
import pytest
from driving import Workbench
from killing import killed_and_put_back
from remote_system import RemoteSystem, a_remote_system, at_home
from running_system import CAMPAIGN, Attach, settings_of

from workbench.descriptors.loading import load_campaign, load_vnf_templates
from workbench.domain.errors import LabError, LabStopped
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.attached.discovering import campaign_of, discover_there, published
from workbench.labs.docker.images import build_images
from workbench.labs.programs import Listener
from workbench.paths import Workspace
from workbench.probes import cgroup
from workbench.probes.process import PROC

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]
SMALL = Configuration({"web.vcpu": 0.1}, {})
ALLOTTED = "    resource_parameters: [{name: vcpu, values: [10%, 20%]}]\n"


def docker(*arguments: str) -> str:
    return subprocess.run(
        ["docker", *arguments], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One with a web server in it: the sink's, which serves Debian's page by default."""
    known = load_vnf_templates(workspace=Workspace(tmp_path_factory.mktemp("workspace")))
    sink = [template for template in known if template.name == "sink"]
    try:
        return asyncio.run(build_images(sink, listener=Listener(print, print)))["sink"]
    except LabError as error:
        host_needs.no_base_image(error)
        raise


@pytest.fixture
def web(image: str) -> Iterator[str]:
    """Its name."""
    name = f"attach-test-{secrets.token_hex(4)}"
    limits = ("--cpus", "0.5", "--memory", "64m", "--label", f"role={name}")
    limits += ("--label", f"com.docker.compose.project={name}")
    limits += ("--label", "com.docker.compose.service=web")
    docker("run", "--detach", "--name", name, *limits, image, "nginx", "-g", "daemon off;")
    try:
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)


def folders_of(name: str) -> tuple[Path, ...]:
    """Of its control group."""
    pid = docker("inspect", "--format", "{{.State.Pid}}", name)
    mounts = cgroup.parse_mounts((PROC / "self" / "mountinfo").read_text())
    membership = cgroup.parse_membership((PROC / pid / "cgroup").read_text())
    folders = cgroup.locate(mounts, membership)
    assert folders is not None
    return tuple(dict.fromkeys((folders.cpu, folders.memory)))


def limits_of(name: str) -> dict[str, bytes]:
    """What the kernel holds it to, file by file."""
    return settings_of(folders_of(name))


def settings(name: str) -> tuple[dict[str, bytes], Any]:
    """What the kernel and what the engine hold it to."""
    return limits_of(name), json.loads(docker("inspect", "--format", "{{json .HostConfig}}", name))


def campaign(folder: Path, found: str, samples: int = 2) -> Path:
    path = folder / "web.yaml"
    text = CAMPAIGN.format(
        found=found,
        port="PORT",
        guard="p95<=2s",
        when_wrong="end",
        resources="cgroup",
        allotted=ALLOTTED,
        samples=samples,
    )
    path.write_text(text.replace("127.0.0.1:PORT", "{address}:80"))
    return path


def test_it_is_discovered_profiled_and_left_as_it_was(
    workbench: Workbench, web: str, full_length: bool
) -> None:
    before = settings(web)
    mine = next(c for c in workbench.json("discover", "--json") if c["name"] == web)
    assert (mine["vcpu"], mine["memory_bytes"], mine["ports"]) == (0.5, 64 * 2**20, [80])
    allotted = (10, 20) if full_length else (20,)
    asked = ",".join(f"{share}%" for share in allotted)
    workbench.run("discover", "--write", "web.yaml", web, "--vcpu", asked)
    path = workbench.root / "web.yaml"
    short = path.read_text().replace("max_samples: 6", "max_samples: 2").replace("3s,", "1.5s,")
    short = short.replace("[10/s", "[100/s")  # 200 answers for a percentile take ten times as long
    path.write_text(short)
    workbench.run("lint", "web.yaml")
    # On a busy host not every sample is valid: that is the judge's say, and no matter here.
    done = workbench.run("run", "web.yaml", "--headless", "--session", "web", expect=None)
    assert "run done" in done.stdout
    samples = workbench.samples("web")
    assert {sample[f"{web}.vcpu"] for sample in samples} == {share / 100 for share in allotted}
    assert settings(web) == before


def test_what_a_killed_engine_changed_is_put_back(
    workbench: Workbench, web: str, full_length: bool
) -> None:
    path, before = campaign(workbench.root, f"container: {web}", samples=20), settings(web)
    killed(workbench, path, web, f"container {web}: cpu.", 20 if full_length else 2)
    assert settings(web) == before


def killed(workbench: Workbench, path: Path, name: str, again: str, rounds: int) -> None:
    """The kernel's files are watched alone: asking the engine takes as long as a sample."""
    folders = folders_of(name)
    killed_and_put_back(workbench, path, lambda: settings_of(folders), again, rounds)


@pytest.mark.parametrize(
    "found", ["container: {}", pytest.param("label: role={}", marks=pytest.mark.long)]
)
async def test_a_container_that_starts_anew_is_another_one(
    web: str, attach: Attach, tmp_path: Path, found: str
) -> None:
    before = settings(web)
    lab = attach(campaign(tmp_path, found.format(web)))
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, SMALL)
    loop, seen = asyncio.get_running_loop(), list[dict[str, bytes]]()

    def restart(usage: Mapping[str, Usage]) -> None:
        if not seen:
            seen.append(limits_of(web))
            loop.run_in_executor(None, docker, "restart", "--time", "0", web)

    with pytest.raises(LabStopped, match=rf"container {web}: its process \d+ has ended"):
        await lab.drive(OperatingPoint("web", SMALL, 50), 30.0, restart)
    assert seen != [before[0]], "it was never limited"
    docker("restart", "--time", "0", web)  # returns when it runs, the other restart behind it
    assert settings(web) == before


async def test_one_that_is_not_there_is_a_sentence(
    web: str, attach: Attach, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match=r"container no-such: there is no such container"):
        await attach(campaign(tmp_path, "container: no-such")).open()
    with pytest.raises(LabError, match=r"no container that is meant by it runs"):
        await attach(campaign(tmp_path, f"compose: {web}")).open()
    docker("stop", "--time", "0", web)
    with pytest.raises(LabError, match=r"it is exited. Start it; nothing is started here"):
        await attach(campaign(tmp_path, f"container: {web}")).open()


# ------------------------------------------------------------------ on a host reached by SSH

OVER_SSH = pytest.mark.needs("sshd", "ssh-keygen", "nsenter", "ip")


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteSystem]:
    """A login, through a real sshd, to a host whose engine is this one's."""
    with a_remote_system(tmp_path) as system:
        at_home(system, monkeypatch)
        yield system


def there(folder: Path, remote: RemoteSystem, found: str, name: str, samples: int = 2) -> Path:
    """A campaign over a container there; its own address can be reached, as the engine is ours."""
    path = campaign(folder, f"{found}\n    host: root@{remote.address}", samples)
    address = docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", name)
    path.write_text(path.read_text().replace("{address}", address or "10.0.0.1"))
    return path


@OVER_SSH
@pytest.mark.parametrize("found", ["container: {}", "label: role={}", "compose: {}/web"])
async def test_one_of_another_host_is_measured_and_left_as_it_was(
    web: str, remote: RemoteSystem, attach: Attach, tmp_path: Path, found: str
) -> None:
    before, seen = settings(web), list[dict[str, bytes]]()
    lab = attach(there(tmp_path, remote, found.format(web), web))
    facts = await lab.open()
    assert facts.image_digests["web"] == docker("inspect", "--format", "{{.Image}}", web)
    await lab.deploy(lab._campaign.targets[0].target, SMALL)
    drive = await lab.drive(
        OperatingPoint("web", SMALL, 50), 1.5, lambda usage: seen.append(limits_of(web))
    )
    assert settings(web) == before
    quotas = [held for file, held in seen[0].items() if Path(file).name.startswith("cpu.") and
              held != before[0][file]]  # fmt: skip
    assert quotas in ([b"10000\n"], [b"10000 100000\n"])
    assert drive.records.succeeded.sum() > 20
    first, *_, last = drive.counters
    assert last.components["web"].cpu_s > first.components["web"].cpu_s
    assert last.components["web"].rx_packets > first.components["web"].rx_packets
    await lab.close()
    assert settings(web) == before


@OVER_SSH
async def test_one_of_another_host_is_discovered(
    image: str, remote: RemoteSystem, tmp_path: Path
) -> None:
    name = f"attach-test-{secrets.token_hex(4)}"
    published = ("--publish", "80", "--cpus", "0.5", "--name", name)
    docker("run", "--detach", *published, image, "nginx", "-g", "daemon off;")
    try:
        port = int(docker("port", name, "80/tcp").split("\n")[0].rpartition(":")[2])
        host = f"root@{remote.address}"
        listed, why = await discover_there(host)
        assert "container" not in why
        (found,) = [one for one in listed if one.name == name]
        assert (found.kind, found.ports, found.vcpu, found.host) == (
            "container",
            (port,),
            0.5,
            host,
        )
        assert found.why_not == ""
        path = tmp_path / "found.yaml"
        path.write_text(campaign_of([name], listed, path.name, ["10%"]))
        (web,) = load_campaign(str(path), workspace=Workspace(tmp_path)).campaign.attached
        assert (web.found_by, web.found_at, web.host) == ("container", name, host)
        assert web.url == f"http://{{address}}:{port}/"
    finally:
        docker("rm", "--force", "--volumes", name)


def test_published_ports_are_those_that_others_reach() -> None:
    said = "0.0.0.0:8080->80/tcp, :::8080->80/tcp, 443/tcp, [::1]:9->9/tcp, 0.0.0.0:5->5/udp"
    assert published(said) == (8080,)
    assert published("") == ()
    assert published("0.0.0.0:8000-8002->8000-8002/tcp") == (8000, 8001, 8002)


@OVER_SSH
def test_what_a_killed_engine_changed_there_is_put_back(
    workbench: Workbench, web: str, remote: RemoteSystem, full_length: bool
) -> None:
    path = there(workbench.root, remote, f"container: {web}", web, samples=20)
    before, again = settings(web), f"container {web} on root@{remote.address}: cpu."
    killed(workbench, path, web, again, 20 if full_length else 2)
    assert settings(web) == before


@OVER_SSH
async def test_what_an_engine_there_does_not_say_is_a_sentence(
    web: str, remote: RemoteSystem, attach: Attach, tmp_path: Path
) -> None:
    async def refused(found: str, said: str) -> None:
        with pytest.raises(LabError, match=said):
            await attach(there(tmp_path, remote, found, web)).open()

    await refused("container: no-such", "container no-such on root@.*: there is no such container")
    await refused("container: --help", "there is no such container")
    await refused("compose: elsewhere/web", "no container that is meant by it runs")
    docker("stop", "--time", "0", web)
    await refused(f"container: {web}", rf"container {web} on root@.*: it is exited. Start it")
    stand_in = tmp_path / "bin" / "docker"
    for says, said in (
        ("echo 'Got permission denied' >&2; exit 1", "cannot be asked: Got permission denied"),
        ("exec sleep 60", "it does not answer within 4 s"),
        ("echo nonsense", "says what cannot be read"),
    ):
        stand_in.write_text(f"#!/bin/sh\n{says}\n")
        stand_in.chmod(0o755)
        await refused(f"container: {web}", said)
