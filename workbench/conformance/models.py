"""What every profile model must do; each check raises `AssertionError` with the sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from workbench.models.base import Floats, ProfileModel

Factory = Callable[[], ProfileModel]
Check = Callable[[Factory], None]

SEED = 20260101
DISAGREEMENT = 1.0
"""Log error at its own samples that is no fit any more: a factor of e."""


def _surface(columns: int, loads: int = 9) -> tuple[Floats, Floats, Floats]:
    """A KPI that is flat, bends and rises; X (n, columns), y and noise, with repetitions."""
    generator = np.random.default_rng(SEED)
    others = np.log([[0.25, 1e4], [0.5, 1e4], [1.0, 1e5]])[:, : columns - 1]
    places = others if columns > 1 else np.zeros((1, 0))
    wl = np.log(np.geomspace(10.0, 1000.0, loads))
    rows = [[*place, load] for place in places for load in wl for _ in range(2)]
    X = np.array(rows)
    bend = np.log(200.0) + (X[:, 0] if columns > 1 else 0.0)
    y = np.log(5.0) + 2.0 * np.logaddexp(0.0, 4.0 * (X[:, -1] - bend)) / 4.0
    noise = np.full(y.size, 0.05)
    return X, y + generator.normal(0.0, noise), noise


def _predictions(factory: Factory, columns: int) -> tuple[Floats, Floats, Floats, Floats]:
    X, y, noise = _surface(columns)
    model = factory().fit(X, y, noise)
    low, high = model.predict_band(X)
    return y, np.asarray(model.predict(X)), np.asarray(low), np.asarray(high)


def one_configuration(factory: Factory) -> None:
    """Fits KPI over `wl` alone."""
    y, mean, low, high = _predictions(factory, 1)
    _sound(y, mean, low, high)


def a_table(factory: Factory) -> None:
    """Fits a table of two parameters and `wl`."""
    y, mean, low, high = _predictions(factory, 3)
    _sound(y, mean, low, high)


def _sound(y: Floats, mean: Floats, low: Floats, high: Floats) -> None:
    for name, got in (("predict", mean), ("lower band", low), ("upper band", high)):
        assert got.shape == y.shape, f"{name} has shape {got.shape}, {y.shape} is due"
        assert np.all(np.isfinite(got)), f"{name} is not finite at {np.sum(~np.isfinite(got))} rows"
    assert np.all(low <= mean + 1e-9), "the lower bound lies above the mean"
    assert np.all(mean <= high + 1e-9), "the upper bound lies below the mean"
    error = float(np.median(np.abs(mean - y)))
    assert error < DISAGREEMENT, f"at its own samples it errs by {error:.2f} in logs (median)"


def noise_is_optional(factory: Factory) -> None:
    """Fits without knowing the noise of its samples."""
    X, y, _ = _surface(1)
    mean = np.asarray(factory().fit(X, y).predict(X))
    assert np.all(np.isfinite(mean)), "without noise, predict is not finite"


def the_same_fit_again(factory: Factory) -> None:
    """The same samples give the same figures: a stored model is fitted again on load."""
    first, again = _predictions(factory, 1), _predictions(factory, 1)
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other), "two fits of the same samples differ; take a seed"


def fitted_anew_it_forgets(factory: Factory) -> None:
    """A second fit of one object knows nothing of the first."""
    X, y, noise = _surface(1)
    model = factory().fit(X, y, noise)
    model.fit(X, y + 3.0, noise)
    fresh = factory().fit(X, y + 3.0, noise)
    assert np.allclose(model.predict(X), fresh.predict(X)), "it remembers an earlier fit"


def far_loads_stay_finite(factory: Factory) -> None:
    """Beyond its samples it may be wrong, not infinite."""
    X, y, noise = _surface(1)
    model = factory().fit(X, y, noise)
    far = np.log([[1.0], [1e5]])
    assert np.all(np.isfinite(model.predict(far))), "a decade and two beyond, predict is not finite"


def a_flat_kpi(factory: Factory) -> None:
    """A KPI without a trend is an answer too."""
    X, _, noise = _surface(1)
    mean = np.asarray(factory().fit(X, np.full(len(X), 2.0), noise).predict(X))
    assert np.allclose(mean, 2.0, atol=0.2), "of a constant KPI it predicts something else"


def bad_data_is_refused(factory: Factory) -> None:
    """What is no number is named by an error, not swallowed: a fit of it would look like one."""
    X, y, noise = _surface(1)
    holed, lost = y.copy(), X.copy()
    holed[3], lost[3, -1] = np.nan, np.inf
    for what, inputs in (
        ("a KPI that is not a number", (X, holed, noise)),
        ("an infinite load", (lost, y, noise)),
        ("no sample at all", (X[:0], y[:0], noise[:0])),
    ):
        try:
            factory().fit(*inputs)
        except ValueError:  # `DataError` is one, and so are those of scikit-learn
            continue
        raise AssertionError(f"fitted to {what}, it raises no ValueError")


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        one_configuration,
        a_table,
        noise_is_optional,
        the_same_fit_again,
        fitted_anew_it_forgets,
        far_loads_stay_finite,
        a_flat_kpi,
        bad_data_is_refused,
    )
}
OPTIONAL = frozenset({"a_table"})
"""A model of one configuration is welcome, too: it draws curves and takes no part in tables."""
