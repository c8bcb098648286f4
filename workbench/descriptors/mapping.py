"""`mappings/NAME.yaml`: what the columns of somebody else's table are called here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from workbench.descriptors.fields import NonEmptyText, Summary, TargetName
from workbench.descriptors.load_text import LoadText
from workbench.descriptors.reading import Descriptor, DescriptorReading, Located, did_you_mean
from workbench.descriptors.units import (
    PACKETS_PER_SECOND,
    PER_SECOND,
    WORKLOADS,
    Dimension,
    kpi_dimension,
    resource_dimension,
    shown,
    workload_key,
)
from workbench.domain import kpis, resources
from workbench.domain.tables import FACTS, POINT

WORKLOAD_KEYS = {workload_key(name): name for name in WORKLOADS}
_BOUNDS = ("_low", "_high")
_RATES = {"kpps": 1e3, "Mpps": 1e6}
"""Of packets; descriptors have no need of them."""


class MappingText(Descriptor):
    """How to read somebody else's CSV. Keys are our names, values theirs."""

    kind: Literal["mapping"] = "mapping"
    summary: Summary = ""
    columns: dict[str, NonEmptyText] = Field(
        default_factory=dict, description="Our column: theirs; columns of our names need none"
    )
    units: dict[str, str | float] = Field(
        default_factory=dict, description="Of ours: the unit that they write, or a factor"
    )
    values: dict[str, dict[str, str | float]] = Field(
        default_factory=dict, description="Of ours: what a cell that holds a text of theirs means"
    )
    constants: dict[str, str | float] = Field(
        default_factory=dict, description="Of ours: what is the same in every row"
    )
    chains: dict[TargetName, Annotated[list[TargetName], Field(min_length=2)]] = Field(
        default_factory=dict, description="Targets that are chains: functions from the source on"
    )
    load: LoadText
    rows: Literal["samples", "seconds"] = Field(
        "samples", description="seconds: rows of one point are one sample, whose mean counts"
    )

    @classmethod
    def checks(cls, reading: DescriptorReading) -> Iterator[Located]:
        for key in ("columns", "units", "values", "constants"):
            for name in reading.valid.get(key, {}):
                if not is_column(name):
                    yield (key, name), f"is no column of ours; {did_you_mean(name, EXAMPLES)}"
        for name, unit in reading.valid.get("units", {}).items():
            if is_column(name):
                try:
                    factor(name, unit)
                except ValueError as error:
                    yield ("units", name), str(error)
            for ours in ("values", "constants"):
                if name in reading.valid.get(ours, {}):
                    yield (
                        ("units", name),
                        f"is of what {ours} says in our own unit already: write it there so, or "
                        "leave it out here",
                    )


EXAMPLES = (
    *("target", "wl", *kpis.known()),
    *(f"FUNCTION.{key}" for key in resources.known()),
    *WORKLOAD_KEYS,
)


def is_column(name: str) -> bool:
    """Whether a table of ours may have such a column."""
    base = name.removesuffix("_low").removesuffix("_high")
    resource = "." in name and resources.of(name) is not None
    return base in kpis.known() or name in ("target", *POINT, *FACTS, *WORKLOAD_KEYS) or resource


def dimension(name: str) -> Dimension | None:
    """What a column of ours is a quantity of; None where it has no unit, or may have several."""
    base = next((name.removesuffix(end) for end in _BOUNDS if name.endswith(end)), name)
    if base in kpis.known():
        return kpi_dimension(base)
    if name in WORKLOAD_KEYS:
        return WORKLOADS[WORKLOAD_KEYS[name]]
    resource = resources.of(name)
    return resource_dimension(resource) if resource else None


def factor(name: str, unit: str | float) -> float:
    """What one of their units is in ours. Raises `ValueError` with a sentence that begins with
    *is*."""
    if not isinstance(unit, str):
        return float(unit)
    own = dimension(name)
    known = dict((own or PER_SECOND).factors)
    if own in (PACKETS_PER_SECOND, None):  # `wl` may be either
        known |= {**PACKETS_PER_SECOND.factors, **_RATES}
    if unit not in known or not unit:
        allowed = ", ".join(unit for unit in known if unit)
        raise ValueError(f"is {shown(unit)}, must be a number or one of: {allowed}")
    return known[unit]
