"""The kinds of values that descriptors are made of, as annotated types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from workbench.descriptors.units import (
    NUMBER,
    SECONDS,
    SHARE,
    Dimension,
    resource_dimension,
    shown,
)
from workbench.domain import resources
from workbench.domain.competitors import COMPETITOR

REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
"""`${NAME}`: read from the environment when it is used, never stored."""
_SECRET = re.compile(r"(PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|API_?KEY|PRIVATE_?KEY)$", re.I)
_VNF_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CPUSET = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*")
_IMAGE = re.compile(r"[a-z0-9]+([._:/@-]+[A-Za-z0-9]+)*")
RESERVED_INSTANCES = ("source", "sink", "host", "workbench", COMPETITOR)
"""Names that samples use for what is not a function."""


@dataclass(frozen=True)
class Quantity:
    """Annotation of a float that is written with a unit and kept in the dimension's own."""

    dimension: Dimension
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None

    def read(self, given: Any) -> float:
        value = self.dimension.read(given)
        unit = f" {self.dimension.unit}" if self.dimension.unit else ""
        if self.above is not None and value <= self.above:
            raise ValueError(f"is {shown(given)}, must be over {self.above:g}{unit}")
        if self.least is not None and value < self.least:
            raise ValueError(f"is {shown(given)}, must be at least {self.least:g}{unit}")
        if self.below is not None and value >= self.below:
            raise ValueError(f"is {shown(given)}, must be under {self.below:g}{unit}")
        if self.most is not None and value > self.most:
            raise ValueError(f"is {shown(given)}, must be at most {self.most:g}{unit}")
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return quantity_schema(self.dimension)


def quantity_schema(*dimensions: Dimension) -> dict[str, Any]:
    """JSON Schema of a quantity in one of the dimensions; bounds are left to `workbench lint`."""
    units = "|".join(re.escape(unit) for d in dimensions for unit in d.factors if unit)
    options: list[dict[str, Any]] = []
    if any("" in d.factors for d in dimensions):
        options.append({"type": "number"})
    if units:
        options.append({"type": "string", "pattern": rf"^\s*{NUMBER}\s*({units})\s*$"})
    return {
        "anyOf": options,
        "description": "; or ".join(f"{d.name} such as {d.example}" for d in dimensions),
    }


def _matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"is {shown(text)}, must be {what}")
        return text

    return AfterValidator(check)


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_vnf_name(text: str) -> bool:
    return _VNF_NAME.fullmatch(text) is not None


NAME_RULE = "ASCII letters, digits, '-', '_' and '.', at most 60, beginning with a letter or digit"
VNF_NAME_RULE = "small ASCII letters, digits and '-', at most 40 (it becomes a host name)"


def _instance(text: str) -> str:
    if text in RESERVED_INSTANCES:
        raise ValueError(f"is {shown(text)}, which is reserved; call the function otherwise")
    return text


def _whole_number_as_text(value: Any) -> Any:
    """`port: 80` in an environment means "80"; what has several spellings must be quoted."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _reference(text: str) -> str:
    if REFERENCE.sub("", text).count("${"):
        raise ValueError(f"is {shown(text)}, must refer to the environment as ${{NAME}}")
    return text


def _url(text: str) -> str:
    _reference(text)
    if REFERENCE.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        secret = parts.password
    except ValueError:
        raise ValueError(f"is {shown(text)}, must be a URL") from None
    if secret is not None:
        raise ValueError("holds a password; secrets are never stored, write ${NAME} for the URL")
    if parts.scheme not in URL_SCHEMES or not (parts.netloc or parts.path.strip("/")):
        raise ValueError(
            f"is {shown(text)}, must be a URL; allowed: "
            f"{', '.join(f'{scheme}://' for scheme in URL_SCHEMES)} or ${{NAME}}"
        )
    return text


def _cpus(text: str) -> str:
    if not _CPUSET.fullmatch(text):
        raise ValueError(f"is {shown(text)}, must be a list of cores such as '0' or '0-1,3'")
    for part in text.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise ValueError(f"is {shown(text)}, but {part} runs backwards")
    return text


def _container_path(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/") or text.endswith("/"):
        raise ValueError(f"is {shown(text)}, must be an absolute path of a file in the container")
    return text


def secret_mistake(key: str, value: str) -> str | None:
    """What is wrong with a value that, by its key, is a secret; None if nothing is."""
    if _SECRET.search(key) and value and not REFERENCE.fullmatch(value):
        return "holds a secret as text; secrets are never stored, write ${NAME} instead"
    return None


URL_SCHEMES = ("unix", "tcp", "http", "https", "ssh")

RESOURCES: Mapping[str, Quantity] = {
    name: Quantity(resource_dimension(resource), above=0, most=resource.most)
    for name, resource in resources.by_name().items()
}
"""What a function can be allotted, by the name that descriptors use."""

NonEmptyText = Annotated[str, Field(min_length=1)]
Summary = Annotated[str, Field(max_length=200)]
Vcpu = Annotated[float, RESOURCES["vcpu"]]
Duration = Annotated[float, Quantity(SECONDS, least=0, most=30 * 86400)]
PositiveDuration = Annotated[float, Quantity(SECONDS, above=0, most=30 * 86400)]
ShareOfOne = Annotated[float, Quantity(SHARE, above=0, most=1)]
ShareOrNone = Annotated[float, Quantity(SHARE, least=0, below=1)]
OpenShare = Annotated[float, Quantity(SHARE, above=0, below=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Argv = Annotated[list[NonEmptyText], Field(min_length=1)]
TextOrWholeNumber = Annotated[
    str,
    BeforeValidator(_whole_number_as_text),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
]
EnvironmentValue = Annotated[TextOrWholeNumber, AfterValidator(_reference)]
VariableName = Annotated[str, _matching(_VARIABLE, "the name of a variable")]
TargetName = Annotated[str, _matching(_NAME, NAME_RULE)]
InstanceName = Annotated[str, _matching(_VNF_NAME, VNF_NAME_RULE), AfterValidator(_instance)]
Url = Annotated[str, AfterValidator(_url)]
CpuSet = Annotated[str, AfterValidator(_cpus)]
ContainerPath = Annotated[str, AfterValidator(_container_path)]
Image = Annotated[str, _matching(_IMAGE, "an image such as nginx:1.27")]
