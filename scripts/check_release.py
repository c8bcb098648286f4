"""Build sdist and wheel as for a release, and install each where nothing else is.

    python scripts/check_release.py

The sdist is built from the tree, the wheel from that sdist. Each is installed into an empty
environment, without extras first and then with them, all from files with the hashes of
requirements-dev.lock; there the command says its version and commit, lists what ships, plans a
campaign, and shows or refuses what an extra is needed for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from select_lock import roots, select

ROOT = Path(__file__).parent.parent
UV = Path(sys.executable).parent / "uv"
EXTRA_MODULES = "import adaptive, distributed, pyarrow, shap, textual_serve"
KEEPING = {"PYTHONDONTWRITEBYTECODE": ""}
"""Each of an environment's commands would compile everything that it imports."""


def run(*command: str | Path, expect: int = 0, **variables: str) -> str:
    """The output of a command. Ends everything if it ends otherwise than expected."""
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | KEEPING | variables, cwd=tempfile.gettempdir(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode != expect:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{said}")
    return said


def must(text: str, wanted: str) -> None:
    if wanted not in text:
        raise SystemExit(f"{wanted!r} is missing in:\n{text}")


def needed(home: Path, *parts: str) -> None:
    """Install what these parts need into an environment."""
    lock = home / f"{'-'.join(parts)}.lock"
    lock.write_text(select((ROOT / "requirements-dev.lock").read_text(), roots(list(parts))))
    install(home, "--require-hashes", "-r", lock)


def install(home: Path, *words: str | Path) -> None:
    run(UV, "pip", "install", "--quiet", "--python", home / "bin" / "python", *words)


def check(binaries: Path, commit: str, extras: bool) -> None:
    """What must work of an installation, in a workspace of its own."""
    workbench = binaries / "workbench"
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        own = {
            "WORKBENCH_WORKSPACE": folder,
            "XDG_RUNTIME_DIR": folder,
            "XDG_STATE_HOME": folder,
            "XDG_CONFIG_HOME": folder,
        }
        must(run(workbench, "--version", **own), f"(commit {commit}")
        must(run(workbench, "ls", **own), "chain-real")
        must(run(workbench, "plan", "demo", "--lab", "sim", **own), "samples")
        must(run(workbench, "web", "--help", **own), "--name")
    if extras:
        run(binaries / "python", "-c", EXTRA_MODULES)
    else:
        must(run(workbench, "web", expect=2), "pip install 'vnf-workbench[web]'")


def main() -> None:
    commit = run("git", "-C", ROOT, "rev-parse", "--short=12", "HEAD").strip()
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        folder = Path(name)
        run(sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", folder, ROOT)
        (sdist,) = folder.glob("*.tar.gz")
        (wheel,) = folder.glob("*.whl")
        for distribution in (sdist, wheel):
            home = folder / distribution.suffix.strip(".")
            run(UV, "venv", "--quiet", "--python", sys.executable, home)
            needed(home, "runtime", "build")
            install(home, "--no-deps", "--no-build-isolation", distribution)
            check(home / "bin", commit, extras=False)
            print(f"{distribution.name} without extras: installed, and it works")
            needed(home, "extras")
            check(home / "bin", commit, extras=True)
            print(f"{distribution.name} with extras: installed, and it works")


if __name__ == "__main__":
    main()
