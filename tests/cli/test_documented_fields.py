"""`docs/cli.md` names every field that `--json` prints: here those of whole classes, unasked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

import pytest
from documented import known

from workbench.cli.chains import COMPARED
from workbench.cli.why import DIAGNOSIS
from workbench.conformance import running
from workbench.domain.diagnoses import Bound, EvidenceRow, Suspect, Verdict
from workbench.domain.errors import Mistake
from workbench.domain.events import Event, Fact, RunFinished
from workbench.domain.lab import Check, HostMeasured, HostNoise
from workbench.domain.messages import Compared, EngineStatus
from workbench.domain.profiles import Breakpoint, Difference, ModelScore
from workbench.domain.sessions import Plan, PlannedConfiguration, SamplerCost, SessionSummary


@pytest.mark.parametrize(
    ("heading", "kinds", "besides"),
    [
        ("`--json`", (RunFinished, Breakpoint), [kind.__name__ for kind in get_args(Fact)]),
        ("`plan`", (Plan, PlannedConfiguration, SamplerCost), ()),
        ("`chains`", (), ("name", "series")),
        ("`ls`, `show`", (SessionSummary,), ()),
        ("`doctor`", (HostMeasured, HostNoise, Check), ()),
        ("`compare`", (Compared, Difference), ()),
        ("`compare --chain`", (), COMPARED),
        ("`why`", (Verdict, EvidenceRow, Bound, Suspect), DIAGNOSIS),
        ("`models`", (ModelScore,), ("version", "influence")),
        (
            "`lint`, `reap`, `conformance`, `engine status`",
            (Mistake, running.CheckResult, EngineStatus),
            (),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_field_is_described(
    heading: str, kinds: Iterable[Any], besides: Iterable[str]
) -> None:
    printed = {field.name for kind in kinds for field in fields(kind)}
    assert sorted((printed | set(besides)) - known(heading)) == []


def test_what_stands_around_an_event_is_described() -> None:
    assert known("`--json`") >= {field.name for field in fields(Event)} - {"fact"} | {"event"}
