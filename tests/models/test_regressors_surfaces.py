"""Interpolation over several columns, and whether the intervals hold what they promise."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from workbench.domain.errors import DataError
from workbench.models import mesh
from workbench.models.conformal import Conformal
from workbench.models.folds import folds_of, splits_of
from workbench.models.gaussian_process import GaussianProcess
from workbench.models.interpolation import LogInterpolation
from workbench.models.linear import PolynomialLasso
from workbench.models.neighbours_and_trees import NearestNeighbours

GRID = np.array(list(product([0.0, 1.0, 2.0], [0.0, 1.0, 3.0], [0.0, 1.0, 2.0, 5.0])))


def plane(X):
    return 1.0 + X @ np.arange(1.0, X.shape[1] + 1.0)


def test_interpolation_of_a_plane_is_the_plane_between_its_points():
    model = LogInterpolation().fit(GRID, plane(GRID))
    rows = np.random.default_rng(0).uniform([0, 0, 0], [2, 3, 5], (500, 3))
    assert model.predict(rows) == pytest.approx(plane(rows), abs=1e-9)
    assert not model.extrapolates(rows).any()


@pytest.mark.parametrize("columns", [2, 3, 4, 7])
def test_interpolation_is_exact_at_any_points(columns):
    random = np.random.default_rng(columns)
    X, y = random.normal(size=(60, columns)), random.normal(size=60)
    model = LogInterpolation().fit(X, y)
    assert model.predict(X) == pytest.approx(y, abs=1e-12)
    assert not model.extrapolates(X).any()


def test_outside_it_extends_along_the_load_and_else_goes_to_the_nearest_configuration():
    model = LogInterpolation().fit(GRID, plane(GRID))
    asked = np.array([[0.5, 0.5, 9.0], [0.5, 0.5, -3.0], [9.0, 1.0, 2.5], [-1.0, -1.0, -1.0]])
    given = np.array([[0.5, 0.5, 5.0], [0.5, 0.5, 0.0], [2.0, 1.0, 2.5], [0.0, 0.0, 0.0]])
    assert model.predict(asked) == pytest.approx(plane(given), abs=1e-5)
    assert model.extrapolates(asked).all()
    # On the hull itself nothing is extrapolated.
    assert not model.extrapolates([[2.0, 0.5, 5.0], [0.5, 3.0, 2.0]]).any()


def test_collinear_configurations_are_interpolated_along_their_line():
    X = np.array([[a, a, w] for a in (1.0, 2.0, 4.0) for w in (0.0, 1.0, 2.0)])
    model = LogInterpolation().fit(X, plane(X))
    asked = [[3.0, 3.0, 1.5], [3.0, 3.0, 7.0], [1.0, 2.0, 1.0]]
    given = np.array([[3.0, 3.0, 1.5], [3.0, 3.0, 2.0], [1.5, 1.5, 1.0]])
    assert model.predict(asked) == pytest.approx(plane(given), abs=1e-5)
    assert model.extrapolates(asked).tolist() == [False, True, True]


def test_a_parameter_of_one_value_says_nothing_but_is_known():
    X = GRID.copy()
    X[:, 1] = 7.0
    model = LogInterpolation().fit(X, X[:, 0] + X[:, 2])
    assert model.predict([[0.5, 7.0, 0.5]]) == pytest.approx([1.0], abs=1e-6)
    assert model.extrapolates([[0.5, 7.0, 0.5], [0.5, 8.0, 0.5]]).tolist() == [False, True]


def test_repetitions_are_weighed_by_precision():
    model = LogInterpolation().fit(
        [[0, 0], [0, 0], [0, 1], [1, 0.0]], [1.0, 3.0, 5.0, 5.0], [0.1, 0.3, 0.1, 0.1]
    )
    assert model.predict([[0.0, 0.0]]) == pytest.approx([1.2])
    low, high = model.predict_band([[0.0, 1.0]])
    assert (high - low) / 2 == pytest.approx([0.196], rel=0.01)


def test_every_flavor_has_its_own_surface():
    X = np.array([[k, a, w] for k in (0.0, 2.0) for a in (1.0, 2.0, 4.0) for w in (0.0, 1.0, 2.0)])
    model = LogInterpolation(categorical=(0,)).fit(X, plane(X))
    asked = np.array([[0.0, 1.5, 0.5], [2.0, 1.5, 0.5]])
    assert model.predict(asked) == pytest.approx(plane(asked), abs=1e-6)
    # A flavor between two others is not between them; it was never profiled.
    assert model.extrapolates([[1.0, 2.0, 0.5]]).tolist() == [True]
    nearest = plane(np.array([[0.0, 2.0, 0.5], [2.0, 2.0, 0.5]]))
    assert np.abs(nearest - model.predict([[1.0, 2.0, 0.5]])).min() < 1e-6


def test_one_by_one_is_the_triangulation(monkeypatch):
    """What stands in above five columns finds the same simplices where both can be had."""
    random = np.random.default_rng(2)
    X, rows = random.uniform(size=(80, 3)), random.uniform(-0.1, 1.1, (60, 3))
    y = np.sin(3.0 * X).sum(axis=1)
    by_mesh = LogInterpolation().fit(X, y)
    monkeypatch.setattr(mesh, "_MOST_TRIANGULATED", 1)
    by_program = LogInterpolation().fit(X, y)
    outside = by_mesh.extrapolates(rows)
    assert (by_program.extrapolates(rows) == outside).all()
    assert by_program.predict(rows)[~outside] == pytest.approx(by_mesh.predict(rows)[~outside])


def test_folds_keep_points_together_and_are_even():
    groups = np.random.default_rng(0).integers(0, 23, 200)
    folds = folds_of(groups, 5, seed=1)
    of = {group: set(folds[groups == group]) for group in range(23)}
    assert all(len(found) == 1 for found in of.values())
    sizes = np.bincount([min(found) for found in of.values()])
    assert sizes.max() - sizes.min() <= 1
    assert sorted(np.concatenate([test for _, test in splits_of(folds)])) == list(range(200))
    assert len(splits_of(folds_of(groups[:3], 5, 0))) <= 3


def drawn(random, n):
    """A smooth surface over one parameter and the load, seen with noise of 5 to 20 %."""
    X = random.uniform([-1.0, -2.0], [1.0, 2.0], (n, 2))
    truth = np.sin(1.5 * X[:, 1]) + 0.5 * X[:, 0] * X[:, 1]
    noise = random.uniform(0.05, 0.2, n)
    return X, truth, truth + random.normal(0.0, noise), noise


def coverage(make, n, seeds):
    """Shares of held-out long-run means and of new measurements that lie in their bands."""
    means, measured = [], []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        X, _, y, noise = drawn(random, n)
        rows, truth, seen, its_noise = drawn(random, 50)
        model = make().fit(X, y, noise)
        mean, (low, high) = model.predict(rows), model.predict_band(rows)
        means.append(np.mean((low <= truth) & (truth <= high)))
        below = np.hypot(mean - low, 1.96 * its_noise)
        above = np.hypot(high - mean, 1.96 * its_noise)
        measured.append(np.mean((mean - below <= seen) & (seen <= mean + above)))
    return float(np.mean(means)), float(np.mean(measured))


@pytest.mark.parametrize("n", [25, 80])
@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda: Conformal(PolynomialLasso(2)), 5),  # a second each
        (lambda: Conformal(NearestNeighbours()), 20),
        (lambda: Conformal(LogInterpolation()), 20),
        (lambda: GaussianProcess(restarts=0), 20),
    ],
    ids=["lasso2", "k-nearest", "interpolation", "gaussian-process"],
)
def test_bands_cover_what_they_promise(make, most, n, full_length):
    wanted = 20 if n == 25 else 12
    seeds = wanted if full_length else min(wanted, most)
    of_means, of_measurements = coverage(make, n, seeds)
    slack = 0.0 if seeds == wanted else 0.02
    assert 0.90 - slack <= of_means <= 0.99
    assert 0.92 - slack <= of_measurements <= 0.98 + slack


def test_few_points_widen_the_band():
    widths = {}
    for n in (4, 8, 40):
        found = []
        for seed in range(20):
            X, _, y, noise = drawn(np.random.default_rng(seed), n)
            low, high = Conformal(LinearRegression()).fit(X, y, noise).predict_band(X)
            found.append(np.mean(high - low))
        widths[n] = np.median(found)
    assert widths[4] > 1.5 * widths[8] > 1.5 * widths[40]
    X, _, y, _ = drawn(np.random.default_rng(0), 2)
    with pytest.raises(DataError, match="2 distinct points, where Conformal needs 3"):
        Conformal(LinearRegression()).fit(X, y)


def test_repetitions_tell_the_noise_where_nobody_else_does():
    """The band of the mean does not hold the noise, told or seen in repetitions."""
    random = np.random.default_rng(4)
    X = np.repeat(np.linspace(-1.0, 1.0, 40), 5)[:, None]
    y = X.ravel() + random.normal(0.0, 0.5, 200)
    for noise in (None, np.full(200, 0.5)):
        low, high = Conformal(LinearRegression()).fit(X, y, noise).predict_band(X)
        assert (high - low).mean() < 0.8
    alone = Conformal(LinearRegression()).fit(X[::5], y[::5])
    low, high = alone.predict_band(X)
    assert (high - low).mean() > 1.5
