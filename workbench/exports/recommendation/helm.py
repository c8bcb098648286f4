"""Helm: values for one subchart per function."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.domain.recommendations import Recommendation
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.deploying import to_deploy
from workbench.exports.recommendation.kubernetes import pod_annotations, prefixed, resources, unsaid
from workbench.exports.recommendation.provenance import function_provenance, remarks, stem
from workbench.exports.recommendation.yaml_text import to_yaml


def export_helm(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """Kubernetes: requests and limits as Helm values.

    By each function's label what the chart of `helm create` reads: `replicaCount`,
    `resources` and `podAnnotations`.
    """
    functions = to_deploy(recommendation, context)
    values = {
        function.label: {
            "replicaCount": function.replicas,
            "resources": resources(function),
            "podAnnotations": {
                key: _no_template(text)
                for key, text in {
                    **prefixed(function_provenance(function, recommendation, context)),
                    **pod_annotations(function),
                }.items()
            },
        }
        for function in functions
    }
    text = to_yaml(values, (*remarks(recommendation, context), *unsaid(functions)))
    return {f"{stem(recommendation)}.values.yaml": text}


def _no_template(text: str) -> str:
    """Without `{{`: many charts put annotations through `tpl`, which would run it."""
    return re.sub(r"\{(?=\{)", "{ ", text)
