"""Chain policies: which chains there are of given functions (paper E, "Probius: Automated Approach
for VNF and Service Chain Analysis in Software-Defined NFV", 3.2, service chaining policy).

====================  ========================================================================
`haproxy`             the chain of this function alone
`firewall & ips`      AND: both, in any order
`snort | suricata`    OR: chains of the one, then chains of the other; what only the others name
                      is in none of them
`firewall > router`   FOLLOW: both, the second somewhere behind the first
====================  ========================================================================

The operators take policies as well as names. The paper says neither how they bind nor what they
mean for more than two names; here `>` binds tightest, then `&`, then `|`, parentheses bind first,
and

- a chain obeys `P & Q` if it is made of what both name, and what is left of it when only the names
  of one side are kept obeys that side;
- a chain obeys `P > Q` if it can be cut in two, the first part obeying P and the second Q.

Each function stands in a chain at most once. What the paper calls "freely chained" are functions
that no policy names: they may stand anywhere in a chain, or be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

from workbench.descriptors.lookups import Lookups
from workbench.descriptors.policy_text import (
    Name,
    Operator,
    Policy,
    mistake_at,
    parse_policy,
    refusal,
)
from workbench.descriptors.references import require_role
from workbench.descriptors.units import shown
from workbench.domain.errors import DescriptorError
from workbench.domain.topology import Series, Target, Vnf

CHAINS = 200
"""How many chains are generated where nothing else is said; more than that is a mistake."""
MOST_CHAINS = 1000
MOST_FUNCTIONS = 20
"""Of one policy, with those that are chained freely."""
MOST_STEPS = 20_000
"""Pairs of alternatives that are weighed against each other: under a second."""
_LONGEST_NAME = 60


def generate_chains(
    text: str, library: Lookups, free: Sequence[str] = (), limit: int = CHAINS
) -> tuple[Target, ...]:
    """Every chain that obeys a policy, each with a name of its own.

    Parameters
    ----------
    text : the policy.
    library : knows the functions that it names.
    free : functions that may stand anywhere in a chain, or not at all.
    limit : the most chains; at most `MOST_CHAINS`.

    Raises
    ------
    DescriptorError
        With each mistake at its line and column of the text.
    """
    policy = parse_policy(text)
    mistakes = [
        *(mistake_at(text, name.at, "vnf", why) for name, why in _unfit(policy, library)),
        *(mistake_at(text, 0, "free", why) for why in _unfit_free(policy, free, library)),
    ]
    if mistakes or library.mistakes:
        raise DescriptorError([*mistakes, *library.mistakes])
    return _targets(chains_of(policy, text, tuple(dict.fromkeys(free)), limit))


def chains_of(
    policy: Policy, text: str = "", free: Sequence[str] = (), limit: int = CHAINS
) -> tuple[tuple[str, ...], ...]:
    """Names from the source's side to the sink's, chain by chain: alternatives as they are written,
    orders by first mention, few free functions before many. Raises `DescriptorError`."""
    if not 1 <= limit <= MOST_CHAINS:
        raise refusal(text, 0, "limit", f"is {limit}, must be from 1 to {MOST_CHAINS}")
    order = (*policy.names, *free)
    if len(order) > MOST_FUNCTIONS:
        what = f"names {len(order)} functions, at most {MOST_FUNCTIONS} are allowed"
        raise refusal(text, 0, "policy", what)
    alternatives = _Weighing(text).alternatives(policy)
    found: dict[tuple[str, ...], None] = {}
    for chain in _orders(alternatives, order, free):
        found[chain] = None
        if len(found) > limit:
            raise refusal(
                text,
                0,
                "policy",
                f"makes more than {limit} chains; fix an order with >, choose with |, "
                "or name fewer functions",
            )
    return tuple(found)


# --------------------------------------------------------------------------- what it means


@dataclass(frozen=True)
class _Alternative:
    """Chains of the same functions: every order of them in which each pair keeps its order."""

    functions: frozenset[str]
    pairs: frozenset[tuple[str, str]]


class _Weighing:
    """From a policy to its alternatives: disjoint steps, counted, so that none explodes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps = 0
        self._impossible: DescriptorError | None = None

    def alternatives(self, policy: Policy) -> list[_Alternative]:
        """At least one. Raises `DescriptorError` where the policy contradicts itself."""
        found = self._of(policy)
        if not found:
            assert self._impossible is not None
            raise self._impossible
        return found

    def _of(self, policy: Policy) -> list[_Alternative]:
        if isinstance(policy, Name):
            return [_Alternative(frozenset({policy.vnf}), frozenset())]
        sides = [self._of(part) for part in policy.parts]
        if policy.operator == "|":
            return list(dict.fromkeys(alternative for side in sides for alternative in side))
        found, names = sides[0], frozenset(policy.parts[0].names)
        for part, side, at in zip(policy.parts[1:], sides[1:], policy.places, strict=True):
            own = frozenset(part.names)
            self._steps += len(found) * len(side)
            if self._steps > MOST_STEPS:
                what = "offers too many alternatives; write it with fewer |"
                raise refusal(self._text, at, "operator", what)
            possible = bool(found and side)
            if policy.operator == ">":
                joined = [_followed(one, other) for one, other in product(found, side)]
            else:
                joined = [_both(one, names, other, own) for one, other in product(found, side)]
            found = list(dict.fromkeys(alternative for alternative in joined if alternative))
            if possible and not found and self._impossible is None:
                what = _contradiction(policy.operator, names & own)
                self._impossible = refusal(self._text, at, "operator", what)
            names |= own
        return found


