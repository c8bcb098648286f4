"""Options that belong together, as fields of one value that commands take as one parameter.

```python
@dataclass(frozen=True)
class DecisionGiven:
    accept: Annotated[bool, typer.Option("--accept", help="Put it in force.")] = False
    why: Annotated[str, typer.Option(help="Stored with the decision.")] = ""


def canary(session: ProfiledArgument, decision: DecisionGiven) -> None: ...


app.command("canary")(with_values(canary))
```
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, cast, get_type_hints


def with_values(
    command: Callable[..., None], *, without: tuple[str, ...] = ()
) -> Callable[..., None]:
    """A command for typer in which each parameter that is a dataclass stands as its fields.

    Parameters
    ----------
    command : its dataclasses annotate each field as typer wants it.
    without : fields that are no options of this command; they keep their defaults.
    """
    own = inspect.signature(command, eval_str=True)
    taken: dict[str, tuple[type[Any], list[inspect.Parameter]]] = {}
    merged: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        kind: type[Any] = parameter.annotation
        if is_dataclass(parameter.annotation):
            options = [one for one in _options(kind) if one.name not in without]
            taken[name] = kind, options
            merged += options
        else:
            merged.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def called(**said: Any) -> None:
        values = {
            name: kind(**{option.name: said.pop(option.name) for option in options})
            for name, (kind, options) in taken.items()
        }
        command(**said, **values)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {one.name: one.annotation for one in merged}
    cast(Any, called).__signature__ = own.replace(parameters=merged)
    return called


def refuse_ignored(value: Any, *names: str, remedy: str) -> None:
    """Raise `UsageError` where one of these fields of such a value was given, and nothing would
    heed it."""
    from workbench.domain.errors import UsageError

    silent = {field.name: field.default for field in fields(value)}
    given = [f"--{n.replace('_', '-')}" for n in names if getattr(value, n) != silent[n]]
    if given:
        raise UsageError("would be ignored", where=", ".join(given), remedy=remedy)


def _options(kind: type[Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=hints[field.name],
        )
