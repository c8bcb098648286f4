"""Figures that no request may hold: the link refuses what the command line refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from workbench.domain.errors import UsageError
from workbench.domain.function_watches import ReportLook, WatchedFunction
from workbench.domain.limits import check_request, confidence_of
from workbench.domain.messages import (
    GenerateChains,
    ImportBundle,
    ListEvents,
    ListSamples,
    PlanCampaign,
    ResumeSession,
    RunCampaign,
    ViewSession,
)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (RunCampaign("demo", seed=-1), "seed: -1 is not a seed"),
        (RunCampaign("demo", pace=-1.0), "pace: -1 is not a pace"),
        (RunCampaign("demo", pace=0.0), "pace: 0 is not a pace"),
        (RunCampaign("demo", pace=math.nan), "pace: nan is not a pace"),
        (RunCampaign("demo", budget_s=-1.0), "--budget: -1 is not a time"),
        (RunCampaign("demo", budget_s=0.0), "--budget: is no time at all"),
        (RunCampaign("demo", budget_s=math.inf), "--budget: is more than a century"),
        (ResumeSession("s", pace=-1.0), "pace: -1 is not a pace"),
        (GenerateChains("a > b", limit=-1), "limit: -1 is not a limit"),
        (PlanCampaign("demo", most_hosts=5000), "--hosts: 5000 is not a number of hosts"),
        (ListSamples("s", limit=-1), "limit: -1 is not a limit"),
        (ListSamples("s", offset=-1), "offset: -1 is not an offset"),
        (ListEvents("s", after=-1), "after: -1 is not an event's number"),
        (ViewSession("s" * 5000), "session: 'sss.*' has 5000 letters"),
        (RunCampaign("c" * 5000), "campaign: 'ccc.*' has 5000 letters"),
        (ImportBundle("p" * 5000), "path: 'ppp.*' has 5000 letters"),
    ],
)
def test_what_a_request_cannot_hold_is_a_sentence(request_: Any, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_request(request_)
    assert refused.match(says.split(": ", 1)[1])
    assert refused.value.where == says.split(": ")[0]


@pytest.mark.parametrize("limit", [0.5, 0.0, -3.0])
def test_the_limit_of_an_sla_that_a_request_tells_of_is_no_page(limit: float) -> None:
    """A watch of `p95<=0.5ms` or `loss<=0.5%` was refused, and never seen on a screen."""
    watched = WatchedFunction("s", "haproxy", "p95_ms", "container web", 7, "p95<=0.5ms", limit)
    check_request(ReportLook(watched, None))


def test_what_it_can_hold_passes() -> None:
    check_request(RunCampaign("demo", seed=0, budget_s=0.5, pace=0.01, session="s" * 64))
    check_request(ListSamples("s", offset=0, limit=1))


@pytest.mark.parametrize("written", ["99", "99 %", "99%", "0.99", "0,99", " 99 "])
def test_a_confidence_is_a_share_however_it_is_written(written: str) -> None:
    assert confidence_of(written) == pytest.approx(0.99)


@pytest.mark.parametrize("written", ["sure", "nan", "inf %", ""])
def test_what_is_no_number_is_no_confidence(written: str) -> None:
    with pytest.raises(ValueError):
        confidence_of(written)
