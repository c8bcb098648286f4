"""Which workbench this is: its version, and the commit that it was built from or runs from."""

import subprocess
from pathlib import Path

DIGITS = 12


def version() -> str:
    """`0.4.0 (commit 1f2e3d4c5b6a)`; without the commit where nobody knows it."""
    from workbench import __version__

    package = Path(__file__).parents[1]
    try:
        commit = (package / "commit.txt").read_text(encoding="utf-8").strip()
    except OSError:
        commit = commit_of_tree(package.parent)
    return f"{__version__} (commit {commit})" if commit else __version__


def commit_of_tree(root: Path) -> str:
    """What git says of a clone at `root`; empty for any other folder, and without git."""
    if not (root / ".git").exists():  # another project's clone around an unpacked sdist is not ours
        return ""
    name = ["git", "rev-parse", f"--short={DIGITS}", "HEAD"]
    changes = ["git", "status", "--porcelain", "--untracked-files=no"]
    try:
        commit, changed = (
            subprocess.run(c, cwd=root, capture_output=True, text=True, check=True).stdout.strip()
            for c in (name, changes)
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}, with changes" if changed else commit
