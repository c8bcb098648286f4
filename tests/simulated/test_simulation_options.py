"""Options as text, and the stand-ins of templates."""

from itertools import pairwise

import pytest

from workbench.domain.errors import LabError, UsageError
from workbench.domain.topology import VnfTemplate
from workbench.labs.simulated.noise import drift, stream
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.stand_ins import stand_in


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
    ],
)
def test_mistakes_in_options_are_sentences(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        SimulationOptions.parse(text)
    assert says in str(caught.value)
    assert f"sim:{text}" in str(caught.value)


def test_a_template_goes_over_what_was_measured_and_that_over_the_role() -> None:
    assert stand_in(VnfTemplate("haproxy")).service(10_000).mean_s == pytest.approx(15e-6)
    tuned = stand_in(VnfTemplate("haproxy", simulated={"service_us": 25.0}))
    assert tuned.service(10_000).mean_s == pytest.approx(30e-6)
    assert tuned.delayed_ack_ms == 44.0
    assert stand_in(VnfTemplate("tinyproxy")).service(10_000).mean_s == pytest.approx(290e-6)
    assert stand_in(VnfTemplate("mine")).service(10_000).mean_s == pytest.approx(60e-6)
    assert stand_in(VnfTemplate("oha", role="source")).service_us == 40.0


def test_threads_follow_the_allotment_unless_given() -> None:
    part = stand_in(VnfTemplate("haproxy"))
    assert [part.threads_at(vcpu) for vcpu in (0.125, 1.0, 1.5, 4.0)] == [1, 1, 2, 4]
    assert stand_in(VnfTemplate("haproxy", simulated={"threads": 3.0})).threads_at(0.5) == 3


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(LabError, match="knows no servise_us") as caught:
        stand_in(VnfTemplate("haproxy", simulated={"servise_us": 1.0}))
    assert "template haproxy" in str(caught.value)


def test_streams_are_the_same_everywhere_and_differ_by_name() -> None:
    assert stream(1, "works", "a").random() == pytest.approx(0.41301, abs=1e-5)
    assert stream(1, "works", "a").random() != stream(1, "works", "b").random()
    assert stream(1, "a", "b").random() != stream(1, "ab").random()


def test_drift_is_slow_and_does_not_depend_on_how_far_it_was_asked() -> None:
    options = SimulationOptions(drift_sd=0.1)
    path = [drift(options, 3, block, 60.0) for block in range(200)]
    steps = [abs(b - a) for a, b in pairwise(path)]
    assert max(map(abs, path)) < 0.4
    assert sum(steps) / len(steps) < 0.06
    assert drift(SimulationOptions(noise=False), 3, 7, 60.0) == 0.0
