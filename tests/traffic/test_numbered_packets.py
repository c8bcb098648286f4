"""Files of numbered packets, and what the counting sink says of them."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.labs.components.hops import Hops, parse_stats
from workbench.traffic import pcap
from workbench.traffic.packets import PacketOffer, PacketPath, PairedGenerator
from workbench.traffic.pcap import FIRST_PORT, IMIX, LARGEST, SMALLEST, numbered
from workbench.traffic.reading import read_pair
from workbench.traffic.tcpreplay import Tcpreplay

PATH = PacketPath("02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", "10.0.0.2")
OFFER = PacketOffer("10.0.0.2", 5201, 1_000.0, 512, 2, (), 3, PATH)
SENT = "Actual: 2000 packets (1108000 bytes) sent in 2.00 seconds\n"


def counted(**other: object) -> str:
    rows = [[500, 500], [500, 490], [500, 500], [480, 480]]
    first = {"version": 1, "begun_s": 100.4, "last_s": 102.3, "every_s": 0.5}
    totals = {"received": 1970, "doubled": 1, "late": 2, "foreign": 0, "highest": 1979}
    return json.dumps({**first, **totals, "rows": rows, **other})


def test_each_packet_has_its_number_its_flow_and_its_size() -> None:
    scapy = pytest.importorskip("scapy.utils")
    content, count = numbered(PATH, 5201, IMIX, 5, 24)
    packets = list(scapy.PcapReader(io.BytesIO(content)))
    assert len(packets) == count == 24
    for number, packet in enumerate(packets):
        payload = bytes(packet["UDP"].payload)
        assert len(payload) == IMIX[number % len(IMIX)]
        assert np.frombuffer(payload[:12], ">u4").tolist() == [pcap.MARK, number, 24]
        assert packet["UDP"].sport == FIRST_PORT + number % 5
        assert (packet["IP"].src, packet["IP"].dst) == ("10.0.0.1", "10.0.0.2")
        again = packet.copy()
        del again["IP"].chksum, again["UDP"].chksum
        again = type(packet)(bytes(again))
        for layer in ("IP", "UDP"):
            assert packet[layer].chksum == again[layer].chksum
    sizes = [len(packet) for packet in packets]
    assert sorted(set(sizes)) == [64, 594, 1514]
    assert [sizes[:12].count(size) for size in (64, 594, 1514)] == [7, 4, 1]


@pytest.mark.parametrize(
    ("sizes", "flows", "sentence"),
    [
        ((LARGEST + 1,), 1, "frames have 64 to 1514"),
        ((SMALLEST - 1,), 1, "frames have 64 to 1514"),
        ((512,), 10_001, "10001 flows cannot be made"),
        ((512,), 0, "0 flows cannot be made"),
    ],
)
def test_what_no_file_can_hold_is_a_sentence(
    sizes: tuple[int, ...], flows: int, sentence: str
) -> None:
    with pytest.raises(TrafficError, match=sentence):
        numbered(PATH, 5201, sizes, flows, 10)


def test_a_file_is_bounded() -> None:
    pytest.importorskip("scapy")
    content, count = numbered(PATH, 5201, (LARGEST,), 1, 10_000_000)
    assert count < 65_536
    assert len(content) <= pcap.MOST_BYTES


def test_counts_are_those_of_the_sink() -> None:
    assert isinstance(Tcpreplay(), PairedGenerator)
    counts = read_pair(Tcpreplay(), OFFER, SENT, counted(), 100.0)
    assert counts.start_s[0] == 100.4, "on one host both clocks are the same"
    assert counts.lost.tolist() == [0, 10, 0, 0]
    assert (counts.exact, counts.duplicates, counts.out_of_order) == ((2000, 1970), 1, 2)
    assert counts.unaccounted is None, "nobody has asked the sink's socket yet"
    elsewhere = read_pair(Tcpreplay(), OFFER, SENT, counted(begun_s=7.0), 100.0)
    assert elsewhere.start_s[0] == 100.0


def test_what_stops_arriving_is_lost() -> None:
    counts = read_pair(Tcpreplay(), OFFER, SENT, counted(rows=[[500, 500]]), 100.0)
    assert counts.numbered.tolist() == [500, 500, 500, 500]
    assert counts.lost.tolist() == [0, 500, 500, 500]


@pytest.mark.parametrize(
    ("sent", "far", "sentence"),
    [
        ("Segmentation fault", counted(), "does not say what it sent"),
        (SENT, "", "have no JSON"),
        (SENT, '{"received": 3}', "have no begun_s, no doubled"),
        (SENT, counted(rows=[[1, -5]]), "is no number of packets"),
        (SENT, counted(rows="many"), "what tcpreplay left cannot be read"),
    ],
)
def test_what_breaks_off_is_a_sentence(sent: str, far: str, sentence: str) -> None:
    with pytest.raises(TrafficError, match=sentence):
        read_pair(Tcpreplay(), OFFER, sent, far, 100.0)


def test_what_it_cannot_do_is_said_before() -> None:
    packets = LoadModel("open", unit="packets")
    assert Tcpreplay().unable(packets, ("loss_pct",), 1e4) is None
    assert "no jitter_ms" in (Tcpreplay().unable(packets, ("jitter_ms",), 1e4) or "")
    assert "requests" in (Tcpreplay().unable(LoadModel("open"), ("p95_ms",), 1e4) or "")


def test_stats_of_a_function_are_counts_or_a_sentence() -> None:
    assert dict(parse_stats("accepted 7\ndropped 3\n")) == {"accepted": 7, "dropped": 3}
    before, after = Hops({"a": 3, "b": 1}, {}), Hops({"a": 5, "b": 1, "c": 2}, {})
    assert after.since(before).dropped == {"a": 2, "c": 2}
    for text, sentence in (
        ("", "printed nothing"),
        ("dropped -3\n", "'dropped -3', which is no"),
        ("dropped 3 packets\n", "which is no `NAME COUNT`"),
        ("a 1\n" * 101, "101 lines"),
    ):
        with pytest.raises(ValueError, match=sentence):
            dict(parse_stats(text))
