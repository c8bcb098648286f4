"""How far a chain is from its prediction is said in one way, the plain one."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from workbench.domain import departures
from workbench.domain.parameters import Configuration
from workbench.domain.retraining import ChainComparison, ConfigurationScore


@pytest.mark.parametrize(
    ("kpi", "ratio", "said"),
    [
        ("p95_ms", 34.4, "34 times slower"),
        ("p95_ms", 9.28, "9.3 times slower"),
        ("p95_ms", 2.0, "2 times slower"),
        ("p95_ms", 1.23, "23 % slower"),
        ("p95_ms", 1.001, "as predicted"),
        ("p95_ms", 0.316, "3.2 times faster"),
        ("p95_ms", 1 / 1.4, "40 % faster"),
        ("p95_ms", 1234.0, "1200 times slower"),
        ("throughput_rps", 0.25, "4 times less"),
        ("jitter_ms", 3.0, "3 times more"),
        ("p95_ms", 0.0, "endlessly faster"),
    ],
)
def test_a_ratio_in_plain_words(kpi: str, ratio: float, said: str) -> None:
    assert departures.than_predicted(kpi, ratio) == said


def test_what_is_only_a_lower_bound_says_so() -> None:
    said = departures.than_predicted("p95_ms", 4.61, at_least=True)
    assert said == "at least 4.6 times slower"


def test_a_sentence_says_than_what() -> None:
    assert departures.sentence("34 times slower") == "34 times slower than predicted"
    assert departures.sentence("12 % off") == "12 % off what was predicted"
    assert departures.sentence("as predicted") == "as predicted"


def test_errors_to_both_sides_have_no_side() -> None:
    assert departures.typically("p95_ms", math.log(3), 1.02) == "3 times off"
    assert departures.typically("p95_ms", math.log(3), 2.5) == "3 times slower"
    assert departures.typically("p95_ms", math.log(3), 0.4) == "3 times faster"


def test_what_is_off_by_nothing_is_as_predicted_whether_or_not_it_has_a_side() -> None:
    assert departures.typically("p95_ms", 0.001, 1.0) == "as predicted"
    assert departures.typically("p95_ms", 0.001, 1.001) == "as predicted"
    assert departures.typically("p95_ms", 0.04, 1.0) == "4 % off"


def score(samples: int, ratio: float) -> ConfigurationScore:
    where = Configuration({"haproxy.vcpu": ratio}, {})
    return ConfigurationScore(where, samples, 0.97, abs(math.log(ratio)), ratio)


def test_a_chain_that_is_34_times_slower_reads_so() -> None:
    found = ChainComparison(
        chain="c", kpi="p95_ms", rule="convolved", samples=40, ab_floor=0.94, mae=1.0, mad=1.0,
        rmse=1.0, mape=0.97, log_error=3.54, coverage=0.0, baseline="", baseline_rmse=None,
        configurations=(score(30, 36.0), score(10, 30.0)), buckets=(), outliers=(),
    )  # fmt: skip
    assert departures.sentence(departures.of_chain(found)) == "34 times slower than predicted"
    assert departures.of_all_samples(found) == (
        "34 times slower than predicted (median of 40 samples)"
    )
    mixed = replace(found, configurations=(score(20, 30.0), score(20, 1 / 30.0)))
    assert departures.of_chain(mixed) == "34 times off"


def test_a_proposal_of_an_older_session_is_said_in_the_same_words() -> None:
    scores = SimpleNamespace(samples=23, log_error=2.494)
    made = SimpleNamespace(
        statement="The median error on 23 held-out samples falls from 1111% to 6%. It needs 2.",
        before=scores,
        after=SimpleNamespace(samples=23, log_error=0.0574),
    )
    said = "Before it was 12 times off, now 6 % off (median of 23 held-out samples)."
    assert departures.statement_of(made) == f"{said} It needs 2."  # type: ignore[arg-type]
    made.statement = said
    assert departures.statement_of(made) == said  # type: ignore[arg-type]
