"""What a campaign may ask to be recorded of every function beside what is collected anyway."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from workbench.domain.campaign import EvidenceKind
from workbench.measuring.records import Floats
from workbench.probes import kernel_trace, perf_stat
from workbench.probes.cgroup import CgroupFolders


class Recorder(Protocol):
    """Records one function from `begin` to `end`; neither raises.

    It ends with this process however that ends.

    Attributes
    ----------
    absent : what was not recorded, by observable, and why.
    """

    absent: dict[str, str]

    async def begin(self) -> None: ...

    async def end(self) -> None: ...

    def at(self, at_s: Floats) -> dict[tuple[str, str], Floats]:
        """Counts so far at instants of the monotonic clock, by observable and detail."""
        ...


RecorderOf = Callable[[CgroupFolders], Recorder]
"""Of a function, by its control group. Raises `OSError` where it has ended."""


async def asked_for(evidence: EvidenceKind, warmup_s: float) -> RecorderOf | None:
    """What a campaign asks for, on this host; None where it asks for nothing.

    Parameters
    ----------
    warmup_s : from when on after the begin of the load samples count.
    """
    if evidence == "perf":
        return partial(perf_stat.PerfReader.of, await perf_stat.here())
    if evidence == "trace":
        return partial(kernel_trace.TraceReader.of, warmup_s)
    return None
