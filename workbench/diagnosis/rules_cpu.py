"""Causes in CPU: quota, cores, threads, neighbours, what nobody is charged for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.diagnosis.base import Case, Match, Rule
from workbench.diagnosis.readings import busiest
from workbench.diagnosis.rule_phrases import most_throttled
from workbench.diagnosis.rules_memory import THRASHING_PER_S
from workbench.domain.observations import MOST_STOLEN
from workbench.measuring.remarks import PLATEAU, THROTTLED_LABEL
from workbench.measuring.usage import HOST, OWN, SINK, SOURCE


def _quota(case: Case) -> Match | None:
    name, share = most_throttled(case)
    if share <= THROTTLED_LABEL:
        return None
    used = case.seen.usage(name)
    assert used is not None
    faults = case.seen.per_second(name, "major_faults") or 0.0
    thrashing = faults >= THRASHING_PER_S
    return Match(
        name,
        share / 2 if thrashing else share,  # what uses the quota up is the lack of memory
        f"the quota of {name} ({case.seen.allotted(name):.2g} cores) stops it in {share:.0%} of "
        "its periods",
        (
            f"throttled in {share:.0%} of the periods, for {used.throttled_s:.2f} s over all cores"
            + ", a lower bound by the kernel's count" * case.seen.collected,
            f"it used {used.cpu_cores:.2f} cores, {used.cpu_share:.0%} of its allocation",
            *([f"much of it to read pages again, {faults:.0f} times a second"] * thrashing),
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
        if len(list(filter(None, threads))) == 1:
            continue  # then it has fewer threads than cores
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

BURSTS = 0.7
"""Usage of the allocation under which a quota that stops it cannot be too small on average."""


def _bursts(case: Case) -> Match | None:
    name, share = most_throttled(case)
    used = case.seen.usage(name)
    if share <= THROTTLED_LABEL or used is None or used.cpu_share >= BURSTS:
        return None
    cores = case.seen.allotted(name)
    return Match(
        name,
        share * (1.0 - used.cpu_share),
        f"{name} is stopped in {share:.0%} of its periods though it uses {used.cpu_share:.0%} of "
        f"its {cores:.2g} cores: its work comes in bursts, and a whole core would not stop it",
        (f"used {used.cpu_cores:.2f} of {cores:.2f} cores",),
    )


BURSTY = Rule(
    "quota where whole cores would do",
    (),
    f"throttled in more than {THROTTLED_LABEL:.0%} of its periods at under {BURSTS:.0%} of its "
    "allocation (a quota is spent per period of 100 ms, CFS bandwidth control; ours)",
    "Give it cores of its own (cpuset) in place of the quota, or a longer period or a burst",
    "a quota that is too small on average",
    "usage of the allocation: near all of it where the quota is too small",
    _bursts,
    implied=True,
)

BUSY_THREAD = 0.1
"""Share of its function's CPU from which a thread counts as working."""


def _busy_threads(case: Case, name: str) -> list[float]:
    """Cores of each working thread; only the busiest four are counted one by one."""
    used, seconds = case.seen.usage(name), case.seen.seconds
    if used is None or not used.cpu_cores or not seconds:
        return []
    each = [cpu / seconds for cpu in case.seen.details(name, "thread_cpu_s").values()]
    return [cores for cores in each if cores >= BUSY_THREAD * used.cpu_cores]


def _few_threads(case: Case) -> Match | None:
    for name in case.order:
        used, threads = case.seen.usage(name), case.seen.amount(name, "threads")
        cores, working = case.seen.allotted(name), _busy_threads(case, name)
        if used is None or threads is None or not working or len(working) >= 4:
            continue
        if len(list(filter(None, case.seen.details(name, "thread_cpu_s")))) > len(working):
            continue  # others could work, and do not
        if len(working) > cores - 0.5 or used.cpu_cores < HOT_THREAD * len(working):
            continue
        return Match(
            name,
            min(1.0, 1.0 - len(working) / cores + 0.5),
            f"{name} works with {len(working)} of its {threads:.0f} threads, each of which fills a "
            f"core, and may use {cores:.2g} cores",
            (f"it used {used.cpu_cores:.2f} of {cores:.2f} cores",),
        )
    return None


