"""The installed command without its imports: a process that has made them forks one per command.

Most of a short command's time goes into imports. `python forked_commands.py DESCRIPTOR NICE` makes
them once and forks whenever a test runs a command; all after the imports is as the console script
has it: a process, an environment, a folder and an interpreter's end of its own. Where tests run in
several workers, `python forked_commands.py DESCRIPTOR` makes the imports once for all of them and
forks such a process for each. Commands whose
start or sudden end is tested, the screens, and everything in `make accept` are the console script
itself.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pickle
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import arbitrary_address
from pathlib import Path
from typing import TextIO

Command = tuple[list[str], dict[str, str], str]
"""Arguments, environment and folder."""
LENGTH = struct.Struct("!I")
STATUS = struct.Struct("!i")
PATH_MAX = 4096
SHARED = "WORKBENCH_SHARED_FORKER"
"""Where workers of one run ask for the process that forks their commands."""
HARDLY_NICE = 1
"""Of engines' workers where no real lab is measured: beside other tests on the same cores one at
nice 19 gets a hundredth of a core, and whoever asked it waits for a minute. Not 0, by which tests
would not know them."""
NOT_PRELOADED = ("workbench.tui", "workbench.serve", "workbench.__main__")
"""What only screens and the SSH door import, and what runs as soon as it is imported."""


def modules() -> list[str]:
    """Every module that a command without a screen, or an engine's worker, may import."""
    import workbench

    (root,) = map(Path, workbench.__path__)
    found = (path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py"))
    names = (".".join(path.parts).removesuffix(".__init__") for path in found)
    return sorted(name for name in names if not name.startswith(NOT_PRELOADED))


def fork_workers(running: Callable[[], None], nice: int) -> None:
    """Engines of this process get workers forked from a process that has made their imports;
    `running` sees that there is one."""
    from workbench.engine.learning import pool

    pool.NICE = nice

    forkserver._forkserver.ensure_running = running  # type: ignore[attr-defined,method-assign]
    pool.START_METHOD = "forkserver"


def know_forkserver(address: str, alive: int) -> None:
    """Where this process asks for workers; who has the end `alive` keeps it running."""
    forkserver._forkserver._forkserver_address = address  # type: ignore[attr-defined]
    forkserver._forkserver._forkserver_alive_fd = alive  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- in the process of the tests


@dataclass
class Started:
    """A command that runs, used as a `subprocess.Popen` of text; its pipes are closed with it."""

    pid: int
    stdout: TextIO
    stderr: TextIO
    _told: socket.socket
    returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """Its number is nobody else's: it was not yet told that it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises `TimeoutError`."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            (status,) = STATUS.unpack(self._told.recv(STATUS.size))
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it still says until it ends; killed after `timeout` seconds with `TimeoutError`."""
        late = threading.Timer(timeout or threading.TIMEOUT_MAX, self.kill)
        late.daemon = True
        late.start()
        with self, ThreadPoolExecutor(1) as reading:
            errors = reading.submit(self.stderr.read)
            said = self.stdout.read(), errors.result()
            self.wait()
        if late.finished.is_set():
            raise TimeoutError(f"it had not ended after {timeout} s; it said {said}")
        late.cancel()
        return said

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self.stdout, self.stderr, self._told):
            end.close()


