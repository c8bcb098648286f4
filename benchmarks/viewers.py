"""What many viewers cost: the engine by following, and the host by drawing while it measures.

    python benchmarks/viewers.py [--viewers 20] [--seconds 60]

Real screens at 120x40 follow one simulated campaign at the pace of a real lab. First as if nobody
could be disturbed: the engine's CPU with them less that without, and the lag of its loop. Then the
measuring lock of the host is held, as a run of any workspace on a real lab holds it: from then on
the screens share what the engine leaves them.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from run import COMMAND, Sandbox
from terminal import Terminal, cpu_s

from workbench import paths
from workbench.locks import HostLock, own

SETTLING_S = 15.0
"""After the last screen has come up, and after the share has changed."""


def measure(viewers: int, seconds: float) -> dict[str, float]:
    """Shares of a core in percent, the lag in milliseconds."""
    sandbox = Sandbox()
    run = subprocess.Popen(
        [COMMAND, "run", "demo", "--lab", "sim", "--session", "s", "--headless", "--pace", "1"],
        env=sandbox.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    screens: list[Terminal] = []
    try:
        engine = _engine(sandbox)
        _watch(screens, SETTLING_S)
        alone = _engine_share(engine, screens, seconds)  # with what the campaign itself costs
        for _ in range(viewers):
            screens.append(Terminal(sandbox))
            screens[-1].open_running()
            _watch(screens, 1.0)
        _watch(screens, SETTLING_S)
        with_all = _engine_share(engine, screens, seconds)
        lag_ms = _status(sandbox)["loop_lag_p99_ms"]
        drawing = _share(screens, seconds)
        with _measuring(sandbox):
            _watch(screens, SETTLING_S)
            sharing = _share(screens, seconds)
        return {
            "engine": 100 * (with_all - alone),
            "engine_alone": 100 * alone,
            "lag_ms": float(lag_ms),
            "screens": 100 * drawing,
            "screens_while_measuring": 100 * sharing,
            "memory_mb": max(screen.memory_mb() for screen in screens),
        }
    finally:
        for screen in screens:
            screen.close()
        run.terminate()
        run.wait()
        sandbox.close()


@contextmanager
def _measuring(sandbox: Sandbox) -> Iterator[None]:
    """As if some workspace measured on this host."""
    os.environ["XDG_RUNTIME_DIR"] = sandbox.environment["XDG_RUNTIME_DIR"]
    lock = HostLock(paths.measuring_lock())
    if not lock.take(own(sandbox.root, "as if")):
        raise SystemExit(f"{lock.path} is held")
    try:
        yield
    finally:
        lock.free()


def _status(sandbox: Sandbox) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(sandbox.run("engine", "status", "--json"))
    return status


def _engine(sandbox: Sandbox) -> int:
    """Its process, once the campaign runs."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            status = _status(sandbox)
        except subprocess.CalledProcessError:
            time.sleep(0.5)
            continue
        if status["running"] == "s":
            return int(status["pid"])
        time.sleep(0.5)
    raise SystemExit("the campaign never started")


def _watch(screens: list[Terminal], seconds: float) -> None:
    """Read what they draw, so that no terminal is full."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if not screens:
            time.sleep(left)
        for ready in select.select(screens, [], [], left)[0] if screens else ():
            os.read(ready.fileno(), 1 << 16)


def _engine_share(engine: int, screens: list[Terminal], seconds: float) -> float:
    before, begin = cpu_s(engine), time.monotonic()
    _watch(screens, seconds)
    return (cpu_s(engine) - before) / (time.monotonic() - begin)


def _share(screens: list[Terminal], seconds: float) -> float:
    """Cores that all screens together take."""
    before, begin = sum(screen.cpu_s() for screen in screens), time.monotonic()
    _watch(screens, seconds)
    spent_s = sum(screen.cpu_s() for screen in screens) - before
    return spent_s / (time.monotonic() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    print(json.dumps(measure(given.viewers, given.seconds)))


if __name__ == "__main__":
    main()
