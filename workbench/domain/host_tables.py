"""What `doctor` found of a host, as tables."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.lab import Check, HostNoise


def checks(found: Iterable[Check]) -> AnswerTable:
    """A line for each check; what to do about it is no part of the table."""
    return AnswerTable.of(
        ("check", "state", "found"), ((one.name, one.state, one.found) for one in found)
    )


def noise(measured: HostNoise) -> AnswerTable:
    """Of each KPI, relative standard deviations and the smallest difference that can be seen."""
    shares = ("window", "restart", "drift", "smallest visible difference")
    return AnswerTable.of(
        ("KPI", *(AnswerColumn(title, ".1%") for title in shares)),
        (
            (
                kpi,
                measured.window_sd[kpi],
                measured.restart_sd[kpi],
                measured.drift_sd[kpi],
                difference,
            )
            for kpi, difference in measured.smallest_difference.items()
        ),
    )
