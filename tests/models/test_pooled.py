"""The pooled model: scikit-learn's checks, bad data, the law found again, coverage, a wrong law."""

import math

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from workbench.domain.errors import DataError
from workbench.models.pooled import Pooled
from workbench.models.pooled.field import GaussianField
from workbench.models.pooled.model import law_weight
from workbench.models.pooled.samples import Samples
from workbench.models.pooled.shapes import FAMILIES, FINE, FittedShape
from workbench.models.pooled.surface import Places, Surface

CANNOT_APPLY = {
    "check_array_api_input": "a table is of NumPy, and SCIPY_ARRAY_API must be set before imports",
}
CEILING = math.log(30.0)
CONVERTED_BY_BASE = {
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
}
"""Costly here; what it checks is of the base class of all models, and checked of the others."""
FLOOR = math.log(0.1)


def _checks():
    for estimator, check in estimator_checks_generator(Pooled()):
        name = getattr(check, "func", check).__name__
        if name not in CANNOT_APPLY:
            types = getattr(check, "keywords", {})  # the same data as float32, or read-only
            again = (types and name == "check_regressors_train") or name in CONVERTED_BY_BASE
            marks = [pytest.mark.long] if again else []
            yield pytest.param(estimator, check, id=name, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), list(_checks()))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def loss(x, capacity, width=0.08):
    """Log of the loss in per cent, between floor and ceiling: what the law is written for."""
    shape = FittedShape.of(FAMILIES[2], np.array([math.log(1000.0), math.log(width), 0.0]))
    return np.minimum(np.logaddexp(FLOOR, FLOOR + shape(x - capacity)), CEILING)


def capacity_of(C):
    """Log capacity over log vCPU and log size: no gain beyond 3 vCPUs."""
    return math.log(3000.0) + 0.9 * np.minimum(C[:, 0], math.log(3.0)) - 0.15 * C[:, 1]


def surface(seed, most=80):
    """Configurations, a training table near the breakpoints and noise; test points and truth."""
    rng = np.random.default_rng(seed)
    C = np.array(
        [[math.log(v), math.log(s)] for v in (0.25, 0.5, 1, 2, 3, 4) for s in (1, 2, 4, 8)]
    )
    chosen = rng.integers(len(C), size=most)
    x = capacity_of(C[chosen]) + rng.uniform(-1.0, 1.0, most)
    clean = loss(x + 0.02 * rng.standard_normal(most), capacity_of(C[chosen]))
    y = np.minimum(clean + 0.05 * rng.standard_normal(most), CEILING)
    at = np.repeat(C, 20, axis=0)
    load = capacity_of(at) + np.tile(np.linspace(-1.5, 1.0, 20), len(C))
    test = np.column_stack([at, load])
    return np.column_stack([C[chosen], x]), y, test, loss(load, capacity_of(at))


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.long) for s in (1, 2))])
def test_a_matched_law_is_found_and_its_intervals_hold(seed):
    X, y, test, truth = surface(seed)
    model = Pooled(ceiling=CEILING).fit(X, y, np.full(len(y), 0.1))
    error = model.predict(test) - truth
    assert model.weight_.min() > 0.9
    assert np.sqrt(np.mean(error**2)) < 0.3  # the range is 5.7
    low, high = model.predict_band(test)
    # Exactly at floor and ceiling an interval may be of no width: a hundredth is no miss.
    held = np.mean((low - 0.01 <= truth) & (truth <= high + 0.01))
    assert held >= 0.9


def test_where_the_law_has_to_guess_its_capacities_it_counts_for_less():
    """Capacities that no surface follows: the law knows them where there are samples, and errs
    more than a process without a law where it has to guess them. One does not pay for the other."""
    X, y, _, _ = surface(0, most=240)
    C = np.unique(X[:, :2], axis=0)
    place = np.array([np.flatnonzero((row == C).all(axis=1))[0] for row in X[:, :2]])
    luck = 1.2 * np.random.default_rng(5).standard_normal(len(C))
    x = capacity_of(X[:, :2]) + luck[place] + np.random.default_rng(6).uniform(-1, 1, len(y))
    y = loss(x, capacity_of(X[:, :2]) + luck[place])
    model = Pooled(ceiling=CEILING).fit(np.column_stack([X[:, :2], x]), y, np.full(len(y), 0.05))
    guessed, known = model.weight_
    assert known > 0.95
    assert guessed < 0.8
    there = np.column_stack([C, capacity_of(C) + luck])
    error = model.predict(there) - loss(there[:, 2], there[:, 2])
    assert np.sqrt(np.mean(error**2)) < 0.4


