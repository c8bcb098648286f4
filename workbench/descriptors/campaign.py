"""`campaigns/NAME.yaml`: what is to be profiled and how (paper B, Listings 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from workbench.descriptors.attach_text import AttachText, templates
from workbench.descriptors.composition import Reference, node_of, whole_mistakes
from workbench.descriptors.fields import (
    RESOURCE_KEYS,
    RESOURCES,
    Argv,
    Bandwidth,
    CpuSet,
    InstanceName,
    Memory,
    OpenShare,
    PositiveDuration,
    ShareOfOne,
    ShareOrNone,
    Summary,
    TargetName,
    Url,
    VariableName,
    Vcpu,
    quantity_schema,
)
from workbench.descriptors.load_text import LoadText
from workbench.descriptors.lookups import Lookups
from workbench.descriptors.plugged import plugin_name
from workbench.descriptors.reading import Described, Descriptor, Located, Reading, did_you_mean
from workbench.descriptors.references import (
    FunctionName,
    MetricsName,
    SinkName,
    SourceName,
    require_role,
)
from workbench.descriptors.sla_text import kpi_name
from workbench.descriptors.units import (
    kpi_dimensions,
    shown,
)
from workbench.descriptors.workload_text import (
    PrimaryText,
    Raw,
    RawPrimary,
    WindowsText,
    WorkloadText,
)
from workbench.domain import kpis
from workbench.domain.campaign import EvidenceKind
from workbench.domain.parameters import Combination, Scale
from workbench.domain.topology import Node, Role, Vnf

MOST_CONFIGURATIONS = 10_000
"""Of one target; a grid beyond that is a slip of the hand, and would fill the memory."""

RESOURCE_DIMENSIONS = tuple(quantity.dimension for quantity in RESOURCES.values())


RawResource = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [*quantity_schema(*RESOURCE_DIMENSIONS)["anyOf"], {"type": "string"}]}
    ),
]
RawKpi = Annotated[Raw, WithJsonSchema(quantity_schema(*kpi_dimensions()))]
KpiName = Annotated[str, AfterValidator(kpi_name)]
Option = Annotated[int | float | str, Field(union_mode="left_to_right")]


class AgentText(Described):
    """How to reach an infrastructure."""

    kind: Literal["docker"] = Field(alias="class")
    url: Url = Field("", description="May be ${NAME}; none: the engine that DOCKER_HOST names")


class ManagerText(Described):
    """Who configures one VNF, source or sink."""

    agent: VariableName
    cpuset: CpuSet = Field("", description="Cores to pin it to, such as 0-1,3")


class FlavorText(Described):
    """A set of resources that are allotted together."""

    vcpu: Vcpu | None = None
    memory: Memory | None = None
    bandwidth: Bandwidth | None = None

    def mistakes(self) -> Iterator[Located]:
        if not self.allotted:
            yield (), f"allots nothing; allowed: {', '.join(RESOURCE_KEYS)}"

    @property
    def allotted(self) -> dict[str, float]:
        """Amounts by the names that descriptors use."""
        given = {name: getattr(self, name) for name in RESOURCE_KEYS}
        return {name: amount for name, amount in given.items() if amount is not None}


class ResourceText(Described):
    """A resource parameter of one VNF and the values to profile it at."""

    vnf: InstanceName | None = Field(
        None, description="Instance in the target; may be left out where there is but one"
    )
    name: Literal["vcpu", "memory", "bandwidth", "flavor"]
    values: Annotated[list[RawResource], Field(min_length=1)] = Field(
        description="Amounts of the resource, or names of the campaign's flavors"
    )

    def mistakes(self) -> Iterator[Located]:
        seen: list[float | str] = []
        for index, given in enumerate(self.values):
            try:
                value = self.read(given)
            except ValueError as error:
                yield ("values", index), str(error)
                continue
            if value in seen:
                yield ("values",), f"holds {value} twice, however it is written"
            seen.append(value)

    def read(self, given: Any) -> float | str:
        """An amount in the unit of its key, or a flavor's name. Raises `ValueError`."""
        if self.name == "flavor":
            if not isinstance(given, str):
                raise ValueError(f"is {shown(given)}, must be the name of a flavor")
            return given
        return RESOURCES[self.name].read(given)


class SettingText(Described):
    """A setting of one function and the values to profile it at."""

    vnf: InstanceName | None = Field(
        None, description="Instance in the target; may be left out where there is but one"
    )
    name: VariableName
    values: Annotated[list[Raw], Field(min_length=1)] = Field(
        description="Of the function's own `function_parameters`"
    )


class RangeText(Described):
    """The range of the primary workload on one target."""

    range: Annotated[list[RawPrimary], Field(min_length=2, max_length=2)] | None = None
    scale: Scale | None = None


