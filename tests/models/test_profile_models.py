"""Gaussian process, interpolation, and the profile that is drawn and stored."""

import math
from dataclasses import replace

import numpy as np
import pytest
from registered import cheaper, once_a_kind
from session_making import campaign
from sklearn.base import clone
from synthetic_function import CONFIGURATION, OPEN, RATE, TARGET, make_sample

from workbench import plugins
from workbench.domain.codec import dumps, from_plain, loads, to_plain
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint, Curve, FittedModel
from workbench.domain.samples import Estimate
from workbench.domain.topology import Target, Vnf
from workbench.engine.learning.sampler_worker import refit
from workbench.models.breakpoints import RuleTerms, find_breakpoints
from workbench.models.gaussian_process import GaussianProcess
from workbench.models.interpolation import LogInterpolation
from workbench.models.profile import CurveTerms, fit_profile
from workbench.models.scales import UNKNOWN_LOG_SD, log_kpi, log_sd, log_wl

MODELS = [GaussianProcess, LogInterpolation]
X = np.log([[40.0], [126.0], [400.0], [900.0], [1100.0], [1265.0], [4000.0]])
JUMP = np.log([2.0, 2.1, 2.5, 6.0, 200.0, 700.0, 1000.0])


@pytest.mark.parametrize("model", MODELS)
def test_models_follow_scikit_learn(model):
    copy = clone(model())
    assert copy.get_params() == model().get_params()
    assert copy.fit(X, JUMP) is copy
    assert copy.predict(X).shape == (7,)
    low, high = copy.predict_band(X)
    assert (low <= copy.predict(X)).all()
    assert (copy.predict(X) <= high).all()
    assert copy.score(X, JUMP) > 0.99


def test_constructor_parameters_are_only_stored():
    model = GaussianProcess(warp=False, restarts=3)
    assert clone(model).set_params(restarts=0).get_params()["warp"] is False


def test_interpolation_is_exact_at_its_points():
    assert LogInterpolation().fit(X, JUMP).predict(X) == pytest.approx(JUMP)


def test_interpolation_weighs_repetitions_by_precision_and_holds_beyond_the_ends():
    model = LogInterpolation().fit([[0.0], [0.0], [1.0]], [1.0, 3.0, 5.0], [0.1, 0.3, 0.1])
    assert model.predict([[-2.0], [0.0], [0.5], [9.0]]) == pytest.approx([1.2, 1.2, 3.1, 5.0])
    low, high = model.predict_band([[1.0]])
    assert (high - low) / 2 == pytest.approx([0.196], rel=0.01)


def test_interpolation_of_one_load_is_a_level():
    model = LogInterpolation().fit([[0.0]], [1.0])
    low, high = model.predict_band([[7.0]])
    assert (low[0], model.predict([[7.0]])[0], high[0]) == pytest.approx(
        (0.765, 1.0, 1.235), abs=0.01
    )


def test_gaussian_process_follows_a_jump():
    model = GaussianProcess().fit(X, JUMP, np.full(7, 0.01))
    assert model.predict(X) == pytest.approx(JUMP, abs=0.15)


def test_gaussian_process_stays_flat_between_flat_points_before_a_jump():
    """The paper's own GP falls back to its mean there; the arc length does not."""
    between = np.log([[70.0], [220.0]])
    warped = GaussianProcess().fit(X, JUMP, np.full(7, 0.05))
    plain = GaussianProcess(warp=False).fit(X, JUMP, np.full(7, 0.05))
    assert np.abs(warped.predict(between) - math.log(2.2)).max() < 0.2
    assert np.abs(plain.predict(between) - math.log(2.2)).max() > 0.2


def test_band_covers_the_mean_curve():
    """Of a smooth curve, seen with noise that is told: at least 85 % of 40 fits x 20 places."""
    random = np.random.default_rng(3)
    x = np.linspace(0.0, 4.0, 12)
    places = np.linspace(0.1, 3.9, 20)
    inside = []
    for _ in range(40):
        y = np.sin(x) + random.normal(0.0, 0.1, x.size)
        low, high = (
            GaussianProcess(warp=False)
            .fit(x[:, None], y, np.full(12, 0.1))
            .predict_band(places[:, None])
        )
        inside.append(np.mean((low <= np.sin(places)) & (np.sin(places) <= high)))
    assert np.mean(inside) >= 0.85


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "y", [np.full(7, 3.0), np.zeros(7), JUMP, -JUMP, np.arange(7) * 1e-9, np.arange(7) * 1e6]
)
def test_degenerate_shapes_neither_warn_nor_give_nan(model, y):
    fitted = model().fit(X, y, np.zeros(7))
    for values in (fitted.predict(X), *fitted.predict_band(X)):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("model", MODELS)
