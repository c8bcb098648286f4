"""Where traffic is split: the share that each branch really got, beside the one it was to get.

By the payload that came to the first function of each branch, requests and their answers: bytes
less the headers of their packets, so that a branch that opens a connection for each request counts
for no more. What is left of a difference is what its own text headers are longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from workbench.domain.observations import Observation
from workbench.measuring.evidence import Cut
from workbench.measuring.records import Drive

BRANCH_SHARE = "branch_share"
HEADERS_BYTES = 66
"""Of a packet: Ethernet 14, IPv4 20, TCP with time stamps 32."""


def branch_shares(windows: Sequence[Cut]) -> tuple[Observation, ...]:
    """For each window and branch its share in per cent; the detail says what was asked."""
    return tuple(
        Observation(number, name, BRANCH_SHARE, 100 * share, f"asked {100 * asked:g} %")
        for number, window in enumerate(windows)
        for split in window.drive.splits
        for name, asked, share in _shares(window.drive, split, window.start_s, window.end_s)
    )


def _shares(
    drive: Drive, split: Mapping[str, float], start_s: float, end_s: float
) -> Iterator[tuple[str, float, float]]:
    """Name, asked and measured share of each branch; nothing where no bytes were counted."""
    at_s = [counted.at_s for counted in drive.counters]
    came: dict[str, float] = {}
    for name in split:
        seen = [c.components[name] for c in drive.counters if name in c.components]
        if len(seen) == len(at_s):
            payload = [one.rx_bytes - HEADERS_BYTES * one.rx_packets for one in seen]
            came[name] = float(np.diff(np.interp((start_s, end_s), at_s, payload))[0])
    whole, asked = sum(came.values()), sum(split.values())
    if len(came) == len(split) and whole > 0:
        yield from ((name, share / asked, came[name] / whole) for name, share in split.items())
