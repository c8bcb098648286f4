"""`lint`, `schema`, `chains`, `plan`: descriptors before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.completion import CampaignArgument
from workbench.cli.option_values import with_values
from workbench.cli.run import BudgetOption, FitOption, LabOption, SeedOption, within


def register(app: typer.Typer) -> None:
    app.command("lint")(lint)
    app.command("schema")(schema)
    app.command("chains")(chains)
    app.command("plan")(with_values(plan))


def lint(
    files: Annotated[list[Path], typer.Argument(help="Descriptors to check.")],
    json: Annotated[bool, typer.Option("--json", help="JSON instead of lines.")] = False,
) -> None:
    """Check descriptors; every mistake as `file:line:column: field: what is wrong`.

    Example: workbench lint templates/campaigns/demo.yaml
    """
    from workbench.cli.context import current_workspace, put, put_json, say
    from workbench.descriptors.checking import lint as check
    from workbench.domain.codec import to_plain
    from workbench.domain.counts import counted
    from workbench.domain.errors import WRONG_USE

    found = [mistake for file in files for mistake in check(file, workspace=current_workspace())]
    if json:
        put_json(to_plain(found))
    else:
        for mistake in found:
            put(str(mistake))
    if found:
        say(counted(len(found), "mistake"))
        raise typer.Exit(WRONG_USE)
    say(f"{counted(len(files), 'descriptor')} without a mistake")


def schema(
    kind: Annotated[str, typer.Argument(help="vnf, chain, campaign, metrics or prices.")],
) -> None:
    """Print the JSON Schema of a kind of descriptor, for editors.

    Example: workbench schema campaign > campaign.schema.json
    """
    import json

    from workbench.cli.context import put
    from workbench.descriptors.schemas import KINDS, json_schema
    from workbench.domain.errors import UsageError

    if kind not in KINDS:
        raise UsageError(
            f"no descriptor is a {kind!r}", remedy=f"Choose one of: {', '.join(KINDS)}"
        )
    put(json.dumps(json_schema(kind), indent=2))


def chains(
    policy: Annotated[
        str, typer.Argument(help='"A & B": both; "A | B": either; "A > B": in order.')
    ],
    free: Annotated[
        str, typer.Option(help="VNFs that may stand anywhere, or not: squid,nginx.")
    ] = "",
    limit: Annotated[
        int, typer.Option(callback=within("limit"), help="Refuse a policy that makes more chains.")
    ] = 200,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Print every chain that obeys a policy.

    Example: workbench chains "squid > haproxy & (tinyproxy | nginx)"
    """
    from workbench.cli.context import ask, put, put_json, say
    from workbench.cli.tables import whole
    from workbench.domain import plan_tables
    from workbench.domain.counts import counted
    from workbench.domain.messages import GenerateChains

    others = tuple(name.strip() for name in free.split(",") if name.strip())
    reply = ask(GenerateChains(policy, others, limit))
    found = [(chain.name, [vnf.template for vnf in chain.vnfs]) for chain in reply.chains]
    if json:
        put_json([{"name": name, "series": series} for name, series in found])
        return
    put(whole(plan_tables.chains(reply.chains)))
    say(counted(len(found), "chain"))


@dataclass(frozen=True)
class FitGiven:
    """On what a campaign is to be measured."""

    fit: FitOption = False
    hosts: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            help="What a fleet of up to so many hosts would take; in place of each configuration.",
        ),
    ] = 0


def plan(
    campaign: CampaignArgument = "demo",
    lab: LabOption = None,
    seed: SeedOption = 1,
    budget: BudgetOption = None,
    *,
    room: FitGiven,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Print what a campaign would cost, before anything runs.

    Example: workbench plan table2 --fit --budget 8h
    """
    from workbench.cli.context import ask_patiently, put, put_json, say
    from workbench.cli.run import _absolute, _absolute_recording
    from workbench.cli.spans import seconds
    from workbench.cli.tables import whole
    from workbench.domain import plan_tables
    from workbench.domain.codec import to_plain
    from workbench.domain.counts import counted
    from workbench.domain.durations import duration
    from workbench.domain.messages import PlanCampaign

    reply = ask_patiently(
        PlanCampaign(
            _absolute(campaign),
            _absolute_recording(lab),
            seed,
            seconds(budget),
            room.fit,
            samplers=True,
            most_hosts=room.hosts,
        )
    )
    if json:
        put_json(to_plain(reply.plan))
        return
    if not reply.plan.hosts:
        put(whole(plan_tables.configurations(reply.plan)) + "\n")
    put(
        f"{reply.plan.campaign} on lab {reply.plan.lab}: at most {reply.plan.samples} samples, "
        f"about {duration(reply.plan.lab_s)} of lab time, "
        f"{duration(reply.plan.most_lab_s)} if every point took its whole time-out\n"
    )
    put(whole(plan_tables.samplers(reply.plan.samplers)))
    say("played: against a stand-in without noise; a lab may take more samples, never over at most")
    if any(cost.figure == "scaled" for cost in reply.plan.samplers):
        say("scaled: as many configurations were played as there was time for")
    if reply.plan.hosts:
        put("\n" + whole(plan_tables.over_hosts(reply.plan.hosts)))
        say("lab time: until the last host ends; efficiency: speed-up over one host per host")
    if reply.plan.enough is not None:
        hosts, took = counted(reply.plan.enough.hosts, "host"), duration(reply.plan.enough.lab_s)
        say(f"worth while: up to {hosts}, {took}; more would save less than a tenth of that")
    for warning in reply.plan.warnings:
        say(f"warning: {warning}")