def test_repeated_loads_are_taken(model):
    fitted = model().fit(np.repeat(X, 3, axis=0), np.repeat(JUMP, 3))
    assert np.isfinite(fitted.predict(X)).all()


def test_the_same_points_give_the_same_fit():
    a, b = (GaussianProcess().fit(X, JUMP).coefficients_ for _ in range(2))
    assert (a == b).all()


def test_logs_have_floors():
    assert log_kpi("loss_pct", 0.0) == math.log(0.1)
    assert log_kpi("p95_ms", 0.0) == math.log(1e-3)
    with pytest.raises(DataError, match="has no logarithm"):
        log_wl(0.0)


def test_noise_is_read_from_the_interval():
    assert log_sd("p95_ms", Estimate(10.0, 10.0 * math.exp(-0.196), 10.0 * math.exp(0.196))) == (
        pytest.approx(0.1, rel=1e-3)
    )
    assert log_sd("p95_ms", Estimate(10.0, 10.0, 10.0)) == UNKNOWN_LOG_SD


def profile(samples, method="gaussian-process", model_factory=GaussianProcess):
    return fit_profile(
        TARGET, CONFIGURATION, samples, CurveTerms(RATE, "p95_ms", 1000.0), method, model_factory
    )


SAMPLES = [
    make_sample(wl, {"p95_ms": p95})
    for wl, p95 in ((40, 2.0), (400, 3.0), (900, 9.0), (1100, 80.0))
]


@pytest.mark.parametrize("method", ["gaussian-process", "interpolation"])
def test_profile_is_drawn_between_its_samples(method):
    curve, model = profile(SAMPLES, method)
    assert isinstance(curve, Curve)
    assert isinstance(model, FittedModel)
    assert len(curve.wl) <= 200
    assert len({len(curve.wl), len(curve.mean), len(curve.low), len(curve.high)}) == 1
    assert curve.wl[0] == pytest.approx(40)
    assert curve.wl[-1] == pytest.approx(1100)
    assert all(a < b for a, b in zip(curve.wl, curve.wl[1:], strict=False))
    assert all(
        low <= mean <= high
        for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True)
    )
    assert curve.mean[0] == pytest.approx(2.0, rel=0.1)
    assert model.sample_ids == tuple(s.id for s in SAMPLES)
    assert from_plain(to_plain(model), FittedModel) == model


def test_profile_learns_from_nothing_but_valid_figures():
    strangers = [
        make_sample(500, {"p95_ms": 7e5}, reason="host_saturated"),
        make_sample(600, {"p95_ms": 7e5}, overloaded=True),
        make_sample(700, {"throughput_rps": 5.0}),
        make_sample(800, {"p95_ms": 7e5}, configuration=Configuration({"haproxy.vcpu": 1.0}, {})),
        make_sample(9000, {"p95_ms": 7e5}),
    ]
    assert profile([*SAMPLES, *strangers]) == profile(SAMPLES)


@pytest.mark.parametrize(
    "odd", [{"kpi_definition": "time-weighted"}, {"load_model": "closed"}], ids=str
)
def test_samples_of_different_kinds_never_share_a_profile(odd):
    samples = [make_sample(wl, {"p95_ms": 2.0}) for wl in (100.0, 200.0, 400.0, 800.0)]
    samples[1] = replace(samples[1], **odd)
    with pytest.raises(DataError, match="never share a model"):
        fit_profile(
            TARGET, CONFIGURATION, samples, CurveTerms(RATE, "p95_ms", 1e3), "gp", GaussianProcess
        )
    samples[1] = replace(samples[1], valid=False)
    curve, _ = fit_profile(
        TARGET, CONFIGURATION, samples, CurveTerms(RATE, "p95_ms", 1e3), "gp", GaussianProcess
    )
    assert curve is not None


def test_breakpoints_refuse_definitions_of_latency_that_differ():
    samples = [make_sample(wl, {"p95_ms": 2.0}) for wl in (100.0, 200.0, 400.0, 800.0)]
    samples[1] = replace(samples[1], kpi_definition="time-weighted")
    with pytest.raises(DataError, match="time-weighted"):
        find_breakpoints(
            TARGET,
            CONFIGURATION,
            samples,
            RuleTerms(
                primary=RATE,
                load=OPEN,
                kpi="p95_ms",
                kpi_max=1e3,
                loss_goal=0.005,
                sla=None,
            ),
        )


