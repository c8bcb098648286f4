"""Kustomize: a component that patches replicas and resources of each function's Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.domain.recommendations import Recommendation
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.deploying import to_deploy
from workbench.exports.recommendation.functions import FunctionAllocation
from workbench.exports.recommendation.kubernetes import pod_annotations, prefixed, resources, unsaid
from workbench.exports.recommendation.naming import dns_label, one_line
from workbench.exports.recommendation.provenance import (
    cautions,
    function_provenance,
    provenance,
    remarks,
    stem,
)
from workbench.exports.recommendation.yaml_text import to_yaml


def export_kustomize(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """Kubernetes: requests and limits as a Kustomize patch.

    `kustomization.yaml` and a strategic-merge patch per function.

    A component rather than a kustomization, which would have to hold the Deployments: an overlay
    names this folder under `components:`, and its Deployments are patched. Deployments and their
    containers go by the functions' names as RFC 1123 labels.
    """
    functions = to_deploy(recommendation, context)
    patches = {
        f"patch-{function.label}.yaml": to_yaml(
            _patch(function, recommendation, context),
            [f"caution: {one_line(text)}" for text in cautions(context)],
        )
        for function in functions
    }
    component = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "metadata": {
            "name": dns_label(stem(recommendation)),
            "annotations": prefixed(provenance(recommendation, context)),
        },
        "patches": [{"path": name} for name in patches],
    }
    top = (*remarks(recommendation, context), *unsaid(functions))
    return {"kustomization.yaml": to_yaml(component, top), **patches}


def _patch(
    function: FunctionAllocation, recommendation: Recommendation, context: Context
) -> dict[str, Any]:
    facts = prefixed(function_provenance(function, recommendation, context))
    pod: dict[str, Any] = {
        "spec": {"containers": [{"name": function.label, "resources": resources(function)}]}
    }
    if of_the_pod := pod_annotations(function):
        pod = {"metadata": {"annotations": of_the_pod}, **pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": function.label, "annotations": facts},
        "spec": {"replicas": function.replicas, "template": pod},
    }
