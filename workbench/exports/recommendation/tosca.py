"""ETSI SOL001: a TOSCA fragment with one `Vdu.Compute` per function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.domain.recommendations import Recommendation
from workbench.domain.resources import BANDWIDTH, MEBIBYTE, MEMORY, VCPU
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.deploying import to_deploy
from workbench.exports.recommendation.functions import FunctionAllocation, without_words
from workbench.exports.recommendation.naming import one_line
from workbench.exports.recommendation.provenance import (
    function_provenance,
    provenance,
    remarks,
    sla_texts,
    stem,
)
from workbench.exports.recommendation.yaml_text import to_yaml

PREFIX = "workbench."
"""Of metadata keys."""


def export_tosca(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """TOSCA: a fragment for ETSI NFV-SOL 001.

    Node templates for a VNFD (ETSI GS NFV-SOL 001, 6.8.3: `tosca.nodes.nfv.Vdu.Compute`).

    `num_virtual_cpu` is an integer and `virtual_mem_size` is given in whole MiB: both are rounded
    up, and the allocation that was recommended stands in the metadata.
    """
    functions = to_deploy(recommendation, context)
    document = {
        "tosca_definitions_version": "tosca_simple_yaml_1_3",
        "description": one_line(
            f"Resources of {recommendation.chain} for {sla_texts(recommendation)}"
        ),
        "metadata": _prefixed(provenance(recommendation, context)),
        "imports": ["etsi_nfv_sol001_vnfd_types.yaml"],
        "topology_template": {
            "node_templates": {f.label: _vdu(f, recommendation, context) for f in functions}
        },
    }
    top = (*remarks(recommendation, context), *_rounded(functions), *_left_open(functions))
    return {f"{stem(recommendation)}.tosca.yaml": to_yaml(document, top)}


def _vdu(
    function: FunctionAllocation, recommendation: Recommendation, context: Context
) -> dict[str, Any]:
    compute: dict[str, Any] = {}
    if function.millicores is not None:
        compute["virtual_cpu"] = {"num_virtual_cpu": _whole_cpus(function.millicores)}
    if function.memory_bytes is not None:
        mebibytes = -(-function.memory_bytes // MEBIBYTE)
        compute["virtual_memory"] = {"virtual_mem_size": f"{mebibytes} MiB"}
    return {
        "type": "tosca.nodes.nfv.Vdu.Compute",
        "metadata": _prefixed(function_provenance(function, recommendation, context)),
        "properties": {
            "name": function.label,
            "description": one_line(f"{function.function}: {function.in_words}"),
            "vdu_profile": {
                "min_number_of_instances": function.replicas,
                "max_number_of_instances": function.replicas,
            },
        },
        "capabilities": {"virtual_compute": {"properties": compute}},
    }


def _prefixed(facts: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}{key}": text for key, text in facts.items()}


def _whole_cpus(millicores: int) -> int:
    return -(-millicores // 1000)


def _rounded(functions: tuple[FunctionAllocation, ...]) -> list[str]:
    return [
        f"num_virtual_cpu counts whole vCPUs: {f.label} is given {_whole_cpus(f.millicores)} "
        f"for {f.millicores / 1000:g}."
        for f in functions
        if f.millicores is not None and f.millicores % 1000
    ]


def _left_open(functions: tuple[FunctionAllocation, ...]) -> list[str]:
    """What SOL001 or the recommendation asks for, and the other has no figure or place for."""
    no_memory = ", ".join(f.label for f in functions if f.memory_bytes is None)
    bandwidth = ", ".join(f.label for f in functions if f.egress_bps is not None)
    said = []
    if no_memory:
        said.append(f"virtual_memory is required and was not profiled: fill it in for {no_memory}.")
    if bandwidth:
        said.append(f"A VduCp holds the bitrate_requirement: set the bandwidth of {bandwidth}.")
    return [*said, *without_words("SOL001", functions, VCPU, MEMORY, BANDWIDTH)]
