"""A host's own noise, from one point measured again and again: the A/A run of `doctor --measure`.

Every deployment of one and the same target is visited a few times; nothing is changed in between.
What differs is luck, and it comes in three parts that another session pays for, too: the window,
the start of the deployment, and the minutes that pass. They are separated by moments (one-way
random effects: Searle, Casella & McCulloch, Variance Components, 1992, ch. 3.6; the slow part by
successive differences: von Neumann, Ann. Math. Stat. 12, 1941), and cut off at zero where the
scatter between deployments is no more than that of the windows in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.domain.errors import DataError
from workbench.measuring.intervals import RESOLUTION, t_quantile
from workbench.measuring.records import Floats

FEWEST_DEPLOYMENTS = 3
"""Two make no difference between a restart and a drift."""
FEWEST_VISITS = 2
_OUTLYING, _NORMAL_MAD = 2.5, 1.4826


@dataclass(frozen=True)
class Components:
    """What one sample of one session scatters by; standard deviations of log figures.

    Attributes
    ----------
    window_sd : between samples that follow each other on one deployment.
    restart_sd : what another deployment adds, right after.
    drift_sd : what the minutes between two deployments add beyond that.
    total_sd : of one sample on a deployment of its own.
    degrees : degrees of freedom that `total_sd` rests on (Satterthwaite, Biometrics 2, 1946).
    """

    window_sd: float
    restart_sd: float
    drift_sd: float
    total_sd: float
    degrees: float

    @property
    def smallest_difference(self) -> float:
        """The smallest relative difference between two sessions, one sample each, that is one.

        Two sessions that measure the same differ by more in 5 % of all cases: t times sqrt(2)
        `total_sd`, so that few deployments ask for more. Never less than a histogram bucket,
        which two percentiles may lie apart without any noise.
        """
        half = t_quantile(max(1, math.floor(self.degrees))) * math.sqrt(2) * self.total_sd
        return math.expm1(max(half, 2 * RESOLUTION))


def components(visits: Floats) -> Components:
    """Separate the parts of the noise.

    Parameters
    ----------
    visits : array of shape (d, m)
        One KPI, positive: a row per deployment in the order of time, m visits each.

    Raises
    ------
    DataError
        For fewer than three deployments or two visits, or figures without a logarithm.

    Notes
    -----
    With V_w the mean square within deployments, V_b the variance of their means and V_s half the
    mean square of the successive differences of those, which a slow drift hardly enters:
    window² = V_w, restart² = (min(V_s, V_b) - V_w/m)+, drift² = what V_b holds beyond both. The
    sum is max(V_b, V_w/m) + (1 - 1/m) V_w whatever share each has. A window that is off by a factor
    (METHOD.md 11: one in twenty) belongs to `window_sd` and the sum; one of twenty would also look
    like starts that differ by 12 %, so that restart² and drift² are told with such windows drawn
    in, and the parts need not add up to the sum where there are some.
    A drift that is slower than the run is seen in part only: what it adds in hours no run of
    minutes can tell.
    """
    deployments, m = visits.shape if visits.ndim == 2 else (0, 0)
    if deployments < FEWEST_DEPLOYMENTS or m < FEWEST_VISITS:
        raise DataError(
            f"{deployments} deployments of {m} visits are too few to tell noise",
            remedy=f"Take {FEWEST_DEPLOYMENTS} deployments of {FEWEST_VISITS} visits at least",
        )
    if not (np.isfinite(visits) & (visits > 0)).all():
        raise DataError("a figure that is not positive has no relative noise")
    logs = np.log(visits)
    within, between, _ = _squares(logs)
    steady_within, steady_between, quick = _squares(_drawn_in(logs))
    restart = max(0.0, quick - steady_within / m)
    drift = max(0.0, steady_between - max(quick, steady_within / m))
    of_windows = within / m
    of_deployments, rest = max(between, of_windows), within - of_windows
    total = of_deployments + rest
    squares = of_deployments**2 / (deployments - 1) + rest**2 / (deployments * (m - 1))
    return Components(
        math.sqrt(within),
        math.sqrt(restart),
        math.sqrt(drift),
        math.sqrt(total),
        total**2 / squares if squares else float(deployments - 1),
    )


def _squares(logs: Floats) -> tuple[float, float, float]:
    """V_w, V_b and min(V_s, V_b) of `components`."""
    means = logs.mean(axis=1)
    between = float(means.var(ddof=1))
    quick = float(np.mean(np.diff(means) ** 2)) / 2
    return float(logs.var(axis=1, ddof=1).mean()), between, min(quick, between)


def _drawn_in(logs: Floats) -> Floats:
    """Visits that disagree with their deployment's most usual one moved towards it (Winsor).

    That by which visits of one deployment differ is told by all deployments, robustly. A start that
    is slower is slower in all of its visits: those agree, and stay where they are.
    """
    apart = np.abs(logs - logs.mean(axis=1, keepdims=True))
    m = logs.shape[1]
    window = _NORMAL_MAD * float(np.median(apart)) * math.sqrt(m / (m - 1))
    if window == 0.0:
        return logs
    far = np.abs(logs - np.median(logs))
    usual = np.take_along_axis(logs, far.argmin(axis=1)[:, None], axis=1)
    reach = _OUTLYING * math.sqrt(2.0) * window
    return np.clip(logs, usual - reach, usual + reach)


def null_claims(visits: Floats, smallest_difference: float) -> tuple[int, int]:
    """How many null pairs differ by more than that, and how many pairs there are.

    A pair is the first visit of one deployment and the second of another: what two sessions with
    one sample each would compare, in both orders.
    """
    first, second = np.log(visits[:, 0]), np.log(visits[:, 1])
    apart = np.abs(first[:, None] - second[None, :])[~np.eye(len(visits), dtype=bool)]
    return int(np.count_nonzero(apart > math.log1p(smallest_difference))), apart.size
