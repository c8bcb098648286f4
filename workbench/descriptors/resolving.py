"""From a campaign's descriptor without mistakes to the domain's campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.descriptors import attach_text
from workbench.descriptors.campaign import CampaignText
from workbench.descriptors.campaign_checks import primary_workload
from workbench.descriptors.composition import node_of
from workbench.descriptors.fields import RESOURCES
from workbench.descriptors.library import DescriptorLibrary
from workbench.descriptors.load_checks import PRIMARIES_OF_LOAD, load_model, shape_of
from workbench.descriptors.load_text import LoadText
from workbench.descriptors.sla_text import parse_sla
from workbench.descriptors.target_text import FlavorText, ResourceText, TargetText, functions
from workbench.descriptors.units import CORES, kpi_dimension, workload_key
from workbench.domain.campaign import (
    Agent,
    Campaign,
    InitializationCommand,
    Manager,
    SamplingPlan,
    TargetPlan,
    WindowPlan,
)
from workbench.domain.competitors import COMPETITOR, NONE, STRESSOR
from workbench.domain.load_shapes import LoadShape
from workbench.domain.parameters import LoadKind, Parameter
from workbench.domain.resources import by_name
from workbench.domain.topology import Target, Vnf, VnfTemplate

_DEFAULT_KPI_MAX = "1000ms"


def resolved_campaign(name: str, text: CampaignText, library: DescriptorLibrary) -> Campaign:
    """All names looked up, all values in their units; `text` and `library` have no mistakes."""
    primary = text.primary_workload_parameter
    plans = tuple(_target_plan(text, target, library) for target in text.targets)
    metrics, servers = (library.metrics(text.metrics) if text.metrics else None) or ((), ())
    return Campaign(
        name=name,
        targets=plans,
        templates=_templates(text, plans, library),
        workload=tuple(
            Parameter(
                workload_key(parameter.name),
                tuple(parameter.read(value) for value in parameter.values),
                parameter.dimension.unit,
            )
            for parameter in text.workload_parameters
        ),
        load=load_model(_load(text), primary.name, _shape(text, library)),
        generator=_load(text).generator or "",
        kpi=text.kpi,
        kpi_max=kpi_dimension(text.kpi).read(
            _DEFAULT_KPI_MAX if text.kpi_max is None else text.kpi_max
        ),
        loss_goal=text.loss_goal,
        sla=parse_sla(text.sla, primary.name) if text.sla is not None else None,
        sampling=SamplingPlan(
            text.sampling.method,
            text.sampling.max_samples,
            text.sampling.epsilon,
            text.sampling.repetitions,
            text.sampling.model,
            dict(text.sampling.options),
        ),
        windows=WindowPlan(
            text.windows.warmup,
            text.windows.window,
            text.windows.timeout,
            text.windows.request_timeout,
            text.windows.interval,
        ),
        budget_s=text.budget,
        summary=text.summary,
        metrics=metrics,
        agents=tuple(Agent(key, agent.kind, agent.url) for key, agent in text.agents.items()),
        managers=tuple(
            Manager(key, manager.agent, manager.cpuset) for key, manager in text.managers.items()
        ),
        initialization=tuple(
            InitializationCommand(command.manager, tuple(command.command))
            for command in text.initialization
        ),
        profile_model=text.profile_model,
        lab=text.lab or attach_text.lab_of(text.attach),
        attached=attach_text.resolved(text.attach, primary.name),
        servers=servers,
        evidence=text.evidence,
    )


def _target_plan(text: CampaignText, target: TargetText, library: DescriptorLibrary) -> TargetPlan:
    node = node_of(target, library)
    assert node is not None
    vnfs = functions(node)
    resources: list[Parameter] = []
    settings: list[Parameter] = []
    for vnf in vnfs:
        own = [p for p in target.resource_parameters if (p.vnf or vnfs[0].name) == vnf.name]
        parameters = [_resource(vnf.name, parameter, text.flavors) for parameter in own]
        if vnf.name not in text.attach and not any(
            p.key.endswith(".vcpu") or any("vcpu" in f for f in p.flavors.values())
            for p in parameters
        ):
            # A function keeps the vCPU of its template where none is given, which is a resource
            # of the configuration like any other. What runs already keeps what it has.
            default = _template(vnf.template, library).default_vcpu
            parameters.insert(0, Parameter(f"{vnf.name}.vcpu", (default,), CORES.unit))
        resources.extend(parameters)
        settings.extend(_settings(vnf, target, vnfs, library))
    return TargetPlan(
        Target(target.title, node, *target.ends(library)),
        tuple(resources),
        primary_workload(text.primary_workload_parameter, target),
        target.combine,
        tuple(settings),
        sure_to=target.sure_to,
    )


def _settings(
    vnf: Vnf, target: TargetText, vnfs: tuple[Vnf, ...], library: DescriptorLibrary
) -> Iterator[Parameter]:
    """All settings of a function: those that are not varied have their default, so that samples
    of every campaign say what the function was."""
    given = {p.name: p for p in target.function_parameters if (p.vnf or vnfs[0].name) == vnf.name}
    for known in _template(vnf.template, library).function_parameters:
        values = given[known.name].values if known.name in given else (known.default,)
        read = tuple(known.read(value) for value in values)
        yield Parameter(f"{vnf.name}.{known.name}", read, known.unit)


def _resource(vnf: str, text: ResourceText, flavors: Mapping[str, FlavorText]) -> Parameter:
    values = tuple(text.read(given) for given in text.values)
    if text.name != "flavor":
        key = f"{vnf}.{by_name()[text.name].key}"
        return Parameter(key, values, RESOURCES[text.name].dimension.unit)
    allotted = {
        str(name): {by_name()[k].key: v for k, v in flavors[str(name)].allotted.items()}
        for name in values
    }
    return Parameter(f"{vnf}.flavor", values, "", allotted)


def _templates(
    text: CampaignText, plans: tuple[TargetPlan, ...], library: DescriptorLibrary
) -> tuple[VnfTemplate, ...]:
    wanted = dict.fromkeys(
        name
        for plan in plans
        for name in (
            *(vnf.template for vnf in plan.target.vnfs),
            plan.target.source,
            plan.target.sink,
        )
    )
    if any(p.name == COMPETITOR and {*p.values} != {NONE} for p in text.workload_parameters):
        wanted[STRESSOR] = None
    return tuple(_template(name, library) for name in wanted)


def _template(name: str, library: DescriptorLibrary) -> VnfTemplate:
    template = library.vnf(name)
    assert template is not None
    return template


def _shape(text: CampaignText, library: DescriptorLibrary) -> LoadShape | None:
    shape = text.load.shape if text.load else None
    trace = library.traces[shape.file] if shape and shape.file else None
    return shape_of(text.load, text.workload_parameters, trace)


def _load(text: CampaignText) -> LoadText:
    kind = _kind_of_load(text.primary_workload_parameter.name)
    return text.load or LoadText(kind=kind)


def _kind_of_load(primary_name: str) -> LoadKind:
    return "open" if primary_name in PRIMARIES_OF_LOAD["open"] else "closed"
