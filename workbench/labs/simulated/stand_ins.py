"""What stands in for a function, the source or the sink in the simulated lab."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from workbench.domain.errors import LabError
from workbench.domain.topology import Role, VnfTemplate
from workbench.queues.service import ServiceTime


@dataclass(frozen=True)
class StandIn:
    """Parameters of a simulated component: the keys of `VnfTemplate.simulated`.

    Attributes
    ----------
    service_us, per_kb_us : CPU of one request: µs, and µs for each kB (10^3 bytes) of its answer.
    cv : coefficient of variation of that CPU time (log-normal).
    threads : worker threads; 0 follows the allotment, max(1, ceil(vCPU)).
    buffer : requests that may be inside, those in service included; 0 for no limit. A request
        that finds it full is refused at once.
    closes : 1 if it closes every connection after an answer.
    split_writes : 1 if it writes a request in two small pieces, so that the second waits for the
        acknowledgement of the first (Nagle's algorithm).
    delayed_ack_ms : how long it holds back the acknowledgement of such a piece.
    memory_mb : resident memory, MB (10^6 bytes).
    """

    service_us: float = 50.0
    per_kb_us: float = 1.0
    cv: float = 0.3
    threads: float = 0.0
    buffer: float = 0.0
    closes: float = 0.0
    split_writes: float = 0.0
    delayed_ack_ms: float = 0.0
    memory_mb: float = 20.0

    def service(self, answer_bytes: float) -> ServiceTime:
        """CPU time of a request whose answer has that many bytes."""
        return ServiceTime((self.service_us + self.per_kb_us * answer_bytes / 1e3) * 1e-6, self.cv)

    def threads_at(self, vcpu: float) -> int:
        return int(self.threads) or max(1, math.ceil(vcpu))


MEASURED: Mapping[str, StandIn] = {
    # 15 µs per 10 kB answer; acknowledges a lone small segment after 40 ms and a little.
    "haproxy": StandIn(service_us=10.0, per_kb_us=0.5, delayed_ack_ms=44.0, memory_mb=70.0),
    # About 850 requests/s of 10 kB at 25 %: 290 µs each.
    "tinyproxy": StandIn(
        service_us=240.0, per_kb_us=5.0, closes=1.0, split_writes=1.0, memory_mb=5.0
    ),
}
"""By template name, from DESIGN.md ("The lab, as found ...") and METHOD.md 2; a template's own
`simulated` goes over these."""

BY_ROLE: Mapping[Role, StandIn] = {
    "function": StandIn(),
    "source": StandIn(service_us=40.0, per_kb_us=0.0, cv=0.2, memory_mb=30.0),
    "sink": StandIn(service_us=12.0, per_kb_us=0.0, cv=0.2, memory_mb=10.0),
}
"""For templates without a measured stand-in: oha as source, a static web server as sink."""


def stand_in(template: VnfTemplate) -> StandIn:
    """The stand-in of a template. Raises `LabError` for keys that it does not have."""
    known = [field.name for field in fields(StandIn)]
    unknown = sorted(set(template.simulated) - set(known))
    if unknown:
        raise LabError(
            f"the simulated lab knows no {', '.join(unknown)}",
            where=f"template {template.name}, simulated",
            remedy=f"Choose from: {', '.join(known)}",
        )
    base = MEASURED.get(template.name, BY_ROLE[template.role])
    return replace(base, **dict(template.simulated))


def describe(part: StandIn) -> str:
    """Its parameters as stable text, for digests."""
    return ",".join(f"{name}={value:g}" for name, value in asdict(part).items())
