"""How long, and how often, a dispatch waits for hosts before it goes on without them."""

from __future__ import annotations

TICK_S = 0.2
RETURN_S = 120.0
"""How long a shard waits for the host that began it, once that is gone: longer than a keeper pauses
before it starts a worker again (`keeper.LONGEST_PAUSE_S`), reaches it (`remote_shell.CONNECT_S`)
and has it checked (`lab_checks.CHECKING_S`). It may have finished the shard, and nobody but itself
can say so; others have other shards to measure meanwhile. What is meant for a host that waits for
its turn waits as long.
"""
ABSENT_S = 180.0
"""How long a fleet may be without any host before a run that never had one ends, and before one
that had is told to wait."""
ABSENT_AGAIN_S = 1800.0
"""After how long that is told again."""
LONGEST_ABSENT_S = 12 * 3600.0
"""How long such a run waits: a night."""
TRIES = 3
"""Hosts on which a shard may fail before it is set aside, or all that the fleet has; those that
fail whatever they are given do not count."""
KEPT_PAUSE_S = 30.0
"""Before a host is asked again for a shard that it has measured and that could not be had."""
KEPT_S = 120.0
"""For how long that is tried once nothing else is left."""
OWN_TRIES, OWN_PAUSE_S = 3, 30.0
"""How often a host tries what no other can measure for it, and after which pause: its own anchor
points, before which it measures nothing else, and points that were planned for it."""
STOPPING_S = 30.0
"""How long hosts may take to end what they measure where a campaign is stopped."""
SENDING_S = 600.0
"""How long a host may take to send a piece of a bundle, 16 MiB at most, once it measures nothing:
its disk may hang."""
