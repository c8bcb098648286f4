"""What hey prints, and the records that are made of it."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.traffic import hey
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.hey import Hey

HEADER = (
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
)
PLAIN = PathFacts(200, 10_000, keep_alive=True, redirects=False, compresses=False)
OFFER = Offer(
    "http://10.0.0.2:8080/", LoadModel("closed"), 2, 1.0, False, 20.0, 10_000, "/tmp/records"
)


def test_argv() -> None:
    argv = Hey().argv(OFFER)
    assert argv[:3] == ("hey", "-o", "csv")
    assert "-disable-keepalive" in argv
    assert argv[argv.index("-c") + 1] == "2"


def test_hey_is_no_open_loop() -> None:
    assert "not an open loop" in str(Hey().unable(LoadModel("open"), (), 1))
    assert Hey().unable(LoadModel("closed"), (), 1) is None


def test_rows_become_records() -> None:
    output = HEADER + (
        "0.4000,0.0900,0.0000,0.0100,0.2000,0.1000,200,0.0000\n"
        "0.5000,0.1000,0.0000,0.0000,0.4000,0.0000,502,0.0100\n"
        "0.9000,0.1000,0.0000,0.0000,0.8000,0.0000,200,0.4000\n"
        "0.5000,0.1000,0.0000,0.0000,0.4000,0.0000,200,0.5100\n"
        "0.5000,0.1000,0.0000,0.0000,0.4000,0.0000,200,1.0000\n"
    )
    records = Hey().parse(OFFER, b"", output, 100.0, 101.0)
    assert len(records) == 4, "what began after the load is not of it"
    assert records.first_byte_s[0] == pytest.approx(100.3)
    assert records.end_s[:2] == pytest.approx([100.4, 100.51])
    assert np.isnan(records.end_s[2:]).all(), "both clients were busy when the load stopped"
    assert records.status.tolist() == [200, 502, 0, 0]
    assert records.bytes.tolist() == [10_000, 0, 0, 0]


def test_clients_that_said_nothing_are_put_back() -> None:
    output = HEADER + "0.2000,0,0,0,0.2000,0.0000,200,0.0000\n"
    records = Hey().parse(replace(OFFER, wl=3), b"", output, 0.0, 1.0)
    assert np.sort(records.start_s[~records.finished]) == pytest.approx([0.0, 0.0, 0.2])


def test_a_table_that_is_full_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever hey kept no answers of would read as a client that hangs until the end."""
    monkeypatch.setattr(hey, "MOST_ANSWERS", 10)
    rows = [f"0.1000,0,0,0,0.1000,0.0000,200,{0.05 * i:.4f}\n" for i in range(10)]
    assert len(Hey().parse(OFFER, b"", HEADER + "".join(rows[:9]), 0.0, 1.0)) > 0
    with pytest.raises(TrafficError, match="its first 10 answers only") as caught:
        Hey().parse(OFFER, b"", HEADER + "".join(rows), 0.0, 1.0)
    assert caught.value.remedy == "Shorten the window, or use oha"


@pytest.mark.parametrize("output", ["", "Error: no such host\n", HEADER + "a,b,c,d,e,f,g,h\n"])
def test_what_cannot_be_read_is_said(output: str) -> None:
    with pytest.raises(TrafficError, match="cannot be read"):
        Hey().parse(OFFER, b"", output, 0.0, 1.0)


def test_version_is_that_of_the_package() -> None:
    assert Hey().parse_version("0.1.4-2+b4") == "0.1.4"
