"""An engine with its socket, in this process, whose worker is a real one; or its parts alone.

Who uses the parts (`workspace`, `library`, `pool`) makes a workspace by a fixture `made`.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import pytest_asyncio
from engine_fakes import FaultyLab
from engine_watching import hurried
from modelling_session import CHEAP, InlinePool

from workbench import plugins
from workbench.engine.core import Engine
from workbench.engine.learning import scoring
from workbench.engine.process import serving
from workbench.engine.sessions.library import Library
from workbench.labs.simulated import SimulatedLab
from workbench.link.socket import SocketClient
from workbench.paths import Workspace


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace's folder, with a runtime folder whose path is short enough for a socket."""
    runtime = tempfile.mkdtemp(prefix="wb-")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        patch.setenv("XDG_STATE_HOME", runtime)
        yield tmp_path_factory.mktemp("workspace")
    shutil.rmtree(runtime)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(root: Path) -> AsyncIterator[Engine]:
    async with serving(Workspace(root)) as engine:
        yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(engine: Engine) -> AsyncIterator[SocketClient]:
    client = await SocketClient.connect(engine.workspace.socket, "tester")
    yield client
    await client.close()


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs that are interfered with are slow until they are only waited for."""
    spend = SimulatedLab._spend

    async def spent(lab: SimulatedLab, seconds: float, passed_s: float = 0.0) -> None:
        await spend(lab, seconds, math.inf if lab._settings.session in hurried else passed_s)

    monkeypatch.setattr(SimulatedLab, "_spend", spent)
    yield
    hurried.clear()


@pytest.fixture
def workspace(made: Workspace, tmp_path: Path) -> Workspace:
    """A copy for one test, which may write."""
    own = Workspace(tmp_path / "workspace")
    shutil.copytree(made.sessions, own.sessions)
    return own


@pytest_asyncio.fixture
async def library(workspace: Workspace) -> AsyncIterator[Library]:
    library = Library(workspace)
    yield library
    await library.close()


@pytest.fixture
def pool() -> InlinePool:
    return InlinePool()


@pytest.fixture
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two cheapest are compared, and the campaign's own is one of them."""
    monkeypatch.setattr(scoring, "SHORT_LIST", CHEAP)
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FaultyLab]]:
    """The lab `faulty`, registered as a plugin's would be; it counts as one that loads the host."""
    registered = dict(plugins._found("labs"))
    registered["faulty"] = EntryPoint("faulty", "engine_fakes:FaultyLab", "workbench.labs")
    found = plugins._found
    monkeypatch.setattr(
        plugins, "_found", lambda group: registered if group == "labs" else found(group)
    )
    monkeypatch.setattr(FaultyLab, "failing", staticmethod(lambda attempted, configuration: None))
    monkeypatch.setattr(FaultyLab, "busy_host", False)
    monkeypatch.setattr(FaultyLab, "pressure", False)
    yield FaultyLab
    assert FaultyLab.open_labs == 0, "every lab that was opened is closed again"
