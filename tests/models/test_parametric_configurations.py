"""One model per configuration, and what lies between configurations."""

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from workbench.domain.errors import DataError
from workbench.models.catalogue import Catalogue
from workbench.models.curve_fit import CurveFit
from workbench.models.interpolation import LogInterpolation
from workbench.models.linear import PolynomialLasso
from workbench.models.parametric import catalogue, curve_fit, multi_lasso
from workbench.models.per_configuration import PerConfiguration

LOADS = np.log(np.geomspace(10.0, 1000.0, 6))


def grid(*values):
    """All combinations of the values and the loads, the load last."""
    axes = np.meshgrid(*values, LOADS, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


def plane(X):
    return X @ np.arange(1.0, X.shape[1] + 1.0)


def exact():
    return PerConfiguration(LogInterpolation())


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 6])
def test_it_is_exact_at_its_points_and_linear_between_configurations(columns):
    X = grid(*[np.log([1.0, 2.0, 4.0]) if n < 3 else [0.0, 1.0] for n in range(columns)])
    model = exact().fit(X, plane(X))
    assert model.predict(X) == pytest.approx(plane(X))
    assert not model.extrapolates(X).any()
    middle = np.full((1, columns + 1), 0.6)
    middle[0, -1] = 4.0
    if columns <= 5:  # above, neighbours are weighted by distance: no plane is promised
        assert model.predict(middle) == pytest.approx(plane(middle))
    assert not model.extrapolates(middle)[0]


def test_one_column_is_just_the_estimator():
    X, y = LOADS[:, None], np.sin(LOADS)
    model = PerConfiguration(CurveFit()).fit(X, y)
    alone = CurveFit().fit(X, y)
    assert (model.predict(X) == alone.predict(X)).all()
    assert (model.coefficients_ == alone.coefficients_).all()
    assert model.extrapolates([[LOADS[0] - 1.0], [LOADS[0]], [9.0]]).tolist() == [True, False, True]


def test_outside_the_nearest_configuration_holds_and_it_says_so():
    X = grid(np.log([1.0, 2.0]), np.log([64.0, 512.0]))
    model = exact().fit(X, plane(X))
    outside = np.array([[2.0, math.log(600.0), LOADS[2]]])
    nearest = np.array([[math.log(2.0), math.log(512.0), LOADS[2]]])
    assert model.predict(outside) == pytest.approx(plane(nearest))
    assert model.extrapolates(outside)[0]
    assert model.extrapolates(nearest + np.array([0.0, 0.0, 9.0]))[0]


def test_categories_are_never_blended():
    """The small flavor is a hundred times slower, whatever lies between the two codes."""
    X = grid([0.0, 1.0], np.log([1.0, 4.0]))
    y = X[:, 2] + np.where(X[:, 0] == 0.0, math.log(100.0), 0.0)
    model = PerConfiguration(LogInterpolation(), categorical=(0,)).fit(X, y)
    between = np.array([[0.0, 0.5, 4.0], [1.0, 0.5, 4.0]])
    assert model.predict(between) == pytest.approx([4.0 + math.log(100.0), 4.0])
    assert not model.extrapolates(between).any()
    stranger = np.array([[7.0, 0.0, 4.0]])
    assert np.isfinite(model.predict(stranger)).all()
    assert model.extrapolates(stranger)[0]


def test_a_configuration_with_few_loads_borrows_the_loads_that_it_lacks():
    X = grid(np.log([1.0, 2.0, 100.0]))
    lone = X[:, 0] == math.log(2.0)
    keep = ~lone | (X[:, 1] == LOADS[3])
    y = np.where(lone, 50.0, X[:, 1])
    model = exact().fit(X[keep], y[keep])
    assert model.borrowed_.tolist() == [False, True, False]
    own = [math.log(2.0), LOADS[3]]
    assert model.predict([own]) == pytest.approx([50.0])
    assert model.predict([[own[0], LOADS[0]]]) == pytest.approx([LOADS[0]])
    low, high = model.predict_band([own, [own[0], LOADS[0]]])
    assert (high - low)[1] > 2.0 * (high - low)[0]


def test_a_configuration_borrows_from_its_own_category_first():
    X = grid([0.0, 1.0], np.log([1.0, 4.0]))
    y = np.where(X[:, 0] == 0.0, 7.0, 1.0)
    few = (X[:, 0] == 0.0) & (X[:, 1] == 0.0) & (X[:, 2] != LOADS[0])
    model = PerConfiguration(LogInterpolation(), categorical=(0,)).fit(X[~few], y[~few])
    assert model.predict([[0.0, 0.0, LOADS[-1]]]) == pytest.approx([7.0])


def test_every_sample_a_configuration_of_its_own_is_still_a_model():
    """A random design: no configuration has two loads."""
    random = np.random.default_rng(0)
    X = random.uniform(0.0, 2.0, (60, 4))
    y = X[:, -1] + 0.1 * X[:, 0]
    model = PerConfiguration(CurveFit()).fit(X, y)
    assert model.borrowed_.all()
    assert np.median(np.abs(model.predict(X) - y)) < 0.2


def test_bands_pass_through_and_are_absent_where_the_estimator_has_none():
    X = grid(np.log([1.0, 2.0]))
    low, high = exact().fit(X, plane(X), np.full(len(X), 0.1)).predict_band(X)
    assert (high - low) / 2.0 == pytest.approx(np.full(len(X), 0.196), rel=0.01)
    plain = PerConfiguration(LinearRegression())
    assert not hasattr(plain, "predict_band")
    assert plain.fit(X, plane(X), np.full(len(X), 0.1)).predict(X) == pytest.approx(plane(X))