def waves(configurations, each):
    """No law: a sine over the load, at a height that a parameter tells."""
    c = np.repeat(np.arange(float(configurations)), each)
    x = np.random.default_rng(3).uniform(0.0, 6.0, len(c))
    return np.column_stack([c, x]), np.sin(2.0 * x) + c / configurations


@pytest.mark.parametrize(("configurations", "each"), [(3, 30), (40, 1)])
def test_errors_of_one_kind_alone_tell_both_weights(configurations, each):
    """Three configurations are too few to hold some out whole; of one sample nothing is left when
    it is held out. What one kind does not tell the other does: it is not taken that the law
    holds."""
    X, y = waves(configurations, each)
    model = Pooled().fit(X, y, np.full(len(y), 0.02))
    assert model.weight_[0] == model.weight_[1] < 0.3
    assert model.widening_[0] == model.widening_[1]


def test_a_first_sample_makes_a_configuration_one_that_has_some():
    X, y, _, _ = surface(0, most=240)
    rows, place = np.unique(X[:, :2], axis=0, return_inverse=True)
    place = place.reshape(-1)
    order = np.argsort(place == 5, kind="stable")  # those of one configuration last
    before = int(np.sum(place != 5))
    noise = np.full(len(y), 0.05)
    whole = Samples(place[order], X[order, 2], y[order], noise, CEILING)
    model = Pooled(ceiling=CEILING).fit_over(rows, whole.of(np.arange(len(y)) < before))
    model.weight_, model.widening_ = np.array([0.25, 0.75]), np.array([2.0, 1.0])
    assert model.weights[5] == 0.25
    assert model.widenings[5] == 2.0
    assert set(np.delete(model.weights, 5)) == {0.75}
    at = np.arange(len(rows)), np.full(len(rows), 7.0)
    assert np.linalg.eigvalsh(model.doubts(*at)).min() > -1e-9
    model.update(whole.of(np.arange(len(y)) <= before))
    assert model.weights[5] == 0.75
    assert model.widenings[5] == 1.0


def test_a_configuration_without_samples_is_predicted():
    X, y, test, truth = surface(1)
    gone = X[:, 0] == math.log(0.5)
    model = Pooled(ceiling=CEILING).fit(X[~gone], y[~gone])
    there = test[:, 0] == math.log(0.5)
    error = model.predict(test[there]) - truth[there]
    assert np.sqrt(np.mean(error**2)) < 1.0


def test_a_wrong_law_loses_its_weight():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(200)
    good, bad = 0.1 * rng.standard_normal(200), truth
    assert law_weight(bad, good, np.ones(200)) < 0.1
    assert law_weight(good, bad, np.ones(200)) == 1.0
    assert law_weight(good, good, np.ones(200)) == 1.0


def test_what_no_law_describes_is_followed_all_the_same():
    """A KPI that swings with the load: no shape is monotone, the processes must carry it."""
    rng = np.random.default_rng(3)
    C = np.repeat(np.log([[0.25], [0.5], [1.0], [2.0]]), 30, axis=0)
    x = np.tile(np.linspace(0.0, 6.0, 30), 4)
    y = np.sin(2.0 * x) + 0.3 * C[:, 0] + 0.05 * rng.standard_normal(len(x))
    model = Pooled().fit(np.column_stack([C, x]), y, np.full(len(x), 0.05))
    between = np.column_stack([C, x + 0.1])[:-1]
    error = model.predict(between) - np.sin(2.0 * between[:, 1]) - 0.3 * between[:, 0]
    assert np.sqrt(np.mean(error**2)) < 0.15


def test_a_closed_loop_and_a_throughput_find_their_families():
    rng = np.random.default_rng(4)
    vcpu = np.log(rng.choice([0.25, 0.5, 1.0, 2.0], 80))
    x = rng.uniform(0.0, math.log(200.0), 80)
    response = np.logaddexp(0.3, x - (math.log(8.0) + vcpu)) + 0.04 * rng.standard_normal(80)
    X = np.column_stack([vcpu, x])
    model = Pooled().fit(X, response, np.full(80, 0.04))
    assert np.sqrt(np.mean((model.predict(X) - response) ** 2)) < 0.08
    rate = x - response
    model = Pooled().fit(X, rate, np.full(80, 0.04))
    assert model.law_.family.name == "plateau"
    assert np.sqrt(np.mean((model.predict(X) - rate) ** 2)) < 0.08


