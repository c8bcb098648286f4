"""Names that stand for other descriptors: looked up while the field that holds them is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from workbench.descriptors.lookups import Lookups
from workbench.descriptors.reading import DescriptorReading
from workbench.descriptors.units import shown
from workbench.domain.topology import Role


def require_role(library: Lookups, name: str, role: Role) -> None:
    """Raise `ValueError` with a sentence if no VNF has that name, or one in another role."""
    library.require("vnf", name)
    template = library.vnf(name)
    if template is not None and template.role != role:
        raise ValueError(f"is {shown(name)}, which is a {template.role}, not a {role}")


def _vnf(role: Role) -> Callable[[str, ValidationInfo], str]:
    def look_up(name: str, info: ValidationInfo) -> str:
        if isinstance(info.context, DescriptorReading):
            require_role(info.context.library, name, role)
        return name

    return look_up


def _chain(name: str, info: ValidationInfo) -> str:
    if isinstance(info.context, DescriptorReading):
        library = info.context.library
        library.require("chain", name)
        library.require_end(name)
        library.chain(name)
    return name


def _metrics(name: str, info: ValidationInfo) -> str:
    if isinstance(info.context, DescriptorReading):
        info.context.library.require("metrics", name)
        info.context.library.metrics(name)
    return name


FunctionName = Annotated[str, AfterValidator(_vnf("function"))]
SourceName = Annotated[str, AfterValidator(_vnf("source"))]
SinkName = Annotated[str, AfterValidator(_vnf("sink"))]
ChainName = Annotated[str, AfterValidator(_chain)]
MetricsName = Annotated[str, AfterValidator(_metrics)]
