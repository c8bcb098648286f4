"""Every regressor against scikit-learn's own checks, bad data and the contract of models."""

import numpy as np
import pytest
from registered import cheaper
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from workbench import plugins
from workbench.domain.errors import DataError
from workbench.models.conformal import Conformal
from workbench.models.estimator import must_teach
from workbench.models.gaussian_process import GaussianProcess
from workbench.models.interpolation import LogInterpolation
from workbench.models.linear import PolynomialLasso
from workbench.models.neighbours_and_trees import GradientBoosting, NearestNeighbours, RandomForest
from workbench.models.neural_network import NeuralNetwork
from workbench.models.scales import log_kpi
from workbench.models.support_vectors import SupportVectors

CHECKED = [
    LogInterpolation(),
    GaussianProcess(restarts=0),
    GaussianProcess(restarts=0, warp=False, kernel="a"),
    PolynomialLasso(2, penalties=20),
    PolynomialLasso(3, l1_ratio=0.5, penalties=20),
    SupportVectors(),
    NeuralNetwork(starts=1),
    NeuralNetwork(starts=1, layers=2, learning_rate=0.01),
    NearestNeighbours(),
    RandomForest(trees=20),
    GradientBoosting(trees=20),
    Conformal(PolynomialLasso(1, penalties=5)),
    Conformal(NearestNeighbours()),
]
"""Cheapened where that changes nothing that is checked; the second of a kind is long."""

CANNOT_APPLY = {
    "check_array_api_input": "a table is of NumPy, and SCIPY_ARRAY_API must be set before imports",
}
"""By name, and why."""

REGISTERED = (
    "elastic-net3",
    "gaussian-process",
    "gaussian-process-a",
    "gaussian-process-b",
    "gradient-boosting",
    "interpolation",
    "k-nearest",
    "lasso1",
    "lasso2",
    "lasso3",
    "neural-network",
    "random-forest",
    "svr",
)


def _checks():
    kinds = set()
    for model in CHECKED:
        again = [pytest.mark.long] if type(model) in kinds else []
        kinds.add(type(model))
        for estimator, check in estimator_checks_generator(model):
            name = getattr(check, "func", check).__name__
            if name not in CANNOT_APPLY:
                yield pytest.param(estimator, check, id=f"{model}-{name}", marks=again)


@pytest.mark.parametrize(("estimator", "check"), list(_checks()))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def registered(name):
    made = plugins.load("models", name)
    return cheaper(made())


def table(n=30, seed=0):
    """Two numbers, a flavor and the load; noise of 0.1 that is told."""
    random = np.random.default_rng(seed)
    X = np.column_stack(
        [random.integers(0, 2, n), random.uniform(-1, 1, n), random.uniform(-2, 2, n)]
    )
    y = X[:, 0] + np.log(3.0 / (1.05 - 1.0 / (1.0 + np.exp(-3.0 * (X[:, 2] - X[:, 1])))))
    return X, y + random.normal(0.0, 0.1, n), np.full(n, 0.1)


@pytest.mark.parametrize("name", REGISTERED)
def test_contract_of_models(name):
    """Bands hold the mean, the ceiling is kept, the same data give the same coefficients."""
    X, y, noise = table()
    ceiling = float(np.quantile(y, 0.8))
    told = {"categorical": (0,), "ceiling": ceiling}
    model = registered(name)
    model.set_params(
        **{
            key: told[key.rpartition("__")[2]]
            for key in model.get_params()
            if key.rpartition("__")[2] in told
        }
    )
    fitted = clone(model).fit(X, np.minimum(y, ceiling), noise)
    mean, (low, high) = fitted.predict(X), fitted.predict_band(X)
    assert mean.shape == low.shape == high.shape == (30,)
    assert (low <= mean + 1e-9).all()
    assert (mean <= high + 1e-9).all()
    assert mean.max() <= ceiling + 1e-9
    assert np.abs(mean - np.minimum(y, ceiling)).mean() < 0.6
    again = clone(model).fit(X, np.minimum(y, ceiling), noise)
    assert (again.coefficients_ == fitted.coefficients_).all()
    assert len(fitted.coefficients_) > 0


