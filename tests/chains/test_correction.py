"""What a chain adds is learned from few samples, and nothing is where there is nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic_chain import (
    CHAIN,
    CLIENTS,
    KPI_MAX,
    NOISE,
    SETTINGS,
    SyntheticChain,
    sample,
    setting,
    upper_half,
)

from workbench.chains.alignment import Measured, measured
from workbench.chains.correction import CorrectedForecaster
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Points

SEEDS = range(5)


def seen(samples: list[Sample]) -> Measured:
    return measured(CHAIN, samples, kpi="mean_ms", kpi_max=KPI_MAX, primary=CLIENTS)


def corrected(chain: SyntheticChain, samples: list[Sample], terms: bool) -> CorrectedForecaster:
    return CorrectedForecaster(chain, seen(samples), chain if terms else None)


def truth(chain: SyntheticChain, points: Points) -> Floats:
    return np.log([chain.truth(configuration, wl) for configuration, wl in points])


def error(said: Floats, true: Floats) -> float:
    return float(np.median(np.abs(said - true)))


def proportional(samples: list[Sample], points: Points) -> Floats:
    """From the last sample of each configuration, KPI proportional to the load."""
    last = {s.point.configuration: s for s in sorted(samples, key=lambda s: s.point.wl)}
    return np.log([last[c].kpis["mean_ms"].value * wl / last[c].point.wl for c, wl in points])


def constant_ratio(chain: SyntheticChain, samples: list[Sample], points: Points) -> Floats:
    ratios: dict[Configuration, list[float]] = {}
    for s in samples:
        said = chain.forecast([(s.point.configuration, s.point.wl)]).mean[0]
        gap = math.log(s.kpis["mean_ms"].value) - said
        ratios.setdefault(s.point.configuration, []).append(gap)
    return chain.forecast(points).mean + [float(np.mean(ratios[c])) for c, _ in points]


@pytest.mark.parametrize("knee", [6.0, 60.0], ids=["rounded", "sharp"])
@pytest.mark.parametrize("settings", [SETTINGS, SETTINGS[3:]], ids=["four", "never-saturated"])
def test_ten_samples_of_the_lower_half_say_the_upper_half(
    settings: tuple[Configuration, ...], knee: float
) -> None:
    ours, ratio, scaled, inside = [], [], [], []
    points = upper_half(*settings)
    for seed in SEEDS:
        chain = SyntheticChain(seed, knee=knee)
        samples = chain.lower_half(10, *settings)
        model = corrected(chain, samples, terms=True)
        said, true = model.forecast(points), truth(chain, points)
        ours.append(error(said.mean, true))
        ratio.append(error(constant_ratio(chain, samples, points), true))
        scaled.append(error(proportional(samples, points), true))
        inside.append(np.mean((said.low <= true) & (true <= said.high)))
        assert model.applied
        highest = {
            c: max(s.point.wl for s in samples if s.point.configuration == c) for c in settings
        }
        assert said.extrapolates.tolist() == [wl > 2.0 * highest[c] for c, wl in points]
    assert max(ours) <= max(0.10, 1.5 * NOISE)
    assert np.median(ours) < 0.5 * min(np.median(ratio), np.median(scaled))
    assert np.mean(inside) >= 0.9


def test_without_terms_a_ratio_that_falls_does_not_fall_on_below_one() -> None:
    errors, ratio = [], []
    points = upper_half(*SETTINGS)
    for seed in SEEDS:
        chain = SyntheticChain(seed)
        samples = chain.lower_half(10, *SETTINGS)
        model = corrected(chain, samples, terms=False)
        said = model.forecast(points)
        far = model.forecast([(SETTINGS[0], 2_000.0)]).mean - chain.bottleneck(
            [(SETTINGS[0], 2_000.0)]
        )
        assert -0.3 < far[0] < 0.5
        errors.append(error(said.mean, truth(chain, points)))
        ratio.append(error(constant_ratio(chain, samples, points), truth(chain, points)))
    assert np.median(errors) < 0.25 * np.median(ratio)


@pytest.mark.parametrize("terms", [True, False], ids=["terms", "offset"])
def test_a_prediction_that_is_right_is_left_as_it_is(terms: bool) -> None:
    applied = 0
    points = upper_half(*SETTINGS)
    for seed in SEEDS:
        chain = SyntheticChain(seed, knee=None)
        model = corrected(chain, chain.lower_half(10, *SETTINGS), terms)
        applied += model.applied
        true = truth(chain, points)
        worse = error(model.forecast(points).mean, true) - error(chain.forecast(points).mean, true)
        assert worse < 0.03, "less than the noise of a sample"
        if not model.applied:
            assert all(change.after == change.before for change in model.changes())
    assert applied <= 1


def test_luck_of_one_start_is_no_reason_to_change_the_prediction() -> None:
    """All samples of one deployment are 5 % above: the host may do that by itself."""
    chain = SyntheticChain(0, knee=None, own=0.0, wrong=0.0, noise=0.01)
    samples = [
        sample(wl, 1.05 * chain.truth(SETTINGS[0], wl), noise=0.02)
        for wl in (1.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
    ]
    assert not corrected(chain, samples, terms=True).applied
    certain = CorrectedForecaster(chain, seen(samples), chain, shared_sd=0.001)
    assert certain.applied, "unless starts are known to be all alike"


def test_the_coefficients_are_those_of_the_chain() -> None:
    chain = SyntheticChain(3, knee=60.0, own=0.0, shared=0.0, wrong=0.0)
    changes = corrected(chain, chain.lower_half(20, *SETTINGS), terms=True).changes()
    common = {c.name: c for c in changes if c.configuration is None}
    assert common["delta"].before == 0.0
    assert common["delta"].after == pytest.approx(44.0, rel=0.1)
    assert common["delta"].low < 44.0 < common["delta"].high
    assert common["kappa"].after == pytest.approx(1.0, abs=0.1)
    assert {c.configuration for c in changes} == {None, *SETTINGS}


def test_a_configuration_without_samples_gets_what_its_order_shares_less_surely() -> None:
    chain = SyntheticChain(1)
    samples = chain.lower_half(12, *SETTINGS[:3])
    model = corrected(chain, samples, terms=True)
    new, known = setting(1.0, 0.25), SETTINGS[0]
    said = model.forecast([(new, 8.0), (known, 8.0)])
    widths = said.high - said.low
    assert np.exp(said.mean[0]) == pytest.approx(chain.truth(new, 8.0), rel=0.15)
    assert widths[0] > widths[1]
    assert not said.extrapolates.any()


@pytest.mark.parametrize("terms", [True, False], ids=["terms", "offset"])
def test_another_prediction_is_added_what_the_order_shares(terms: bool) -> None:
    """Of twice as many instances, say, each of which has half of the load."""
    chain = SyntheticChain(1)
    model = corrected(chain, chain.lower_half(12, *SETTINGS), terms)
    several = SyntheticChain(1)
    several._profiled = lambda c, wl: chain._profiled(c, wl / 2.0)  # type: ignore[method-assign]
    said = model.carried_to(several, several if terms else None).forecast([(SETTINGS[0], 8.0)])
    before = several.forecast([(SETTINGS[0], 8.0)])
    assert np.exp(said.mean[0]) > 5.0 * np.exp(before.mean[0])
    own = model.forecast([(SETTINGS[0], 8.0)])
    assert said.high[0] - said.low[0] > own.high[0] - own.low[0], "nobody has measured them"
    if terms:
        assert np.exp(said.mean[0]) == pytest.approx(44.0, rel=0.25)
        assert own.mean[0] != said.mean[0], "the model itself is as it was"


def test_a_part_of_the_samples_is_fitted_like_samples_of_their_own() -> None:
    chain = SyntheticChain(1)
    samples = chain.lower_half(12, *SETTINGS[:3])
    without = [s for s in samples if s.point.configuration != SETTINGS[1]]
    part = seen(samples).take(np.array([s in without for s in samples]))
    points = upper_half(*SETTINGS)
    one = CorrectedForecaster(chain, part, chain).forecast(points)
    other = corrected(chain, without, terms=True).forecast(points)
    assert one.mean == pytest.approx(other.mean)
    assert one.high == pytest.approx(other.high)


def test_one_wild_sample_moves_nothing() -> None:
    chain = SyntheticChain(2)
    samples = chain.lower_half(10, SETTINGS[0])
    calm = corrected(chain, samples, terms=True)
    value = samples[4].kpis["mean_ms"].value
    samples[4] = sample(samples[4].point.wl, 3.0 * value)
    wild = corrected(chain, samples, terms=True)
    points = upper_half(SETTINGS[0])
    apart = np.abs(wild.forecast(points).mean - calm.forecast(points).mean)
    assert apart.max() < 0.08


def test_canaries_below_saturation_leave_the_bottleneck_uncertain_and_say_so() -> None:
    chain = SyntheticChain(1, knee=60.0)
    short = [chain.measure(SETTINGS[0], float(wl)) for wl in range(1, 11)]
    long = [chain.measure(SETTINGS[0], float(wl)) for wl in range(1, 101, 10)]
    points = [(SETTINGS[0], 120.0)]
    width = [
        (said.high - said.low)[0]
        for said in (corrected(chain, s, terms=True).forecast(points) for s in (short, long))
    ]
    assert width[0] > 1.5 * width[1]


def test_the_same_samples_give_the_same_coefficients() -> None:
    chain = SyntheticChain(4)
    samples = chain.lower_half(10, *SETTINGS)
    one, other = (corrected(chain, samples, terms=True).coefficients for _ in range(2))
    assert np.array_equal(one, other)
    assert np.isfinite(one).all()


def test_what_cannot_be_learned_from_is_named() -> None:
    chain = SyntheticChain(0)
    with pytest.raises(DataError, match="1 sample at 1 operating point"):
        corrected(chain, [chain.measure(SETTINGS[0], 8.0)], terms=True)
    with pytest.raises(DataError, match="none of 2 samples states mean_ms"):
        seen([sample(8.0, 500.0, overloaded=True), sample(9.0, 600.0, overloaded=True)])
    with pytest.raises(DataError, match="2 are invalid"):
        seen([sample(8.0, 50.0, reason="errors"), sample(9.0, 60.0, reason="little")])
    with pytest.raises(DataError, match="has no samples"):
        seen([])


def test_a_trend_that_no_term_explains_is_modelled_where_held_out_samples_ask_for_it() -> None:
    """A hump of 35 % around 20 clients, of which the law knows nothing."""

    def hump(wl: float) -> float:
        return math.exp(0.35 * math.exp(-0.5 * (math.log(wl / 20.0) / 0.5) ** 2))

    chain = SyntheticChain(0, knee=60.0, noise=0.02, shared=0.0, own=0.0)
    loads = [1.0, 2.0, 4.0, 7.0, 11.0, 15.0, 20.0, 27.0, 36.0, 48.0, 64.0]
    plain = [chain.measure(SETTINGS[3], wl) for wl in loads]
    humped = [
        sample(s.point.wl, s.kpis["mean_ms"].value * hump(s.point.wl), SETTINGS[3], noise=0.02)
        for s in plain
    ]
    middle = (SETTINGS[3], 20.0)
    for samples, factor in ((plain, 1.0), (humped, hump(20.0))):
        said = corrected(chain, samples, terms=True).forecast([middle]).mean[0]
        assert said == pytest.approx(math.log(factor * chain.truth(*middle)), abs=0.06)


class Thinking(SyntheticChain):
    """Profiles of a function that carries 1 request per ms, whose clients think 100 ms."""

    def _time(self, wl: float) -> float:
        return max(2.0, wl - 100.0)

    def bottleneck(self, points: Points) -> Floats:
        return np.log([self._time(wl) for _, wl in points])

    def forecast(self, points: Points) -> Forecast:
        mean = self.bottleneck(points)
        return Forecast(mean, mean - 0.05, mean + 0.05, np.zeros(len(mean), dtype=bool))


def test_a_chain_that_saturates_at_a_third_of_the_load_is_learned_from_samples_below_half() -> None:
    """Its function needs three times the CPU beside its neighbour; alone it waits at no load."""
    chain = Thinking(0)
    chain.think_ms = 100.0
    random = np.random.default_rng(0)

    def truth(wl: float) -> float:
        return max(2.0, 3.0 * wl - 100.0)

    loads = [4.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    samples = [sample(wl, truth(wl) * math.exp(0.05 * random.standard_normal())) for wl in loads]
    model = CorrectedForecaster(chain, seen(samples), chain)
    points = [(SETTINGS[0], wl) for wl in (70.0, 85.0, 100.0, 120.0)]
    said = model.forecast(points)
    true = np.log([truth(wl) for _, wl in points])
    assert error(said.mean, true) < 0.06
    assert ((said.low <= true) & (true <= said.high)).all()
    (kappa,) = (c for c in model.changes() if c.name == "kappa" and c.configuration is not None)
    assert kappa.after == pytest.approx(3.0, rel=0.1)
