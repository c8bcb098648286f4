"""What `counters --chain` prints for people: the chain beside what was measured of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.cli.chain_words import wrapped
from workbench.cli.tables import laid_out, terminal_columns
from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.chain_figures import allocation, figure, interval
from workbench.domain.counts import counted
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate


def chain_text(answer: dict[str, Any]) -> str:
    """What it rests on, a table by operating point, what it was worth."""
    lines = [*wrapped(answer["summary"]["sentence"]), "", *_heading(answer), ""]
    by_configuration: dict[str, list[dict[str, Any]]] = {}
    for point in answer["points"]:
        at = allocation(Configuration(**point["configuration"]))
        by_configuration.setdefault(at, []).append(point)
    for at, points in by_configuration.items():
        lines += [at, _table(answer, points), ""]
    why = dict.fromkeys(point["why"] for point in answer["points"] if point["outside"])
    if why:
        lines += [
            *wrapped(
                "* outside of what was learned: no interval, and no overload, is claimed there"
            )
        ]
        lines += [line for one in why for line in wrapped(f"  {one}")]
    lines += [line for sentence in _score(answer) for line in wrapped(sentence)]
    return "\n".join(lines)


def measured_and_predicted(answer: dict[str, Any]) -> list[dict[str, float]]:
    """Of each sample of the chain inside of what was learned: the figure of `--plot`."""
    return [
        {"measured": measured, "predicted": point["value"]["value"]}
        for point in answer["points"]
        if point["value"] is not None and not point["outside"] and not point["overloaded"]
        for measured in point["measured"]
    ]


def _heading(answer: dict[str, Any]) -> Iterator[str]:
    names = " and ".join(one["target"] for one in answer["functions"])
    yield from wrapped(
        f"{answer['chain']}, a topology not trained on: {answer['kpi']} by the rule "
        f"{answer['rule']}, of models of {names} over their own load and what others "
        "take of their cores"
    )
    for one in answer["functions"]:
        yield from wrapped(
            f"  {one['target']}: {counted(one['windows'], 'window')} in "
            f"{counted(one['samples'], 'sample')}, loads {figure(one['lowest'])} to "
            f"{figure(one['highest'])}, competitors: {', '.join(one['beside'])}"
        )


def _table(answer: dict[str, Any], points: list[dict[str, Any]]) -> str:
    unit = f", {answer['unit']}" if answer["unit"] else ""
    table = AnswerTable.of(
        ("load", f"{answer['kpi']}{unit} [95 %]", AnswerColumn("with cores of their own", spare=1),
         AnswerColumn("measured", wraps=True),
         AnswerColumn("others take of its cores", wraps=True)),
        ((figure(point["wl"]), *_row(point)) for point in points),
    )  # fmt: skip
    return laid_out(table, terminal_columns())


def _row(point: dict[str, Any]) -> tuple[str, ...]:
    told = None if point["value"] is None else Estimate(**point["value"])
    if told is None or point["outside"]:  # outside no interval is claimed
        value, slow = f"{'?' if told is None else figure(told.value)} *", ""
    else:
        value = interval(told)
        slow = f" {point['overloaded']} is overloaded" if point["overloaded"] else ""
    apart = "" if point["apart"] is None else figure(point["apart"]["value"])
    taken = (f"{one['vnf']} {100 * one['share']['value']:.0f} %" for one in point["neighbours"])
    return (
        f"{value}{slow}",
        apart,
        ", ".join(map(figure, point["measured"])),
        ", ".join(taken),
    )


def _score(answer: dict[str, Any]) -> Iterator[str]:
    score = answer["score"]
    if score is None:
        yield "nobody has measured this chain in the session: nothing is held against it"
        return
    samples = counted(score["samples"], "sample")
    yield (
        f"of {samples} of the chain {score['outside']} at points outside of what was learned, "
        f"{score['overloaded']} where a function is overloaded and a response time grows for as "
        "long as one watches"
    )
    if score["coverage"] is not None:
        yield (
            f"of the other {score['judged']}: median error {100 * score['median_error']:.1f} %, "
            f"{100 * score['coverage']:.0f} % within their interval (median factor "
            f"{1.0 + score['width']:.2g} end to end); with cores of their own the median error "
            f"would be {100 * score['apart_error']:.1f} %"
        )
