"""Replay of a session of a million samples, in a real terminal: opening, going somewhere, memory.

    PYTHONPATH=tests python benchmarks/replay_speed.py [--samples 1000000] [--session FILE]

A screen at 120x40 with the list of sessions is up; `R` opens the replay, which counts as open when
its time line says where it is. Then it goes to places all over the session, written as shares of
the way; each counts from enter until the time line shows the sample of that place. The session is
made first (`large_session.py`), or given: that takes minutes and 3 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from pathlib import Path
from statistics import quantiles

from large_session import make
from run import Sandbox
from terminal import Terminal

from workbench.tui.text import number

PLACES = (37, 81, 12, 64, 93, 5, 48, 72, 26, 57, 88, 19, 41, 99, 33, 8, 68, 77, 52, 23)


def measure(session: Path | None, samples: int) -> dict[str, float]:
    sandbox = Sandbox()
    try:
        path = sandbox.root / "sessions" / "large.duckdb"
        if session is None:
            asyncio.run(make(path, samples))
        else:
            os.link(session, path)
        terminal = Terminal(sandbox)
        try:
            return _figures(terminal, samples)
        finally:
            terminal.close()
    finally:
        sandbox.close()


def _figures(terminal: Terminal, samples: int) -> dict[str, float]:
    terminal.until("large")  # the list of sessions: an engine runs
    for keys in ("/", "large", "\r"):  # the recordings that ship are in the list, too
        terminal.drain(2)
        terminal.press(keys)
    terminal.drain(2)
    begin = time.perf_counter()
    terminal.press("R")
    terminal.until(f"of {number(samples)}")
    opened_s = time.perf_counter() - begin
    terminal.press("p")
    terminal.drain(1)
    times = []
    for place in PLACES:
        terminal.press("\x07")  # ^g
        terminal.until("Go to")
        terminal.press(f"{place}%")
        terminal.drain(0.3)
        begin = time.perf_counter()
        terminal.press("\r")
        terminal.until(f"sample {number(samples * place / 100)}")
        times.append(time.perf_counter() - begin)
        terminal.drain(0.3)
    return {
        "open_s": opened_s,
        "seek_ms": 1000 * sorted(times)[len(times) // 2],
        "seek_p95_ms": 1000 * quantiles(times, n=20)[-1],
        "memory_mb": terminal.memory_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--session", type=Path, help="made before, of that many samples")
    given = parser.parse_args()
    print(json.dumps(measure(given.session, given.samples)))


if __name__ == "__main__":
    main()
