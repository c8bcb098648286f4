"""A policy among the targets of a campaign: the chains that it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self, TypeVar

from workbench.descriptors.composition import ChainPart
from workbench.descriptors.lookups import Lookups
from workbench.descriptors.policies import generate_chains
from workbench.descriptors.reading import Located, did_you_mean
from workbench.descriptors.units import shown
from workbench.domain.errors import DescriptorError
from workbench.domain.topology import Target


class _Parameter(Protocol):
    @property
    def vnf(self) -> str | None: ...


class _TargetText(Protocol):
    """What a target's text says of policies."""

    @property
    def policy(self) -> str | None: ...
    @property
    def free(self) -> list[str]: ...
    @property
    def title(self) -> str: ...
    @property
    def resource_parameters(self) -> Sequence[_Parameter]: ...
    @property
    def function_parameters(self) -> Sequence[_Parameter]: ...
    def model_copy(self, *, update: dict[str, Any]) -> Self: ...


_Text = TypeVar("_Text", bound=_TargetText)


def policy_mistakes(text: _TargetText, library: Lookups) -> Iterator[Located]:
    """Of a policy, and of parameters of functions that none of its chains has."""
    try:
        chains = _chains(text, library)
    except DescriptorError as error:
        for mistake in error.mistakes:
            yield ("policy",), f"{mistake.message} (column {mistake.column} of it)"
        return
    known = sorted({vnf.name for chain in chains for vnf in chain.vnfs})
    for field in ("resource_parameters", "function_parameters"):
        for index, parameter in enumerate(getattr(text, field)):
            here = (field, index, "vnf")
            if parameter.vnf is None:
                yield here, f"is missing; allowed: {', '.join(known)}"
            elif parameter.vnf not in known:
                hint = did_you_mean(parameter.vnf, known)
                yield here, f"is {shown(parameter.vnf)}, which no chain of this policy has; {hint}"


def with_chains(targets: Sequence[_Text], library: Lookups) -> list[_Text]:
    """The same targets, each policy replaced by its chains; a chain that is a target already, such
    as a function alone, is not there twice."""
    found: list[_Text] = []
    named = {target.title for target in targets if not target.policy}
    for target in targets:
        if not target.policy:
            found.append(target)
            continue
        try:
            chains = _chains(target, library)
        except DescriptorError:
            continue  # told by `policy_mistakes`
        found += [_as_text(target, chain) for chain in chains if chain.name not in named]
        named |= {chain.name for chain in chains}
    return found


def _chains(text: _TargetText, library: Lookups) -> tuple[Target, ...]:
    return generate_chains(text.policy or "", library, text.free)


def _as_text(text: _Text, chain: Target) -> _Text:
    """One chain of a policy as a target would have been written."""
    names = [vnf.name for vnf in chain.vnfs]
    parts = [ChainPart.model_construct(vnf=name) for name in names]
    return text.model_copy(
        update={
            "name": chain.name,
            "policy": None,
            "free": [],
            "series": parts if len(parts) > 1 else None,
            "vnf": None if len(parts) > 1 else names[0],
            "resource_parameters": [p for p in text.resource_parameters if p.vnf in names],
            "function_parameters": [p for p in text.function_parameters if p.vnf in names],
        }
    )
