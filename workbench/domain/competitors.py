"""Resource stimulus: who takes what from the functions while load is driven (paper C, SLOMO).

A competitor is a value of the workload parameter `competitor`: `none`, or what it takes, how much
of it in per cent, and on whose cores: `cpu`, `cpu:50`, `cache:100@neighbours`, `memory@others`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from workbench.domain.parameters import Configuration

COMPETITOR = "competitor"
"""Key of the workload parameter, and name of the component that it is in samples."""
NONE = "none"
STRESSOR = "stressor"
"""Template of what competes on labs that run programs."""
CompetitorKind = Literal["cpu", "cache", "memory", "disk"]
CompetitorPlace = Literal["function", "neighbours", "others"]
"""Cores of the functions, of source and sink, or those that neither has."""
KINDS: tuple[CompetitorKind, ...] = get_args(CompetitorKind)
PLACES: tuple[CompetitorPlace, ...] = get_args(CompetitorPlace)
FULL = 100
_FORM = re.compile(r"([a-z]+)(?::([0-9]{1,3})%?)?(?:@([a-z]+))?")


@dataclass(frozen=True)
class Competitor:
    """What competes, at which intensity, where."""

    kind: CompetitorKind
    intensity: int = FULL
    """Per cent of every core of its place, 1 to 100."""
    place: CompetitorPlace = "function"

    @property
    def text(self) -> str:
        """As it stands in configurations: what is usual is left out, so that a key does not
        depend on how it was written."""
        much = "" if self.intensity == FULL else f":{self.intensity}"
        where = "" if self.place == "function" else f"@{self.place}"
        return f"{self.kind}{much}{where}"

    @classmethod
    def parse(cls, text: str) -> Competitor | None:
        """None for `none`. Raises `ValueError` with a sentence that begins with *is*."""
        if text == NONE:
            return None
        match = _FORM.fullmatch(text)
        if match is None or match[1] not in KINDS:
            raise ValueError(
                f"is {text[:60]!r}, must be {NONE} or one of {', '.join(KINDS)}, such as "
                "cpu:50@function"
            )
        intensity = int(match[2] or FULL)
        if not 1 <= intensity <= FULL:
            raise ValueError(f"is {text!r}, whose intensity must be 1 to {FULL} per cent")
        place = match[3] or "function"
        if place not in PLACES:
            raise ValueError(f"is {text!r}, whose place must be one of: {', '.join(PLACES)}")
        return cls(cast(CompetitorKind, match[1]), intensity, cast(CompetitorPlace, place))


def competitor_of(configuration: Configuration) -> Competitor | None:
    """Who competes at a configuration; None where nobody does."""
    text = configuration.workload.get(COMPETITOR, NONE)
    return Competitor.parse(str(text))


def without_competitor(configuration: Configuration) -> Configuration:
    """The same with nobody who competes: what such samples are held against."""
    if COMPETITOR not in configuration.workload:
        return configuration
    return Configuration(configuration.resources, {**configuration.workload, COMPETITOR: NONE})
