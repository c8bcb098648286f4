"""Causes in memory and disk."""

from __future__ import annotations

from workbench.diagnosis.base import Case, Match, Rule
from workbench.diagnosis.rule_phrases import beside_alone
from workbench.domain.resources import DISK as DISK_RATE
from workbench.measuring.usage import SINK, SOURCE

FAULTS_PER_S, HITS_PER_S = 5.0, 5.0
THRASHING_PER_S = 100.0
"""Major faults from which a function does little but read its pages again (ours)."""


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
                min(1.0, 0.3 + major / THRASHING_PER_S),
                f"{name} is at its memory limit: reclaimed {hits:.0f} times a second",
                (f"{major:.0f} page faults a second read a disk",),
            )
        if major >= FAULTS_PER_S:
            return Match(
                name,
                min(1.0, major / THRASHING_PER_S),
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

DISK_SHARE = 0.2


def _disk(case: Case) -> Match | None:
    seen = case.seen
    shares = {n: p for n in (*case.order, SINK) if (p := seen.per_second(n, "pressure_io_s"))}
    who = max(shares, key=lambda one: shares[one], default="")
    if not who or shares[who] < DISK_SHARE or not seen.per_request(who, "disk_operations"):
        return None
    each = seen.per_request(who, "disk_operations") or 0.0
    return Match(
        who,
        min(1.0, shares[who]),
        f"some thread of {who} waits for a disk {shares[who]:.0%} of the time; "
        f"{each:.2g} disk operations per request",
        (
            f"{(seen.per_second(who, 'disk_bytes') or 0.0) / 1e3:.3g} kB/s read and written",
            *beside_alone(case, who, "disk_operations", "disk operations per request"),
        ),
    )


DISK = Rule(
    "disk wait",
    ("pressure_io_s", "disk_operations"),
    f"some thread waits for a disk {DISK_SHARE:.0%} of the time (PSI of its group; the threshold "
    "is ours) and it does use one",
    "Keep what it reads in memory, log less or asynchronously, or give it a faster disk",
    "memory that is short, so that pages are read again",
    "major faults and limit hits: with memory to spare there are none",
    _disk,
)

DISK_USED_UP = 0.85
MEGABYTE = 1e6


def _disk_rate(case: Case) -> Match | None:
    for name in (*case.order, *case.passive):
        most = case.seen.sample.point.configuration.resource(f"{name}.{DISK_RATE.key}")
        used = (case.seen.per_second(name, "disk_bytes") or 0.0) / MEGABYTE
        if most and used >= DISK_USED_UP * most:
            return Match(
                name,
                min(1.0, used / most),
                f"{name} has used up its disk: {used:.3g} MB/s of {most:.3g}",
                tuple(beside_alone(case, name, "disk_bytes", "bytes of disk per request")),
            )
    return None


DISK_SPENT = Rule(
    "disk rate used up",
    ("disk_bytes",),
    f"what it reads and writes is {DISK_USED_UP:.0%} of the rate that it is allotted (ours)",
    "Raise its `disk`, or write less",
    "reading and writing at once, each of which has that rate",
    "the same load with twice the rate: it is no better if something else binds",
    _disk_rate,
)