def test_the_same_data_give_the_same_fit():
    X, y, test, _ = surface(2, 40)
    first, second = (Pooled(ceiling=CEILING).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coefficients_, second.coefficients_)
    assert np.array_equal(first.predict(test), second.predict(test))


def test_flavors_are_known_by_what_they_allocate():
    X, y, *_ = surface(0, 40)
    codes = np.unique(X[:, 0], return_inverse=True)[1].astype(float)
    model = Pooled(categorical=(0,), ceiling=CEILING).fit(np.column_stack([codes, X]), y)
    assert model.encoder_.codes == []
    assert model.encoder_.numbers == [1, 2]


def test_update_takes_new_samples_with_all_else_frozen():
    X, y, *_ = surface(0, 60)
    rows, place = np.unique(X[:, :-1], axis=0, return_inverse=True)
    place, noise = place.reshape(-1), np.full(60, 0.1)

    def first(n):
        return Samples(place[:n], X[:n, -1], y[:n], noise[:n], CEILING)

    model = Pooled(ceiling=CEILING).fit_over(rows, first(40))
    theta, doubt = model.law_.theta.copy(), model.law_.capacity.variance.sum()
    model.update(first(60))
    assert np.array_equal(model.law_.theta, theta)
    assert model.law_.capacity.variance.sum() < doubt


def test_one_sample_is_refused_by_name():
    with pytest.raises(DataError, match="Pooled needs 2"):
        Pooled().fit([[0.0, 1.0]], [1.0])


def test_a_surface_without_noise_passes_through_its_sites():
    places = Places(np.linspace(0.0, 1.0, 6)[:, None], np.zeros((6, 0)))
    known = Surface(places, 0.0, 0.5, 0.1)
    sites = np.array([0.0, 0.4, 0.6, 0.7, 0.7, 0.7])
    known.set_sites(sites, np.full(6, 1e8))
    assert np.allclose(known.posterior, sites, atol=1e-4)
    mean, variance = known.at(Places(np.array([[0.5]]), np.zeros((1, 0))))
    assert 0.6 <= mean[0] <= 0.7
    assert variance[0] < 0.05


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_shapes_are_monotone(family):
    change = np.diff(FittedShape.of(family, np.array(family.start))(FINE))
    assert (change <= 0.0).all() if family.slope else (change >= 0.0).all()


def test_held_out_means_are_those_of_a_fit_without_the_fold():
    rng = np.random.default_rng(5)
    n, folds = 40, np.arange(40) % 4
    places = Places(rng.uniform(size=(n, 2)), np.zeros((n, 0)))
    c, x, variance = np.arange(n) // 2, rng.uniform(0.0, 5.0, n), np.full(n, 0.01)
    y = np.sin(x) + places.numbers[:, 0] + 0.1 * rng.standard_normal(n)
    field = GaussianField(1.0, 0.5, 2).fit(places, c, x, y, variance, learn=True)
    [(mean, spread)] = field.without(folds)
    out = np.flatnonzero(folds == 1)
    kept = np.flatnonzero(folds != 1)
    other = GaussianField(1.0, 0.5, 2)
    other.theta = field.theta
    other.fit(places.of(kept), c[kept], x[kept], y[kept], variance[kept], learn=False)
    again, its_spread = other.at(places.of(out), c[out], x[out])
    assert np.allclose(mean[out], again, atol=1e-6)
    assert np.allclose(spread[out], its_spread, atol=1e-6)


def test_a_base_that_falls_with_the_load_is_no_breakpoint():
    """Idle entries are swept: loss falls with the load, then rises beyond the capacity."""
    rng = np.random.default_rng(6)
    C = rng.choice(np.log([0.25, 0.5, 1.0, 2.0]), 160)
    x = rng.uniform(3.0, 10.0, 160)

    def truth(c, at):
        swept = math.log(5.0) - np.logaddexp(0.0, 1.5 * (at - 5.0))
        return np.minimum(np.logaddexp(swept, loss(at, 8.0 + 0.9 * c)), CEILING)

    y = truth(C, x) + 0.05 * rng.standard_normal(160)
    model = Pooled(ceiling=CEILING).fit(np.column_stack([C, x]), y, np.full(160, 0.05))
    at = np.column_stack([np.repeat(np.unique(C), 30), np.tile(np.linspace(3.2, 9.8, 30), 4)])
    error = model.predict(at) - truth(at[:, 0], at[:, 1])
    assert model.law_.field is not None
    assert np.sqrt(np.mean(error**2)) < 0.25