def test_profile_needs_three_loads():
    assert profile(SAMPLES[:2]) == (None, None)
    assert profile([*SAMPLES[:2], *SAMPLES[:2]]) == (None, None)
    assert profile([]) == (None, None)


def test_profile_is_not_drawn_above_the_ceiling():
    curve, _ = profile([*SAMPLES, make_sample(2000, {"p95_ms": 5000.0})])
    assert max(curve.high) <= 1000.0 * (1 + 1e-9)


def test_a_stored_model_is_checked_by_fitting_it_again():
    _, stored = profile(SAMPLES, model_factory=lambda: GaussianProcess(restarts=2), method="mine")
    by_id = {s.id: s for s in SAMPLES}
    _, again = profile(
        [by_id[i] for i in stored.sample_ids],
        "mine",
        model_factory=lambda: GaussianProcess(**stored.parameters),
    )
    assert again == stored
    _, other = profile([*SAMPLES[:-1], make_sample(1100, {"p95_ms": 81.0})])
    assert other.coefficients != stored.coefficients


@pytest.mark.parametrize("method", once_a_kind(plugins.names("models")))
def test_the_settings_of_every_method_come_back_from_a_file_as_they_were(method):
    """Kinds are kept: no method takes 100.0 trees, nor 1.0 for a switch."""
    kind = plugins.load("models", method)

    def made():
        return cheaper(kind())

    samples = [
        make_sample(w, {"p95_ms": 2.0 + w / 400.0 + (w > 500.0)}) for w in range(50, 950, 50)
    ]
    _, stored = profile(samples, method, made)
    read = from_plain(loads(dumps(to_plain(stored))), FittedModel)
    assert read == stored
    own = made().get_params()
    assert read.parameters
    for name, value in read.parameters.items():
        assert type(value) is type(own[name])
        assert value == own[name]
    fitted = made().set_params(**read.parameters)
    assert {k: v for k, v in fitted.get_params().items() if k in read.parameters} == read.parameters
    _, again = profile(samples, method, lambda: made().set_params(**read.parameters))
    assert again == stored


def test_units_that_are_mixed_make_no_curve():
    mixed = [*SAMPLES, make_sample(200, {"p95_s": 0.003})]
    with pytest.raises(DataError, match="p95_ms and p95_s are one figure"):
        profile(mixed)


def test_the_samples_own_loads_are_on_the_curve():
    curve, _ = profile([make_sample(s.point.wl, {"p95_ms": 2.0}) for s in SAMPLES])
    assert set(curve.wl) >= {s.point.wl for s in SAMPLES}, "50, not 49.99999999999999"


def test_the_catalogue_parts_its_regions_where_usage_says(monkeypatch):
    """Paper D's Algorithm 2: at the CPU break-point, wherever the KPI itself seems to bend."""
    loads = np.geomspace(50.0, 3000.0, 12)
    samples = [make_sample(wl, {"p95_ms": 5.0 if wl < 900.0 else 80.0}) for wl in loads]
    known = replace(
        campaign(),
        targets=(
            replace(
                campaign().targets[0], target=Target(TARGET, Vnf(TARGET, TARGET)), primary=RATE
            ),
        ),
    )
    found = Breakpoint(TARGET, CONFIGURATION, "cpu", "usage", "found", 300.0, 280.0, 320.0)
    monkeypatch.setattr("workbench.models.breakpoints.find_breakpoints", lambda *_, **__: (found,))
    plan = replace(known.sampling, model="catalogue")
    fit = refit(replace(known, sampling=plan), TARGET, 1, tuple(samples), CONFIGURATION, None)
    assert fit.trouble == ""
    assert fit.model.parameters["estimator__breakpoint"] == pytest.approx(math.log(300.0))
    model = plugins.load("models", "catalogue")().set_params(**fit.model.parameters)
    x = np.log(loads)[:, None]
    model.fit(x, np.log([s.kpis["p95_ms"].value for s in samples]))
    assert model.models_[0].breakpoint_ == pytest.approx(math.log(300.0))
    other = replace(plan, model="interpolation")
    fit = refit(replace(known, sampling=other), TARGET, 1, tuple(samples), CONFIGURATION, None)
    assert "estimator__breakpoint" not in fit.model.parameters
