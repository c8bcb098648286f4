"""Docker Compose: an override with each service's CPUs, memory and replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.domain.recommendations import Recommendation
from workbench.domain.resources import MEMORY, VCPU
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.deploying import to_deploy
from workbench.exports.recommendation.functions import FunctionAllocation, without_words
from workbench.exports.recommendation.provenance import function_provenance, remarks, stem
from workbench.exports.recommendation.yaml_text import to_yaml

PREFIX = "workbench."
"""Of label keys. The lab's own containers carry `vnf-workbench.`, by which strays are reaped."""

_FEWEST_MILLICORES = 10  # the engine refuses a quota under 1 ms of its period of 100 ms


def export_compose(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """Docker Compose: cpus and deploy.resources.

    One file to put behind the application's own: `docker compose -f compose.yaml -f THIS up`.
    It sets no image: what runs is the application's affair, what was profiled stands in a label.
    """
    functions = to_deploy(recommendation, context)
    services = {f.label: _service(f, recommendation, context) for f in functions}
    top = (*remarks(recommendation, context), *without_words("Compose", functions, VCPU, MEMORY))
    return {f"{stem(recommendation)}.compose.yaml": to_yaml({"services": services}, top)}


def _service(
    function: FunctionAllocation, recommendation: Recommendation, context: Context
) -> dict[str, Any]:
    service: dict[str, Any] = {}
    limits: dict[str, str] = {}
    if function.millicores is not None:
        # Compose reads the one, a swarm the other; where they differ the file is refused.
        cores = max(_FEWEST_MILLICORES, function.millicores) / 1000
        service["cpus"] = limits["cpus"] = f"{cores:g}"
    if function.memory_bytes is not None:
        limits["memory"] = f"{function.memory_bytes}b"
    service["deploy"] = {
        "replicas": function.replicas,
        **({"resources": {"limits": limits}} if limits else {}),
    }
    facts = function_provenance(function, recommendation, context)
    # A dollar begins a variable in every value of a Compose file.
    service["labels"] = {f"{PREFIX}{key}": text.replace("$", "$$") for key, text in facts.items()}
    return service
