"""What was concluded from samples: curves and breakpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.domain.parameters import Configuration

BreakpointRule = Literal["capacity", "knee", "cpu", "sla", "covariance"]
BREAKPOINT_RULES: tuple[BreakpointRule, ...] = ("capacity", "knee", "cpu", "sla", "covariance")

BreakpointState = Literal["found", "none_in_range", "below_range", "unresolved"]
"""`unresolved`: too few valid samples to say, or none at loads above where the source limits; the
other three are answers (METHOD.md 7)."""


@dataclass(frozen=True)
class Breakpoint:
    """The `wl` at which a configuration saturates by one rule, with its 95 % interval.

    `wl`, `low` and `high` are None unless `state` is `found`; `note` says what the state rests on
    (`not_cpu_limited`, "no saturation up to 16000/s, where the source limits").
    """

    target: str
    configuration: Configuration
    rule: BreakpointRule
    kpi: str
    state: BreakpointState
    wl: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """A fitted KPI over `wl` with its band: at most 200 points each, ready to draw."""

    kpi: str
    model: str
    wl: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class FittedModel:
    """A model as stored: fitted again on load, never unpickled (DESIGN.md, decision 4)."""

    method: str
    parameters: Mapping[str, float | str]
    sample_ids: tuple[str, ...]
    coefficients: tuple[float, ...]
