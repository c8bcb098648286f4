"""Ask and tell: what to measure next, and when to stop. No I/O, no clock, no lab.

A sampler sees one target with all its configurations, so that it may pool what it learns across
them. It is rebuilt from the stored samples at any time (resume, a lost worker): the same tells,
in the same order, give the same asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration, LoadModel, PrimaryWorkload, Sla
from workbench.domain.samples import Sample
from workbench.domain.sessions import ConfigurationOutcome
from workbench.models.base import ProfileModel


@dataclass(frozen=True)
class Costs:
    """What asking costs in lab seconds, for samplers that weigh it.

    A campaign has those of its own lab; the defaults serve where no lab is known.
    """

    change_s: float = 1.0
    """Another configuration is set: resources changed, functions started anew where they must."""
    deploy_s: float = 3.0
    """A new block: the target is deployed anew."""
    sample_s: float = 5.0
    """Warm-up and windows of one sample."""


@dataclass(frozen=True)
class Space:
    """What a sampler may ask about."""

    target: str
    configurations: tuple[Configuration, ...]
    primary: PrimaryWorkload
    load: LoadModel
    kpi: str
    kpi_max: float
    loss_goal: float
    sla: Sla | None
    seed: int
    costs: Costs = Costs()
    loads: Mapping[Configuration, tuple[float, ...]] = field(default_factory=dict)
    """Of a recorded data set: the loads that there are, rising; empty where any can be measured.
    A sampler that asks for another load is set aside (`sampling.guard`); the science benchmark
    tells it a sample of the nearest one."""


@dataclass(frozen=True)
class Ask:
    """The next operating point; it bisects `low`-`high` (equal at the ends of the range)."""

    configuration: Configuration
    wl: float
    repetition: int
    low: float
    high: float
    why: str
    block: int = 0
    """Samples of one block share a deployment; with a new block the target is deployed anew, so
    that repetitions do not share one start's luck (METHOD.md 1). Blocks never decrease."""


def planned_blocks(sampler: Any, plan: SamplingPlan) -> int:
    """Deployments of each target: as many as this class of samplers says, else one for each
    repetition."""
    said = getattr(sampler, "blocks", None)
    return int(said(plan)) if said is not None else max(1, plan.repetitions)


@dataclass(frozen=True)
class Ending:
    """How the sampling of a configuration ended, and why, as a sentence."""

    outcome: ConfigurationOutcome
    note: str


class Sampler(Protocol):
    """Registered under `workbench.samplers`; never asks outside the space nor twice for a point.

    `model_factory` makes the model that the plan names, unfitted; a sampler may ignore it. A
    class may offer a static `blocks(plan) -> int`: how many deployments of a target a plan should
    count on; else it is one for each repetition. Where what it measures teaches models too little,
    `teaches_little` says so in a sentence, which a campaign with an SLA is warned by.
    """

    def __init__(
        self, space: Space, plan: SamplingPlan, *, model_factory: Callable[[], ProfileModel]
    ) -> None: ...

    def tell(self, samples: Sequence[Sample]) -> None:
        """New samples, valid or not, in the order they were taken."""
        ...

    def skip(self, configuration: Configuration) -> None:
        """The user wants no more of it."""
        ...

    def ask(self) -> Ask | None:
        """The next point; None when every configuration has ended. Asking again changes nothing."""
        ...

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations that need no more samples."""
        ...
