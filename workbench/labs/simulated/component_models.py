"""What stands in for a function, the source or the sink in the simulated lab."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from workbench.domain.errors import LabError
from workbench.domain.topology import VnfTemplate
from workbench.queues.service import ServiceTime


@dataclass(frozen=True)
class ComponentModel:
    """Parameters of a simulated component: the keys of `VnfTemplate.simulated`.

    The defaults stand in for a function that nobody measured; what was measured is in the
    templates, and only there (`benchmarks/calibrate_simulation.py`).

    Attributes
    ----------
    service_us, per_kb_us : CPU of one request: µs, and µs for each kB (10^3 bytes) of its answer.
    cv : coefficient of variation of that CPU time (log-normal).
    threads : worker threads; 0 follows the allotment, max(1, ceil(vCPU)).
    buffer : requests that may be inside, those in service included; 0 for no limit. A request
        that finds it full is refused at once.
    closes : 1 if it closes every connection after an answer.
    connection_us : CPU that it costs this component, µs per request, when what lies before or
        behind it closes every connection.
    split_writes : 1 if it writes a request in two small pieces, so that the second waits for the
        acknowledgement of the first (Nagle's algorithm).
    delayed_ack_ms : how long it holds back the acknowledgement of such a piece.
    memory_mb : resident memory, MB (10^6 bytes).

    blocks : 1 if what finds the buffer full waits, and meanwhile keeps its place in the function
        before (back-pressure), instead of being refused.
    sheds : 1 if what finds the buffer full is answered at once with status 503.
    alpha : capacity grows with v^alpha (option `capacity_law` `power`).
    serial, coherence : of Gunther's law (`capacity_law` `scalability`).
    stops_at : vCPUs from which on more are of no use; 0 for none.
    steps : 1 if above one vCPU only whole ones are of use.
    loses_from, loses_share : with that many vCPUs and more, this share of capacity is lost.
    effect_sd : log-sd of a factor on capacity per configuration, which follows no law.
    plateau : share of its allotment that it can use at most, as something else than CPU limits it.
    knee_width : w: from 1-2w times its capacity on it slows down, so that throughput bends from
        the offered load at 1-w to its plateau at 1+w.
    decay : share of capacity lost at twice the load that it carries.
    recovers_below : 0, or the share of capacity under which load must fall before a function that
        was overloaded carries more than 1-decay again. It remembers the drives of a deployment.
    cold_factor : response time at the least load over the one at four clients (open loop: at a
        quarter of capacity).
    """

    service_us: float = 50.0
    per_kb_us: float = 1.0
    cv: float = 0.3
    threads: float = 0.0
    buffer: float = 0.0
    closes: float = 0.0
    connection_us: float = 0.0
    split_writes: float = 0.0
    delayed_ack_ms: float = 0.0
    memory_mb: float = 20.0
    blocks: float = 0.0
    sheds: float = 0.0
    alpha: float = 1.0
    serial: float = 0.05
    coherence: float = 0.01
    stops_at: float = 0.0
    steps: float = 0.0
    loses_from: float = 4.0
    loses_share: float = 0.0
    effect_sd: float = 0.0
    plateau: float = 1.0
    knee_width: float = 0.0
    decay: float = 0.0
    recovers_below: float = 0.0
    cold_factor: float = 1.0

    def service(self, answer_bytes: float, connections: float = 0.0) -> ServiceTime:
        """CPU time of a request whose answer has that many bytes and which opens that many
        connections that are not kept."""
        cpu_us = self.service_us + self.per_kb_us * answer_bytes / 1e3
        return ServiceTime((cpu_us + self.connection_us * connections) * 1e-6, self.cv)

    def threads_at(self, vcpu: float) -> int:
        return int(self.threads) or max(1, math.ceil(vcpu))


STAND_IN_KEYS = tuple(field.name for field in fields(ComponentModel))


def stand_in(template: VnfTemplate, over: Mapping[str, float] | None = None) -> ComponentModel:
    """The stand-in of a template, with the keys of `over` instead of its own.

    Raises `LabError` for keys that it does not have.
    """
    unknown = sorted(set(template.simulated) - set(STAND_IN_KEYS))
    if unknown:
        raise LabError(
            f"the simulated lab knows no {', '.join(unknown)}",
            where=f"template {template.name}, simulated",
            remedy=f"Choose from: {', '.join(STAND_IN_KEYS)}",
        )
    part = ComponentModel(**{**template.simulated, **(over or {})})
    for key, holds, remedy in (
        ("decay", part.decay < 1.0, "a share below 1"),
        ("knee_width", part.knee_width <= 0.5, "at most 0.5"),
        ("plateau", 0.0 < part.plateau <= 1.0, "a share above 0, at most 1"),
        ("loses_share", part.loses_share < 1.0, "a share below 1"),
    ):
        if not holds:
            raise LabError(
                f"{key} is {getattr(part, key):g}",
                where=f"template {template.name}, simulated",
                remedy=f"Give {remedy}",
            )
    return part


def describe(part: ComponentModel) -> str:
    """Its parameters as stable text, for digests."""
    return ",".join(f"{name}={value:g}" for name, value in asdict(part).items())
