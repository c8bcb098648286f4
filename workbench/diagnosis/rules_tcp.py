"""Causes in TCP: acknowledgements, windows, connections, time-outs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.diagnosis.base import Case, Match, Rule
from workbench.diagnosis.readings import Reading
from workbench.diagnosis.rule_phrases import beside_alone, extra_cpu, not_cpu
from workbench.measuring.remarks import STALL_HIGH_S, STALL_LOW_S
from workbench.measuring.usage import HOST, SINK, SOURCE

ACKS_PER_REQUEST = 0.5
ACK_S = 0.040
"""`TCP_DELACK_MIN` (linux/include/net/tcp.h): HZ / 25."""
ACK_LOW_S, ACK_HIGH_S = 0.039, 0.056
MODE_SHARE, MODE_RATIO = 0.2, 2.0


def has_mode(seen: Reading) -> bool:
    """Whether answers set in where a delayed acknowledgement puts them.

    It is the edge at 40 ms that tells: where CPU is short, what comes after it is drawn out.
    """
    band, before = _mode(seen)
    return band >= MODE_SHARE and band >= MODE_RATIO * before


def _mode(seen: Reading) -> tuple[float, float]:
    """Share of the answers that take 40 ms and a little, and that of as wide a span before it."""
    before = seen.share_between(ACK_LOW_S * ACK_LOW_S / ACK_HIGH_S, ACK_LOW_S)
    return seen.share_between(ACK_LOW_S, ACK_HIGH_S), before


def _delayed_ack(case: Case) -> Match | None:
    seen = case.seen
    if not has_mode(seen):
        return None
    band, before = _mode(seen)
    rates = {
        c: n for c in (*case.order, SOURCE, SINK) if (n := seen.per_request(c, "delayed_acks"))
    }
    who = max(rates, key=lambda one: rates[one], default="")
    if not who or rates[who] < ACKS_PER_REQUEST:
        return None
    evidence = [
        f"{band:.0%} of the answers took {ACK_LOW_S * 1e3:.0f}-{ACK_HIGH_S * 1e3:.0f} ms, and "
        f"{before:.0%} as wide a span before that",
        f"{who} acknowledged late {rates[who]:.2f} times per request",
        *beside_alone(case, who, "delayed_acks", "late acknowledgements per request"),
    ]
    strength = min(1.0, rates[who] * ACK_S / seen.mean_s) if seen.mean_s else band
    return Match(
        who,
        strength,
        f"delayed acknowledgements of {who}, {rates[who]:.1f} per request, for which "
        f"{case.before(who)} waits: {band:.0%} of the answers take 40-45 ms, and what comes on "
        f"top; {not_cpu(case)}",
        tuple(evidence),
    )


DELAYED_ACKNOWLEDGEMENT = Rule(
    "delayed acknowledgement",
    ("delayed_acks",),
    f"{ACKS_PER_REQUEST} per request and a mode at 40-45 ms: 30 in 30 requests of two writes, 0 "
    "with TCP_NODELAY (own runs)",
    "Set TCP_NODELAY in who sends in small writes, have it write once, or swap the order",
    "a timer of 40 ms in the function itself",
    "the count of delayed acknowledgements: with TCP_NODELAY at the sender both vanish",
    _delayed_ack,
)


SEGMENT_BYTES = 1448
"""Of a full segment on Ethernet with time stamps (MTU 1500)."""
WRITES_PER_REQUEST = 2.0


def _nagle(case: Case) -> Match | None:
    """The sender's half of the delayed acknowledgement: a small segment that is kept back."""
    delayed = _delayed_ack(case)
    if delayed is None:
        return None
    sender = case.before(delayed.component)
    sent = case.seen.per_request(sender, "tx_packets")
    size = _mean_size(case.seen, sender)
    if sent is None or size is None or sent < WRITES_PER_REQUEST or size >= 0.75 * SEGMENT_BYTES:
        return None
    return Match(
        sender,
        0.9 * delayed.strength,
        f"{sender} keeps small segments back until the one before is acknowledged (Nagle's "
        f"algorithm): {sent:.1f} packets of {size:.0f} bytes per request, and "
        f"{delayed.component} acknowledges late",
        (
            f"a full segment has {SEGMENT_BYTES} bytes",
            *beside_alone(case, sender, "tx_packets", "packets out per request"),
        ),
    )


