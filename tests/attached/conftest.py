"""A running system and labs that are attached to it; journals of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running_system import Attach, RunningSystem, a_running_system
from stand_in_cluster import Pods, StandIn, fronting

from workbench.descriptors.loading import load_campaign
from workbench.labs.attached import AttachedLab
from workbench.labs.base import LabSettings
from workbench.labs.cluster import ClusterLab
from workbench.labs.netns.packages import layer
from workbench.labs.programs import Listener
from workbench.paths import Workspace


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root limits running systems")
    for item in items:
        if {"system", "unit", "web", "attach", "pods", "remote"} & set(
            getattr(item, "fixturenames", ())
        ):
            item.add_marker(root_only)
            item.add_marker(pytest.mark.needs("apt-get", "dpkg-deb", "ip", "nsenter"))
        if "clustered" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.needs("curl", "unshare"))


@pytest.fixture(autouse=True)
def _own_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def system(tmp_path: Path) -> Iterator[RunningSystem]:
    with a_running_system(tmp_path) as running:
        yield running


@pytest.fixture
async def attach(tmp_path: Path) -> AsyncIterator[Attach]:
    """Makes labs of campaigns; they are closed in the end."""
    labs: list[AttachedLab] = []

    def made(campaign: Path) -> AttachedLab:
        loaded = load_campaign(str(campaign), workspace=Workspace(tmp_path)).campaign
        labs.append(AttachedLab(loaded, LabSettings(f"attach-test-{os.getpid()}")))
        return labs[-1]

    yield made
    for lab in labs:
        await lab.close()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in for a cluster, with no process behind its pod."""
    served = StandIn(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig()))
    yield served
    served.end()


@pytest.fixture
def fronted(
    system: RunningSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StandIn]:
    """A stand-in for a cluster, whose pod is the running system."""
    served = fronting(system, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig()))
    yield served
    served.end()


@pytest.fixture(scope="session")
def hey() -> str:
    """The folder of Debian's hey: unpacked, not installed."""

    def unpacked() -> Path | None:
        return asyncio.run(layer(("hey",), Listener(lambda said: None, lambda said: None)))

    with ThreadPoolExecutor(1) as beside:  # whose loop is its own
        folder = beside.submit(unpacked).result()
    return str(folder / "usr/bin") if folder else ""


@pytest.fixture
def clustered(system: RunningSystem, fronted: StandIn, hey: str) -> StandIn:
    """A stand-in for a cluster whose Jobs run Debian's hey and curl; a closed loop is answered
    after some 20 ms, so that it does not take the whole host."""
    system.delay.write_text("0.02")
    fronted.jobs.programs = hey
    return fronted


@pytest.fixture
async def pods(tmp_path: Path) -> AsyncIterator[Pods]:
    """Makes labs of campaigns over pods; they are closed in the end."""
    labs: list[ClusterLab] = []

    def made(campaign: Path) -> ClusterLab:
        loaded = load_campaign(str(campaign), workspace=Workspace(tmp_path)).campaign
        labs.append(ClusterLab(loaded, LabSettings(f"pods-test-{os.getpid()}")))
        return labs[-1]

    yield made
    for lab in labs:
        await lab.close()
