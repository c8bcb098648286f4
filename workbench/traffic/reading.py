"""What a generator left, as records that keep their promise, or a sentence.

Whatever breaks may break in mid-write: a generator that is killed, a full disk beside the source, a
container that runs out of memory. What each format holds is its generator's to know (`parse`);
that no such file stops a run with a trace, or becomes a figure, is one rule for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.measuring.records import PacketCounts, RequestRecords
from workbench.traffic.base import Generator, Offer
from workbench.traffic.packets import PacketGenerator, PacketOffer, PairedGenerator

SLACK_S = 1e-3
"""By which programs that round, or read two clocks, may be off."""
MOST_BYTES = 1 << 53
"""Of one answer: beyond it a float64, as most programs write it, counts no bytes."""
MOST_STATUS = 999

T = TypeVar("T")


def read_records(
    generator: Generator, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
) -> RequestRecords:
    """Records of an offer. Raises `TrafficError` for whatever is none."""
    return _read(
        generator.name,
        lambda: generator.parse(offer, result, output, begin_s, stop_s),
        lambda records: _wrong(records, begin_s),
    )


def read_counts(
    generator: PacketGenerator, offer: PacketOffer, output: str, begin_s: float
) -> PacketCounts:
    """Counts of an offer of packets. Raises `TrafficError` for whatever is none."""
    return _read(
        generator.name, lambda: generator.parse_packets(offer, output, begin_s), _miscounted
    )


def read_pair(
    generator: PairedGenerator, offer: PacketOffer, output: str, far_output: str, begin_s: float
) -> PacketCounts:
    """Counts of an offer, from both ends. Raises `TrafficError` for whatever is none."""

    def wrong(counts: PacketCounts) -> str:
        timed = bool(np.isfinite(counts.jitter_s).any())
        return _miscounted(counts if timed else replace(counts, jitter_s=0 * counts.lost))

    return _read(
        generator.name, lambda: generator.parse_pair(offer, output, far_output, begin_s), wrong
    )


def _read(name: str, parse: Callable[[], T], wrong: Callable[[T], str]) -> T:
    """What a generator left, parsed, unless something is `wrong` with it: then what, or empty."""
    try:
        with np.errstate(all="ignore"):  # what is no number is refused below
            read = parse()
            why = wrong(read)
    except TrafficError:
        raise
    except Exception as error:  # whatever broke over there, the answer is one sentence
        raise _unreadable(name, f"{type(error).__name__}: {error}") from error
    if why:
        raise _unreadable(name, why)
    return read


def _wrong(records: RequestRecords, begin_s: float) -> str:
    """What no request can have, if any has it (`RequestRecords`)."""
    planned, start, first, end = (
        records.planned_s, records.start_s, records.first_byte_s, records.end_s,
    )  # fmt: skip
    if not np.isfinite(planned).all() or np.isinf([start, first, end]).any():
        return "a request has no time"
    if (planned < begin_s - SLACK_S).any():
        return "a request was due before the load began"
    if (start < planned - SLACK_S).any() or (end < start - SLACK_S).any():
        return "a request was answered before it was sent, or sent before it was due"
    if ((records.status < 0) | (records.status > MOST_STATUS)).any():
        return "an answer has no HTTP status"
    if ((records.bytes < 0) | (records.bytes > MOST_BYTES)).any():
        return "an answer has no size"
    return ""


def _miscounted(counts: PacketCounts) -> str:
    columns = np.array(
        [
            counts.start_s, counts.end_s, counts.planned, counts.sent, counts.numbered,
            counts.received, counts.lost, counts.jitter_s,
        ]
    )  # fmt: skip
    if not np.isfinite(columns).all() or (columns[2:] < 0).any() or counts.out_of_order < 0:
        return "a count is no number of packets"
    if (np.diff(counts.start_s) < -SLACK_S).any() or (counts.end_s < counts.start_s).any():
        return "its intervals do not follow each other"
    if counts.delays is not None:
        sent_s, delay_s = counts.delays
        if not np.isfinite([sent_s, delay_s]).all() or (delay_s < 0).any():
            return "a packet has no delay"
        if (np.diff(sent_s) < 0).any():
            return "its packets are not in the order of sending"
    return ""


def _unreadable(name: str, why: str) -> TrafficError:
    return TrafficError(
        f"what {name} left cannot be read: {why[:200]}",
        where="source",
        remedy="Measure the point again; if it happens again, run it by hand in the source's "
        "container",
    )
