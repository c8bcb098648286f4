"""`campaigns/NAME.yaml`: what is to be profiled and how (paper B, Listings 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from workbench.descriptors.attach_text import AttachText, templates
from workbench.descriptors.campaign_checks import campaign_mistakes
from workbench.descriptors.fields import (
    Argv,
    CpuSet,
    InstanceName,
    OpenShare,
    PositiveDuration,
    ShareOfOne,
    Summary,
    TargetName,
    Url,
    VariableName,
    quantity_schema,
)
from workbench.descriptors.load_text import LoadText
from workbench.descriptors.plugged import plugin_name
from workbench.descriptors.policy_targets import with_chains
from workbench.descriptors.reading import Described, Descriptor, DescriptorReading, Located
from workbench.descriptors.references import (
    MetricsName,
)
from workbench.descriptors.sla_text import kpi_name
from workbench.descriptors.target_text import FlavorText, TargetText
from workbench.descriptors.units import kpi_dimensions
from workbench.descriptors.workload_text import (
    PrimaryText,
    Raw,
    WindowsText,
    WorkloadText,
)
from workbench.domain import kpis
from workbench.domain.campaign import EvidenceKind

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


LAB = r"^(attach|kubernetes|(docker|netns|sim|vm)(:[^\s]+)?)$"


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
        "kernel",
        description="besides, of each function: perf: events of `perf stat`; trace: what its "
        "threads did in two seconds of each sample",
    )

    @field_validator("attach", mode="after")
    @classmethod
    def _may_be_named(
        cls, attach: dict[str, AttachText], info: ValidationInfo
    ) -> dict[str, AttachText]:
        """What is attached is named by targets like a template, and goes over one."""
        if isinstance(info.context, DescriptorReading):
            info.context.library.put(templates(attach))
        return attach

    @field_validator("targets", mode="after")
    @classmethod
    def _chains_of_policies(
        cls, targets: list[TargetText], info: ValidationInfo
    ) -> list[TargetText]:
        """A policy stands for its chains."""
        if not isinstance(info.context, DescriptorReading) or not any(t.policy for t in targets):
            return targets
        expanded = with_chains(targets, info.context.library)
        info.context.valid["targets"] = expanded
        return expanded

    @classmethod
    def checks(cls, reading: DescriptorReading) -> Iterator[Located]:
        yield from campaign_mistakes(reading)
