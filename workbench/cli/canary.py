"""`canary`: load a real chain carefully, retrain its model, accept or reject what comes of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from workbench.cli.completion import chains, sessions
from workbench.cli.context import finite
from workbench.cli.option_values import refuse_ignored, with_values
from workbench.cli.run import BudgetOption
from workbench.cli.spans import seconds
from workbench.domain import departures
from workbench.domain.counts import counted

if TYPE_CHECKING:
    from workbench.domain.questions import ChainRetrained
    from workbench.domain.retraining import CanaryRun, Proposal, TermChange

MOST_COLUMNS = 100
UNSEEN_CHANGES = 8
"""Changed terms that are shown; of more configurations `--json` has the rest."""


@dataclass(frozen=True)
class CanaryGiven:
    """What is loaded, how, and what is learned of it."""

    chain: Annotated[
        str | None,
        typer.Option(
            help="A target of the campaign, or a chain's descriptor; default: the only.",
            autocompletion=chains,
        ),
    ] = None
    kpi: Annotated[
        str | None,
        typer.Option(help="KPI to retrain; default: that of the SLA, or of the campaign."),
    ] = None
    sla: Annotated[
        str,
        typer.Option(help='"p95<=200ms @ rate=300/s, filesize=10kB"; default: campaign\'s.'),
    ] = ""
    share: Annotated[
        float,
        typer.Option(
            callback=finite,
            help="Highest load, as a share of the SLA's or else of the campaign's range.",
        ),
    ] = 0.5
    steps: Annotated[
        int, typer.Option(help="Number of rising loads; 0: retrain from stored samples alone.")
    ] = 10
    guard: Annotated[
        list[str] | None,
        typer.Option(help='Limit that stops it: "p95<=200ms"; again for more. Default: the SLA.'),
    ] = None
    budget: BudgetOption = None
    allocate: Annotated[
        str, typer.Option(help='"haproxy=25%, tinyproxy=50%"; default: the campaign\'s largest.')
    ] = ""
    online: Annotated[
        bool,
        typer.Option(
            "--online", help="Random instead of rising loads, as production traffic brings them."
        ),
    ] = False
    method: Annotated[
        str,
        typer.Option(
            help="A model of the chain's samples alone, or trend: the one that says the predicted "
            "trend best. Default: what the chain adds to its prediction."
        ),
    ] = ""
    align: Annotated[
        list[str] | None,
        typer.Option(
            help="Samples to learn from: low-kpi or sla-band; repeat for both. "
            "Default: the method's own rule."
        ),
    ] = None


@dataclass(frozen=True)
class DecisionGiven:
    """What becomes of the proposal."""

    accept: Annotated[bool, typer.Option("--accept", help="Put the stored proposal in force.")] = (
        False
    )
    reject: Annotated[bool, typer.Option("--reject", help="Turn it down; needs --why.")] = False
    why: Annotated[str, typer.Option(help="Stored with the decision.")] = ""

    @property
    def decided(self) -> Literal["accept", "reject", ""]:
        """Raises `UsageError` where it is both, or neither and there is a reason."""
        from workbench.domain.errors import UsageError

        if self.accept and self.reject:
            raise UsageError("cannot be accepted and rejected", where="canary", remedy="Choose one")
        if not (self.accept or self.reject):
            refuse_ignored(self, "why", remedy="Add --accept or --reject, or leave it out")
        return "accept" if self.accept else "reject" if self.reject else ""


def register(app: typer.Typer) -> None:
    app.command("canary")(with_values(canary))


def canary(
    session: Annotated[
        str, typer.Argument(help="A session whose functions are profiled.", autocompletion=sessions)
    ],
    given: CanaryGiven,
    decision: DecisionGiven,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Load a real chain in small steps, and propose a model of what it adds to its prediction.

    Example: workbench canary demo-1 --chain tinyproxy-haproxy --guard "p95<=200ms" --budget 5m
    """
    from workbench.cli.context import ask_patiently, identity, put, put_json, say, session_name
    from workbench.domain.errors import FINDING
    from workbench.domain.questions import RetrainChain

    decided = decision.decided
    asked = RetrainChain(
        session_name(session),
        given.chain,
        given.kpi,
        given.sla,
        given.share,
        given.steps,
        tuple(given.guard or ()),
        seconds(given.budget),
        given.allocate,
        given.online,
        given.method,
        decided,
        decision.why,
        identity(),
        align=tuple(given.align or ()),
    )
    reply = ask_patiently(asked, asked.session)
    if json:
        put_json(plain(reply))
    else:
        put("\n".join(_text(reply)))
    for note in reply.notes:
        say(note)
    if _finding(reply, decide=bool(decided)):
        raise typer.Exit(FINDING)


