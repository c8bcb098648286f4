"""The engine's side of a sampler: what it was told, what it is to be told next."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable

from workbench.domain.campaign import Campaign
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.engine.advice import Advice, Question
from workbench.engine.pool import Pool

_numbers = itertools.count(1)


class Advisor:
    """The sampler of one target in one run. Its state lives in the worker, its samples here."""

    def __init__(
        self,
        pool: Pool,
        campaign: Campaign,
        target: str,
        seed: int,
        samples: Iterable[Sample],
        skipped: Iterable[Configuration],
    ) -> None:
        self.samples = list(samples)
        self._pool = pool
        self._campaign = campaign
        self.target = target
        self._seed = seed
        self._skipped = list(skipped)
        self._key = f"{os.getpid()}/{next(_numbers)}/{target}"
        self._told = 0
        self._skips_told = 0

    @property
    def has_news(self) -> bool:
        """A wish came that the sampler does not know of."""
        return self._skips_told < len(self._skipped)

    def skip(self, configurations: Iterable[Configuration]) -> None:
        self._skipped.extend(c for c in configurations if c not in self._skipped)

    async def advise(self, fit: tuple[Configuration, ...] = ()) -> Advice:
        """Tell what is new; what comes next, who has ended, and fits of `fit`."""
        advice = await self._pool.advise(
            self._question(self._told, fit), lambda: self._question(0, fit)
        )
        self._told, self._skips_told = len(self.samples), len(self._skipped)
        return advice

    def _question(self, known: int, fit: tuple[Configuration, ...]) -> Question:
        return Question(
            key=self._key,
            campaign=self._campaign,
            target=self.target,
            seed=self._seed,
            known=known,
            samples=tuple(self.samples[known:]),
            skipped=tuple(self._skipped),
            fit=fit,
        )
