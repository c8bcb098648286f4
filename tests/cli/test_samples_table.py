"""What `workbench samples` prints: of packets what was lost, of requests how long they took."""

from __future__ import annotations

from dataclasses import replace

from session_making import campaign, measurement

from workbench.domain import session_tables
from workbench.domain.configurations import ConfigurationView
from workbench.domain.parameters import Configuration
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


def test_configurations_that_differ_in_a_setting_alone_are_told_apart() -> None:
    given = {"packetsize_bytes": 512.0, "nf.depth": 64.0}
    views = [
        ConfigurationView("nf", Configuration({"nf.vcpu": 0.25}, {**given, "nf.patterns": number}))
        for number in (10.0, 1_000.0)
    ]
    shown = [session_tables.told_apart(view, views) for view in views]
    assert shown == ["nf 0.25 vCPU, nf.patterns=10", "nf 0.25 vCPU, nf.patterns=1000"]
    assert session_tables.told_apart(views[0], views[:1]) == "nf 0.25 vCPU"
