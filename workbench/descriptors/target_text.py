"""Targets of a campaign: a VNF, a chain or a policy, its resources, settings and values."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from workbench.descriptors.composition import Reference, node_of, whole_mistakes
from workbench.descriptors.fields import (
    RESOURCES,
    InstanceName,
    ShareOrNone,
    Summary,
    TargetName,
    VariableName,
    quantity_schema,
)
from workbench.descriptors.lookups import Lookups
from workbench.descriptors.policy_targets import policy_mistakes
from workbench.descriptors.reading import Described, Located, did_you_mean, with_fields
from workbench.descriptors.references import FunctionName, SinkName, SourceName, require_role
from workbench.descriptors.units import shown
from workbench.descriptors.workload_text import Raw, RawPrimary
from workbench.domain.parameters import Combination, Scale
from workbench.domain.resources import FLAVOR
from workbench.domain.topology import Node, Role, Target, Vnf

MOST_CONFIGURATIONS = 10_000
"""Of one target; a grid beyond that is a slip of the hand, and would fill the memory."""

RESOURCE_DIMENSIONS = tuple(quantity.dimension for quantity in RESOURCES.values())


RawResource = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [*quantity_schema(*RESOURCE_DIMENSIONS)["anyOf"], {"type": "string"}]}
    ),
]


@with_fields({name: (Annotated[float, q] | None, None) for name, q in RESOURCES.items()})
class FlavorText(Described):
    """A set of resources that are allotted together."""

    def mistakes(self) -> Iterator[Located]:
        if not self.allotted:
            yield (), f"allots nothing; allowed: {', '.join(RESOURCES)}"

    @property
    def allotted(self) -> dict[str, float]:
        """Amounts by the names that descriptors use."""
        given = {name: getattr(self, name) for name in RESOURCES}
        return {name: amount for name, amount in given.items() if amount is not None}


if TYPE_CHECKING:
    ResourceName = str
else:
    ResourceName = Literal[(*RESOURCES, FLAVOR)]


class ResourceText(Described):
    """A resource parameter of one VNF and the values to profile it at."""

    vnf: InstanceName | None = Field(
        None, description="Instance in the target; may be left out where there is but one"
    )
    name: ResourceName
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
        if self.name == FLAVOR:
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
            yield from policy_mistakes(self, library)
        if node is not None:
            vnfs = functions(node)
            yield from self._resource_mistakes([vnf.name for vnf in vnfs])
            yield from self._setting_mistakes(vnfs, library)

    def _resource_mistakes(self, instances: list[str]) -> Iterator[Located]:
        seen: set[tuple[str | None, str]] = set()
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
            if self.combine == "places" and len(parameter.values) not in (1, places):
                yield (
                    (*here, "values"),
                    f"are {len(parameter.values)}, must be one or {places}: "
                    "values at the same place are combined",
                )
        if self.allocations > MOST_CONFIGURATIONS:
            yield (
                ("resource_parameters",),
                f"make {self.allocations} configurations, at most {MOST_CONFIGURATIONS} are "
                "allowed",
            )

    @property
    def allocations(self) -> int:
        """How many combinations of resources there are."""
        counts = [len(parameter.values) for parameter in self.resource_parameters]
        return max(counts, default=1) if self.combine == "places" else prod(counts)

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


def functions(node: Node) -> tuple[Vnf, ...]:
    """All functions of a node, from the source's side."""
    return Target("", node).vnfs
