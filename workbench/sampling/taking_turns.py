"""What samplers have in common that follow each configuration by itself, one after another.

Configurations take turns in rounds, each round in its own seeded order, because an allocation is
changed in place and neighbouring samples share the drift of the host (METHOD.md 1).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.sampling.base import Ending, Space


class ConfigurationTrack(Protocol):
    """What is known of one configuration; a pure function of the samples it has observed."""

    configuration: Configuration
    taken: int

    @property
    def ending(self) -> Ending | None: ...

    def observe(self, sample: Sample) -> None: ...


T = TypeVar("T", bound=ConfigurationTrack)


class TakingTurns(Generic[T]):
    """The base of such samplers: what they are told, and whose turn it is.

    Parameters
    ----------
    space : target, configurations and range.
    tracks : by configuration.
    """

    def __init__(self, space: Space, tracks: Mapping[Configuration, T]) -> None:
        self.space = space
        self._tracks = tracks
        self._skipped: set[Configuration] = set()

    def tell(self, samples: Sequence[Sample]) -> None:
        """New samples, valid or not, in the order they were taken; strangers are ignored."""
        for sample in samples:
            track = self._tracks.get(sample.point.configuration)
            in_range = self.space.primary.low <= sample.point.wl <= self.space.primary.high
            if track and sample.point.target == self.space.target and in_range:
                track.observe(sample)

    def skip(self, configuration: Configuration) -> None:
        """The user wants no more of it."""
        self._skipped.add(configuration)

    def _following(self) -> T | None:
        """Whose turn it is; None when every configuration has ended. It changes nothing."""
        active = [t for c, t in self._tracks.items() if c not in self._skipped and not t.ending]
        if not active:
            return None
        turn = min(track.taken for track in active)
        waiting = [track for track in active if track.taken == turn]
        order = [c.key for c in self._tracks]
        random.Random(f"{self.space.seed}/{self.space.target}/{turn}").shuffle(order)
        return min(waiting, key=lambda track: order.index(track.configuration.key))

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations that need no more samples."""
        found: dict[Configuration, Ending] = {}
        for configuration, track in self._tracks.items():
            if ending := track.ending:
                found[configuration] = ending
            elif configuration in self._skipped:
                found[configuration] = Ending("skipped", f"skipped after {track.taken} samples")
        return found
