"""Facts about a lab host, what the doctor found there, and how both are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.domain.parameters import ParameterValue
from workbench.domain.requests import Command, Query

ASSUMED = "assumed"
"""Among a host's details: what figures rest on that nobody measured, as a sentence."""
EMULATED = "emulated"
"""Among a host's details: what emulated the CPU of its functions; absent where none was."""
OPTIONS = "options"
"""Among a host's details: the options of its lab, each stated."""
SIMULATION = "sim"
"""What the simulated lab calls itself. It stands in where nobody named a lab and the real one
cannot be made ready."""
WHY_THIS_LAB = "why_this_lab"
"""Among a simulated host's details: `chosen`, or `stands in`; absent in sessions up to 0.6."""

OHA_LATER = "is built for later sessions while nothing is measured"
"""What the log of a session says that had to do without oha, the best of the generators."""


@dataclass(frozen=True)
class HostFacts:
    """What a sample's host was: stored with every session."""

    lab: str
    cores: int
    memory_bytes: int
    kernel: str
    cpu_model: str
    cgroup: Literal["v1", "v2", "none"]
    engine: str
    """Container engine and its version; `none` in the simulated lab."""
    image_digests: Mapping[str, str]
    """By template name; a session never mixes two digests (decision 5)."""
    details: Mapping[str, str]
    """Offload settings, governor, conntrack table, seed ... as text."""

    @property
    def is_simulated(self) -> bool:
        """Whether no real function was ever loaded; of a recording: when it was made."""
        return self.lab == SIMULATION

    @property
    def is_emulated(self) -> bool:
        """Whether every instruction of its functions was emulated: their figures meet no others."""
        return EMULATED in self.details

    @property
    def caveats(self) -> tuple[str, ...]:
        """What every answer that rests on its samples has to say, as sentences."""
        simulated = "this rests on a simulation: no real function was measured"
        emulated = f"this rests on an emulated CPU ({self.details.get(EMULATED)}): no real one "
        said = (
            simulated if self.is_simulated else "",
            f"{emulated}is that slow" if self.is_emulated else "",
            self.details.get(ASSUMED, ""),
        )
        return tuple(filter(None, said))


@dataclass(frozen=True)
class BypassPoint:
    """Source to sink without functions, at one load."""

    wl: float
    throughput_rps: float
    mean_ms: float
    p95_ms: float
    limited_by: str = ""
    """The finding that says that source, sink or host could not do more; empty below that."""
    busy_host: bool = False
    """The host was saturated, and neither source nor sink: they may carry more than this."""


@dataclass(frozen=True)
class BypassCurve:
    """What source and sink can do on their own (METHOD.md 4), measured once per session and kind.

    A kind is a generator, a load model, whether connections are kept, and the workload parameters.
    """

    generator: str
    load_model: str
    keep_alive: bool
    workload: Mapping[str, ParameterValue]
    points: tuple[BypassPoint, ...]
    """By rising `wl`."""


@dataclass(frozen=True)
class HostNoise:
    """What one point, measured again and again, showed of a lab's own noise: `doctor --measure`.

    Standard deviations are of log figures. `window_sd` is between samples on one deployment that
    follow each other, `restart_sd` what a new deployment adds, `drift_sd` what minutes add. The
    interleaved pairs of the A/A run are what `smallest_difference` rests on.
    """

    lab: str
    generator: str
    measured_at: float
    """Seconds since the epoch."""
    samples: int
    """Per operating point of the run, on all deployments."""
    deployments: int
    window_sd: Mapping[str, float]
    """By KPI (`throughput_rps`, `mean_ms`, `p95_ms`)."""
    restart_sd: Mapping[str, float]
    drift_sd: Mapping[str, float]
    smallest_difference: Mapping[str, float]
    """By KPI: the relative difference between two sessions under which nothing is claimed."""
    source_limit_rps: float
    """What generator and bare sink carried between them; 0 where the lab has no such path."""
    cpu_model: str = ""
    cores: int = 0
    """Of the host that it was measured on, as in `HostFacts`: it says nothing of another one."""

    def in_words(self) -> str:
        """The smallest visible differences: `6.1% (throughput_rps), 9.0% (mean_ms), ...`."""
        return ", ".join(f"{d:.1%} ({kpi})" for kpi, d in self.smallest_difference.items())


CheckState = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Check:
    """One line of `workbench doctor`."""

    name: str
    state: CheckState
    found: str
    remedy: str = ""


HOST_NOISE = "host-noise"
"""What stands in a session's place while `MeasureHost` holds the host."""


@dataclass(frozen=True)
class HostMeasured:
    noise: HostNoise
    checks: tuple[Check, ...]
    """What the generator self-test found."""


@dataclass(frozen=True)
class MeasureHost(Command[HostMeasured]):
    """Generator self-test and A/A run; what it finds is kept for every later session on this lab.

    Reply: `HostMeasured`. It holds the host's measuring lock and takes minutes; `EngineStatus`
    says how far it is, and `StopRun(HOST_NOISE)` ends it.
    """

    lab: str | None = None
    seed: int = 1
    pairs: int = 10


@dataclass(frozen=True)
class Examined:
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class RunDoctor(Query[Examined]):
    """Reply: `Examined`."""


@dataclass(frozen=True)
class Reaped:
    removed: tuple[str, ...]


@dataclass(frozen=True)
class ReapStrays(Command[Reaped]):
    """Remove containers and networks of dead sessions. Reply: `Reaped`."""


def short_digest(digest: str) -> str:
    """Of an image, as `docker images` shows it."""
    return digest.removeprefix("sha256:")[:12]
