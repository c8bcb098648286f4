"""Paths as they are typed: `~` of a user that is not known, a current folder that was removed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from driving import COMMAND, Workbench

from workbench.cli import context


@pytest.mark.parametrize(
    "command",
    [
        "--workspace ~nobody-here/x ls",
        "report demo-real --out ~nobody-here/x.html",
        "samples demo-real --format csv --output ~nobody-here/x.csv",
        "export demo-real --as csv --output ~nobody-here/x.csv",
        "rescue demo-1 --to ~nobody-here/x",
        "grafana --output ~nobody-here/x.json",
        "sign ~nobody-here/x.bundle --key key",
        "verify x.bundle --signers ~nobody-here/signers",
        "serve --authorized-keys ~nobody-here/keys",
        "recommend demo-real --sla p95<=50ms@rate=300/s --cost ~nobody-here/x.yaml",
        "run ~nobody-here/x.yaml --headless",
    ],
)
def test_a_user_that_is_not_known_is_said(workbench: Workbench, command: str) -> None:
    said = " ".join(workbench.run(*command.split(), expect=2).stderr.split())
    assert said.startswith("~nobody-here/"), said
    assert "begins with a user that this host does not know" in said


def test_a_current_folder_that_was_removed_is_said(workbench: Workbench, tmp_path: Path) -> None:
    environment = {k: v for k, v in workbench.environment.items() if k != "WORKBENCH_WORKSPACE"}
    done = subprocess.run(
        ["sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "sh", COMMAND, "ls"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=workbench.longest_s,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == "the current folder was removed. Go to another one (cd).\n"


def test_an_unexpected_error_has_no_log_where_there_is_no_workspace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context.settings, "workspace", Path("~nobody-here/x"))
    assert context.log_unexpected(ValueError()) is None
    assert context.unwritable(PermissionError(13, "denied", "/x")) is None