def _mean_size(seen: Reading, component: str) -> float | None:
    packets, size = seen.amount(component, "tx_packets"), seen.amount(component, "tx_bytes")
    return None if not packets or size is None else size / packets


NAGLE = Rule(
    "Nagle's algorithm",
    ("delayed_acks", "tx_packets", "tx_bytes"),
    f"a delayed acknowledgement whose sender sends {WRITES_PER_REQUEST:g} packets per request and "
    "more, under three quarters full on average (RFC 896 keeps back what is small; ours)",
    "Set TCP_NODELAY in the sender, or have it write once",
    "a receiver that is slow to acknowledge whatever it gets (its quick acknowledgements are off)",
    "TCP_NODELAY at the sender: with it the wait goes though acknowledgements may stay late",
    _nagle,
    implied=True,
)

CLOSED_PER_REQUEST = 0.01
MORE_SEGMENTS = 1.6
"""Times the segments per request on its own from which a sender was made to cut them smaller."""


def _more_segments(case: Case, name: str) -> tuple[float, float] | None:
    """Segments per request that a function or the sink sends, here and on its own, where they are
    many more."""
    here = case.seen.per_request(name, "segments_sent")
    # The sink has no sample on its own: it is held against the one of the function before it.
    of = case.alone.get(case.order[-1] if name == SINK else name, ())
    known = [n for one in of if (n := one.per_request(name, "segments_sent"))]
    if not here or not known or here < MORE_SEGMENTS * sum(known) / len(known):
        return None
    return here, sum(known) / len(known)


def _cut_smaller(case: Case) -> Match | None:
    """A sender, on the way back, that sends many more segments to a function than on its own."""
    for name, sender in zip(case.order, (*case.order[1:], SINK), strict=True):
        found, mean_s, alone_s = _more_segments(case, sender), case.seen.mean_s, case.alone_s
        if found is None or not mean_s or not alone_s or mean_s <= alone_s:
            continue
        return Match(
            name,
            1.0 - alone_s / mean_s,
            f"{sender} sends {found[0]:.0f} segments per request to {name} and {found[1]:.0f} on "
            f"its own: the receive window of {name} is too small for full ones",
            (f"a request takes {mean_s * 1e3:.3g} ms, and {alone_s * 1e3:.3g} by its functions",),
        )
    for name, mean_bytes, match in _smaller(case):
        if mean_bytes > FRAME_BYTES and _writer(case, name, mean_bytes) is None:
            said = (
                f"{match.sentence}: more than a frame holds, so that it is its window that is small"
            )
            return replace(match, sentence=said)
    return None


def _small_window(case: Case) -> Match | None:
    seen = case.seen
    rates = {
        c: n for c in (*case.order, SOURCE, SINK) if (n := seen.per_request(c, "zero_windows"))
    }
    who = max(rates, key=lambda one: rates[one], default="")
    alone = case.alone_mean(who, "zero_windows") or 0.0
    if not who or rates[who] < CLOSED_PER_REQUEST or rates[who] < 2 * alone:
        return _cut_smaller(case)
    sender = case.before(who)
    return Match(
        who,
        min(1.0, 0.3 + rates[who]),
        f"{who} closed its receive window {rates[who]:.2f} times per request: who sends to it, "
        f"{sender} on the way there, waits until it has read",
        (
            f"{seen.amount(who, 'zero_windows') or 0:.0f} times in {seen.seconds:.1f} s",
            *beside_alone(case, who, "zero_windows", "times per request"),
        ),
    )


