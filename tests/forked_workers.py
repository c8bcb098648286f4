"""`-n 4`: one process collects the tests, and four that are forked from it run them.

Where every worker collects for itself, as pytest-xdist has it, each spends as much as a hundred
tests on imports and on names of tests that others run, and their reports travel as text.
"""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import signal
import sys
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any, NoReturn

import pytest
from spreading import units

AHEAD = 2
"""Tests that wait at a worker: which of its fixtures end with a test depends on the one after."""
ENDING = ((5.0, signal.SIGINT), (40.0, signal.SIGKILL))
"""Seconds that workers have to end, and what those get that have not."""


def option_of_workers(parser: pytest.Parser) -> None:
    parser.getgroup("workers")._addoption(
        "-n", dest="workers", type=int, default=0, help="processes that run the tests; 0: this one"
    )


def fork_by_option(config: pytest.Config) -> None:
    if config.getoption("workers") > 0 and not config.getoption("usepdb"):
        config.pluginmanager.register(ForkedWorkers(config.getoption("workers")))


@dataclass(eq=False)
class Worker:
    """A process that runs tests, as the one that collected them sees it."""

    pid: int
    link: connection.Connection
    ended: int
    """A descriptor that can be read once it has."""
    given: deque[int] = field(default_factory=deque)
    """What it runs and will run, by number."""
    knows_all: bool = False


