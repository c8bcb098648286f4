"""Options as text, and the stand-ins of templates."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from workbench.domain.errors import LabError, UsageError
from workbench.domain.topology import VnfTemplate
from workbench.labs.simulated.component_models import stand_in
from workbench.labs.simulated.noise import HostDrift, luck, pass_step, stream
from workbench.labs.simulated.options import HELD_OUT, NoiseLaw, SimulationOptions


def test_options_are_read_from_text() -> None:
    options = SimulationOptions.parse("source_cap=0.7, noise=0,host_cores=8")
    assert options == SimulationOptions(source_cap=0.7, noise=False, host_cores=8)
    assert isinstance(options.host_cores, int)
    assert SimulationOptions.parse("") == SimulationOptions()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sauce_cap=0.7", "'sauce_cap' is no option"),
        ("source_cap=much", "source_cap is 'much'"),
        ("source_cap", "Give a number"),
        ("noise=2", "Give 0 or 1"),
        ("drift_sd=-1", "not negative"),
        ("drift_sd=nan", "drift_sd is 'nan'"),
        ("host_cores=inf", "host_cores is 'inf'"),
        ("host_cores=0", "at least one core"),
        ("function.sauce=1", "'sauce' is no key"),
        ("noise_law=gaussian", "student or interference"),
        ("bypass_share=1", "share below 1"),
        ("freedom=2", "more than 2"),
        ("pass_step_low=0.3", "at most pass_step_high"),
    ],
)
def test_mistakes_in_options_are_sentences(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        SimulationOptions.parse(text)
    assert says in str(caught.value)
    assert f"sim:{text}" in str(caught.value)


def test_a_template_goes_over_the_defaults_and_options_over_that() -> None:
    assert stand_in(VnfTemplate("mine")).service(10_000).mean_s == pytest.approx(60e-6)
    tuned = VnfTemplate("mine", simulated={"service_us": 25.0, "delayed_ack_ms": 44.0})
    assert stand_in(tuned).service(10_000).mean_s == pytest.approx(35e-6)
    options = SimulationOptions.parse("function.per_kb_us=0,function.decay=0.4")
    over = stand_in(tuned, options.functions)
    assert over.service(10_000).mean_s == pytest.approx(25e-6)
    assert (over.decay, over.delayed_ack_ms) == (0.4, 44.0)


def test_threads_follow_the_allotment_unless_given() -> None:
    part = stand_in(VnfTemplate("mine"))
    assert [part.threads_at(vcpu) for vcpu in (0.125, 1.0, 1.5, 4.0)] == [1, 1, 2, 4]
    assert stand_in(VnfTemplate("mine", simulated={"threads": 3.0})).threads_at(0.5) == 3


@pytest.mark.parametrize("wrong", [{"decay": 1.0}, {"plateau": 0.0}, {"knee_width": 0.6}])
def test_a_stand_in_that_cannot_be_is_told_off(wrong: dict[str, float]) -> None:
    with pytest.raises(LabError, match="template mine, simulated"):
        stand_in(VnfTemplate("mine", simulated=wrong))


def test_what_is_held_out_is_nobodys_default() -> None:
    """Families that no method may have been tuned on (docs/simulated-lab.md)."""
    for name, value in HELD_OUT.items():
        assert getattr(SimulationOptions(), name) != value
        assert getattr(SimulationOptions.parse(f"{name}={value}"), name) == value


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(LabError, match="knows no servise_us") as caught:
        stand_in(VnfTemplate("haproxy", simulated={"servise_us": 1.0}))
    assert "template haproxy" in str(caught.value)


def test_streams_are_the_same_everywhere_and_differ_by_name() -> None:
    assert stream(1, "works", "a").random() == pytest.approx(0.41301, abs=1e-5)
    assert stream(1, "works", "a").random() != stream(1, "works", "b").random()
    assert stream(1, "a", "b").random() != stream(1, "ab").random()


@pytest.mark.parametrize("law", get_args(NoiseLaw))
def test_drift_has_its_deviation_and_correlation(law: NoiseLaw) -> None:
    options = SimulationOptions(noise_law=law, drift_sd=0.08, drift_s=120.0)
    instants = np.arange(0.0, 400_000.0, 40.0)
    path = HostDrift(options, 3)
    levels = np.array([path.at(float(s)) for s in instants])
    assert np.std(levels) == pytest.approx(0.08, rel=0.1)
    correlation = np.corrcoef(levels[:-3], levels[3:])[0, 1]
    assert correlation == pytest.approx(math.exp(-1.0), abs=0.06)
    late = HostDrift(options, 3)
    assert late.at(4000.0) == levels[100]
    assert late.at(40.0) == levels[1]
    assert HostDrift(replace(options, noise=False), 3).at(7.0) == 0.0


@pytest.mark.parametrize("law", get_args(NoiseLaw))
@pytest.mark.parametrize("freedom", [0.0, 4.0])
def test_window_and_tail_factors_have_median_one_and_their_deviations(
    law: NoiseLaw, freedom: float
) -> None:
    options = SimulationOptions(
        noise_law=law, freedom=freedom, window_sd=0.05, tail_sd=0.12, jitter_sd=0.0
    )
    drives = [luck(options, stream(seed, "drive"), 1, 100.0) for seed in range(4000)]
    windows = np.array([drive.service[0] for drive in drives])
    tails = np.log([drive.stretch for drive in drives])
    assert np.std(windows) == pytest.approx(0.05, rel=0.15)
    assert np.std(tails) == pytest.approx(0.12, rel=0.15)
    assert np.median(windows) == pytest.approx(0.0, abs=0.004)
    skew = np.mean((windows / 0.05) ** 3)
    assert skew > 1.5 if law == "interference" else abs(skew) < 1.5
    if law == "student":
        far = np.mean(np.abs(windows) > 3.0 * 0.05)
        assert (far > 0.006) == (freedom == 4.0)


def test_outliers_and_the_second_band_come_as_often_as_they_are_asked_for() -> None:
    options = SimulationOptions(
        outlier_share=0.05, outlier_factor=2.0, band_share=0.1, window_sd=0.01, jitter_sd=0.0
    )
    drives = [luck(options, stream(seed, "drive"), 1, 100.0) for seed in range(4000)]
    assert np.mean([drive.lengthen == 2.0 for drive in drives]) == pytest.approx(0.05, abs=0.01)
    slow = [drive.service[0] > 0.5 * math.log(1 / 0.8) for drive in drives]
    assert np.mean(slow) == pytest.approx(0.1, abs=0.015)


def test_passes_differ_by_twelve_to_thirty_per_cent_about_the_truth() -> None:
    options = SimulationOptions(pass_step_low=0.12, pass_step_high=0.30)
    for seed in range(10):
        levels = [pass_step(options, seed, block) for block in range(6)]
        assert all(0.12 <= abs(b - a) <= 0.30 for a, b in pairwise(levels))
        assert min(levels) < 0.0 < max(levels)
