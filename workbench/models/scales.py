"""The logarithmic axes that every profile model lives on (METHOD.md 8)."""

from __future__ import annotations

import math

from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.samples import Estimate

NORMAL_95 = 1.959964
"""Standard deviations from the mean to either end of a 95 % interval."""

UNKNOWN_LOG_SD = 0.12
"""Log standard deviation of a KPI that comes without a usable interval: what p95 shows in
windows of 2-3 s (METHOD.md 6)."""

_LOG_SD_RANGE = (0.01, 1.0)


def log_kpi(kpi: str, value: float) -> float:
    """Natural log of a KPI in its unit, floored so that zero loss has one."""
    return math.log(max(value, kpis.of(kpi).floor))


def log_wl(wl: float) -> float:
    """Natural log of a load.

    Raises
    ------
    DataError
        If `wl` is not above zero, or not finite.
    """
    if not 0.0 < wl < math.inf:
        raise DataError(
            f"a load of {wl:g} has no logarithm",
            where="primary workload",
            remedy="Start its range above zero",
        )
    return math.log(wl)


def log_sd(kpi: str, estimate: Estimate) -> float:
    """Standard deviation of the log of a KPI, read from its 95 % interval."""
    width = log_kpi(kpi, estimate.high) - log_kpi(kpi, estimate.low)
    if not math.isfinite(width) or width <= 0.0:
        return UNKNOWN_LOG_SD
    smallest, largest = _LOG_SD_RANGE
    return min(max(width / (2.0 * NORMAL_95), smallest), largest)


def figure(value: float) -> str:
    """A figure as a person reads it: four digits, no powers of ten for large ones."""
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"
