"""Values that stand for options of a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from workbench.cli.option_values import with_values


@dataclass(frozen=True)
class Colour:
    name: Annotated[str, typer.Option(help="Of the paint.")]
    coats: Annotated[int, typer.Option(min=1)] = 2
    gloss: Annotated[float, typer.Option()] = 0.5


def run(*arguments: str, without: tuple[str, ...] = ()) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    def other() -> None: ...

    def paint(wall: Annotated[str, typer.Argument()], *, colour: Colour) -> None:
        """Paint a wall."""
        typer.echo(f"{wall}: {colour}")

    app.command("paint")(with_values(paint, without=without))
    done = CliRunner().invoke(app, ["paint", *arguments])
    return done.exit_code, done.output


def test_the_fields_of_a_value_are_options_of_the_command() -> None:
    assert run("north", "--name", "red", "--coats", "3") == (
        0,
        f"north: {Colour('red', 3)}\n",
    )


def test_a_field_is_asked_for_and_checked_as_its_option() -> None:
    code, text = run("north")
    assert code == 2
    assert "--name" in text
    code, text = run("north", "--name", "red", "--coats", "0")
    assert code == 2
    assert "--coats" in text


def test_a_field_that_a_command_has_not_keeps_its_default() -> None:
    assert run("north", "--name", "red", without=("gloss",)) == (0, f"north: {Colour('red')}\n")
    assert run("north", "--name", "red", "--gloss", "1", without=("gloss",))[0] == 2
