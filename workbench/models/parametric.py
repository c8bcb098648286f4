"""The models over one load as they are registered: one for each configuration of a table."""

from __future__ import annotations

from workbench.models.catalogue import Catalogue
from workbench.models.conformal import Conformal
from workbench.models.curve_fit import CurveFit
from workbench.models.linear import PolynomialLasso
from workbench.models.per_configuration import PerConfiguration


def curve_fit() -> PerConfiguration:
    """Paper B's curve fit (section 5.1), per configuration."""
    return PerConfiguration(CurveFit())


def catalogue() -> PerConfiguration:
    """Paper D's Algorithm 2, per configuration."""
    return PerConfiguration(Catalogue())


def multi_lasso() -> Conformal:
    """Paper A's Multi Lasso: one Lasso2 over `wl` per configuration.

    Of two terms, 20 penalties say what 100 do, and there are hundreds of configurations.
    """
    return Conformal(PerConfiguration(PolynomialLasso(2, penalties=20)))
