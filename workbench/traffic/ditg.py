"""D-ITG: packets whose gaps and sizes are drawn, each stamped when it leaves: one-way delays.

Seen of 2.8.1 (Debian):

- With `-B` a packet is stamped and then held for the pause: on an idle path one delay per burst is
  as long as the pause. Gaps that are read from a file (`-Ft`) have no such packet, so that bursts
  and every distribution of gaps are files that are made here.
- Several UDP flows may share one port of the sink, from source ports of their own; asked for source
  ports by number (`-sp`), it cannot bind them. It has a thread for each flow. While others end, the
  sink may miss a flow's last packets (4 of 352 on a busy host): flows last longer than is counted.
- Of ICMP every flow's listener sees every packet, so that n flows are logged n times: one flow.
  Its checksum is wrong for half of the odd sizes, and such packets are lost: sizes are even.
- It sleeps after each packet and makes up for nothing (`-j 1` neither): every gap is longer than
  asked, by some 25 us with the least timer slack, by up to 200 us in a guest or on a busy host. How
  late it was is learned from each drive and taken off in the next; what is missing then is the
  source's.
- Its log has the time of day without the date, in microseconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.kpis import JITTER, LOSS, of
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.cycles import planned_times
from workbench.measuring.delays import smoothed_jitter
from workbench.measuring.records import Floats, PacketCounts
from workbench.traffic.packets import PacketOffer
from workbench.traffic.spreads import draw

FOLDER = "/var/tmp"  # noqa: S108 - in the source's own container
FLOW_FILE, GAPS_FILE, SIZES_FILE = (f"{FOLDER}/itg.{kind}" for kind in ("flow", "gaps", "sizes"))
SIGNALS = 9000
"""Port on which ITGRecv is told of flows."""
INTERVAL_S = 0.5
SMALLEST, LARGEST = 24, 1472
"""Bytes of payload: D-ITG's own header, and what a frame of 1,514 bytes carries."""
MOST_FLOWS = 64
LINGERING_S = 0.5
"""By which several flows outlast the load; what they send then counts for nothing."""
PROBES, PROBE_RATE = 10, 100.0
"""Packets, and how many a second: of ten within 3 ms behind five functions the sink has none yet
when it is told that the flow has ended."""
LATE_S, MOST_LATE_S = 25e-6, 500e-6
"""By which a gap is longer than asked on an idle host, and the most that is taken off."""
UNSENT = 0.01
"""Share of the packets that may be missing before a drive is worth another."""
LEARNED_FROM, USUAL = 20, 0.99
"""Gaps of a flow, at least, that say how late it is; and the share of them that does: a stall is no
lateness, and to send faster after it would be no steady load."""
SHORTEST_S = 1e-6
"""D-ITG reads no gap of zero."""
CLEARLY_S = 5e-6
"""By which it must be later than was known before a drive is worth another."""
STARTING_S = 5.0
"""That flows may take to begin and to end, besides their load."""
MOST_PACKETS = 1 << 20
MOST_CHARS = 160 * MOST_PACKETS
"""Of a log as text; a line has about 110."""
DAY_S = 86_400.0
APART_S = 1e-3
"""By which a packet may arrive before it was sent, where two cores read the clock."""
_LINE = re.compile(
    r"Flow>(\d+) Seq> ?(\d+) .*?txTime>(\d+):(\d+):([\d.]+) rxTime>(\d+):(\d+):([\d.]+) "
    r"Size> ?(\d+)"
)
_TOLD = re.compile(r"packets (\d+)")


