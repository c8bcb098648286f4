"""The models over one load as they are registered: one for each configuration of a table."""

from __future__ import annotations

from workbench.models.catalogue import Catalogue
from workbench.models.curve_fit import CurveFit
from workbench.models.linear import PolynomialLasso
from workbench.models.per_configuration import PerConfiguration

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""
CALIBRATED = 24
"""Configurations whose left-out loads widen the bands: some hundred errors."""


def curve_fit() -> PerConfiguration:
    """Paper B's curve fit (section 5.1), per configuration."""
    return PerConfiguration(CurveFit(), calibrate=CALIBRATED)


def catalogue() -> PerConfiguration:
    """Paper D's Algorithm 2, per configuration."""
    return PerConfiguration(Catalogue(), calibrate=CALIBRATED)


def multi_lasso() -> PerConfiguration:
    """Paper A's Multi Lasso: one Lasso2 over `wl` per configuration.

    Of two terms, 20 penalties say what 100 do, and there are hundreds of configurations.
    """
    return PerConfiguration(PolynomialLasso(2, penalties=20), calibrate=CALIBRATED)