@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda X, y, noise: (np.where(X[3] == X, np.nan, X), y, noise), "contains NaN"),
        (lambda X, y, noise: (X, np.where(y == y[3], np.inf, y), noise), "contains infinity"),
        (lambda X, y, noise: (X, y, np.where(y == y[3], -1.0, noise)), "standard deviations"),
        (lambda X, y, noise: (X, y, noise[:-1]), "standard deviations"),
        (lambda X, y, noise: (X[:0], y[:0], noise[:0]), "0 sample"),
        (lambda X, y, noise: (X, y[:-1], noise), "inconsistent numbers of samples"),
    ],
    ids=["nan", "infinite", "negative noise", "noise missing", "empty", "lengths"],
)
def test_bad_data_are_named(name, spoil, sentence):
    with pytest.raises(DataError, match=sentence):
        registered(name).fit(*spoil(*table()))


@pytest.mark.parametrize("name", sorted(set(REGISTERED) - {"interpolation"}))
def test_one_point_teaches_nothing(name):
    X, y, noise = table()
    with pytest.raises(DataError, match="one sample at 1 distinct point"):
        registered(name).fit(X[:1], y[:1], noise[:1])
    with pytest.raises(DataError, match="2 samples at 1 distinct point"):
        registered(name).fit(X[[0, 0]], y[:2], noise[:2])


def test_a_constant_kpi_is_a_level_to_a_model_and_named_of_a_table():
    X, y, _ = table()
    flat = np.full_like(y, 3.0)
    for name in REGISTERED:
        assert registered(name).fit(X, flat).predict(X) == pytest.approx(flat, abs=1e-3)
    with pytest.raises(DataError, match="p95_ms of haproxy: is the same in all 30 samples"):
        must_teach(X, flat, "p95_ms of haproxy")
    with pytest.raises(DataError, match="has 2 samples, all at one operating point"):
        must_teach(X[[0, 0]], y[:2], "haproxy")
    must_teach(X, y, "haproxy")
    nothing_lost = np.full_like(y, log_kpi("loss_pct", 0.0))
    must_teach(X, nothing_lost, "loss_pct of nat", log_kpi("loss_pct", 0.0))
    with pytest.raises(DataError, match="loss_pct of nat: is the same in all"):
        must_teach(X, nothing_lost + 1.0, "loss_pct of nat", log_kpi("loss_pct", 0.0))


def test_many_columns_and_few_samples():
    """More columns than samples: as the first samples of a campaign are."""
    random = np.random.default_rng(5)
    X, y = random.normal(size=(4, 7)), random.normal(size=4)
    for name in REGISTERED:
        fitted = registered(name).fit(X, y)
        for values in (fitted.predict(X), *fitted.predict_band(random.normal(size=(5, 7)))):
            assert np.isfinite(values).all()


def test_a_gaussian_process_rests_on_a_seeded_subset():
    X, y, _ = table(120)
    model = GaussianProcess(most_points=60, evidence_points=20, warp=False)
    a, b = model.fit(X, y).predict(X), clone(model).fit(X, y).predict(X)
    assert (a == b).all()
    assert len(model.regressor_.X_train_) == 60
    assert np.sqrt(np.mean((a - y) ** 2)) < 0.5


def test_elastic_and_lasso_leave_out_impossible_products():
    X, y, _ = table(60)
    model = PolynomialLasso(2, categorical=(0,)).fit(X, y)
    # Columns 0 and 1 are numbers, 2 and 3 the categories: no square of these, nor their product.
    assert {term for term in model.terms_ if set(term) <= {2, 3}} == {(2,), (3,)}


def test_a_network_learns_by_rate_too():
    X, y, _ = table(300)
    for model in (NeuralNetwork(), NeuralNetwork(layers=2, nodes=16, learning_rate=0.01)):
        assert model.fit(X, y).score(X, y) > 0.8
