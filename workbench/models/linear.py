"""Linear models on a polynomial expansion: paper A's Lasso1-3 and Elastic Net3, section 3.2."""

from __future__ import annotations

import warnings
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNetCV, LassoCV, LinearRegression

from workbench.models.base import Floats
from workbench.models.conformal import Conformal
from workbench.models.estimator import EncodedRegressor
from workbench.models.folds import folds_of, point_numbers, splits_of

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""
FOLDS = 5


class PolynomialLasso(EncodedRegressor):
    """Lasso or elastic net on all products of up to `degree` encoded columns, standardised.

    Products of two categories of one column are always zero and squares of a category are itself;
    both are left out. The regularisation is chosen by five-fold cross-validation, seeded, in which
    repetitions of a point stay together; with fewer than three points there is nothing to choose
    by, and least squares is fitted.

    Parameters
    ----------
    degree : int, default=2
        Highest degree of a product.
    l1_ratio : float, default=1.0
        Share of the Lasso penalty; 1 is the Lasso, less an elastic net.
    penalties : int, default=100
        How many are tried, three powers of ten from one at which nothing is left.
    categorical, ceiling, random_state
        As in `workbench.models.base`.

    Attributes
    ----------
    terms_ : list of tuple of int
        The encoded columns that each term multiplies.
    coefficients_ : ndarray of shape (2 + len(terms_),)
        Regularisation, intercept and a coefficient per term, on standardised scales.
    """

    def __init__(
        self,
        degree: int = 2,
        l1_ratio: float = 1.0,
        penalties: int = 100,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(categorical, ceiling, random_state)
        self.degree = degree
        self.l1_ratio = l1_ratio
        self.penalties = penalties

    def _learner(self, Z: Floats, y: Floats) -> Any:
        self.terms_ = _terms(self.encoding_.groups, self.degree)
        raw = _products(Z, self.terms_)
        # A category that some fold lacks makes products without spread: they teach nothing.
        self.centre_, spread = raw.mean(axis=0), raw.std(axis=0)
        self.spread_ = np.where(spread > 1e-12, spread, np.inf)
        points = point_numbers(Z)
        if points.max() < 2:
            model = LinearRegression()
        else:
            common = {
                "cv": splits_of(folds_of(points, FOLDS, self.random_state)),
                "precompute": True,  # thousands of rows, at most some hundred terms
                "max_iter": 2000,
                "alphas": self.penalties,
            }
            model = (
                LassoCV(**common)
                if self.l1_ratio == 1.0
                else ElasticNetCV(l1_ratio=self.l1_ratio, **common)
            )
        with warnings.catch_warnings():
            # At the weakest penalties of the path; the cross-validation judges these too.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit((raw - self.centre_) / self.spread_, y)

    def _mean(self, Z: Floats) -> Floats:
        return super()._mean((_products(Z, self.terms_) - self.centre_) / self.spread_)

    def _coefficients(self) -> Floats | None:
        found = self.regressor_
        head = [getattr(found, "alpha_", 0.0), found.intercept_]
        return np.concatenate([head, found.coef_])


def lasso1() -> Conformal:
    """Paper A's Lasso1: no products."""
    return Conformal(PolynomialLasso(1))


def lasso2() -> Conformal:
    """Paper A's Lasso2."""
    return Conformal(PolynomialLasso(2))


def lasso3() -> Conformal:
    """Paper A's Lasso3."""
    return Conformal(PolynomialLasso(3))


def elastic_net3() -> Conformal:
    """Paper A's Elastic Net3, both penalties alike."""
    return Conformal(PolynomialLasso(3, l1_ratio=0.5))


def _terms(groups: tuple[int | None, ...], degree: int) -> list[tuple[int, ...]]:
    """Products of up to `degree` columns; of the categories of one column at most one."""
    terms = []
    for order in range(1, degree + 1):
        for term in combinations_with_replacement(range(len(groups)), order):
            named = [groups[column] for column in term if groups[column] is not None]
            if len(set(named)) == len(named):
                terms.append(term)
    return terms


def _products(Z: Floats, terms: list[tuple[int, ...]]) -> Floats:
    return np.column_stack([Z[:, term].prod(axis=1) for term in terms])