class DItg:
    """Speaks to ITGSend and ITGRecv 2.8.1 by `send` and `receive` of the templates itg-source and
    itg-sink: UDP, with delays from source to sink on one clock."""

    name = "d-itg"
    plans_times = True
    latency: KpiDefinition = "one-way"
    protocol = "UDP"
    meter = "owdm"
    many_flows = True
    step = 1
    """Sizes are multiples of this."""
    makes_up = True
    """Whether shorter gaps send more: what a path holds back is no lateness."""

    def __init__(self) -> None:
        self.late_s = LATE_S
        """Taken off each gap: what the last drive was late by."""
        self.again = False
        """Whether the last drive sent too few since its gaps were too long, which the next one
        knows."""

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del most  # where its threads are too slow, its own counters say so
        if load.unit != "packets":
            return f"{self.name} sends packets, which are not answered: it cannot measure requests"
        unknown = sorted(
            kpi for kpi in kpis if "packets" not in of(kpi).of or not self._measures(kpi)
        )
        return f"{self.name} measures no {', no '.join(unknown)}" if unknown else None

    def _measures(self, kpi: str) -> bool:
        return bool(kpi)

    def offers(self, parameter: str) -> bool:
        several = ("flows",) if self.many_flows else ()
        return parameter in ("packetsize", "duty", "period_s", *several)

    def version_argv(self) -> tuple[str, ...]:
        return ("send", "version")

    def parse_version(self, output: str) -> str:
        found = re.search(r"ITGSend version (\S+)", output)
        return found[1] if found else "unknown"

    def files(self, offer: PacketOffer) -> tuple[str, Mapping[str, bytes]]:
        count = (offer.rate_pps or PROBE_RATE) * offer.seconds
        if count > MOST_PACKETS:
            raise TrafficError(
                f"{count:.0f} packets are more than {self.name} logs in one drive",
                where="source",
                remedy=f"Offer at most {MOST_PACKETS} packets a window, or take pcap-source",
            )
        sizes = offer.sizes or (offer.size_bytes,)
        if not SMALLEST <= min(sizes) <= max(sizes) <= LARGEST:
            raise TrafficError(
                f"a payload of {min(sizes)} to {max(sizes)} bytes is none that {self.name} sends",
                remedy=f"Choose a packetsize of {SMALLEST} to {LARGEST} bytes",
            )
        due, rng = _due(offer)
        lasts_s = float(due[-1])
        if not 1 <= offer.flows <= min(MOST_FLOWS, due.size - 1):
            raise TrafficError(
                f"{self.name} cannot send {due.size - 1} packets in {offer.flows} flows",
                remedy=f"Choose 1 to {MOST_FLOWS} flows, of a packet each at least",
            )
        drawn = draw(offer.size_spread, due.size, rng) * np.resize(sizes, due.size)
        drawn = np.clip(self.step * np.rint(drawn / self.step), SMALLEST, LARGEST)
        made, flows = {}, []
        for number in range(offer.flows):
            # Flows take turns. The gap behind the last packet of each lasts until the end.
            own = np.append(due[number : -1 : offer.flows], due[-1])
            gaps = self._written(own)
            end = f".{number}" if number else ""
            made[GAPS_FILE + end] = _text(1e3 * gaps, "%.3f")
            made[SIZES_FILE + end] = _text(drawn[number :: offer.flows], "%d")
            flows.append(
                f"-a {offer.host} {self._to(offer)} -m {self.meter} "
                f"{self._until(offer, due[number], lasts_s)} "
                f"-Ft {GAPS_FILE}{end} -Fs {SIZES_FILE}{end}\n"
            )
        return f"{offer} {self.late_s:.6f}", {**made, FLOW_FILE: "".join(flows).encode()}

    def _written(self, due: Floats) -> Floats:
        """The gaps that a file has: shorter by what it is late."""
        return np.maximum(np.diff(due) - self.late_s, SHORTEST_S)

    def _learn(self, log: _Log, due: Floats, too_few: bool) -> None:
        """How much longer its gaps were than those that it was given, in the first flow."""
        longer = log.longer_than(self._written(due))
        if longer.size < LEARNED_FROM:
            self.again = False
            return
        usual = np.sort(longer)[: math.ceil(USUAL * longer.size)]
        late_s = float(np.clip(usual.mean(), 0.0, MOST_LATE_S))
        self.again = too_few and late_s > self.late_s + CLEARLY_S
        self.late_s = late_s

    def _to(self, offer: PacketOffer) -> str:
        return f"-rp {offer.port} -T {self.protocol}"

    def _until(self, offer: PacketOffer, from_s: float, end_s: float) -> str:
        """Of a probe a few packets, else from then on to the end (ms)."""
        if not offer.rate_pps:
            return f"-z {PROBES}"
        begin_ms = round(1e3 * from_s)
        begin = f" -d {begin_ms}" if begin_ms else ""
        return f"-t {1e3 * end_s - begin_ms:.0f}{begin}"

    def packet_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        del offer  # the files have it all
        return ("send", FLOW_FILE, self.meter)

    def probe_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        return self.packet_argv(offer)

    def seen_from(self, output: str) -> tuple[int, str]:
        log = _log(output)
        return log.number.size, ""

    def far_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        return ("receive", f"{offer.seconds + STARTING_S:.0f}")

    def far_ready_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        del offer
        listening = f":{SIGNALS:04X} [0-9A-F]*:0000 0A"
        return ("grep", "-Eqs", listening, "/proc/net/tcp", "/proc/net/tcp6")

    def parse_packets(self, offer: PacketOffer, output: str, begin_s: float) -> PacketCounts:
        return self.parse_pair(offer, "", output, begin_s)

    def parse_pair(
        self, offer: PacketOffer, output: str, far_output: str, begin_s: float
    ) -> PacketCounts:
        told = _TOLD.search(output)
        log = _log(far_output)
        return self._counts(offer, log, int(told[1]) if told else None, begin_s)

    def _counts(
        self, offer: PacketOffer, log: _Log, sent: int | None, begin_s: float
    ) -> PacketCounts:
        """`sent` packets left the source, where it says so: what is lost at the very end leaves no
        gap in the numbers."""
        lost_s = log.lost_s
        numbered = log.number.size + lost_s.size
        if sent is not None and sent > numbered:
            last_s = offer.seconds - INTERVAL_S / 2
            ends = np.full(sent - numbered, last_s)
            if offer.flows > 1:
                ends = np.linspace(log.sent_s.max(), offer.seconds + LINGERING_S, ends.size + 1)[1:]
            lost_s = np.append(lost_s, ends)
        edges = _edges(offer)
        start, end = edges[:-1], edges[1:]
        due = _due(offer)[0][:-1]
        planned = np.histogram(due, edges)[0].astype(float)
        received = np.histogram(log.sent_s, edges)[0].astype(float)
        lost = np.histogram(lost_s, edges)[0].astype(float)
        if self.makes_up:
            too_few = float((received + lost).sum()) < (1.0 - UNSENT) * float(planned.sum())
            self._learn(log, due[:: offer.flows], too_few)
        order = np.argsort(log.sent_s, kind="stable")
        jitter = smoothed_jitter(log.delay_s[order])
        last = np.searchsorted(log.sent_s[order], end, side="right") - 1
        return PacketCounts(
            start_s=begin_s + start,
            end_s=begin_s + end,
            planned=planned,
            sent=received + lost,
            numbered=received + lost,
            received=received,
            lost=lost,
            jitter_s=np.where(last >= 0, jitter[np.maximum(last, 0)], 0.0),
            out_of_order=log.overtaken,
            size_bytes=offer.size_bytes,
            delays=(begin_s + log.sent_s[order], log.delay_s[order]),
        )


