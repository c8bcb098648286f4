"""Functions that run already: found, loaded within bounds, and left as they were."""

from workbench.labs.attached.lab import AttachedLab

__all__ = ["AttachedLab"]
