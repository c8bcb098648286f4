"""A sampler under watch: one that breaks its contract is named, and one that ships takes over."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from workbench import plugins
from workbench.domain.campaign import Campaign
from workbench.domain.errors import PluginError, PluginUnknown, WorkbenchError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.engine.learning.guarded_model import (
    MODEL,
    ModelFailed,
    model_factory,
    said,
    takes_over,
)
from workbench.sampling.base import Ask, Ending, Sampler, Space, planned_blocks
from workbench.sampling.guard import complaint

SAMPLER = "bisection"
"""What takes over: Algorithms 1 and 2 of paper B, with the model that takes over from others."""

T = TypeVar("T")


class GuardedSampler:
    """The sampler that a campaign names, until it raises or asks for what cannot be measured.

    A model of the campaign that fails while a sampler asks it is replaced as well; the sampler
    stays, made anew with the model that ships and told again what it knew.

    Parameters
    ----------
    distrusted : it has hung before; the stand-ins serve from the start.

    Attributes
    ----------
    set_aside : why the stand-in serves, as a sentence; empty while the campaign's own does.
    model_set_aside : the same of the model.

    Raises
    ------
    WorkbenchError
        If the sampler refuses the campaign: that is a mistake of the campaign.
    """

    def __init__(self, campaign: Campaign, space: Space, *, distrusted: bool = False) -> None:
        self._campaign, self._space = campaign, space
        self._samples: list[Sample] = []
        self._skipped: list[Configuration] = []
        self.set_aside = self.model_set_aside = ""
        self._own = not distrusted
        if distrusted:
            self._make(SAMPLER, MODEL)
            return
        sampling = campaign.sampling
        try:
            try:
                self._make(sampling.method, sampling.model)
            except ModelFailed as error:
                self._replace_model(error)
        except PluginUnknown:  # it is to be installed, or another one named
            raise
        except PluginError as error:
            self._replace(error)

    def tell(self, samples: Sequence[Sample]) -> None:
        self._samples.extend(samples)
        self._trying(lambda: self._sampler.tell(samples), _heard)

    def skip(self, configuration: Configuration) -> None:
        self._skipped.append(configuration)
        self._trying(lambda: self._sampler.skip(configuration), _heard)

    def ask(self) -> Ask | None:
        return self._trying(self._ask, self.ask)

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        return self._trying(lambda: dict(self._sampler.endings), lambda: self.endings)

    def _ask(self) -> Ask | None:
        ask = self._sampler.ask()
        if ask is None:
            return None
        if not self._own:  # the stand-in counts its blocks from 0, whatever was deployed before
            return replace(ask, block=max([ask.block, *(s.block for s in self._samples)]))
        planned = planned_blocks(type(self._sampler), self._campaign.sampling)
        if wrong := complaint(ask, self._space, self._samples, planned):
            raise PluginError(wrong)
        return ask

    def _trying(self, attempt: Callable[[], T], again: Callable[[], T]) -> T:
        """`attempt`; where the campaign's own sampler or model fails at it, `again` after that.

        Who takes over has heard all that was told and skipped.
        """
        if not self._own:
            return attempt()
        try:
            return attempt()
        except ModelFailed as error:
            self._trying(partial(self._replace_model, error), _heard)
        except plugins.FAILURES as error:
            self._replace(error)
        return again()

    def _replace_model(self, error: ModelFailed) -> None:
        sampling = self._campaign.sampling
        self.model_set_aside = takes_over(sampling.model, error)
        self._make(sampling.method, MODEL)

    def _replace(self, error: BaseException) -> None:
        self._own = False
        name = self._campaign.sampling.method
        self.set_aside = f"the sampler {name!r} {said(error, name)}; {SAMPLER!r} takes over"
        self._make(SAMPLER, MODEL)

    def _make(self, method: str, model: str) -> None:
        """A sampler that goes on with all that was told and skipped."""
        self._sampler = _made(method, model, self._campaign, self._space)
        if self._samples:
            self._sampler.tell(self._samples)
        for configuration in self._skipped:
            self._sampler.skip(configuration)


def _heard() -> None:
    """Nothing is left to be done."""


def _made(method: str, model: str, campaign: Campaign, space: Space) -> Sampler:
    kind = plugins.load("samplers", method)
    try:
        if "model_factory" in inspect.signature(kind).parameters:
            # The science rooms know the built-in models only; a plugin's is handed in.
            sampler: Sampler = kind(space, campaign.sampling, model_factory=model_factory(model))
        else:
            sampler = kind(space, campaign.sampling)
    except WorkbenchError:
        raise
    except plugins.FAILURES as error:
        raise PluginError(
            f"cannot be made: {type(error).__name__}: {error}",
            where=f"sampler {method!r}",
        ) from error
    return sampler
