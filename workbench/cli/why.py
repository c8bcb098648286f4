"""`why`: the cause of what an operating point shows, its evidence, rivals, what to do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.completion import NameArgument, chains

if TYPE_CHECKING:
    from workbench.domain.diagnoses import Diagnosis, Verdict

DIAGNOSIS = (
    "target", "configuration", "wl", "sample", "sentence", "measured_ms", "alone_ms", "verdicts",
    "rows", "bounds", "agree", "samples", "missing", "failed", "suspects", "suspects_note",
    "experiments",
)  # fmt: skip
"""The fields of `why --json`."""


def register(app: typer.Typer) -> None:
    app.command("why")(why)


def why(
    session: NameArgument,
    chain: Annotated[
        str | None,
        typer.Option(
            help="A target of the campaign; default: the chain that is slowest beside its "
            "functions alone.",
            autocompletion=chains,
        ),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            help='Load and workload, as "rate=20/s"; default: where it takes longest beside its '
            "functions alone."
        ),
    ] = "",
    sample: Annotated[str, typer.Option(help="A sample's id.")] = "",
    json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Why a chain or function is as slow as it is: the cause, its evidence, what to do.

    Example: workbench why chain-real
    """
    from workbench.cli.context import ask_patiently, put, put_json, say, session_name
    from workbench.domain.codec import to_plain
    from workbench.domain.questions import Diagnose

    reply = ask_patiently(Diagnose(session_name(session), chain, at, sample))
    if json:
        plain = to_plain(reply.diagnosis)
        put_json({name: plain[name] for name in DIAGNOSIS})
    else:
        put(explained(reply.diagnosis))
    for note in reply.notes:
        say(note)


def explained(found: Diagnosis) -> str:
    """The sentence first, then where, the verdicts with their evidence, and all figures."""
    from workbench.cli.chain_words import allocation, figure, wrapped
    from workbench.cli.tables import lines_of
    from workbench.domain import diagnosis_tables as tables
    from workbench.domain.deviations import deviation_lines
    from workbench.domain.diagnosis_tables import experiment

    where = f"{found.target} at {figure(found.wl)}, {allocation(found.configuration)}"
    lines = wrapped(f"{found.sentence}.")
    if found.answered:
        lines += wrapped(f"What to do: {found.verdicts[0].remedy}.")
    lines += ["", *wrapped(f"{where}: {_times(found)}.")]
    for number, verdict in enumerate(found.verdicts, 1):
        lines += ["", *_verdict(number, verdict, found)]
    if found.experiments:
        lines += ["", "To find out, measure (f5 on the screen Why measures the first):"]
        lines += [line for one in found.experiments for line in _indented(f"- {experiment(one)}")]
    for answer in (tables.bounds(found.bounds), tables.evidence(found.rows)):
        if answer.rows:
            lines += ["", *lines_of(answer)]
    if said := deviation_lines(found):
        lines += ["", "Statistics:", *(line for one in said for line in _indented(f"- {one}"))]
    for reason, names in tables.not_judged(found.missing).items():
        lines += wrapped(f"Not judged by {tables.counters_named(names)}: {reason}.")
    return "\n".join(lines).rstrip()


def _times(found: Diagnosis) -> str:
    from workbench.cli.chain_words import figure

    if found.measured_ms is None:
        return "no response time"
    said = f"{figure(found.measured_ms)} ms on average"
    if found.alone_ms is None or found.departure is None:
        return said
    return (
        f"{said}, its functions alone {figure(found.alone_ms)} ms together "
        f"({found.departure:.1f} times as long)"
    )


def _verdict(number: int, verdict: Verdict, found: Diagnosis) -> list[str]:
    from workbench.cli.chain_words import wrapped
    from workbench.domain.diagnosis_tables import how_often_right

    often = ""
    if number == 1 and found.samples > 1:
        often = f", in {found.agree} of {found.samples} samples"
    lines = wrapped(
        f"{number}. {verdict.cause} at {verdict.component} (strength {verdict.strength:.0%}{often})"
    )
    said = [f"- {evidence}" for evidence in verdict.evidence]
    said.append(f"- {how_often_right(verdict)}")
    if number > 1:
        said.insert(0, f"- {verdict.sentence}")
    if number > 1 or not found.answered:
        said.append(f"To do: {verdict.remedy}.")
    said.append(f"Rival: {verdict.rival}; what tells them apart is {verdict.tells_apart}.")
    return lines + [line for text in said for line in _indented(text)]


def _indented(text: str) -> list[str]:
    from workbench.cli.chain_words import columns

    wrapped = textwrap.wrap(text, columns() - 3, subsequent_indent="  ", break_on_hyphens=False)
    return [f"   {line}" for line in wrapped]
