"""Ctrl-C at the command of a campaign over a fleet: once, again, while points are planned."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, signal, sys
from contextlib import asynccontextmanager
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in what a script starts
from workbench.cli import context, lab_fleet, main
from workbench.domain.fleets import FleetRun
from workbench.domain.fleet_requests import EndFleetSession
from workbench.fleet import fleet_runs

class Engine:
    async def ask(self, request):
        if isinstance(request, EndFleetSession):
            print(request.finished.outcome, flush=True)
    @asynccontextmanager
    async def follow(self, session):
        await asyncio.Event().wait()
        yield
    async def close(self):
        pass

async def client():
    return Engine()

MEASURED

context.started_client, fleet_runs._measured = client, measured
import workbench.cli.app as app
from pathlib import Path
asked = FleetRun("demo", "p2", named="demo", fleet_options=("--fleet", "hosts.yaml"))
app.app = lambda: lab_fleet.run_over(Path("hosts.yaml"), asked)
main()
"""


WAITING = """
async def measured(*_):
    try:
        print("measuring", flush=True)
        await asyncio.Event().wait()
    finally:
        print("ending", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
"""

PLANNING = """
import threading
from types import SimpleNamespace
from workbench.fleet.central_planning import CentralPlanning
class Endless(CentralPlanning):
    def _next(self):
        print("planning", flush=True)
        threading.Event().wait()
async def round_(_):
    return SimpleNamespace(gathered={}, passed={})
async def measured(*_):
    plan = Endless(SimpleNamespace(kpi="p95", targets=()), 1, (), {}, print)
    await plan.run({}, round_)
"""


def started(place: Path, measured: str) -> subprocess.Popen[str]:
    """The command in a folder of its own, with what takes the place of measuring."""
    (place / "hosts.yaml").write_text("kind: hosts\nhosts: {alpha: {kind: simulated}}\n")
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("MEASURED", measured)],
        stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=place,
    )  # fmt: skip


def test_it_is_stopped_with_one_sentence_and_no_trace(tmp_path: Path) -> None:
    """However often it is pressed."""
    with started(tmp_path, WAITING) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "measuring\n"
            running.send_signal(signal.SIGINT)
            assert running.stdout.readline() == "ending\n"
            for _ in range(3):
                running.send_signal(signal.SIGINT)
            out, err = running.communicate("\n", timeout=60)
        finally:
            running.kill()
    assert (running.returncode, out) == (130, "stopped\n"), err
    told_once(err)


def test_who_stops_while_points_are_planned_does_not_wait_for_them(tmp_path: Path) -> None:
    with started(tmp_path, PLANNING) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "planning\n"
            running.send_signal(signal.SIGINT)
            out, err = running.communicate("", timeout=60)
        finally:
            running.kill()
    assert (running.returncode, out) == (130, "stopped\n"), err
    told_once(err)


def told_once(err: str) -> None:
    """One sentence says that it was stopped, and how it goes on."""
    told = " ".join(err.split())
    assert "p2: was stopped by " in told
    assert "`workbench run demo --fleet hosts.yaml --session p2`" in told
    assert told.count("Stopping: ") == 1
    assert "Traceback" not in err
    assert "never retrieved" not in err
