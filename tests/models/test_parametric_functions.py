"""Profiling functions, paper D's catalogue fit and paper B's curve fit, over one load."""

import math
import pickle

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from workbench.domain.errors import DataError
from workbench.models.catalogue import Catalogue
from workbench.models.curve_fit import CurveFit
from workbench.models.functions import function_named, profiling_functions
from workbench.models.one_load import points_of
from workbench.models.regions import fit_regions, jacobian

EXAMPLES = {
    "constant": [3.0],
    "linear": [0.5, 2.0],
    "exponential": [0.2, 0.9],
    "power": [2.0, 1.7],
    "logarithmic": [4.0, 1.5],
    "reciprocal": [2.0, 5.0],
    "hyperbolic": [1.2, -0.5],
    "queueing": [3.0, 6.0],
    "offset exponential": [1.0, 0.8, 2.0],
    "logistic": [9.0, 2.0, 2.5],
    "quadratic": [1.0, 0.7, 2.0],
}
LOADS = np.linspace(1.0, 5.0, 25)
FUNCTIONS = profiling_functions()


def column(loads):
    return np.log(np.asarray(loads, dtype=float))[:, None]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_each_function_is_found_again_from_its_own_points(function):
    true = np.array(EXAMPLES[function.name])
    y = np.log(function.evaluate(true, LOADS))
    points = points_of(np.log(LOADS), y, None, None)
    coefficients, _ = fit_regions(
        function, points, np.ones((1, LOADS.size), dtype=bool), function.size
    )
    assert np.log(function.evaluate(coefficients[0], LOADS)) == pytest.approx(y, abs=2e-3)
    if function.name != "constant":
        assert coefficients[0] == pytest.approx(true, rel=0.02)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_inverses_invert_and_monotone_functions_are(function):
    coefficients = np.array(EXAMPLES[function.name])
    kpi = function.evaluate(coefficients, LOADS)
    if function.monotone:
        steps = np.diff(kpi)
        assert (steps >= 0.0).all() or (steps <= 0.0).all()
    if function.inverse is not None:
        loads = [function.inverse(coefficients, value) for value in kpi]
        assert loads == pytest.approx(LOADS)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_a_function_travels_between_processes_by_name(function):
    again = pickle.loads(pickle.dumps(function))
    assert again.evaluate(np.array(EXAMPLES[function.name]), LOADS) == pytest.approx(
        function.evaluate(np.array(EXAMPLES[function.name]), LOADS)
    )
    with pytest.raises(KeyError, match="hyperbolic"):
        function_named("sine")


def test_the_jacobian_is_that_of_the_logarithm():
    power = function_named("power")
    slopes = jacobian(power, np.array([2.0, 1.5]), LOADS)
    assert slopes == pytest.approx(
        np.stack([np.full(LOADS.size, 0.5), np.log(LOADS)], axis=1), abs=1e-6
    )


