"""What all tests share: workspaces of their own, the command, what the host must have, costs."""

from __future__ import annotations

import atexit
import gc
import math
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import driving
import examples
import host_needs
import pytest
from driving import REPOSITORY, Workbench, a_workbench
from file_costs import SHOWN, FileCosts
from forked_commands import fork_workers, forker, share_imports
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from rewriting import is_worker, rewrite_a_share
from spreading import ByRoom, put_whole_ways_first
from tally import MakeTally, Tally

if TYPE_CHECKING:
    from workbench.paths import Workspace

# Linear algebra in one thread, here and in all that the tests start: with as many workers as cores
# the others spin for longer than they compute.
for _library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Nobody waits for who measures on this host meanwhile: the lock is that of a runtime folder.
os.environ[driving.LOCK_VARIABLE] = driving.MEASURING_LOCK

# Random examples have a seed too: what fails once fails each time. Constants that Hypothesis finds
# in the modules that are loaded by then would make them depend on the tests that ran before.
providers.is_local_module_file = lambda _: False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept", action="store_true", help="run the acceptance tests at full length"
    )
    parser.addoption(
        "--costliest", type=int, default=SHOWN, metavar="N", help="tests whose CPU time is shown"
    )
    reliability = parser.getgroup("reliability", "kills, stops, hostile inputs, key presses")
    reliability.addoption("--share", type=float, help="of the full counts; 0.01 is every hundredth")
    reliability.addoption("--minutes", type=float, help="after which a test begins no further one")
    reliability.addoption(
        "--results", help="JSON file to which counts are added; a run goes on where it ends"
    )


def pytest_configure(config: pytest.Config) -> None:
    accepting = bool(config.getoption("--accept"))
    # Who starts the tests in the background or under nohup has them ignored, and so would all that
    # the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    host_needs.required()  # a name that nobody knows is told before any test runs
    config.pluginmanager.register(
        FileCosts(limited=not accepting, costliest=config.getoption("--costliest"))
    )
    driving.forked = not accepting
    if not accepting:  # compiling shap's loops takes longer than they run on the few rows of a test
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    examples.full_length = accepting
    settings.register_profile(
        "repeatable", derandomize=True, deadline=None, max_examples=examples.examples()
    )
    settings.load_profile("repeatable")
    rewrite_a_share(config)
    if driving.forked and config.getoption("numprocesses", None) and not is_worker(config):
        share_imports()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByRoom | None:
    # Else xdist sorts files by how many tests they have, and those of one long test come last.
    config.option.loadscopereorder = False
    return ByRoom(config, log) if config.getvalue("dist") == "load" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    gc.disable()  # nearly nothing is garbage yet; searching for it took as long as the rest
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    put_whole_ways_first(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    # What is imported by now stays; searching it for garbage took a tenth of the run.
    gc.freeze()
    atexit.register(gc.unfreeze)  # duckdb complains of what is never freed; pytest searches before
    gc.set_threshold(50_000, 20, 20)
    if any(item.get_closest_marker("docker") for item in session.items):
        from workbench.engine.learning.pool import NICE

        forker.nice = NICE  # functions are measured for real
    if driving.forked and "workbench.engine.learning.pool" in sys.modules:
        fork_workers(forker.forking_workers, forker.nice)


@pytest.fixture(scope="session")
def full_length(pytestconfig: pytest.Config) -> bool:
    """True in `make accept`: every count of the issue, instead of a few."""
    return bool(pytestconfig.getoption("--accept"))


SHARE_IN_THE_GATE = 0.0005
"""Of the full counts of a long run; `few` of each part at least."""


@pytest.fixture
def tally(pytestconfig: pytest.Config, full_length: bool) -> MakeTally:
    """Makes the tally of a long run: full in `make accept`, a few in the gate, or as it is said by
    `--share`, `--minutes` and `--results`."""
    share = pytestconfig.getoption("--share") or (1.0 if full_length else SHARE_IN_THE_GATE)
    results = pytestconfig.getoption("--results")

    def made(kind: str, targets: Mapping[str, int], few: int = 2) -> Tally:
        if not results:
            targets = {p: min(n, max(few, math.ceil(share * n))) for p, n in targets.items()}
        path = Path(pytestconfig.invocation_params.dir, results) if results else None
        return Tally(kind, targets, pytestconfig.getoption("--minutes"), path)

    return made


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    with a_workbench(tmp_path) as made:
        yield made


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """One for an engine in this process: its socket has a short path."""
    from workbench.paths import Workspace

    with tempfile.TemporaryDirectory(prefix="wb-") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield Workspace(tmp_path)


@pytest.fixture
def served(workbench: Workbench) -> Iterator[Workbench]:
    """The same with an engine that runs: commands that follow each other are spared the imports."""
    with workbench.serving():
        yield workbench


SMALL = REPOSITORY / "tests" / "data" / "small.yaml"


@pytest.fixture
def small_campaign(workbench: Workbench) -> Path:
    """Two configurations of haproxy, at most six samples each: seconds on the simulated lab."""
    path = workbench.root / SMALL.name
    path.write_text(SMALL.read_text(encoding="utf-8"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def small_session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file `one.duckdb` of that campaign, run to its end on the simulated lab; to be copied."""
    with a_workbench(tmp_path_factory.mktemp("small")) as made:
        made.run("run", str(SMALL), "--lab", "sim", "--session", "one", "--headless")
        return made.root / "sessions" / "one.duckdb"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and not item.config.getoption("--accept"):
        pytest.skip("long; run by make accept")
    host_needs.demand(item)  # of what is not run the host needs nothing
