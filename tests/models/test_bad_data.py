"""Bad data through what `workbench models` does with a session: a sentence, never a silent fit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from registered import cheaper, once_a_kind
from session_making import campaign
from synthetic_function import CLOSED, OPEN, TARGET, make_sample

from workbench import plugins
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, LoadModel
from workbench.domain.samples import Estimate, Sample
from workbench.engine.learning.scoring import row_of, table_for
from workbench.models.table import Table

MODELS = plugins.names("models")
SMALL, LARGE = (Configuration({"haproxy.vcpu": v}, {"filesize_bytes": 1e4}) for v in (0.125, 0.25))
PACKETS = LoadModel("open", unit="packets")


def at(wl: float, p95: float = 5.0, **how: object) -> Sample:
    how = {"configuration": SMALL, **how}
    return make_sample(wl, {"p95_ms": p95}, **how)  # type: ignore[arg-type]


def figure(value: float) -> Sample:
    return replace(at(200.0), kpis={"p95_ms": Estimate(value, value, value)})


def table(samples: Sequence[Sample], kpi: str = "p95_ms") -> Table:
    return table_for(campaign(), TARGET, samples, kpi)


GOOD = [at(100.0), at(200.0, 6.0), at(400.0, 9.0)]
BAD: dict[str, tuple[list[Sample], str]] = {
    "nothing": ([], "haproxy: has no samples"),
    "another target": (
        [replace(s, point=replace(s.point, target="tiny")) for s in GOOD],
        "haproxy: has no samples",
    ),
    "NaN": ([*GOOD, figure(math.nan)], "p95_ms is nan"),
    "infinite": ([*GOOD, figure(math.inf)], "p95_ms is inf"),
    "NaN load": ([*GOOD, at(math.nan)], "a load of nan has no logarithm"),
    "no load": ([*GOOD, at(0.0)], "a load of 0 has no logarithm"),
    "constant KPI": ([at(wl) for wl in (1.0, 2.0, 3.0)], "is the same in all 3 samples"),
    "always at its ceiling": (
        [at(wl, 1e6 * wl) for wl in (1.0, 2.0, 3.0)],
        "is the same in all 3 samples",
    ),
    "a single sample": ([at(100.0)], "has 1 sample, all at one operating point"),
    "a single one of four that were measured": (
        [at(100.0), at(200.0, reason="errors"), *(at(wl, overloaded=True) for wl in (4e2, 8e2))],
        r"has 1 sample of 4 that states p95_ms \(1 are invalid, 2 only bound it or lack it\), all",
    ),
    "two samples at one point": (
        [at(100.0), at(100.0, 6.0, repetition=1)],
        "has 2 samples, all at one operating point",
    ),
    "all invalid": (
        [at(100.0, reason="errors"), at(200.0, reason="unsteady")],
        "none of 2 samples states p95_ms: 2 are invalid, 0 only bound it or lack it",
    ),
    "all censored": (
        [at(100.0, overloaded=True), at(200.0, overloaded=True)],
        "none of 2 samples states p95_ms: 0 are invalid, 2 only bound it or lack it",
    ),
    "mixed definitions": (
        [*GOOD, replace(at(50.0), kpi_definition="request")],
        "different kinds never share a model: .* by planned; .* by request",
    ),
    "mixed load models": ([*GOOD, at(50.0, load=CLOSED)], "closed-think-0.1s load, .*; open-"),
    "mixed think times": (
        [at(10.0, load=CLOSED), at(20.0, load=replace(CLOSED, think_time_s=1.0))],
        "closed-think-0.1s load, .*; closed-think-1s load",
    ),
    "requests and packets": (
        [*GOOD, make_sample(9.0, {"loss_pct": 1.0}, configuration=SMALL, load=PACKETS)],
        "open-constant load, .*; packets-constant load",
    ),
    "numbers and names": (
        [*GOOD, at(50.0, configuration=replace(SMALL, resources={"haproxy.vcpu": "125m"}))],
        "haproxy.vcpu: mixes names and numbers",
    ),
    "units mixed": (
        [*GOOD, make_sample(50.0, {"p95_s": 0.004}, configuration=SMALL)],
        "p95_ms and p95_s are one figure in different units",
    ),
    "parameters set here and not there": (
        [*GOOD, at(50.0, configuration=replace(SMALL, workload={}))],
        "filesize_bytes: is set in some samples and absent in others",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_table_that_teaches_nothing_is_refused_by_name(bad: str) -> None:
    samples, sentence = BAD[bad]
    with pytest.raises(DataError) as caught:
        table(samples)
    assert re.search(sentence, str(caught.value))


def test_a_kpi_that_nobody_measured_is_named() -> None:
    with pytest.raises(DataError, match="none of 3 samples states loss_pct: 0 are invalid, 3 only"):
        table(GOOD, "loss_pct")


THIN: dict[str, list[Sample]] = {
    "two points": GOOD[:2],
    "three points": GOOD,
    "two configurations, one load": [at(100.0), at(100.0, 6.0, configuration=LARGE)],
    "repetitions that differ": [*GOOD[:2], at(100.0, 7.0, repetition=1)],
    "flat but for one": [*(at(float(wl)) for wl in range(100, 105)), at(800.0, 900.0)],
}


@pytest.mark.parametrize("thin", THIN)
@pytest.mark.parametrize("name", once_a_kind(MODELS))
def test_every_model_scores_thin_data_or_says_what_is_missing(
    name: str, thin: str, full_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not full_length:
        factory = plugins.load("models", name)
        monkeypatch.setattr(plugins, "load", lambda *_: lambda: cheaper(factory()))
    row = row_of(table(THIN[thin]), name, "point", None)
    if row.scores is None:
        # One sentence that names what is missing, not whatever a library raised.
        assert re.search(r"needs \d|cannot be parted", row.trouble), row.trouble
        assert not re.match(r"\w*(Error|Warning): ", row.trouble)
    else:
        assert np.isfinite([row.scores.log_error, row.scores.rmse]).all()
        assert row.scores.coverage is None or 0.0 <= row.scores.coverage <= 1.0


@pytest.mark.parametrize("name", MODELS)
def test_by_configuration_there_must_be_two_of_them(name: str) -> None:
    row = row_of(table(GOOD), name, "configuration", None)
    assert "3 samples of 1 configuration cannot be parted into training and test" in row.trouble


SPOILED = {
    "nan": (lambda X, y, sd: (np.where(X[3] == X, np.nan, X), y, sd), "contains NaN"),
    "infinite": (lambda X, y, sd: (X, np.where(y == y[3], np.inf, y), sd), "contains infinity"),
    "negative noise": (lambda X, y, sd: (X, y, np.where(y == y[3], -1.0, sd)), "deviations"),
    "noise missing": (lambda X, y, sd: (X, y, sd[:-1]), "standard deviations"),
    "empty": (lambda X, y, sd: (X[:0], y[:0], sd[:0]), "0 sample"),
    "lengths": (lambda X, y, sd: (X, y[:-1], sd), "inconsistent numbers of samples"),
}
"""What reaches a model only by another way than a table."""


@pytest.mark.parametrize("spoil", SPOILED)
@pytest.mark.parametrize("name", MODELS)
def test_arrays_that_cannot_be_are_named_by_every_model(name: str, spoil: str) -> None:
    random = np.random.default_rng(0)
    X, y = random.uniform(-1.0, 1.0, (12, 3)), random.normal(size=12)
    change, sentence = SPOILED[spoil]
    with pytest.raises(DataError, match=sentence):
        plugins.load("models", name)().fit(*change(X, y, np.full(12, 0.1)))


def test_the_campaign_and_the_samples_are_of_one_load_model() -> None:
    """What the cases above rest on: they are good but for one thing."""
    assert len(table(GOOD)) == 3
    assert {s.load_model for s in GOOD} == {OPEN.key}
