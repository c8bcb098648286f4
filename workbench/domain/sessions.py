"""Sessions as lists show them, and the plan of a run before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.domain.parameters import Configuration

SessionState = Literal[
    "planned", "running", "pausing", "paused", "interrupted", "finished", "stopped", "failed"
]
"""`pausing`: it pauses once the sample that is being measured is there. `interrupted`: its engine
died; `workbench resume NAME` goes on where it stood."""

UNDER_WAY: tuple[SessionState, ...] = ("running", "pausing", "paused")
"""States of a run that has begun and has not ended."""

AT_REST: tuple[SessionState, ...] = ("finished", "stopped", "failed")
"""States of a session in which something else than its campaign may be measured."""

Outcome = Literal["done", "stopped", "aborted", "budget", "failed"]
"""How a run ended."""

TrialsOutcome = Literal[Outcome, "running", "interrupted"]
"""How trials ended; `interrupted`: their engine died, what they took is stored."""

ConfigurationOutcome = Literal[
    "converged", "max_samples", "skipped", "budget", "unusable", "stopped"
]
"""How one configuration ended; `unusable`: no valid sample could be taken."""


UNREAD = "cannot be read"


@dataclass(frozen=True)
class SessionSummary:
    """One line of `workbench ls`."""

    name: str
    state: SessionState
    campaign: str
    lab: str
    targets: tuple[str, ...]
    samples: int
    invalid: int
    created_at: float
    changed_at: float
    size_bytes: int
    path: str
    kind: Literal["session", "bundle"] = "session"
    warnings: tuple[str, ...] = ()
    """What is damaged or lost of its file, as sentences."""

    @property
    def listed_campaign(self) -> str:
        """For a column; where `campaign` says why the file cannot be read, without the reason."""
        return UNREAD if self.campaign.startswith(UNREAD) else self.campaign

    @property
    def troubles(self) -> tuple[str, ...]:
        """What a list says of it in sentences, since no column is as wide."""
        return (
            *((self.campaign,) if self.listed_campaign != self.campaign else ()),
            *self.warnings,
        )


@dataclass(frozen=True)
class PlannedConfiguration:
    """A configuration in the order of the plan, with what it may cost."""

    block: int
    target: str
    configuration: Configuration
    samples: int
    lab_s: float


@dataclass(frozen=True)
class SamplerCost:
    """What a campaign would cost with one of the registered samplers."""

    sampler: str
    samples: int
    lab_s: float
    """Deployments and bypass curves included."""
    figure: Literal["played", "scaled", "at_most", "unknown"]
    """`played`: against a stand-in of the functions; `scaled`: so on some configurations, which
    says about what all take (`note`); `at_most`: all that the plan allows; `unknown`: it cannot be
    made or breaks its contract (`note`)."""
    chosen: bool = False
    """It is the one that the campaign names."""
    note: str = ""


@dataclass(frozen=True)
class HostsPlan:
    """A campaign over so many equal hosts.

    Attributes
    ----------
    lab_s : of the host that ends last, its anchor points included.
    share_s : one host's lab time by the number of hosts.
    """

    hosts: int
    shards: int
    lab_s: float
    share_s: float


@dataclass(frozen=True)
class Plan:
    """What a campaign will cost, shown before it starts."""

    campaign: str
    lab: str
    configurations: tuple[PlannedConfiguration, ...]
    samples: int
    """At most."""
    lab_s: float
    """Estimated, deployments included."""
    most_lab_s: float = 0.0
    """If every point took its whole time-out, as the papers' fixed protocols do."""
    warnings: tuple[str, ...] = ()
    samplers: tuple[SamplerCost, ...] = ()
    """Of every registered sampler, cheapest in lab time first; only where they were asked for."""
    hosts: tuple[HostsPlan, ...] = ()
    """Over one host, two, four ...; only where they were asked for."""
    enough: HostsPlan | None = None
    """So many hosts that more would save less than a tenth, asked for or not; None: not asked."""


@dataclass(frozen=True)
class DescriptorText:
    """A descriptor as given, kept in the session; secrets are references in it, never values."""

    path: str
    text: str
