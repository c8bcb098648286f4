"""`watch`: a KPI of a running function from its counters, once a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from workbench.cli.completion import NameArgument

if TYPE_CHECKING:
    from workbench.domain.attaching import Attached
    from workbench.domain.parameters import Sla
    from workbench.engine.answers.counter_learning import CountedRows

AT = "container:web"
UNWATCHED = ("pod", "domain")
"""How functions are found whose counters are not read on this host."""


def register(app: typer.Typer) -> None:
    app.command("watch")(watch)


def watch(
    session: NameArgument,
    function: Annotated[str, typer.Argument(help="A function that the session measured alone.")],
    at: Annotated[
        str,
        typer.Option(
            help="Where it runs: container:NAME, compose:PROJECT/SERVICE, label:KEY=VALUE, "
            "pid:NUMBER or cgroup:PATH; default: where its campaign attached it."
        ),
    ] = "",
    kpi: Annotated[
        str,
        typer.Option(help='throughput, p95, ..., or an SLA, to be alarmed: "p95<=100ms".'),
    ] = "throughput",
    textfile: Annotated[
        Path | None, typer.Option(help="Metrics for the textfile collector of a node exporter.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="A line of JSON a second.")] = False,
) -> None:
    """Tell a running function's KPI from its counters, once a second; nothing is sent through it.

    A model is learned from the evidence of the session's samples. "?" where counters lie outside of
    what was learned. The screen Watch of this workspace shows what is told.

    Example: workbench watch haproxy-lab haproxy --at container:web --kpi "p95<=100ms"
    """
    from workbench.cli.context import execute, session_name
    from workbench.cli.session_counters import told_kpi
    from workbench.cli.watch_loop import Orders, follow

    sla = _sla(kpi)
    name = sla.kpi if sla else told_kpi(kpi)

    async def run() -> None:
        known = session_name(session)
        counted, attached, image = await _learnt(known, function, name, at)
        orders = Orders(function, name, attached, sla, None, textfile, json, known, image)
        await follow(orders, counted)

    execute(run())


def _sla(text: str) -> Sla | None:
    """None where it is the name of a KPI alone."""
    from workbench.cli.session_counters import told_kpi
    from workbench.descriptors.sla_text import parse_sla
    from workbench.domain.errors import UsageError

    if not set(text) & set("<>=≤≥"):
        return None
    sla = parse_sla(text, "rate")
    if "@" in text:
        raise UsageError(
            "is held at any load that the function has: nothing can stand behind @",
            where=f"--kpi {text}",
            remedy="Leave the condition out",
        )
    told_kpi(sla.kpi)
    return sla


async def _learnt(
    session: str, function: str, kpi: str, at: str
) -> tuple[CountedRows, Attached, str]:
    """What the session has to teach, where the function runs, and the image that it was of when it
    was measured, if that is known."""
    from workbench.cli.context import any_client
    from workbench.cli.session_counters import counted_campaign, samples_alone
    from workbench.computing import computed
    from workbench.domain.messages import ViewSession
    from workbench.engine.answers.counter_learning import counted_rows

    async with any_client() as client:
        view = (await client.ask(ViewSession(session))).view
        campaign = counted_campaign(session, view, function, kpi)
        attached = _place(at, function, campaign.attached)
        taken = await samples_alone(client, session, function)
    ceiling = campaign.ceiling(kpi)
    rows = await computed(counted_rows, taken, function, kpi, ceiling)
    (vnf,) = campaign.target_plan(function).target.vnfs
    known = view.host.image_digests if view.host else {}
    return rows, attached, known.get(vnf.template) or known.get(vnf.name, "")


def _place(at: str, function: str, known: tuple[Attached, ...]) -> Attached:
    from workbench.domain.attaching import Attached, FoundBy
    from workbench.domain.errors import UsageError

    if not at:
        for one in known:
            if one.name == function and one.found_by not in UNWATCHED and not one.host:
                return one
        raise UsageError(
            f"where {function} runs is not known",
            where="--at",
            remedy=f"Name it, as `workbench discover` lists it: --at {AT}",
        )
    kind, colon, where = at.partition(":")
    kinds = tuple(kind for kind in get_args(FoundBy) if kind not in UNWATCHED)
    if not colon or not where or kind not in kinds:
        raise UsageError(
            f"is {at!r}, must be one of {', '.join(kinds)}, a colon and what it is called",
            where="--at",
            remedy=f"Write it as {AT}",
        )
    if kind == "pid" and not (where.isascii() and where.isdigit()):
        raise UsageError(f"{where!r} is no number of a process", where="--at")
    return Attached(function, kind, where)  # type: ignore[arg-type]  # it is among the kinds
