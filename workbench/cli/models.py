"""`models`: how well each model predicts what a session measured, and which one is in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.completion import NameArgument, chains
from workbench.cli.option_values import refuse_ignored, with_values
from workbench.domain.counts import counted

if TYPE_CHECKING:
    from workbench.domain.profiles import (
        Coefficient,
        MethodFormulas,
        ModelScore,
        ModelVersion,
        ParameterInfluence,
    )
    from workbench.domain.questions import ModelsScored, RollBackModel

BAR = 20
"""Characters of an influence of 100 %."""
NAME = 30
"""Characters of a parameter; with bar and figure a line stays under 80."""


class By(StrEnum):
    """What a model has not seen of what it is asked to predict."""

    POINT = "point"
    CONFIGURATION = "configuration"


@dataclass(frozen=True)
class ScoringGiven:
    """What is scored, and how."""

    target: Annotated[str | None, typer.Option(help="One target only.")] = None
    kpi: Annotated[str | None, typer.Option(help="Default: the campaign's.")] = None
    by: Annotated[By, typer.Option(help="What is held out in a fold.")] = By.POINT
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas; short: the short list. Default: all.")
    ] = ""
    fleet: Annotated[
        Path | None,
        typer.Option(
            help="Score on the running hosts of this hosts file; nothing is stored.",
            metavar="HOSTS",
        ),
    ] = None


@dataclass(frozen=True)
class RollbackGiven:
    """Which version of a chain's model is put in force."""

    rollback: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Put this version of a chain's retrained model in force; 0: the profiles alone.",
        ),
    ] = None
    chain: Annotated[
        str | None,
        typer.Option(
            help="With --rollback: of this chain; default: the only one.", autocompletion=chains
        ),
    ] = None
    why: Annotated[str, typer.Option(help="With --rollback: the reason, stored with it.")] = ""


def register(app: typer.Typer) -> None:
    app.command("models")(with_values(models))


