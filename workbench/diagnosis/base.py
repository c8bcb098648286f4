"""What a rule gets and what it gives: the contract of `workbench.diagnosis`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.diagnosis.readings import Reading
from workbench.domain.parameters import Configuration

ALIKE = 0.05
"""Difference in log rate up to which samples count as repetitions of one load."""


@dataclass(frozen=True)
class Case:
    """One sample to be explained, and what it is held against.

    Attributes
    ----------
    order : the functions that traffic passes through, from the source's side.
    alone : by function, its stand-alone samples at about the same carried rate, the same allocation
        where there are any; a function without such samples is left out.
    siblings : other samples of the same target at about the same load, by configuration.
    passive : functions that get a copy of the traffic.
    reallocated : functions whose stand-alone samples are at another allocation than theirs here.
    """

    seen: Reading
    order: Sequence[str]
    alone: Mapping[str, Sequence[Reading]] = field(default_factory=dict)
    siblings: Sequence[tuple[Configuration, Reading]] = ()
    passive: Sequence[str] = ()
    reallocated: Sequence[str] = ()

    def before(self, component: str) -> str:
        """Who sends to it: the function in front of it, else the source; to the source, who answers
        it."""
        if component == "source":
            return self.order[0] if self.order else "sink"
        path = ["source", *self.order, "sink"]
        place = path.index(component) if component in path else 0
        return path[max(0, place - 1)]

    def alone_mean(self, component: str, name: str) -> float | None:
        """An observation per request of the function on its own, over its samples."""
        known = [one.per_request(component, name) for one in self.alone.get(component, ())]
        values = [value for value in known if value is not None]
        return sum(values) / len(values) if values else None

    @property
    def alone_s(self) -> float | None:
        """Mean response times of all functions on their own, added; None where one is lacking.

        Of samples at the allocation of this one that were not overloaded. Where some carried more,
        the sum is the most that it can be here: if that is more than the chain itself takes, it
        says nothing of the chain, and is None too.
        """
        total, carried_more = 0.0, False
        for function in self.order:
            of = [
                one
                for one in self.alone.get(function, ())
                if one.mean_s is not None and "overloaded" not in one.sample.labels
            ]
            if not of or function in self.reallocated:
                return None
            total += sum(one.mean_s or 0.0 for one in of) / len(of)
            carried_more |= max(one.rate for one in of) > self.seen.rate * (1 + ALIKE)
        if carried_more and total > (self.seen.mean_s or math.inf):
            return None
        return total or None


@dataclass(frozen=True)
class Match:
    """What a rule found: where, how much of it (0-1), the sentence, the evidence."""

    component: str
    strength: float
    sentence: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """One cause. Registered under `workbench.diagnosis`, by the name of its cause.

    Attributes
    ----------
    cause : as it is listed: `delayed acknowledgement`.
    needs : names of observations without which it cannot judge.
    threshold : from where on it speaks, and where that is from.
    remedy, rival, tells_apart : see `domain.diagnoses.Verdict`.
    find : a `Match`, or None where the evidence does not speak for it. It must not change what it
        gets; whatever it raises is told, and the other rules go on.
    implied : it follows from others and is told after them.
    """

    cause: str
    needs: tuple[str, ...]
    threshold: str
    remedy: str
    rival: str
    tells_apart: str
    find: Callable[[Case], Match | None]
    implied: bool = False
