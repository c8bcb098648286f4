"""A model under watch: what it does wrong is its own failure, not that of the sampler that asks it.

The one that takes over is not watched: there is none to take over from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from workbench import plugins
from workbench.domain.errors import PluginError, PluginUnknown, WorkbenchError
from workbench.models.base import Floats, ProfileModel

MODEL = "gaussian-process"
"""What takes over from a model that fails."""


class ModelFailed(PluginError):
    """A model broke its contract; `what` is the end of a sentence that begins with its name."""


class GuardedModel:
    """A model that raises `ModelFailed` and nothing else, and predicts what is finite.

    Parameters
    ----------
    factory : makes the model, unfitted.
    """

    def __init__(self, factory: Callable[[], ProfileModel]) -> None:
        with _blamed():
            self._model = factory()

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        with _blamed():
            self._model = self._model.fit(X, y, noise)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        with _blamed():
            return _sound(self._model.predict(X), X)

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        with _blamed():
            low, high = self._model.predict_band(X)
            return _sound(low, X), _sound(high, X)


def model_factory(name: str) -> Callable[[], ProfileModel]:
    """What makes the model of that name. Raises `PluginUnknown`, or `ModelFailed` if it cannot be
    loaded."""
    if name == MODEL:
        shipped: Callable[[], ProfileModel] = plugins.load("models", name)
        return shipped
    try:
        return partial(GuardedModel, plugins.load("models", name))
    except PluginUnknown:  # it is to be installed, or another one named
        raise
    except PluginError as error:
        raise ModelFailed(said(error, name)) from error


def takes_over(name: str, error: BaseException) -> str:
    """That a model is set aside, and why, as a sentence."""
    return f"the model {name!r} {said(error, name)}; {MODEL!r} takes over"


def said(error: BaseException, name: str) -> str:
    """What a plugin of that name did, as the end of a sentence that begins with its name."""
    if isinstance(error, PluginError):
        return error.what.removeprefix(f"{name!r} ")
    return _raises(error)


def _raises(error: BaseException) -> str:
    sentence = error.what if isinstance(error, WorkbenchError) else error
    return f"raises {type(error).__name__}: {sentence}"


@contextmanager
def _blamed() -> Iterator[None]:
    try:
        yield
    except ModelFailed:
        raise
    except plugins.FAILURES as error:
        raise ModelFailed(_raises(error)) from error


def _sound(predicted: ArrayLike, X: ArrayLike) -> Floats:
    got = np.asarray(predicted, dtype=float)
    if got.shape != np.shape(X)[:1]:
        raise ModelFailed("does not predict one number for each row")
    if not np.all(np.isfinite(got)):
        raise ModelFailed("predicts what is not finite")
    return got
