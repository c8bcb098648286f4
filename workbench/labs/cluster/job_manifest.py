"""A Job of ours, as the API takes it: one pod that runs once, bounded in every way.

Source: the OpenAPI schema of `batch/v1`. What it asks for is what the strictest of Kubernetes' pod
security standards (restricted) lets through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from workbench.domain.attaching import LoadJob
from workbench.labs.cluster.cluster_api import Json
from workbench.labs.cluster.cpu_amounts import amount_of

MANAGED, SESSION, RUN, JOB = (
    "app.kubernetes.io/managed-by",
    "vnf-workbench/session",
    "vnf-workbench/run",
    "vnf-workbench/job",
)
"""Labels: whose it is, of which session, of which lab that was opened, which Job."""
LOAD, GUARD, LOOK = "load", "guard", "look"
"""Containers."""
NOBODY = 65534
KEPT_S = 600
"""After which the cluster removes a Job that has ended, where nobody else did."""
GRACE_S = 1
"""Between being asked to end and being ended."""
BESIDE_CORES, BESIDE_BYTES = 0.05, 32 << 20
"""Requested for what is not the generator: a request now and then."""
MORE = 4
"""Times that is the limit of it: who is throttled takes its own waiting for an answer's."""

Containers = Sequence[tuple[str, Sequence[str]]]
"""Names and argument vectors, in the order in which they begin."""


def label_of(text: str) -> str:
    """What a label may hold of a text."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", text)[:63].strip("_.-")


def manifest(
    job: LoadJob,
    name: str,
    labels: Mapping[str, str],
    containers: Containers,
    deadline_s: float,
) -> Json:
    """Of one Job.

    Parameters
    ----------
    deadline_s : after which the cluster ends it, however it is about.
    """
    labels = {**labels, MANAGED: "vnf-workbench", JOB: name}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(job, called, argv) for called, argv in containers],
    }
    if job.node_selector:
        spec["nodeSelector"] = dict(job.node_selector)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": job.namespace, "labels": labels},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 0,
            "activeDeadlineSeconds": ceil(deadline_s),
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _container(job: LoadJob, name: str, argv: Sequence[str]) -> Json:
    """Its limits are what it requests, so that a generator takes no more of a node in production
    than was said."""
    cores, size = (job.cores, job.memory_bytes) if name == LOAD else (BESIDE_CORES, BESIDE_BYTES)
    more = 1 if name == LOAD else MORE
    return {
        "name": name,
        "image": job.image,
        # Kubernetes replaces $(NAME) in arguments, and takes $$ for $.
        "command": [word.replace("$", "$$") for word in argv],
        "resources": {
            "requests": {"cpu": amount_of(cores), "memory": str(size)},
            "limits": {"cpu": amount_of(more * cores), "memory": str(more * size)},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
