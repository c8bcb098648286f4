"""`discover`: what runs on this host and can be profiled as it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workbench.domain.answer_tables import AnswerTable
    from workbench.labs.attached.discovering import Candidate


def register(app: typer.Typer) -> None:
    app.command("discover")(discover)


def discover(
    names: Annotated[
        list[str] | None, typer.Argument(help="Containers, domains or process ids.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write a campaign over NAMES into this file.")
    ] = None,
    vcpu: Annotated[
        str, typer.Option(help="With --write: vCPU shares to profile at, such as 10%,20%.")
    ] = "",
    most: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000_000, help="With --write: highest load to offer, in requests/s."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Look there over SSH, user@name[:port].")] = "",
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """List what runs here and can be attached; write a campaign over it that is ready to run.

    Nothing is changed, and nothing is sent to anybody.

    Example: workbench discover --write web.yaml web
    """
    from workbench.cli.context import execute, put, put_json, say
    from workbench.cli.tables import whole
    from workbench.domain.errors import UsageError
    from workbench.labs.attached.discovering import MOST, campaign_of, discover_there
    from workbench.labs.attached.discovering import discover as look

    if bool(names) != (write is not None) or ((vcpu or most) and write is None):
        raise UsageError(
            "a campaign needs a file and the names of what it is about",
            remedy="Write `workbench discover --write FILE NAME`, or leave both out",
        )
    candidates, why = execute(discover_there(host) if host else look())
    if write is not None:
        shares = [share.strip() for share in vcpu.split(",") if share.strip()]
        text = campaign_of(names or (), candidates, str(write), shares, most or MOST)
        _write(write, text)
        say(f"{write} is written: look at url, max_load and guard, then `workbench run {write}`")
        return
    if json:
        put_json([candidate.plain() for candidate in candidates])
    else:
        put(whole(_listed(candidates)))
    if why:
        say(why if host else f"no container is listed: {why}")


def _listed(candidates: Iterable[Candidate]) -> AnswerTable:
    from workbench.domain.answer_tables import AnswerColumn, AnswerTable

    vcpu = AnswerColumn("vCPU", "g")
    return AnswerTable.of(
        ("name", "kind", "what", "ports", vcpu, "memory", "can be attached"),
        (
            (
                c.name,
                c.kind,
                c.image or c.program,
                ",".join(map(str, c.ports)) or None,
                float(c.vcpu) if c.vcpu else None,
                f"{c.memory_bytes / 2**20:.0f} MiB" if c.memory_bytes else None,
                c.why_not or "yes",
            )
            for c in candidates
        ),
    )


def _write(path: Path, text: str) -> None:
    from workbench.domain.errors import NameTaken, UsageError

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise NameTaken(
            "is there already", where=str(path), remedy="Choose another name, or remove it"
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}", where=str(path), remedy="Choose another place"
        ) from error
