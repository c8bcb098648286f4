"""What a dispatch knows of a shard that is not measured, and of a host that is there."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import ShardOrder, ShardResult
from workbench.fleet import patience

MOST_NAMED = 3
"""Configurations that are named of a shard."""


@dataclass
class OpenShard:
    """A shard that is not measured: which host has begun it, and where it failed."""

    order: ShardOrder
    host: str = ""
    """That has begun it, and may have finished it; empty: none."""
    bound: str = ""
    """The host that alone may measure it; empty: any."""
    meant_for: str = ""
    """A host that is to begin it, which is waited for where it comes late; empty: any."""
    failures: dict[str, str] = field(default_factory=dict)
    tries: int = 0
    """How often it failed on the host whose own it is."""
    kept: WorkbenchError | None = None
    """Why it is not here, though `host` has measured it: no other host measures it again."""
    again: float = 0.0
    """When that is tried again."""
    result: ShardResult | None = None
    """What `host` said of it then."""
    is_damaged: bool = False
    """Whether its bundle is: `host`, which has the session, exports it again."""
    alone: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)
    """Two hosts may have it: one bundle is fetched at a time."""

    def __str__(self) -> str:
        """What is missing of it, and why."""
        shard = self.order.shard
        why = next(iter(self.failures.values()), "no host has begun it")
        return f"{shard.target} {', '.join(shard.configurations)}: {why}"

    def give_to(self, host: str) -> None:
        """Forget what another one has of it, which is lost."""
        if self.host != host:
            self.kept, self.result = None, None

    @property
    def named(self) -> str:
        """Its target and the first of its configurations."""
        shard = self.order.shard
        more = len(shard.configurations) - MOST_NAMED
        first = ", ".join(shard.configurations[:MOST_NAMED])
        return f"{shard.target} {first}" + (f" and {more} more" if more > 0 else "")


@dataclass
class Hand:
    """A host that is there."""

    name: str
    address: str
    waiting: OpenShard | None = None
    task: asyncio.Task[None] | None = None
    asked: bool = False
    """Whether it has said what it has finished."""
    began: float = 0.0
    """Seconds since the epoch when it was given what it measures, or has had its turn for that."""
    waits_since: float | None = None
    """Since when it waits for its turn there, or is asked what it has finished, by the loop's
    clock; None: it does neither."""
    waits_for: str = ""
    """Who measures there before it may, or may say what it has, as words; empty: nobody that is
    known."""
    asked_at: float = math.inf
    """When it was asked what it has finished, or said last whom it measures for first, by the
    loop's clock; infinite: it has answered, or was not asked yet."""
    ahead_s: float = 0.0
    """By how much its clock is ahead of this host's, at least; negative: behind."""
    losses: int = 0
    """How often what it measured was lost in a row, though its worker stayed."""

    def waited_s(self, now: float) -> float:
        """For how long it has waited so, seconds; somebody else may have the host for hours."""
        return now - self.waits_since if self.waits_since is not None else 0.0

    def is_silent(self, now: float) -> bool:
        """Whether it is there, was asked what it has finished and says neither that nor whom it
        measures for first."""
        return not self.waits_for and now - self.asked_at >= patience.RETURN_S
