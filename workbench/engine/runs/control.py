"""What users want of a run: pause, go on, stop, abort, skip. The run reads it between samples."""

from __future__ import annotations

import asyncio

from workbench.domain.parameters import Configuration

Place = tuple[str, Configuration]
"""A target's name and one of its configurations."""


class Control:
    """Wishes, and a bell that rings with each of them."""

    def __init__(self) -> None:
        self.paused_by: str | None = None
        """Who paused it; None while it may run."""
        self.continued_by = ""
        self.holds = False
        """It has paused, and not only been asked to."""
        self.stop = False
        self.abort = False
        self.interrupted = False
        """The engine is ending; the run can be resumed."""
        self.measuring: Place | None = None
        self.revised = False
        """Somebody decided about samples: what the sampler was told is not so any more."""
        self._skips: list[Place] = []
        self._bell = asyncio.Event()

    @property
    def ending(self) -> bool:
        return self.stop or self.abort or self.interrupted

    def on_hold(self) -> bool:
        """Paused, and nobody wants the run to end."""
        return self.paused_by is not None and not self.ending

    def ring(self) -> None:
        self._bell.set()

    async def rung(self, timeout: float) -> None:
        """Wait for the next wish, at most `timeout` seconds."""
        self._bell.clear()
        try:
            await asyncio.wait_for(self._bell.wait(), timeout)
        except TimeoutError:
            return

    def revise(self) -> None:
        """Samples count otherwise from now on."""
        self.revised = True
        self.ring()

    def skip(self, place: Place) -> None:
        if place not in self._skips:
            self._skips.append(place)

    def skipped(self, target: str) -> tuple[Configuration, ...]:
        """The configurations of a target that the user wants no more of."""
        return tuple(c for t, c in self._skips if t == target)
