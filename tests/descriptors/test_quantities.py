"""Units and SLAs as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.descriptors.sla_text import parse_sla
from workbench.descriptors.units import (
    BYTES,
    CORES,
    COUNT,
    MEGABITS,
    MILLISECONDS,
    PER_SECOND,
    PERCENT,
    SECONDS,
    SHARE,
    Dimension,
    shown,
)
from workbench.domain.errors import UsageError
from workbench.domain.kpis import known
from workbench.domain.parameters import Sla


class Sentence(str):
    """What was said instead of an answer."""


def outcome(read: Callable[[Any], Any], given: object) -> object:
    """The answer, or the sentence; anything else is raised."""
    try:
        return read(given)
    except (ValueError, UsageError) as error:
        sentence = Sentence(error)
    assert sentence.isprintable()
    return sentence


DIMENSIONS = (
    BYTES,
    CORES,
    COUNT,
    MEGABITS,
    MILLISECONDS,
    PER_SECOND,
    PERCENT,
    SECONDS,
    SHARE,
)


@pytest.mark.parametrize(
    ("dimension", "given", "value"),
    [
        (BYTES, "10kB", 10_000),
        (BYTES, "10 kB", 10_000),
        (BYTES, "1 MiB", 2**20),
        (BYTES, "1MB", 10**6),
        (BYTES, "1.5GiB", 1.5 * 2**30),
        (CORES, "25% vcpu", 0.25),
        (CORES, "12.5%", 0.125),
        (CORES, 0.25, 0.25),
        (CORES, "2 cores", 2),
        (SECONDS, "3s", 3),
        (SECONDS, "500ms", 0.5),
        (SECONDS, "8min", 480),
        (SECONDS, "250 us", 0.00025),
        (MILLISECONDS, "0.2s", 200),
        (PER_SECOND, "300/s", 300),
        (PER_SECOND, 300, 300),
        (PER_SECOND, "1.5k/s", 1500),
        (PER_SECOND, "90/min", 1.5),
        (SHARE, "1%", 0.01),
        (SHARE, 0.01, 0.01),
        (PERCENT, "0.5%", 0.5),
        (MEGABITS, "1Gbit/s", 1000),
        (COUNT, "1e3", 1000),
    ],
)
def test_quantities_are_read_in_their_unit(
    dimension: Dimension, given: object, value: float
) -> None:
    assert dimension.read(given) == value


@pytest.mark.parametrize(
    ("dimension", "given", "sentence"),
    [
        (SECONDS, 3, "is 3, but a duration needs a unit: us, ms, s, min, h, d; such as 3s"),
        (SECONDS, "3 parsecs", "'parsecs' is not a unit of a duration; allowed: us, ms, s"),
        (BYTES, "10KB", "'KB' is not a unit of a size; allowed: B, kB, MB"),
        (PER_SECOND, "300ms", "'ms' is not a unit of a rate; allowed: /s, k/s, /min"),
        (COUNT, "16 clients", "it is written without one; such as 16"),
        (CORES, "half", "is 'half', must be a vCPU share such as 0.25 or 25%"),
        (CORES, True, "is true, must be a vCPU share"),
        (CORES, None, "is empty, must be a vCPU share"),
        (CORES, "1e999", "must be finite"),
        (CORES, "1" * 100, "must be a vCPU share"),
    ],
)
def test_what_is_no_quantity_is_told_off(
    dimension: Dimension, given: object, sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"^is ") as raised:
        dimension.read(given)
    assert sentence in str(raised.value)


@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none()))
def test_nothing_but_a_sentence_comes_out(given: object) -> None:
    for dimension in DIMENSIONS:
        assert isinstance(outcome(dimension.read, given), float | Sentence)


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_how_a_share_is_written_does_not_change_it(share: float) -> None:
    plain = CORES.read(f"{share:.6g}")
    assert CORES.read(f"{plain * 100:.12g}%") == pytest.approx(plain, rel=1e-11)


def test_per_cent_and_cores_give_the_same_number() -> None:
    assert [CORES.read(f"{n}%") for n in range(1, 401)] == [n / 100 for n in range(1, 401)]


@given(st.text())
def test_shown_values_are_short_and_printable(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text)) <= 60


def test_the_sla_of_the_design() -> None:
    text = "p95<=200ms @ rate=300/s, filesize=10kB"

    assert parse_sla(text, "rate") == Sla(
        "p95_ms", 200.0, "<=", 300.0, {"filesize_bytes": 10_000.0}, text
    )


@pytest.mark.parametrize(
    ("text", "sla"),
    [
        ("p99 <= 1s", Sla("p99_ms", 1000.0)),
        ("loss<=0.1% @ rate=1k/s", Sla("loss_pct", 0.1, wl=1000.0)),
        ("throughput >= 800/s", Sla("throughput_rps", 800.0, ">=")),
        ("goodput_mbps>=50Mbit/s", Sla("goodput_mbps", 50.0, ">=")),
        ("mean ≤ 5ms@rate=10", Sla("mean_ms", 5.0, wl=10.0)),
        ("errors<=0%", Sla("error_pct", 0.0)),
    ],
)
def test_slas_are_read(text: str, sla: Sla) -> None:
    found = parse_sla(text, "rate")

    assert found.text == text
    assert (found.kpi, found.limit, found.direction, found.wl) == (
        sla.kpi,
        sla.limit,
        sla.direction,
        sla.wl,
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is '', must be an SLA such as"),
        ("p95", "must be an SLA such as"),
        ("p100<=200ms", "the KPI is 'p100', which is no KPI; allowed: p50"),
        ("p95<=200", "the limit is '200', but a response time needs a unit"),
        ("p95<=200kB", "'kB' is not a unit of a response time"),
        ("p95<=0ms", "the limit is '0ms', must be over 0"),
        ("loss<=101%", "must be at most 100%"),
        ("p95>=200ms", "compares p95_ms with >=, but its limit is <="),
        ("p95<200ms", "compares with '<', must be <= for p95_ms"),
        ("throughput<=1/s", "its limit is >="),
        ("p95<=1ms @", "must be NAME=VALUE, such as rate=300"),
        ("p95<=1ms @ rate", "has 'rate' behind the @"),
        ("p95<=1ms @ rate=1, rate=2", "gives 'rate' twice"),
        ("p95<=1ms @ rate=-1", "rate is '-1', must be over 0"),
        ("p95<=1ms @ rate=10kB", "rate is '10kB', but 'kB' is not a unit of a rate"),
        ("p95<=1ms @ concurrent=4", "allowed: rate, filesize"),
        ("p95<=1ms @ filesize=10", "filesize is '10', but"),
    ],
)
def test_wrong_slas_are_told_off(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_sla(text, "rate")
    assert sentence in raised.value.what
    assert "p95<=200ms @ rate=300/s" in str(raised.value)


@given(st.text(alphabet=st.sampled_from("p95<=>≤200ms @rate,filesize=kB/%.\n\x1b "), max_size=60))
def test_any_sla_text_gives_an_sla_or_a_sentence(text: str) -> None:
    assert isinstance(outcome(lambda given: parse_sla(given, "rate"), text), Sla | Sentence)


def test_every_kpi_has_a_short_name() -> None:
    assert {
        parse_sla(f"{alias}{'>=' if kpi.more_is_better else '<='}9{kpi.unit}", "rate").kpi
        for kpi in known().values()
        for alias in kpi.aliases
    } == set(known())
