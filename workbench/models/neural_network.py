"""The neural network of paper A, section 3.2, and its larger relatives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from workbench.models.base import Floats
from workbench.models.conformal import Conformal
from workbench.models.estimator import EncodedRegressor

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""


class NeuralNetwork(EncodedRegressor):
    """A multi-layer perceptron on standardised columns; the best of several seeded starts.

    Paper A finds that its error varies greatly from try to try: of `starts` networks, the one with
    the smallest training loss is kept.

    Parameters
    ----------
    layers, nodes : int, default=1, 10
        Hidden layers, and nodes in each.
    activation : str, default="tanh"
        One of scikit-learn's: `tanh`, `relu`, `logistic`, `identity`.
    learning_rate : float, optional
        Given: Adam with this rate, stopped early by a held-out tenth. None: L-BFGS, which has none
        and is the better of the two up to some ten thousand samples.
    starts : int, default=3
        Networks that are trained; above 2,000 rows only one is.
    weight_decay : float, default=1e-3
        L2 penalty.
    categorical, ceiling, random_state
        As in `workbench.models.base`.

    Attributes
    ----------
    coefficients_ : ndarray
        Weights, then biases, layer by layer.
    """

    def __init__(
        self,
        layers: int = 1,
        nodes: int = 10,
        activation: str = "tanh",
        learning_rate: float | None = None,
        starts: int = 3,
        weight_decay: float = 1e-3,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(categorical, ceiling, random_state)
        self.layers = layers
        self.nodes = nodes
        self.activation = activation
        self.learning_rate = learning_rate
        self.starts = starts
        self.weight_decay = weight_decay

    def _learner(self, Z: Floats, y: Floats) -> Any:
        starts = self.starts if len(y) <= 2000 else 1
        with warnings.catch_warnings():
            # A bounded number of iterations is part of the recipe.
            warnings.simplefilter("ignore", ConvergenceWarning)
            networks = [self._network(start, len(y)).fit(Z, y) for start in range(starts)]
        return min(networks, key=lambda network: float(network.loss_))

    def _network(self, start: int, n: int) -> MLPRegressor:
        by_rate = self.learning_rate is not None
        return MLPRegressor(
            hidden_layer_sizes=(self.nodes,) * self.layers,
            activation=self.activation,
            solver="adam" if by_rate else "lbfgs",
            learning_rate_init=self.learning_rate if by_rate else 1e-3,
            early_stopping=by_rate and n >= 50,
            alpha=self.weight_decay,
            max_iter=300,
            tol=1e-5,
            random_state=self.random_state + start,
        )

    def _coefficients(self) -> Floats | None:
        network = self.regressor_
        return np.concatenate([w.ravel() for w in (*network.coefs_, *network.intercepts_)])


def neural_network() -> Conformal:
    """Paper A's network: one hidden layer of 10 nodes."""
    return Conformal(NeuralNetwork())
