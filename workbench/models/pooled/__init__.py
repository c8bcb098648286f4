"""A law pooled across configurations, with a residual process, stacked with a plain process."""

from workbench.models.pooled.model import Pooled

__all__ = ["Pooled"]
