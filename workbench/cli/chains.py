"""`predict` and `compare --chain`: what profiles say of a chain, and how right that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.completion import NameArgument, chains

if TYPE_CHECKING:
    from workbench.domain.questions import ChainPredicted


COMPARED = (
    "chain", "kpi", "rule", "buckets", "ab_floor", "mae", "mad", "rmse", "mape", "log_error",
    "baseline_rmse", "configurations", "outliers", "model_version",
)  # fmt: skip
"""The fields of `compare --chain --json`."""


ChainOption = Annotated[
    str,
    typer.Option(
        help="A target of the campaign, or the name of a chain's descriptor.",
        autocompletion=chains,
    ),
]
KpiOption = Annotated[str | None, typer.Option(help="Default: the campaign's.")]
RuleOption = Annotated[
    str, typer.Option(help="Rule of composition; default: that of the KPI and the load.")
]
ProfilesOption = Annotated[
    str | None, typer.Option(help="Session that has the functions' profiles; default: the same.")
]
InsistOption = Annotated[
    bool, typer.Option("--insist", help="Take profiles of another host, and mark the answer.")
]


def register(app: typer.Typer) -> None:
    app.command("predict")(predict)


def predict(
    session: NameArgument,
    chain: ChainOption,
    at: Annotated[str, typer.Option(help='Load and workload: "rate=300/s, filesize=10kB".')],
    kpi: KpiOption = None,
    rule: RuleOption = "",
    allocate: Annotated[
        str, typer.Option(help='One allocation: "haproxy=25%, tinyproxy=50%". Default: all.')
    ] = "",
    profiles: ProfilesOption = None,
    insist: InsistOption = False,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Predict a chain from the stand-alone profiles of its functions; what limits, what would help.

    Example: workbench predict demo-real --chain tinyproxy-haproxy --at "rate=300/s, filesize=10kB"
    """
    from workbench.cli.context import ask_patiently, put, put_json, say, session_name
    from workbench.cli.prediction_words import predicted
    from workbench.domain.questions import ChainQuery, PredictChain

    others = session_name(profiles) if profiles is not None else None
    name = session_name(session)
    query = ChainQuery(name, chain, kpi, rule, others, insist)
    asked = PredictChain(query, at, allocate)
    reply = ask_patiently(asked, name, others)
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
    kpi: str | None,
    rule: str,
    profiles: str | None,
    *,
    insist: bool,
    json: bool,
) -> None:
    """`compare SESSION --chain C`; a chain that deviates is a finding."""
    from workbench.cli.chain_comparison_words import compared
    from workbench.cli.context import ask_patiently, put, put_json, say, session_name
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING, UsageError
    from workbench.domain.questions import ChainQuery, CompareChain

    if second is not None:
        raise UsageError(
            "compares one session's chain with profiles, not two sessions",
            where="--chain",
            remedy=f"Say --profiles {second} if that session has the profiles",
        )
    others = session_name(profiles) if profiles is not None else None
    name = session_name(session)
    query = ChainQuery(name, chain, kpi, rule, others, insist)
    reply = ask_patiently(CompareChain(query), name, others)
    if json:
        plain = to_plain(reply.comparison)
        put_json({name: plain[name] for name in COMPARED})
    else:
        put(compared(reply))
    for note in reply.notes:
        say(note)
    if reply.comparison.outliers:
        raise typer.Exit(FINDING)


def _plain(reply: ChainPredicted) -> list[dict[str, Any]]:
    from workbench.domain.codec import to_plain

    models = to_plain(reply.models)
    return [{**to_plain(prediction), "models": models} for prediction in reply.predictions]
