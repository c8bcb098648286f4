"""Functions, source and sink as plain processes in network namespaces; root on Linux is enough."""

from workbench.labs.netns.lab import NetnsLab

__all__ = ["NetnsLab"]
