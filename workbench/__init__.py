"""The workbench: vCPUs, SLAs and certainty for chains of network functions."""

__version__ = "0.7.3"
