"""Write or check the lock files: `python scripts/lock.py write|check`.

`check` resolves pyproject.toml against the pins that are committed: where that changes a line,
the lock is stale. It needs the package index, as an installation does, and names it nowhere.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCKS = {
    "requirements.lock": ["--all-extras"],
    "requirements-dev.lock": [
        "--all-extras",
        "--group",
        "dev",
        "--constraints",
        "requirements.lock",
    ],
}


def resolve(output: Path, options: list[str]) -> None:
    command = [
        Path(sys.executable).parent / "uv", "pip", "compile", "--quiet", "--universal",
        "--python-version", "3.11", "--generate-hashes", "--custom-compile-command", "make lock",
        *options, "pyproject.toml", "--output-file", str(output),
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def write() -> None:
    for name, options in LOCKS.items():
        resolve(ROOT / name, [*options, "--upgrade"])


def check() -> None:
    for name, options in LOCKS.items():
        committed = (ROOT / name).read_text()
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder) / name
            again.write_text(committed)  # uv keeps the pins it finds in its output file
            resolve(again, options)
            if again.read_text() != committed:
                raise SystemExit(f"{name} is stale: run `make lock` and commit the result")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]]()
