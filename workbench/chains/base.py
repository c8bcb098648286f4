"""What a rule of composition must do, what it is given, and how a chain is walked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeVar, cast

from workbench.domain.errors import DataError
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.base import Floats

_THINK = "closed-think-"

LoadFamily = Literal["open", "closed", "packets"]
"""Requests by a plan, requests by waiting clients, packets by a plan (METHOD.md 2)."""


class Figures(Protocol):
    """What the stand-alone profiles say of each function where it stands in the chain.

    Every answer has the shape (rows, m): a row is one way in which the profiles may be right or
    wrong, all functions together, and a column an operating point of the chain. Row 0 is what they
    expect. A rule treats rows alike; it need not know what they are for.
    """

    dependence: Floats
    """Of shape (rows,), from 0 to 1, for a rule that must assume how functions hang together: 0 in
    row 0, evenly spread over the rows that are draws."""

    path_ms: float
    """The time of the path from source to sink, which every function's response time holds once;
    0 where it was not measured."""

    def loaded(self, vnf: str, kpi: str) -> Floats:
        """The KPI of a function, in its unit, at the load that reaches it."""
        ...

    def unloaded(self, vnf: str, kpi: str) -> Floats:
        """The same at the lowest load that it was profiled at: R_i(1) of METHOD.md 9."""
        ...

    def states(self, vnf: str, kpi: str) -> bool:
        """Whether the function's profile has the KPI."""
        ...


class ChainRule(Protocol):
    """Registered under `workbench.chain_rules`: a class that is made without arguments."""

    @property
    def name(self) -> str:
        """As registered."""
        ...

    def refusal(self, kpi: str, load: LoadFamily) -> str:
        """Why it does not apply, as a sentence without its full stop; empty where it applies."""
        ...

    def needs(self, kpi: str) -> tuple[str, ...]:
        """The KPIs that every function's profile must have."""
        ...

    def compose(self, graph: Node, kpi: str, figures: Figures) -> Floats:
        """The chain's KPI in its unit, of shape (rows, m). A chain of one is its function."""
        ...


T = TypeVar("T")


def fold(
    node: Node,
    leaf: Callable[[Vnf], T],
    series: Callable[[Sequence[T]], T],
    parallel: Callable[[Sequence[T], Sequence[float]], T],
) -> T:
    """What becomes of a chain's functions, from the leaves up; `parallel` gets the shares too."""
    match node:
        case Vnf():
            return leaf(node)
        case Series(parts):
            return series([fold(part, leaf, series, parallel) for part in parts])
        case Parallel(branches, shares):
            folded = [fold(branch, leaf, series, parallel) for branch in branches]
            return parallel(folded, shares)


def functions_of(node: Node) -> tuple[Vnf, ...]:
    """All functions, from the source's side, branch by branch."""
    return fold(node, lambda vnf: (vnf,), _joined, lambda branches, _: _joined(branches))


def _joined(parts: Iterable[tuple[Vnf, ...]]) -> tuple[Vnf, ...]:
    return tuple(vnf for part in parts for vnf in part)


def visits_of(node: Node, share: float = 1.0) -> dict[str, float]:
    """By instance name, the share of the chain's traffic that passes each function."""
    match node:
        case Vnf(name):
            return {name: share}
        case Series(parts):
            return {k: v for part in parts for k, v in visits_of(part, share).items()}
        case Parallel(branches, shares):
            passed = zip(branches, shares, strict=True)
            return {k: v for b, s in passed for k, v in visits_of(b, share * s).items()}


def think_ms_of(load_model: str) -> float:
    """How long clients think, by a sample's `load_model`; 0 where there are none."""
    seconds = load_model.removeprefix(_THINK)
    return 0.0 if seconds == load_model else 1e3 * float(seconds.removesuffix("s"))


def family_of(load_model: str) -> LoadFamily:
    """The family of a sample's `load_model` (`LoadModel.key`)."""
    family = load_model.partition("-")[0]
    if family not in ("open", "closed", "packets"):
        raise DataError(f"{load_model!r} is no load model", where="profile")
    return cast("LoadFamily", family)
