"""Kernels that a fit need not look at: the figures are those of scikit-learn's own, bit by bit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from workbench.models.base import Floats
from workbench.models.estimator import one_thread
from workbench.models.gaussian_process import GaussianProcess
from workbench.models.kernels import BellKernel, FactorKernel, LineKernel, NoiseKernel
from workbench.models.scales import NORMAL_95

PAIRS = [
    (FactorKernel(2.0, (1e-2, 1e3)), ConstantKernel(2.0, (1e-2, 1e3))),
    (BellKernel(0.3, (0.03, 10.0)), RBF(0.3, (0.03, 10.0))),
    (LineKernel(0.5, (1e-2, 1e2)), DotProduct(0.5, (1e-2, 1e2))),
    (NoiseKernel(1e-2, (1e-6, 1.0)), WhiteKernel(1e-2, (1e-6, 1.0))),
]


def sound(n: int, columns: int) -> tuple[Floats, Floats]:
    draw = np.random.default_rng(n)
    X = draw.random((n, columns))
    return X, np.sin(4.0 * X[:, 0]) + draw.normal(0.0, 0.05, n)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_each_has_the_hyperparameter_of_the_kernel_that_it_is(ours: Any, theirs: Any) -> None:
    assert ours.hyperparameters == theirs.hyperparameters
    assert ours.n_dims == theirs.n_dims == 1
    assert np.array_equal(ours.bounds, theirs.bounds)
    assert ours.get_params() == theirs.get_params()
    for kernel in (ours, theirs):
        kernel.theta = kernel.theta + 0.7
    assert np.array_equal(clone(ours).theta, theirs.theta)
    X, _ = sound(7, 2)
    for found, wanted in zip(
        ours(X, eval_gradient=True), theirs(X, eval_gradient=True), strict=True
    ):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("n", "columns"), [(4, 1), (30, 2)])
def test_a_fit_climbs_to_the_same_kernel(n: int, columns: int) -> None:
    X, y = sound(n, columns)
    signal, noise = (1.0, (1e-2, 1e3)), (1e-2, (1e-5, 1.0))
    ours = FactorKernel(*signal) * (LineKernel() + BellKernel(0.3)) + NoiseKernel(*noise)
    theirs = ConstantKernel(*signal) * (DotProduct() + RBF(0.3)) + WhiteKernel(*noise)
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found, wanted = (GaussianProcessRegressor(k).fit(X, y).kernel_ for k in (ours, theirs))
    assert np.array_equal(found.theta, wanted.theta)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_band_is_what_scikit_learn_predicts(columns: int) -> None:
    X, y = sound(20, columns)
    model, asked = GaussianProcess().fit(X, y), sound(9, columns)[0]
    with one_thread():
        mean, sd = model.regressor_.predict(model._laid_out(asked), return_std=True)
    centre = mean * model.y_scale_ + model.y_offset_
    half = NORMAL_95 * model.y_scale_ * np.sqrt(np.maximum(sd**2 - model.noise_level_, 0.0))
    assert np.array_equal(model.predict(asked), centre)
    for found, wanted in zip(
        model.predict_band(asked), (centre - half, centre + half), strict=True
    ):
        assert np.allclose(found, wanted, rtol=1e-12, atol=0.0)
