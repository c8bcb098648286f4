"""The installed command, driven as a user would: in a workspace and a runtime folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forked_commands import Started, forker

COMMAND = Path(sys.executable).parent / "workbench"
REPOSITORY = Path(__file__).parents[1]
LOCK_VARIABLE, MEASURING_LOCK = "WORKBENCH_MEASURING_LOCK", "measuring.lock"
"""What has each runtime folder be a host of its own, on which one campaign measures at a time."""
LONGEST_COMMAND_S = 300
forked = True
"""Whether commands are spared their imports; `make accept` runs them as they are installed."""


@dataclass
class Workbench:
    """The installed command in a workspace and a runtime folder of its own."""

    root: Path
    runtime: Path
    variables: dict[str, str] = field(default_factory=dict)
    longest_s: float = LONGEST_COMMAND_S
    """After which a command is given up."""

    @property
    def environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("WORKBENCH_")}
        inherited.pop("NO_COLOR", None)
        return inherited | {
            "WORKBENCH_WORKSPACE": str(self.root),
            "XDG_RUNTIME_DIR": str(self.runtime),
            LOCK_VARIABLE: MEASURING_LOCK,
            "XDG_STATE_HOME": str(self.runtime / "state"),
            **self.variables,
        }

    def run(self, *arguments: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        argv = [COMMAND, *arguments]
        if forked:
            done = forker.run(argv, self.environment, self.root, self.longest_s)
        else:
            done = subprocess.run(
                argv,
                env=self.environment,
                cwd=self.root,
                capture_output=True,
                text=True,
                timeout=self.longest_s,
                stdin=subprocess.DEVNULL,
            )
        if expect is not None:
            assert done.returncode == expect, (
                f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def begin(self, *arguments: str) -> subprocess.Popen[str] | Started:
        """A command that runs meanwhile, spared its imports as those of `run` are."""
        if forked:
            return forker.start([COMMAND, *arguments], self.environment, self.root)
        return self.start(*arguments)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The same as it is installed: to be killed while it starts, or for what it imports."""
        return subprocess.Popen(
            [COMMAND, *arguments],
            env=self.environment,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    @contextmanager
    def serving(self) -> Iterator[None]:
        """An engine that runs meanwhile: commands are spared its start and its worker's imports."""
        with self.begin("engine", "serve") as engine:
            yield
            self.run("engine", "stop", expect=None)
            engine.wait(60)

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


@contextmanager
def a_workbench(root: Path) -> Iterator[Workbench]:
    """The command in a workspace there; an engine that is left in it is stopped."""
    (root / "sessions").mkdir()
    # A unix socket's path is short; pytest's folders are not.
    runtime = Path(tempfile.mkdtemp(prefix="wb-"))
    made = Workbench(root, runtime)
    try:
        yield made
    finally:
        if list(runtime.rglob("*.sock")):
            made.run("engine", "stop", expect=None)
        shutil.rmtree(runtime, ignore_errors=True)


def run_and_kill(
    workbench: Workbench,
    arguments: list[str],
    *,
    after_lines: int | None = None,
    after_samples: int | None = None,
) -> list[dict[str, Any]]:
    """Start a headless `--json` run and `kill -9` it; the events that it had announced."""
    process = workbench.begin(*arguments)
    assert process.stdout is not None
    announced: list[dict[str, Any]] = []
    for line in process.stdout:
        announced.append(json.loads(line))
        enough = after_lines is not None and len(announced) >= after_lines
        enough |= after_samples is not None and len(sample_ids(announced)) >= after_samples
        if enough or announced[-1]["event"] == "RunFinished":
            break
    process.send_signal(signal.SIGKILL)
    killed = process.wait() == -signal.SIGKILL
    assert killed or announced[-1]["event"] == "RunFinished", "it ended by itself, and too early"
    # Not `communicate`, which knows nothing of what has been read ahead.
    rest = process.stdout.read()
    _, errors = process.communicate()
    assert announced, errors
    # What was in the pipe when it died was announced as well; its last line may be torn.
    return announced + [json.loads(line) for line in rest.splitlines() if line.endswith("}")]


def sample_ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["sample"]["id"] for event in events if event["event"] == "SampleTaken"]
