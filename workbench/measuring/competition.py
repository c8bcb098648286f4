"""Whether who was to compete with the functions really did, all the time that load was driven."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.competitors import COMPETITOR, FULL, Competitor
from workbench.domain.samples import Finding
from workbench.measuring.records import Competition, Drive
from workbench.measuring.usage import Meter

LEAST_SHARE = 0.05
"""Of the CPU that was asked for, below which nobody competed: half of a shared core is usual."""


def examine(drives: Sequence[Drive]) -> tuple[Finding, ...]:
    """A finding where a competitor did not start, ended early, or hardly used what it asked for."""
    for drive in drives:
        if drive.competition is not None and (found := _failure(drive, drive.competition)):
            return (found,)
    return ()


def _failure(drive: Drive, competition: Competition) -> Finding | None:
    seconds = drive.stop_s - drive.begin_s
    began_s, ended_s = max(drive.begin_s, competition.began_s), competition.ended_s
    share = max(0.0, min(drive.stop_s, ended_s) - began_s) / seconds if seconds > 0.0 else 0.0
    if competition.failure or share < 1.0:
        why = competition.failure or "it did not compete all the time"
        # When it ended in mid-sample nobody knows; that it did is known.
        return Finding("competitor_failed", share, 1.0, f"competitor {competition.asked}: {why}")
    asked = Competitor.parse(competition.asked)
    if asked is None or asked.kind == "disk":  # which waits for its disk
        return None
    wanted = competition.cores * asked.intensity / FULL
    used = Meter(drive).usage(drive.begin_s, drive.stop_s)[COMPETITOR].cpu_cores
    if used >= LEAST_SHARE * wanted:
        return None
    return Finding(
        "competitor_failed",
        used / wanted,
        LEAST_SHARE,
        f"competitor {competition.asked} used {used:.3f} cores, and asked for {wanted:.2f}",
    )