# Paper D, Tables IV-VI: below and above saturation, break-point, loads (80 of them, as there), the
# floor of the KPI, and the relative error that is allowed (of delay away from the break-point, as
# its pieces meet nowhere). The loss of ADVA is the one whose break-point is read off the figure.
PAPER_D = {
    "loss, ADVA": (
        lambda r: 8.503e-17 * np.exp(14.95 * r),
        lambda r: 100.0 * (1.0 - 1.722 / (r - 0.754)),
        2.502, np.linspace(0.05, 4.0, 80), 0.1, 0.015,
    ),
    "loss, BONSAI": (
        lambda r: 0.042 * np.exp(6.999 * r),
        lambda r: 100.0 * (1.0 - 0.569 / (r - 0.143)),
        0.7694, np.linspace(0.0117, 0.934, 80), 0.1, 0.015,
    ),
    "delay, ADVA": (
        lambda r: 12.697 + np.exp(2.484 * (r - 0.272)),
        lambda r: 1.286 * r + 2.214,
        2.48, np.linspace(0.05, 4.0, 80), 1e-3, 0.05,
    ),
    "delay, BONSAI": (
        lambda r: 8.999 + np.exp(0.595 * r),
        lambda r: 70.971 * r - 51.028,
        0.8694, np.linspace(0.0187, 1.5, 80), 1e-3, 0.05,
    ),
    "throughput, ADVA": (
        lambda r: 0.988 * r + 0.014,
        lambda r: -0.245 * r + 3.046,
        2.459, np.linspace(0.05, 4.0, 80), 1e-3, 0.01,
    ),
    "throughput, BONSAI": (
        lambda r: 0.943 * r + 0.020,
        lambda r: -0.167 * r + 0.828,
        0.7279, np.linspace(0.0117, 0.934, 80), 1e-3, 0.01,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PAPER_D)
def test_the_catalogue_recovers_paper_ds_curves_from_points_with_one_per_cent_noise(
    case, full_length
):
    """Of 20 noises x 80 loads, 99 % are within the bound; so is the worst load of most fits.

    But for the loss of ADVA, whose worst load misses the bound by a thirtieth in the median: beside
    the break-point it grows by 37 % with each per cent of load, and of 80 loads only four are
    neither at the floor nor beyond it. The gate takes five noises of all others.
    """
    below, above, edge, loads, floor, bound = PAPER_D[case]
    exact = np.where(loads < edge, below(loads), above(loads))
    true = np.log(np.maximum(exact, floor))
    counted = np.full(loads.size, True)
    if case.startswith("delay"):
        counted = np.abs(np.log(loads / edge)) > 0.05
    errors, edges = [], []
    for seed in range(20 if full_length or case == "loss, ADVA" else 5):
        noise = np.random.default_rng(seed).normal(0.0, 0.01, loads.size)
        seen = np.log(np.maximum(exact * np.exp(noise), floor))
        model = Catalogue().fit(column(loads), seen, np.full(loads.size, 0.01))
        errors.append(np.abs(np.expm1(model.predict(column(loads)) - true))[counted])
        edges.append(math.exp(model.breakpoint_))
    assert np.quantile(errors, 0.99) < bound
    assert np.median(np.max(errors, axis=1)) < bound * (1.04 if case == "loss, ADVA" else 1.0)
    assert np.median(edges) == pytest.approx(edge, rel=0.03)


def test_the_catalogue_says_what_it_found_with_its_errors():
    below, above, edge, loads, *_ = PAPER_D["throughput, ADVA"]
    true = np.where(loads < edge, below(loads), above(loads))
    noise = np.random.default_rng(1).normal(0.0, 0.01, loads.size)
    model = Catalogue().fit(column(loads), np.log(true) + noise, np.full(loads.size, 0.01))
    low, high = model.describe()
    assert (low.region, high.region) == ("no saturation", "saturation")
    assert low.function == high.function == "linear"
    assert low.formula == "a r + b"
    assert low.high == high.low == pytest.approx(2.459, rel=0.03)
    for region, truth in ((low, (0.988, 0.014)), (high, (-0.245, 3.046))):
        for name, value in zip("ab", truth, strict=True):
            assert abs(region.coefficients[name] - value) < 4.0 * region.errors[name]
        assert region.standard_error == pytest.approx(0.01, rel=0.4)
    assert model.coefficients_.tolist() == [
        model.breakpoint_,
        1.0, *low.coefficients.values(),
        1.0, *high.coefficients.values(),
    ]  # fmt: skip
    assert model.standard_errors_.tolist() == [*low.errors.values(), *high.errors.values()]


def test_the_catalogue_takes_a_break_point_that_it_is_given():
    loads = np.geomspace(10.0, 1000.0, 20)
    y = np.log(np.where(loads < 100.0, 2.0, 2.0 + loads / 100.0))
    model = Catalogue(breakpoint=math.log(300.0)).fit(column(loads), y)
    assert model.breakpoint_ == math.log(300.0)
    assert len(model.pieces_) == 2
    beyond = Catalogue(breakpoint=math.log(5000.0)).fit(column(loads), y)
    assert math.isinf(beyond.breakpoint_)
    assert [region.region for region in beyond.describe()] == ["whole range"]


def test_a_flat_kpi_has_no_break_point_and_the_plainest_function():
    loads = np.geomspace(10.0, 1000.0, 20)
    y = math.log(3.0) + np.random.default_rng(0).normal(0.0, 0.05, 20)
    (region,) = Catalogue().fit(column(loads), y, np.full(20, 0.05)).describe()
    assert region.function == "constant"
    assert region.coefficients["a"] == pytest.approx(3.0, rel=0.05)
    curve = CurveFit().fit(column(loads), y, np.full(20, 0.05))
    assert math.isinf(curve.breakpoint_)
    assert curve.predict(column([1.0, 1e5])) == pytest.approx([math.log(3.0)] * 2, abs=0.05)
    assert curve.inverse(math.log(10.0)) == math.inf
    assert curve.inverse(math.log(1.0)) == -math.inf


def loss(loads, capacity=1900.0, e=600.0):
    return np.where(
        loads > capacity + e, 100.0 * (1.0 - capacity / np.maximum(loads - e, 1.0)), 0.0
    )


@pytest.mark.parametrize("ceiling", [None, math.log(100.0), math.log(30.0)])
def test_curve_fit_recovers_its_own_law(ceiling):
    """Paper B's Fig. 4: no loss, then Eq. 2's hyperbola; cut at 30 % it is found as well."""
    loads = np.geomspace(100.0, 10_000.0, 50)
    cap = math.inf if ceiling is None else ceiling
    whole = np.log(np.maximum(loss(loads), 0.1))
    noise = np.random.default_rng(2).normal(0.0, 0.03, 50) * (loss(loads) > 0.1)
    model = CurveFit(ceiling=ceiling).fit(column(loads), np.minimum(whole + noise, cap))
    true = np.minimum(whole, cap)
    # But for a load or two where loss sets in, and rises from 0.1 to 3 % within one step.
    assert np.quantile(np.abs(model.predict(column(loads)) - true), 0.95) < 0.1
    assert math.exp(model.inverse(math.log(5.0))) == pytest.approx(1900.0 / 0.95 + 600.0, rel=0.02)
    d, e = model.coefficients_[4:]
    assert d + e == pytest.approx(2500.0, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_curve_fit_tries_all_places_where_its_pieces_meet(seed):
    """Eq. 2 to the letter, from no loss on: the exponential leaves the floor, the hyperbola comes
    up steeply and crosses it, and only where the exponential overtakes that does it take over."""
    loads = np.geomspace(0.3, 20.0, 40)
    above = 100.0 * (1.0 - 2.0 / np.maximum(loads - 2.0, 1e-9))
    true = np.where(loads < 8.0, 0.05 * np.exp(0.9 * loads), above)
    seen = true * np.exp(np.random.default_rng(seed).normal(0.0, 0.02, 40))
    model = CurveFit(ceiling=math.log(100.0)).fit(
        column(loads), np.log(np.maximum(seen, 0.1)), np.full(40, 0.02)
    )
    assert math.exp(model.breakpoint_) == pytest.approx(8.0, rel=0.01)
    off = model.predict(column(loads)) - np.log(np.maximum(true, 0.1))
    assert np.abs(off).max() < 0.02


def test_curve_fit_finds_both_pieces_where_they_meet():
    """A response time: a queue that grows, then a backlog in proportion to the load."""
    loads = np.geomspace(100.0, 10_000.0, 40)
    queue = 2.0 + np.exp(0.001 * (loads - 1500.0))
    true = np.log(np.where(loads < 3000.0, queue, 2.0 + math.exp(1.5) + 0.3 * (loads - 3000.0)))
    noise = np.random.default_rng(0).normal(0.0, 0.03, 40)
    model = CurveFit(ceiling=math.log(20_000.0)).fit(column(loads), true + noise, np.full(40, 0.03))
    assert math.exp(model.breakpoint_) == pytest.approx(3000.0, rel=0.1)
    assert np.median(np.abs(model.predict(column(loads)) - true)) < 0.03
    assert model.coefficients_[1] == pytest.approx(2.0, rel=0.1)


def test_curve_fit_to_the_letter_of_the_paper_weighs_what_is_high():
    """Its RMSE is that of the KPI: below the break-point it may be far off in relative terms."""
    loads = np.geomspace(100.0, 10_000.0, 30)
    y = np.log(np.where(loads < 2000.0, 0.2 + loads / 1e4, 0.4 + (loads - 2000.0) / 100.0))
    relative, letter = (CurveFit(relative=r).fit(column(loads), y) for r in (True, False))

    def rmse(model):
        return np.sqrt(np.mean((np.exp(model.predict(column(loads))) - np.exp(y)) ** 2))

    def log_error(model):
        return np.median(np.abs(model.predict(column(loads)) - y))

    assert log_error(relative) <= log_error(letter)
    assert rmse(letter) <= rmse(relative) * 1.05


def test_an_all_saturated_kpi_needs_no_lower_piece():
    loads = np.geomspace(100.0, 1000.0, 20)
    y = np.log(100.0 * (1.0 - 50.0 / loads))
    model = CurveFit().fit(column(loads), y, np.full(20, 0.01))
    assert model.breakpoint_ == -math.inf
    assert model.below_ is None
    assert model.coefficients_[4:] == pytest.approx([50.0, 0.0], abs=0.5)


curves = st.builds(
    lambda low, capacity, slope, power, n, seed: (low, capacity, slope, power, n, seed),
    st.floats(0.1, 50.0), st.floats(3.0, 500.0), st.floats(0.0, 30.0), st.floats(0.2, 3.0),
    st.integers(1, 25), st.integers(0, 10_000),
)  # fmt: skip


def sampled(curve):
    low, capacity, slope, power, n, seed = curve
    random = np.random.default_rng(seed)
    loads = np.exp(random.uniform(0.0, math.log(1000.0), n))
    over = np.maximum(loads / capacity - 1.0, 0.0) ** power
    kpi = low * (1.0 + slope * over) * np.exp(random.normal(0.0, 0.05, n))
    return column(loads), np.log(kpi)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(curves)
def test_curve_fit_never_falls_and_its_inverse_is_the_highest_load(curve):
    X, y = sampled(curve)
    model = CurveFit(ceiling=math.log(20_000.0)).fit(X, y)
    x = np.linspace(X.min() - 2.0, X.max() + 2.0, 400)
    mean = model.predict(x[:, None])
    assert np.isfinite(mean).all()
    assert (np.diff(mean) >= -1e-9).all()
    for kpi in np.quantile(mean, (0.1, 0.5, 0.9)):
        at = model.inverse(float(kpi) + 1e-9)
        # Up to `at` the curve is at most the KPI, and from there on it is above.
        assert (mean[x < at - 1e-6] <= kpi + 1e-6).all()
        assert (mean[x > at + 1e-6] >= kpi - 1e-6).all()


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(curves)
@example((2.0, 21.0, 10.0, 1.5, 22, 21))  # pieces that met in one batch of splits only
def test_the_inverse_inverts_where_the_curve_rises(curve):
    X, y = sampled(curve)
    model = CurveFit(ceiling=math.log(20_000.0)).fit(X, y)
    x = np.linspace(X.min(), X.max(), 50)
    mean = model.predict(x[:, None])
    steps = np.diff(mean) > 1e-3 * np.diff(x)
    rises = np.concatenate([[False], steps[1:] & steps[:-1], [False]])
    near = np.abs(x - model.breakpoint_) < 0.05
    assume((rises & ~near).any())
    for place in np.flatnonzero(rises & ~near):
        assert model.inverse(float(mean[place])) == pytest.approx(x[place], abs=1e-4)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(curves)
def test_both_models_take_any_samples_and_the_same_ones_give_the_same_fit(curve):
    X, y = sampled(curve)
    for model in (CurveFit(ceiling=9.0), Catalogue(ceiling=9.0)):
        fitted = clone(model).fit(X, y)
        low, high = fitted.predict_band(X)
        mean = fitted.predict(X)
        assert np.isfinite([low, mean, high]).all()
        assert (low <= mean).all()
        assert (mean <= np.minimum(high, 9.0 + 1e-12)).all()
        assert (clone(model).fit(X, y).coefficients_ == fitted.coefficients_).all()


@pytest.mark.parametrize("model", [CurveFit(), Catalogue()], ids=str)
def test_bands_cover_the_mean_of_a_curve_that_is_of_their_law(model):
    """Of 60 fits x 20 places between 2 and 60 % loss: at least 85 %, and not all of them."""
    loads = np.geomspace(2600.0, 6000.0, 25)
    places = np.linspace(2700.0, 5800.0, 20)
    random = np.random.default_rng(4)
    inside = []
    for _ in range(60):
        y = np.log(loss(loads)) + random.normal(0.0, 0.05, 25)
        low, high = (
            clone(model).fit(column(loads), y, np.full(25, 0.05)).predict_band(column(places))
        )
        inside.append((low <= np.log(loss(places))) & (np.log(loss(places)) <= high))
    assert 0.85 <= np.mean(inside) < 1.0


@pytest.mark.parametrize("model", [CurveFit(), Catalogue()], ids=str)
def test_bad_data_are_named(model):
    for y in ([1.0, math.nan], [1.0, math.inf]):
        with pytest.raises(DataError, match=r"NaN|infinity"):
            clone(model).fit([[0.0], [1.0]], y)
    with pytest.raises(DataError, match="noise"):
        clone(model).fit([[0.0], [1.0]], [1.0, 2.0], [0.1])


# By name, with the reason why it cannot hold of a model of one column.
NOT_OURS = {
    "check_regressors_train": "wants R2 > 0.5 from ten columns, of which the load is one",
}


@pytest.mark.parametrize("model", [CurveFit(), Catalogue()], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert set(failed) == set(NOT_OURS), "a check that passes is no exception any more"