def _both(
    one: _Alternative, one_names: frozenset[str], other: _Alternative, other_names: frozenset[str]
) -> _Alternative | None:
    functions = one.functions | other.functions
    if functions & one_names != one.functions or functions & other_names != other.functions:
        return None  # a side excludes what the other one needs
    pairs = one.pairs | other.pairs
    return _Alternative(functions, pairs) if _can_be_ordered(functions, pairs) else None


def _can_be_ordered(functions: frozenset[str], pairs: frozenset[tuple[str, str]]) -> bool:
    """Whether the pairs go in no circle."""
    while functions:
        behind = {b for a, b in pairs if a in functions}
        if functions <= behind:
            return False
        functions &= behind
    return True


def _followed(one: _Alternative, other: _Alternative) -> _Alternative | None:
    if one.functions & other.functions:
        return None
    between = frozenset(product(one.functions, other.functions))
    return _Alternative(one.functions | other.functions, one.pairs | other.pairs | between)


def _contradiction(operator: Operator, shared: Iterable[str]) -> str:
    names = ", ".join(sorted(shared))
    if operator == ">":
        return f"puts {names} before and behind itself"
    return f"joins what no chain can obey together: look at {names}"


def _orders(
    alternatives: Sequence[_Alternative], order: Sequence[str], free: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    for count in range(len(free) + 1):
        for besides in combinations(free, count):
            for alternative in alternatives:
                functions = alternative.functions.union(besides)
                yield from _linear(functions, alternative.pairs, order)


def _linear(
    functions: frozenset[str], pairs: frozenset[tuple[str, str]], order: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Every sequence of the functions that keeps the pairs' order, early ones of `order` first."""
    if not functions:
        yield ()
        return
    for name in order:
        if name in functions and not any(b == name and a in functions for a, b in pairs):
            rest = functions - {name}
            for behind in _linear(rest, pairs, order):
                yield (name, *behind)


# --------------------------------------------------------------------------- to topologies


def _unfit(policy: Policy, library: Lookups) -> Iterator[tuple[Name, str]]:
    """Each mention of what can be no part of these chains, with a sentence."""
    alone = len(policy.names) == 1
    for name in _mentions(policy):
        why = _unfit_function(name.vnf, library, alone=alone)
        if why:
            yield name, why


def _mentions(policy: Policy) -> Iterator[Name]:
    if isinstance(policy, Name):
        yield policy
        return
    for part in policy.parts:
        yield from _mentions(part)


def _unfit_free(policy: Policy, free: Sequence[str], library: Lookups) -> Iterator[str]:
    for name in islice(free, MOST_FUNCTIONS + 1):
        if name in policy.names:
            yield f"is {shown(name)}, which the policy names already"
        elif why := _unfit_function(name, library, alone=False):
            yield why


def _unfit_function(name: str, library: Lookups, *, alone: bool) -> str:
    """Why a function cannot be chained; empty if it can."""
    if library.path("vnf", name) is None and library.path("chain", name) is not None:
        return f"is {shown(name)}, which is a chain; name its functions"
    try:
        require_role(library, name, "function")
    except ValueError as error:
        return str(error)
    template = library.vnf(name)
    if template and template.placement == "passive" and not alone:
        return (
            f"is {shown(name)}, a passive function: a policy orders what traffic passes through; "
            "put it into the chains by hand"
        )
    return ""


def _targets(chains: Sequence[tuple[str, ...]]) -> tuple[Target, ...]:
    targets: dict[str, Target] = {}
    for number, functions in enumerate(chains, 1):
        name = "-".join(functions)
        if len(name) > _LONGEST_NAME or name in targets:
            name = f"{name[: _LONGEST_NAME - 5].rstrip('-')}-{number}"
        parts = tuple(Vnf(function, function) for function in functions)
        targets[name] = Target(name, parts[0] if len(parts) == 1 else Series(parts))
    return tuple(targets.values())
