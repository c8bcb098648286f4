"""Functions that crash, absent engines, sessions that die: a sentence, and no strays."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import (
    OpenLab,
    configuration,
    container,
    docker,
    ignore,
    left_of,
    point,
    target,
    throughput,
)
from real_campaigns import short_campaign

from workbench.domain.errors import LabError, TrafficError
from workbench.domain.events import Event, Noted, PointAsked, RunFinished, SampleTaken, UsageTick
from workbench.domain.messages import RunCampaign
from workbench.domain.parameters import LoadModel
from workbench.domain.projection import SessionView
from workbench.domain.samples import Usage
from workbench.domain.topology import ConfigurationFile, VnfTemplate
from workbench.engine.process import serving
from workbench.engine.runs import busy_host, bypass
from workbench.labs.components import driving
from workbench.labs.docker import DockerLab
from workbench.labs.docker.engine import connect
from workbench.labs.docker.images import build_images
from workbench.labs.programs import Listener
from workbench.link.local import LocalClient
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

CLOSED = LoadModel("closed")
HAPROXY, TINYPROXY = target("haproxy"), target("tinyproxy")
QUARTER = configuration(haproxy=0.25, tinyproxy=0.25)


async def test_nothing_is_left_after_close(open_lab: OpenLab, session: str) -> None:
    lab = await open_lab(CLOSED, HAPROXY)
    await lab.deploy(HAPROXY, QUARTER)
    containers, networks = left_of(session)
    assert (len(containers), len(networks)) == (3, 1)
    await lab.close()
    assert left_of(session) == ([], [])
    await lab.close()
    await lab.undeploy()


async def test_a_function_that_crashes_in_mid_drive(open_lab: OpenLab, session: str) -> None:
    lab = await open_lab(CLOSED, HAPROXY)
    await lab.deploy(HAPROXY, QUARTER)
    begun = asyncio.Event()

    def note(usage: Mapping[str, Usage]) -> None:
        begun.set()

    driving = asyncio.create_task(lab.drive(point(HAPROXY, QUARTER, 2), 20.0, note))
    await begun.wait()
    await asyncio.to_thread(docker, "kill", container(session, "haproxy"))
    with pytest.raises(LabError, match="ended with exit code 137") as caught:
        await driving
    assert caught.value.where == "container haproxy (haproxy)"
    assert caught.value.remedy
    await lab.deploy(HAPROXY, QUARTER)
    assert throughput(await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)) > 0


async def test_a_drive_that_is_given_up_leaves_no_generator(
    open_lab: OpenLab, session: str
) -> None:
    lab = await open_lab(CLOSED, HAPROXY)
    await lab.deploy(HAPROXY, QUARTER)
    begun = asyncio.Event()

    def note(usage: Mapping[str, Usage]) -> None:
        assert usage["haproxy"].cpu_cores > 0
        assert usage["host"].cpu_cores > 0
        begun.set()

    driving = asyncio.create_task(lab.drive(point(HAPROXY, QUARTER, 2), 20.0, note))
    await begun.wait()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving
    assert "oha" not in docker("top", container(session, "source"))
    assert throughput(await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)) > 0


def cut_off(session: str) -> None:
    """Take the network from all containers of a session, and remove it."""
    containers, networks = left_of(session)
    for network in networks:
        for each in containers:
            docker("network", "disconnect", "--force", network, each)
        docker("network", "rm", network)


def kill_generator(session: str) -> None:
    """`kill -9` from outside; it must run."""
    processes = docker("top", container(session, "source")).splitlines()[1:]
    numbers = [int(line.split()[1]) for line in processes if "oha" in line]
    assert numbers
    for number in numbers:
        os.kill(number, signal.SIGKILL)


def replace_generator(session: str, script: str) -> None:
    """Put a shell script where the generator is."""
    source = container(session, "source")
    path = docker("exec", source, "sh", "-c", "command -v oha")
    text = f"#!/bin/sh\n{script}\n"
    docker("exec", source, "sh", "-c", f"rm {path}; printf '{text}' > {path}; chmod +x {path}")


async def test_a_generator_that_fails_is_a_sentence_and_the_next_deployment_works(
    open_lab: OpenLab, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driving, "GRACE_S", 0.5)
    lab = await open_lab(CLOSED, HAPROXY)
    await lab.deploy(HAPROXY, QUARTER)
    for script, said in (
        (f"echo nonsense | tee {driving.RESULT_PATH}", "records"),
        ("exec sleep 1000", "did not end"),
        ("echo it broke >&2; exit 3", "ended with exit code 3: it broke"),
    ):
        await asyncio.to_thread(replace_generator, session, script)
        with pytest.raises(TrafficError, match=said):
            await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)
    await lab.deploy(HAPROXY, QUARTER)
    assert throughput(await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)) > 0


async def test_a_network_that_is_removed_in_mid_drive(open_lab: OpenLab, session: str) -> None:
    lab = await open_lab(CLOSED, HAPROXY)
    await lab.deploy(HAPROXY, QUARTER)
    begun = asyncio.Event()

    def note(usage: Mapping[str, Usage]) -> None:
        begun.set()

    driving = asyncio.create_task(lab.drive(point(HAPROXY, QUARTER, 2), 5.0, note))
    await begun.wait()
    await asyncio.to_thread(cut_off, session)
    with pytest.raises(LabError, match="its network was taken from it"):
        await driving
    await lab.deploy(HAPROXY, QUARTER)
    assert throughput(await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)) > 0


async def test_a_campaign_outlives_its_network_and_its_generator(
    known: tuple[VnfTemplate, ...], session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del known  # its images are built
    runtime = tempfile.mkdtemp(prefix="wb-")  # a socket's path is short
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    # A host that others keep busy makes a run wait; nothing here is about what is measured.
    monkeypatch.setattr(busy_host, "STREAK", sys.maxsize)
    monkeypatch.setattr(bypass, "POINTS", 1)
    accidents = [cut_off, kill_generator]
    notes: list[str] = []
    finished = None
    async with serving(Workspace(tmp_path)) as engine:
        client = LocalClient(engine, "tester")
        await client.ask(
            RunCampaign(str(short_campaign(tmp_path, 3)), session=session, lab="docker")
        )
        async with client.follow(session) as feed:
            ready = sampled = False  # accidents lie apart: a sample comes before each
            async for change in feed.changes:
                if isinstance(change, UsageTick) and ready and accidents:
                    ready = sampled = False
                    await asyncio.to_thread(accidents.pop(0), session)
                if isinstance(change, Event):
                    sampled = sampled or isinstance(change.fact, SampleTaken)
                    ready = sampled and isinstance(change.fact, PointAsked)
                    feed.view.apply(change)
                    if isinstance(change.fact, Noted) and change.fact.level == "warning":
                        notes.append(change.fact.text)
                    if isinstance(change.fact, RunFinished):
                        finished = change.fact
                        break
            assert finished is not None
            points = [sample for c in feed.view.configurations for sample in c.samples]
            assert all(point.usage["workbench"].cpu_cores > 0 for point in points)
            assert (finished.outcome, accidents) == ("done", [])
            assert len(set(taken(feed.view))) == finished.samples
    shutil.rmtree(runtime)
    assert any("its network was taken" in note and "once more" in note for note in notes), notes
    assert any("exit code 137" in note and "once more" in note for note in notes), notes
    assert left_of(session) == ([], [])


def taken(view: SessionView) -> list[str]:
    return [sample.id for c in view.configurations for sample in c.samples]


async def test_a_function_that_does_not_start_says_why(
    open_lab: OpenLab, known: tuple[VnfTemplate, ...]
) -> None:
    haproxy = next(t for t in known if t.name == "haproxy")
    broken = replace(haproxy, files=(ConfigurationFile(haproxy.files[0].path, "nonsense\n"),))
    lab = await open_lab(CLOSED, HAPROXY, changed=broken)
    with pytest.raises(LabError, match=r"exit code 1; the last line of its log: \"\[") as caught:
        await lab.deploy(HAPROXY, QUARTER)
    assert caught.value.where == "container haproxy (haproxy)"
    (written,) = [log for log in await lab.written() if log.component == "haproxy"]
    assert any("nonsense" in line.text for line in written.lines), "the rest is still there"


async def test_a_function_without_a_way_on_fails_the_preflight(
    open_lab: OpenLab, known: tuple[VnfTemplate, ...]
) -> None:
    haproxy = next(t for t in known if t.name == "haproxy")
    text = haproxy.files[0].text.replace("$upstream_port", "9")
    lost = replace(haproxy, files=(ConfigurationFile(haproxy.files[0].path, text),))
    lab = await open_lab(CLOSED, HAPROXY, changed=lost)
    with pytest.raises(LabError, match="was answered with status 503"):
        await lab.deploy(HAPROXY, QUARTER)


async def test_load_that_no_generator_can_offer(open_lab: OpenLab) -> None:
    lab = await open_lab(LoadModel("open", arrivals="poisson"), TINYPROXY)
    with pytest.raises(TrafficError, match=r"constant rate.*not an open loop"):
        await lab.deploy(TINYPROXY, QUARTER)


DYING = """
import asyncio, json, os, signal, sys
from pathlib import Path
from docker_targets import campaign, configuration, target, templates
from workbench.domain.parameters import LoadModel
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.paths import Workspace

