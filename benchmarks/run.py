"""Benchmarks of the instrument, each with its target: `make bench`.

    python benchmarks/run.py [--write docs/benchmarks.md] [--repeat 9] [--only start,viewers]

Every figure is a median over repetitions on this machine, which may be busy with other things: a
figure off its target is repeated before it is believed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FOLDER = Path(__file__).parent
COMMAND = Path(sys.executable).parent / "workbench"
FIRST_SCREEN = b"Quit"
"""In the footer of every screen: painted with the first frame."""
LONGEST_S = 60


@dataclass(frozen=True)
class Figure:
    """One measured figure and its target."""

    what: str
    value: float
    target: float
    unit: str
    at_most: bool = True

    @property
    def holds(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target

    def row(self) -> str:
        sign = "<=" if self.at_most else ">="
        verdict = "yes" if self.holds else "**no**"
        target = f"{sign} {self.target:,g} {self.unit}"
        return f"| {self.what} | {self.value:,.3g} {self.unit} | {target} | {verdict} |"


class Sandbox:
    """A workspace and a runtime folder of its own, gone afterwards."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="wb-")
        self.root = Path(self._folder.name)
        (self.root / "sessions").mkdir()
        (self.root / "run").mkdir(mode=0o700)
        self.environment = os.environ | {
            "WORKBENCH_WORKSPACE": str(self.root),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "TERM": "xterm-256color",
        }

    def run(self, *arguments: str) -> str:
        return subprocess.run(
            [COMMAND, *arguments],
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        ).stdout

    def close(self) -> None:
        subprocess.run(
            [COMMAND, "engine", "stop"], env=self.environment, capture_output=True, check=False
        )
        self._folder.cleanup()


def repeated(measure: Callable[[Sandbox], float], times: int) -> float:
    """Median of `times` measurements after one that warms the caches."""
    sandbox = Sandbox()
    try:
        measure(sandbox)
        return median(measure(sandbox) for _ in range(times))
    finally:
        sandbox.close()


def help_s(sandbox: Sandbox) -> float:
    begin = time.perf_counter()
    sandbox.run("--help")
    return time.perf_counter() - begin


def first_screen_s(sandbox: Sandbox) -> float:
    """From the command until the first frame is in the terminal; no engine runs yet."""
    begin = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        termios.tcsetwinsize(0, (24, 80))
        os.execve(COMMAND, [str(COMMAND)], sandbox.environment)
    seen = b""
    try:
        while FIRST_SCREEN not in seen:
            if time.perf_counter() - begin > LONGEST_S or not _readable(terminal):
                raise SystemExit(f"the first screen never came: {seen[-2000:]!r}")
            seen += os.read(terminal, 65536)
        return time.perf_counter() - begin
    finally:
        os.kill(pid, signal.SIGTERM)
        os.close(terminal)
        os.waitpid(pid, 0)
        subprocess.run(
            [COMMAND, "engine", "stop"], env=sandbox.environment, capture_output=True, check=False
        )


def _readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], LONGEST_S)[0])


