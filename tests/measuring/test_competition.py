"""Whether a competitor really competed; and that what it takes is not the host's fault."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.domain.samples import Usage
from workbench.measuring import competition
from workbench.measuring.records import (
    Competition,
    ComponentCounters,
    Counters,
    Drive,
    RequestRecords,
)
from workbench.measuring.validity import without_competitor

NOTHING = np.zeros(0)
WHOLE = NOTHING.astype(np.int64)


def driven(used_s: float, beside: Competition) -> Drive:
    instants = tuple(
        Counters(at_s, {"competitor": ComponentCounters(used_s * at_s / 4.0)}, at_s)
        for at_s in (0.0, 4.0)
    )
    records = RequestRecords(NOTHING, NOTHING, NOTHING, NOTHING, WHOLE, WHOLE)
    return Drive(0.0, 4.0, records, instants, "", "none", 0, {}, {}, competition=beside)


ALL_THE_TIME = Competition("cpu:50", 2, -0.5, 4.1)


def test_who_competed_all_the_time_is_no_finding() -> None:
    assert competition.examine([driven(4.0, ALL_THE_TIME)]) == ()


@pytest.mark.parametrize(
    ("changed", "share", "said"),
    [
        ({"failure": "stress-ng ended with exit code 137: nothing"}, 1.0, "exit code 137"),
        ({"began_s": math.inf, "ended_s": math.inf, "failure": "no image"}, 0.0, "no image"),
        ({"began_s": 1.0}, 0.75, "did not compete all the time"),
        ({"ended_s": 2.0}, 0.5, "did not compete all the time"),
    ],
)
def test_who_did_not_is_named(changed: dict[str, object], share: float, said: str) -> None:
    beside = replace(ALL_THE_TIME, **changed)  # type: ignore[arg-type]
    (finding,) = competition.examine([driven(4.0, ALL_THE_TIME), driven(4.0, beside)])
    assert (finding.reason, finding.figure) == ("competitor_failed", pytest.approx(share))
    assert "cpu:50" in finding.evidence
    assert said in finding.evidence


def test_who_hardly_used_anything_did_not_compete() -> None:
    (finding,) = competition.examine([driven(0.1, ALL_THE_TIME)])
    assert finding.evidence == "competitor cpu:50 used 0.025 cores, and asked for 1.00"
    of_a_disk = replace(ALL_THE_TIME, asked="disk:50")
    assert competition.examine([driven(0.1, of_a_disk)]) == ()


def test_true_begin_and_end_count_from_the_load() -> None:
    drive = driven(4.0, ALL_THE_TIME)
    assert ALL_THE_TIME.standing(drive) == {
        ("competitor", "competitor_began_s", "cpu:50"): -0.5,
        ("competitor", "competitor_ended_s", "cpu:50"): 4.1,
    }


def test_a_host_is_not_blamed_for_what_was_asked_to_compete() -> None:
    used = {"host": Usage(1.9, 0.95), "competitor": Usage(1.0, 0.5)}
    left = without_competitor(used)
    assert (left.cpu_cores, left.cpu_share) == (pytest.approx(0.9), pytest.approx(0.45))
    assert without_competitor({"host": used["host"]}) == used["host"]
