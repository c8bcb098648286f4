"""`predict` and `compare --chain`: what profiles say of a chain, and how right that is."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from workbench.domain.chains import ChainPrediction, PartModel
    from workbench.domain.parameters import Configuration, ParameterValue
    from workbench.domain.questions import ChainCompared, ChainPredicted
    from workbench.domain.retraining import ChainComparison, Outlier
    from workbench.domain.samples import Estimate

COLUMNS = 80
"""Of what is no terminal."""
IN_DETAIL = 3
"""Allocations of which each function is told; of more there is a table."""
COMPARED = (
    "chain", "kpi", "rule", "buckets", "ab_floor", "mae", "mad", "rmse", "mape", "log_error",
    "baseline_rmse", "configurations", "outliers", "model_version",
)  # fmt: skip
"""The fields of `compare --chain --json`."""
COUNTS = (
    "counts: how much of a small change of the function's figure shows in the chain's; 100 % where "
    "it decides alone."
)

ChainOption = Annotated[
    str, typer.Option(help="A target of the campaign, or the name of a chain's descriptor.")
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
    session: Annotated[str, typer.Argument(help="A session, a recording, or a bundle's folder.")],
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
    from workbench.domain.questions import ChainPredicted, PredictChain

    others = session_name(profiles) if profiles is not None else None
    reply = ask_patiently(
        PredictChain(session_name(session), chain, at, kpi, rule, allocate, others, insist)
    )
    assert isinstance(reply, ChainPredicted)
    if json:
        put_json(_plain(reply))
    else:
        put(_predicted(reply, at))
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
    from workbench.cli.context import ask_patiently, put, put_json, say, session_name
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING, UsageError
    from workbench.domain.questions import ChainCompared, CompareChain

    if second is not None:
        raise UsageError(
            "compares one session's chain with profiles, not two sessions",
            where="--chain",
            remedy=f"Say --profiles {second} if that session has the profiles",
        )
    others = session_name(profiles) if profiles is not None else None
    reply = ask_patiently(CompareChain(session_name(session), chain, kpi, rule, others, insist))
    assert isinstance(reply, ChainCompared)
    if json:
        plain = to_plain(reply.comparison)
        put_json({name: plain[name] for name in COMPARED})
    else:
        put(_compared(reply))
    for note in reply.notes:
        say(note)
    if reply.comparison.outliers:
        raise typer.Exit(FINDING)


def _plain(reply: ChainPredicted) -> list[dict[str, Any]]:
    from workbench.domain.codec import to_plain

    models = to_plain(reply.models)
    return [{**to_plain(prediction), "models": models} for prediction in reply.predictions]


# ------------------------------------------------------------------------- a prediction


def _predicted(reply: ChainPredicted, at: str) -> str:
    """A table with a row for each allocation, then what is to be known, as sentences."""
    first = reply.predictions[0]
    lines = [
        *_wrapped(f"{first.chain} at {at}: {first.kpi} by {first.rule}, {_source(first)}"),
        "",
        *_prediction_table(reply.predictions),
        "",
    ]
    if len(reply.predictions) <= IN_DETAIL:
        for prediction in reply.predictions:
            lines += [*_detail(prediction), ""]
        lines += _wrapped(COUNTS)
    for sentence in _sentences(reply):
        lines += _wrapped(sentence)
    return "\n".join(lines)


def _source(prediction: ChainPrediction) -> str:
    version = prediction.model_version
    return f"corrected by model {version}" if version else "from stand-alone profiles"


def _prediction_table(predictions: Sequence[ChainPrediction]) -> list[str]:
    """Allocations as columns where that fits, else by number with a legend below."""
    from workbench.cli.tables import table

    headings = [f"{predictions[0].kpi} [95 %]", "limits", "takes over", "next step"]
    rows = [
        [
            f"{_interval(p.value)}{' *' if p.extrapolates else ''}",
            p.limiting or "nothing",
            _takeover(p),
            _step(p),
        ]
        for p in predictions
    ]
    allotted = [_shown(p.configuration, _order(p)) for p in predictions]
    keys = list(dict.fromkeys(key for shown in allotted for key in shown))
    cells = [[shown.get(key, "-") for key in keys] for shown in allotted]
    wide = table([*keys, *headings], [[*c, *row] for c, row in zip(cells, rows, strict=True)])
    if max(map(len, wide.splitlines())) <= _columns():
        return wide.splitlines()
    numbered = table(["", *headings], [[f"{n}", *row] for n, row in enumerate(rows, 1)])
    legend = [f"{n}: {_allotted(p)}" for n, p in enumerate(predictions, 1)]
    return [*numbered.splitlines(), "", *(line for text in legend for line in _wrapped(text))]


def _order(prediction: ChainPrediction) -> list[str]:
    """Functions in the order of the chain."""
    return [function.vnf for function in prediction.functions]


def _allotted(prediction: ChainPrediction) -> str:
    shown = _shown(prediction.configuration, _order(prediction))
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _takeover(prediction: ChainPrediction) -> str:
    """The first above this load: `haproxy 867/s`."""
    above = [t for t in prediction.takeovers if t.wl > prediction.wl]
    return f"{above[0].vnf} {_figure(above[0].wl)}{'?' * above[0].extrapolates}" if above else "-"


def _step(prediction: ChainPrediction) -> str:
    step = prediction.next_step
    if step is None:
        return "-"
    figure = f"{_amount(step.key, step.after)}: {_figure(step.value.value)}"
    return figure + (" *" if step.extrapolates else "")


def _sentences(reply: ChainPredicted) -> Iterator[str]:
    predictions = reply.predictions
    if _any_star(predictions) or any("?" in _takeover(p) for p in predictions):
        yield "* and ? extrapolate: what no samples surround is a guess."
    yield from _of_whom(predictions, [_beyond(p) for p in predictions])
    yield from _of_whom(predictions, [p.warnings for p in predictions])
    yield f"Models: {'; '.join(map(_model, reply.models))}."


def _any_star(predictions: Sequence[ChainPrediction]) -> bool:
    return any(
        p.extrapolates or (p.next_step is not None and p.next_step.extrapolates)
        for p in predictions
    )


def _detail(prediction: ChainPrediction) -> list[str]:
    """What each function is alone, how much it counts, and what the next step of vCPU brings."""
    from workbench.cli.tables import table

    rows = [
        [
            function.vnf,
            _figure(function.wl),
            _interval(function.value),
            f"{function.effect:.0%}",
        ]
        for function in prediction.functions
    ]
    unit = f" in {prediction.unit}" if prediction.unit else ""
    lines = table(["function", "load", f"alone{unit}", "counts"], rows).splitlines()
    return [
        f"{_allotted(prediction)}:",
        *(f"  {line}" for line in lines),
        *_wrapped(f"  {_next(prediction)}"),
    ]


def _next(prediction: ChainPrediction) -> str:
    step = prediction.next_step
    if not prediction.limiting:
        return "Nothing limits: nothing is lost, or all that is offered is carried."
    if step is None:
        return f"No next step: {prediction.note}." if prediction.note else "No next step is known."
    vnf = step.key.partition(".")[0]
    return (
        f"With {_amount(step.key, step.after)} for {vnf} instead of "
        f"{_amount(step.key, step.before)}: {_interval(step.value)}, and "
        f"{step.limiting or 'nothing'} limits then."
    )


def _beyond(prediction: ChainPrediction) -> tuple[str, ...]:
    """Where functions extrapolate: it need not count, and is said all the same."""
    return tuple(
        f"{function.vnf} extrapolates ({', '.join(function.extrapolated)})"
        for function in prediction.functions
        if function.extrapolated
    )


def _of_whom(
    predictions: Sequence[ChainPrediction], found: Sequence[Sequence[str]]
) -> Iterator[str]:
    """Each sentence once, with the allocations that it is about where it is not about all."""
    about: dict[str, list[str]] = {}
    for prediction, texts in zip(predictions, found, strict=True):
        for text in texts:
            about.setdefault(text, []).append(_allotted(prediction))
    for text, allotted in about.items():
        if len(allotted) == len(predictions):
            yield f"{text}."
            continue
        more = len(allotted) - IN_DETAIL
        named = "; ".join(allotted[:IN_DETAIL]) + (f" and {more} more" if more > 0 else "")
        yield f"{named}: {text}."


def _model(model: PartModel) -> str:
    version = f"version {model.version}" if model.version else "not stored"
    kpis = ", ".join((model.kpi, *model.also))
    return f"{model.target}'s {kpis} by {model.method} ({version}, {model.samples} samples)"


# ------------------------------------------------------------------------- a comparison


def _compared(reply: ChainCompared) -> str:
    """Where the chain deviates, then how far the prediction is off: in all, by configuration, by
    KPI."""
    found = reply.comparison
    lines = [
        *_wrapped(
            f"{found.chain}: {found.samples} samples of {found.kpi} against {_said_by(found)}"
        ),
        "",
        *_deviations(found),
        "",
        *_scores(reply),
        "",
        *_configurations(found),
        "",
        *_buckets(found),
    ]
    notes = [f"Models: {'; '.join(map(_model, reply.models))}."]
    if found.note:
        notes.insert(0, f"{found.note}.")
    return "\n".join([*lines, "", *(line for note in notes for line in _wrapped(note))])


def _said_by(found: ChainComparison) -> str:
    if found.model_version:
        return f"{found.rule}, which has not learned from them"
    return f"what {found.rule} makes of stand-alone profiles"


def _deviations(found: ChainComparison) -> list[str]:
    from workbench.cli.tables import table

    beyond = f"beyond both 95 % intervals and this host's own noise ({found.ab_floor:.0%})"
    if not found.outliers:
        return _wrapped(
            f"In no configuration is the chain better or worse than predicted {beyond}."
        )
    rows = [
        [
            str(number),
            outlier.verdict,
            f"{len(outlier.loads)} of {outlier.points}",
            _figure(outlier.wl),
            _seen(outlier),
            _interval(outlier.predicted),
            f"{'> ' if outlier.bounded else ''}{_figure(outlier.ratio)}x",
        ]
        for number, outlier in enumerate(found.outliers, 1)
    ]
    headings = ["", "chain is", "loads", "most at", "measured", "predicted", "ratio"]
    return [
        *_wrapped(f"The chain is not as predicted, {beyond}:"),
        "",
        *table(headings, rows).splitlines(),
        "",
        *(line for n, o in enumerate(found.outliers, 1) for line in _wrapped(_whose(n, o))),
    ]


def _seen(outlier: Outlier) -> str:
    """What was measured; of overload nobody knows more than how high it was when last seen."""
    if outlier.bounded:
        return f"at least {_figure(outlier.measured.low)}"
    return _interval(outlier.measured)


def _whose(number: int, outlier: Outlier) -> str:
    return f"{number}: {_allocation(outlier.configuration)}"


def _scores(reply: ChainCompared) -> list[str]:
    from workbench.cli.tables import table

    found = reply.comparison
    rows = [
        [
            one.rule,
            *map(_figure, (one.rmse, one.mae, one.mad)),
            f"{one.mape:.1%}",
            f"{one.log_error:.3f}",
            f"{one.coverage:.0%}",
        ]
        for one in (found, reply.profiles, reply.weakest_link)
        if one is not None
    ]
    if found.baseline_rmse is not None:
        rows.append([f"{found.baseline}, trained directly", _figure(found.baseline_rmse)])
    rows = [row + ["-"] * (7 - len(row)) for row in rows]
    return table(
        ["predicted by", "RMSE", "MAE", "MAD", "MAPE", "|log error|", "cover"], rows
    ).splitlines()


def _configurations(found: ChainComparison) -> list[str]:
    from workbench.cli.tables import table

    rows = [
        [
            str(number),
            str(row.samples),
            f"{row.mape:.1%}",
            f"{row.log_error:.3f}",
            f"{_figure(row.ratio)}x",
            _percent(row.baseline_mape),
        ]
        for number, row in enumerate(found.configurations, 1)
    ]
    headings = ["", "samples", "MAPE", "|log error|", "measured/predicted", "MAPE directly"]
    legend = (f"{n}: {_allocation(r.configuration)}" for n, r in enumerate(found.configurations, 1))
    return [
        "By configuration, the worst first:",
        "",
        *table(headings, rows).splitlines(),
        "",
        *(line for text in legend for line in _wrapped(text)),
    ]


def _buckets(found: ChainComparison) -> list[str]:
    from workbench.cli.tables import table

    rows = [
        [
            f"{_figure(row.low)} to {_figure(row.high)}",
            str(row.samples),
            f"{row.mape:.1%}",
            f"{row.log_error:.3f}",
            _percent(row.baseline_mape),
        ]
        for row in found.buckets
    ]
    headings = [f"measured {found.kpi}", "samples", "MAPE", "|log error|", "MAPE directly"]
    return table(headings, rows).splitlines()


# ------------------------------------------------------------------------- as text


def _columns() -> int:
    return max(40, shutil.get_terminal_size((COLUMNS, 24)).columns)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _columns(), subsequent_indent="  ", break_on_hyphens=False)


def _shown(configuration: Configuration, order: Sequence[str] = ()) -> dict[str, str]:
    """Resources as a person calls them: a function's vCPU by its name alone.

    Functions are in the given order, else by name.
    """
    shown = {}
    flavored = {k.rpartition(".")[0] for k in configuration.resources if k.endswith(".flavor")}
    places = {vnf: place for place, vnf in enumerate(order)}
    resources = sorted(configuration.resources.items())
    for key, value in sorted(resources, key=lambda r: places.get(r[0].rpartition(".")[0], 0)):
        vnf, _, resource = key.rpartition(".")
        if vnf in flavored and resource != "flavor":
            continue  # its flavor says it
        shown[vnf if resource in ("vcpu", "flavor") else key] = _amount(key, value)
    return shown


def _allocation(configuration: Configuration) -> str:
    resources = [f"{name} {value}" for name, value in _shown(configuration).items()]
    workload = [f"{key}={_amount(key, value)}" for key, value in configuration.workload.items()]
    return ", ".join([*resources, *workload])


def _amount(key: str, value: ParameterValue) -> str:
    if isinstance(value, str):
        return value
    return f"{100.0 * value:.4g} %" if key.endswith(".vcpu") else _figure(value)


def _interval(estimate: Estimate) -> str:
    return f"{_figure(estimate.value)} [{_figure(estimate.low)}, {_figure(estimate.high)}]"


def _figure(value: float) -> str:
    """Three digits, without powers of ten for large ones."""
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
