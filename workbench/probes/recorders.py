"""What a campaign may ask to be recorded of every function beside what is collected anyway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from workbench.domain.campaign import EvidenceKind
from workbench.measuring.records import Floats
from workbench.probes import kernel_trace, perf_stat, resctrl
from workbench.probes.cgroup import CgroupFolders


class Recorder(Protocol):
    """Records one function from `begin` to `end`; neither raises.

    It ends with this process however that ends.

    Attributes
    ----------
    absent : what was not recorded, by observable, and why.
    """

    @property
    def absent(self) -> dict[str, str]: ...

    async def begin(self) -> None: ...

    async def end(self) -> None: ...

    def at(self, at_s: Floats) -> dict[tuple[str, str], Floats]:
        """Counts so far at instants of the monotonic clock, by observable and detail."""
        ...


class Recorders:
    """Several of one function, as one."""

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = recorders

    @property
    def absent(self) -> dict[str, str]:
        return {name: why for one in self._recorders for name, why in one.absent.items()}

    async def begin(self) -> None:
        for one in self._recorders:
            await one.begin()

    async def end(self) -> None:
        await asyncio.gather(*(one.end() for one in self._recorders))

    def at(self, at_s: Floats) -> dict[tuple[str, str], Floats]:
        """See `Recorder`."""
        return {key: counts for one in self._recorders for key, counts in one.at(at_s).items()}


RecorderOf = Callable[[CgroupFolders], Recorder]
"""Of a function, by its control group. Raises `OSError` where it has ended."""


async def asked_for(evidence: EvidenceKind, warmup_s: float) -> RecorderOf | None:
    """What a campaign asks for, on this host; None where it asks for nothing.

    Parameters
    ----------
    warmup_s : from when on after the begin of the load samples count.
    """
    if evidence == "perf":
        here = await perf_stat.here()
        return lambda folders: Recorders(
            perf_stat.PerfReader.of(here, folders), resctrl.ResctrlReader.of(folders)
        )
    if evidence == "trace":
        return partial(kernel_trace.TraceReader.of, warmup_s)
    return None
