"""The cut of the lock file that `make demo` installs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from select_lock import roots, select  # noqa: E402 - scripts are no package

LOCK = (ROOT / "requirements-dev.lock").read_text()


def names(lock: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9._-]+)==", lock, re.MULTILINE))


def test_runtime_leaves_out_extras_and_test_tools() -> None:
    chosen = names(select(LOCK, roots(["runtime", "build"])))
    assert {"textual", "duckdb", "aiodocker", "aiohttp", "multidict", "hatchling"} <= chosen
    assert not {"pyarrow", "pytest", "mypy", "hypothesis", "ruff", "textual-serve"} & chosen


def test_every_chosen_package_keeps_a_hash_and_every_pin() -> None:
    cut = select(LOCK, roots(["runtime"]))
    assert cut.count("numpy==") == LOCK.count("numpy==")
    for block in re.split(r"^(?=[a-z])", cut, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block


def test_locks_name_no_host() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        assert "://" not in (ROOT / lock).read_text()
