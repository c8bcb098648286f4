"""`run --fleet` on a terminal: the run goes on by itself, and the screens show it meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driving import Workbench
from terminal import Terminal

from workbench.cli import fleet_screen
from workbench.cli.fleet_screen import FollowedOutput, keep_short
from workbench.domain.fleets import Fleet, FleetRun, LabHost
from workbench.fleet.fleet_lifecycle import _tell_started
from workbench.fleet.fleet_standing import FleetFolder, FleetStanding, HostStanding, HostState
from workbench.fleet.leases import Leases
from workbench.fleet.security import Secrets
from workbench.paths import Workspace

HOSTS = "kind: hosts\nhosts:\n  alpha: {kind: simulated}\n"
LONGEST_S = 60.0


@pytest.mark.slow
def test_the_run_goes_on_without_its_screen_until_somebody_stops_it(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    run = ("run", "demo", "--fleet", "hosts.yaml", "--lab", "sim", "--pace", "2")
    screen = Terminal(workbench, *run)
    screen.until("demo-1", "alpha", "state", "Stop")
    screen.press("q")
    screen.until("demo-1 goes on", "`s` on the screens of demo-1", "kept in")
    assert screen.ended() == 0

    folder = FleetFolder(workbench.root / ".workbench/fleet/hosts")
    output = folder.root / "outputs/demo-1.log"
    assert output.stat().st_mode & 0o777 == 0o600
    (left,) = Leases(folder.leases).measuring()
    assert left.session == "demo-1"

    refused = Terminal(workbench, *run, "--session", "demo-1")
    assert refused.ended() != 0
    assert "is being measured by process" in " ".join(refused.text.split())
    assert "Stop" not in refused.text

    again = Terminal(workbench, "attach", "demo-1")
    again.until("demo-1", "Stop")
    again.press("s")
    again.until("Stop the run?")
    again.press("y")
    again.until("STOPPED")
    again.press("q")
    again.ended()
    ends = time.monotonic() + LONGEST_S
    goes_on = "Go on with `workbench run demo --fleet hosts.yaml --session demo-1"
    while goes_on not in (said := " ".join(output.read_text().split())):
        assert time.monotonic() < ends, said
        time.sleep(0.1)


def test_what_is_refused_at_once_is_a_sentence_and_no_screen(workbench: Workbench) -> None:
    screen = Terminal(workbench, "run", "demo", "--fleet", "nothing.yaml")
    assert screen.ended() == 2
    assert "nothing.yaml" in screen.text
    assert "Sessions" not in screen.text
    assert not (workbench.root / ".workbench/fleet").exists()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A terminal, a workspace, and what a command says in place of a campaign over hosts."""
    said = ["import time; print('no hosts', flush=True); raise SystemExit(4)"]
    started = subprocess.Popen

    def popen(words: list[str], **more: object) -> subprocess.Popen[bytes]:
        said.append(" ".join(words[3:]))
        return started([sys.executable, "-c", said[0]], **more)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr("workbench.cli.screen.must_show_screens", lambda: None)
    monkeypatch.setattr("workbench.cli.context.settings.workspace", tmp_path)
    monkeypatch.setattr(fleet_screen.subprocess, "Popen", popen)
    monkeypatch.setattr(sys, "argv", ["workbench", "run", "--fleet", "hosts.yaml", "--", "demo"])
    return said


FLEET = Fleet("hosts", (LabHost("alpha", "simulated"),))


def test_a_command_that_ends_before_its_session_gives_its_sentence_and_its_code(
    stand_in: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(fleet_screen.typer.Exit) as ended:
        fleet_screen.watch_over(FLEET, FleetRun("demo"))
    assert ended.value.exit_code == 4
    assert capsys.readouterr().err.splitlines()[-1] == "no hosts"
    assert stand_in[1] == "workbench run --fleet hosts.yaml --headless --session demo-1 -- demo"


def test_two_terminals_begin_a_session_each(
    stand_in: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fleet_screen.output_of(Workspace(tmp_path), FLEET.name, "demo-1")
    with fleet_screen._opened(path) as other:
        with pytest.raises(fleet_screen.typer.Exit):
            fleet_screen.watch_over(FLEET, FleetRun("demo"))
        assert "--session demo-2" in stand_in[-1]
        for i in range(fleet_screen.MOST_OUTPUTS + 3):
            fleet_screen._opened(path.with_name(f"m-{i}.log")).close()
        other.write(b"it is still there")
    assert path.read_bytes() == b"it is still there", "the output of a run that goes on is kept"
    with pytest.raises(fleet_screen.typer.Exit):
        fleet_screen.watch_over(FLEET, FleetRun("demo"))
    assert "--session demo-1" in stand_in[-1], "nobody began it"


def test_ctrl_c_before_there_is_a_screen_ends_the_run(
    stand_in: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stand_in[0] = (
        "import os, signal, time\n"
        "def end(*_): print('ends', flush=True); os._exit(1)\n"
        "signal.signal(signal.SIGTERM, end); print('there', flush=True); time.sleep(60)"
    )
    tell = FollowedOutput.tell_new

    def interrupted(self: FollowedOutput, most: int = 1 << 20) -> None:
        tell(self, most)
        if "there" in capsys.readouterr().err:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(FollowedOutput, "tell_new", interrupted)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fleet_screen.watch_over(FLEET, FleetRun("demo", "s"))
    assert time.monotonic() - began < 30
    (output,) = tmp_path.rglob("s.log")
    assert output.read_text().splitlines() == ["there", "ends"]
    assert "s was ended before its screen opened" in capsys.readouterr().err


def test_what_a_command_says_takes_a_bounded_place(tmp_path: Path) -> None:
    path, other = tmp_path / "s.log", tmp_path / "other.log"
    for each in (path, other):
        each.write_bytes(b"x" * 2000)
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        keep_short(other, 1000)  # is not what this process writes to
        keep_short(path, 5000)
        assert path.stat().st_size == 2000
        keep_short(path, 1000)
        os.write(2, b"later\n")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert path.read_bytes() == b"later\n"
    assert other.stat().st_size == 2000


def test_the_oldest_of_many_outputs_go(tmp_path: Path) -> None:
    for number in range(fleet_screen.MOST_OUTPUTS + 5):
        path = tmp_path / f"s-{number}.log"
        fleet_screen._opened(path).close()
        os.utime(path, (number, number))
    left = sorted(int(path.stem[2:]) for path in tmp_path.iterdir())
    assert left == list(range(5, fleet_screen.MOST_OUTPUTS + 5))


def test_each_host_is_told_once_as_it_comes_up() -> None:
    said = list[str]()

    def standing(*states: HostState) -> FleetStanding:
        hosts = [HostStanding(n, s, "no route") for n, s in zip("ab", states, strict=True)]
        return FleetStanding(FLEET, 1, "", Secrets("", ""), tuple(hosts))

    starting = set[str]()
    for states in (("starting", "starting"), ("up", "starting"), ("up", "starting"),
                   ("up", "lost"), ("up", "lost")):  # fmt: skip
        starting = _tell_started(standing(*states), starting, said.append)  # type: ignore[arg-type]
    assert said == ["a is up", "b did not come up, and is tried again: no route"]
    assert _tell_started(standing("up", "up"), set(), said.append) == set()
    assert len(said) == 2