class DItgTcp(DItg):
    """The same over TCP, which sends again what is lost: there is no loss to tell."""

    name = "d-itg-tcp"
    protocol = "TCP"
    many_flows = False
    makes_up = False  # what the path does not take waits

    def _measures(self, kpi: str) -> bool:
        return kpi not in (LOSS, JITTER)


class DItgRoundTrip(DItg):
    """Half of the time that packets take to the sink and back, on the source's clock alone: for
    source and sink on different hosts. A packet counts as lost whichever way it is lost."""

    name = "d-itg-rtt"
    latency: KpiDefinition = "half-round-trip"
    meter = "rttm"
    many_flows = False

    def parse_pair(
        self, offer: PacketOffer, output: str, far_output: str, begin_s: float
    ) -> PacketCounts:
        del far_output  # the sink sends packets back and logs what the source logs better
        log = _log(output)
        return self._counts(offer, log.halved(), None, begin_s)


class DItgIcmp(DItg):
    """The same by echo requests (ICMP type 8) in one flow; the sink's kernel answers them, too."""

    name = "d-itg-icmp"
    protocol = "ICMP 8"
    many_flows = False
    step = 2

    def _to(self, offer: PacketOffer) -> str:
        del offer  # it has no ports
        return f"-T {self.protocol}"