FEW_THREADS = Rule(
    "fewer threads than cores",
    ("threads", "thread_cpu_s"),
    f"all threads that work at {HOT_THREAD:.0%} of a core on average, and half a core or more of "
    "the allocation that none of them can use",
    "Give it as many worker threads as it has cores, or fewer cores",
    "one thread of many that gets all the work",
    "CPU by thread: others that do a little speak for the work's distribution",
    _few_threads,
)


def _many_threads(case: Case) -> Match | None:
    for name in case.order:
        used, cores = case.seen.usage(name), case.seen.allotted(name)
        working = _busy_threads(case, name)
        if used is None or used.throttled_share <= THROTTLED_LABEL or not cores:
            continue
        if len(working) < 2 or len(working) < 2 * cores:
            continue
        return Match(
            name,
            used.throttled_share * (1.0 - cores / len(working)),
            f"{len(working)} threads of {name} share a quota of {cores:.2g} cores and spend a "
            f"period's share together: all stand still in {used.throttled_share:.0%} of them",
            (", ".join(f"{one:.2f}" for one in sorted(working)[::-1]) + " cores by thread",),
        )
    return None


MANY_THREADS = Rule(
    "more threads than quota",
    ("thread_cpu_s",),
    f"throttled in more than {THROTTLED_LABEL:.0%} of its periods with two working threads and "
    "more for each core of its quota (CFS bandwidth control; ours)",
    "Run as many worker threads as its quota has cores, or raise the quota",
    "a quota that is too small for one thread, too",
    "throttled periods with one worker thread at the same load",
    _many_threads,
    implied=True,
)


def _stolen(case: Case) -> Match | None:
    seen = case.seen
    stolen, cores = seen.per_second(HOST, "stolen_s"), seen.host_cores
    if stolen is None or not cores or stolen < MOST_STOLEN * cores:
        return None
    return Match(
        HOST,
        min(1.0, stolen / cores),
        f"the hypervisor gave {stolen / cores:.0%} of this host's cores to others",
        (f"{stolen:.2f} of {cores:.0f} cores stolen",),
    )


STEAL = Rule(
    "CPU taken by the hypervisor",
    ("stolen_s",),
    f"{MOST_STOLEN:.0%} of the host's cores (steal in /proc/stat; the threshold is ours)",
    "Measure on a host of your own, or reserve its cores",
    "a neighbour on this host",
    "the host's own processes: a neighbour is among them, a hypervisor is not",
    _stolen,
)

WAIT_SHARE = 0.2
"""Of the time in which a function's threads could run, the share in which they waited."""
NEIGHBOUR_CORES = 0.2
FULL_HOST = 0.85


@dataclass(frozen=True)
class _Waiting:
    """That functions, source or sink wait for CPU that somebody else uses.

    `busy`: of the host's CPU; `shares`: of the time in which each could run; `lost_s`: what a
    request loses at least.
    """

    who: str
    cores: float
    others: float
    busy: float
    shares: Mapping[str, float]
    lost_s: float

    @property
    def most(self) -> str:
        return max(self.shares, key=lambda one: self.shares[one])


def _waiting(case: Case) -> _Waiting | None:
    """On a full host, while somebody else computes; a function that a quota stops tells nothing."""
    seen = case.seen
    who, cores = busiest(seen)
    host, others = seen.usage(HOST), seen.amount(HOST, "others_cores") or 0.0
    if not who or max(cores, others) < NEIGHBOUR_CORES or host is None:
        return None
    if host.cpu_share < FULL_HOST:
        return None
    shares: dict[str, float] = {}
    lost_s = 0.0
    for name in (*case.order, SOURCE, SINK):
        waited, used = seen.per_request(name, "cpu_wait_s"), seen.usage(name)
        if waited is None or used is None or used.throttled_share > THROTTLED_LABEL:
            continue  # with a quota that is used up, waiting says nothing of neighbours
        ran = used.cpu_cores / seen.rate if seen.rate else 0.0
        if who == name or not waited or waited / (waited + ran) < WAIT_SHARE:
            continue
        shares[name] = waited / (waited + ran)
        # A source that waits sends late; who waits behind it makes the request itself longer.
        lost_s += seen.lateness_s if name == SOURCE else waited
    if not shares and (brief := _brief(case)):
        shares[brief] = 0.0
    return _Waiting(who, cores, others, host.cpu_share, shares, lost_s) if shares else None


