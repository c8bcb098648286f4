"""`workbench --help` lists every command by what it is for, with its whole sentence."""

from __future__ import annotations

import typer

from workbench.cli.app import app
from workbench.cli.command_groups import COMMAND_GROUPS


def test_every_command_is_listed_once_and_none_is_cut() -> None:
    command = typer.main.get_command(app)
    with command.make_context("workbench", ["--help"], resilient_parsing=True) as context:
        told = command.get_help(context)
    shown = {name for name, one in command.commands.items() if not one.hidden}  # type: ignore[attr-defined]
    listed = [name for names in COMMAND_GROUPS.values() for name in names]
    assert sorted(listed) == sorted(shown), "command_groups.py names what there is, once"
    titles = [line[:-1] for line in told.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == ["Options", *COMMAND_GROUPS], "and nothing is left for a rest"
    assert "resume       Go on with a session where it stood; no stored point is\n" in told
    assert "...\n" not in told.partition("Measure:")[2]


def test_the_commands_of_a_group_are_whole_too() -> None:
    fleet = typer.main.get_command(app).commands["fleet"]  # type: ignore[attr-defined]
    with fleet.make_context("fleet", ["--help"], resilient_parsing=True) as context:
        told = fleet.get_help(context)
    assert "Start the hosts of a hosts file, and keep them up until `fleet\n" in told
    assert "..." not in told.partition("Commands:")[2]
