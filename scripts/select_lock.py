"""Print the part of a lock file that some requirements of pyproject.toml need, hashes included.

`make demo` needs the runtime without optional extras and the build back end, and nothing may be
installed without a hash; this cuts that out of requirements-dev.lock. A package belongs to the
selection if a chain of the lock's own `# via` remarks leads to one that was asked for.

    python scripts/select_lock.py runtime build < requirements-dev.lock
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

BLOCK = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==.*?(?=^[A-Za-z0-9]|\Z)", re.MULTILINE | re.DOTALL)
VIA = re.compile(r"#\s+(?:via\s+)?([A-Za-z0-9._-]+)\s*$", re.MULTILINE)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def roots(selection: list[str]) -> set[str]:
    """Names that the selected parts of pyproject.toml ask for."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    wanted = {
        "runtime": project["project"]["dependencies"],
        "build": project["build-system"]["requires"],
        "extras": [
            package
            for extra in project["project"]["optional-dependencies"].values()
            for package in extra
        ],
    }
    return {
        normal(re.match(r"[A-Za-z0-9._-]+", requirement)[0])
        for part in selection
        for requirement in wanted[part]
    }


def select(lock: str, names: set[str]) -> str:
    """The blocks of `lock` that belong to `names` and what they need."""
    blocks: dict[str, str] = {}
    for match in BLOCK.finditer(lock):  # a package may be pinned twice, for two Python versions
        blocks[normal(match["name"])] = blocks.get(normal(match["name"]), "") + match[0]
    if missing := names - blocks.keys():
        raise SystemExit(f"not in the lock: {', '.join(sorted(missing))}; run `make lock`")
    needed_by = {name: {normal(via) for via in VIA.findall(text)} for name, text in blocks.items()}
    kept = set(names)
    while grown := {n for n, parents in needed_by.items() if n not in kept and parents & kept}:
        kept |= grown
    return "".join(blocks[name] for name in sorted(kept))


if __name__ == "__main__":
    print(select(sys.stdin.read(), roots(sys.argv[1:])), end="")
