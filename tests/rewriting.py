"""Each worker rewrites the asserts of its share of the test files before it collects all of them.

Else every worker rewrites all of them at the same time, as all collect the same files in the same
order: on a fresh clone that is four times what one would need.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another, which spreads them."""
    return hasattr(config, "workerinput")


def rewrite_a_share(config: pytest.Config) -> None:
    """Those that are kept already cost a look; a file that does not parse is told by collection."""
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in files_of_tests(config)[number::count]:
        try:
            keep_rewritten(path, config)
        except SyntaxError:
            continue


def files_of_tests(config: pytest.Config) -> list[Path]:
    """The largest first, so that all shares take as long."""
    folder = config.invocation_params.dir
    given = [folder / argument.partition("::")[0] for argument in config.args]
    found = {path for one in given for path in ([one] if one.is_file() else one.rglob("test_*.py"))}
    return sorted(found, key=lambda path: (-path.stat().st_size, path))


def keep_rewritten(path: Path, config: pytest.Config) -> None:
    """As pytest's own import hook would when it imports that file."""
    state = config.stash[rewrite.assertstate_key]
    folder = rewrite.get_cache_dir(path)
    kept = folder / (path.name[:-3] + rewrite.PYC_TAIL)
    if rewrite._read_pyc(path, kept) is None and rewrite.try_makedirs(folder):
        source_hash, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(state, code, source_hash, kept)
