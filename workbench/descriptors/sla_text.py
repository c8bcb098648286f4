"""An SLA as text: `p95<=200ms @ rate=300/s, filesize=10kB` (DESIGN.md, decision 11)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from workbench.descriptors.units import (
    COUNT,
    PRIMARIES,
    WORKLOADS,
    kpi_dimension,
    read_competitor,
    shown,
    workload_key,
)
from workbench.domain import kpis
from workbench.domain.competitors import COMPETITOR
from workbench.domain.errors import UsageError
from workbench.domain.parameters import PACKET_MIXES, Direction, ParameterValue, Sla

_LIMIT = re.compile(r"\s*([A-Za-z]\w*)\s*(<=|>=|<|>|==|=|≤|≥)\s*(\S.*?)\s*")
_DIRECTIONS: Mapping[str, Direction] = {"<=": "<=", "≤": "<=", ">=": ">=", "≥": ">="}
_SETTING = re.compile(r"[a-z0-9][a-z0-9-]*\.[A-Za-z_]\w*")
"""`firewall.rules`: a function's setting."""
_LONGEST = 300
_T = TypeVar("_T")
_POINT = "rate=300/s, filesize=10kB"
_EXAMPLE = f"p95<=200ms @ {_POINT}"


def kpi_name(given: str) -> str:
    """The KPI's own name, unit included. Raises `ValueError` with a sentence."""
    kpi = kpis.find(given)
    if kpi is None:
        allowed = ", ".join(alias for one in kpis.known().values() for alias in one.aliases)
        raise ValueError(f"is {shown(given)}, which is no KPI; allowed: {allowed}")
    return kpi.name


def parse_sla(text: str, primary_name: str) -> Sla:
    """An SLA from its text.

    Parameters
    ----------
    text : str
        `KPI<=LIMIT @ NAME=VALUE, ...`: the limit in a unit of the KPI, the values in units of
        their parameters. What stands behind the `@` may be left out.
    primary_name : str
        Which parameter is `wl`: `rate`, `concurrent` or `packet_rate`.

    Returns
    -------
    Sla
        `limit` in the KPI's unit; `workload` by the keys of configurations (`filesize_bytes`).

    Raises
    ------
    UsageError
        With a sentence that begins with *is* or names the part that is wrong.
    """
    try:
        return _parsed(text, primary_name)
    except ValueError as error:
        raise UsageError(str(error), remedy=f"Write it as {_EXAMPLE}") from None


def parse_point(text: str, primary_name: str) -> tuple[float | None, dict[str, ParameterValue]]:
    """What stands behind the `@` alone: the load, None where it is not said, and the workload.

    Raises
    ------
    UsageError
        With a sentence that names the part that is wrong.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"is {shown(text)}, must be an operating point such as {_POINT}")
        return _workload(text, primary_name, "")
    except ValueError as error:
        raise UsageError(str(error), where="at", remedy=f"Write it as {_POINT}") from None


def _parsed(text: str, primary_name: str) -> Sla:
    limit_text, _, at_text = text.partition("@")
    match = _LIMIT.fullmatch(limit_text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(f"is {shown(text)}, must be an SLA such as {_EXAMPLE}")
    kpi = _part("the KPI", kpi_name, match[1])
    direction = _direction(kpi, match[2])
    dimension = kpi_dimension(kpi)
    limit = _part("the limit", dimension.read, match[3])
    if limit < 0 or (limit == 0 and dimension.unit == "ms"):
        raise ValueError(f"the limit is {shown(match[3])}, must be over 0")
    if dimension.unit == "%" and limit > 100:
        raise ValueError(f"the limit is {shown(match[3])}, must be at most 100%")
    behind = " behind the @"
    wl, workload = _workload(at_text, primary_name, behind) if "@" in text else (None, {})
    return Sla(kpi, limit, direction, wl, workload, text)


def _direction(kpi: str, operator: str) -> Direction:
    wanted: Direction = ">=" if kpis.of(kpi).more_is_better else "<="
    if operator not in _DIRECTIONS:
        raise ValueError(f"compares with {shown(operator)}, must be {wanted} for {kpi}")
    if _DIRECTIONS[operator] != wanted:
        raise ValueError(f"compares {kpi} with {operator}, but its limit is {wanted}")
    return wanted


def _workload(
    text: str, primary_name: str, place: str
) -> tuple[float | None, dict[str, ParameterValue]]:
    wl: float | None = None
    workload: dict[str, ParameterValue] = {}
    seen: set[str] = set()
    for item in text.split(","):
        name, equals, value_text = (part.strip() for part in item.partition("="))
        if not (name and equals and value_text):
            example = f", such as {primary_name or 'rate'}=300"
            raise ValueError(f"has {shown(item.strip())}{place}, must be NAME=VALUE{example}")
        if name in seen:
            raise ValueError(f"gives {shown(name)} twice")
        seen.add(name)
        if name == primary_name:
            wl = _part(name, PRIMARIES[name].read, value_text)
            if wl <= 0:
                raise ValueError(f"{name} is {shown(value_text)}, must be over 0")
        elif name == COMPETITOR:
            workload[name] = _part(name, read_competitor, value_text)
        elif name in WORKLOADS:
            mix = name == "packetsize" and value_text in PACKET_MIXES
            read = WORKLOADS[name].read
            workload[workload_key(name)] = value_text if mix else _part(name, read, value_text)
        elif _SETTING.fullmatch(name):
            workload[name] = _setting(value_text)
        else:
            allowed = ", ".join((primary_name, *WORKLOADS, "FUNCTION.PARAMETER"))
            raise ValueError(f"names {shown(name)}{place}; allowed: {allowed}")
    return wl, workload


def _setting(text: str) -> ParameterValue:
    """Of a function's setting: its descriptor says whether a number or a name is meant."""
    try:
        return COUNT.read(text)
    except ValueError:
        return text


def _part(what: str, read: Callable[[str], _T], text: str) -> _T:
    """Name the part of the SLA that a sentence is about."""
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f"{what} {error}") from None
