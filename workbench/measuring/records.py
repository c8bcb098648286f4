"""What a lab hands over for one stretch of load: request records and raw counters.

Times are seconds on the lab's clock (monotonic; virtual in the simulated lab). Nothing here is a
KPI yet: `workbench.measuring` computes every KPI, for every lab, from these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.domain.competitors import COMPETITOR
from workbench.domain.samples import KpiDefinition

if TYPE_CHECKING:  # who only hands records on needs no numpy
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
else:
    Floats = Integers = Any

ObservedKey = tuple[str, str, str]
"""Component, name and detail of an observation."""

NO_STATUS = 0
"""Status of a request that got no answer: unfinished, refused, reset or timed out."""


@dataclass(frozen=True)
class Playback:
    """What players of live movies saw; segments in columns of shape (n,), in order of arrival.

    Attributes
    ----------
    player : from 0; it plays one movie.
    media_s : what a segment lasts.
    ready_s : when it had arrived, on the lab's clock.
    players : how many there are, those that got nothing among them.
    began_s : when each asked for the first time, shape (players,); NaN where it never did.
    late_share : of the times that the program of the players wanted to wake, how often it was late.
    faults : what went wrong with movies, playlists and the log, a sentence each.
    """

    player: Integers
    media_s: Floats
    ready_s: Floats
    players: int
    began_s: Floats
    late_share: float = 0.0
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequestRecords:
    """One row per request that was due (open loop) or begun (closed loop); columns of shape (n,).

    Attributes
    ----------
    planned_s : due time; equal to `start_s` in a closed loop.
    start_s : when it was sent; NaN if it was due but never sent.
    first_byte_s : NaN where the generator does not tell.
    end_s : when the answer was complete or the attempt failed; NaN if unfinished when the load
        stopped (right-censored, never dropped).
    status : HTTP status, `NO_STATUS` without an answer.
    bytes : body bytes received.
    playback : where the requests are those of players.
    """

    planned_s: Floats
    start_s: Floats
    first_byte_s: Floats
    end_s: Floats
    status: Integers
    bytes: Integers
    playback: Playback | None = None

    def __len__(self) -> int:
        return int(self.planned_s.size)

    @property
    def finished(self) -> NDArray[np.bool_]:
        import numpy as np

        return np.isfinite(self.end_s)

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Answered with a status below 400."""
        return self.finished & (self.status > NO_STATUS) & (self.status < 400)


@dataclass(frozen=True)
class ComponentCounters:
    """Cumulative counters of one component, as the kernel (or the simulation) counts them."""

    cpu_s: float
    periods: int = 0
    """Quota periods begun; 0 where no quota is set."""
    throttled_periods: int = 0
    throttled_s: float = 0.0
    memory_bytes: float = 0.0
    rx_bytes: float = 0.0
    tx_bytes: float = 0.0
    rx_packets: float = 0.0
    tx_packets: float = 0.0
    threads_cpu_s: tuple[float, ...] = ()
    """Per thread, of a component whose single threads can be a limit (source, sink)."""


@dataclass(frozen=True)
class Counters:
    """All counters at one instant."""

    at_s: float
    components: Mapping[str, ComponentCounters]
    """By VNF instance name, `source`, `sink`."""
    host_busy_s: float
    """CPU seconds that all cores of the host spent not idle."""
    conntrack_used: int = 0
    conntrack_limit: int = 0
    softirq_s: float = 0.0
    """CPU seconds that all cores spent on deferred kernel work, in whoever's time: 0 where nobody
    counted them."""
    observed: Mapping[ObservedKey, float] = field(default_factory=dict)
    """Evidence beside usage (`domain.observations`)."""


