"""The Typer application: global options and the list of commands. Commands import lazily."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import (
    canary,
    chains,
    counters,
    descriptors,
    discover,
    grafana,
    host,
    lab_fleet,
    models,
    notify,
    plugins,
    query,
    recommending,
    run,
    serve,
    session_report,
    sessions,
    signed_bundles,
    token,
    watch_function,
    why,
)
from workbench.cli.command_groups import WorkbenchCommands
from workbench.cli.context import settings

app = typer.Typer(
    name="workbench",
    cls=WorkbenchCommands,
    help=(
        "How many vCPUs each network function of a chain needs, whether the chain holds its SLA, "
        "and how sure that is.\n\nExample: workbench run demo"
    ),
    rich_markup_mode=None,  # importing rich would triple the time to the first line of help
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from workbench.cli.version import version

        typer.echo(f"workbench {version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(
            help="Folder with sessions/; default: $WORKBENCH_WORKSPACE, here, or the data folder.",
            file_okay=False,
        ),
    ] = None,
    debug: Annotated[bool, typer.Option(help="Show stack traces.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Open the screen (without a command), or run one of the commands below."""
    del version  # handled by its callback
    settings.workspace = workspace
    settings.debug = debug
    if context.invoked_subcommand is None:
        from workbench.cli.screen import open_screen

        open_screen()


run.register(app)
sessions.register(app)
session_report.register(app)
signed_bundles.register(app)
descriptors.register(app)
discover.register(app)
host.register(app)
models.register(app)
canary.register(app)
chains.register(app)
why.register(app)
counters.register(app)
watch_function.register(app)
recommending.register(app)
plugins.register(app)
notify.register(app)
grafana.register(app)
serve.register(app)
token.register(app)
lab_fleet.register(app)
query.register(app)
