"""What Dask runs on a lab host that scores a model.

A scheduler unpickles whatever it hands on, and imports what that names, in the very loop that hears
the hosts: what is named here is light, and a model's table is bytes to it.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from workbench.domain.errors import DataError

if TYPE_CHECKING:
    from workbench.engine.learning.scoring import By
    from workbench.models.crossvalidation import Row
    from workbench.models.table import Table

LARGEST_JOB = 64 * 2**20
"""Bytes of one score's table and method: as many go through the scheduler at once for each host."""


def packed(*job: Any) -> bytes:
    """What `score_packed` takes. Raises `DataError` where it is larger than `LARGEST_JOB`."""
    said = pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)
    if len(said) > LARGEST_JOB:
        raise DataError(
            f"is {len(said) / 2**20:.0f} MiB, and a host is sent {LARGEST_JOB / 2**20:.0f} at most",
            where="the table of samples that models learn from",
            remedy="Score it here, without --fleet",
        )
    return said


def score_packed(job: bytes) -> Row:
    """On a host: the row of a packed job."""
    return scored_alone(*pickle.loads(job))  # noqa: S301 - of who has the fleet's certificate


def scored_alone(table: Table, method: str, by: By, name: str) -> Row:
    """On a host: one row, and nothing of it sent on to other hosts by a model that uses joblib; who
    asks the host meanwhile hears by that name what it is at."""
    from joblib import parallel_config

    from workbench.engine.learning.scoring import row_of
    from workbench.fleet.host_engine import scoring

    with scoring(name), parallel_config(backend="sequential"):
        return row_of(table, method, by, None)
