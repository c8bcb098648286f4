"""Whether live movies play: the share of stretches of 20 s in which playback stood still.

A player plays from when its first segment has arrived, which it waits for in the warm-up. From then
on each segment is due when the one before has been played; one that arrives later lets playback
stand still until then. The
playlists of live servers have no clock: progress is what arrived, in seconds of media, against wall
time. Paper B, 4.2, has the share of time that is missing, in a moving 20 s; here a stretch counts
as late or not, so that the share is one of counted things and has an exact interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from workbench.domain import kpis
from workbench.domain.campaign import WindowPlan
from workbench.domain.samples import Estimate, Finding
from workbench.measuring.intervals import exact_share_interval, log_interval
from workbench.measuring.records import Drive, Floats, Playback
from workbench.measuring.warmup import warmup_s

STRETCH_S = 20.0
LATE_S = 0.1
"""That playback may stand still in a stretch: what timers and one key frame are off."""
TOLERANCE_S = 0.05
"""By which the last stretch may end after the load."""
SLOW_LIMIT = 0.05
"""How often the players' own program may wake late (`validity.LATE_LIMIT`)."""


def since_s(plan: WindowPlan) -> float:
    """Seconds after the load began from which stretches count."""
    return warmup_s(plan, None)


def still(ready_s: Floats, media_s: Floats, stop_s: float) -> Floats:
    """When playback of one player stood still, shape (k, 2): begin and end of each time, the first
    that before it had anything.

    Parameters
    ----------
    ready_s, media_s : of its segments, in the order of arrival: when each was there, and how long
        it plays.
    stop_s : when the load stopped. A player without a segment stood still until then.
    """
    if not ready_s.size:
        return np.array([[-np.inf, stop_s]])
    played_until = float(ready_s[0])
    times = [(-np.inf, played_until)]
    for ready, media in zip(ready_s.tolist(), media_s.tolist(), strict=True):
        if ready > played_until:
            times.append((played_until, ready))
            played_until = ready
        played_until += media
    if played_until < stop_s:
        times.append((played_until, stop_s))
    return np.array(times)


def late_stretches(playback: Playback, start_s: float, stop_s: float) -> Floats:
    """How many of the players were late in each whole stretch from `start_s` on, shape (k,)."""
    count = max(0, int((stop_s - start_s + TOLERANCE_S) // STRETCH_S))
    begins = start_s + STRETCH_S * np.arange(count)
    late = np.zeros(count)
    order = np.lexsort((playback.ready_s, playback.player))
    ready, media = playback.ready_s[order], playback.media_s[order]
    rims = np.searchsorted(playback.player[order], np.arange(playback.players + 1))
    for first, last in pairwise(rims.tolist()):
        times = still(ready[first:last], media[first:last], stop_s)
        for index, begin in enumerate(begins):
            inside = np.clip(times, begin, begin + STRETCH_S)
            late[index] += float((inside[:, 1] - inside[:, 0]).sum()) > LATE_S
    return late


def state(drives: Sequence[Drive], plan: WindowPlan) -> dict[str, Estimate]:
    """Lag ratio and start-up of the players of a visit, each with its interval; none without any.

    The lag ratio's is that of Clopper and Pearson over stretches of players; where there are
    several stretches after one another, they tell how alike players are (`exact_share_interval`).
    """
    shows = [(d, d.records.playback) for d in drives if d.records.playback is not None]
    late: list[float] = []
    of: list[int] = []
    waits: list[Floats] = []
    for drive, playback in shows:
        assert playback is not None
        if not playback.players:
            continue
        counted = late_stretches(playback, drive.begin_s + since_s(plan), drive.stop_s)
        late += counted.tolist()
        of += [playback.players] * counted.size
        waits.append(_waits_s(playback))
    stated = {}
    if of:
        shares = np.divide(late, of)
        share = exact_share_interval(sum(late) / sum(of), sum(of), shares)
        stated[kpis.LAG] = Estimate(100 * share.value, 100 * share.low, 100 * share.high)
    waited = np.concatenate(waits) if waits else np.zeros(0)
    if waited.size:
        found = log_interval(1e3 * float(waited.mean()), 1e3 * waited, 0.0)
        if found is not None:
            stated[kpis.STARTUP] = found
    return stated


def _waits_s(playback: Playback) -> Floats:
    """From each player's first request to its first segment, of those that got one."""
    first = np.full(playback.players, np.inf)
    np.minimum.at(first, playback.player, playback.ready_s)
    waits = first - playback.began_s
    return np.asarray(waits[np.isfinite(waits) & (waits > 0)])


def also(findings: tuple[Finding, ...], drives: Sequence[Drive]) -> tuple[Finding, ...]:
    """What is wrong with a visit, what players saw among it.

    What failed stands before the findings that follow from it, and behind a source that had no CPU
    left, from which it follows itself.
    """
    shows = [d.records.playback for d in drives if d.records.playback is not None]
    faults = tuple(dict.fromkeys(fault for show in shows for fault in show.faults))
    found = list(findings)
    slow = max((show.late_share for show in shows), default=0.0)
    if slow > SLOW_LIMIT and all(f.reason != "source_saturated" for f in found):
        words = f"the players' own program woke over 50 ms late {slow:.0%} of the time"
        found.insert(0, Finding("source_saturated", slow, SLOW_LIMIT, words))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        starved = sum(f.reason == "source_saturated" for f in found[:2])
        found.insert(starved, Finding("stream_failed", float(len(faults)), 0.0, faults[0] + more))
    return tuple(found)
