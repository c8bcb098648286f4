"""The installed command, driven as a user would: in a workspace and a runtime folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "workbench"
REPOSITORY = Path(__file__).parents[1]
LONGEST_COMMAND_S = 300


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
