"""What each function of the chain gets by an allocation, in units that deployments know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.domain import resources
from workbench.domain.parameters import ParameterValue
from workbench.domain.recommendations import Deployment
from workbench.domain.resources import Resource
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.naming import dns_labels, one_line


@dataclass(frozen=True)
class FunctionAllocation:
    """What one function of the chain gets.

    Attributes
    ----------
    function : its name in the chain.
    label : the same as an RFC 1123 label, unlike every other function's.
    replicas : instances; each gets all of `resources`.
    resources : by the last part of their key: `vcpu`, `memory_bytes`, `flavor`, ...
    """

    function: str
    label: str
    replicas: int
    resources: Mapping[str, ParameterValue]

    def amount(self, resource: str) -> float | None:
        """A resource as a number; None where it is not allocated, or is a name."""
        value = self.resources.get(resource)
        return None if value is None or isinstance(value, str) else float(value)

    @property
    def millicores(self) -> int | None:
        """Rounded up: less than was asked for might miss the SLA, and 0 is no limit at all."""
        return _whole(self.amount("vcpu"), 1000)

    @property
    def memory_bytes(self) -> int | None:
        return _whole(self.amount("memory_bytes"), 1)

    @property
    def egress_bps(self) -> int | None:
        """What each of its interfaces may send."""
        return _whole(self.amount("bandwidth_mbps"), 1_000_000)

    @property
    def in_words(self) -> str:
        """`2 × 0.25 vCPU, 64 MiB (small)`."""
        known = resources.known()
        amounts = [(one, self.amount(key)) for key, one in known.items()]
        parts = [
            *((one.deployed or one.shown)(amount) for one, amount in amounts if amount is not None),
            *(
                f"{name} {_plain(v)}"
                for name, v in self.resources.items()
                if name not in known and name != resources.FLAVOR
            ),
        ]
        flavor = self.resources.get(resources.FLAVOR)
        words = ", ".join(parts) + (f" ({_plain(flavor)})" if flavor is not None else "")
        return one_line(f"{self.replicas} × {words}" if self.replicas > 1 else words)

    @property
    def as_text(self) -> str:
        """Every resource, those that a format has no word for too: `memory_bytes=..., vcpu=...`."""
        return one_line(", ".join(f"{k}={_plain(v)}" for k, v in sorted(self.resources.items())))


def functions_of(deployment: Deployment, context: Context) -> tuple[FunctionAllocation, ...]:
    """What every function gets, from the source's side."""
    allotted = deployment.functions
    found = dict.fromkeys((*allotted, *deployment.replicas))
    ordered = [f for f in context.templates if f in found]
    ordered += [f for f in found if f not in context.templates]
    labels = dns_labels(ordered)
    return tuple(
        FunctionAllocation(
            function=f,
            label=labels[f],
            replicas=max(1, deployment.instances(f)),
            resources={k.rpartition(".")[2]: v for k, v in allotted.get(f, {}).items()},
        )
        for f in ordered
    )


def _whole(amount: float | None, per_unit: int) -> int | None:
    # Rounded to a millionth first: 0.1 + 0.2 cores are 300 millicores, not 301.
    return None if amount is None else max(1, math.ceil(round(amount * per_unit, 6)))


def _plain(value: ParameterValue) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def without_words(
    form: str, functions: Sequence[FunctionAllocation], *worded: Resource
) -> list[str]:
    """A sentence for each resource that a format has no word for, and that some function is given.

    Parameters
    ----------
    form : the format's name.
    worded : what it has words for.
    """
    return [
        f"{form} has no word for a limit of {resource.name}: see to it for {', '.join(given)}."
        for key, resource in resources.known().items()
        if resource not in worded
        and (given := [f.label for f in functions if f.amount(key) is not None])
    ]
