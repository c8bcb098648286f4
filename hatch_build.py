"""Stamps the commit into what is built: `workbench --version` names it.

From a clone it is git's; from an unpacked sdist it is the stamp that came with it. Without either
there is none, and nothing is asked of a network.
"""

from __future__ import annotations

import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STAMP = "workbench/commit.txt"
"""In the wheel and in the sdist; `workbench/cli/version.py` reads it."""


class CommitStamp(BuildHookInterface):
    """Puts the stamp beside the package, but never into the tree that is built from."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected."""
        if version == "editable" or Path(self.root, STAMP).exists():
            return
        # By its path: the package may need what a build environment lacks.
        spec = spec_from_file_location("version", Path(self.root, "workbench/cli/version.py"))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        if commit := module.commit_of_tree(Path(self.root)):
            self._folder = tempfile.TemporaryDirectory()
            stamp = Path(self._folder.name, "commit.txt")
            stamp.write_text(f"{commit}\n")
            build_data["force_include"][str(stamp)] = STAMP
