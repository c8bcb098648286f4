"""`report`: a session as one HTML page, with what has to be computed for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.completion import NameArgument

if TYPE_CHECKING:
    from workbench.domain.projection import SessionView
    from workbench.exports.session_page import ChainAnswers
    from workbench.link.client import Client


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    session: NameArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File; default: SESSION.html in the workspace's exports.", dir_okay=False
        ),
    ] = None,
) -> None:
    """Write a session as one HTML page: where it was measured, curves, chains, recommendations.

    Example: workbench report chain-real --out chain-real.html
    """
    from workbench.cli.context import current_workspace, execute, put, session_name
    from workbench.domain.errors import SessionError
    from workbench.exports.session_page import write_page
    from workbench.paths import absolute

    given = absolute(out) if out else None
    view, chains = execute(_answers(session_name(session)))
    path = given or current_workspace().exports / f"{view.session}.html"
    try:
        write_page(path, view, chains)
    except OSError as error:
        raise SessionError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            remedy="Choose another file (--out)",
        ) from None
    put(str(path))


async def _answers(name: str) -> tuple[SessionView, tuple[ChainAnswers, ...]]:
    from workbench.cli.context import any_client, say_damage
    from workbench.domain.messages import ViewSession

    async with any_client() as client:
        await say_damage(client, name)
        view = (await client.ask(ViewSession(name))).view
        targets = view.campaign.targets if view.campaign else ()
        chains = [one.target.name for one in targets if len(one.target.vnfs) > 1]
        return view, tuple([await _of_chain(client, name, chain) for chain in chains])


async def _of_chain(client: Client, name: str, chain: str) -> ChainAnswers:
    """What is refused is a sentence on the page: a session need not have what it takes."""
    from workbench.cli.context import ask_aloud
    from workbench.domain.errors import WorkbenchError
    from workbench.domain.questions import ChainQuery, ChartChain, CompareChain, Diagnose
    from workbench.exports.session_page import ChainAnswers

    compared = charted = diagnosed = None
    refusals: list[str] = []
    query = ChainQuery(name, chain)
    try:
        compared = await ask_aloud(client, CompareChain(query))
        charted = await ask_aloud(client, ChartChain(query))
    except WorkbenchError as error:
        refusals.append(f"Not compared with its prediction: {error}")
    try:
        diagnosed = (await ask_aloud(client, Diagnose(name, chain))).diagnosis
    except WorkbenchError as error:
        refusals.append(f"Not diagnosed: {error}")
    return ChainAnswers(chain, compared, charted, diagnosed, tuple(refusals))