class ForkedWorkers:
    """Runs what was collected in that many processes; what they report is as if it ran here."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[Worker] = []
        self._forked = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest itself says so
        self._session = session
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # workers' too
        self._units = deque(units([item.nodeid for item in session.items]))
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        reporter.showfspath = False  # files take turns
        try:
            for _ in range(min(self._count, len(self._units))):
                self._fork()
            while self._units or any(worker.given for worker in self._workers):
                self._listen()
        finally:
            self._end()
        return True

    def _fork(self) -> None:
        ours, theirs = connection.Pipe()
        self._session.config.get_terminal_writer().flush()  # else it is written twice
        self._forked += 1
        with warnings.catch_warnings():
            # Python 3.12 warns of threads: the one there is belongs to an allocator that DuckDB
            # brings, and begins anew by itself.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            for other in (ours, *(worker.link for worker in self._workers)):
                other.close()
            be_worker(self._session, theirs, f"w{self._forked}")
        theirs.close()
        worker = Worker(pid, ours, os.pidfd_open(pid))
        self._workers.append(worker)
        self._give(worker)

    def _give(self, worker: Worker) -> None:
        """Tests, as far as it needs to know more of them."""
        if worker.knows_all:
            return
        with suppress(OSError):  # it has ended, as is seen in a moment
            while self._units and len(worker.given) <= AHEAD:
                unit = self._units.popleft()
                worker.given.extend(unit)
                worker.link.send(unit)
            if not self._units:
                worker.knows_all = True
                worker.link.send(None)

    def _listen(self) -> None:
        """Wait for workers that have run a test or have ended."""
        ends = [end for worker in self._workers for end in (worker.link, worker.ended)]
        ready = connection.wait(ends)
        for worker in list(self._workers):
            if worker.link in ready or worker.ended in ready:
                for told in heard(worker.link):
                    self._report(worker, told)
            if worker.ended in ready:
                self._replace(worker)

    def _report(self, worker: Worker, told: Any) -> None:
        if isinstance(told, str):
            raise RuntimeError(f"a worker broke:\n{told}")
        reports, warned = told
        item = self._session.items[worker.given.popleft()]
        hook = self._session.config.hook
        for warning in warned:
            hook.pytest_warning_recorded.call_historic(kwargs=warning)
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for data in reports:
            report = hook.pytest_report_from_serializable(config=self._session.config, data=data)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)
        self._give(worker)

    def _replace(self, worker: Worker) -> None:
        """One that has ended: the test that it died of has failed, others run what is left."""
        self._workers.remove(worker)
        code = buried(worker)
        if not worker.given:
            return
        lost, *left = worker.given
        if left:
            self._units.appendleft(left)
        if self._units:
            self._fork()
        item = self._session.items[lost]
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", f"its worker ended with {code}", "call"
        )
        self._session.config.hook.pytest_runtest_logreport(report=report)

    def _end(self) -> None:
        """Whoever is in a test may finish it, or else what the test has begun."""
        for worker in self._workers:
            worker.link.close()
        latest = time.monotonic()
        for patience_s, number in ENDING:
            latest += patience_s
            for worker in list(self._workers):
                if connection.wait([worker.ended], max(0.0, latest - time.monotonic())):
                    self._workers.remove(worker)
                    buried(worker)
                else:
                    os.kill(worker.pid, number)
        for worker in self._workers:
            buried(worker)


def heard(link: connection.Connection) -> Iterator[Any]:
    """What has come by now."""
    with suppress(EOFError, OSError):
        while link.poll():
            yield link.recv()


def buried(worker: Worker) -> int:
    """The exit code of one that has ended."""
    _, status = os.waitpid(worker.pid, 0)
    os.close(worker.ended)
    worker.link.close()
    return os.waitstatus_to_exitcode(status)


# ------------------------------------------------------------------------------------ in a worker


class Told:
    """What pytest says of a test, to be sent."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.reports: list[dict[str, Any]] = []
        self.warned: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        data = hook.pytest_report_to_serializable(config=self._config, report=report)
        self.reports.append(data)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str
    ) -> None:
        text = f"{warning_message.category.__name__}: {warning_message.message}"
        told = warnings.WarningMessage(
            Warning(text), Warning, warning_message.filename, warning_message.lineno
        )
        self.warned.append(
            {"warning_message": told, "when": when, "nodeid": nodeid, "location": None}
        )

    def taken(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        taken = self.reports, self.warned
        self.reports, self.warned = [], []
        return taken


class NoTerminal:
    """In place of pytest's reporter: there is one terminal, and it is not a worker's."""

    def __init__(self, writer: Any) -> None:
        self._tw = writer


def be_worker(session: pytest.Session, link: connection.Connection, name: str) -> NoReturn:
    """Run the tests that it is told, and end."""
    atexit._clear()  # what was registered before the fork is for the other process to do
    atexit.register(multiprocessing.util._exit_function)
    try:
        begin(session.config, name)
        run(session, link)
    except BaseException:  # noqa: BLE001 - whatever it is, it is told
        with suppress(OSError):
            link.send(traceback.format_exc())
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def begin(config: pytest.Config, name: str) -> None:
    """Have of one's own what must not be shared after a fork."""
    # Processes that multiprocessing starts would begin by importing pytest.
    vars(sys.modules["__main__"]).pop("__file__", None)
    plugins = config.pluginmanager
    capturing = plugins.getplugin("capturemanager")
    capturing.stop_global_capturing()
    capturing.start_global_capturing()
    capturing.suspend_global_capture()
    reporter = plugins.unregister(name="terminalreporter")
    plugins.register(NoTerminal(reporter._tw), "terminalreporter")
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.mktemp(name, numbered=False)


def run(session: pytest.Session, link: connection.Connection) -> None:
    told = Told(session.config)
    session.config.pluginmanager.register(told)
    told.taken()  # what was said of the collection
    wanted = orders(link)
    try:
        number = next(wanted, None)
        while number is not None and not (session.shouldfail or session.shouldstop):
            after = next(wanted, None)
            item, following = session.items[number], None if after is None else session.items[after]
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            link.send(told.taken())
            number = after
    except (EOFError, ConnectionError, KeyboardInterrupt):
        pass  # nobody waits for more
    finally:
        session._setupstate.teardown_exact(None)


def orders(link: connection.Connection) -> Iterator[int]:
    """Numbers of tests, until there are no more."""
    while (unit := link.recv()) is not None:
        yield from unit
