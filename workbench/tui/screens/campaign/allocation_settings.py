"""What the functions of a draft's targets are allotted: the grid of vCPU, memory and flavors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from workbench.domain.drafts import Palette
from workbench.domain.resources import VCPU, by_name
from workbench.domain.topology import Target
from workbench.tui.screens.campaign.settings import (
    Document,
    Setting,
    entries,
    place,
    put,
    scalars,
    shown,
)

EVERY = -1
"""Stands for all targets at once, in place of the number of one."""
_DEPTH = 20
MEANT_AS_PERCENT = 5
"""From here on a vCPU value without a unit was perhaps meant as a percentage."""


def functions(target: Any, palette: Palette | None) -> list[str]:
    """Names of the functions of a target, from the source's side; of a named chain as far as the
    palette knows it."""
    found: list[str] = []
    _collect(target, palette, found, _DEPTH)
    return list(dict.fromkeys(found))


def _collect(part: Any, palette: Palette | None, found: list[str], depth: int) -> None:
    if isinstance(part, str):
        found.append(part)
    if not isinstance(part, dict) or depth == 0:
        return
    if isinstance(vnf := part.get("vnf"), str):
        # A target's own name is not that of its only function.
        own = part.get("name") if depth < _DEPTH else None
        found.append(own if isinstance(own, str) else vnf)
    elif isinstance(name := part.get("chain"), str):
        chain = palette.chain(name) if palette else None
        found += [vnf.name for vnf in Target(name, chain.graph).vnfs] if chain else []
    else:
        for below in (*entries(part, "series"), *entries(part, "parallel")):
            _collect(below, palette, found, depth - 1)


def allocation(document: Document, palette: Palette | None, chosen: int) -> tuple[Setting, ...]:
    """A line for each resource of each function of a target, or of `EVERY` target: vCPU shares (or
    flavors), memory and bandwidth."""
    numbers = range(len(entries(document, "targets"))) if chosen == EVERY else [chosen]
    users: dict[str, list[int]] = {}
    for number in numbers:
        for name in functions(place(document, "targets", number), palette):
            users.setdefault(name, []).append(number)
    return tuple(
        _setting(document, palette, name, resource, own)
        for name, own in users.items()
        for resource in by_name()
    )


def most_lines(document: Document, palette: Palette | None) -> int:
    """How many lines `allocation` has at most, whichever target is chosen."""
    found = (functions(target, palette) for target in entries(document, "targets"))
    return len(by_name()) * len({name for names in found for name in names})


def combination(chosen: int) -> Setting:
    """How the values of a target's functions meet."""

    def read(document: Document) -> str:
        return shown(place(document, "targets", chosen, "combine")) or "every"

    def write(document: Document, text: str) -> None:
        target = place(document, "targets", chosen)
        if isinstance(target, dict):
            put(target, text, "combine")

    return Setting(
        "combine", "combine", (f"targets[{chosen}].combine",), read, write,
        options=("every", "places"), here=chosen != EVERY, rare=True,
    )  # fmt: skip


def _setting(
    document: Document,
    palette: Palette | None,
    function: str,
    resource: str,
    own: Sequence[int],
) -> Setting:
    """Of a function that the targets of these numbers have."""

    def read(document: Document) -> str:
        texts = {_values(document, n, function, resource, palette) for n in own}
        return texts.pop() if len(texts) == 1 else ""

    def write(document: Document, text: str) -> None:
        for number in own:
            _allot(document, number, function, resource, text, palette)

    texts = dict.fromkeys(_values(document, n, function, resource, palette) for n in own)
    differs = f"differs: {' | '.join(text or 'none' for text in texts)}"
    fields = tuple(
        f"targets[{number}].resource_parameters[{index}]"
        for number in own
        for index, parameter in enumerate(_parameters(document, number))
        if _is_about(parameter, number, document, function, resource, palette)
    )
    flavored, known = bool(place(document, "flavors")), by_name()[resource]
    vnf = palette.vnf(function) if palette and known is VCPU else None
    unset = f"{known.unset} {known.shown(vnf.default_vcpu)}" if vnf else known.unset
    return Setting(
        f"{resource} of {function}",
        function if resource == "vcpu" else f"  {resource}",
        fields,
        read,
        write,
        differs if len(texts) > 1 else f"{unset}; e.g. {known.examples}",
        rare=resource != "vcpu" and not any(texts),
        unit="vCPU" if resource == "vcpu" and len(texts) == 1 and not flavored else "",
        note=_as_read(read(document)) if resource == "vcpu" else "",
    )


def _as_read(text: str) -> str:
    """What vCPU values without a unit mean, where somebody may have meant percents."""
    bare = [v for v in scalars(text) if isinstance(v, int | float) and v >= MEANT_AS_PERCENT]
    if not bare:
        return ""
    values = " and ".join(f"{value:g}" for value in bare)
    return f"read as {values} whole cores; {bare[0]:g}% is {bare[0] / 100:g} of one"


def _parameters(document: Document, number: int) -> list[Any]:
    return entries(document, "targets", number, "resource_parameters")


def _is_about(
    parameter: Any,
    number: int,
    document: Document,
    function: str,
    resource: str,
    palette: Palette | None,
) -> bool:
    """Whether it allots this resource to this function; flavors stand in the line of vCPU."""
    if not isinstance(parameter, dict):
        return False
    vnf = parameter.get("vnf")
    if vnf is None and len(functions(place(document, "targets", number), palette)) == 1:
        vnf = function
    names = ("vcpu", "flavor") if resource == "vcpu" else (resource,)
    return vnf == function and parameter.get("name") in names


def _find(
    document: Document, number: int, function: str, resource: str, palette: Palette | None
) -> Document | None:
    about = partial(
        _is_about,
        number=number,
        document=document,
        function=function,
        resource=resource,
        palette=palette,
    )
    return next(filter(about, _parameters(document, number)), None)


def _values(
    document: Document, number: int, function: str, resource: str, palette: Palette | None
) -> str:
    found = _find(document, number, function, resource, palette)
    return shown(found.get("values")) if found else ""


def _allot(
    document: Document,
    number: int,
    function: str,
    resource: str,
    text: str,
    palette: Palette | None,
) -> None:
    """Write one line's values; names instead of amounts are flavors, no values no parameter."""
    target = place(document, "targets", number)
    if not isinstance(target, dict):
        return
    values = scalars(text)
    found = _find(document, number, function, resource, palette)
    given = _parameters(document, number)
    if not values:
        rest = [parameter for parameter in given if parameter is not found]
        target["resource_parameters"] = rest
        if not rest:
            del target["resource_parameters"]
        return
    name = resource
    if resource == "vcpu" and all(_is_flavor(value, document) for value in values):
        name = "flavor"
    if found is None:
        found = {"vnf": function}
        target["resource_parameters"] = [*given, found]
    found["name"], found["values"] = name, values


def _is_flavor(value: Any, document: Document) -> bool:
    """Whether a value names a flavor, or could: amounts begin with a digit."""
    known = place(document, "flavors")
    if isinstance(known, dict) and value in known:
        return True
    return isinstance(value, str) and value[:1].isalpha()
