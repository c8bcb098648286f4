"""What SLAs ask, and the sentence for every one that cannot be judged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from sla.foretold import at_least, p95, profiled

from workbench.domain.errors import (
    WRONG_USE,
    ConfidenceRefused,
    KpiUnknown,
    OutsideProfile,
    SlaContradiction,
    SlaError,
    SlaIncomplete,
)
from workbench.domain.parameters import Configuration, Sla
from workbench.sla.profiled import Profiled
from workbench.sla.sla_query import asked

KPIS = ("p95_ms", "throughput_rps", "loss_pct")


def test_one_question_of_several_slas_fills_in_what_is_known() -> None:
    question = asked([p95(200.0), p95(150.0, None), at_least(9.0)], profiled(), KPIS)
    assert question.wl == 10.0
    assert question.workload == {"filesize_bytes": 1e4}
    assert [(sla.kpi, sla.limit) for sla in question.limits] == [
        ("p95_ms", 150.0),
        ("throughput_rps", 9.0),
    ]
    assert len(question.slas) == 3


ceiling = profiled(ceilings={"p95_ms": 1000.0})
several = Profiled.of(
    [(Configuration({"a.vcpu": 1.0}, {"filesize_bytes": size}), 10.0) for size in (1e4, 1e6)],
    "rate",
)
rate = Profiled.of([(Configuration({"a.vcpu": 1.0}, {}), wl) for wl in (1.0, 900.0)], "rate")


@pytest.mark.parametrize(
    ("slas", "known", "error", "sentence"),
    [
        ([], profiled(), SlaIncomplete, "no SLA is given"),
        (
            [p95(200.0, None)],
            profiled(),
            SlaIncomplete,
            r"p95_ms<=200: does not say the load .*@ c",
        ),
        (
            [p95(200.0)],
            several,
            SlaIncomplete,
            "does not say filesize, .* at 10kB, 1MB. Add it, as filesize=10kB",
        ),
        (
            [Sla("p99_ms", 5.0, "<=", 10.0)],
            profiled(),
            KpiUnknown,
            "p99_ms, which was not profiled",
        ),
        ([Sla("loss_pct", 0.1, "<=", 10.0)], profiled(), KpiUnknown, "from zero only above 0.1"),
        ([p95(1000.0)], ceiling, KpiUnknown, "tells nothing apart from 1000 on"),
        ([p95(200.0), p95(300.0, 20.0)], profiled(), SlaContradiction, "concurrent=10 and .*=20"),
        ([p95(20.0), at_least(30.0, kpi="p95_ms")], profiled(), SlaContradiction, "exclude"),
        (
            [p95(20.0, filesize_bytes=1e4), p95(30.0, filesize_bytes=2e4)],
            profiled(),
            SlaContradiction,
            "different filesize_bytes",
        ),
        ([at_least(400.0, 300.0)], rate, SlaContradiction, "400, but only 300 are offered"),
        (
            [p95(200.0, 10.5)],
            profiled(integer=True),
            OutsideProfile,
            r"a load of 10\.5 clients is no whole number",
        ),
        (
            [p95(200.0, 101.0)],
            profiled(),
            OutsideProfile,
            "a load of 101 clients lies .* is proxy at 1 to 100 clients",
        ),
        ([p95(20.0, filesize_bytes=1e6)], several, OutsideProfile, None),
        (
            [p95(20.0, filesize_bytes=1e7)],
            several,
            OutsideProfile,
            "filesize=10MB lies .* profiled: a at 10kB to 1MB. Ask .* put 10MB among the values of "
            "filesize in the campaign",
        ),
        (
            [p95(20.0, flows=4.0)],
            profiled(),
            OutsideProfile,
            "flows was not set in .*Leave flows out",
        ),
    ],
)
def test_an_sla_that_cannot_be_judged_gets_a_sentence(
    slas: Sequence[Sla], known: Profiled, error: type[SlaError], sentence: str | None
) -> None:
    if sentence is None:
        assert asked(slas, known, KPIS).workload == {"filesize_bytes": 1e6}
        return
    with pytest.raises(error, match=sentence) as refused:
        asked(slas, known, KPIS)
    assert refused.value.exit_code == WRONG_USE
    assert refused.value.remedy


@pytest.mark.parametrize("confidence", [0.5, 1.0, 0.0, 95.0, math.nan])
def test_a_confidence_that_nothing_can_give_is_refused(confidence: float) -> None:
    with pytest.raises(ConfidenceRefused, match=r"must be over 0\.5 and under 1"):
        asked([p95(200.0)], profiled(), KPIS, confidence=confidence)


def test_in_a_closed_loop_throughput_may_exceed_the_number_of_clients() -> None:
    assert asked([at_least(400.0)], profiled(), KPIS).limits[0].limit == 400.0
