"""Pods of a Kubernetes cluster that run already: loaded within bounds, and left as they were."""

from workbench.labs.cluster.cluster_lab import ClusterLab

__all__ = ["ClusterLab"]
