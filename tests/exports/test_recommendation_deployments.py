"""Recommendations as Kubernetes, Compose and TOSCA read them, against schemas of theirs."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from recommended import case_study, context, export, unmet
from ruamel.yaml import YAML

from workbench import plugins
from workbench.domain.errors import FINDING, WorkbenchError
from workbench.domain.recommendations import Recommendation

DEPLOYING = ("kustomize", "helm", "compose", "tosca")
KUBERNETES = "1.37"


def files(format: str, recommendation: Recommendation | None = None) -> dict[str, Any]:
    about = recommendation or case_study()
    written = export(format)(about, context(about))
    return {name: read(text) for name, text in written.items()}


def read(text: str) -> Any:
    """As YAML 1.1 and 1.2 read it; the two must agree."""
    old, new = yaml.safe_load(text), YAML(typ="safe").load(text)
    assert old == new
    return old


def one(format: str, recommendation: Recommendation | None = None) -> Any:
    (document,) = files(format, recommendation).values()
    return document


def deployment(name: str) -> dict[str, Any]:
    """What stands in somebody's repository before the patch."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [
                        {"name": "sidecar", "image": "log:1"},
                        {"name": name, "image": "fn:1"},
                    ]
                },
            },
        },
    }


def merged(base: Any, patch: Any) -> Any:
    """A strategic merge, as far as a patch of ours needs one: containers meet by their name."""
    if isinstance(base, dict) and isinstance(patch, dict):
        both = {key: merged(base[key], patch[key]) for key in base if key in patch}
        return {**base, **patch, **both}
    if isinstance(base, list) and isinstance(patch, list):
        by_name = {item["name"]: item for item in patch}
        left = [merged(item, by_name.pop(item["name"], item)) for item in base]
        return [*left, *by_name.values()]
    return copy.deepcopy(patch)


def container(patch: dict[str, Any]) -> dict[str, Any]:
    (found,) = patch["spec"]["template"]["spec"]["containers"]
    return dict(found)


# ------------------------------------------------------------------------------ Kubernetes


def test_patched_deployments_are_valid_in_strict_kubernetes_schemas() -> None:
    written = files("kustomize")
    patches = {n: p for n, p in written.items() if n != "kustomization.yaml"}
    assert len(patches) == 4
    for patch in patches.values():
        whole = merged(deployment(patch["metadata"]["name"]), patch)
        assert len(whole["spec"]["template"]["spec"]["containers"]) == 2
        kubernetes_validate.validate(whole, KUBERNETES, strict=True)