WINDOW = Rule(
    "small window",
    ("zero_windows",),
    f"the receive window closed {CLOSED_PER_REQUEST} times per request, and twice as often as on "
    f"its own, or {MORE_SEGMENTS} times the segments of its own sent to it (RFC 9293, 3.8.6: who "
    "finds it closed may only probe; the figures are ours)",
    "Raise its receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem), or let it read sooner",
    "a function that reads late since it lacks CPU, or a sender that writes in small pieces",
    "its waiting for CPU: with CPU to spare it is the buffer",
    _small_window,
)

CHURN_PER_REQUEST = 0.5
CONNECTION_S = 0.0002
"""A connection's CPU at most: 157 us of haproxy (benchmarks/results/calibration.json)."""
PORTS = 55_000
"""Local ports of a function (`net.ipv4.ip_local_port_range` of the Docker lab)."""


def _churn(case: Case) -> Match | None:
    """It opens connections that it does not open on its own, or runs out of ports."""
    for name in case.order:
        opened, alone = (
            case.seen.per_request(name, "connections_opened"),
            case.alone_mean(name, "connections_opened"),
        )
        waiting = case.seen.amount(name, "time_wait") or 0.0
        failed = case.seen.per_request(name, "connections_failed") or 0.0
        if opened is None or opened < CHURN_PER_REQUEST:
            continue
        used = waiting / PORTS
        more = opened - alone if alone is not None else 0.0
        cost = min(extra_cpu(case, name), more * CONNECTION_S / (case.seen.mean_s or CONNECTION_S))
        if more < CHURN_PER_REQUEST and used < 0.5 and failed < 0.01:
            continue
        return Match(
            name,
            min(1.0, max(failed, used, cost)),
            f"{name} opens {opened:.1f} connections per request"
            + (f", {alone:.1f} on its own" if alone is not None else "")
            + f"; {waiting:.0f} sockets are in TIME_WAIT",
            (
                f"{failed:.3f} connections per request were not opened",
                f"TIME_WAIT holds {used:.0%} of its local ports",
            ),
        )
    return None


CHURN = Rule(
    "connection churn",
    ("connections_opened", "time_wait"),
    f"{CHURN_PER_REQUEST} new connections per request more than on its own (paper A, section 6), "
    "or half of the ports in TIME_WAIT",
    "Let it keep connections to who stands behind it (keep-alive, pools)",
    "more CPU per request for another reason",
    "new connections per request: with keep-alive they and the CPU fall together",
    _churn,
)

PORTS_USED = 0.9
FAILED_PER_REQUEST = 0.001


def _ports(case: Case) -> Match | None:
    for name in (*case.order, SOURCE):
        failed = case.seen.per_request(name, "connections_failed") or 0.0
        used = (case.seen.amount(name, "time_wait") or 0.0) / PORTS
        if used < PORTS_USED or failed < FAILED_PER_REQUEST:
            continue
        return Match(
            name,
            min(1.0, 0.5 + failed),
            f"{name} runs out of local ports: {used:.0%} of them are in TIME_WAIT, and "
            f"{failed:.3f} connections per request were not opened",
            (f"{PORTS} local ports to each peer (net.ipv4.ip_local_port_range)",),
        )
    return None


EPHEMERAL = Rule(
    "ephemeral ports used up",
    ("connections_failed", "time_wait"),
    f"{PORTS_USED:.0%} of {PORTS} local ports in TIME_WAIT (which lasts 60 s in Linux) while "
    f"{FAILED_PER_REQUEST} connections per request fail",
    "Keep connections, give it more addresses, or set net.ipv4.tcp_tw_reuse",
    "a peer that refuses connections",
    "listen overflows and refusals of the peer: with ports used up it has none",
    _ports,
)

TRACKED = 0.95


def _conntrack(case: Case) -> Match | None:
    used, limit = (case.seen.amount(HOST, f"conntrack_{n}") for n in ("used", "limit"))
    if used is None or not limit or used < TRACKED * limit:
        return None
    return Match(
        HOST,
        min(1.0, used / limit),
        f"the table of tracked connections is full: {used:.0f} of {limit:.0f} entries; packets of "
        "new connections are dropped",
        (f"{used / limit:.0%} of net.netfilter.nf_conntrack_max",),
    )


