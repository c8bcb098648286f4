"""One descriptor on its way through validation: pydantic's errors and our own become mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from workbench.descriptors.document import Document, FieldPath, Section
from workbench.descriptors.lookups import Lookups
from workbench.descriptors.units import shown
from workbench.domain.counts import counted
from workbench.domain.naming import nearest

Located = tuple[FieldPath, str]
"""A mistake relative to the mapping that it was found in."""

PAPER_KEYS: Mapping[str, str] = {
    "function": "a parameter's name says how it is set",
    "cmd": "write command, a list of the program and its arguments",
    "name": "what a file describes is named by the file",
    "<<": "merge keys are not read; write the values out",
}
"""What to do about keys that paper B, or habit, suggests."""


@dataclass
class DescriptorReading:
    """A document, the library that its names are looked up in, and the fields found right so far.

    `valid` lets checks that compare fields run although other fields are wrong, so that all
    mistakes of a file are found at once.
    """

    document: Document
    path: Path
    library: Lookups
    valid: dict[str, Any] = field(default_factory=dict)

    def note(self, path: FieldPath, message: str, *, at_key: bool = False) -> None:
        self.document.note(path, message, at_key=at_key)


class Described(BaseModel):
    """A mapping in a descriptor. Unknown keys are mistakes, and types are not guessed."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        defer_build=True,  # most commands import every kind and read none
    )

    def mistakes(self) -> Iterator[Located]:
        """What is wrong between the fields of this mapping, each of them being right by itself."""
        yield from ()

    def mistakes_among(self, library: Lookups) -> Iterator[Located]:  # noqa: ARG002 - subclasses do
        """What is wrong between this mapping and the descriptors that it names."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _checked(
        cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        reading = info.context
        if not isinstance(data, Section) or not isinstance(reading, DescriptorReading):
            return handler(data)
        known = [f.alias or name for name, f in cls.model_fields.items()]
        unknown = [key for key in data if key not in known]
        for key in unknown:
            reading.note((*data.path, key), _unknown_key(key, known), at_key=True)
        model = handler(data.without(unknown))
        for path, message in (*model.mistakes(), *model.mistakes_among(reading.library)):
            reading.note((*data.path, *path), message)
        return model


def with_fields(fields: Mapping[str, Any]) -> Callable[[type[Described]], type[Described]]:
    """A decorator that gives a mapping fields that are only known as the program runs.

    Parameters
    ----------
    fields : by name, the type and the default or `Field` of each.
    """

    def extended(cls: type[Described]) -> type[Described]:
        more = {"__doc__": cls.__doc__, "__module__": cls.__module__, **fields}
        made: type[Described] = create_model(cls.__name__, __base__=cls, **more)
        return made

    return extended


class Descriptor(Described):
    """A whole file. Its fields are kept as they turn out right, for `checks`."""

    ENVIRONMENT_FIELDS: ClassVar[tuple[str, ...]] = ()
    """Fields that may hold `${NAME}`, with `*` for any key."""
    TEMPLATE_FIELDS: ClassVar[tuple[str, ...]] = ()
    """Fields in which `$` means something else."""

    @field_validator("*", mode="after")
    @classmethod
    def _keep(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(info.context, DescriptorReading) and info.field_name:
            info.context.valid[info.field_name] = value
        return value

    @classmethod
    def checks(cls, reading: DescriptorReading) -> Iterator[Located]:  # noqa: ARG003 - for subclasses
        """What is wrong between top-level fields; looks at `reading.valid` alone."""
        yield from ()


AnyDescriptor = TypeVar("AnyDescriptor", bound=Descriptor)


def validated(model: type[AnyDescriptor], reading: DescriptorReading) -> AnyDescriptor | None:
    """The document as a `model`; None, with the mistakes in the document, where it is not one."""
    document = reading.document
    if not isinstance(document.root, Section):
        document.note((), f"is {_noun(document.root)}, must be a mapping of keys to values")
        return None
    _check_environment(model, document)
    found: AnyDescriptor | None = None
    try:
        found = model.model_validate(document.root, context=reading)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path, at_key = _path_in(document, detail["loc"])
            given = path[-1] if at_key else document.at(path)
            document.note(path, _sentence(detail, given), at_key=at_key)
    for path, message in model.checks(reading):
        document.note(path, message)
    document.mistakes.sort(key=lambda mistake: (mistake.line, mistake.column))
    return None if document.mistakes else found


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A clause that proposes the nearest names and lists all of them."""
    names = sorted(known)
    near = nearest(given, names)
    return (f"did you mean {near}? " if near else "") + f"allowed: {', '.join(names) or 'none'}"