COUNTED = 0.5
"""Share of a function's CPU that its threads account for, under which most of its work is done by
threads that end before anybody reads them, and so is its waiting."""
LISTED_THREADS = 4
"""The busiest, whose CPU is kept one by one."""


def _brief(case: Case) -> str:
    """A function whose threads end before their waiting is read; empty for none."""
    for name in case.order:
        threads = case.seen.details(name, "thread_cpu_s").values()
        used = case.seen.usage(name)
        if used is None or not threads or len(threads) >= LISTED_THREADS:
            continue
        if sum(threads) < COUNTED * used.cpu_cores * case.seen.seconds:
            return name
    return ""


def _uncounted_s(case: Case, others: float) -> float:
    """What a request takes more than its functions alone, where threads are too brief for their
    waiting to be counted and others use half of the host; 0 else."""
    seen, alone_s = case.seen, case.alone_s
    if not _brief(case) or seen.mean_s is None or alone_s is None or others < 0.5 * seen.host_cores:
        return 0.0
    if most_throttled(case)[1] > THROTTLED_LABEL:
        return 0.0
    return max(0.0, seen.mean_s - alone_s)


def _neighbour(case: Case) -> Match | None:
    waiting, mean_s = _waiting(case), case.seen.mean_s
    if waiting is None or waiting.who in case.passive or not mean_s:
        return None
    name, uncounted_s = waiting.most, _uncounted_s(case, waiting.others)
    lost_s = max(waiting.lost_s, uncounted_s)
    waits = f"{name} waits for CPU {waiting.shares[name]:.0%} of the time in which it could run"
    if uncounted_s > waiting.lost_s:
        waits = f"a request waits for CPU {1e3 * uncounted_s:.2f} ms"
    brief = (
        f"threads of {_brief(case)} end before their waiting is counted: the figure is what a "
        "request takes more than its functions alone",
    )
    return Match(
        name,
        min(1.0, lost_s / mean_s),
        f"{waits}, since others use {waiting.others:.1f} cores of this host, {waiting.who} the "
        f"most with {waiting.cores:.1f}",
        (
            f"a request loses {min(1.0, lost_s / mean_s):.0%} of its time to that: "
            f"{lost_s * 1e3:.2f} ms or more",
            f"the host was {waiting.busy:.0%} busy; nobody counted here was throttled",
            *(brief if uncounted_s > waiting.lost_s else ()),
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


def _copy(case: Case) -> Match | None:
    """A function that only gets a copy takes the CPU that those in the way of traffic wait for."""
    waiting = _waiting(case)
    if waiting is None or waiting.who not in case.passive:
        return None
    name, mean_s = waiting.most, case.seen.mean_s
    lost = waiting.lost_s / mean_s if mean_s else waiting.shares[name]
    return Match(
        waiting.who,
        min(1.0, lost),
        f"{waiting.who}, which only gets a copy, uses {waiting.cores:.1f} cores, and {name} waits "
        f"for CPU {waiting.shares[name]:.0%} of the time in which it could run",
        (f"the host was {waiting.busy:.0%} busy; nobody counted here was throttled",),
    )


COPY = Rule(
    "passive copy slows the chain",
    ("cpu_wait_s",),
    f"as for a neighbour, where the busiest is a function that gets a copy, with {NEIGHBOUR_CORES} "
    "cores (paper E, section 8.2)",
    "Give the passive function cores of its own, or a quota, or mirror only a part of the traffic",
    "a neighbour outside of the lab",
    "the same load without the mirror",
    _copy,
)

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

SAME, LITTLE_CPU = 0.1, 0.7


def _no_gain(case: Case) -> Match | None:
    own, mean = case.seen.sample.point.configuration, case.seen.mean_s
    if mean is None or most_throttled(case)[1] > THROTTLED_LABEL:
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