def _finding(reply: ChainRetrained, *, decide: bool) -> bool:
    """The guard tripped, nothing could be proposed, or what was asked for was not decided."""
    tripped = reply.canary is not None and reply.canary.ending.state == "guard"
    return tripped or reply.proposal is None or (decide and reply.decision is None)


def plain(reply: ChainRetrained) -> dict[str, Any]:
    """The object that `--json` prints; `docs/cli.md` tells its fields."""
    from workbench.domain.codec import to_plain

    proposal, run = reply.proposal, reply.canary
    told: dict[str, Any] = {
        "chain": reply.chain,
        "kpi": reply.kpi,
        "samples": len(proposal.model.sample_ids) if proposal else 0,
        "before": to_plain(proposal.before) if proposal else None,
        "after": to_plain(proposal.after) if proposal else None,
        "decision": _decision(reply),
        "version": reply.version,
        "proposal": None,
        "decided": to_plain(reply.decision),
        "canary": None,
        "drift": to_plain(reply.drift),
        "notes": list(reply.notes),
    }
    if proposal is not None:
        told["proposal"] = {
            "id": proposal.id,
            "based_on": proposal.based_on,
            "method": proposal.model.method,
            "sample_ids": list(proposal.model.sample_ids),
            "held_out": proposal.held_out,
            "noise": proposal.noise,
            "gain": proposal.gain,
            "statement": proposal.statement,
            "changes": to_plain(proposal.changes),
            "reach": to_plain(proposal.reach),
        }
    if run is not None:
        told["canary"] = {
            "configuration": to_plain(run.plan.configuration),
            "loads": list(run.plan.loads),
            "guards": to_plain(run.plan.guards),
            "mode": run.plan.mode,
            "steps": to_plain(run.steps),
            "ending": to_plain(run.ending),
        }
    return told


def _decision(reply: ChainRetrained) -> str | None:
    if reply.decision is not None:
        return "accepted" if reply.decision.accepted else "rejected"
    return "proposed" if reply.proposal is not None else None


# ------------------------------------------------------------------------- for people


def _text(reply: ChainRetrained) -> Iterator[str]:
    if reply.canary is not None:
        yield from _steps(reply.canary)
        yield ""
    if reply.proposal is None:
        yield f"{reply.chain}: nothing is proposed for {reply.kpi}"
    else:
        yield from _proposal(reply.proposal)
    if reply.decision is not None:
        verb = "accepted" if reply.decision.accepted else "rejected"
        yield f"{verb} by {reply.decision.by}" + (
            f": {reply.decision.why}" if reply.decision.why else ""
        )
    elif reply.proposal is not None and not reply.proposal.gain:
        yield (
            "It shows no gain, so it is not in force: --accept puts it in force all the same, "
            "--reject --why turns it down."
        )
    elif reply.proposal is not None:
        yield "Accept it with --accept, or turn it down with --reject --why."
    said = f"version {reply.version}" if reply.version else "the stand-alone profiles"
    yield f"In force: {said}"


def _steps(run: CanaryRun) -> Iterator[str]:
    from workbench.cli.tables import lines_of
    from workbench.domain import canary_tables

    yield f"{run.plan.chain} at {run.plan.configuration.key}"
    if run.steps:
        steps = map(canary_tables.StepLine.of, run.steps)
        yield from lines_of(canary_tables.steps(steps))
    yield run.ending.note


def _proposal(proposal: Proposal) -> Iterator[str]:
    from workbench.cli.tables import lines_of
    from workbench.domain import canary_tables

    yield (
        f"proposal {proposal.id} for {proposal.kpi}: {proposal.model.method}, trained on "
        f"{counted(len(proposal.model.sample_ids), 'sample')}, based on version {proposal.based_on}"
    )
    yield from lines_of(canary_tables.errors(proposal))
    yield from textwrap.wrap(
        departures.statement_of(proposal), MOST_COLUMNS, break_on_hyphens=False
    )
    yield from map(_change, proposal.changes[:UNSEEN_CHANGES])
    for reach in proposal.reach:
        beyond = (
            f"beyond a load of {reach.wl:.4g}, the highest that was measured at "
            f"{reach.configuration.key}, it is a guess"
        )
        yield from textwrap.wrap(beyond, MOST_COLUMNS, break_on_hyphens=False)


def _change(change: TermChange) -> str:
    where = change.configuration.key if change.configuration else "all configurations"
    unit = f" {change.unit}" if change.unit else ""
    return (
        f"{change.title} of {where}: {change.before:.4g} to {change.after:.4g}{unit} "
        f"[{change.low:.4g}, {change.high:.4g}]"
    )