class TargetText(Reference):
    """A VNF or a chain, between a source and a sink, with its resource parameters; or a policy,
    which stands for every chain that obeys it."""

    FORMS: ClassVar[tuple[str, ...]] = (*Reference.FORMS, "policy")

    name: TargetName | None = None
    summary: Summary = ""
    source: SourceName | None = None
    sink: SinkName | None = None
    resource_parameters: list[ResourceText] = Field(default_factory=list)
    combine: Combination = Field(
        default="every",
        description="Every combination of the values, or values that stand at the same place",
    )
    function_parameters: list[SettingText] = Field(
        default_factory=list, description="Settings of its functions, each with all else"
    )
    primary_workload_parameter: RangeText | None = None
    policy: Annotated[str, Field(max_length=300)] | None = Field(
        None, description="Every chain that obeys it: A & B, A | B, A > B"
    )
    free: list[FunctionName] = Field(
        default_factory=list, description="Functions that may stand anywhere in its chains, or not"
    )
    sure_to: ShareOrNone = Field(
        default=0.0,
        description="Chains whose capacity is forecast to this share are not measured; 0: all are",
    )

    def mistakes(self) -> Iterator[Located]:
        yield from super().mistakes()
        if self.form == "policy" and self.name is not None:
            yield ("name",), "is given to a policy, whose chains are named by their functions"
        for key in ("free", "sure_to") if self.form != "policy" else ():
            if getattr(self, key):
                yield (key,), "belongs to a policy, and this is one target"
        if self.form in ("series", "parallel") and self.name is None:
            yield ("name",), "is missing; a target that is composed in place needs a name"

    def mistakes_among(self, library: Lookups) -> Iterator[Located]:
        yield from whole_mistakes(self, library)
        roles: tuple[Role, Role] = ("source", "sink")
        for role, template in zip(roles, self.ends(library), strict=True):
            try:
                require_role(library, template, role)
            except ValueError as error:
                yield (role,), str(error)
        node = node_of(self, library)
        if self.form == "policy":
            from workbench.descriptors.policy_targets import policy_mistakes

            yield from policy_mistakes(self, library)
        if node is not None:
            vnfs = functions(node)
            yield from self._resource_mistakes([vnf.name for vnf in vnfs])
            yield from self._setting_mistakes(vnfs, library)

    def _resource_mistakes(self, instances: list[str]) -> Iterator[Located]:
        seen: set[tuple[str | None, str]] = set()
        configurations = 1
        places = max((len(p.values) for p in self.resource_parameters), default=1)
        for index, parameter in enumerate(self.resource_parameters):
            here = ("resource_parameters", index)
            vnf = parameter.vnf or (instances[0] if len(instances) == 1 else None)
            if vnf is None:
                yield (*here, "vnf"), f"is missing; allowed: {', '.join(instances)}"
            elif vnf not in instances:
                yield (
                    (*here, "vnf"),
                    f"is {shown(vnf)}, which is no function of this target; "
                    f"{did_you_mean(vnf, instances)}",
                )
            elif (vnf, parameter.name) in seen:
                yield here, f"gives {parameter.name} of {vnf} for the second time"
            seen.add((vnf, parameter.name))
            if self.combine == "places":
                if len(parameter.values) not in (1, places):
                    yield (
                        (*here, "values"),
                        f"are {len(parameter.values)}, must be one or {places}: "
                        "values at the same place are combined",
                    )
                configurations = places
            else:
                configurations *= len(parameter.values)
        if configurations > MOST_CONFIGURATIONS:
            yield (
                ("resource_parameters",),
                f"make {configurations} configurations, at most {MOST_CONFIGURATIONS} are allowed",
            )

    def _setting_mistakes(self, vnfs: tuple[Vnf, ...], library: Lookups) -> Iterator[Located]:
        instances, seen = [vnf.name for vnf in vnfs], set[str]()
        for index, given in enumerate(self.function_parameters):
            here = ("function_parameters", index)
            name = given.vnf or (instances[0] if len(instances) == 1 else None)
            vnf = next((v for v in vnfs if v.name == name), None)
            if name is None:
                yield (*here, "vnf"), f"is missing; allowed: {', '.join(instances)}"
            elif vnf is None:
                hint = did_you_mean(name, instances)
                yield (
                    (*here, "vnf"),
                    f"is {shown(name)}, which is no function of this target; {hint}",
                )
            elif template := library.vnf(vnf.template):
                known = {p.name: p for p in template.function_parameters}
                if given.name not in known:
                    hint = did_you_mean(given.name, known) if known else "it has none"
                    yield (
                        (*here, "name"),
                        f"is {shown(given.name)}, which is no function parameter of "
                        f"{vnf.template}; {hint}",
                    )
                    continue
                if f"{name}.{given.name}" in seen:
                    yield here, f"gives {given.name} of {name} for the second time"
                seen.add(f"{name}.{given.name}")
                values: list[float | str] = []
                for place, raw in enumerate(given.values):
                    try:
                        value = known[given.name].read(raw)
                    except ValueError as error:
                        yield (*here, "values", place), str(error)
                        continue
                    if value in values:
                        yield (*here, "values", place), f"is {shown(raw)}, which is given twice"
                    values.append(value)

    @property
    def title(self) -> str:
        """The target's name; empty where it has none."""
        return self.name or self.vnf or self.chain or ""

    def ends(self, library: Lookups) -> tuple[str, str]:
        """Template names of source and sink: the target's own, else its chain's."""
        chain = library.chain(self.chain) if self.chain else None
        source, sink = (chain.source, chain.sink) if chain else ("source", "sink")
        return self.source or source, self.sink or sink


