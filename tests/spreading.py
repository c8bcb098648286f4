"""Which tests go to which worker, and which of them first."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

SHARING = (
    "acceptance",
    "cli",
    "docker",
    "engine",
    "house",
    "plugins",
    "science",
    "ssh",
    "store",
    "web",
)
"""Rooms in which tests of a file share an engine, a session or what was fitted."""


ALIKE = 'scope="module"'
"""In a file elsewhere: every worker that got one of its tests would make such fixtures."""
REPOSITORY = Path(__file__).parents[1]


@cache
def shares(file: str) -> bool:
    """Whether tests of a file, by its path in node ids, go to one worker."""
    path = REPOSITORY / file
    return Path(file).parent.name in SHARING or (path.is_file() and ALIKE in path.read_text())


REAPING = (
    "attached/test_attached_container.py",
    "docker/test_docker_campaign.py",
    "docker/test_docker_faults.py",
)
"""Files whose tests leave containers behind and have them removed, whoever's they are: at the same
time each would find the other's."""


LONG = (
    "_whole_way",
    "_monkey",
    "truth/",
    "test_stops_and_clocks",
    "test_attached_process",
    "test_remote_process",
    "test_site_metrics_live",
)
"""What files are named by, or their room, whose tests take half a minute and more, or wait for long
by themselves."""


def put_whole_ways_first(items: list[pytest.Item]) -> None:
    """Long tests, then files that go to one worker as a whole, then single tests: what is long
    would leave the other core idle at the end.
    """
    items.sort(key=lambda item: _late(item.nodeid.partition("::")[0]))


def _late(file: str) -> tuple[bool, bool]:
    return not any(long in file for long in LONG), not shares(file)


class ByRoom(LoadScopeScheduling):
    """Single tests are spread over the workers, but where those of a file share something.

    xdist's own `loadgroup` writes groups into node ids, which pytest 9.2 no longer keeps.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.endswith(REAPING):
            return "reaping"
        return file if shares(file) else nodeid

    def _reschedule(self, node: WorkerController) -> None:
        """Units that are done are forgotten, else xdist counts them all after each test."""
        units = self.assigned_work[node]
        for scope in [scope for scope, tests in units.items() if all(tests.values())]:
            del units[scope]
        super()._reschedule(node)
