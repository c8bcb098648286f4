"""Where traffic is split: the share that each branch really got, beside the one it was to get.

By the payload that came to the first function of each branch, requests and their answers: bytes
less the headers of their packets, so that a branch that opens a connection for each request counts
for no more. What is left of a difference is what its own text headers are longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from workbench.domain.observations import Observation
from workbench.domain.samples import Remark
from workbench.measuring.evidence import Cut
from workbench.measuring.records import Drive

BRANCH_SHARE = "branch_share"
SHARE_LABEL = 0.02
"""By so much, as a share of all traffic, a branch gets more or less than was asked."""
SHARE_ERRORS = 4.0
"""Standard errors by which it must do so: a balancer may draw each request's branch at random."""
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


def split_off(windows: Sequence[Cut], requests: int) -> tuple[Remark, ...]:
    """The branch whose share departs most from what was asked, where that is worth telling.

    Parameters
    ----------
    windows : of one sample, at least one; a branch's share is its mean over them.
    requests : that were answered in them, all branches together.
    """
    came: dict[str, list[tuple[float, float]]] = {}
    for window in windows:
        for split in window.drive.splits:
            for name, asked, share in _shares(window.drive, split, window.start_s, window.end_s):
                came.setdefault(name, []).append((asked, share))
    found = [
        (name, seen[0][0], float(np.mean([share for _, share in seen])))
        for name, seen in came.items()
    ]
    if not found or not requests:
        return ()
    name, asked, share = max(found, key=lambda one: abs(one[2] - one[1]))
    error = float(np.sqrt(asked * (1.0 - asked) / requests))
    if abs(share - asked) <= max(SHARE_LABEL, SHARE_ERRORS * error):
        return ()
    told = f"{name} got {share:.1%} of what was split, and was to get {asked:.1%}"
    return (Remark("split_off", share - asked, told),)


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
