"""One server for tests that leave nothing behind, and a server of their own for the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driving import Workbench, a_workbench
from ssh_door import Door, open_door


@pytest.fixture(scope="module")
def shared_door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with a_workbench(tmp_path_factory.mktemp("ssh")) as workbench, open_door(workbench) as door:
        yield door


@pytest.fixture
def door(workbench: Workbench) -> Iterator[Door]:
    with open_door(workbench) as made:
        yield made
