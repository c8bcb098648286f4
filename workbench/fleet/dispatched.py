"""What a shard came to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.domain.fleets import ShardOrder, ShardResult


@dataclass(frozen=True)
class Gathered:
    """A shard that was measured, and its bundle on this host."""

    order: ShardOrder
    result: ShardResult
    bundle: Path
    wall_s: float = 0.0
    """Seconds on the clock that it took; 0 where it was finished before."""
    ahead_s: float = 0.0
    """Of its host's clock."""