CONNTRACK = Rule(
    "conntrack table full",
    ("conntrack_used", "conntrack_limit"),
    f"{TRACKED:.0%} of net.netfilter.nf_conntrack_max (the kernel drops what is beyond it); the "
    "host's own table is counted, not those of other network namespaces",
    "Raise nf_conntrack_max, shorten its time-outs, or do not track this traffic",
    "an accept queue that is full",
    "listen overflows: what is not tracked never reaches a socket",
    _conntrack,
)

OVERFLOWS_PER_REQUEST = 0.001
SYN_RETRY_S = 1.0


def _overflow(case: Case) -> Match | None:
    seen = case.seen
    rates = {c: n for c in (*case.order, SINK) if (n := seen.per_request(c, "listen_overflows"))}
    who = max(rates, key=lambda one: rates[one], default="")
    if not who or rates[who] < OVERFLOWS_PER_REQUEST:
        return None
    mean = seen.mean_s or SYN_RETRY_S
    return Match(
        who,
        min(1.0, rates[who] * SYN_RETRY_S / mean),
        f"the accept queue of {who} is full: {rates[who]:.3f} connections per request are turned "
        "away, and tried again after a second",
        (
            f"{seen.amount(who, 'listen_overflows') or 0:.0f} overflows in {seen.seconds:.1f} s",
            *beside_alone(case, who, "listen_overflows", "overflows per request"),
        ),
    )


OVERFLOW = Rule(
    "listen overflow",
    ("listen_overflows",),
    "one in a thousand requests; each costs a repeated SYN after 1 s (RFC 6298)",
    "Raise the backlog of its socket and net.core.somaxconn, or let it accept faster",
    "packets that are lost on the way",
    "listen overflows: lost packets do not count there",
    _overflow,
)

TIMEOUTS_PER_REQUEST = 0.001
RETRY_S = 0.2
SYN_LOW_S, SYN_HIGH_S = 0.95, 1.3


def _stall(case: Case) -> Match | None:
    seen = case.seen
    rates = {
        c: n for c in (*case.order, SOURCE, SINK) if (n := seen.per_request(c, "tcp_timeouts"))
    }
    who = max(rates, key=lambda one: rates[one], default="")
    slow = seen.share_between(STALL_LOW_S, STALL_HIGH_S)
    # A second is what a connection waits that is turned away, too: then nothing was lost.
    refused = any(seen.amount(c, "listen_overflows") for c in (*case.order, SINK))
    opening = 0.0 if refused else seen.share_between(SYN_LOW_S, SYN_HIGH_S)
    if not who or rates[who] < TIMEOUTS_PER_REQUEST or slow + opening < TIMEOUTS_PER_REQUEST:
        return None
    waited_s = min(slow, rates[who]) * RETRY_S + min(opening, rates[who]) * SYN_RETRY_S
    return Match(
        who,
        min(1.0, waited_s / (seen.mean_s or RETRY_S)),
        f"{who} waits for retransmission time-outs, {rates[who]:.3f} per request: {slow:.1%} of "
        "the answers take 200 ms more"
        + (f", {opening:.1%} a second, as the opening of a connection does" if opening else ""),
        (
            f"{seen.per_request(who, 'retransmitted') or 0:.3f} segments per request sent again",
            *beside_alone(case, who, "tcp_timeouts", "time-outs per request"),
        ),
    )


RETRANSMISSION = Rule(
    "retransmission stall",
    ("tcp_timeouts", "retransmitted"),
    "one time-out in a thousand requests and answers of 190-260 ms (RTO of 200 ms, METHOD.md 5) or "
    "of a second (a SYN that is sent again, RFC 6298)",
    "Look for drops on the hop (interface, socket buffers, policers) and raise what drops",
    "a function that answers in whole quota periods",
    "throttled periods, and segments that were sent again",
    _stall,
)

