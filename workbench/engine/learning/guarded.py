"""A sampler under watch: one that breaks its contract is named, and one that ships takes over."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from workbench import plugins
from workbench.domain.campaign import Campaign
from workbench.domain.errors import PluginError, PluginUnknown, WorkbenchError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.sampling.base import Ask, Ending, Sampler, Space
from workbench.sampling.guard import complaint

SAMPLER, MODEL = "bisection", "gaussian-process"
"""What takes over: Algorithms 1 and 2 of paper B, and the model behind them."""

T = TypeVar("T")


class GuardedSampler:
    """The sampler that a campaign names, until it raises or asks for what cannot be measured.

    Parameters
    ----------
    distrusted : it has hung before; the stand-in serves from the start.

    Attributes
    ----------
    set_aside : why the stand-in serves, as a sentence; empty while the campaign's own does.

    Raises
    ------
    WorkbenchError
        If the sampler refuses the campaign: that is a mistake of the campaign.
    """

    def __init__(self, campaign: Campaign, space: Space, *, distrusted: bool = False) -> None:
        self._campaign, self._space = campaign, space
        self._samples: list[Sample] = []
        self._skipped: list[Configuration] = []
        self.set_aside = ""
        self._own = not distrusted
        if distrusted:
            self._sampler = _made(SAMPLER, MODEL, campaign, space)
            return
        sampling = campaign.sampling
        try:
            self._sampler = _made(sampling.method, sampling.model, campaign, space)
        except PluginUnknown:  # it is to be installed, or another one named
            raise
        except PluginError as error:
            self._replace(error.what)

    def tell(self, samples: Sequence[Sample]) -> None:
        self._samples.extend(samples)
        if self._own:
            self._trying(lambda: self._sampler.tell(samples), lambda: None)
        else:
            self._sampler.tell(samples)

    def skip(self, configuration: Configuration) -> None:
        self._skipped.append(configuration)
        if self._own:
            self._trying(lambda: self._sampler.skip(configuration), lambda: None)
        else:
            self._sampler.skip(configuration)

    def ask(self) -> Ask | None:
        return self._trying(self._own_ask, self._stand_in_ask)

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        return self._trying(self._endings, self._endings)

    def _own_ask(self) -> Ask | None:
        ask = self._sampler.ask()
        if ask is not None and (wrong := complaint(ask, self._space, self._samples)):
            raise PluginError(wrong)
        return ask

    def _stand_in_ask(self) -> Ask | None:
        """It counts its blocks from 0, whatever was deployed before it took over."""
        ask = self._sampler.ask()
        if ask is None:
            return None
        return replace(ask, block=max([ask.block, *(s.block for s in self._samples)]))

    def _endings(self) -> Mapping[Configuration, Ending]:
        return dict(self._sampler.endings)

    def _trying(self, attempt: Callable[[], T], instead: Callable[[], T]) -> T:
        """`attempt`; where the campaign's own sampler fails at it, `instead`, by the stand-in."""
        if not self._own:
            return instead()
        try:
            return attempt()
        except PluginError as error:
            self._replace(error.what)
        except plugins.FAILURES as error:
            self._replace(f"raises {type(error).__name__}: {error}")
        return instead()

    def _replace(self, trouble: str) -> None:
        """The stand-in goes on with all that was told and skipped."""
        self._own = False
        name = self._campaign.sampling.method
        self.set_aside = f"the sampler {name!r} {trouble}; {SAMPLER!r} takes over"
        self._sampler = _made(SAMPLER, MODEL, self._campaign, self._space)
        self._sampler.tell(self._samples)
        for configuration in self._skipped:
            self._sampler.skip(configuration)


def _made(method: str, model: str, campaign: Campaign, space: Space) -> Sampler:
    kind = plugins.load("samplers", method)
    try:
        if "model_factory" in inspect.signature(kind).parameters:
            # The science rooms know the built-in models only; a plugin's is handed in.
            factory = plugins.load("models", model)
            sampler: Sampler = kind(space, campaign.sampling, model_factory=factory)
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
