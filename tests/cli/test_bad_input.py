"""Whatever comes from outside can be wrong: each time a sentence, and nothing is lost."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from broken_descriptors import FILES
from driving import COMMAND, REPOSITORY, Workbench


def is_one_sentence(text: str) -> bool:
    return "Traceback" not in text and text.strip() != "" and "Unexpected" not in text


def test_lint_locates_every_mistake_and_says_wrong_use(workbench: Workbench) -> None:
    done = workbench.run("lint", *map(str, FILES), expect=2)
    lines = done.stdout.splitlines()
    assert len(lines) >= len(FILES) >= 40
    for line in lines:
        assert re.match(r".+\.yaml:\d+:\d+: .+: .+", line), line
    assert is_one_sentence(done.stderr)


@pytest.mark.parametrize("path", FILES[::8], ids=lambda path: path.stem)
def test_running_a_broken_campaign_is_wrong_use(workbench: Workbench, path: Path) -> None:
    done = workbench.run("run", str(path), "--lab", "sim", "--headless", expect=2)
    assert is_one_sentence(done.stderr)
    assert not list((workbench.root / "sessions").glob("*.duckdb"))


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["run", "demoo", "--headless"], "did you mean demo?"),
        (["run", "demo", "--lab", "simm", "--headless"], "nothing is registered as 'simm'"),
        (["run", "demo", "--budget", "soon", "--headless"], "'soon' is not a duration"),
        (["run", "demo", "--budget", "0s", "--headless"], "'0s' is no time at all"),
        (["run", "demo", "--budget", "9" * 400, "--headless"], "is not a duration"),
        (["canary", "x", "--budget", "999999999999"], "is more than a century"),
        (["run", "demo", "--seed", "-1", "--headless"], "'--seed': -1 is not a seed"),
        (["run", "demo", "--pace", "-1", "--headless"], "'--pace': -1 is not a pace"),
        (["chains", "a > b", "--limit", "-1"], "'--limit': -1 is not a limit"),
        (["show", "a" * 5000], "has 5000 letters, and no name or path has so many"),
        (["samples", "a" * 300], "no session, bundle or recording 'aaa"),
        (["samples", "~nobody-of-that-name/a"], "no session, bundle or recording '~nobody"),
        (
            ["predict", "--profiles", "a" * 300 + "/b,c", "--chain", "a-b", "--at", "300/s"],
            "no session, bundle or recording 'aaa",
        ),
        (["run", "demo", "--lab", "sim", "--headless", "--session", "a" * 300], "cannot be the"),
        (["doctor", "--measure", "--lab", "sim", "--pairs", "999999"], "pairs take for ever"),
        (["canary", "x", "--share", "nan"], "nan is not a finite number"),
        (["recommend", "x", "--sla", "x", "--confidence", "inf"], "inf is not a finite number"),
        (["show", "a\x1b[2J\x9b2Jb"], "no session, bundle or recording"),
        (
            ["run", "demo", "--session", "../evil", "--lab", "sim", "--headless"],
            "cannot be the name",
        ),
        (
            ["run", "demo", "--session", "a\x1b[2Jb", "--lab", "sim", "--headless"],
            "cannot be the name",
        ),
        (["show", "nothing"], "no session, bundle or recording 'nothing'"),
        (["samples", "nothing"], "no session, bundle or recording 'nothing'"),
        (["export", "nothing", "--as", "csv"], "no session, bundle or recording 'nothing'"),
        (["export", "demo-real", "--as", "cvs"], "nothing is registered as 'cvs'"),
        (["export", "demo-real", "--as", "helm"], "helm is a format of recommendations"),
        (["resume", "nothing", "--headless"], "no session, bundle or recording 'nothing'"),
        (["resume", "chain-real", "--headless"], "bundles are not changed"),
        (["canary", "chain-real", "--chain", "tinyproxy-haproxy"], "bundles are not changed"),
        (["schema", "vnff"], "no descriptor is a 'vnff'"),
        (["replay", "nothing"], "the screen needs a terminal"),
        (
            ["run", "demo", "--http", "0.0.0.0:80", "--lab", "sim", "--headless"],
            "0.0.0.0 is not loopback",
        ),
    ],
    ids=lambda value: (
        " ".join(value)[:40].replace("\x1b", "ESC") if isinstance(value, list) else ""
    ),
)
def test_wrong_use_is_answered_by_a_sentence(
    workbench: Workbench, arguments: list[str], phrase: str
) -> None:
    done = workbench.run(*arguments, expect=2)
    assert phrase in done.stderr
    assert is_one_sentence(done.stderr)
    assert done.stderr.replace("\n", "").isprintable()


def test_no_engine_is_a_lab_failure(workbench: Workbench) -> None:
    workbench.variables["DOCKER_HOST"] = "unix:///nonexistent/docker.sock"
    done = workbench.run("run", "demo", "--lab", "docker", "--headless", expect=3)
    assert "nonexistent/docker.sock" in done.stderr
    assert is_one_sentence(done.stderr)


def test_nothing_to_attach_to_starts_nothing(workbench: Workbench) -> None:
    done = workbench.run("attach", expect=3)
    assert "no engine runs" in done.stderr
    assert is_one_sentence(done.stderr)
    assert "no engine runs" in workbench.run("engine", "status", expect=1).stderr


def test_without_an_engine_the_simulated_lab_is_taken_and_named(
    workbench: Workbench, small_campaign: Path
) -> None:
    workbench.variables["DOCKER_HOST"] = "unix:///nonexistent/docker.sock"
    done = workbench.run("run", str(small_campaign), "--headless")
    assert "simulated lab" in done.stdout


def test_a_folder_that_cannot_be_written(workbench: Workbench) -> None:
    # Even root may not create folders in sysfs.
    done = workbench.run(
        "--workspace", "/sys/kernel", "run", "demo", "--lab", "sim", "--headless", expect=3
    )
    assert "/sys/kernel" in done.stderr
    assert is_one_sentence(done.stderr)


def test_a_campaign_that_does_not_fit_the_host_names_the_figures(workbench: Workbench) -> None:
    cores = os.cpu_count() or 1
    campaign = workbench.root / "large.yaml"
    text = (REPOSITORY / "tests" / "data" / "small.yaml").read_text()
    campaign.write_text(text.replace("[12.5%, 25%]", f"[{cores}]"))
    done = workbench.run("run", str(campaign), "--lab", "docker", "--headless", expect=2)
    assert str(cores) in done.stderr
    assert "--oversubscribe" in done.stderr


def test_an_export_says_what_was_written(workbench: Workbench, tmp_path: Path) -> None:
    exported = ("export", "demo-real", "--output", str(tmp_path), "--as")
    for format, name in (("csv", "demo-real.csv"), ("bundle", "demo-real.bundle")):
        assert workbench.run(*exported, format).stdout == f"{tmp_path / name}\n"
        assert (tmp_path / name).exists()


@pytest.mark.parametrize("command", ["samples demo-real --format csv", "ls --json", "--help"])
def test_an_output_that_takes_nothing_is_said(workbench: Workbench, command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND, *command.split()],
            env=workbench.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=workbench.longest_s,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("The output cannot be written: No space left on device.")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_error_and_no_file_takes_their_place(
    workbench: Workbench, closed: str, tmp_path: Path
) -> None:
    wanted = tmp_path / "demo-real.csv"
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", COMMAND, "export", "demo-real", "--as", "csv",
         "--output", str(tmp_path)],
        env=workbench.environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=workbench.longest_s,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert str(wanted) not in wanted.read_text(), "what is told is not in the file"


def test_a_log_that_is_a_folder(workbench: Workbench) -> None:
    (workbench.root / ".workbench" / "workbench.log").mkdir(parents=True)
    assert "cannot be read" in workbench.run("logs", expect=2).stderr


def test_a_session_file_that_is_none(workbench: Workbench) -> None:
    (workbench.root / "sessions" / "bad.duckdb").write_bytes(b"not a database at all" * 100)
    done = workbench.run("show", "bad", expect=3)
    assert "bad" in done.stderr
    assert is_one_sentence(done.stderr)
    workbench.run("ls")
