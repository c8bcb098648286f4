"""Build sdist and wheel as for a release, and install each where nothing else is.

    python scripts/check_release.py

The sdist is built from the tree, the wheel from that sdist. Each is installed into an empty
environment, without and with the extras, all from files with the hashes of requirements-dev.lock;
there the command says its version and commit, lists what ships, plans a campaign, and shows or
refuses what an extra is needed for.
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
EXTRA_MODULES = "import adaptive, distributed, pyarrow, textual_serve"


def run(*command: str | Path, expect: int = 0, **variables: str) -> str:
    """The output of a command. Ends everything if it ends otherwise than expected."""
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | variables, capture_output=True, text=True, cwd=tempfile.gettempdir(),
        check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode != expect:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{said}")
    return said


def must(text: str, wanted: str) -> None:
    if wanted not in text:
        raise SystemExit(f"{wanted!r} is missing in:\n{text}")


def installed(folder: Path, distribution: Path, parts: list[str]) -> Path:
    """The `bin` of an empty environment with a distribution and what it needs."""
    home = folder / f"{distribution.suffix.strip('.')}-{'-'.join(parts)}"
    lock = folder / f"{home.name}.lock"
    lock.write_text(select((ROOT / "requirements-dev.lock").read_text(), roots(parts)))
    run(UV, "venv", "--quiet", "--python", sys.executable, home)
    install = (UV, "pip", "install", "--quiet", "--python", home / "bin" / "python")
    run(*install, "--require-hashes", "-r", lock)
    run(*install, "--no-deps", "--no-build-isolation", distribution)
    return home / "bin"


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
            for extras in (False, True):
                parts = ["runtime", "build"] + ["extras"] * extras
                check(installed(folder, distribution, parts), commit, extras)
                what = "with" if extras else "without"
                print(f"{distribution.name} {what} extras: installed, and it works")


if __name__ == "__main__":
    main()