def test_left_out_loads_widen_a_band_that_takes_its_law_for_right():
    """A parabola is no Lasso of the first degree: what it errs by is in the band, and no more."""
    X = grid(np.log([1.0, 2.0, 4.0]))
    y = np.square(X[:, 1] - LOADS.mean()) + X[:, 0]
    noise = np.full(len(X), 0.02)
    X, y, noise = (np.repeat(some, 2, axis=0) for some in (X, y, noise))
    X[::2, 1] += 0.4
    y = np.square(X[:, 1] - LOADS.mean()) + X[:, 0]
    plain = PerConfiguration(PolynomialLasso(1, penalties=20))
    assert not hasattr(plain, "predict_band")
    model = clone(plain).set_params(calibrate=24).fit(X, y, noise)
    low, high = model.predict_band(X)
    assert np.mean((low <= y) & (y <= high)) >= 0.8
    assert 0.5 < model.reach_ < 5.0
    again = clone(model).fit(X, y, noise)
    assert again.reach_ == model.reach_


@pytest.mark.parametrize("factory", [curve_fit, catalogue, multi_lasso])
def test_registered_models_follow_configurations_that_saturate_elsewhere(factory):
    """Response times that leave 2 ms at 100 per vCPU; a fifth of them was never seen."""
    vcpu = np.log([0.5, 1.0, 2.0, 4.0])
    loads = np.log(np.geomspace(10.0, 1000.0, 14))
    X = np.array([[c, x] for c in vcpu for x in loads])
    y = np.log(2.0) + np.maximum(X[:, 1] - X[:, 0] - math.log(100.0), 0.0) * 2.0
    y = y + np.random.default_rng(0).normal(0.0, 0.03, y.size)
    test = np.arange(y.size) % 5 == 2
    model = factory().fit(X[~test], y[~test], np.full((~test).sum(), 0.03))
    errors = np.abs(model.predict(X[test]) - y[test])
    assert np.median(errors) < (0.35 if factory is multi_lasso else 0.08)
    low, high = model.predict_band(X)
    assert np.isfinite([low, high]).all()
    assert (low <= high).all()
    assert np.isfinite(model.coefficients_).all()


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 6), st.integers(0, 10_000))
def test_exact_estimators_stay_exact_on_any_table(columns, configurations, loads, seed):
    random = np.random.default_rng(seed)
    rows = random.integers(0, 4, (configurations, columns)).astype(float)
    X = np.array([[*row, x] for row in rows for x in random.integers(0, 9, loads)], dtype=float)
    y = random.normal(size=len(X))
    _, place = np.unique(X, axis=0, return_inverse=True)
    mean = (np.bincount(place.ravel(), y) / np.bincount(place.ravel()))[place.ravel()]
    assert exact().fit(X, y).predict(X) == pytest.approx(mean)
    names = PerConfiguration(LogInterpolation(), categorical=(0,)).fit(X, y)
    assert names.predict(X) == pytest.approx(mean)


def test_parameters_of_the_estimator_are_set_through_it_and_its_categories_are_not():
    model = PerConfiguration(LogInterpolation()).set_params(
        categorical=(0,), estimator__categorical=(0,), estimator__ceiling=3.0
    )
    X = grid([0.0, 1.0])
    fitted = clone(model).fit(X, plane(X))
    assert all(m.get_params()["categorical"] == () for m in fitted.models_)
    assert all(m.get_params()["ceiling"] == 3.0 for m in fitted.models_)


def test_bad_data_are_named():
    with pytest.raises(DataError, match="NaN"):
        exact().fit([[0.0, math.nan], [1.0, 1.0]], [1.0, 2.0])
    with pytest.raises(DataError, match="features"):
        exact().fit(grid([0.0, 1.0]), np.ones(12)).predict([[0.0, 1.0, 2.0]])


CHECKED = [exact(), PerConfiguration(LinearRegression(), calibrate=2)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [pytest.param(CHECKED[0], marks=pytest.mark.long), CHECKED[1]],
    ids=["plain", "calibrated"],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}


def test_the_registered_curve_fit_inverts_the_curve_of_a_profiled_configuration():
    X = np.array([[c, x] for c in (0.0, 1.0) for x in np.log(np.geomspace(100.0, 10_000.0, 30))])
    capacity = 1900.0 * np.exp(X[:, 0])
    over = np.exp(X[:, 1]) - 600.0
    loss = np.where(over > capacity, 100.0 * (1.0 - capacity / np.maximum(over, 1.0)), 0.0)
    model = curve_fit().fit(X, np.log(np.maximum(loss, 0.1)))
    for configuration in (0.0, 1.0):
        for kpi in (5.0, 20.0):
            at = model.inverse(math.log(kpi), [configuration])
            assert model.predict([[configuration, at]]) == pytest.approx([math.log(kpi)], abs=1e-3)
    assert model.inverse(math.log(5.0), [0.0]) == model.models_[0].inverse(math.log(5.0))
    assert model.inverse(math.log(5.0), [0.0]) < model.inverse(math.log(5.0), [1.0])
    for stranger in ([0.5], [], [0.0, 0.0]):
        with pytest.raises(DataError, match="was not profiled"):
            model.inverse(1.0, stranger)
    alone = curve_fit().fit(X[:30, 1:], np.log(np.maximum(loss[:30], 0.1)))
    assert alone.inverse(math.log(5.0)) == pytest.approx(model.inverse(math.log(5.0), [0.0]))
    assert not hasattr(catalogue(), "inverse")


def test_the_estimator_is_not_touched():
    estimator = Catalogue()
    PerConfiguration(estimator).fit(grid([0.0, 1.0]), np.ones(12))
    assert not hasattr(estimator, "coefficients_")
