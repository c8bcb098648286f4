"""What all tests share: workspaces of their own, the real command, Docker or a named skip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).parent / "workbench"
REPOSITORY = Path(__file__).parents[1]
LONGEST_COMMAND_S = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept", action="store_true", help="run the acceptance tests at full length"
    )


@pytest.fixture
def full_length(request: pytest.FixtureRequest) -> bool:
    """True in `make accept`: every count of the issue, instead of a few."""
    return bool(request.config.getoption("--accept"))


@dataclass
class Workbench:
    """The installed command in a workspace and a runtime folder of its own."""

    root: Path
    runtime: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("WORKBENCH_")}
        inherited.pop("NO_COLOR", None)
        return inherited | {
            "WORKBENCH_WORKSPACE": str(self.root),
            "XDG_RUNTIME_DIR": str(self.runtime),
            **self.variables,
        }

    def run(self, *arguments: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [COMMAND, *arguments],
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=LONGEST_COMMAND_S,
            stdin=subprocess.DEVNULL,
        )
        if expect is not None:
            assert done.returncode == expect, (
                f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [COMMAND, *arguments],
            env=self.environment,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def events(self, *arguments: str, expect: int = 0) -> list[dict[str, Any]]:
        """What a headless `run --json` or `resume --json` printed."""
        return [
            json.loads(line) for line in self.run(*arguments, expect=expect).stdout.splitlines()
        ]

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments).stdout)

    def samples(self, session: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.json("samples", session, "--format", "json")
        return rows


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
