"""Senders of packets that fail: what their far ends counted is no measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from answering_components import AnsweringComponent, of_components

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import TrafficError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.components import driving
from workbench.labs.components.component import Outcome
from workbench.labs.components.packets import Sender
from workbench.labs.components.watching import DriveWatch
from workbench.paths import Workspace
from workbench.traffic.ditg import DItg
from workbench.traffic.iperf3 import Iperf3
from workbench.traffic.packets import PacketGenerator

RECORDED = Path(__file__).parents[1] / "traffic"
FAR_LOG = (RECORDED / "ditg-gaps-from-file.txt").read_text()
IPERF3 = (RECORDED / "iperf3-udp.json").read_text()
POINT = OperatingPoint("router", Configuration({}, {"packetsize_bytes": 512.0}), 100.0)


def note(usage: Mapping[str, Usage]) -> None:
    """What is used meanwhile is of no interest here."""


@pytest.mark.parametrize(
    ("generator", "left", "said"),
    [
        (DItg(), Outcome(1, "", "no server\n"), "d-itg 1 ended with exit code 1: no server"),
        (Iperf3(), Outcome(1, IPERF3, ""), "iperf3 1 ended with exit code 1"),
        (Iperf3(), Outcome(1, '{"error": "no server"}', ""), "iperf3 says: no server"),
    ],
    ids=["d-itg", "iperf3", "iperf3 that says why"],
)
async def test_a_sender_that_fails_is_an_error_whatever_arrived(
    generator: PacketGenerator,
    left: Outcome,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def sent(*given: object) -> tuple[float, Outcome]:
        return 100.0, left

    def in_the_sink(argv: Sequence[str]) -> Outcome:
        return Outcome(0, FAR_LOG if argv[0] == "receive" else "", "")

    monkeypatch.setattr(driving, "send", sent)
    campaign = load_campaign("udp-loss", workspace=Workspace(tmp_path)).campaign
    source, router, sink = (
        AnsweringComponent(name, campaign.template(template), answers=in_the_sink)
        for name, template in (
            ("source", "packet-source"),
            ("router", "router"),
            ("sink", "packet-sink"),
        )
    )
    sender = Sender(of_components(campaign, sink, router, source), generator, "1", "")
    watch = cast(DriveWatch, None)  # nothing is counted
    with pytest.raises(TrafficError, match=said) as caught:
        await sender.drive(POINT, 1.0, note, watch)
    assert caught.value.where == "source"
