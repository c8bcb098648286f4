"""What iperf3 3.12 wrote of two seconds at 5,000 packets/s, read as counts; its refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.traffic.base import Generator
from workbench.traffic.hey import Hey
from workbench.traffic.iperf3 import Iperf3
from workbench.traffic.oha import Oha
from workbench.traffic.packets import PacketGenerator, PacketOffer

RECORDED = (Path(__file__).parent / "iperf3-udp.json").read_text(encoding="utf-8")
OFFER = PacketOffer("10.0.0.1", 5201, 5000.0, 64, 2)
PACKETS = LoadModel("open", unit="packets")


def test_counts_are_those_of_client_and_server_by_the_half_second() -> None:
    counts = Iperf3().parse_packets(OFFER, RECORDED, begin_s=100.0)
    assert counts.sent.size == 4, "the rest of a millisecond is no interval"
    assert counts.start_s[0] == 100.0
    assert counts.end_s[-1] == pytest.approx(102.0, abs=0.01)
    assert counts.sent.sum() == 9997
    assert counts.numbered.sum() == 9997 - 6, "six came in the rest"
    assert (counts.received == counts.numbered).all()
    assert counts.lost.sum() == 0
    assert counts.planned.sum() == pytest.approx(10_000, rel=1e-3)
    assert (counts.jitter_s > 0).all()
    assert counts.out_of_order == 0


def changed(**server_sum: float) -> str:
    """The recording with other figures of the server in its second interval."""
    report = json.loads(RECORDED)
    report["server_output_json"]["intervals"][1]["sum"].update(server_sum)
    return json.dumps(report)


def test_lost_packets_are_counted_by_their_numbers() -> None:
    output = changed(packets=2500, bytes=2000 * 64, lost_packets=500)
    counts = Iperf3().parse_packets(OFFER, output, 0.0)
    assert (counts.numbered[1], counts.received[1], counts.lost[1]) == (2500, 2000, 500)


def test_where_nothing_arrives_the_client_knows_what_was_sent() -> None:
    counts = Iperf3().parse_packets(OFFER, changed(packets=0, bytes=0, lost_packets=0), 0.0)
    assert counts.received[1] == 0
    assert counts.lost[1] == counts.numbered[1] == counts.sent[1] > 2000


def test_the_probe_tells_whom_the_sink_saw() -> None:
    arrived, address = Iperf3().seen_from(RECORDED)
    assert arrived > 0
    assert address == "192.168.64.2"


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"error": "unable to connect to server"}', "unable to connect to server"),
        ('{"intervals": [], "end": {}}', "did not hand over what it counted"),
        ('{"intervals": [], "end": {}, "server_output_json": {}}', "cannot be read"),
    ],
)
def test_garbage_is_a_sentence(output: str, sentence: str) -> None:
    with pytest.raises(TrafficError, match=sentence):
        Iperf3().parse_packets(OFFER, output, 0.0)


def test_the_offer_is_bits_per_second_of_payload() -> None:
    argv = Iperf3().packet_argv(OFFER)
    assert argv[argv.index("--bitrate") + 1] == str(5000 * 64 * 8)
    assert argv[argv.index("--length") + 1] == "64"
    with pytest.raises(TrafficError, match="8 bytes"):
        Iperf3().packet_argv(PacketOffer("10.0.0.1", 5201, 10.0, 8, 1))


def test_it_refuses_what_it_cannot_measure_and_takes_packets() -> None:
    iperf3 = Iperf3()
    assert iperf3.unable(PACKETS, ("loss_pct", "throughput_pps"), 1e5) is None
    assert "cannot measure requests" in (iperf3.unable(LoadModel("open"), (), 1.0) or "")
    assert "p95_ms" in (iperf3.unable(PACKETS, ("p95_ms",), 1.0) or "")
    poisson = LoadModel("open", arrivals="poisson", unit="packets")
    assert "constant rate" in (iperf3.unable(poisson, (), 1.0) or "")


def test_generators_of_requests_send_no_packets() -> None:
    assert isinstance(Iperf3(), PacketGenerator)
    requests: tuple[Generator, ...] = (Oha(), Hey())
    assert not any(isinstance(each, PacketGenerator) for each in requests)


def test_packets_and_requests_never_share_a_model() -> None:
    keys = {PACKETS.key, LoadModel("open").key, LoadModel("closed").key}
    assert len(keys) == 3
