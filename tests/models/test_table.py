"""From samples to a table: what is in it, and a sentence for whatever cannot make one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from synthetic_function import CLOSED, RATE, TARGET, make_sample

from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate, Sample
from workbench.models.selection import stated
from workbench.models.table import Table, fitted_to, table_of

SMALL, LARGE = (
    Configuration({"haproxy.vcpu": vcpu, "haproxy.flavor": name}, {"filesize_bytes": 1e4})
    for vcpu, name in ((0.25, "small"), (0.5, "large"))
)


def sample(wl: float, p95: float, configuration: Configuration = SMALL, **kwargs: object) -> Sample:
    return make_sample(wl, {"p95_ms": p95}, configuration=configuration, **kwargs)  # type: ignore[arg-type]


def made(samples: list[Sample], kpi: str = "p95_ms") -> Table:
    return table_of(TARGET, samples, kpi=kpi, kpi_max=100.0, primary=RATE)


def test_parameters_in_logs_flavors_as_codes_the_load_last() -> None:
    samples = [
        sample(100.0, 5.0),
        sample(100.0, 6.0, repetition=1),
        sample(400.0, 900.0, LARGE),
        sample(200.0, 7.0, LARGE, reason="errors"),
        sample(800.0, 5000.0, LARGE, overloaded=True),
    ]
    table = made(samples)
    keys = [column.key for column in table.columns]
    assert keys == ["haproxy.flavor", "haproxy.vcpu", "filesize_bytes", "rate"]
    assert table.categorical == (0,)
    assert table.sample_ids == tuple(s.id for s in samples[:3]), "only valid figures are values"
    expected = [
        [1, math.log(0.25), math.log(1e4), math.log(100)],
        [1, math.log(0.25), math.log(1e4), math.log(100)],
        [0, math.log(0.5), math.log(1e4), math.log(400)],
    ]
    np.testing.assert_allclose(table.X, expected)
    np.testing.assert_allclose(table.y, np.log([5.0, 6.0, 100.0]), err_msg="at most the ceiling")
    assert len(set(table.points)) == 2
    assert table.points[0] == table.points[1]
    np.testing.assert_allclose(table.rows([(LARGE, 400.0)]), expected[2:])
    assert table.take(np.array([2])).sample_ids == table.sample_ids[2:]


def test_no_errors_at_all_are_a_figure_of_a_load_that_is_too_much() -> None:
    """Bounds of response times begin at their value, too: a share of 0 was taken for one."""
    none = make_sample(800.0, {"error_pct": 0.0}, overloaded=True)
    estimate = Estimate(0.0, 0.0, 0.3)
    none = replace(none, kpis={**none.kpis, "error_pct": estimate})
    assert stated(none, "error_pct") == estimate
    longer = replace(none, kpis={"p95_ms": Estimate(900.0, 900.0, 5000.0)})
    assert stated(longer, "p95_ms") is None


def test_a_model_is_told_what_it_can_be_told() -> None:
    from workbench.models.interpolation import LogInterpolation

    table = made([sample(100.0, 5.0), sample(200.0, 6.0, LARGE)])
    model = fitted_to(LogInterpolation(), table)
    assert isinstance(model, LogInterpolation)
    assert model.categorical == (0,)


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        ([], "haproxy: has no samples"),
        ([sample(1.0, 2.0, reason="errors")], "none of 1 samples states p95_ms: 1 are invalid"),
        (
            [sample(9.0, 900.0, overloaded=True), sample(1.0, 2.0, reason="errors")],
            "none of 2 samples states p95_ms: 1 are invalid, 1 only bound it",
        ),
        ([sample(1.0, 2.0), sample(2.0, 2.0, load=CLOSED)], "different kinds never share a model"),
        (
            [sample(1.0, 2.0), replace(sample(2.0, 2.0), labels=("emulated",))],
            "samples of an emulated CPU and of a real one never share a model",
        ),
        (
            [sample(1.0, 2.0), replace(sample(2.0, 2.0), kpi_definition="service")],
            "latency by service",
        ),
        (
            [replace(sample(1.0, 2.0), kpis={"p95_ms": Estimate(math.nan, 1.0, 2.0)})],
            "p95_ms is nan",
        ),
        (
            [sample(1.0, 2.0), sample(1.0, 2.0, Configuration({"haproxy.vcpu": 0.25}, {}))],
            "is set in some samples and absent in others",
        ),
        (
            [
                sample(1.0, 2.0, Configuration({"haproxy.vcpu": 0.25}, {})),
                sample(1.0, 2.0, Configuration({"haproxy.vcpu": "small"}, {})),
            ],
            "haproxy.vcpu: mixes names and numbers",
        ),
        ([sample(0.0, 2.0)], "a load of 0 has no logarithm"),
        (
            [sample(1.0, 2.0), make_sample(2.0, {"p95_s": 0.002}, configuration=SMALL)],
            "p95_ms and p95_s are one figure in different units",
        ),
    ],
)
def test_what_makes_no_table_is_a_sentence(samples: list[Sample], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        made(samples)


def test_another_unit_is_no_matter_where_it_is_beside_the_first_or_not_valid() -> None:
    both = make_sample(2.0, {"p95_ms": 3.0, "p95_s": 0.003, "p99_ms": 4.0}, configuration=SMALL)
    lacking = make_sample(4.0, {"p99_s": 0.1, "ms": 1.0}, configuration=SMALL)
    invalid = make_sample(3.0, {"p95_s": 0.003}, configuration=SMALL, reason="errors")
    assert len(made([sample(1.0, 2.0), both, lacking, invalid])) == 2


def test_what_was_not_profiled_is_not_asked_for() -> None:
    table = made([sample(100.0, 5.0), sample(200.0, 6.0, LARGE)])
    with pytest.raises(DataError, match=r"haproxy.flavor: 'huge' was not profiled"):
        table.rows([(replace(SMALL, resources={**SMALL.resources, "haproxy.flavor": "huge"}), 1.0)])
    with pytest.raises(DataError, match=r"haproxy.vcpu: is not given"):
        table.rows([(Configuration({"haproxy.flavor": "small"}, {"filesize_bytes": 1e4}), 1.0)])
    with pytest.raises(DataError, match="0 has no logarithm"):
        table.rows([(replace(SMALL, workload={"filesize_bytes": 0.0}), 1.0)])
