"""Any sample that the domain can say comes back from the tables as the equal object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.domain.events import Event, SampleTaken
from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import (
    Bypass,
    Estimate,
    Finding,
    KpiDefinition,
    Label,
    LatencyHistogram,
    Measurement,
    Purpose,
    Reason,
    Remark,
    Sample,
    Usage,
    UsageSecond,
    Window,
)
from workbench.store import reading, schema
from workbench.store.database import Database
from workbench.store.rows import COLUMNS, TransactionRows, payload_of
from workbench.store.writer import write

numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**62)
small = st.integers(0, 2**31 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
parameters = st.dictionaries(texts, numbers | texts, max_size=3)


def many(what: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(what, max_size=most).map(tuple)


estimates = st.builds(Estimate, numbers, numbers, numbers)
usages = st.builds(
    Usage, numbers, numbers, numbers, numbers, numbers, numbers, numbers, threads=small
)
histograms = st.builds(
    LatencyHistogram, numbers, many(small), many(counts), many(small), many(counts)
)
windows = st.builds(
    Window, numbers, numbers, counts, counts, counts, counts, histograms, histograms
)
seconds = st.builds(UsageSecond, numbers, texts, numbers, numbers, numbers, numbers, numbers)
measured_reasons = [reason for reason in get_args(Reason) if reason != "rejected"]
"""A rejection is a person's decision: it is laid over what was measured, and stored as an event."""
findings = st.builds(Finding, st.sampled_from(measured_reasons), numbers, numbers, texts)
remarks = st.builds(Remark, st.sampled_from(get_args(Label)), numbers, texts)
points = st.builds(
    OperatingPoint, texts, st.builds(Configuration, parameters, parameters), numbers, small
)
samples = st.builds(
    Sample,
    id=texts,
    point=points,
    kpis=st.dictionaries(texts, estimates, max_size=3),
    usage=st.dictionaries(texts, usages, max_size=3),
    valid=st.booleans(),
    findings=many(findings),
    labels=many(texts),
    load_model=texts,
    kpi_definition=st.sampled_from(get_args(KpiDefinition)),
    generator=texts,
    planned=counts,
    completed=counts,
    errors=counts,
    unfinished=counts,
    windows=small,
    batches=small,
    throttled_share=numbers,
    straddle_share=numbers,
    started_at=numbers,
    measured_s=numbers,
    lab_s=numbers,
    p_sla=st.none() | estimates,
    remarks=many(remarks),
    bypass=st.none() | st.builds(Bypass, numbers, numbers, numbers),
    block=small,
    purpose=st.sampled_from(get_args(Purpose)),
)
observations = st.builds(Observation, small, texts, texts, st.none() | numbers, texts)
measurements = st.builds(Measurement, samples, many(windows), many(seconds), many(observations))


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    made = Database(None, read_only=False)
    with made.reading() as cursor:
        schema.migrate(cursor, 0, schema.newest(schema.migrations()), schema.migrations())
    yield made
    made.close()


@settings(deadline=None, max_examples=examples(60))
@given(measurement=measurements)
def test_a_measurement_comes_back_equal(database: Database, measurement: Measurement) -> None:
    fact = SampleTaken(measurement.sample)
    with database.reading() as cursor:
        for table in COLUMNS:
            cursor.execute(f"DELETE FROM {table}")
        rows = TransactionRows({}, frozenset())
        rows.add(Event(7, 1.5, "s", fact), payload_of(fact), measurement)
        write(cursor, rows.tables)
        assert reading.measurements(cursor, 0, 10) == (measurement,)
        assert reading.samples(cursor, 0, 10) == (measurement.sample,)
        assert reading.events(cursor, "s", 0, 10) == (Event(7, 1.5, "s", fact),)
        assert reading.configurations(cursor) == rows.new_configurations
