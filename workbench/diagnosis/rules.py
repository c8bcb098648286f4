"""The table of causes that ship: condition, threshold with its source, sentence, what to do.

A rule speaks only for what was collected. What it compares with is absolute where a mechanism says
so (40 ms, 200 ms, 1 s are constants of Linux' TCP), else the function on its own.
"""

from __future__ import annotations

from workbench.diagnosis.base import Case, Match, Rule
from workbench.diagnosis.readings import Reading, busiest
from workbench.measuring.remarks import PLATEAU, STALL_HIGH_S, STALL_LOW_S, THROTTLED_LABEL
from workbench.measuring.usage import HOST, OWN, SINK, SOURCE

# ---------------------------------------------------------------------- delayed acknowledgement

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
        *_alone(case, who, "delayed_acks", "late acknowledgements per request"),
    ]
    strength = min(1.0, rates[who] * ACK_S / seen.mean_s) if seen.mean_s else band
    return Match(
        who,
        strength,
        f"delayed acknowledgements of {who}, {rates[who]:.1f} per request, for which "
        f"{case.before(who)} waits: {band:.0%} of the answers take 40-45 ms, and what comes on "
        f"top; {_not_cpu(case)}",
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

# ---------------------------------------------------------------------- quota, CPU, neighbours


def _quota(case: Case) -> Match | None:
    name, share = _most_throttled(case)
    if share <= THROTTLED_LABEL:
        return None
    used = case.seen.usage(name)
    assert used is not None
    return Match(
        name,
        share,
        f"the quota of {name} ({case.seen.allotted(name):.2g} cores) stops it in {share:.0%} of "
        "its periods",
        (
            f"throttled in {share:.0%} of the periods, by the kernel's count for "
            f"{used.throttled_s:.2f} s over all cores, which is a lower bound",
            f"it used {used.cpu_cores:.2f} cores, {used.cpu_share:.0%} of its allocation",
        ),
    )


QUOTA = Rule(
    "quota throttling",
    (),
    f"throttled in more than {THROTTLED_LABEL:.0%} of its periods (METHOD.md 5)",
    "Give it more CPU, or whole cores in place of a quota where its load comes in bursts",
    "a neighbour that takes its core",
    "throttled periods: they count the quota alone, and waiting for CPU counts both",
    _quota,
)


def _used_up(case: Case) -> Match | None:
    name, used = max(
        ((n, u) for n in case.order if (u := case.seen.usage(n)) is not None),
        key=lambda item: item[1].cpu_share,
        default=("", None),
    )
    if used is None or used.cpu_share < PLATEAU or used.throttled_share > THROTTLED_LABEL:
        return None
    return Match(
        name,
        used.cpu_share - PLATEAU + 0.5,
        f"{name} uses its CPU up: {used.cpu_cores:.2f} cores, {used.cpu_share:.0%} of what it has",
        (f"usage {used.cpu_share:.0%}, throttled in {used.throttled_share:.0%} of its periods",),
    )


CPU_USED_UP = Rule(
    "CPU used up",
    (),
    f"{PLATEAU:.0%} of its allocation without throttling (METHOD.md 4)",
    "Give it more vCPU, and as many worker threads",
    "a busy loop that waits for something else",
    "CPU time per request: it grows with the load where a function polls",
    _used_up,
)

HOT_THREAD = 0.9


def _hot(case: Case) -> Match | None:
    for name in case.order:
        threads = case.seen.details(name, "thread_cpu_s")
        if not threads or case.seen.allotted(name) < 1.2 or not case.seen.seconds:
            continue
        which = max(threads, key=lambda one: threads[one])
        cores = threads[which] / case.seen.seconds
        if cores >= HOT_THREAD:
            total = case.seen.sample.usage[name].cpu_cores
            return Match(
                name,
                min(1.0, cores),
                f"one thread of {name} fills a core ({cores:.0%}) of "
                f"{case.seen.allotted(name):.2g} that it has",
                (f"{which} used {cores:.2f} of {total:.2f} cores",),
            )
    return None


THREAD = Rule(
    "one hot thread",
    ("thread_cpu_s",),
    f"a thread at {HOT_THREAD:.0%} of a core while the function may use more than one",
    "Raise its worker threads to its cores, or give it one core",
    "a lock that all threads wait for",
    "context switches: those that wait for a lock give their core up often",
    _hot,
)

WAIT_SHARE = 0.2
"""Of the time in which a function's threads could run, the share in which they waited."""
NEIGHBOUR_CORES = 0.2
FULL_HOST = 0.85


def _neighbour(case: Case) -> Match | None:
    seen = case.seen
    who, cores = busiest(seen)
    host, others = seen.usage(HOST), seen.amount(HOST, "others_cores") or 0.0
    if not who or max(cores, others) < NEIGHBOUR_CORES or host is None:
        return None
    if host.cpu_share < FULL_HOST or not seen.mean_s:
        return None
    waits: dict[str, float] = {}
    lost_s = 0.0
    for name in (*case.order, SOURCE, SINK):
        waited, used = seen.per_request(name, "cpu_wait_s"), seen.usage(name)
        if waited is None or used is None or used.throttled_share > THROTTLED_LABEL:
            continue  # with a quota that is used up, waiting says nothing of neighbours
        ran = used.cpu_cores / seen.rate if seen.rate else 0.0
        if who == name or not waited or waited / (waited + ran) < WAIT_SHARE:
            continue
        waits[name] = waited / (waited + ran)
        # A source that waits sends late; who waits behind it makes the request itself longer.
        lost_s += seen.lateness_s if name == SOURCE else waited
    name = max(waits, key=lambda one: waits[one], default="")
    if not name:
        return None
    lost = min(1.0, lost_s / seen.mean_s)
    return Match(
        name,
        lost,
        f"{name} waits for CPU {waits[name]:.0%} of the time in which it could run, since others "
        f"use {others:.1f} cores of this host, {who} the most with {cores:.1f}",
        (
            f"a request loses {lost:.0%} of its time to that: {lost_s * 1e3:.2f} ms or more",
            f"the host was {host.cpu_share:.0%} busy; nobody counted here was throttled",
        ),
    )


NEIGHBOUR = Rule(
    "CPU wait by a neighbour",
    ("cpu_wait_s", "burner_cores"),
    f"waiting {WAIT_SHARE:.0%} of the time in which it could run, on a host {FULL_HOST:.0%} busy, "
    f"while others use {NEIGHBOUR_CORES} cores, and unthrottled (second field of schedstat; the "
    "threshold is ours)",
    "Move the neighbour away or pin both to cores of their own, then measure again",
    "its own quota",
    "throttled periods: with a quota they count, with a neighbour they do not",
    _neighbour,
)

# ---------------------------------------------------------------------- connections

CHURN_PER_REQUEST = 0.5
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
        if more < CHURN_PER_REQUEST and used < 0.5 and failed < 0.01:
            continue
        return Match(
            name,
            min(1.0, max(failed, used, 0.3 * more)),
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
            *_alone(case, who, "listen_overflows", "overflows per request"),
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


def _stall(case: Case) -> Match | None:
    seen = case.seen
    rates = {
        c: n for c in (*case.order, SOURCE, SINK) if (n := seen.per_request(c, "tcp_timeouts"))
    }
    who = max(rates, key=lambda one: rates[one], default="")
    slow = seen.share_between(STALL_LOW_S, STALL_HIGH_S)
    if not who or rates[who] < TIMEOUTS_PER_REQUEST or slow < TIMEOUTS_PER_REQUEST:
        return None
    mean = seen.mean_s or RETRY_S
    return Match(
        who,
        min(1.0, min(slow, rates[who]) * RETRY_S / mean),
        f"{who} waits for retransmission time-outs, {rates[who]:.3f} per request: {slow:.1%} of "
        "the answers take 200 ms and more",
        (
            f"{seen.per_request(who, 'retransmitted') or 0:.3f} segments per request sent again",
            *_alone(case, who, "tcp_timeouts", "time-outs per request"),
        ),
    )


RETRANSMISSION = Rule(
    "retransmission stall",
    ("tcp_timeouts", "retransmitted"),
    "one time-out in a thousand requests and answers of 190-260 ms (RTO of 200 ms, METHOD.md 5)",
    "Look for drops on the hop (interface, socket buffers, policers) and raise what drops",
    "a function that answers in whole quota periods",
    "throttled periods, and segments that were sent again",
    _stall,
)

# ---------------------------------------------------------------------- kernel, memory, lab

UNCHARGED_SHARE, UNCHARGED_CORES = 0.25, 0.1


def _uncharged(case: Case) -> Match | None:
    seen = case.seen
    host, others = seen.usage(HOST), seen.amount(HOST, "others_cores")
    if host is None or others is None or not host.cpu_cores:
        return None
    inside = sum(u.cpu_cores for name, u in seen.sample.usage.items() if name != HOST)
    own = seen.usage(OWN)
    hidden = host.cpu_cores - inside - others
    if hidden < UNCHARGED_CORES or hidden / host.cpu_cores < UNCHARGED_SHARE or own is None:
        return None
    received = seen.details(HOST, "softirqs").get("NET_RX", 0.0)
    return Match(
        HOST,
        hidden / host.cpu_cores,
        f"{hidden:.2f} cores of the host are charged to nobody: deferred work of the network",
        (
            f"the host used {host.cpu_cores:.2f} cores; lab and workbench {inside:.2f}, others "
            f"{others:.2f}",
            f"{received / max(1, seen.requests):.1f} rounds of receiving per request",
        ),
    )


UNCHARGED = Rule(
    "softirq not charged",
    ("others_cores", "softirqs"),
    f"{UNCHARGED_SHARE:.0%} of the host's busy time and {UNCHARGED_CORES} cores in no group (ours)",
    "Count it to the function (threaded NAPI in its group), and leave room for it on the host",
    "short processes that came and went between two looks",
    "softirqs per request: they grow with packets and not with processes",
    _uncharged,
)

FAULTS_PER_S, HITS_PER_S = 5.0, 5.0


def _memory(case: Case) -> Match | None:
    for name in (*case.order, SINK, SOURCE):
        kills = case.seen.amount(name, "oom_kills") or 0.0
        hits = case.seen.per_second(name, "limit_hits") or 0.0
        major = case.seen.per_second(name, "major_faults") or 0.0
        if kills >= 0.5:
            return Match(
                name,
                1.0,
                f"the kernel ended {kills:.0f} processes of {name} for lack of memory",
                (f"{hits:.0f} times a second its memory limit was hit",),
            )
        if hits >= HITS_PER_S:
            return Match(
                name,
                min(1.0, 0.3 + major / 100.0),
                f"{name} is at its memory limit: reclaimed {hits:.0f} times a second",
                (f"{major:.0f} page faults a second read a disk",),
            )
        if major >= FAULTS_PER_S:
            return Match(
                name,
                min(1.0, major / 100.0),
                f"{name} waits for pages from a disk, {major:.0f} times a second",
                (f"its limit was hit {hits:.0f} times a second",),
            )
    return None


MEMORY = Rule(
    "memory reclaim or OOM",
    ("limit_hits", "major_faults", "oom_kills"),
    f"a process ended, or {HITS_PER_S:g} reclaims or {FAULTS_PER_S:g} major faults a second (ours)",
    "Raise its memory limit, or lower what it caches",
    "a disk that is slow for another reason",
    "limit hits: they count the limit alone",
    _memory,
)

STARVED = 0.2
"""Strength where the host is saturated, too: who sets the pace may have been starved itself."""
OF_THE_LAB = {
    "source_saturated": SOURCE,
    "little": SOURCE,
    "sink_saturated": SINK,
    "bypass_limited": SINK,
}


def _lab(case: Case) -> Match | None:
    reasons = {finding.reason for finding in case.seen.sample.findings}
    for finding in case.seen.sample.findings:
        if (who := OF_THE_LAB.get(finding.reason)) is not None:
            return Match(
                who,
                STARVED if "host_saturated" in reasons else 1.0,
                f"{who} sets the pace and not the functions: {finding.evidence}",
                (f"{finding.reason}: {finding.figure:.3g}, limit {finding.limit:.3g}",),
            )
    return None


LAB = Rule(
    "source or sink limited",
    (),
    "a finding of the sample says so (docs/validity.md)",
    "Give source and sink cores of their own, another generator, or lower the load",
    "a function that is slow",
    "the bypass: the same load without the functions",
    _lab,
)

SAME, LITTLE_CPU = 0.1, 0.7


def _no_gain(case: Case) -> Match | None:
    own, mean = case.seen.sample.point.configuration, case.seen.mean_s
    if mean is None or _most_throttled(case)[1] > THROTTLED_LABEL:
        return None
    used = max((case.seen.sample.usage[n].cpu_share for n in case.order), default=1.0)
    if used > LITTLE_CPU:
        return None
    for configuration, other in case.siblings:
        more = {
            key: (float(own.resources[key]), float(value))
            for key, value in configuration.resources.items()
            if key.endswith(".vcpu")
            and isinstance(value, int | float)
            and isinstance(own.resources.get(key), int | float)
            and float(value) > 1.2 * float(own.resources[key])
        }
        if not more or other.mean_s is None or abs(other.mean_s / mean - 1) > SAME:
            continue
        what = ", ".join(
            f"{key.removesuffix('.vcpu')} {a:g} to {b:g}" for key, (a, b) in more.items()
        )
        return Match(
            next(iter(more)).removesuffix(".vcpu"),
            1.0 - used,
            f"more vCPU brings nothing here: {what} cores, and the mean stays at "
            f"{other.mean_s * 1e3:.3g} ms",
            (f"the busiest function uses {used:.0%} of its allocation",),
        )
    return None


NO_GAIN = Rule(
    "more vCPU brings nothing",
    (),
    f"the mean within {SAME:.0%} at more vCPU, the busiest function under {LITTLE_CPU:.0%} of its "
    "allocation (ours)",
    "Look at what a request waits for; give the vCPU to somebody else",
    "a load under which nothing is limited",
    "the same comparison at a higher load",
    _no_gain,
    implied=True,
)

RULES = (
    DELAYED_ACKNOWLEDGEMENT,
    QUOTA,
    CPU_USED_UP,
    THREAD,
    NEIGHBOUR,
    CHURN,
    OVERFLOW,
    RETRANSMISSION,
    UNCHARGED,
    MEMORY,
    LAB,
    NO_GAIN,
)
"""All that ship, by one name each in pyproject.toml."""


def _alone(case: Case, component: str, name: str, what: str) -> list[str]:
    alone = case.alone_mean(component, name)
    return [] if alone is None else [f"on its own: {alone:.2f} {what}"]


def _not_cpu(case: Case) -> str:
    """What is known of CPU, where it is not the cause."""
    used = max((case.seen.sample.usage[n].cpu_share for n in case.order), default=0.0)
    waits = [wait_share(case.seen, name) for name in case.order]
    known = [wait for wait in waits if wait is not None]
    waited = f", waiting at most {max(known):.0%} of a request" if known else ""
    return f"not CPU (usage at most {used:.0%}{waited})"


def wait_share(seen: Reading, name: str) -> float | None:
    """Waiting for CPU as a share of what a request takes; None where it is not known."""
    waited = seen.per_request(name, "cpu_wait_s")
    return None if waited is None or not seen.mean_s else min(1.0, waited / seen.mean_s)


def _most_throttled(case: Case) -> tuple[str, float]:
    shares = {n: u.throttled_share for n in case.order if (u := case.seen.usage(n)) is not None}
    name = max(shares, key=lambda one: shares[one], default="")
    return name, shares.get(name, 0.0)