@dataclass(frozen=True)
class _Log:
    """What ITGDec wrote, packet by packet; columns of shape (n,), times since the first packet.

    A number that is missing between two of a flow that arrived was lost; when it was sent is
    interpolated.
    """

    flow: np.ndarray
    number: np.ndarray
    sent_s: Floats
    delay_s: Floats

    def halved(self) -> _Log:
        return _Log(self.flow, self.number, self.sent_s, self.delay_s / 2)

    def longer_than(self, gaps: Floats) -> Floats:
        """By how much longer the first flow's gaps were than those given, in s; of packets that
        arrived one after the other, shape (k,)."""
        own = np.flatnonzero(self.flow == self.flow.min())
        own = own[np.argsort(self.number[own])]
        numbers, took_s = self.number[own], np.diff(self.sent_s[own])
        next_to = (np.diff(numbers) == 1) & (numbers[:-1] <= gaps.size)
        return np.asarray(took_s[next_to] - gaps[numbers[:-1][next_to] - 1])

    @property
    def lost_s(self) -> Floats:
        """When each lost packet was sent."""
        lost = []
        for flow in np.unique(self.flow):
            own = np.flatnonzero(self.flow == flow)
            own = own[np.argsort(self.number[own])]
            numbers = self.number[own]
            missing = np.setdiff1d(np.arange(1, numbers[-1] + 1), numbers)
            lost.append(np.interp(missing, numbers, self.sent_s[own]))
        return np.concatenate(lost)

    @property
    def overtaken(self) -> int:
        """Packets that arrived after a later one of their flow."""
        order = np.argsort(self.sent_s + self.delay_s, kind="stable")
        late = 0
        for flow in np.unique(self.flow):
            numbers = self.number[order[self.flow[order] == flow]]
            late += int((numbers < np.maximum.accumulate(numbers)).sum())
        return late


def _log(text: str) -> _Log:
    """Raises `TrafficError` for a log that is cut, empty, no log, too long, or of two clocks."""
    lines = [line for line in text[:MOST_CHARS].splitlines() if line.startswith("Flow>")]
    ended = _TOLD.search(text[-200:])
    if len(text) > MOST_CHARS or len(lines) > MOST_PACKETS:
        raise _unreadable(f"it has more than {MOST_PACKETS} packets")
    if ended is None:
        raise _unreadable(f"it is cut off after {len(lines)} packets, or no log: {text[-80:]!r}")
    rows: list[tuple[str, ...]] = []
    for line in lines:
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            raise _unreadable(f"line {len(rows) + 1} is no packet: {line[:80]!r}")
        rows.append(found.groups())
    if len(rows) != int(ended[1]):
        raise _unreadable(f"it has {len(rows)} of {ended[1]} packets")
    if not rows:
        raise TrafficError(
            "no packet of D-ITG arrived",
            where="sink",
            remedy="Look whether the functions let UDP and TCP pass to itg-sink",
        )
    table = np.array(rows, dtype=float)
    sent = table[:, 2] * 3600 + table[:, 3] * 60 + table[:, 4]
    arrived = table[:, 5] * 3600 + table[:, 6] * 60 + table[:, 7]
    since, delay = _within_a_day(sent - sent[0]), _within_a_day(arrived - sent)
    if delay.min() < -APART_S:
        raise TrafficError(
            f"packets arrived {-1e3 * delay.min():.1f} ms before they were sent: the clocks of "
            "source and sink are apart",
            where="sink",
            remedy="Put both on one host, or ask for generator d-itg-rtt",
        )
    flow, number = table[:, :2].astype(int).T
    return _Log(flow, number, since - since.min(), np.maximum(delay, 0.0))


def _within_a_day(seconds: Floats) -> Floats:
    """Differences of times of day, over midnight as well."""
    return np.asarray((seconds + DAY_S / 2) % DAY_S - DAY_S / 2)


def _due(offer: PacketOffer) -> tuple[Floats, np.random.Generator]:
    """When packets are to be sent, the first at 0, and what draws go on by."""
    rng = np.random.default_rng(offer.seconds)
    rate = offer.rate_pps or PROBE_RATE
    end_s = offer.seconds + (LINGERING_S if offer.flows > 1 else 0.0)
    if offer.shape is not None and offer.rate_pps:  # a probe has no rate
        due = planned_times(offer.shape, rate, end_s)
    else:
        gaps = draw(offer.gap_spread, max(2, math.ceil(1.5 * rate * end_s)), rng) / rate
        due = np.cumsum(gaps) - gaps[0]
        due = due[due < end_s]
    # The gap behind the last one lasts until the end.
    return np.append(due, end_s), rng


def _edges(offer: PacketOffer) -> Floats:
    """Of intervals of half a second, or of whole cycles where the rate varies."""
    every = INTERVAL_S
    if offer.shape is not None:
        every = offer.shape.cycle_s * np.ceil(INTERVAL_S / offer.shape.cycle_s - 1e-6)
    count = max(1, int(offer.seconds / every + 1e-6))
    return np.asarray(every * np.arange(count + 1))


def _text(figures: Floats, each: str) -> bytes:
    return "\n".join([*(each % figure for figure in figures.tolist()), ""]).encode()


def _unreadable(why: str) -> TrafficError:
    return TrafficError(
        f"what ITGDec wrote cannot be read: {why}",
        where="sink",
        remedy="Measure the point again; use itg-sink as sink",
    )