class Forker:
    """The process that forks, started with the first command; in that environment, or in ours."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.pid: int | None = None
        """Of the process that forks, once there is one."""
        self._once, self._joined = threading.Lock(), False
        self.nice = HARDLY_NICE
        """Of workers; to be set before the first command."""

    def run(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        environment: Mapping[str, str],
        folder: os.PathLike[str],
        timeout_s: float,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with captured output and no input."""
        started = self.start(arguments, environment, folder)
        argv = list(map(os.fspath, arguments))
        with started:
            pipes = {started.stdout: bytearray(), started.stderr: bytearray()}
            deadline = time.monotonic() + timeout_s
            with selectors.DefaultSelector() as selector:
                for pipe in pipes:
                    selector.register(pipe, selectors.EVENT_READ)
                while selector.get_map():
                    ready = selector.select(deadline - time.monotonic())
                    if not ready and time.monotonic() > deadline:
                        os.kill(started.pid, signal.SIGKILL)
                        raise subprocess.TimeoutExpired(argv, timeout_s)
                    for key, _ in ready:
                        read = os.read(key.fd, 65536)
                        pipes[key.fileobj] += read
                        if not read:
                            selector.unregister(key.fileobj)
            code = started.wait()
            output, errors = (bytes(read).decode().replace("\r\n", "\n") for read in pipes.values())
        return subprocess.CompletedProcess(argv, code, output, errors)

    def start(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        environment: Mapping[str, str],
        folder: os.PathLike[str],
    ) -> Started:
        """As `subprocess.Popen` with pipes for its output and no input."""
        argv = list(map(os.fspath, arguments))
        told, telling = socket.socketpair()
        reading, written = [], []
        for _ in ("stdout", "stderr"):
            ours, theirs = os.pipe()
            reading.append(os.fdopen(ours, encoding="utf-8", errors="replace"))
            written.append(theirs)
        self._fork(argv, environment, folder, (*written, telling.fileno()))
        for descriptor in (*written, telling.detach()):
            os.close(descriptor)
        (pid,) = STATUS.unpack(told.recv(STATUS.size))
        return Started(pid, *reading, told)

    def _fork(
        self,
        argv: list[str],
        environment: Mapping[str, str],
        folder: os.PathLike[str],
        descriptors: Sequence[int],
    ) -> None:
        asked = pickle.dumps((argv, dict(environment), os.fspath(folder)))
        begun = self._begun()
        socket.send_fds(begun, [LENGTH.pack(len(asked))], descriptors)
        begun.sendall(asked)

    def _begun(self) -> socket.socket:
        if self._socket is None:
            shared = os.environ.get(SHARED) if self._environment is None else None
            if shared is None:
                self._socket, theirs = socket.socketpair()
                with theirs:
                    at = theirs.fileno()
                    argv = [sys.executable, __file__, str(at), str(self.nice)]
                    self._process = subprocess.Popen(argv, pass_fds=[at], env=self._environment)
                self.pid = self._process.pid
            else:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.connect(shared)
                self._socket.sendall(STATUS.pack(self.nice))
                (self.pid,) = STATUS.unpack(self._socket.recv(STATUS.size))
            atexit.register(self._close)
        return self._socket

    def forking_workers(self) -> None:
        """Workers of this process come from where those of the commands do."""
        with self._once:
            resource_tracker.ensure_running()
            if not self._joined:
                at, descriptors, _, _ = socket.recv_fds(self._begun(), PATH_MAX, 1)
                know_forkserver(at.decode(), *descriptors)
                self._joined = True

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()  # it ends by that
        if self._process is not None:
            self._process.wait()


forker = Forker()


def share_imports() -> None:
    """Workers that this process starts from now on have one process make the imports for all."""
    os.environ[SHARED] = arbitrary_address("AF_UNIX")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.environ[SHARED])
        listener.listen()
        at = listener.fileno()
        argv = [sys.executable, __file__, str(at)]
        sharing = subprocess.Popen(argv, pass_fds=[at], stdin=subprocess.PIPE)
    atexit.register(sharing.communicate)  # it ends with its input


# ---------------------------------------------------------------------- in the process that forks


def preload() -> None:
    """All imports, and what else is the same for all commands."""
    for module in modules():
        importlib.import_module(module)
    build_models()
    build_commands()
    gc.collect()
    gc.freeze()  # what is never collected stays shared


def asked_of(listener: socket.socket) -> tuple[socket.socket, int]:
    """Make the imports once somebody asks and fork for each who does; returns in each fork, with
    the socket of who asked and how nice workers are to be."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    preloaded = False
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:  # the tests are over
            os._exit(0)
        if not preloaded:
            preload()
            preloaded = True
        asking, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            (nice,) = STATUS.unpack(asking.recv(STATUS.size))
            asking.sendall(STATUS.pack(os.getpid()))
            return asking, nice
        asking.close()


def hand_over(asking: socket.socket, nice: int) -> None:
    """To who asks: the process of which engines' workers are forked."""
    fork_workers(
        lambda: None, nice
    )  # it runs, as a child of this process: nobody has to look after it
    resource_tracker.ensure_running()
    address, alive = begin_forkserver(asking)
    know_forkserver(address, alive)
    socket.send_fds(asking, [address.encode()], [alive])


