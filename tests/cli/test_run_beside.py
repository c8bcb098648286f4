"""A command is seldom alone: other commands at the same time, and signals."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driving import Workbench

from workbench.cli.context import harmless, put_json
from workbench.cli.headless import _ProgressBar
from workbench.domain.events import Event, Noted
from workbench.domain.projection import SessionView


def a_run(campaign: Path, session: str, *options: str) -> list[str]:
    return ["run", str(campaign), "--lab", "sim", "--session", session, "--headless", *options]


def test_two_runs_started_in_the_same_instant_share_one_engine(
    workbench: Workbench, small_campaign: Path
) -> None:
    runs = [workbench.begin(*a_run(small_campaign, name, "--budget", "20s")) for name in ("a", "b")]
    for run in runs:
        _, said = run.communicate(timeout=workbench.longest_s)
        assert run.returncode == 0, said
        assert "never retrieved" not in said
    assert {line["name"] for line in workbench.json("ls", "--json")} >= {"a", "b"}


def test_an_engine_goes_on_for_the_campaigns_of_others_until_ctrl_c(
    workbench: Workbench, small_campaign: Path
) -> None:
    with workbench.begin(*a_run(small_campaign, "own", "--pace", "20")) as own:
        assert own.stdout is not None
        while "deployed" not in own.stdout.readline():
            pass
        other = workbench.begin(*a_run(small_campaign, "other", "--pace", "1"))
        assert other.stderr is not None
        while "queued: own" not in (line := other.stderr.readline()):
            assert line, "it ended without a word"
        own.send_signal(signal.SIGINT)
        assert own.stderr is not None
        while "this engine goes on for other" not in (line := own.stderr.readline()):
            assert line, "it ended without a word"
        own.send_signal(signal.SIGINT)
        assert own.wait(60) == 130
        _, said = other.communicate(timeout=60)
    assert other.returncode == 3
    assert "workbench resume other" in said
    states = {line["name"]: line["state"] for line in workbench.json("ls", "--json")}
    assert states == states | {"own": "stopped", "other": "interrupted"}


def test_a_run_whose_output_nobody_reads_goes_on_and_answers(
    workbench: Workbench, small_campaign: Path
) -> None:
    with workbench.begin(*a_run(small_campaign, "s", "--json")) as run:
        assert run.stdout is not None
        fcntl.fcntl(run.stdout, fcntl.F_SETPIPE_SZ, 4096)
        assert run.stdout.readline()
        deadline = time.monotonic() + workbench.longest_s
        while [s["state"] for s in workbench.json("ls", "--json") if s["name"] == "s"] != [
            "finished"
        ]:
            assert time.monotonic() < deadline
            time.sleep(0.5)  # each asking is a command
        out, errors = run.communicate(timeout=workbench.longest_s)
        assert run.returncode == 0, errors
        assert json.loads(out.splitlines()[-1])["event"] == "RunFinished"


@pytest.mark.slow
def test_a_session_is_the_same_by_its_name_and_by_its_path(
    workbench: Workbench, small_campaign: Path
) -> None:
    workbench.run(*a_run(small_campaign, "s", "--budget", "60s"))
    events = workbench.events("resume", "sessions/s.duckdb", "--json")
    assert {event["session"] for event in events} == {"s"}
    assert events[-1]["outcome"] == "done"
    assert workbench.samples("sessions/s.duckdb") == workbench.samples("s")


def test_a_session_of_elsewhere_is_read_and_not_resumed(
    workbench: Workbench, small_campaign: Path
) -> None:
    workbench.run(*a_run(small_campaign, "s", "--budget", "60s"))
    (workbench.root / "sessions" / "s.duckdb").rename(workbench.root / "mine.duckdb")
    assert workbench.samples("mine.duckdb")
    done = workbench.run("resume", "mine.duckdb", "--headless", expect=2)
    assert "is not a session of this workspace" in done.stderr


def test_http_of_an_engine_that_runs_already_is_not_promised(
    workbench: Workbench, small_campaign: Path
) -> None:
    first = workbench.begin(*a_run(small_campaign, "a", "--pace", "5"))
    assert first.stdout is not None
    first.stdout.readline()  # it serves
    http = ("--http", "127.0.0.1:0")
    done = workbench.run(*a_run(small_campaign, "b", *http), expect=2)
    assert "workbench engine stop" in done.stderr
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)


OLD_ENGINE = """
from workbench.domain import messages
messages.PROTOCOL_VERSION -= 1
import asyncio
from workbench import paths
from workbench.engine.process import serving
async def main():
    async with serving(paths.workspace()) as engine:
        asyncio.get_running_loop().add_signal_handler(15, engine.stopping.set)
        print("serves", flush=True)
        await engine.stopping.wait()
asyncio.run(main())
"""


def test_an_engine_of_another_protocol_can_be_stopped(workbench: Workbench) -> None:
    old = subprocess.Popen(
        [sys.executable, "-c", OLD_ENGINE],
        env=workbench.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert old.stdout is not None
    assert old.stdout.readline() == "serves\n"
    refused = workbench.run("engine", "status", expect=None)
    assert "speaks protocol" in refused.stderr
    assert "workbench engine stop" in refused.stderr
    assert "has ended" in workbench.run("engine", "stop").stderr
    old.communicate(timeout=60)
    assert old.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_whose_terminal_is_lost_tears_down(
    workbench: Workbench, small_campaign: Path, number: signal.Signals
) -> None:
    run = workbench.begin(*a_run(small_campaign, "s", "--pace", "1"))
    assert run.stdout is not None
    while "deployed" not in run.stdout.readline():
        pass
    run.send_signal(number)
    run.communicate(timeout=60)
    assert run.returncode == 130
    log = workbench.json("show", "s", "--json")["log"]
    assert "the engine ended in mid-run" in log[-1]["text"]  # written on the way out


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    assert harmless("a\x1b]0;owned\x07\x9b2Jb\r\nc\td – é") == "a·]0;owned··2Jb·\nc\td – é"


def test_json_has_the_same_text_and_nothing_that_a_terminal_would_obey(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "a\x1b[2J\x9b2J\u202eb é – 𝄞\U000e0001"
    put_json({"text": text})
    line = capsys.readouterr().out.removesuffix("\n")
    assert line.isprintable()
    assert "é – 𝄞" in line
    assert json.loads(line) == {"text": text}


def test_what_a_plugin_says_is_harmless_above_the_progress_bar(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view, said = SessionView("s"), Event(1, 0.0, "s", Noted("warning", "raises \x1b[31mno\x9b"))
    bar = _ProgressBar("s")
    view.apply(said)
    bar.event(said, view)
    bar.close()
    shown = capsys.readouterr().err
    assert "raises ·[31mno·" in shown
    assert "\x1b[31m" not in shown
