"""From a key to what it paints, while events rain on a session of a million stored samples.

    PYTHONPATH=tests python benchmarks/key_to_paint.py [--rate 1000] [--samples 1000000]
        [--session FILE] [--keys 100]

An engine in a process of its own goes on with the session: every event is stored, folded and sent
as a run's are, so many a second. A real screen at 120x40 follows it, and *next* and *previous* are
pressed: painted is a key when the terminal has the name of the configuration that it leads to. The
rain falls on other configurations, so that no name is painted for another reason.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

from large_session import CURVE_POINTS, LOADS, TARGET, campaign, make
from run import Sandbox
from session_making import measurement
from terminal import Terminal

from workbench import paths
from workbench.domain.campaign import Campaign
from workbench.domain.events import Fact, ModelFitted, PointAsked, RunStarted, SampleTaken
from workbench.domain.profiles import Breakpoint, Curve, FittedModel
from workbench.domain.samples import Measurement
from workbench.engine.process import serving
from workbench.engine.sessions.clock import now
from workbench.tui.text import configuration_name

NAME = "large"
LOOKED_AT = 12
"""Configurations that keys lead through, the first ones; it rains on as many, the last ones."""
TURN_S = 0.05
BETWEEN_S = 0.15


def rain(chosen: Campaign) -> Iterator[tuple[Fact, Measurement | None]]:
    """What a campaign says, over and over: asked, taken, and every fifth time fitted.

    Windows and seconds are left out: no lab makes five hundred samples a second.
    """
    plan = chosen.targets[0]
    low, high = plan.primary.low, plan.primary.high
    curve_at = tuple(low * (high / low) ** (i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS))
    cells = tuple(chosen.configurations(plan))[-LOOKED_AT:]
    number = 0
    while True:
        cell = cells[number % len(cells)]
        wl = low * (high / low) ** (number % LOADS / LOADS)
        yield PointAsked(TARGET, cell, wl, 0, 0.9 * wl, 1.1 * wl, "its turn"), None
        taken = measurement(TARGET, cell, wl, 1_000_000 + number)
        yield SampleTaken(taken.sample), replace(taken, windows=(), series=())
        if number % 5 == 0:
            curve = Curve("p95_ms", "gaussian-process", curve_at, curve_at, curve_at, curve_at)
            found = Breakpoint(TARGET, cell, "capacity", "p95_ms", "found", 500, 450, 560)
            model = FittedModel("gaussian-process", {"length": 0.5}, (), (1.5,))
            yield ModelFitted(TARGET, cell, curve, (found,), model, 0.05), None
        number += 1


async def pour(rate: float, samples: int) -> None:
    """Serve the workspace and publish; a line a second says how many events there were."""
    async with serving(paths.workspace()) as engine:
        channel = await engine.library.revive(NAME)
        await channel.record(RunStarted(True, None))
        print("ready", flush=True)
        facts, loop = rain(campaign(samples)), asyncio.get_running_loop()
        begin, published, told = loop.time(), 0, 0
        while not engine.stopping.is_set():
            due = round((loop.time() - begin) * rate) - published
            made = [next(facts) for _ in range(min(due, round(rate * TURN_S * 2)))]
            # Several in one commit: a lab that says so much does not wait for the disk each time.
            stored = await asyncio.gather(
                *(channel.file.append(fact, at=now(), measurement=taken) for fact, taken in made)
            )
            for event in stored:
                channel._show(event)
            published += len(stored)
            if loop.time() - begin > told:
                told += 1
                print(published / (loop.time() - begin), flush=True)
            # The next turn, not a turn's length from now: what storing took is no pause.
            await asyncio.sleep(TURN_S - (loop.time() - begin) % TURN_S)
        await engine.library.release(channel)


def measure(session: Path | None, samples: int, rate: float, keys: int) -> dict[str, float]:
    sandbox = Sandbox()
    pouring: subprocess.Popen[str] | None = None
    try:
        path = sandbox.root / "sessions" / f"{NAME}.duckdb"
        if session is None:
            asyncio.run(make(path, samples))
        else:
            subprocess.run(["cp", "--reflink=auto", session, path], check=True)
        pouring = subprocess.Popen(
            [sys.executable, __file__, "--pour", "--rate", str(rate), "--samples", str(samples)],
            env=sandbox.environment | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert pouring.stdout is not None
        if pouring.stdout.readline() != "ready\n":
            raise SystemExit("the engine never came")
        os.set_blocking(pouring.stdout.fileno(), False)
        terminal = Terminal(sandbox)
        try:
            figures = _figures(terminal, _names(samples), keys)
        finally:
            terminal.close()
        said = pouring.stdout.read().split()
        return figures | {"events_per_s": float(said[-1])}
    finally:
        if pouring is not None:
            pouring.terminate()
            pouring.wait()
        sandbox.close()


def _names(samples: int) -> list[str]:
    chosen = campaign(samples)
    cells = tuple(chosen.configurations(chosen.targets[0]))[:LOOKED_AT]
    return [configuration_name(chosen, TARGET, cell) for cell in cells]


def _figures(terminal: Terminal, names: list[str], keys: int) -> dict[str, float]:
    terminal.open_running()
    terminal.drain(5)
    for _ in range(2 * LOOKED_AT):  # from what is measured, one of the last, on to the first
        terminal.press("j")
        if names[0] in terminal.text(1.0):
            break
    else:
        raise SystemExit("no key led to the first configuration")
    times, at, step = [], 0, 1
    for _ in range(keys):
        terminal.drain(BETWEEN_S)
        step = -step if not 0 <= at + step < len(names) else step
        at += step
        begin = time.perf_counter()
        terminal.press("j" if step > 0 else "k")
        terminal.until(names[at])
        times.append(1000 * (time.perf_counter() - begin))
    return {
        "paint_ms": median(times),
        "paint_p95_ms": quantiles(times, n=20)[-1],
        "memory_mb": terminal.memory_mb(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--session", type=Path, help="made before, of that many samples")
    parser.add_argument("--pour", action="store_true", help="be the engine")
    given = parser.parse_args()
    if given.pour:
        asyncio.run(pour(given.rate, given.samples))
    else:
        print(json.dumps(measure(given.session, given.samples, given.rate, given.keys)))


if __name__ == "__main__":
    main()
