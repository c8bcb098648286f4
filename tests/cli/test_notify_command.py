"""`notify.toml` in force: the engine of a run tells, and `notify --test` tries it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from driving import REPOSITORY, Workbench

SAVES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"


def asked(workbench: Workbench, tmp_path: Path, text: str) -> None:
    workbench.variables["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    folder = tmp_path / "config" / "vnf-workbench"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notify.toml").write_text(text)


def test_a_run_that_ends_tells_and_a_failure_is_in_its_log(
    workbench: Workbench, tmp_path: Path
) -> None:
    told = tmp_path / "told.json"
    good = json.dumps([sys.executable, "-c", SAVES, str(told)])
    asked(
        workbench,
        tmp_path,
        f"[[notify]]\ncommand = {good}\n"
        '[[notify]]\nwebhook = "http://127.0.0.1:9/hush"\n[[notify]]\nterminal = true\n',
    )
    small = shutil.copy(REPOSITORY / "tests" / "data" / "small.yaml", workbench.root)
    done = workbench.run("run", small, "--lab", "sim", "--headless", "--session", "s")
    assert "\x1b]" not in done.stderr, "it is no terminal"
    notice = json.loads(told.read_text())
    assert (notice["event"], notice["session"], notice["outcome"]) == ("finished", "s", "done")
    assert "simulation" in notice["caution"]
    shown = workbench.run("show", "s", "--json").stdout
    assert "was not delivered: webhook at 127.0.0.1:9 cannot be reached" in shown
    assert workbench.json("show", "s", "--json")["state"] == "finished"
    assert "hush" not in (workbench.root / ".workbench" / "workbench.log").read_text()


def test_each_can_be_tried(workbench: Workbench, tmp_path: Path) -> None:
    workbench.variables["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    assert "nobody is told" in workbench.run("notify").stdout
    command = json.dumps([sys.executable, "-c", "raise SystemExit(3)"])
    asked(workbench, tmp_path, f'[[notify]]\non = ["failed"]\ncommand = {command}\n')
    assert "failed" in workbench.run("notify").stdout
    assert "ended with code 3" in workbench.run("notify", "--test", expect=1).stdout
    asked(workbench, tmp_path, "[[notify]]\nshell = 1\n")
    assert "there" not in workbench.run("notify", expect=2).stdout
