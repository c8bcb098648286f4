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
    Duration,
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
from workbench.descriptors.library import Library
from workbench.descriptors.reading import Described, Descriptor, Located, Reading, did_you_mean
from workbench.descriptors.references import MetricsName, SinkName, SourceName, require_role
from workbench.descriptors.sla_text import kpi_name
from workbench.descriptors.units import (
    BYTES,
    COUNT,
    PER_SECOND,
    WORKLOADS,
    Dimension,
    kpi_dimensions,
    shown,
)
from workbench.domain import kpis
from workbench.domain.parameters import PACKET_MIXES, Combination, Scale
from workbench.domain.topology import Node, Role, Vnf
from workbench.plugins import Group, names

MOST_CONFIGURATIONS = 10_000
"""Of one target; a grid beyond that is a slip of the hand, and would fill the memory."""

RESOURCE_DIMENSIONS = tuple(quantity.dimension for quantity in RESOURCES.values())


def _plugin(group: Group, *besides: str) -> AfterValidator:
    def look_up(name: str) -> str:
        known = (*besides, *names(group))
        if name not in known:
            hint = did_you_mean(name, known)
            noun = "generators" if group == "traffic" else group
            raise ValueError(f"is {shown(name)}, which is none of the {noun}; {hint}")
        return name

    return AfterValidator(look_up)


Raw = Annotated[
    int | float | str,
    Field(union_mode="left_to_right"),
]
"""A quantity whose dimension another field names."""
RawWorkload = Annotated[
    Raw,
    WithJsonSchema({"anyOf": [*quantity_schema(BYTES, COUNT)["anyOf"], {"enum": [*PACKET_MIXES]}]}),
]
RawResource = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [*quantity_schema(*RESOURCE_DIMENSIONS)["anyOf"], {"type": "string"}]}
    ),
]
RawPrimary = Annotated[Raw, WithJsonSchema(quantity_schema(PER_SECOND, COUNT))]
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
    """A VNF or a chain, between a source and a sink, with its resource parameters."""

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

    def mistakes(self) -> Iterator[Located]:
        yield from super().mistakes()
        if self.form in ("series", "parallel") and self.name is None:
            yield ("name",), "is missing; a target that is composed in place needs a name"

    def mistakes_among(self, library: Library) -> Iterator[Located]:
        yield from whole_mistakes(self, library)
        roles: tuple[Role, Role] = ("source", "sink")
        for role, template in zip(roles, self.ends(library), strict=True):
            try:
                require_role(library, template, role)
            except ValueError as error:
                yield (role,), str(error)
        node = node_of(self, library)
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

    def _setting_mistakes(self, vnfs: tuple[Vnf, ...], library: Library) -> Iterator[Located]:
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

    def ends(self, library: Library) -> tuple[str, str]:
        """Template names of source and sink: the target's own, else its chain's."""
        chain = library.chain(self.chain) if self.chain else None
        source, sink = (chain.source, chain.sink) if chain else ("source", "sink")
        return self.source or source, self.sink or sink


class WorkloadText(Described):
    """A workload parameter besides the primary one, and the values to profile it at."""

    name: Literal["filesize", "packetsize", "flows"]
    values: Annotated[list[RawWorkload], Field(min_length=1)]

    def mistakes(self) -> Iterator[Located]:
        seen: set[float | str] = set()
        for index, given in enumerate(self.values):
            try:
                value = self.read(given)
            except ValueError as error:
                yield ("values", index), str(error)
                continue
            if isinstance(value, str):
                if len(self.values) > 1:
                    yield ("values", index), f"is {value}, a mix, which stands alone; one value"
            elif value < 1 or value != int(value):
                unit = self.dimension.unit or "of them"
                yield ("values", index), f"is {shown(given)}, must be whole {unit}, at least 1"
            elif value in seen:
                yield ("values", index), f"is {shown(given)}, which is given twice"
            seen.add(value)

    @property
    def dimension(self) -> Dimension:
        return WORKLOADS[self.name]

    def read(self, given: Any) -> float | str:
        """An amount, or the name of a mix of packet sizes. Raises `ValueError`."""
        mixes = PACKET_MIXES if self.name == "packetsize" else ()
        return str(given) if given in mixes else self.dimension.read(given)


class PrimaryText(Described):
    """The workload parameter that varies in operation, and the range to sample it in."""

    name: Literal["rate", "concurrent", "packet_rate"]
    range: Annotated[list[RawPrimary], Field(min_length=2, max_length=2)]
    scale: Scale = "log"


class LoadText(Described):
    """How the source offers load."""

    kind: Literal["open", "closed"]
    think_time: Duration | None = None
    arrivals: Literal["constant", "poisson"] | None = None
    generator: Annotated[str, _plugin("traffic")] | None = Field(
        default=None, description="The program that drives; none: the pre-flight chooses"
    )
    connections: Annotated[int, Field(ge=1, le=10_000)] | None = None

    def mistakes(self) -> Iterator[Located]:
        foreign = ("think_time",) if self.kind == "open" else ("arrivals", "connections")
        other = "closed" if self.kind == "open" else "open"
        for key in foreign:
            if getattr(self, key) is not None:
                yield (key,), f"belongs to a load of kind {other}, and this one is {self.kind}"


class SamplingText(Described):
    """Which sampler asks, and when it stops."""

    method: Annotated[str, _plugin("samplers")] = "bisection"
    model: Annotated[str, _plugin("models")] = "gaussian-process"
    max_samples: Annotated[int, Field(ge=2, le=1000)] = 10
    epsilon: OpenShare = 0.01
    repetitions: Annotated[int, Field(ge=1, le=100)] = 1
    options: dict[VariableName, Option] = Field(default_factory=dict)


class WindowsText(Described):
    """How long one operating point is driven."""

    warmup: Duration = 1.0
    window: PositiveDuration = 3.0
    timeout: PositiveDuration = 30.0
    request_timeout: PositiveDuration = 20.0
    interval: ShareOrNone = Field(
        default=0.0,
        description="Add windows until the KPI's 95 % interval is this narrow; 0: never",
    )

    def mistakes(self) -> Iterator[Located]:
        if self.timeout < self.warmup + self.window:
            yield (
                ("timeout",),
                f"is {self.timeout:g} s, must leave time for warmup and one window "
                f"({self.warmup + self.window:g} s)",
            )


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
    profile_model: Annotated[str, _plugin("models", "auto")] = Field(
        "auto", description="Of each target; auto: the best by cross-validation"
    )
    windows: WindowsText = WindowsText()
    budget: PositiveDuration | None = Field(None, description="On the clock")
    lab: Annotated[str, Field(pattern=LAB)] | None = Field(
        None, description="Where it is meant to run, such as sim:host_cores=16; --lab goes over it"
    )
    initialization: list[CommandText] = Field(default_factory=list)
    metrics: MetricsName | None = None

    @field_validator("attach", mode="after")
    @classmethod
    def _may_be_named(
        cls, attach: dict[str, AttachText], info: ValidationInfo
    ) -> dict[str, AttachText]:
        """What is attached is named by targets like a template, and goes over one."""
        if isinstance(info.context, Reading):
            info.context.library.put(templates(attach))
        return attach

    @classmethod
    def checks(cls, reading: Reading) -> Iterator[Located]:
        from workbench.descriptors.campaign_checks import campaign_mistakes

        yield from campaign_mistakes(reading)


def functions(node: Node) -> tuple[Vnf, ...]:
    """All functions of a node, from the source's side."""
    from workbench.domain.topology import Target

    return Target("", node).vnfs
