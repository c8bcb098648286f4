"""`workload_parameters`, `primary_workload_parameter` and `windows` of a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from workbench.descriptors.fields import Duration, PositiveDuration, ShareOrNone, quantity_schema
from workbench.descriptors.reading import Described, Located
from workbench.descriptors.units import (
    BIT_RATE,
    BYTES,
    COUNT,
    PER_SECOND,
    SECONDS,
    SHARE,
    WORKLOADS,
    Dimension,
    WorkloadName,
    read_competitor,
    shown,
)
from workbench.domain.competitors import COMPETITOR, KINDS, NONE, PLACES
from workbench.domain.load_shapes import LEAST_DUTY, SHORTEST_S
from workbench.domain.parameters import PACKET_MIXES, Scale

Raw = Annotated[
    int | float | str,
    Field(union_mode="left_to_right"),
]
"""A quantity whose dimension another field names."""
RawWorkload = Annotated[
    Raw,
    WithJsonSchema(
        {
            "anyOf": [
                *quantity_schema(BYTES, COUNT, SHARE, SECONDS, BIT_RATE)["anyOf"],
                {"enum": [*PACKET_MIXES, NONE]},
                {"pattern": f"^({'|'.join(KINDS)})(:[0-9]{{1,3}}%?)?(@({'|'.join(PLACES)}))?$"},
            ]
        }
    ),
]
RawPrimary = Annotated[Raw, WithJsonSchema(quantity_schema(PER_SECOND, COUNT))]

BOUNDS: Mapping[str, tuple[float, float, str]] = {
    "duty": (LEAST_DUTY, 1.0, f"{LEAST_DUTY:.0%} to 100%"),
    "period": (SHORTEST_S, 60.0, f"{SHORTEST_S:g} s to 60 s"),
    "quality": (0.1, 50.0, "0.1Mbit/s to 50Mbit/s"),
}
"""Of workload parameters of bursts and streams: least, most, and both as a sentence has them."""


class WorkloadText(Described):
    """A workload parameter besides the primary one, and the values to profile it at."""

    name: WorkloadName
    values: Annotated[list[RawWorkload], Field(min_length=1)]

    def mistakes(self) -> Iterator[Located]:
        seen: set[float | str] = set()
        for index, given in enumerate(self.values):
            try:
                value = self.read(given)
            except ValueError as error:
                yield ("values", index), str(error)
                continue
            if self.name == COMPETITOR:
                if value in seen:
                    yield ("values", index), f"is {shown(given)}, which is given twice"
            elif isinstance(value, str):
                if len(self.values) > 1:
                    yield ("values", index), f"is {value}, a mix, which stands alone; one value"
            elif self.name in BOUNDS:
                low, high, words = BOUNDS[self.name]
                if not low <= value <= high:
                    yield ("values", index), f"is {shown(given)}, must be {words}"
                elif value in seen:
                    yield ("values", index), f"is {shown(given)}, which is given twice"
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
        """An amount, the name of a mix of packet sizes, a competitor. Raises `ValueError`."""
        if self.name == COMPETITOR:
            return read_competitor(given)
        mixes = PACKET_MIXES if self.name == "packetsize" else ()
        return str(given) if given in mixes else self.dimension.read(given)


class PrimaryText(Described):
    """The workload parameter that varies in operation, and the range to sample it in."""

    name: Literal["rate", "concurrent", "packet_rate", "streams"]
    range: Annotated[list[RawPrimary], Field(min_length=2, max_length=2)]
    scale: Scale = "log"


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
