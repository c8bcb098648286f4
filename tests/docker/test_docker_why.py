"""Why a chain is slow, on real containers: one order waits for acknowledgements, the other not.

What is asserted of the acknowledgements holds however busy the host is; its speed is not.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import OpenLab, configuration, ignore, point, target
from tracefs_mounting import mounted

from workbench.diagnosis.explaining import Known, diagnose
from workbench.diagnosis.readings import Reading, read
from workbench.diagnosis.rules import RULES
from workbench.domain.campaign import WindowPlan
from workbench.domain.observations import OBSERVABLES
from workbench.domain.parameters import LoadModel
from workbench.domain.topology import Target
from workbench.measuring.judging import Terms, judge
from workbench.measuring.thread_states import ON_CORE
from workbench.probes import kernel_trace

pytestmark = pytest.mark.docker

OPEN = LoadModel("open", connections=64)
WAITS, DOES_NOT = target("tinyproxy", "haproxy"), target("haproxy", "tinyproxy")
DEAREST = 0.03
"""Of a core: what collecting may cost."""


@pytest.mark.unhurried
async def test_one_order_waits_for_acknowledgements_and_the_other_does_not(
    open_lab: OpenLab,
) -> None:
    lab = await open_lab(OPEN, WAITS, DOES_NOT)

    async def measured(chain: Target) -> Reading:
        chosen = configuration(haproxy=0.5, tinyproxy=0.5)
        await lab.deploy(chain, chosen)
        at = point(chain, chosen, 60.0)
        began = time.time()
        drive = await lab.drive(at, 4.5, ignore)
        terms = Terms(OPEN, WindowPlan(), None, "p95_ms")
        return read(judge([drive], at, terms, started_at=began, lab_s=4.5).measurement)

    slow = await measured(WAITS)
    found = diagnose(Known(WAITS, [slow], {}, {}), slow, RULES)
    causes = {verdict.cause: verdict for verdict in found.verdicts}
    assert causes["delayed acknowledgement"].component == "haproxy", found.sentence
    assert (slow.per_request("haproxy", "delayed_acks") or 0.0) >= 0.5
    assert not found.failed

    fast = await measured(DOES_NOT)
    found = diagnose(Known(DOES_NOT, [fast], {}, {}), fast, RULES)
    assert "delayed acknowledgement" not in {verdict.cause for verdict in found.verdicts}

    for seen in (slow, fast):
        for name in ("haproxy", "tinyproxy", "source", "sink"):
            known = seen.components[name]
            assert {*known.values, *known.absent} <= set(OBSERVABLES)
            for counted in ("cpu_wait_s", "voluntary_switches", "rx_packets"):
                assert (seen.amount(name, counted) or 0.0) > 0.0, (name, counted)
            faults = seen.amount(name, "page_faults")  # one that has settled has none
            assert faults is not None
            assert faults >= 0.0
        opened = seen.per_request("tinyproxy", "connections_opened")
        assert opened == pytest.approx(1.0, abs=0.2), "it closes every connection"
        cost = seen.amount("workbench", "collecting_cores")
        assert cost is not None
        assert 0.0 < cost < DEAREST


@pytest.mark.unhurried
async def test_what_a_functions_threads_did_adds_up_to_its_cpu(
    open_lab: OpenLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = target("haproxy")
    lab = await open_lab(OPEN, own)
    lab._campaign = replace(lab._campaign, evidence="trace")
    chosen = configuration(haproxy=0.5)
    with mounted(tmp_path) as place:
        monkeypatch.setattr(kernel_trace, "PLACES", (place,))
        await lab.deploy(own, chosen)
        at = point(own, chosen, 200.0)
        began = time.time()
        drive = await lab.drive(at, 4.5, ignore)
        assert not list((place / "instances").glob("workbench-*"))
    terms = Terms(OPEN, WindowPlan(), None, "p95_ms")
    seen = read(judge([drive], at, terms, started_at=began, lab_s=4.5).measurement)
    found = diagnose(Known(own, [seen], {}, {}), seen, RULES)
    told = {row.what: row.chained or 0.0 for row in found.rows if row.component == "haproxy"}
    on_core = sum(told.get(f"traced: {state}", 0.0) for state in ON_CORE)
    assert on_core == pytest.approx(told["CPU"], rel=0.7)  # two seconds of four
    assert told["traced: idle"] > told["traced: computing"] > 0.0
    # Six changes are told, the most frequent: of those to and from idle, which tie, one at least.
    changes = {what: share for what, share in told.items() if " > " in what and "idle" in what}
    assert sum(changes.values()) > 0.1
