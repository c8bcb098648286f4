"""`predict` and `compare --chain`: what profiles say of a chain, and how right that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.completion import chains, sessions_and_recordings
from workbench.cli.signed_bundles import OnlyFromSigners

if TYPE_CHECKING:
    from workbench.domain.questions import ChainPredicted, ChainQuery


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
    str | None,
    typer.Option(
        help="Sessions or bundles that have the functions' profiles, as A,B; who is named first "
        "speaks. Default: the same session."
    ),
]
InsistOption = Annotated[
    bool, typer.Option("--insist", help="Take profiles of another host, and mark the answer.")
]


def register(app: typer.Typer) -> None:
    app.command("predict", cls=OnlyFromSigners)(predict)


def predict(
    chain: ChainOption,
    at: Annotated[str, typer.Option(help='Load and workload: "rate=300/s, filesize=10kB".')],
    session: Annotated[
        str | None,
        typer.Argument(
            help="A session, a recording, or a bundle's folder; default: the first of --profiles.",
            autocompletion=sessions_and_recordings,
        ),
    ] = None,
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

    Example: workbench predict --profiles a.bundle,b.bundle --chain study --at rate=300/s
    """
    from workbench.cli.context import (
        ask_patiently,
        put,
        put_json,
        say,
        session_name,
        session_names,
    )
    from workbench.cli.prediction_words import predicted
    from workbench.domain.errors import UsageError
    from workbench.domain.questions import PredictChain

    others = session_names(profiles)
    if session is None and not others:
        raise UsageError(
            "names neither a session nor profiles",
            where="predict",
            remedy="Write `workbench predict SESSION ...`, or --profiles A.bundle,B.bundle",
        )
    name = session_name(session) if session is not None else others[0]
    asked = PredictChain(_query(name, chain, kpi, rule, others, insist=insist), at, allocate)
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
    kpi: str | None,
    rule: str,
    profiles: str | None,
    *,
    insist: bool,
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
        session_names,
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
    others = session_names(profiles)
    name = session_name(session)
    query = _query(name, chain, kpi, rule, others, insist=insist)
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
    session: str, chain: str, kpi: str | None, rule: str, others: tuple[str, ...], *, insist: bool
) -> ChainQuery:
    from workbench.domain.questions import ChainQuery

    first = others[0] if others else None
    return ChainQuery(session, chain, kpi, rule, first, insist, others[1:])


def _plain(reply: ChainPredicted) -> list[dict[str, Any]]:
    from workbench.domain.codec import to_plain

    models = to_plain(reply.models)
    return [{**to_plain(prediction), "models": models} for prediction in reply.predictions]
