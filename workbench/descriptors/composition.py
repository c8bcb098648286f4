"""How VNFs are composed in a descriptor: series, parallel, and references to VNFs and chains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from pydantic import Field, GetJsonSchemaHandler, ModelWrapValidatorHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from workbench.descriptors.document import FieldPath
from workbench.descriptors.fields import InstanceName, OpenShare
from workbench.descriptors.lookups import Lookups
from workbench.descriptors.reading import Described, Located
from workbench.descriptors.references import ChainName, FunctionName
from workbench.descriptors.units import shown
from workbench.domain.topology import Node, Parallel, Placement, Series, Vnf

_SHARES_TOLERANCE = 1e-6


class Composition(Described):
    """Parts in series or in parallel."""

    FORMS: ClassVar[tuple[str, ...]] = ("series", "parallel")

    series: list[ChainPart] | None = Field(
        None, min_length=1, description="From the source's side to the sink's"
    )
    parallel: list[ChainPart] | None = Field(
        None, min_length=2, description="Branches that traffic is split over"
    )

    @property
    def form(self) -> str:
        """Which of the forms is used; empty where none or several are."""
        used = [form for form in self.FORMS if getattr(self, form) is not None]
        return used[0] if len(used) == 1 else ""

    def mistakes(self) -> Iterator[Located]:
        yield from super().mistakes()
        used = [form for form in self.FORMS if getattr(self, form) is not None]
        if not used:
            yield (), f"says nothing to compose; give one of: {', '.join(self.FORMS)}"
        for extra in used[1:]:
            yield (extra,), f"is given beside {used[0]}; one of them must go"
        for index, part in enumerate(self.series or ()):
            if part.share is not None:
                yield ("series", index, "share"), "belongs to a branch of parallel, not to a series"
        if self.parallel:
            yield from _share_mistakes(self.parallel)


class Reference(Composition):
    """A VNF or a chain by name, or a composition in place."""

    FORMS: ClassVar[tuple[str, ...]] = ("vnf", "chain", "series", "parallel")

    vnf: FunctionName | None = None
    chain: ChainName | None = None


class ChainPart(Reference):
    """A part of a chain; a text alone is the name of a VNF."""

    name: InstanceName | None = Field(
        None, description="Of this instance; its VNF's name where none is given"
    )
    share: OpenShare | None = Field(None, description="Of the traffic that this branch gets")
    placement: Placement | None = Field(
        None, description="Of this instance; that of its VNF's template where none is given"
    )

    def mistakes(self) -> Iterator[Located]:
        yield from super().mistakes()
        if self.name is not None and self.vnf is None:
            yield ("name",), "is given to what is no single vnf; remove it"
        if self.placement is not None and self.vnf is None:
            yield ("placement",), "is given to what is no single vnf; remove it"

    @model_validator(mode="wrap")
    @classmethod
    def _name_alone(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return handler({"vnf": data} if isinstance(data, str) else data)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        mapping = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [{"type": "string", "description": "Name of a VNF"}, mapping]}


# Only now does Part exist, which the fields of its own bases refer to.
for _model in (Composition, Reference, ChainPart):
    _model.model_rebuild()


def _share_mistakes(branches: list[ChainPart]) -> Iterator[Located]:
    shares = [branch.share for branch in branches if branch.share is not None]
    if not shares:
        return
    if len(shares) < len(branches):
        yield ("parallel",), "gives a share to some branches; give one to each, or to none"
    elif abs(sum(shares) - 1) > _SHARES_TOLERANCE:
        yield ("parallel",), f"has shares that sum to {sum(shares):.4g}, must sum to 1"


def node_of(composition: Composition, library: Lookups) -> Node | None:
    """The composition as a domain's node; None where a part of it has mistakes."""
    match composition.form:
        case "series":
            parts = [node_of(part, library) for part in composition.series or ()]
            if None in parts:
                return None
            # A series in a series is one series: labs ask whether a target is a plain one.
            flat = [
                inner
                for part in parts
                if part is not None
                for inner in (part.parts if isinstance(part, Series) else (part,))
            ]
            return Series(tuple(flat))
        case "parallel":
            branches = composition.parallel or []
            nodes = tuple(n for b in branches if (n := node_of(b, library)) is not None)
            shares = tuple(b.share or 1 / len(branches) for b in branches)
            return Parallel(nodes, shares) if len(nodes) == len(branches) else None
    if isinstance(composition, Reference):
        if composition.vnf:
            part = composition if isinstance(composition, ChainPart) else None
            template = library.vnf(composition.vnf)
            own = template.placement if template else "inline"
            return Vnf(
                (part and part.name) or composition.vnf,
                composition.vnf,
                (part and part.placement) or own,
            )
        if composition.chain:
            chain = library.chain(composition.chain)
            return chain.node if chain else None
    return None


def whole_mistakes(composition: Composition, library: Lookups) -> Iterator[Located]:
    """What is wrong with a composition as a whole: a name used twice, a passive one in a branch."""
    leaves = list(_leaves(composition, library, ())) if composition.form else []
    seen: set[str] = set()
    for path, vnf, placement in leaves:
        if vnf.name in seen:
            yield (
                path,
                f"is the second function called {shown(vnf.name)}; "
                f"name one of them: {{vnf: {vnf.template}, name: {vnf.name}-2}}",
            )
        seen.add(vnf.name)
        template = library.vnf(vnf.template)
        said = placement or (template.placement if template else "inline")
        if said == "passive" and "parallel" in path:
            yield (
                path,
                f"is {shown(vnf.template)}, a passive function: it gets a copy of what reaches the "
                "part behind it, and traffic that is split passes no such place; put it into a "
                "series",
            )


def _leaves(
    composition: Composition, library: Lookups, path: FieldPath
) -> Iterator[tuple[FieldPath, Vnf, Placement | None]]:
    """Every function with the place in this file that brings it in, and where that puts it."""
    for form in ("series", "parallel"):
        for index, part in enumerate(getattr(composition, form) or ()):
            yield from _leaves(part, library, (*path, form, index))
    if isinstance(composition, Reference) and (composition.vnf or composition.chain):
        node = node_of(composition, library)
        placement = composition.placement if isinstance(composition, ChainPart) else None
        waiting = [node] if node else []
        while waiting:
            match waiting.pop(0):
                case Vnf() as vnf:
                    yield path, vnf, placement
                case Series(parts):
                    waiting[:0] = parts
                case Parallel(branches):
                    waiting[:0] = branches