async def main():
    measured = target("haproxy")
    made = campaign(templates(Workspace(Path(sys.argv[2]))), (measured,), LoadModel("closed"))
    lab = DockerLab(made, LabSettings(sys.argv[1]))
    await lab.open()
    await lab.deploy(measured, configuration(haproxy=0.25))
    print("deployed", flush=True)
    sys.stdin.readline()

asyncio.run(main())
"""


async def test_strays_of_a_killed_session_are_reaped_and_nothing_else(
    known: tuple[VnfTemplate, ...], session: str, tmp_path: Path
) -> None:
    image = next(iter((await build_images(known[:1], listener=Listener(print, print))).values()))
    foreign = docker("create", image)
    dying = subprocess.Popen(
        [sys.executable, "-c", DYING, session, str(tmp_path)],
        cwd=Path(__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert dying.stdout is not None
        said = await asyncio.to_thread(lambda: [*iter(dying.stdout.readline, "deployed\n")])
        assert dying.poll() is None, said
        await DockerLab.reap(frozenset())  # its process lives
        assert len(left_of(session)[0]) == 3
    finally:
        dying.kill()
        dying.communicate()
    await DockerLab.reap(frozenset({session}))  # it is to be resumed
    assert len(left_of(session)[0]) == 3
    removed = [name for name in await DockerLab.reap(frozenset()) if session in name]
    assert len(removed) == 4
    assert left_of(session) == ([], [])
    assert json.loads(docker("inspect", foreign)), "not ours, not touched"
    docker("rm", foreign)


async def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="does not answer") as caught:
        async with connect(f"unix://{tmp_path}/docker.sock"):
            pass
    assert caught.value.remedy
    with pytest.raises(LabError, match="no Docker engine"):
        async with connect("nowhere"):
            pass


async def test_an_image_is_built_once_and_again_when_it_changes(
    known: tuple[VnfTemplate, ...], tmp_path: Path
) -> None:
    lines: list[str] = []
    (tmp_path / "Dockerfile").write_text("FROM debian:bookworm-slim\nRUN echo built\n")
    own = VnfTemplate("own-function", build=str(tmp_path))
    first = await build_images([own], listener=Listener(lines.append, lines.append))
    assert "built" in lines
    lines.clear()
    assert await build_images([own], listener=Listener(lines.append, lines.append)) == first
    assert lines == []
    (tmp_path / "note").write_text("changed")
    (tmp_path / "Dockerfile").write_text("FROM debian:bookworm-slim\nCOPY note /\nRUN false\n")
    with pytest.raises(LabError, match="returned a non-zero code: 1") as caught:
        await build_images([own], listener=Listener(lines.append, lines.append))
    assert caught.value.where == "template own-function"
    docker("rmi", next(iter(first.values())))


async def test_an_image_that_does_not_exist() -> None:
    absent = VnfTemplate("absent", image="vnf-workbench/absent:none")
    with pytest.raises(LabError, match="cannot be pulled"):
        await build_images([absent], listener=Listener(print, print))