def _unknown_key(key: str, known: list[str]) -> str:
    hint = f"{PAPER_KEYS[key]}; " if key in PAPER_KEYS else ""
    return f"is not known here; {hint}{did_you_mean(key, known)}"


def _path_in(document: Document, loc: tuple[int | str, ...]) -> tuple[FieldPath, bool]:
    """Pydantic's location without what it adds for itself, and whether it means a key."""
    path: FieldPath = ()
    for part in loc:
        if (*path, part) in document.values:
            path = (*path, part)
        elif part == "[key]":
            return path, True
        elif part == loc[-1] and isinstance(document.at(path), dict):
            return (*path, part), False
    return path, False


def _noun(value: Any) -> str:
    return {"str": "text", "list": "a list", "NoneType": "empty"}.get(
        type(value).__name__, shown(value)
    )


def _choice(given: Any, expected: str) -> str:
    """Pydantic's `'linear' or 'log'` as a clause with the nearest of them."""
    return did_you_mean(str(given), re.findall(r"'([^']*)'", expected))


_KINDS = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list, in [ ] or with a dash before each item",
    "dict": "a mapping of keys to values",
    "model": "a mapping of keys to values",
}


def _sentence(detail: ErrorDetails, given: Any) -> str:
    """One of pydantic's errors as our sentence."""
    kind, context = detail["type"], detail.get("ctx", {})
    match kind:
        case "missing":
            return "is missing"
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return f"is {shown(given)}; {_choice(given, context['expected'])}"
        case "too_short" if context["actual_length"]:
            count = counted(context["actual_length"], "value")
            return f"has {count}, at least {context['min_length']} needed"
        case "too_short" | "string_too_short":
            return "is empty, must not be"
        case "too_long":
            return f"has {context['actual_length']} values, at most {context['max_length']} allowed"
        case "string_too_long":
            return f"is too long, at most {context['max_length']} characters are allowed"
        case "greater_than":
            return f"is {shown(given)}, must be over {context['gt']:g}"
        case "greater_than_equal":
            return f"is {shown(given)}, must be at least {context['ge']:g}"
        case "less_than":
            return f"is {shown(given)}, must be under {context['lt']:g}"
        case "less_than_equal":
            return f"is {shown(given)}, must be at most {context['le']:g}"
        case "int_from_float":
            return f"is {shown(given)}, must be a whole number"
        case "finite_number":
            return f"is {shown(given)}, must be finite"
    expected = _KINDS.get(kind.removesuffix("_type").removesuffix("_parsing"))
    if kind == "string_type" and isinstance(given, bool | int | float):
        return f"is {shown(given)}, must be text; put it in quotes"
    if expected:
        return f"is {shown(given)}, must be {expected}"
    return f"is {shown(given)}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _check_environment(model: type[Descriptor], document: Document) -> None:
    for path, text in document.texts():
        if "${" not in text or _matches(path, model.TEMPLATE_FIELDS):
            continue
        if not _matches(path, model.ENVIRONMENT_FIELDS):
            where = ", ".join(model.ENVIRONMENT_FIELDS) or "no field"
            document.note(path, f"is {shown(text)}, but the environment is read only in: {where}")


def _matches(path: FieldPath, patterns: tuple[str, ...]) -> bool:
    return any(
        len(parts) == len(path)
        and all(want in ("*", str(part)) for want, part in zip(parts, path, strict=True))
        for parts in (pattern.split(".") for pattern in patterns)
    )
