"""Limits of control groups of version 2, on files that stand in for the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.labs.netns.groups import Group
from workbench.probes.cgroup import CgroupFolders


@pytest.mark.parametrize(
    ("files", "held"),
    [
        ({"memory.max": "max"}, {"memory.max": "67108864"}),
        (
            {"memory.max": "max", "memory.swap.max": "max"},
            {"memory.max": "67108864", "memory.swap.max": "0"},
        ),
    ],
    ids=["swap is not counted", "swap is counted"],
)
def test_memory_is_limited_whether_or_not_the_kernel_counts_swap(
    files: dict[str, str], held: dict[str, str], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    folders = CgroupFolders("v2", tmp_path, tmp_path, tmp_path)
    Group("it", "v2", (tmp_path,), folders).limit_memory(64 << 20)
    # In a control group nobody can make a file: the kernel refuses it.
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == held
