"""Of the copies for a passive function: what it missed, and whether the mirror can be believed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.measuring import copies
from workbench.measuring.records import Copies, Drive, RequestRecords

NOTHING = np.zeros(0)
DRIVE = Drive(
    0.0,
    1.0,
    RequestRecords(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING.astype(int), NOTHING.astype(int)),
    (),
    generator="",
    kpi_definition="none",
    connections=0,
    allotted_cores={},
    threads={},
)


def drives(*seen: Copies, name: str = "tap") -> list[Drive]:
    return [replace(DRIVE, copies={name: one}) for one in seen]


def test_none_missed_has_an_upper_end() -> None:
    loss = copies.state(drives(Copies(5_000, 5_000, 5_000), Copies(5_000, 5_000, 5_000)))
    share = loss[copies.CAPTURE_LOSS]
    assert (share.value, share.low) == (0.0, 0.0)
    assert share.high == pytest.approx(100 * 3.7 / 10_000, rel=0.3)


def test_what_was_missed_is_a_share_of_what_was_mirrored() -> None:
    share = copies.state(drives(Copies(1_000, 1_000, 900), Copies(3_000, 3_000, 2_700)))
    estimate = share[copies.CAPTURE_LOSS]
    assert estimate.value == pytest.approx(10.0)
    assert 8 < estimate.low < 10 < estimate.high < 12


def test_the_worst_of_several_functions_is_stated() -> None:
    both = {"tap": Copies(100, 100, 100), "reader": Copies(100, 100, 50)}
    found = copies.state([replace(DRIVE, copies=both)])
    assert found[copies.CAPTURE_LOSS].value == pytest.approx(50.0)


def test_a_function_that_counts_nothing_has_no_such_kpi() -> None:
    assert copies.state(drives(Copies(100, 100, None))) == {}
    assert copies.state([DRIVE]) == {}


def test_a_mirror_that_loses_is_blamed_as_such() -> None:
    (finding,) = copies.examine(drives(Copies(1_000, 990, 990)))
    assert (finding.reason, finding.figure) == ("mirror_lost", pytest.approx(0.01))
    assert "of 1000 packets that were mirrored to tap 990 arrived" in finding.evidence
    assert copies.examine(drives(Copies(10_000, 9_995, 100))) == ()


def test_counts_are_of_what_was_meanwhile() -> None:
    assert Copies(9, 8, 7).since(Copies(4, 4, 4)) == Copies(5, 4, 3)
    assert Copies(9, 8, None).since(Copies(4, 4, 4)).captured is None
