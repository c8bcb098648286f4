"""`job:` of a pod under `attach:`: the load is sent by a Job in the cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.descriptors.fields import Image, Quantity
from workbench.descriptors.reading import Described
from workbench.descriptors.units import BYTES, CORES
from workbench.domain.attaching import LoadJob

READ_WHOLE = ("hey",)
"""Generators that print a record of every request, so that a log holds all that they saw."""
NAMESPACE = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
LEAST_CORES, MOST_CORES = 0.01, 64
LEAST_BYTES, MOST_BYTES = 16 << 20, 1 << 40


class LoadJobText(Described):
    """One Job, with one pod, for each stretch of load. It is deleted when that has ended."""

    image: Image = Field(description="Your own: it holds the generator and curl 7.84 or later")
    namespace: Annotated[str, Field(pattern=NAMESPACE)] = Field(
        description="Where Jobs may be created"
    )
    node_selector: dict[
        Annotated[str, Field(pattern=LABEL_KEY)], Annotated[str, Field(pattern=LABEL_VALUE)]
    ] = Field(default_factory=dict, description="Labels of the nodes that it may run on")
    cpu: Annotated[float, Quantity(CORES, least=LEAST_CORES, most=MOST_CORES)] = Field(
        1.0, description="Requested for the generator"
    )
    memory: Annotated[float, Quantity(BYTES, least=LEAST_BYTES, most=MOST_BYTES)] = Field(
        float(256 << 20), description="Requested for the generator"
    )

    def resolved(self) -> LoadJob:
        return LoadJob(
            self.image,
            self.namespace,
            tuple(sorted(self.node_selector.items())),
            self.cpu,
            round(self.memory),
        )