def loop_lag_ms(sandbox: Sandbox) -> float:
    """Worst p99 lag of the engine's loop that it stated itself while the demo ran."""
    session = f"lag-{time.monotonic_ns()}"
    process = subprocess.Popen(
        [COMMAND, "run", "demo", "--lab", "sim", "--session", session, "--json", "--pace", "60"],
        env=sandbox.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lag = 0.0
    for line in process.stdout:
        event = json.loads(line)
        # The last target's samples are left out: the engine ends with the run.
        if event["event"] == "ConfigurationStarted":
            status = json.loads(sandbox.run("engine", "status", "--json"))
            lag = max(lag, status["loop_lag_p99_ms"])
    process.wait()
    return lag


def demo_s(sandbox: Sandbox) -> float:
    begin = time.perf_counter()
    sandbox.run("run", "demo", "--lab", "sim", "--seed", "7", "--headless", "--json")
    return time.perf_counter() - begin


def figure_of(script: str, *arguments: str) -> float:
    """What another benchmark of this folder measures, as one number."""
    return float(output_of(script, "--figure", *arguments))


def ssh_figures() -> list[Figure]:
    """A screen over SSH, by a real client on loopback."""
    measured = figures_of("ssh_screen.py")
    return [
        Figure("screen over SSH at 120x40, idle", measured["idle"], 4, "KB/s"),
        Figure("screen over SSH at 120x40, live", measured["live"], 40, "KB/s"),
        Figure("memory of a screen's process", measured["memory"], 120, "MB"),
    ]


def figures_of(script: str, *arguments: str | Path) -> dict[str, float]:
    """What another benchmark of this folder measures, by name."""
    figures: dict[str, float] = json.loads(output_of(script, *arguments))
    return figures


def output_of(script: str, *arguments: str | Path) -> str:
    """What another benchmark of this folder prints."""
    return subprocess.run(
        [sys.executable, FOLDER / script, *arguments],
        env=os.environ | {"PYTHONPATH": str(FOLDER.parent / "tests")},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def answer_figures() -> list[Figure]:
    """Seconds until questions about models are answered, each with a target of its own."""
    measured = json.loads(output_of("answers.py", "--json"))
    return [Figure(what, took_s, target, "s") for what, took_s, target in measured]


def large_figures() -> list[Figure]:
    """Screens on a session of a million samples; making it takes minutes and 3 GB of disk."""
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        session = Path(folder) / "large.duckdb"
        subprocess.run(
            [sys.executable, FOLDER / "large_session.py", session],
            env=os.environ | {"PYTHONPATH": str(FOLDER.parent / "tests")},
            check=True,
        )
        replay = figures_of("replay_speed.py", "--session", session)
        live = figures_of("key_to_paint.py", "--session", session)
    rain = f"{live['events_per_s']:,.0f} events/s, 1,000,000 samples"
    return [
        Figure("replay of 1,000,000 samples opens", replay["open_s"], 1.0, "s"),
        Figure("it goes to another place", replay["seek_ms"], 200, "ms"),
        Figure("memory of its screen", replay["memory_mb"], 120, "MB"),
        Figure("events published meanwhile", live["events_per_s"], 950, "/s", at_most=False),
        Figure(f"key to paint, p95 ({rain})", live["paint_p95_ms"], 50, "ms"),
        Figure("memory of its screen", live["memory_mb"], 120, "MB"),
    ]


def viewer_figures() -> list[Figure]:
    """Twenty screens on one campaign."""
    measured = figures_of("viewers.py")
    core = "% of a core"
    return [
        Figure("20 viewers cost the engine", measured["engine"], 10, core),
        Figure("its loop lag p99 with them", measured["lag_ms"], 50, "ms"),
        Figure("all 20 while the host measures", measured["screens_while_measuring"], 10, core),
    ]


def docker_answers() -> bool:
    return subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0


def start_figures(times: int) -> list[Figure]:
    """What a command waits for, and how much the engine writes."""
    return [
        Figure("`workbench --help`", repeated(help_s, times), 0.3, "s"),
        Figure("first screen, no engine running", repeated(first_screen_s, times), 1.0, "s"),
        Figure("engine's loop lag p99 during `demo`", repeated(loop_lag_ms, 1), 50, "ms"),
        Figure("`run demo --lab sim --headless`", repeated(demo_s, 2), 30, "s"),
        Figure("series rows, committed", figure_of("store_speed.py"), 100_000, "/s", at_most=False),
    ]


def memory_figures() -> list[Figure]:
    grown = figure_of("engine_memory.py")
    what = "growth of engine or worker over a simulated week, per day"
    return [Figure(what, grown, 1.0, "MB")]


def own_figures() -> list[Figure]:
    own = 100 * figure_of("own_cpu.py")
    return [Figure("own CPU while a real sample is measured", own, 5.0, "% of a core")]


def parts(times: int) -> dict[str, Callable[[], list[Figure]]]:
    """What can be measured here, by name, in the order of the table."""
    found = {
        "start": lambda: start_figures(times),
        "memory": memory_figures,
        "large": large_figures,
        "viewers": viewer_figures,
        "answers": answer_figures,
    }
    if shutil.which("ssh"):
        found["ssh"] = ssh_figures
    if shutil.which("docker") and docker_answers():
        found["own"] = own_figures
    return found


def measure(chosen: dict[str, Callable[[], list[Figure]]]) -> list[Figure]:
    """All of these, each told as it comes: together they take a quarter of an hour and more."""
    figures: list[Figure] = []
    began = time.monotonic()
    for number, (name, made) in enumerate(chosen.items(), 1):
        minutes = (time.monotonic() - began) / 60
        print(f"{name}, {number} of {len(chosen)}, {minutes:.1f} min so far", file=sys.stderr)
        figures += (new := made())
        print("\n".join(figure.row() for figure in new), file=sys.stderr, flush=True)
    return figures


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="replace the table in this file")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--only", help="some of these, by commas: " + ", ".join(parts(1)))
    chosen = parser.parse_args()
    if chosen.only and chosen.write:
        parser.error("--write replaces the whole table; leave --only out")
    all_parts = parts(chosen.repeat)
    names = chosen.only.split(",") if chosen.only else list(all_parts)
    if unknown := [name for name in names if name not in all_parts]:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(all_parts)}")
    figures = measure({name: all_parts[name] for name in names})
    table = "\n".join(
        [
            "| what | measured (median) | target | holds |",
            "|---|---|---|---|",
            *(figure.row() for figure in figures),
            "",
            f"Machine: {machine()}.",
        ]
    )
    print(table)
    if chosen.write:
        text = chosen.write.read_text()
        head, _, rest = text.partition("<!-- table -->\n")
        _, _, tail = rest.partition("<!-- end -->\n")
        chosen.write.write_text(f"{head}<!-- table -->\n{table}\n<!-- end -->\n{tail}")


if __name__ == "__main__":
    main()
