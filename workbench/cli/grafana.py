"""`grafana`: the dashboard that comes with the workbench, for a Grafana that imports it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("grafana")(grafana)


def grafana(
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; default: standard output.", dir_okay=False),
    ] = None,
) -> None:
    """Write a Grafana dashboard over /metrics: load, p95, CPU, throttling, validity, breakpoints.

    Example: workbench grafana --output workbench.json
    """
    from importlib import resources

    from workbench.cli.context import put
    from workbench.domain.errors import UsageError
    from workbench.paths import expanded

    text = resources.files("workbench.exports").joinpath("grafana_dashboard.json").read_text()
    if output is None:
        put(text.rstrip("\n"))
        return
    path = expanded(output)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            remedy="Choose another file (--output)",
        ) from None
    put(str(path))
