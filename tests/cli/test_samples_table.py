"""What `workbench samples` prints: of packets what was lost, of requests how long they took."""

from __future__ import annotations

from dataclasses import replace

from session_making import campaign, measurement

from workbench.domain import session_tables
from workbench.domain.samples import Estimate, Sample

CONFIGURATION = campaign().configurations(campaign().targets[0])[0]
REQUESTS = measurement("haproxy", CONFIGURATION, 100.0).sample


def cells(samples: list[Sample]) -> dict[str, str]:
    """The first row by the headings."""
    answer = session_tables.samples(samples)
    return dict(zip(answer.headings, answer.texts[0], strict=True))


def test_requests_show_their_p95_and_rate() -> None:
    shown = cells([REQUESTS])
    p95 = REQUESTS.kpis["p95_ms"]
    assert shown["p95_ms"] == f"{p95.value:.3g} [{p95.low:.3g}, {p95.high:.3g}]"
    assert shown["requests/s"] == "100"
    assert shown["usage"].startswith("haproxy=")
    assert "host" not in shown["usage"]


def test_packets_show_their_loss_rate_and_jitter() -> None:
    kpis = {
        "throughput_pps": Estimate(9_500.0, 9_400.0, 9_600.0),
        "loss_pct": Estimate(5.0, 4.5, 5.5),
        "jitter_ms": Estimate(0.031, 0.03, 0.032),
    }
    packets = replace(REQUESTS, kpis=kpis, load_model="packets", kpi_definition="none")
    shown = cells([packets, replace(packets, kpis={})])
    assert shown["loss_pct"] == "5 [4.5, 5.5]"
    assert (shown["packets/s"], shown["jitter_ms"]) == ("9500", "0.031")
    assert not {"p95_ms", "requests/s"} & shown.keys()
