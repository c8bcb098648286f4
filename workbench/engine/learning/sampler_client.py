"""The engine's side of a sampler: what it was told, what it is to be told next."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workbench.domain.campaign import Campaign
from workbench.domain.errors import EngineError
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Configuration
from workbench.domain.sample_review import SampleDecided, in_force
from workbench.domain.samples import Sample
from workbench.engine.learning.guarded import SAMPLER
from workbench.engine.learning.guarded_model import MODEL
from workbench.engine.learning.pool import Pool, WorkerLost
from workbench.engine.learning.sampler_worker import Advice, SamplerQuestion
from workbench.labs.base import LabCosts

PATIENCE_S = 120.0
"""For one piece of advice, which takes well under a second; the worker is nice, the host busy."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class SamplerCase:
    """What a sampler of one target rests on, besides the target's own samples.

    Attributes
    ----------
    others : samples of the session's other targets.
    loads : of a recorded lab: those that there are.
    """

    campaign: Campaign
    target: str
    seed: int
    costs: LabCosts
    others: tuple[Sample, ...] = ()
    noise: HostNoise | None = None
    loads: Mapping[Configuration, tuple[float, ...]] = field(default_factory=dict)


class SamplerClient:
    """The sampler of one target in one run. Its state lives in the worker, its samples here."""

    def __init__(
        self,
        pool: Pool,
        case: SamplerCase,
        samples: Iterable[Sample],
        skipped: Iterable[Configuration],
    ) -> None:
        self.samples = list(samples)
        self.target = case.target
        self._pool = pool
        self._case = case
        self._skipped = list(skipped)
        self._key = f"{os.getpid()}/{next(_numbers)}/{case.target}"
        self._told = 0
        self._skips_told = 0
        self.distrusted = ""
        """Why what ships serves in the place of the campaign's sampler and model: they hung, or
        ended their process."""

    @property
    def has_news(self) -> bool:
        """A wish came that the sampler does not know of."""
        return self._skips_told < len(self._skipped)

    def revise(self, decisions: Mapping[str, SampleDecided]) -> bool:
        """Put decisions on the samples; the sampler is told all anew where one differs.

        Returns whether one does.
        """
        revised = [in_force(sample, decisions) for sample in self.samples]
        changed = revised != self.samples
        if changed:
            self.samples, self._told = revised, 0
        return changed

    def skip(self, configurations: Iterable[Configuration]) -> None:
        self._skipped.extend(c for c in configurations if c not in self._skipped)

    async def advise(self, fit: tuple[Configuration, ...] = ()) -> Advice:
        """Tell what is new; what comes next, who has ended, and fits of `fit`."""
        advice = await self._in_time(fit)
        self._told, self._skips_told = len(self.samples), len(self._skipped)
        return advice

    async def _in_time(self, fit: tuple[Configuration, ...]) -> Advice:
        asked = self._pool.advise(self._question(self._told, fit), lambda: self._question(0, fit))
        try:
            # Ours do not hang, but the worker that they are asked in starts anew.
            limit = 10 * PATIENCE_S if self.distrusted else PATIENCE_S
            return await asyncio.wait_for(asked, limit)
        except WorkerLost:
            if self.distrusted:
                raise
            trouble = "ends its worker process"
        except TimeoutError:
            if self.distrusted:
                raise EngineError(
                    f"the worker process has not answered for {10 * PATIENCE_S:g} s",
                    where=self.target,
                    remedy="Resume the session when the host is less busy",
                ) from None
            trouble = f"has not answered for {PATIENCE_S:g} s"
            self._pool.kill()
        plan = self._case.campaign.sampling
        self.distrusted = (
            f"sampler {plan.method!r} or model {plan.model!r} {trouble}; {SAMPLER!r} and {MODEL!r} "
            "take over"
        )
        self._told = 0
        return await self._in_time(fit)

    def _question(self, known: int, fit: tuple[Configuration, ...]) -> SamplerQuestion:
        return SamplerQuestion(
            key=self._key,
            campaign=self._case.campaign,
            target=self.target,
            seed=self._case.seed,
            known=known,
            samples=tuple(self.samples[known:]),
            skipped=tuple(self._skipped),
            fit=fit,
            others=() if known else self._case.others,
            noise=self._case.noise,
            distrusted=bool(self.distrusted),
            costs=self._case.costs,
            loads=self._case.loads,
        )
