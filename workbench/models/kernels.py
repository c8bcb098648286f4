"""scikit-learn's kernels of one hyperparameter, for which a fit need not look at each step.

Their own look it up among all attributes and parameters of the kernel, several times whenever the
optimiser moves: half of the time of a fit to a few dozen samples. The figures are the same.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.gaussian_process import kernels

from workbench.models.base import Floats


class OneFigure(kernels.Kernel):  # type: ignore[misc]  # scikit-learn is untyped
    """A kernel whose one hyperparameter is free, and a number."""

    figure: ClassVar[str]

    @property
    def n_dims(self) -> int:
        return 1

    @property
    def hyperparameters(self) -> list[Any]:
        return [getattr(self, f"hyperparameter_{self.figure}")]

    @property
    def theta(self) -> Floats:
        logarithms: Floats = np.log(np.hstack([getattr(self, self.figure)]))
        return logarithms

    @theta.setter
    def theta(self, theta: Floats) -> None:
        setattr(self, self.figure, np.exp(theta[0]))


class FactorKernel(OneFigure, kernels.ConstantKernel):  # type: ignore[misc]
    figure = "constant_value"


class BellKernel(OneFigure, kernels.RBF):  # type: ignore[misc]
    figure = "length_scale"


class LineKernel(OneFigure, kernels.DotProduct):  # type: ignore[misc]
    figure = "sigma_0"


class NoiseKernel(OneFigure, kernels.WhiteKernel):  # type: ignore[misc]
    figure = "noise_level"
