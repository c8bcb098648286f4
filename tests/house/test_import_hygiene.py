"""What a room drags in when it is imported, seen in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    *("duckdb", "aiodocker", "sklearn", "scipy", "pydantic", "ruamel", "asyncssh", "pyarrow"),
    *("numba", "shap"),
)


def modules_after(statement: str) -> set[str]:
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_engine_imports_no_screen() -> None:
    loaded = modules_after("import workbench.engine.core, workbench.engine.process")
    assert not {m for m in loaded if m.split(".")[0] == "textual"}
    assert not {m for m in loaded if m.startswith(("workbench.tui", "workbench.link"))}


def test_importing_the_screens_imports_nothing_heavy() -> None:
    loaded = modules_after("import workbench.tui.app")
    assert not {m for m in loaded if m.split(".")[0] in HEAVY}
    assert not {m for m in loaded if m.startswith(("workbench.engine", "workbench.store"))}


def test_help_needs_neither_screens_nor_science() -> None:
    loaded = modules_after("import workbench.cli.app")
    assert not {m for m in loaded if m.split(".")[0] in (*HEAVY, "textual", "numpy", "rich")}


def test_a_command_that_only_asks_needs_no_science(tmp_path: Path) -> None:
    """`ls` where no engine runs starts one in its own process: what that imports is waited for."""
    asked = f"sys.argv = ['workbench', '--workspace', {str(tmp_path)!r}, 'ls']"
    ask = "import contextlib, workbench.cli\nwith contextlib.suppress(SystemExit):"
    loaded = modules_after(f"{asked}\n{ask}\n    workbench.cli.main()")
    assert "workbench.engine.core" in loaded
    assert not {m for m in loaded if m.split(".")[0] in ("numpy", "scipy", "ruamel", "textual")}
    rooms = ("models", "sampling", "queues", "traffic", "labs.simulated")
    assert not {m for m in loaded if m.startswith(tuple(f"workbench.{r}." for r in rooms))}


@pytest.mark.parametrize("room", ["measuring", "queues", "models", "sampling"])
def test_science_rooms_import_without_any_io_library(room: str) -> None:
    loaded = modules_after(f"import workbench.{room}")
    assert not {
        m for m in loaded if m.split(".")[0] in ("duckdb", "aiodocker", "aiohttp", "textual")
    }


def test_the_tests_run_against_the_built_wheel() -> None:
    """`make test` installs the wheel; a checkout on the path would hide what the wheel lacks."""
    import workbench
    from workbench.paths import shipped

    package = Path(workbench.__file__).parent
    if package.parent == Path(__file__).parents[2]:
        pytest.skip("editable install: `make test` runs this against the wheel")
    assert shipped("templates") == package / "share" / "templates"
    assert (package / "share" / "templates" / "campaigns" / "demo.yaml").is_file()
