"""The profile of one configuration: its KPI over `wl` with a band, ready to draw and to store."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.profiles import Curve, FittedModel
from workbench.domain.samples import Sample
from workbench.models.base import ProfileModel
from workbench.models.scales import log_kpi, log_sd, log_wl
from workbench.models.selection import (
    capped_log_kpi,
    must_be_alike,
    must_share_a_unit,
    of_configuration,
    stated,
)
from workbench.models.settings import settings_of

MOST_POINTS = 200
"""Points of a curve (DESIGN.md: at most 200 travel over the link)."""
FEWEST_LOADS = 3
"""Distinct loads below which no curve is fitted."""

BREAKPOINT = "estimator__breakpoint"
"""Parameter of a model for each configuration: the log of the load at which its regions part."""

ModelFactory = Callable[[], ProfileModel]


@dataclass(frozen=True)
class CurveTerms:
    """What a curve is drawn of.

    Attributes
    ----------
    primary : samples outside of its range do not count.
    kpi_max : ceiling of the KPI in its unit: values above it are drawn at it, none is modelled
        beyond.
    breaks_at : the load at which CPU usage saturates (rule `cpu`), where that is known. A model
        whose regions part there (`BREAKPOINT`), as paper D's Algorithm 2 has it, is told.
    """

    primary: PrimaryWorkload
    kpi: str
    kpi_max: float
    breaks_at: float | None = None


def fit_profile(
    target: str,
    configuration: Configuration,
    samples: Sequence[Sample],
    terms: CurveTerms,
    method: str,
    model_factory: ModelFactory,
) -> tuple[Curve | None, FittedModel | None]:
    """Fit one configuration's KPI over `wl`, both in logs (METHOD.md 8).

    Parameters
    ----------
    samples : sequence of Sample
        Any samples; only valid ones of this target and configuration that state the KPI count.
        Overloaded and invalid ones are never used as values.
    method, model_factory
        Name of the model as stored, and what makes an unfitted one.

    Returns
    -------
    curve, model : tuple
        The curve between the lowest and the highest load that was used, and what is needed to fit
        it again; both None under three distinct loads. The method made anew, with the stored
        parameters set and fitted to the stored samples, has the stored coefficients again.

    Raises
    ------
    DataError
        If the samples are of different load models or definitions of latency, or state the KPI in
        different units.
    """
    primary, kpi = terms.primary, terms.kpi
    taken = of_configuration(target, configuration, samples)
    must_share_a_unit(taken, kpi)
    used = [s for s in taken if stated(s, kpi) and primary.low <= s.point.wl <= primary.high]
    must_be_alike(used)
    if len({s.point.wl for s in used}) < FEWEST_LOADS:
        return None, None
    ceiling = log_kpi(kpi, terms.kpi_max)
    x = np.array([log_wl(s.point.wl) for s in used])
    y = np.array([capped_log_kpi(s, kpi, ceiling) for s in used])
    noise = np.array([log_sd(kpi, s.kpis[kpi]) for s in used])
    model = model_factory()
    if terms.breaks_at is not None and BREAKPOINT in _parameters(model):
        model.set_params(**{BREAKPOINT: log_wl(terms.breaks_at)})  # type: ignore[attr-defined]
    model = model.fit(x[:, None], y, noise)

    # The samples' own loads are on the grid, so that an interpolating curve is drawn through them.
    asked = {log_wl(s.point.wl): s.point.wl for s in used}  # a log and back is 49.99999999999999
    own = np.unique(x)[: MOST_POINTS // 2]
    grid = np.unique(np.concatenate([np.linspace(x[0], x[-1], MOST_POINTS - own.size), own]))
    mean = np.minimum(model.predict(grid[:, None]), ceiling)
    low, high = (np.minimum(bound, ceiling) for bound in model.predict_band(grid[:, None]))
    curve = Curve(
        kpi,
        method,
        tuple(asked.get(float(v), math.exp(v)) for v in grid),
        tuple(math.exp(v) for v in mean),
        tuple(math.exp(v) for v in low),
        tuple(math.exp(v) for v in high),
    )
    coefficients = np.asarray(getattr(model, "coefficients_", ()), dtype=float)
    fitted = FittedModel(
        method,
        settings_of(model),
        tuple(s.id for s in used),
        tuple(float(c) for c in coefficients),
    )
    return curve, fitted


def _parameters(model: ProfileModel) -> dict[str, object]:
    get = getattr(model, "get_params", None)
    return dict(get(deep=True)) if get else {}