HALVED, DOUBLED = 0.6, 1.6
FRAME_BYTES = 1514
"""Of a full frame (MTU 1500): packets that are larger on average were joined by an offload."""
AS_SMALL = 1.5
"""Times the size that a neighbour's packets have on its own up to which they are its own."""


def _smaller(case: Case) -> Iterator[tuple[str, float, Match]]:
    """Where packets are smaller and more than on its own, what they carry is the same, and who
    sends them needs no more segments: the function, bytes per packet here, what is said of it.
    """
    for name, behind in zip(case.order, (*case.order[1:], SINK), strict=True):
        for way, words, sender in (("rx", "receives", behind), ("tx", "sends", name)):
            if _more_segments(case, sender):
                continue  # who sends cuts them so small
            packets, size = (
                case.seen.per_request(name, f"{way}_{n}") for n in ("packets", "bytes")
            )
            before, all_before = (case.alone_mean(name, f"{way}_{n}") for n in ("packets", "bytes"))
            if not packets or not size or not before or not all_before:
                continue
            smaller = (size / packets) / (all_before / before)
            if smaller > HALVED or packets / before < DOUBLED:
                continue
            match = Match(
                name,
                extra_cpu(case, name),
                f"{name} {words} packets of {size / packets:.0f} bytes, {packets:.1f} per request; "
                f"on its own {all_before / before:.0f} bytes and {before:.1f} per request",
                (f"size {smaller:.0%}, number {packets / before:.1f} times that of its own",),
            )
            yield name, size / packets, match


def _writer(case: Case, name: str, mean_bytes: float) -> tuple[str, float] | None:
    """A neighbour whose packets are as small where it is on its own, and their size there."""
    place = case.order.index(name)
    for other in (*case.order[max(0, place - 1) : place], *case.order[place + 1 : place + 2]):
        packets, size = (case.alone_mean(other, f"tx_{n}") for n in ("packets", "bytes"))
        if packets and size and size / packets <= AS_SMALL * mean_bytes:
            return other, size / packets
    return None


def _offload(case: Case) -> Match | None:
    """Smaller packets that no neighbour writes so small by itself."""
    found: dict[str, Match] = {}
    for name, mean_bytes, match in _smaller(case):
        if mean_bytes <= FRAME_BYTES and _writer(case, name, mean_bytes) is None:
            found.setdefault(name, match)
    if not found:
        return None
    first = next(iter(found.values()))
    return replace(first, strength=min(1.0, sum(one.strength for one in found.values())))


def _small_writes(case: Case) -> Match | None:
    """Smaller packets, since a neighbour writes small ones on its own as well."""
    for name, mean_bytes, match in _smaller(case):
        writer = _writer(case, name, mean_bytes)
        if writer is None:
            continue
        other, own_bytes = writer
        return Match(
            name,
            match.strength,
            f"{match.sentence}, since {other} writes in small pieces",
            (*match.evidence, f"{other} sends packets of {own_bytes:.0f} bytes on its own, too"),
        )
    return None


OFFLOAD = Rule(
    "offload off",
    ("rx_packets", "rx_bytes"),
    f"packets of {HALVED:.0%} the size and {DOUBLED} times the number of its own (paper A, section "
    "6: size halves, rate doubles)",
    "Turn GRO, GSO and TSO on along the chain (ethtool -K), or account for the CPU they save",
    "a peer that writes smaller pieces",
    "ethtool -k on both ends of the hop: with offloads on it is the writer",
    _offload,
)

SMALL_WRITES = Rule(
    "small writes of a neighbour",
    ("rx_packets", "rx_bytes"),
    f"as for offload off, where a neighbour's packets on its own are at most {AS_SMALL} times as "
    "large (ours)",
    "Have the neighbour write larger pieces (its buffers), or account for the CPU per packet",
    "an offload that is off at the hop",
    "the neighbour's packets on its own: where they are larger, it is the hop",
    _small_writes,
    implied=True,
)
