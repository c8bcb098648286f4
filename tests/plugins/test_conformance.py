"""`workbench conformance`: the examples conform, and every way of breaking it is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[2] / "plugins"

BROKEN = '''
import os, time
from dataclasses import replace
import numpy as np
from workbench.sampling.base import Ask
from workbench.sampling.bisection import BisectionSampler


class Twice(BisectionSampler):
    """Asks for its first point for ever."""

    def ask(self):
        return self.first if hasattr(self, "first") else self._ask()

    def _ask(self):
        self.first = super().ask()
        return self.first


class Outside(BisectionSampler):
    def ask(self):
        c = self.space.configurations[0]
        return Ask(c, 1e9, 0, 1e9, 1e9, "far")


class Exits(BisectionSampler):
    def ask(self):
        os._exit(7)


class Halves(BisectionSampler):
    """Does not care that clients come whole."""

    def __init__(self, space, plan, *, model_factory):
        primary = replace(space.primary, integer=False)
        super().__init__(replace(space, primary=primary), plan, model_factory=model_factory)


class Hangs:
    def fit(self, X, y, noise=None):
        time.sleep(3600)


class NotFinite:
    def fit(self, X, y, noise=None):
        return self

    def predict(self, X):
        return [float("nan")] * len(X)

    def predict_band(self, X):
        return self.predict(X), self.predict(X)


class Swallows:
    """Takes for 0 what is no number."""

    def fit(self, X, y, noise=None):
        self.mean = np.nan_to_num(y).sum() / max(len(y), 1)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean)

    def predict_band(self, X):
        return self.predict(X), self.predict(X)


class Raises:
    def fit(self, X, y, noise=None):
        raise ZeroDivisionError("by my own fault")
'''
ENTRY_POINTS = """[workbench.samplers]
twice = broken_parts:Twice
outside = broken_parts:Outside
exits = broken_parts:Exits
halves = broken_parts:Halves
[workbench.models]
hangs = broken_parts:Hangs
not-finite = broken_parts:NotFinite
raises = broken_parts:Raises
swallows = broken_parts:Swallows
gone = broken_parts:Nothing
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both examples, installed by pip, and a package of broken parts."""
    folder = tmp_path_factory.mktemp("plugins")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--disable-pip-version-check", "--target", folder,
         PLUGINS / "workbench-isotonic", PLUGINS / "workbench-ramp"],
        check=True,
    )  # fmt: skip
    (folder / "broken_parts.py").write_text(BROKEN)
    info = folder / "broken_parts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Broken_Parts\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def conformance(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workbench", "conformance", *arguments],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("package", ["workbench-isotonic", "workbench_ramp"])
def test_the_examples_conform(folder: Path, package: str) -> None:
    done = conformance(folder, package)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{package} conforms" in done.stderr
    assert "FAILS" not in done.stdout


def test_every_broken_part_is_named_with_what_is_wrong(folder: Path) -> None:
    code = (
        "import json\n"
        "if __name__ == '__main__':\n"
        "    from workbench.conformance.running import examine\n"
        "    from workbench.domain.codec import to_plain\n"
        "    print(json.dumps(to_plain(list(examine('broken-parts', limit_s=15)))))\n"
    )
    script = folder / "examine_broken.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, set[str]] = {}
    for verdict in json.loads(done.stdout):
        if not verdict["passed"]:
            found.setdefault(verdict["part"], set()).add(verdict["found"])

    def says(part: str, sentence: str) -> bool:
        return any(sentence in one for one in found[part])

    assert says("twice", "asks twice for function.vcpu=0.25")
    assert says("outside", "outside of 50 to 5000")
    assert found["exits"] >= {"ends the process (exit code 7)"}
    assert says("halves", "where only whole numbers can be offered")
    assert says("swallows", "fitted to a KPI that is not a number, it raises no ValueError")
    assert says("hangs", "does not end within 15 s")
    assert says("not-finite", "predict is not finite")
    assert says("raises", "ZeroDivisionError: by my own fault")
    assert says("gone", "cannot be loaded")


def test_a_package_without_parts_is_a_sentence(folder: Path) -> None:
    done = conformance(folder, "numpy")
    assert done.returncode == 2
    assert "registers no part of the workbench" in done.stderr
