"""Whatever a generator left is records that keep their promise, or a sentence."""

from __future__ import annotations

import json
import sqlite3

import pytest
from recorded_outputs import CLOSED, offer, recorded

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.plugins import load
from workbench.traffic.packets import PacketOffer
from workbench.traffic.reading import read_counts, read_records

BEGIN_S = 100.0
HEY = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"


def read(tool: str, wl: float, result: bytes, output: str) -> int:
    model = LoadModel("open") if tool in ("oha", "steady") else CLOSED
    asked = offer(model, wl, 1.0)
    return len(read_records(load("traffic", tool)(), asked, result, output, BEGIN_S, BEGIN_S + 1.0))


def oha_table(start: object, end: object, status: object = 200) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE oha (start, start_latency_correction, end, status, len_bytes)")
    connection.execute("INSERT INTO oha VALUES (?, 0.0, ?, ?, 10000)", (start, end, status))
    content = connection.serialize()
    connection.close()
    return content


def test_what_is_whole_is_read() -> None:
    assert read("oha", 1.0, oha_table(0.001, 0.002), json.dumps({"errorDistribution": {}})) == 1


@pytest.mark.parametrize(
    ("result", "output", "says"),
    [
        (oha_table("soon", 1.0), {}, "what oha left cannot be read: ValueError"),
        (oha_table(0.5, 0.1), {}, "answered before it was sent"),
        (oha_table(0.1, float("inf")), {}, "a request has no time"),
        (oha_table(0.1, 0.2, 10**6), {}, "an answer has no HTTP status"),
        (oha_table(0.1, 0.2), {"timeout": "many"}, "oha's summary cannot be read"),
        (oha_table(0.1, 0.2), {"timeout": 10**12}, "oha's summary cannot be read"),
        (oha_table(0.1, 0.2), {"timeout": -1}, "oha's summary cannot be read"),
        (oha_table(0.1, 0.2), [], "oha's summary cannot be read"),
    ],
)
def test_what_is_no_request_is_a_sentence(result: bytes, output: object, says: str) -> None:
    with pytest.raises(TrafficError, match=says) as refused:
        read("oha", 1.0, result, json.dumps({"errorDistribution": output}))
    assert refused.value.remedy


def test_other_formats_are_held_to_the_same() -> None:
    with pytest.raises(TrafficError, match="what hey left cannot be read: Error: new-line"):
        read("hey", 2, b"", HEY.replace("\n", "\rx\n"))
    with pytest.raises(TrafficError, match="was due before the load began"):
        read("hey", 2, b"", HEY + "0.1,0,0,0,0.1,0,200,-3\n")
    with pytest.raises(TrafficError, match="wrk"):
        read("wrk", 2, b"\xff" * 80, recorded("wrk")[1])


def test_counts_of_packets_are_numbers() -> None:
    interval = {"start": 0.0, "end": 0.5, "packets": 10, "bytes": 640, "lost_packets": 0}
    seen = {"intervals": [{"sum": interval | {"jitter_ms": "nan"}}]}
    report = {
        "intervals": [{"sum": interval}],
        "end": {"streams": [{"udp": {"out_of_order": 0}}]},
        "server_output_json": seen,
    }
    asked = PacketOffer("10.0.0.1", 5201, 20.0, 64, 1)
    with pytest.raises(TrafficError, match="a count is no number of packets"):
        read_counts(load("traffic", "iperf3")(), asked, json.dumps(report), BEGIN_S)
    seen["intervals"] = [{"sum": interval | {"jitter_ms": 0.1}}]
    counts = read_counts(load("traffic", "iperf3")(), asked, json.dumps(report), BEGIN_S)
    assert counts.received.tolist() == [10.0]
