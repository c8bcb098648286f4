"""`predict` and `compare --chain`: what profiles say of a chain, and how right that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.completion import chains
from workbench.cli.option_values import with_values
from workbench.cli.profile_options import ProfilesGiven

if TYPE_CHECKING:
    from workbench.domain.questions import ChainPredicted, ChainQuery


COMPARED = (
    "chain", "kpi", "rule", "buckets", "ab_floor", "mae", "mad", "rmse", "mape", "log_error",
    "baseline_rmse", "configurations", "outliers", "model_version",
)  # fmt: skip
"""The fields of `compare --chain --json`."""


@dataclass(frozen=True)
class RuleGiven:
    """What is predicted of a chain, and how."""

    kpi: Annotated[str | None, typer.Option(help="Default: the campaign's.")] = None
    rule: Annotated[
        str, typer.Option(help="Rule of composition; default: that of the KPI and the load.")
    ] = ""
    shared_cores: Annotated[
        bool,
        typer.Option(
            "--shared-cores",
            help="Also predict what functions pinned to the same cores cost each other.",
        ),
    ] = False


@dataclass(frozen=True)
class ChainGiven(RuleGiven):
    """The chain that is held against its functions' profiles."""

    chain: Annotated[
        str | None,
        typer.Option(
            help="Compare this chain with its functions' profiles.", autocompletion=chains
        ),
    ] = None


def register(app: typer.Typer) -> None:
    app.command("predict")(with_values(predict))


def predict(
    chain: Annotated[
        str,
        typer.Option(
            help="A target of the campaign, or the name of a chain's descriptor.",
            autocompletion=chains,
        ),
    ],
    at: Annotated[str, typer.Option(help='Load and workload: "rate=300/s, filesize=10kB".')],
    by: RuleGiven,
    allocate: Annotated[
        str, typer.Option(help='One allocation: "haproxy=25%, tinyproxy=50%". Default: all.')
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    *,
    given: ProfilesGiven,
) -> None:
    """Predict a chain from the stand-alone profiles of its functions; what limits, what would help.

    Example: workbench predict demo-real --chain tinyproxy-haproxy --at "rate=300/s, filesize=10kB"

    Example: workbench predict --profiles a.bundle,b.bundle --chain study --at rate=300/s
    """
    from workbench.cli.context import (
        ask_patiently,
        put,
        put_json,
        say,
    )
    from workbench.cli.prediction_words import predicted
    from workbench.domain.questions import PredictChain

    others, name = given.sessions(), given.asked("predict")
    asked = PredictChain(_query(name, chain, by, others, insist=given.insist), at, allocate)
    reply = ask_patiently(asked, *dict.fromkeys((name, *others)))
    if json:
        put_json(_plain(reply))
    else:
        put(predicted(reply, at))
    for note in reply.notes:
        say(note)


def compare_with_profiles(
    session: str,
    second: str | None,
    chain: str,
    by: RuleGiven,
    given: ProfilesGiven,
    *,
    json: bool,
) -> None:
    """`compare SESSION --chain C`; a chain that deviates is a finding."""
    from workbench.cli.chain_comparison_words import compared
    from workbench.cli.context import (
        ask_patiently,
        put,
        put_json,
        say,
        session_name,
    )
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING, UsageError
    from workbench.domain.questions import CompareChain

    if second is not None:
        raise UsageError(
            "compares one session's chain with profiles, not two sessions",
            where="--chain",
            remedy=f"Say --profiles {second} if that session has the profiles",
        )
    others = replace(given, session=session).sessions()
    name = session_name(session)
    query = _query(name, chain, by, others, insist=given.insist)
    reply = ask_patiently(CompareChain(query), *dict.fromkeys((name, *others)))
    if json:
        plain = to_plain(reply.comparison)
        put_json({name: plain[name] for name in COMPARED})
    else:
        put(compared(reply))
    for note in reply.notes:
        say(note)
    if reply.comparison.outliers:
        raise typer.Exit(FINDING)


def _query(
    session: str, chain: str, by: RuleGiven, others: tuple[str, ...], *, insist: bool
) -> ChainQuery:
    from workbench.domain.questions import ChainQuery

    first = others[0] if others else None
    more = others[1:]
    return ChainQuery(session, chain, by.kpi, by.rule, first, insist, more, by.shared_cores)


def _plain(reply: ChainPredicted) -> list[dict[str, Any]]:
    from workbench.domain.codec import to_plain

    models = to_plain(reply.models)
    return [{**to_plain(prediction), "models": models} for prediction in reply.predictions]
