"""What a screen over SSH costs: bytes on the wire, first paint, memory of its process.

    python benchmarks/ssh_screen.py [--figure idle|live|paint|memory]

A real OpenSSH client at 120x40 on loopback, through a relay that counts the encrypted bytes of
both directions. Idle is the worst of all screens, with a recording open; live is the simulated demo
at 20 times real time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from workbench.tui.commands.catalogue import SCREENS

COMMAND = Path(sys.executable).parent / "workbench"
COLUMNS, ROWS = 120, 40
SECONDS = 20.0
IDLE_S = 8.0
"""Of each screen."""
SETTLING_S = 5.0
"""After the first frame, so that a start is not taken for a rate."""
HOME = b"\x1b[H"
LONGEST_S = 60.0


class Relay:
    """Passes bytes between a client and the server, and counts them."""

    def __init__(self, port: int) -> None:
        self.bytes = 0
        self.port = 0
        self._server_port = port
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._server_port)
        await asyncio.gather(self._pump(reader, outer), self._pump(inner, writer))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while block := await source.read(1 << 16):
                self.bytes += len(block)
                sink.write(block)
                await sink.drain()
        except ConnectionError:
            pass  # one side hung up
        finally:
            sink.close()


class Screen:
    """An ssh client in a pty of ours."""

    def __init__(self, relay: Relay, key: Path) -> None:
        self.begin = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            termios.tcsetwinsize(0, (ROWS, COLUMNS))
            options = [
                *("-F", "/dev/null", "-tt", "-p", str(relay.port), "-i", str(key)),
                *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
                *("-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes"),
            ]
            environment = os.environ | {"TERM": "xterm-256color"}
            os.execvpe("ssh", ["ssh", *options, "127.0.0.1"], environment)
        self._seen = b""

    def until(self, wanted: bytes) -> None:
        deadline = time.monotonic() + LONGEST_S
        while wanted not in self._seen:
            if time.monotonic() > deadline:
                raise SystemExit(f"{wanted!r} never came: {self._seen[-2000:]!r}")
            self.read(0.2)
        self._seen = b""

    def read(self, seconds: float) -> None:
        """Read what comes for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.terminal], [], [], left)[0]:
                self._seen = (self._seen + os.read(self.terminal, 65536))[-100_000:]

    def press(self, key: bytes) -> None:
        os.write(self.terminal, key)

    def leave(self) -> None:
        """Press q, and read until the client has ended."""
        self.press(b"q")
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:  # how a pty says that its other end is closed
            os.waitpid(self.pid, 0)


def screen_rss_mb(server: int) -> float:
    """Resident memory of the screen's process: the server's child that is not the engine."""
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        if b"engine" not in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
            status = Path(f"/proc/{child}/status").read_text()
            return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024
    raise SystemExit("the server has no screen")


def measure() -> dict[str, float]:
    """KB/s idle and live, seconds to the first frame, MB of the screen's process."""
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        root = Path(folder)
        for name in ("sessions", "run"):
            (root / name).mkdir(mode=0o700)
        environment = os.environ | {
            "WORKBENCH_WORKSPACE": str(root),
            "XDG_RUNTIME_DIR": str(root / "run"),
        }
        key, keys = root / "key", root / "keys"
        subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", key], check=True)
        keys.write_text("operator " + key.with_suffix(".pub").read_text())
        server = subprocess.Popen(
            [COMMAND, "serve", "--port", "0", "--authorized-keys", keys],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r"listening at [\d.]+:(\d+)", line)
        if found is None:
            raise SystemExit(line + server.stderr.read())
        try:
            return _measure(Relay(int(found[1])), key, server.pid, environment)
        finally:
            server.terminate()
            server.wait()
            subprocess.run(
                [COMMAND, "engine", "stop"], env=environment, capture_output=True, check=False
            )


def _measure(relay: Relay, key: Path, server: int, environment: dict[str, str]) -> dict[str, float]:
    first = Screen(relay, key)
    first.until(b"Quit")
    first.leave()
    screen = Screen(relay, key)  # an engine runs by now, as it does where people come and go
    screen.until(b"Quit")
    figures = {"paint": time.perf_counter() - screen.begin}
    figures["idle"] = _idle(relay, screen)
    run = subprocess.Popen(
        [COMMAND, "run", "demo", "--lab", "sim", "--session", "s", "--headless", "--pace", "20"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        screen.press(SCREENS[0].key.encode())
        screen.until(b"running")
        screen.press(HOME)  # what changed last stands first
        screen.read(1.0)
        screen.press(b"\r")
        screen.until("●".encode())
        figures["live"] = _rate(relay, screen)
        figures["memory"] = screen_rss_mb(server)
    finally:
        run.terminate()
        run.wait()
    screen.leave()
    return figures


def _idle(relay: Relay, screen: Screen) -> float:
    """KB/s of the screen that says most while nothing happens."""
    rates = {SCREENS[0].name: _rate(relay, screen, IDLE_S)}
    screen.press(b"\r")  # a recording: the list holds nothing else yet
    for entry in SCREENS[1:]:
        screen.press(entry.key.encode())
        rates[entry.name] = _rate(relay, screen, IDLE_S)
    print({name: round(rate, 3) for name, rate in rates.items()}, file=sys.stderr)
    return max(rates.values())


def _rate(relay: Relay, screen: Screen, seconds: float = SECONDS) -> float:
    """KB/s of both directions."""
    screen.read(SETTLING_S)
    before = relay.bytes
    screen.read(seconds)
    return (relay.bytes - before) / seconds / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", choices=("idle", "live", "paint", "memory"))
    chosen = parser.parse_args()
    figures = measure()
    if chosen.figure:
        print(figures[chosen.figure])
    else:
        print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
