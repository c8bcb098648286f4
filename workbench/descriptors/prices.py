"""`prices/NAME.yaml`: what resources cost an hour, for recommendations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from workbench.descriptors.fields import Summary, TargetName
from workbench.descriptors.library import library_with
from workbench.descriptors.reading import (
    Described,
    Descriptor,
    DescriptorReading,
    Located,
    with_fields,
)
from workbench.descriptors.units import shown
from workbench.domain import resources
from workbench.domain.errors import DescriptorError
from workbench.domain.recommendations import PriceTable
from workbench.paths import Workspace

_CURRENCY = re.compile(r"[A-Z]{3}")
_SUFFIXES = (".yaml", ".yml")


def _currency(text: str) -> str:
    if not _CURRENCY.fullmatch(text):
        raise ValueError(f"is {shown(text)}, must be three capitals such as EUR (ISO 4217)")
    return text


Price = Annotated[float, Field(ge=0, le=1e9)]


@with_fields(
    {
        one.price: (Price | None, Field(default=None, description=f"One {one.priced_unit}"))
        for one in resources.known().values()
    }
)
class PerHourText(Described):
    """An hour of one unit of each resource; what is left out is free."""


class PricesText(Descriptor):
    """What resources cost an hour: flavors, or the units that they are made of."""

    kind: Literal["prices"] = "prices"
    summary: Summary = ""
    currency: Annotated[str, AfterValidator(_currency)]
    flavors: dict[TargetName, Price] = Field(
        default_factory=dict,
        description="An hour of an instance of each flavor; others cost the sum of their parts",
    )
    per_hour: PerHourText = PerHourText()
    instance: Price = Field(
        default=0.0, description="An hour of any instance, besides its resources"
    )

    @classmethod
    def checks(cls, reading: DescriptorReading) -> Iterator[Located]:
        root = reading.document.root
        if not root.get("flavors") and not root.get("per_hour"):
            yield (), "prices nothing; give flavors, or per_hour with vcpu"

    def resolved(self, name: str) -> PriceTable:
        return PriceTable(
            name,
            self.currency,
            {str(flavor): price for flavor, price in self.flavors.items()},
            self.per_hour.model_dump(exclude_none=True),
            self.instance,
        )


def load_prices(name_or_path: str, *, workspace: Workspace) -> PriceTable:
    """The price table of that name in the workspace, else among the shipped ones; or of that path.

    Raises
    ------
    DescriptorError
        With all mistakes of the file.
    UsageError
        If there is no price table of that name; it names those that there are.
    """
    library, path = library_with("prices", "price table", name_or_path, workspace)
    text = library.read(path, PricesText)
    if text is None:
        raise DescriptorError(library.mistakes)
    return text.resolved(path.stem)
