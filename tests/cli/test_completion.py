"""What a shell offers at Tab, names that were nearly right, tables in narrow terminals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from driving import COMMAND, REPOSITORY, Workbench

from workbench.cli.app import app
from workbench.cli.tables import fitted
from workbench.cli.version import commit_of_tree, version
from workbench.domain.answer_tables import AnswerTable
from workbench.domain.naming import nearest

HEAVY = {"numpy", "duckdb", "scipy", "sklearn", "textual", "aiohttp", "asyncssh", "rich"}
"""Not pydantic: typer reads options with it."""
HEADINGS = ["session", "state", "lab", "campaign", "targets", "samples"]
ROW = ["science-closed", "bundle", "docker", "science-closed", "a-very-long-target, " * 4, "249"]


def offered(workbench: Workbench, line: str) -> list[str]:
    """What bash is told for a line whose last word is not finished."""
    done = subprocess.run(
        [COMMAND],
        env=workbench.environment
        | {
            "_WORKBENCH_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        cwd=workbench.root,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_names_are_completed(workbench: Workbench) -> None:
    (workbench.root / "sessions" / "mine-1.duckdb").write_bytes(b"not even a session")
    (workbench.root / "sessions" / ".hidden.duckdb").touch()
    own = workbench.root / "templates" / "campaigns"
    own.mkdir(parents=True)
    (own / "mine.yaml").touch()
    assert offered(workbench, "workbench show mi") == ["mine-1"]
    assert {"mine-1", "chain-real"} <= set(offered(workbench, "workbench show "))
    assert offered(workbench, "workbench resume ") == ["mine-1"]
    assert offered(workbench, "workbench run min") == ["mine"]
    assert "demo" in offered(workbench, "workbench plan ")
    chains = offered(workbench, "workbench predict mine-1 --chain tiny")
    assert chains == ["tinyproxy-haproxy"]
    assert "show" in offered(workbench, "workbench sho")
    assert offered(workbench, "workbench export x --as par") == ["parquet"]
    assert offered(workbench, "workbench export x --recommendation r1 --as ko") == []
    assert offered(workbench, "workbench export x --recommendation r1 --as hel") == ["helm"]


def parameters(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Those of every command, with its whole name."""
    for name, one in getattr(command, "commands", {}).items():
        yield from parameters(one, f"{path} {name}".strip())
    yield from ((path, parameter) for parameter in command.params)


def test_whatever_takes_a_session_a_campaign_or_a_chain_completes_it() -> None:
    named = re.compile(r"(A|Another|An interrupted or stopped) session\b")
    taking = {
        (command, one.name): one._custom_shell_complete
        for command, one in parameters(typer.main.get_command(app))
        if one.name in ("session", "campaign", "chain")
        or named.match(getattr(one, "help", None) or "")
    }
    for new in (("run", "session"), ("import", "session")):  # they name what is not there yet
        del taking[new]
    assert len(taking) > 20
    assert not [where for where, complete in taking.items() if complete is None]


def test_completion_opens_no_session_and_imports_nothing_heavy(workbench: Workbench) -> None:
    code = """
import sys
sys.argv = ["workbench"]
try:
    import workbench.cli
    workbench.cli.main()
finally:
    print(*sys.modules)
"""
    words = {"COMP_WORDS": "workbench show ", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=workbench.environment | {"_WORKBENCH_COMPLETE": "complete_bash"} | words,
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "chain-real" in loaded
    assert not HEAVY & loaded
    assert not any(name.startswith("workbench.engine") for name in done.stdout.split())


def test_a_name_that_is_nearly_right_is_proposed(workbench: Workbench) -> None:
    done = workbench.run("show", "chain-reel", expect=2)
    assert "Did you mean chain-real?" in done.stderr
    assert "Did you mean" not in workbench.run("show", "zzz", expect=2).stderr
    assert "Did you mean 'show'?" in workbench.run("shw", expect=2).stderr


@pytest.mark.parametrize(
    ("given", "meant"), [("chain-reel", "chain-real"), ("DEMO-1", "demo-1"), ("zzz", "")]
)
def test_the_nearest_name(given: str, meant: str) -> None:
    assert nearest(given, ["chain-real", "demo-1", "science-open"]) == meant


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_a_list_fits_its_terminal(columns: int) -> None:
    answer = AnswerTable.of(HEADINGS, [ROW])
    shown = fitted(answer, columns, ("targets", "campaign", "lab"))
    lines = shown.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[-1].startswith("science-cl")
    assert len(lines) == 3


def test_a_list_in_a_pipe_is_whole(workbench: Workbench) -> None:
    whole = fitted(AnswerTable.of(HEADINGS, [ROW]), None, ("targets",))
    assert whole.splitlines()[-1].split() == " ".join(ROW).split()
    assert "haproxy, tinyproxy, haproxy-tinyproxy, tinyproxy-haproxy" in workbench.run("ls").stdout


def test_curves_come_out_as_csv(workbench: Workbench) -> None:
    written = Path(workbench.run("export", "demo-real", "--as", "curves").stdout.strip())
    lines = written.read_text().splitlines()
    assert lines[0].startswith("caution,target,configuration,kpi,model,wl,mean")
    view = json.loads(workbench.run("show", "demo-real", "--json").stdout)
    drawn = [c["curve"] for c in view["configurations"] if c["curve"]]
    assert len(lines) - 1 == sum(len(curve["wl"]) for curve in drawn)


@pytest.mark.needs("git")
def test_version_names_the_commit_of_a_clone_alone(tmp_path: Path) -> None:
    assert re.fullmatch(
        r"\d+\.\d+\.\d+(?:\.dev\d+)?( \(commit [0-9a-f]{12}(, with changes)?\))?", version()
    )
    assert commit_of_tree(tmp_path) == ""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "file").write_text("1")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    commit = commit_of_tree(tmp_path)
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    (tmp_path / "file").write_text("2")
    assert commit_of_tree(tmp_path) == f"{commit}, with changes"
    (tmp_path / "unpacked").mkdir()
    assert commit_of_tree(tmp_path / "unpacked") == "", "another project's clone around it"


def test_what_is_built_is_stamped() -> None:
    assert "hooks.custom" in (REPOSITORY / "pyproject.toml").read_text()