@dataclass(frozen=True)
class PacketCounts:
    """What source and sink counted of a flow of packets; columns of shape (k,), one per interval.

    Attributes
    ----------
    start_s, end_s : of the interval, on the lab's clock.
    planned, sent : packets that were due, and those that left the source.
    numbered : packets that the sink knows were sent, by their sequence numbers.
    received, lost : of these, which arrived and which did not.
    jitter_s : smoothed variation of the delay as it stood at the interval's end (RFC 1889, A.8);
        NaN where nobody measured it.
    out_of_order : packets of the whole drive that arrived after a later one.
    size_bytes : payload of each.
    dropped_by_sink : packets of the whole drive that had arrived and that the sink's kernel threw
        away, its socket being full; None where nobody counted them.
    duplicates : packets of the whole drive that arrived for the second time.
    exact : of the whole drive, what left the source by its interface and what arrived, both to the
        packet; None where the generator's far end does not number them.
    dropped_at : packets of the whole drive that were thrown away on the way, by where.
    delays : of those that arrived, when each was sent and how long it took, shape (n,) each, in the
        order of sending; None where nobody stamps them.
    """

    start_s: Floats
    end_s: Floats
    planned: Floats
    sent: Floats
    numbered: Floats
    received: Floats
    lost: Floats
    jitter_s: Floats
    out_of_order: int
    size_bytes: int
    dropped_by_sink: int | None = None
    duplicates: int = 0
    exact: tuple[int, int] | None = None
    dropped_at: Mapping[str, int] = field(default_factory=dict)
    delays: tuple[Floats, Floats] | None = None

    @property
    def unaccounted(self) -> int | None:
        """Packets that left and neither arrived nor were counted by whoever dropped them; None
        where that is not known to the packet."""
        if self.exact is None or self.dropped_by_sink is None:
            return None
        sent, arrived = self.exact
        return sent - arrived - self.dropped_by_sink - sum(self.dropped_at.values())


@dataclass(frozen=True)
class Copies:
    """Packets that a passive function got a copy of.

    `mirrored` left the mirror, `arrived` at the function's interface, and `captured` are those that
    it says it has processed; None where it says nothing.
    """

    mirrored: int
    arrived: int
    captured: int | None

    def since(self, earlier: Copies) -> Copies:
        captured = None
        if self.captured is not None and earlier.captured is not None:
            captured = self.captured - earlier.captured
        return Copies(self.mirrored - earlier.mirrored, self.arrived - earlier.arrived, captured)


@dataclass(frozen=True)
class Competition:
    """Who competed during a drive, and when it really did.

    Attributes
    ----------
    asked : as the configuration says it (`domain.competitors`).
    cores : on how many it competed.
    began_s, ended_s : when it was at work, on the lab's clock; infinite where it never was.
    failure : why it did not compete all the time, a sentence; empty where it did.
    """

    asked: str
    cores: int
    began_s: float
    ended_s: float
    failure: str = ""

    def standing(self, drive: Drive) -> dict[ObservedKey, float]:
        """Observations of the whole drive: seconds from its begin to when it began and ended."""
        known = {"competitor_began_s": self.began_s, "competitor_ended_s": self.ended_s}
        return {
            (COMPETITOR, name, self.asked): at_s - drive.begin_s
            for name, at_s in known.items()
            if math.isfinite(at_s)
        }


@dataclass(frozen=True)
class Drive:
    """One stretch of load at one operating point, warm-up included.

    `counters` holds at least the instants of begin and stop, in between about one a second.
    """

    begin_s: float
    stop_s: float
    """When the load stopped; requests unfinished then had waited until here."""
    records: RequestRecords
    counters: tuple[Counters, ...]
    generator: str
    kpi_definition: KpiDefinition
    connections: int
    """The most requests in flight that the generator allows itself."""
    allotted_cores: Mapping[str, float]
    """By component: quota or pinned cores; the host's cores under `host`."""
    threads: Mapping[str, int]
    """Worker threads that each function was configured with."""
    notes: tuple[str, ...] = ()
    """What the lab saw while it drove, for the event log."""
    packets: PacketCounts | None = None
    """Of a load of packets, whose `records` are empty."""
    routers: tuple[str, ...] = ()
    """Functions in which the kernel forwards, in whose name it may or may not be charged."""
    copies: Mapping[str, Copies] = field(default_factory=dict)
    """Of the whole drive, by passive function."""
    splits: tuple[Mapping[str, float], ...] = ()
    """Where traffic is split, the share that the first function of each branch is to get."""
    standing: Mapping[ObservedKey, float] = field(default_factory=dict)
    """Observations that hold for the whole drive."""
    absent: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By component and name, why an observation cannot be had."""
    competition: Competition | None = None
    """Who competed meanwhile; its counters are those of component `competitor`."""
