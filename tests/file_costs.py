"""What tests and their files cost in CPU time; a file that costs too much fails the run.

CPU time of the tests' process and of all that it started: unlike the time on the wall it depends
little on who else uses the host, and what it does depend on that is measured beside it
(`slowness_s`). Files that wait without working are among the ten slowest tests that every run
prints.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from forked_commands import forker

MOST_S = 30.0
"""CPU seconds of one file; what needs more belongs into `make accept`, with a small one left."""
MOST_LAB_S = 45.0
"""The same of a file that drives a real lab: an engine that reads counters for minutes costs by the
clock (the whole way: 28 to 32 s)."""
LAB = "docker/"
MOST_SHARE = 0.04
"""Of the whole run: a slow or crowded host makes all files cost more, and none of them too much."""
SLOWNESS_S = 0.0145
"""CPU seconds of `slowness_s` on a core whose caches and threads nobody shares (EPYC, Python 3.11);
where neighbours of a virtual machine do, the same work has cost 1.6 to 3 times as much."""
LOOKED_AFTER = 100
"""Tests after which it is looked again how slow the host is."""
SHOWN = 40
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class FileCosts:
    """Adds up over all workers; `limited` where too much is a failure; so many of the `costliest`
    tests are shown."""

    def __init__(self, *, limited: bool, costliest: int = SHOWN) -> None:
        self._limited = limited
        self._costliest = costliest
        self._told_s: float | None = None
        self.cpu_s: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self._reports = 0
        self._slowness_s: list[float] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        if self._told_s is None:  # else that of the test before, with what was done in between
            self._told_s = tree_cpu_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: Any = yield
        if call.when == "teardown":  # fixtures of the module are gone, too
            before, self._told_s = self._told_s or 0.0, tree_cpu_s()
            report.cpu_s = max(0.0, self._told_s - before)  # crosses from a worker
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cpu_s = getattr(report, "cpu_s", 0.0)
        self.cpu_s[report.nodeid.partition("::")[0]] += cpu_s
        self.tests[report.nodeid] += cpu_s
        if report.when == "teardown":
            if self._limited and self._reports % LOOKED_AFTER == 0:
                self._slowness_s.append(slowness_s())
            self._reports += 1

    @property
    def slowness(self) -> float:
        """How many times the usual CPU time work takes on this host now; never below 1."""
        return max(1.0, median(self._slowness_s) / SLOWNESS_S) if self._slowness_s else 1.0

    def most_s(self, file: str) -> float:
        """CPU seconds that a file may cost."""
        most_s = MOST_LAB_S if LAB in file else MOST_S
        return max(self.slowness * most_s, MOST_SHARE * sum(self.cpu_s.values()))

    def by_folder(self) -> Counter[str]:
        folders: Counter[str] = Counter()
        for file, cpu_s in self.cpu_s.items():
            folders[str(Path(file).parent)] += cpu_s
        return folders

    @property
    def too_costly(self) -> list[str]:
        if not self._limited:
            return []
        return [file for file, cpu_s in self.cpu_s.items() if cpu_s > self.most_s(file)]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        is_worker = hasattr(session.config, "workerinput")
        if self.too_costly and session.exitstatus == pytest.ExitCode.OK and not is_worker:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.cpu_s:
            total = sum(self.cpu_s.values())
            slow = f", on a host {self.slowness:.1f} times slower than usual"
            terminalreporter.section(
                f"costliest files, of {total:.0f} s of CPU{slow if self.slowness > 1.05 else ''}"
            )
            for folder, cpu_s in self.by_folder().most_common():
                terminalreporter.line(f"{cpu_s:6.1f} s {folder}/")
            for file, cpu_s in self.cpu_s.most_common(SHOWN):
                terminalreporter.line(f"{cpu_s:6.1f} s {file}")
            terminalreporter.section("costliest tests, with what they were the first to make")
            for test, cpu_s in self.tests.most_common(self._costliest):
                terminalreporter.line(f"{cpu_s:6.1f} s {test}")
        for file in self.too_costly:
            terminalreporter.line(
                f"FAILED {file} costs {self.cpu_s[file]:.0f} s of CPU, over "
                f"{self.most_s(file):.0f} s: share what its tests make, or move the long ones to "
                "`make accept`.",
                red=True,
            )


def slowness_s() -> float:
    """CPU seconds of a piece of work that is the same everywhere."""
    begin_s, total = time.process_time(), 0
    for number in range(200_000):
        total += number * number % 7
    return time.process_time() - begin_s


def tree_cpu_s() -> float:
    """CPU seconds of this process and of all that it started, as far as they are known."""
    own = os.times()
    total = time.process_time() + own.children_user + own.children_system
    started = set(_descendants(os.getpid()))
    if forker.pid is not None:  # which may be forked elsewhere, for this process
        started |= {forker.pid, *_descendants(forker.pid)}
    return total + sum(map(_cpu_s, started))


def _descendants(pid: int) -> Iterator[int]:
    with suppress(OSError):  # it ended
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - asked for after each test
            yield from _children(f"/proc/{pid}/task/{task}/children")


def _children(path: str) -> Iterator[int]:
    with suppress(OSError):
        with open(path, "rb") as listed:  # noqa: PTH123
            children = list(map(int, listed.read().split()))
        for child in children:
            yield child
            yield from _descendants(child)


def _cpu_s(pid: int) -> float:
    """Of a process and of its children that ended."""
    with suppress(OSError):
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            fields = stat.read().rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) * TICK_S
    return 0.0
