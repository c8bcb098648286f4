"""What cuts a network in the tests of a fleet: both ways, for one process, and back again."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from network_cuts import NetworkCuts, control_groups

WAITS_S = 20.0
ECHO = """
import socket, sys
input()  # until it is grouped
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    while text := connection.recv(64):
        connection.sendall(text)
"""

pytestmark = [
    pytest.mark.needs("nft"),
    pytest.mark.skipif(control_groups() is None, reason="no control groups of version 2 to write"),
]


@contextmanager
def echoing(port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", ECHO, str(port)], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def answers(connection: socket.socket, text: bytes, within_s: float) -> bool:
    connection.settimeout(within_s)
    connection.sendall(text)
    try:
        return connection.recv(64) == text
    except TimeoutError:
        return False


def test_a_cut_network_is_silent_and_comes_back() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(WAITS_S)
        with (
            echoing(server.getsockname()[1]) as process,
            NetworkCuts(lambda: [process.pid]) as cuts,
        ):
            deadline = time.monotonic() + WAITS_S
            while process.pid not in cuts.grouped:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            connection, _ = server.accept()
            with connection:
                assert answers(connection, b"before", WAITS_S)
                assert cuts.cut(process.pid)
                assert not answers(connection, b"meanwhile", 1.0)
                cuts.mend(process.pid)
                connection.settimeout(WAITS_S)
                assert connection.recv(64) == b"meanwhile"  # sent again by TCP: nothing was reset
    assert not list(cuts.root.glob(f"{cuts.prefix}-*"))
