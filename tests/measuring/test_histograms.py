import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.domain.errors import DataError
from workbench.domain.samples import LatencyHistogram
from workbench.measuring.censoring import Distribution
from workbench.measuring.histograms import GROWTH, bucket_of, build, merge, to_dense

repeatable = settings(derandomize=True, deadline=None)
latencies = st.lists(st.floats(2e-6, 100.0), min_size=1, max_size=60).map(np.array)


@repeatable
@given(latencies, st.floats(0.01, 0.99))
def test_quantiles_are_within_one_bucket_of_the_order_statistic(seconds, q):
    measured = Distribution.of(build(seconds)).quantile(q)
    exact = np.sort(seconds)[int(np.ceil(q * seconds.size - 1e-9)) - 1]
    assert measured == pytest.approx(exact, rel=GROWTH - 1 + 1e-9)


@repeatable
@given(latencies, latencies, latencies)
def test_merging_is_the_histogram_of_all_requests(first, second, waited):
    merged = merge([build(first, waited), build(second)])
    assert merged == build(np.concatenate([first, second]), waited)
    assert merge([merged]) == merged


@repeatable
@given(latencies)
def test_buckets_hold_what_they_say(seconds):
    bucket = bucket_of(seconds)
    low, high = GROWTH**bucket * 1e-6, GROWTH ** (bucket + 1.0) * 1e-6
    assert np.all(low <= seconds * (1 + 1e-9))
    assert np.all(seconds < high * (1 + 1e-9))


def test_what_is_below_a_microsecond_lies_in_the_first_bucket():
    assert build(np.array([0.0, 5e-7, 1e-6])).buckets == (0,)


def test_nothing_is_a_histogram_too():
    empty = build(np.zeros(0))
    assert empty == LatencyHistogram(GROWTH, (), ())
    assert merge([]) == merge([empty, empty]) == empty
    assert Distribution.of(empty).quantile(0.5) is None


def test_other_buckets_are_refused():
    with pytest.raises(DataError, match=r"grow by 1\.02"):
        to_dense(LatencyHistogram(1.02, (1,), (1,)))
