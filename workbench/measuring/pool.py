"""The windows of one sample taken together: what KPIs and checks are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.domain.parameters import LoadModel, OperatingPoint
from workbench.measuring.censoring import Distribution
from workbench.measuring.flow import PERIOD_S
from workbench.measuring.records import Floats
from workbench.measuring.stretches import Stretch, overloaded
from workbench.measuring.usage import UsagePool


@dataclass(frozen=True)
class WindowPool(UsagePool):
    """Windows of one visit to an operating point; all steady, or the last if none is."""

    point: OperatingPoint
    load: LoadModel
    stretches: Sequence[Stretch]

    @cached_property
    def duration_s(self) -> float:
        return sum(s.duration_s for s in self.stretches)

    def batches(self, field: str) -> Floats:
        """A figure per batch, of all windows one after the other."""
        return np.concatenate([getattr(s, field) for s in self.stretches])

    def rates(self, field: str) -> Floats:
        """The same per second."""
        return np.concatenate([getattr(s, field) / s.batch_s for s in self.stretches])

    def by_window(self, batches: Floats) -> list[Floats]:
        """A figure per batch, parted again by windows."""
        return np.split(batches, np.cumsum([s.planned.size for s in self.stretches])[:-1])

    def total(self, field: str) -> int:
        return int(self.batches(field).sum())

    @cached_property
    def k(self) -> int:
        return sum(s.planned.size for s in self.stretches)

    @cached_property
    def planned(self) -> int:
        return self.total("planned")

    @cached_property
    def completed(self) -> int:
        return self.total("succeeded")

    @cached_property
    def errors(self) -> int:
        return self.total("errors")

    @cached_property
    def ended(self) -> int:
        """Answered, failed or given up."""
        return sum(s.ended for s in self.stretches)

    @cached_property
    def throughput_rps(self) -> float:
        return self.completed / self.duration_s

    @cached_property
    def in_flight(self) -> float:
        """Mean number of requests between send and end."""
        return sum(float(s.in_flight.mean()) * s.duration_s for s in self.stretches) / (
            self.duration_s
        )

    @cached_property
    def service_s(self) -> float | None:
        """Mean time from send to end of everything that ended; None if nothing did."""
        return sum(s.busy_s for s in self.stretches) / self.ended if self.ended else None

    @cached_property
    def responses(self) -> tuple[Distribution, ...]:
        """Response times per batch."""
        return tuple(d for s in self.stretches for d in s.responses)

    @cached_property
    def response(self) -> Distribution:
        """Response times of all windows' requests."""
        size = max(d.finished.size for d in self.responses)
        total = np.zeros((4, size))
        for d in self.responses:
            rows = (d.finished, d.censored, d.finished_sums_s, d.censored_sums_s)
            total[:, : d.finished.size] += rows
        return Distribution(*total)

    @cached_property
    def backlog_rps(self) -> tuple[float, float]:
        """Rate at which the backlog grew in the windows, and its standard error."""
        weights = [s.duration_s / self.duration_s for s in self.stretches]
        growths = zip(self.stretches, weights, strict=True)
        errors = zip(self.stretches, weights, strict=True)
        return (
            sum(s.backlog_rps * w for s, w in growths),
            float(np.sqrt(sum((s.backlog_error_rps * w) ** 2 for s, w in errors))),
        )

    @cached_property
    def overloaded(self) -> bool:
        """Open loop: more is due than is answered, so response times grow without bound."""
        if self.load.kind != "open":
            return False
        rate = self.planned / self.duration_s
        return overloaded(*self.backlog_rps, rate, self.duration_s, self.stretches[0].watched_s)

    @cached_property
    def straddle_share(self) -> float:
        """n/(X·T) (METHOD.md 5), not cut at 1; 0 where nothing ended."""
        return self.in_flight / (self.ended / self.duration_s * PERIOD_S) if self.ended else 0.0
