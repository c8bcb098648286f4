"""What all tests share: workspaces of their own, the real command, Docker or a named skip."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import COMMAND, REPOSITORY, Workbench
from hypothesis import settings
from hypothesis.internal.conjecture import providers

# Random examples have a seed too: what fails once fails each time. Constants that Hypothesis finds
# in the modules that are loaded by then would make them depend on the tests that ran before.
providers.is_local_module_file = lambda _: False
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept", action="store_true", help="run the acceptance tests at full length"
    )


@pytest.fixture
def full_length(request: pytest.FixtureRequest) -> bool:
    """True in `make accept`: every count of the issue, instead of a few."""
    return bool(request.config.getoption("--accept"))


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    (tmp_path / "sessions").mkdir()
    # A unix socket's path is short; pytest's folders are not.
    runtime = Path(tempfile.mkdtemp(prefix="wb-"))
    made = Workbench(tmp_path, runtime)
    yield made
    subprocess.run(
        [COMMAND, "engine", "stop"], env=made.environment, capture_output=True, check=False
    )
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture
def served(workbench: Workbench) -> Iterator[Workbench]:
    """The same with an engine that runs: commands that follow each other are spared the imports."""
    engine = workbench.start("engine", "serve")
    yield workbench
    workbench.run("engine", "stop", expect=None)
    engine.communicate(timeout=60)


@pytest.fixture
def small_campaign(workbench: Workbench) -> Path:
    """Two configurations of haproxy, at most six samples each: seconds on the simulated lab."""
    path = workbench.root / "small.yaml"
    path.write_text((REPOSITORY / "tests" / "data" / "small.yaml").read_text(), encoding="utf-8")
    return path


def docker_answers() -> bool:
    try:
        done = subprocess.run(["docker", "version"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = [item for item in items if item.get_closest_marker("docker")]
    if not wanted or docker_answers() or os.environ.get("WORKBENCH_REQUIRE") == "docker":
        return  # without an engine but with WORKBENCH_REQUIRE=docker they run, and fail
    for item in wanted:
        item.add_marker(pytest.mark.skip(reason="needs a Docker engine, and none answers"))
