"""An allocation as text: `haproxy=25%, tinyproxy=50%, tinyproxy.memory=64MB`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.descriptors.units import resource_dimension, shown
from workbench.domain import resources
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Parameter, ParameterValue

_EXAMPLE = "haproxy=25%, tinyproxy=50%"
_LONGEST = 2000


def parse_allocation(text: str, parameters: Sequence[Parameter]) -> dict[str, ParameterValue]:
    """The resources of all functions, by the keys of configurations.

    Parameters
    ----------
    text : str
        `FUNCTION=VALUE, ...`: its flavor where it has flavors, else its vCPU share;
        `FUNCTION.RESOURCE=VALUE` for anything else.
    parameters : sequence of Parameter
        Resource parameters with the values that are known. What the text leaves out has its value
        where there is only one.

    Raises
    ------
    UsageError
        With a sentence that names the part that is wrong or missing.
    """
    try:
        given = _given(text, {parameter.key: parameter for parameter in parameters})
        allotted: dict[str, ParameterValue] = {}
        for parameter in parameters:
            value = given.get(parameter.key)
            if value is None:
                value = _only(parameter)
            allotted[parameter.key] = value
            vnf = parameter.key.rpartition(".")[0]
            for name, amount in parameter.flavors.get(str(value), {}).items():
                allotted[f"{vnf}.{name}"] = amount
    except ValueError as error:
        raise UsageError(str(error), where="allocate", remedy=f"Write it as {_EXAMPLE}") from None
    return allotted


def _given(text: str, known: Mapping[str, Parameter]) -> dict[str, ParameterValue]:
    if len(text) > _LONGEST:
        raise ValueError(f"is {shown(text)}, must be an allocation")
    values: dict[str, ParameterValue] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not (name and equals and value):
            raise ValueError(f"has {shown(item.strip())}, must be FUNCTION=VALUE")
        key = _key(name, known)
        if key in values:
            raise ValueError(f"gives {shown(name)} twice")
        values[key] = _value(name, value, known[key])
    return values


def _key(name: str, known: Mapping[str, Parameter]) -> str:
    vnf, dot, resource = name.rpartition(".")
    named = resources.by_name().get(resource)
    wanted = (
        (f"{vnf}.{named.key if named else resource}",)
        if dot
        else (f"{name}.flavor", f"{name}.vcpu")
    )
    found = next((key for key in wanted if key in known), None)
    if found is None:
        raise ValueError(f"names {shown(name)}; allowed: {', '.join(known)}")
    return found


def _value(name: str, text: str, parameter: Parameter) -> ParameterValue:
    resource = resources.of(parameter.key)
    if resource is None:
        if text not in parameter.values:
            allowed = ", ".join(map(str, parameter.values))
            raise ValueError(f"{name} is {shown(text)}; allowed: {allowed}")
        return text
    try:
        value = resource_dimension(resource).read(text)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    if value <= 0.0:
        raise ValueError(f"{name} is {shown(text)}, must be over 0")
    return value


def _only(parameter: Parameter) -> ParameterValue:
    if len(parameter.values) == 1:
        return parameter.values[0]
    known = ", ".join(v if isinstance(v, str) else f"{v:g}" for v in parameter.values)
    raise ValueError(f"does not say {parameter.key}, of which {known} are known")