class SamplingText(Described):
    """Which sampler asks, and when it stops."""

    method: Annotated[str, plugin_name("samplers")] = "bisection"
    model: Annotated[str, plugin_name("models")] = "gaussian-process"
    max_samples: Annotated[int, Field(ge=2, le=1000)] = 10
    epsilon: OpenShare = 0.01
    repetitions: Annotated[int, Field(ge=1, le=100)] = 1
    options: dict[VariableName, Option] = Field(default_factory=dict)


class CommandText(Described):
    """A command that is run in a container each time a new configuration is set."""

    manager: str
    command: Argv


LAB = r"^(attach|kubernetes|(docker|sim)(:[^\s]+)?)$"


class CampaignText(Descriptor):
    """What is to be profiled and how. Fields that others are checked against come first."""

    ENVIRONMENT_FIELDS: ClassVar[tuple[str, ...]] = ("agents.*.url",)
    TEMPLATE_FIELDS: ClassVar[tuple[str, ...]] = ("initialization.*.command.*",)

    kind: Literal["campaign"] = "campaign"
    summary: Summary = ""
    agents: dict[VariableName, AgentText] = Field(default_factory=dict)
    managers: dict[str, ManagerText] = Field(default_factory=dict)
    flavors: dict[TargetName, FlavorText] = Field(
        default_factory=dict, description="Sets of resources that are allotted together"
    )
    attach: dict[InstanceName, AttachText] = Field(
        default_factory=dict, description="Functions that run already, by the name targets use"
    )
    targets: Annotated[list[TargetText], Field(min_length=1)]
    workload_parameters: list[WorkloadText] = Field(default_factory=list)
    primary_workload_parameter: PrimaryText
    load: LoadText | None = None
    kpi: KpiName = kpis.P95
    kpi_max: RawKpi | None = Field(None, description="Above it nothing is modelled")
    loss_goal: ShareOfOne = 0.005
    sla: str | None = Field(None, description="Such as p95<=200ms @ rate=300/s, filesize=10kB")
    sampling: SamplingText = SamplingText()
    profile_model: Annotated[str, plugin_name("models", "auto")] = Field(
        "auto", description="Of each target; auto: the best by cross-validation"
    )
    windows: WindowsText = WindowsText()
    budget: PositiveDuration | None = Field(None, description="On the clock")
    lab: Annotated[str, Field(pattern=LAB)] | None = Field(
        None, description="Where it is meant to run, such as sim:host_cores=16; --lab goes over it"
    )
    initialization: list[CommandText] = Field(default_factory=list)
    metrics: MetricsName | None = None
    evidence: EvidenceKind = Field(
        "kernel", description="perf: events of `perf stat` of each function besides"
    )

    @field_validator("attach", mode="after")
    @classmethod
    def _may_be_named(
        cls, attach: dict[str, AttachText], info: ValidationInfo
    ) -> dict[str, AttachText]:
        """What is attached is named by targets like a template, and goes over one."""
        if isinstance(info.context, Reading):
            info.context.library.put(templates(attach))
        return attach

    @field_validator("targets", mode="after")
    @classmethod
    def _chains_of_policies(
        cls, targets: list[TargetText], info: ValidationInfo
    ) -> list[TargetText]:
        """A policy stands for its chains."""
        if not isinstance(info.context, Reading) or not any(t.policy for t in targets):
            return targets
        from workbench.descriptors.policy_targets import with_chains

        expanded = with_chains(targets, info.context.library)
        info.context.valid["targets"] = expanded
        return expanded

    @classmethod
    def checks(cls, reading: Reading) -> Iterator[Located]:
        from workbench.descriptors.campaign_checks import campaign_mistakes

        yield from campaign_mistakes(reading)


def functions(node: Node) -> tuple[Vnf, ...]:
    """All functions of a node, from the source's side."""
    from workbench.domain.topology import Target

    return Target("", node).vnfs
