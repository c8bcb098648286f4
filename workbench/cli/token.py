"""`token`: who may ask `serve --http`, and as what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.command_groups import WholeSentences

if TYPE_CHECKING:
    from workbench.domain.messages import Role
    from workbench.serve.tokens import Tokens


def register(app: typer.Typer) -> None:
    tokens = typer.Typer(
        cls=WholeSentences, help="Tokens of `serve --http`. Example: workbench token add dashboard"
    )
    tokens.command("add")(add)
    tokens.command("ls")(ls)
    tokens.command("rm")(rm)
    app.add_typer(tokens, name="token")


def add(
    name: Annotated[str, typer.Argument(help="What events and the audit log call its owner.")],
    operator: Annotated[
        bool, typer.Option("--operator", help="It may run campaigns, too.")
    ] = False,
) -> None:
    """Make a token and print it, once: only its digest is kept.

    Example: workbench token add dashboard
    """
    from workbench.cli.context import put, say

    role: Role = "operator" if operator else "observer"
    put(_tokens().make(name, role))
    say(f"{name} is {role} with it; it is shown here only, and is no more known to anybody")


def ls() -> None:
    """List tokens: name, role, when it was made.

    Example: workbench token ls
    """
    from datetime import UTC, datetime

    from workbench.cli.context import put

    for token in _tokens().known():
        made = datetime.fromtimestamp(token.made_at, UTC)
        put(f"{token.name:<24} {token.role:<9} {made:%Y-%m-%d %H:%M} UTC")


def rm(name: Annotated[str, typer.Argument(help="As `token ls` has it.")]) -> None:
    """End a token: it opens nothing from the next request on; streams that are open stay.

    Example: workbench token rm dashboard
    """
    from workbench.cli.context import say

    _tokens().remove(name)
    say(f"{name} opens nothing any more")


def _tokens() -> Tokens:
    from workbench.cli.context import current_workspace
    from workbench.serve.tokens import Tokens

    return Tokens(current_workspace().tokens)
