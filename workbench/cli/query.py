"""`query`: how a KPI spreads over all sessions of the workspace, by host, version, target, ..."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("query")(query)


def query(
    kpi: Annotated[str, typer.Option(help="Which figure: p95, throughput, loss, ...")] = "p95",
    target: Annotated[
        str | None, typer.Option("--target", "--vnf", help="Of this function or chain only.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="host, session, version, campaign, lab, target, configuration or load; may be "
            "repeated; default: target and host."
        ),
    ] = None,
    places: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Files that `query` made elsewhere (.workbench/kpis), in place of this "
            "workspace's: a folder, a glob, s3://... or https://...; may be repeated.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """How a KPI spreads over all sessions of the workspace: median, 5 % and 95 % quantile.

    Samples of all loads and configurations are counted alike unless they are grouped by.

    Example: workbench query --kpi p95 --vnf tinyproxy --by host --by load
    """
    from workbench.cli.context import current_workspace, put, put_json, say
    from workbench.cli.tables import whole
    from workbench.domain import kpis
    from workbench.domain.answer_tables import AnswerColumn, AnswerTable
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import UsageError
    from workbench.store.many_sessions import elsewhere, remembered, spread, written

    wanted = kpis.find(kpi)
    if wanted is None:
        raise UsageError(
            f"no KPI is called {kpi!r}",
            where="--kpi",
            remedy=f"Choose from: {', '.join(kpis.known())}",
        )
    groups = by or ["target", "host"]
    if places:
        files = elsewhere(places)
    else:
        folder, problems = remembered(current_workspace(), say)
        for problem in problems:
            say(f"warning: {problem}")
        files = written(folder)
    found = spread(files, wanted.name, groups, target)
    if json:
        put_json(to_plain(found))
        return
    figures = (f"median {wanted.name}", "5 %", "95 %")
    answer = AnswerTable.of(
        (*groups, "sessions", "samples", *(AnswerColumn(title, ".4g") for title in figures)),
        ((*s.group, s.sessions, s.samples, s.median, s.low, s.high) for s in found),
    )
    put(whole(answer))