def begin_forkserver(asking: socket.socket) -> tuple[str, int]:
    """multiprocessing's own would make all imports once more."""
    address = arbitrary_address("AF_UNIX")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        dying, alive = os.pipe()
        if os.fork() == 0:
            atexit.unregister(leave)
            os.close(alive)
            asking.close()
            import steady_forkserver  # noqa: F401

            try:
                forkserver.main(listener.detach(), dying, [])
            finally:
                os._exit(0)
        os.close(dying)
    return address, alive


def build_models() -> None:
    """Those of descriptors, which pydantic builds when the first of them is read."""
    from workbench.descriptors.reading import Described

    kinds: list[type[Described]] = [Described]
    while kinds:
        kind = kinds.pop()
        kind.model_rebuild()
        kinds += kind.__subclasses__()


def build_commands() -> None:
    """Those of the command line, which typer builds anew whenever one of them is called."""
    import typer.main

    from workbench.cli.app import app

    built = typer.main.get_command(app)
    typer.main.get_command = lambda _: built  # type: ignore[assignment]


def serve(asking: socket.socket) -> None:
    """Fork for whoever asks until nobody can; returns in each fork, ready to be the command."""
    children: dict[int, int] = {}
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests and for the commands
    with selectors.DefaultSelector() as selector:
        selector.register(asking, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == woken:
                    os.read(woken, 1024)
                    report_ended(children)
                elif not (request := receive(asking)):
                    os._exit(0)
                else:
                    command, descriptors = request
                    pid = os.fork()
                    if pid == 0:
                        signal.set_wakeup_fd(-1)
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        signal.signal(signal.SIGINT, signal.default_int_handler)
                        for descriptor in (woken, waking, asking.detach(), *children.values()):
                            os.close(descriptor)
                        become(*command, *descriptors)
                        return
                    output, errors, telling = descriptors
                    os.close(output)
                    os.close(errors)
                    report(telling, pid)
                    children[pid] = telling


def receive(
    asking: socket.socket,
) -> tuple[tuple[list[str], dict[str, str], str], list[int]] | None:
    """What is asked for, and the descriptors of its output, errors and end."""
    try:
        head, descriptors, _, _ = socket.recv_fds(asking, LENGTH.size, 3)
    except ConnectionResetError:  # who asked left without having asked for a worker
        head = b""
    if not head:
        return None
    (wanted,) = LENGTH.unpack(head)
    asked = bytearray()
    while len(asked) < wanted:
        asked += asking.recv(wanted - len(asked))
    return pickle.loads(asked), descriptors


def report_ended(children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        telling = children.pop(pid)
        report(telling, status)
        os.close(telling)


def report(telling: int, number: int) -> None:
    """To whoever asked; one whose patience ended has left, which is nothing to others."""
    with suppress(BrokenPipeError):
        os.write(telling, STATUS.pack(number))


def become(
    argv: list[str],
    environment: dict[str, str],
    folder: str,
    output: int,
    errors: int,
    telling: int,
) -> None:
    """What a process has of its own, after a fork."""
    os.close(telling)
    for given, standard in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (errors, 2)):
        os.dup2(given, standard)
        os.close(given)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = argv


def run_command() -> None:
    from workbench.cli import main

    global exit_code
    try:
        main()
    except SystemExit as end:
        exit_code = end.code or 0
        raise


exit_code: object = 0


def leave() -> None:
    """End without taking the interpreter apart, which takes longer than most commands."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # the interpreter has an exit code of its own for that
    if isinstance(exit_code, int):
        os._exit(exit_code)


if __name__ == "__main__":
    atexit.register(leave)  # registered first, it is called last
    asked_here = socket.socket(fileno=int(sys.argv[1]))
    if len(sys.argv) > 2:
        preload()
        niceness = int(sys.argv[2])
    else:
        asked_here, niceness = asked_of(asked_here)
    hand_over(asked_here, niceness)
    serve(asked_here)
    run_command()
