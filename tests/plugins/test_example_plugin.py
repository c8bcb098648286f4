"""The example plugin installs on its own, is found by entry point, and a broken one is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "plugins" / "workbench-isotonic"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("plugins")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--disable-pip-version-check", "--target", folder, EXAMPLE],
        check=True,
    )  # fmt: skip
    return folder


def run(folder: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_example_is_found_beside_the_built_in_models_and_fits(installed: Path) -> None:
    code = """
import numpy as np
from workbench import plugins
assert {"isotonic", "gaussian-process"} <= set(plugins.names("models"))
model = plugins.load("models", "isotonic")().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0])
low, high = model.predict_band([[1.5]])
print(model.predict([[1.5]])[0], bool(low[0] < 2.5 < high[0]))
"""
    assert run(installed, code) == "2.5 True"


def test_a_plugin_that_cannot_be_imported_is_named_and_stops_nothing(installed: Path) -> None:
    broken = installed / "broken_plugin-1.0.dist-info"
    broken.mkdir(exist_ok=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[workbench.models]\nbroken = no_such_module:Model\n")
    code = """
from workbench import plugins
parts, errors = plugins.load_all("models")
print("isotonic" in parts, "gaussian-process" in parts, len(errors), errors[0])
"""
    printed = run(installed, code)
    assert printed.startswith("True True 1 ")
    assert "'broken' cannot be loaded" in printed
    assert "broken-plugin" in printed
