"""What ITGDec writes, recorded on an idle loopback, and what may become of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.domain.errors import TrafficError, UsageError
from workbench.domain.load_shapes import bursts
from workbench.domain.parameters import LoadModel
from workbench.labs.components.packets import refuse_two_clocks
from workbench.traffic.ditg import (
    FLOW_FILE,
    GAPS_FILE,
    LATE_S,
    SIZES_FILE,
    DItg,
    DItgIcmp,
    DItgRoundTrip,
    DItgTcp,
)
from workbench.traffic.iperf3 import Iperf3
from workbench.traffic.packets import PacketOffer, PairedGenerator
from workbench.traffic.reading import read_pair
from workbench.traffic.spreads import draw

HERE = Path(__file__).parent
FROM_FILE = (HERE / "ditg-gaps-from-file.txt").read_text()
HELD = (HERE / "ditg-held-packets.txt").read_text()
OFFER = PacketOffer("10.0.0.2", 5201, 100.0, 512, 1, shape=bursts(0.5, 0.2))
LINE = (
    "Flow>0001 Seq> {n} Src> 10.0.0.3/35454 Dest> 10.0.0.2/5201 txTime>{tx} rxTime>{rx} Size> 512\n"
)


def log(*packets: tuple[int, str, str]) -> str:
    lines = "".join(LINE.format(n=n, tx=tx, rx=rx) for n, tx, rx in packets)
    return f"{lines}packets {len(packets)}\n"


def test_gaps_from_a_file_hold_no_packet_for_the_pause() -> None:
    held = read_pair(DItg(), OFFER, "packets 63\n", HELD, 100.0)
    ours = read_pair(DItg(), OFFER, "packets 59\n", FROM_FILE, 100.0)
    assert held.delays is not None
    assert ours.delays is not None
    assert held.delays[1].max() > 0.1  # as with `-B`: stamped, then held
    assert ours.delays[1].max() < 0.01
    assert ours.received.sum() == 59
    assert ours.lost.sum() == 0
    assert (np.diff(ours.delays[0]) >= 0).all()
    _, files = DItg().files(OFFER)
    assert not any(b"-B" in content for content in files.values())
    gaps = np.array(files[GAPS_FILE].split(), dtype=float)
    assert (gaps > 90).sum() == 5  # ms: a pause in each period of 200


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "cut off after 0 packets"),
        ("\x00\xff garbage", "cut off after 0 packets"),
        (FROM_FILE[: len(FROM_FILE) // 2], "cut off after"),
        (FROM_FILE.replace("txTime>", "txTime>x", 1), "line 1 is no packet"),
        (FROM_FILE[FROM_FILE.index("\n") + 1 :], "it has 58 of 59 packets"),
        ("packets 0\n", "no packet of D-ITG arrived"),
        (log((1, "9:0:0.5", "9:0:0.4")), "clocks of source and sink are apart"),
    ],
)
def test_a_log_that_is_none_is_a_sentence(text: str, why: str) -> None:
    with pytest.raises(TrafficError, match=why) as said:
        read_pair(DItg(), OFFER, "", text, 100.0)
    assert said.value.remedy


def test_a_log_of_too_many_packets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.traffic.ditg.MOST_PACKETS", 10)
    with pytest.raises(TrafficError, match="more than 10 packets"):
        read_pair(DItg(), OFFER, "", FROM_FILE, 100.0)
    with pytest.raises(TrafficError, match="more than d-itg logs"):
        DItg().files(OFFER)


FLOWS = (HERE / "ditg-four-flows.txt").read_text()


def test_flows_take_turns_and_are_told_of_together() -> None:
    offer = replace(OFFER, rate_pps=400.0, flows=4, shape=None)
    _, files = DItg().files(offer)
    lines = files[FLOW_FILE].decode().splitlines()
    assert [line.split(" -d ")[1].split()[0] for line in lines[1:]] == ["2", "5", "8"]
    assert "-d" not in lines[0]
    assert all("-rp 5201 -T UDP" in line for line in lines)
    gaps = [np.array(files[f"{GAPS_FILE}{end}"].split(), float) for end in ("", ".1", ".2", ".3")]
    assert {one.size for one in gaps} <= {150, 151}, "they last half a second longer"
    assert np.mean(gaps[0][:-1]) == pytest.approx(10.0, rel=0.01), "ms: a quarter of the rate each"
    assert all(line.split(" -t ")[1].startswith("149") for line in lines[1:])
    assert len(files[f"{SIZES_FILE}.3"].split()) in (150, 151)
    counts = read_pair(DItg(), replace(offer, seconds=2), "packets 352\n", FLOWS, 100.0)
    assert counts.delays is not None
    # On a busy host the sink missed four packets, each among the last three of its flow.
    assert (counts.received.sum(), counts.lost.sum(), counts.out_of_order) == (348, 4, 0)
    kept = FLOWS.splitlines()
    del kept[200], kept[100]  # of two flows, which have numbers of their own
    fewer = "\n".join(kept).replace("packets 348", "packets 346") + "\n"
    counts = read_pair(DItg(), replace(offer, seconds=2), "packets 352\n", fewer, 100.0)
    assert (counts.received.sum(), counts.lost.sum()) == (346, 6)


def test_flows_that_it_does_not_send() -> None:
    for flows in (0, 65):
        with pytest.raises(TrafficError, match=f"in {flows} flows"):
            DItg().files(replace(OFFER, flows=flows, rate_pps=1000.0))
    assert DItg().offers("flows")
    assert not any(one().offers("flows") for one in (DItgTcp, DItgIcmp, DItgRoundTrip))
    _, files = DItgIcmp().files(OFFER)
    assert b"-a 10.0.0.2 -T ICMP 8 -m owdm" in files[FLOW_FILE]
    _, files = DItgIcmp().files(replace(OFFER, size_spread="exponential", seconds=5))
    sizes = np.array(files[SIZES_FILE].split(), int)
    assert not (sizes % 2).any(), "of odd ones it gets the checksum wrong"
    assert np.unique(sizes).size > 50


def test_losses_over_midnight() -> None:
    text = log((1, "23:59:59.9", "0:0:0.1"), (3, "0:0:0.1", "0:0:0.2"), (2, "0:0:0.0", "0:0:0.25"))
    counts = read_pair(DItg(), replace(OFFER, shape=None), "packets 5\n", text, 100.0)
    assert counts.delays is not None
    np.testing.assert_allclose(counts.delays[1], [0.2, 0.25, 0.1], atol=1e-6)
    assert counts.lost.sum() == 2  # at the very end, where no number tells of them
    assert counts.out_of_order == 1
    half = read_pair(DItgRoundTrip(), replace(OFFER, shape=None), text, "packets 0\n", 100.0)
    assert half.delays is not None
    np.testing.assert_allclose(half.delays[1], [0.1, 0.125, 0.05], atol=1e-6)


@pytest.mark.parametrize("spread", ["constant", "poisson", "uniform", "normal", "pareto"])
def test_what_is_drawn_has_the_mean_asked_for(spread: str) -> None:
    drawn = draw(spread, 200_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(1.0, abs=0.02)
    assert (drawn >= 0).all()


def test_what_it_refuses() -> None:
    packets = LoadModel("open", unit="packets", arrivals="pareto")
    assert isinstance(DItg(), PairedGenerator)
    assert DItg().unable(packets, ("p95_ms", "loss_pct", "jitter_ms"), 1e3) is None
    assert "no error_pct" in (DItg().unable(packets, ("error_pct",), 1e3) or "")
    assert "no loss_pct" in (DItgTcp().unable(packets, ("loss_pct",), 1e3) or "")
    assert "requests" in (DItg().unable(LoadModel("open"), ("p95_ms",), 1e3) or "")
    sized = LoadModel("open", unit="packets", sizes="pareto")
    assert "no sizes" in (Iperf3().unable(sized, ("loss_pct",), 1e3) or "")
    with pytest.raises(TrafficError, match="payload of 16"):
        DItg().files(replace(OFFER, size_bytes=16))


def test_delays_between_two_hosts_are_refused_unless_half_of_the_way_is_asked_for() -> None:
    here = SimpleNamespace(probe=object(), place="container source")
    there = SimpleNamespace(probe=None, place="container sink")
    with pytest.raises(UsageError, match="different hosts") as said:
        refuse_two_clocks(DItg(), here, there)  # type: ignore[arg-type]
    assert "d-itg-rtt" in said.value.remedy
    refuse_two_clocks(DItg(), here, here)  # type: ignore[arg-type]
    refuse_two_clocks(DItgRoundTrip(), here, there)  # type: ignore[arg-type]


def test_gaps_are_shortened_by_what_the_last_drive_was_late() -> None:
    offer = PacketOffer("10.0.0.2", 5201, 250.0, 512, 1)
    generator, late_s = DItg(), 200e-6

    def driven(offer: PacketOffer, late_s: float, stall_s: float = 0.0) -> float:
        """Packets that left in a second, with each gap so much longer than in the file."""
        gaps_ms = np.array(generator.files(offer)[1][GAPS_FILE].split(), dtype=float)[:-1]
        gaps_ms[50] += 1e3 * stall_s
        sent_s = np.append(0.0, np.cumsum(1e-3 * gaps_ms + late_s))
        sent_s = sent_s[sent_s < 1.0]
        times = [
            (n, f"10:00:{t:09.6f}", f"10:00:{t + 1e-4:09.6f}") for n, t in enumerate(sent_s, 1)
        ]
        counts = read_pair(generator, offer, f"packets {len(times)}\n", log(*times), 0.0)
        return float(counts.sent.sum())

    assert driven(offer, late_s) < 0.99 * 250
    assert generator.again
    assert generator.late_s == pytest.approx(late_s, rel=0.02)
    assert driven(offer, late_s) == 250
    assert not generator.again
    assert driven(offer, late_s, stall_s=0.2) < 0.9 * 250  # which the next drive does not make up
    assert not generator.again
    assert generator.late_s == pytest.approx(late_s, rel=0.02)
    fast = replace(offer, rate_pps=8000.0)  # more than it can send, whatever its gaps
    assert max(driven(fast, late_s), driven(fast, late_s)) < 0.7 * 8000
    assert driven(offer, late_s) == 250
    generator = DItgTcp()
    assert driven(offer, 4e-3) < 0.6 * 250  # held back by the path
    assert (generator.again, generator.late_s) == (False, LATE_S)
