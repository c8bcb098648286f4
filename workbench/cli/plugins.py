"""`conformance`: does a plugin keep its contract?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workbench.conformance.running import CheckResult


def register(app: typer.Typer) -> None:
    app.command("conformance")(conformance)


def conformance(
    package: Annotated[str, typer.Argument(help="Name of an installed package.")],
    json: Annotated[bool, typer.Option("--json", help="JSON instead of lines.")] = False,
) -> None:
    """Check that models, samplers, chain rules, costs and exports of a package keep their contract.

    Every check runs in a process of its own and is given up after a minute.

    Example: workbench conformance workbench-isotonic
    """
    from workbench.cli.context import put, put_json, say
    from workbench.conformance.running import examine
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING

    verdicts = []
    for verdict in examine(package):
        verdicts.append(verdict)
        if not json:
            put(_line(verdict))
    if json:
        put_json(to_plain(verdicts))
    failed = [v for v in verdicts if not v.passed and not v.optional]
    if failed:
        say(f"{len(failed)} of {len(verdicts)} checks fail")
        raise typer.Exit(FINDING)
    say(f"{package} conforms: {sum(v.passed for v in verdicts)} checks")


def _line(verdict: CheckResult) -> str:
    state = "ok" if verdict.passed else "--" if verdict.optional else "FAILS"
    line = f"{state:<6} {verdict.group} {verdict.part}: {verdict.check.replace('_', ' ')}"
    return line + (f": {verdict.found}" if verdict.found else "")
