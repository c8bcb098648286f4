"""Latencies in log buckets: mergeable, loss-free at a resolution of one per cent.

Bucket i holds latencies in [g**i, g**(i+1)) microseconds with g = `GROWTH`; anything below one
microsecond lies in bucket 0. Histograms of windows, samples and sessions are merged by adding
counts; a percentile read from the merged one is within one bucket of that of the pooled requests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.domain.errors import DataError
from workbench.domain.samples import LatencyHistogram
from workbench.measuring.records import Floats, Integers

GROWTH = 1.01
_LOG_GROWTH = float(np.log(GROWTH))
_MICROSECOND = 1e-6


def bucket_of(seconds: Floats) -> Integers:
    """Bucket of each latency, shape as given."""
    above = np.maximum(seconds, _MICROSECOND) / _MICROSECOND
    return np.floor(np.log(above) / _LOG_GROWTH + 1e-9).astype(np.int64)


def position_of(seconds: float) -> float:
    """Where a latency lies on the axis of buckets: bucket number and share of its width."""
    return float(np.log(max(seconds, _MICROSECOND) / _MICROSECOND)) / _LOG_GROWTH


def seconds_at(position: float) -> float:
    """The inverse of `position_of`: `seconds_at(i)` is the lower edge of bucket i, in seconds."""
    return float(_MICROSECOND * np.exp(position * _LOG_GROWTH))


def centres_s(size: int) -> Floats:
    """Geometric centres of the first buckets, in seconds, shape (size,)."""
    centres: Floats = _MICROSECOND * np.exp((np.arange(size) + 0.5) * _LOG_GROWTH)
    return centres


def count(buckets: Integers, groups: Integers, shape: tuple[int, int]) -> Floats:
    """Requests by group (batch) and bucket, as an array of `shape` (groups, buckets)."""
    return add_up(np.ones(buckets.size), buckets, groups, shape)


def add_up(values: Floats, buckets: Integers, groups: Integers, shape: tuple[int, int]) -> Floats:
    """Sum of `values` by group and bucket, as an array of `shape` (groups, buckets)."""
    cells = groups * shape[1] + buckets
    sums = np.bincount(cells, weights=values, minlength=shape[0] * shape[1])
    return sums.reshape(shape).astype(np.float64)


def build(finished_s: Floats, censored_s: Floats | None = None) -> LatencyHistogram:
    """Histogram of latencies, and of the times that unfinished requests had waited, in seconds."""
    waited = np.empty(0) if censored_s is None else censored_s
    return from_dense(np.bincount(bucket_of(finished_s)), np.bincount(bucket_of(waited)))


def from_dense(finished: Floats | Integers, censored: Floats | Integers) -> LatencyHistogram:
    """Sparse histogram of counts whose index is the bucket."""
    buckets, censored_buckets = np.flatnonzero(finished), np.flatnonzero(censored)
    return LatencyHistogram(
        GROWTH,
        tuple(buckets.tolist()),
        tuple(finished[buckets].astype(int).tolist()),
        tuple(censored_buckets.tolist()),
        tuple(censored[censored_buckets].astype(int).tolist()),
    )


def to_dense(histogram: LatencyHistogram) -> tuple[Floats, Floats]:
    """Counts of finished and of censored requests, both indexed by bucket, of equal length.

    Raises
    ------
    DataError
        If its buckets grow otherwise than ours: their counts cannot be compared.
    """
    if histogram.growth != GROWTH:
        raise DataError(
            f"a histogram whose buckets grow by {histogram.growth} cannot be read with "
            f"buckets that grow by {GROWTH}"
        )
    size = 1 + max((*histogram.buckets, *histogram.censored_buckets), default=-1)
    finished, censored = np.zeros(size), np.zeros(size)
    finished[list(histogram.buckets)] = histogram.counts
    censored[list(histogram.censored_buckets)] = histogram.censored_counts
    return finished, censored


def merge(histograms: Sequence[LatencyHistogram]) -> LatencyHistogram:
    """The histogram of all their requests together. Raises `DataError` as `to_dense` does."""
    dense = [to_dense(histogram) for histogram in histograms]
    size = max((finished.size for finished, _ in dense), default=0)
    total = np.zeros((2, size))
    for finished, censored in dense:
        total[0, : finished.size] += finished
        total[1, : censored.size] += censored
    return from_dense(total[0], total[1])