def test_the_strict_schema_would_see_a_slip() -> None:
    patch = files("kustomize")["patch-haproxy.yaml"]
    patch["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(merged(deployment("haproxy"), patch), KUBERNETES, strict=True)


def test_kustomization_is_a_component_that_names_every_patch() -> None:
    written = files("kustomize")
    component = written["kustomization.yaml"]
    assert component["apiVersion"] == "kustomize.config.k8s.io/v1alpha1"
    assert component["kind"] == "Component"
    assert {"kustomization.yaml", *(p["path"] for p in component["patches"])} == set(written)
    assert next(iter(written)) == "kustomization.yaml"


def test_cpu_is_in_millicores_rounded_up_and_memory_only_where_allocated() -> None:
    written = files("kustomize")
    resources = {
        name: container(written[f"patch-{name}.yaml"])["resources"]
        for name in ("balancer", "tinyproxy", "haproxy", "firewall")
    }
    assert resources["balancer"]["limits"] == {"cpu": "300m"}  # 0.1 + 0.2 is a little more
    assert resources["tinyproxy"]["limits"] == {"cpu": "500m", "memory": "64Mi"}
    assert resources["haproxy"]["limits"] == {"cpu": "63m", "memory": "50000000"}
    assert resources["firewall"]["limits"] == {"cpu": "1000m"}
    assert all(r["requests"] == r["limits"] for r in resources.values())


def test_a_sliver_of_a_core_is_never_written_as_none() -> None:
    met = case_study()
    assert met.chosen
    sliver = replace(met, chosen=replace(met.chosen, allocation={"haproxy.vcpu": 1e-9}))
    patch = files("kustomize", sliver)["patch-haproxy.yaml"]
    assert container(patch)["resources"]["limits"] == {"cpu": "1m"}
    assert one("compose", sliver)["services"]["haproxy"]["cpus"] == "0.01"  # the engine's least


def test_replicas_and_bandwidth_reach_the_pods() -> None:
    patch = files("kustomize")["patch-firewall.yaml"]
    assert patch["spec"]["replicas"] == 4
    of_the_pod = patch["spec"]["template"]["metadata"]["annotations"]
    assert of_the_pod == {"kubernetes.io/egress-bandwidth": "12500000"}
    assert one("helm")["firewall"]["replicaCount"] == 4
    assert one("helm")["firewall"]["podAnnotations"]["kubernetes.io/egress-bandwidth"] == "12500000"


def test_helm_values_say_what_the_patches_say() -> None:
    values, patches = one("helm"), files("kustomize")
    for name, given in values.items():
        patch = patches[f"patch-{name}.yaml"]
        assert given["resources"] == container(patch)["resources"]
        assert given["replicaCount"] == patch["spec"]["replicas"]
        assert patch["metadata"]["annotations"].items() <= given["podAnnotations"].items()


# --------------------------------------------------------------------------------- Compose


def compose_errors(document: Any) -> list[str]:
    schema = get_builtin_schema("vendor.compose-spec")
    kind = jsonschema.validators.validator_for(schema)
    return [error.message for error in kind(schema).iter_errors(document)]


def test_compose_is_valid_by_the_specification() -> None:
    document = one("compose")
    assert compose_errors(document) == []
    document["services"]["haproxy"]["deploy"]["resources"]["limits"]["cpu"] = "1"
    assert compose_errors(document) != []


def test_compose_limits_cpus_twice_alike_as_text() -> None:
    services = one("compose")["services"]
    assert list(services) == ["tinyproxy", "haproxy", "balancer", "firewall"]
    for service in services.values():
        assert isinstance(service["cpus"], str)
        assert service["cpus"] == service["deploy"]["resources"]["limits"]["cpus"]
    assert services["haproxy"]["cpus"] == "0.063"
    assert services["haproxy"]["deploy"]["resources"]["limits"]["memory"] == "50000000b"
    assert services["firewall"]["deploy"]["replicas"] == 4


def test_compose_labels_are_not_those_by_which_the_lab_reaps() -> None:
    from workbench.labs.docker.strays import OWNER_LABEL, SESSION_LABEL

    for service in one("compose")["services"].values():
        assert not {SESSION_LABEL, OWNER_LABEL} & set(service["labels"])


def test_compose_says_what_it_cannot_limit() -> None:
    (text,) = export("compose")(case_study(), context()).values()
    assert "# Compose has no word for a limit of bandwidth: see to it for firewall." in text


# ----------------------------------------------------------------------------------- TOSCA

# Read off ETSI GS NFV-SOL 001 V4.4.1, `etsi_nfv_sol001_vnfd_types.yaml`: required and allowed
# properties. No package carries these types, and tosca-parser, which does not either, brings a
# dozen packages of its own; so the rules that the fragment touches stand here.
VDU_REQUIRED = {"name", "description", "vdu_profile"}
VDU_PROFILE = {"min_number_of_instances", "max_number_of_instances"}
COMPUTE_ALLOWED = {"virtual_cpu", "virtual_memory"}


def test_tosca_fragment_has_the_structure_of_sol001() -> None:
    document = one("tosca")
    assert document["tosca_definitions_version"] == "tosca_simple_yaml_1_3"
    assert document["imports"] == ["etsi_nfv_sol001_vnfd_types.yaml"]
    assert set(document) <= {
        "tosca_definitions_version", "description", "metadata", "imports", "topology_template",
    }  # fmt: skip
    nodes = document["topology_template"]["node_templates"]
    assert list(nodes) == ["tinyproxy", "haproxy", "balancer", "firewall"]
    for node in nodes.values():
        assert set(node) == {"type", "metadata", "properties", "capabilities"}
        assert node["type"] == "tosca.nodes.nfv.Vdu.Compute"
        assert set(node["properties"]) == VDU_REQUIRED
        profile = node["properties"]["vdu_profile"]
        assert set(profile) == VDU_PROFILE
        assert all(type(n) is int and n >= 1 for n in profile.values())
        assert set(node["capabilities"]) == {"virtual_compute"}
        compute = node["capabilities"]["virtual_compute"]["properties"]
        assert set(compute) <= COMPUTE_ALLOWED
        assert type(compute["virtual_cpu"]["num_virtual_cpu"]) is int
        assert compute["virtual_cpu"]["num_virtual_cpu"] > 0
    metadata = [document["metadata"], *(n["metadata"] for n in nodes.values())]
    assert all(type(v) is str for found in metadata for v in found.values())  # a map of string


def test_tosca_rounds_up_and_says_so() -> None:
    (text,) = export("tosca")(case_study(), context()).values()
    nodes = read(text)["topology_template"]["node_templates"]
    compute = {n: v["capabilities"]["virtual_compute"]["properties"] for n, v in nodes.items()}
    assert compute["haproxy"]["virtual_cpu"] == {"num_virtual_cpu": 1}
    assert compute["haproxy"]["virtual_memory"] == {"virtual_mem_size": "48 MiB"}
    assert "# num_virtual_cpu counts whole vCPUs: haproxy is given 1 for 0.063." in text
    assert "vcpu=0.0625" in nodes["haproxy"]["metadata"]["workbench.allocation"]
    assert "firewall is given" not in text  # its one vCPU is whole
    assert "fill it in for balancer, firewall." in text


# ------------------------------------------------------------------------------------- all


def carried(format: str) -> list[dict[str, str]]:
    """Every set of annotations that a format carries, by plain key."""
    written = files(format)
    if format == "kustomize":
        sets = [document["metadata"]["annotations"] for document in written.values()]
    elif format == "helm":
        sets = [values["podAnnotations"] for values in one(format).values()]
    elif format == "compose":
        sets = [service["labels"] for service in one(format)["services"].values()]
    else:
        nodes = one(format)["topology_template"]["node_templates"].values()
        sets = [one(format)["metadata"], *(node["metadata"] for node in nodes)]
    return [
        {key.removeprefix("workbench/").removeprefix("workbench."): v for key, v in found.items()}
        for found in sets
    ]


@pytest.mark.parametrize("format", DEPLOYING)
def test_session_model_sla_confidence_and_date_travel_along(format: str) -> None:
    for found in carried(format):
        assert found["session"] == "case-1"
        assert found["recommendation"] == "r1"
        assert found["model-version"] == "2"
        assert found["sla"] == "p95<=5000ms @ concurrent=400, filesize=1MB; throughput>=90/s"
        assert found["confidence"] == "0.95"
        assert found["date"] == "2026-09-21T14:13:20Z"
        assert found["verified"].startswith("held")


@pytest.mark.parametrize(
    ("probability", "told"), [(0.97314, "0.9731"), (0.99996, "over 0.9999"), (1.0, "over 0.9999")]
)
def test_nothing_that_was_measured_is_certain(probability: float, told: str) -> None:
    met = case_study()
    assert met.chosen
    sure = replace(met, chosen=replace(met.chosen, probability=probability))
    services = one("compose", sure)["services"].values()
    assert {service["labels"]["workbench.probability"] for service in services} == {told}


def test_a_function_carries_its_flavor_and_the_image_that_was_profiled() -> None:
    of = {found["function"]: found for found in carried("compose")}
    assert of["tinyproxy"]["allocation"] == "flavor=small, memory_bytes=67108864, vcpu=0.5"
    assert of["haproxy"]["image"] == "haproxy:2.6"
    assert of["haproxy"]["image-digest"] == "sha256:0a1b"
    assert "image" not in of["tinyproxy"]  # built in the lab: its name means nothing elsewhere


@pytest.mark.parametrize("format", DEPLOYING)
def test_nothing_is_deployed_where_nothing_meets_the_sla(format: str) -> None:
    with pytest.raises(WorkbenchError, match="there is nothing to deploy") as refused:
        files(format, unmet())
    assert refused.value.exit_code == FINDING
    assert "p95<=5000ms" in str(refused.value)
    assert "Export it as html or md" in str(refused.value)


@pytest.mark.parametrize("format", DEPLOYING)
def test_whole_vcpus_keep_their_number_in_every_format(format: str) -> None:
    met = case_study()
    assert met.chosen
    for cores in (1, 2, 3, 16):
        whole = replace(met, chosen=replace(met.chosen, allocation={"fw.vcpu": float(cores)}))
        found = files(format, whole)
        text = str(found)
        wanted = {
            "kustomize": f"'{cores * 1000}m'",
            "helm": f"'{cores * 1000}m'",
            "compose": f"'cpus': '{cores}'",
            "tosca": f"'num_virtual_cpu': {math.ceil(cores)}",
        }
        assert wanted[format] in text


@pytest.mark.parametrize("format", sorted(plugins.names("recommendation_exports")))
def test_an_export_that_rests_on_a_simulation_says_so_first(format: str) -> None:
    about = context()
    assert about.host is not None
    simulated = replace(about, host=replace(about.host, lab="sim"))
    for name, text in export(format)(case_study(), simulated).items():
        if format == "html":
            assert "<title>Simulated, not measured: " in text
        elif format == "json":
            assert '"caution": "this rests on a simulation' in text.splitlines()[2]
        elif format == "csv":
            header, row = text.splitlines()[:2]
            assert header.startswith("caution,")
            assert row.startswith("this rests on a simulation")
        else:
            assert "simulat" in text.splitlines()[0].lower(), f"{name} begins with its caution"
    for text in export(format)(case_study(), about).values():
        assert "simulat" not in text.lower(), "what was measured is not called a simulation"


@pytest.mark.parametrize("format", sorted(plugins.names("recommendation_exports")))
def test_every_file_says_what_was_said_with_it_and_whose_figures_it_stands_on(format: str) -> None:
    said = "Nobody has measured study: canaries would tell (workbench canary)."
    noted = replace(case_study(), note=said, model_version=0)
    for name, text in export(format)(noted, context(noted)).items():
        assert "Nobody has measured study" in text, name
        assert "the stand-alone profiles" in text, name


@pytest.mark.parametrize("format", DEPLOYING)
def test_its_objects_carry_that_too(format: str) -> None:
    about = context()
    assert about.host is not None
    simulated = replace(about, host=replace(about.host, lab="sim"))
    for name, text in export(format)(case_study(), simulated).items():
        objects = [line for line in text.splitlines() if not line.startswith("#")]
        assert any("workbench" in line and "caution: " in line for line in objects), name
