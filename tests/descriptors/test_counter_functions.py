"""Published tables, taken apart by function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from published_counters import chain_table, experiments

from workbench.descriptors.counter_functions import files_with, read_by_function
from workbench.domain.errors import UsageError


def test_columns_of_a_chain_become_rows_of_its_functions(tmp_path: Path) -> None:
    file = chain_table(tmp_path / "linear.csv", ("bridge", "payload_scan"), 12)
    found = read_by_function([file], "output_rate", "payload_scan")
    assert list(found) == ["bridge", "payload_scan"]
    bridge, scan = found.values()
    assert set(bridge.features) == set(scan.features) == {"instructions", "LLC-loads"}
    np.testing.assert_array_equal(bridge.y, scan.y)
    np.testing.assert_array_equal(bridge.groups, scan.groups)
    assert not np.array_equal(bridge.x, scan.x)


def test_files_with_other_columns_are_other_experiments(tmp_path: Path) -> None:
    alone = experiments(tmp_path, 3, 10)
    file = chain_table(tmp_path / "router.csv", ("router",), 10)
    found = read_by_function([*alone, file], "output_rate", "router")
    assert set(found) == {"bridge", "router"}
    assert set(found["bridge"].features) == {"instructions", "LLC-loads"}, "the router has no more"
    assert (found["bridge"].group_count, found["router"].group_count) == (3, 1)
    assert not np.isin(found["router"].groups, found["bridge"].groups).any()
    assert files_with([*alone, file], "output_rate", "router") == [file]


def test_a_function_without_columns_is_named_beside_those_that_have_some(tmp_path: Path) -> None:
    files = experiments(tmp_path, 2, 5)
    with pytest.raises(UsageError, match="no file has columns rate_EVENT; they begin with bridge"):
        files_with(files, "output_rate", "rate")