def models(
    name: NameArgument,
    scoring: ScoringGiven,
    back: RollbackGiven,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Score every model on a session by 5-fold cross-validation; choose and store the best.

    Example: workbench models demo-real --target haproxy --methods short
    """
    from workbench.cli.context import (
        ask_patiently,
        identity,
        put,
        put_json,
        say,
        session_name,
    )
    from workbench.domain.questions import RollBackModel, ScoreModels

    if back.rollback is not None:
        names = ("target", "by", "methods", "fleet")
        refuse_ignored(scoring, *names, remedy="Leave it out beside --rollback")
        asked_back = RollBackModel(
            session_name(name), back.rollback, back.chain, scoring.kpi, back.why, identity()
        )
        _roll_back(asked_back, json=json)
        return
    refuse_ignored(back, "chain", "why", remedy="Add --rollback VERSION, or leave it out")
    wanted = tuple(part.strip() for part in scoring.methods.split(",") if part.strip())
    asked = ScoreModels(session_name(name), scoring.target, scoring.kpi, methods=wanted)
    if scoring.by is By.CONFIGURATION:
        asked = replace(asked, by="configuration")
    if scoring.fleet is not None:
        from workbench.cli.lab_fleet import scored_over

        reply = scored_over(scoring.fleet, asked)
    else:
        reply = ask_patiently(asked, asked.session)
    if json:
        put_json(_plain(reply))
    else:
        put(_text(reply))
    for note in reply.notes:
        say(note)


def _roll_back(asked: RollBackModel, *, json: bool) -> None:
    from workbench.cli.context import ask, put_json, say
    from workbench.domain.messages import ViewSession

    reply = ask(asked)
    say(reply.note)
    if json:
        viewed = ask(ViewSession(asked.session))
        put_json(
            [
                {"chain": m.chain, "kpi": m.kpi, "version": m.current, "versions": len(m.versions)}
                for m in viewed.view.chain_models
            ]
        )


def _plain(reply: ModelsScored) -> list[dict[str, Any]]:
    """A score for each line, with its stored version, what moves the KPIs of its target, and what
    a parametric method came to."""
    from workbench.domain.codec import to_plain

    versions = {(m.target, m.method): m.version for m in reply.models}
    influences = {
        i.target: {
            kpi: dict(zip(i.parameters, weights, strict=True))
            for kpi, weights in zip(i.kpis, i.weights, strict=True)
        }
        for i in reply.influences
    }
    bases = {i.target: i.basis for i in reply.influences}
    formulas = {(f.target, f.method): f.formulas for f in reply.formulas}
    return [
        {
            **to_plain(score),
            "version": versions.get((score.target, score.method)),
            "influence": influences.get(score.target),
            "influence_basis": bases.get(score.target),
            "formulas": to_plain(formulas.get((score.target, score.method), ())),
        }
        for score in reply.scores
    ]


def _text(reply: ModelsScored) -> str:
    """For each target: a table like paper A's Table 3, its model, bars like paper B's Fig. 8.

    Formulas, as in paper D's Tables IV-VI, where a method was looked at by itself.
    """
    lines: list[str] = []
    alone = len({s.method for s in reply.scores}) == 1
    for target in dict.fromkeys(s.target for s in reply.scores):
        own = [s for s in reply.scores if s.target == target]
        lines += _table(target, own)
        lines += [_model(m, own[0].samples) for m in reply.models if m.target == target]
        for found in reply.formulas:
            if alone and found.target == target and found.formulas:
                lines += ["", *_formulas(found)]
        for influence in reply.influences:
            if influence.target == target:
                lines += ["", *_bars(influence)]
        lines.append("")
    lines.append(
        "* is the best: the narrowest intervals that hold, among comparable medians of "
        "|log(predicted / true)| of samples that the model has not seen. trimmed: RMSE without the "
        "largest tenth of the errors. cover: share of them "
        "within their 95 % intervals, width: of these, in logs."
    )
    return "\n".join(lines)


def _table(target: str, own: Sequence[ModelScore]) -> list[str]:
    from workbench.cli.tables import lines_of
    from workbench.domain import session_tables

    lines = [f"{target}: {own[0].kpi} of {counted(own[0].samples, 'sample')}", ""]
    if (answer := session_tables.scores(own)).rows:
        lines += lines_of(answer)
    lines += [f"{s.method}: {s.trouble}" for s in own if s.trouble]
    return lines


def _model(model: ModelVersion, samples: int) -> str:
    of = counted(model.samples, "sample")
    stored = f"model in force: {model.method}, version {model.version}, of {of}"
    return stored if model.samples == samples else f"{stored}; there are newer ones"


def _formulas(found: MethodFormulas) -> list[str]:
    """The functions of each configuration and region, coefficients with their standard errors."""
    lines = [f"functions of {found.method}, r is the load, coefficients ± standard errors"]
    last = None
    for one in found.formulas:
        if one.configuration != last:
            lines.append(f"  {one.configuration.key}")
        last = one.configuration
        lines.append(
            f"    {one.region}, {one.low:.4g} to {one.high:.4g}: {one.function}, {one.formula}"
        )
        lines.append("      " + ", ".join(map(_coefficient, one.coefficients)))
    return lines


def _coefficient(one: Coefficient) -> str:
    return f"{one.name} = {one.value:.4g}" + ("" if one.error is None else f" ± {one.error:.2g}")


def _bars(influence: ParameterInfluence) -> list[str]:
    """What moves each KPI, as bars that need neither colour nor more than 80 columns."""
    kind = "edge sample" if influence.basis == "edges" else "sample"
    of = counted(influence.samples, kind)
    lines = [f"influence, by partial least squares on {of}"]
    for kpi, weights in zip(influence.kpis, influence.weights, strict=True):
        if not sum(weights):
            lines.append(f"  {kpi}: the same in all samples")
            continue
        lines.append(f"  {kpi}")
        ranked = sorted(zip(influence.parameters, weights, strict=True), key=lambda p: -p[1])
        for parameter, weight in ranked:
            shown = parameter if len(parameter) <= NAME else f"{parameter[: NAME - 1]}~"
            lines.append(f"    {shown:<{NAME}}  {'#' * round(BAR * weight):<{BAR}}  {weight:4.0%}")
    return lines
