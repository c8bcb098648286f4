"""What comes of a dispatch: sentences meanwhile, and of each shard its bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workbench.domain.fleets import ShardOrder, ShardResult

Tell = Callable[[str], None]
"""Say a sentence to whoever gave the command."""


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
