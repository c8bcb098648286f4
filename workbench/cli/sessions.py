"""`ls`, `show`, `compare`, `samples`, `export`, `import`, `replay`, `logs`: what was measured."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from workbench.cli.chains import ChainGiven, compare_with_profiles
from workbench.cli.completion import (
    NameArgument,
    export_formats,
    sessions,
    sessions_and_recordings,
)
from workbench.cli.option_values import refuse_ignored, with_values
from workbench.cli.profile_options import ProfilesGiven
from workbench.cli.session_words import comparison, explain
from workbench.cli.signed_bundles import SignersOption, say_who_signed
from workbench.cli.tables import fitted, lines_of, terminal_columns

if TYPE_CHECKING:
    from workbench.domain.samples import Sample

JsonOption = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


class ListsFormats(TyperCommand):
    """A command whose help ends with the formats that are registered, plug-ins' too."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from workbench import plugins

        super().format_epilog(ctx, formatter)
        with formatter.section("Of a session"):
            formatter.write_dl(list(plugins.meanings("exports").items()))
        with formatter.section("Of a recommendation"):
            formatter.write_dl(list(plugins.meanings("recommendation_exports").items()))


class TableFormat(StrEnum):
    """How `samples` prints."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def register(app: typer.Typer) -> None:
    app.command("ls")(list_sessions)
    app.command("show")(with_values(show))
    app.command("samples")(samples)
    app.command("compare")(with_values(compare, without=("session",)))
    app.command("export", cls=ListsFormats)(export)
    app.command("import")(import_recording)
    app.command("rescue")(rescue)
    app.command("replay")(replay)
    app.command("attach")(attach)
    app.command("logs")(logs)


def list_sessions(
    json: JsonOption = False,
    fleet: Annotated[
        Path | None,
        typer.Option(help="What lies on the lab hosts of this hosts file.", metavar="HOSTS"),
    ] = None,
) -> None:
    """List the sessions of the workspace and the recordings that came with the workbench.

    Example: workbench ls --json

    Example: workbench ls --fleet hosts.yaml
    """
    if fleet is not None:
        from workbench.cli.lab_fleet import list_of_hosts

        list_of_hosts(fleet, json=json)
        return
    from workbench.cli.context import ask, current_workspace, put, put_json, say
    from workbench.domain import session_tables
    from workbench.domain.codec import to_plain
    from workbench.domain.messages import ListSessions

    reply = ask(ListSessions())
    for s in reply.sessions:
        for trouble in s.troubles:
            say(f"warning: {s.name}: {trouble}")
    if json:
        put_json(to_plain(reply.sessions))
        return
    if not reply.sessions:
        say(f"no session in {current_workspace().sessions}; start one with `workbench run demo`")
        return
    answer = session_tables.sessions(reply.sessions)
    put(fitted(answer, terminal_columns(), ("targets", "campaign", "lab")))


@dataclass(frozen=True)
class PictureGiven:
    """A picture of a screen instead of text."""

    export_svg: Annotated[
        Path | None, typer.Option(help="Write a screen of it as SVG instead.", dir_okay=False)
    ] = None
    screen: Annotated[str, typer.Option(help="Which screen: live, models, events.")] = "live"
    plot: Annotated[bool, typer.Option("--plot", help="The plot of the screen alone.")] = False
    size: Annotated[str, typer.Option(help="Columns and rows of the picture.")] = "120x36"
    theme: Annotated[str, typer.Option(help="dark, light, safe, ansi or mono.")] = "light"


def show(
    name: NameArgument,
    json: JsonOption = False,
    logs: Annotated[
        bool, typer.Option("--logs", help="What its functions wrote instead, line by line.")
    ] = False,
    *,
    picture: PictureGiven,
) -> None:
    """Explain a session: where it was measured, what was sampled, where each target saturates.

    Example: workbench show demo-1

    Example: workbench show demo-1 --logs

    Example: workbench show demo-1 --export-svg profile.svg --plot --size 100x30
    """
    from workbench.cli.context import ask, put, put_json, session_name

    if picture.export_svg is not None:
        from workbench.cli.screen import export_picture

        export_picture(
            session_name(name),
            picture.export_svg,
            picture.screen,
            picture.size,
            picture.theme,
            plot=picture.plot,
        )
        return
    refuse_ignored(picture, "screen", "plot", "size", "theme", remedy="Add --export-svg FILE")
    if logs:
        from workbench.cli.session_logs import put_logs

        put_logs(session_name(name), json=json)
        return
    from workbench.domain.codec import to_plain
    from workbench.domain.messages import ViewSession

    reply = ask(ViewSession(session_name(name)))
    if json:
        put_json(to_plain(reply.view))
    else:
        put(explain(reply.view))


def compare(
    first: NameArgument,
    second: Annotated[
        str | None,
        typer.Argument(
            help="Another session; none of them with --chain.",
            autocompletion=sessions_and_recordings,
        ),
    ] = None,
    json: JsonOption = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 where a difference is visible.")
    ] = False,
    *,
    asked: ChainGiven,
    given: ProfilesGiven,
) -> None:
    """Say where two sessions differ, or a chain from what is predicted of it, by more than chance.

    Of two sessions only equal operating points of one host, generator and kind of load are
    compared. With --chain, a chain's samples are held against its functions' profiles; where they
    are better or worse than predicted, beyond both intervals and the host's noise, it exits with 1.

    Example: workbench compare before after

    Example: workbench compare demo-real --chain tinyproxy-haproxy
    """
    from workbench.cli.context import ask_patiently, put, put_json, session_name
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING, UsageError
    from workbench.domain.messages import CompareSessions

    if asked.chain is not None:
        compare_with_profiles(first, second, asked.chain, asked, given, json=json)
        return
    if second is None or asked != ChainGiven() or given != ProfilesGiven():
        raise UsageError(
            "compares two sessions, or a chain with its functions' profiles",
            where="compare",
            remedy="Give two sessions and none of --kpi, --rule, --shared-cores, --profiles, "
            "--signers, --insist; or one and --chain",
        )
    names = session_name(first), session_name(second)
    reply = ask_patiently(CompareSessions(*names), *names)
    if json:
        put_json(to_plain(reply))
    else:
        put(comparison(reply))
    if exit_code and any(d.verdict in ("lower", "higher") for d in reply.differences):
        raise typer.Exit(FINDING)


def samples(
    name: NameArgument,
    format: Annotated[TableFormat, typer.Option(help="How to print.")] = TableFormat.TABLE,
    output: Annotated[
        Path | None, typer.Option(help="File to write; Parquet needs one.", dir_okay=False)
    ] = None,
) -> None:
    """Print the samples of a session, one row each.

    Example: workbench samples demo-1 --format csv > demo-1.csv
    """
    from workbench.cli.context import (
        ask_patiently,
        execute,
        harmless,
        put,
        put_json,
        say,
        session_name,
    )
    from workbench.domain import session_tables
    from workbench.domain.errors import UsageError
    from workbench.domain.messages import ExportSession
    from workbench.domain.tables import flat_columns_and_rows
    from workbench.paths import absolute

    if format is TableFormat.PARQUET or output is not None:
        if output is None:
            raise UsageError(
                "Parquet is not for a terminal",
                where="--format parquet",
                remedy="Add --output FILE",
            )
        if format not in (TableFormat.PARQUET, TableFormat.CSV):
            raise UsageError(
                f"--output writes csv or parquet, not {format}",
                remedy="Redirect the output instead",
            )
        reply = ask_patiently(
            ExportSession(session_name(name), format.value, str(absolute(output)))
        )
        for warning in reply.warnings:
            say(f"warning: {warning}")
        say(f"wrote {reply.path}")
        return
    taken = execute(_all_samples(session_name(name)))
    columns, rows = flat_columns_and_rows(taken)
    if format is TableFormat.JSON:
        put_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif format is TableFormat.CSV:
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        told = text.getvalue()  # as it is for a program; a terminal would obey what it holds
        sys.stdout.write(harmless(told) if sys.stdout.isatty() else told)
    else:
        put("\n".join(lines_of(session_tables.samples(taken))))


async def _all_samples(name: str) -> tuple[Sample, ...]:
    from workbench.cli.context import any_client, say
    from workbench.link.paging import all_samples

    async with any_client() as client:
        taken = await all_samples(client, name)
    for warning in taken.warnings:
        say(f"warning: {warning}")
    return taken.samples


def export(
    name: NameArgument,
    as_: Annotated[
        str,
        typer.Option(
            "--as", help="A format: they are listed below.", autocompletion=export_formats
        ),
    ],
    recommendation: Annotated[
        str | None, typer.Option(help="A stored recommendation of the session: r1.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Default: the workspace's exports folder.")
    ] = None,
) -> None:
    """Write a session, or a recommendation of it, in a format for others.

    Example: workbench export demo-1 --as bundle

    Example: workbench export demo-1 --as curves
    """
    from workbench.cli.context import ask_patiently, put, say, session_name
    from workbench.domain.messages import ExportRecommendation, ExportSession
    from workbench.paths import absolute

    if recommendation is None:
        _must_be_of_sessions(as_)
    destination = str(absolute(output)) if output else None
    session = session_name(name)
    reply = ask_patiently(
        ExportSession(session, as_, destination)
        if recommendation is None
        else ExportRecommendation(session, recommendation, as_, destination)
    )
    for warning in reply.warnings:
        say(f"warning: {warning}")
    put(reply.path)


def _must_be_of_sessions(format: str) -> None:
    """Raises `UsageError` where only recommendations have that format."""
    from workbench import plugins
    from workbench.domain.errors import UsageError

    of_sessions = plugins.names("exports")
    if format not in of_sessions and format in plugins.names("recommendation_exports"):
        raise UsageError(
            f"{format} is a format of recommendations, not of sessions",
            where="--as",
            remedy=f"Name one (--recommendation r1), or choose: {', '.join(of_sessions)}",
        )


def import_recording(
    bundle: Annotated[
        Path, typer.Argument(help="A bundle's folder, or a CSV file.", exists=True, metavar="PATH")
    ],
    session: Annotated[
        str | None, typer.Option(help="Its name; default: the bundle's or file's.")
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            help="Of a CSV: the YAML file, or the name of a mapping, that says what its columns "
            "are here."
        ),
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=2,
            help="Of a CSV without intervals or repetitions: log-sd between repetitions.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Of a CSV: say what it would become, and import nothing."),
    ] = False,
    signers: SignersOption = None,
) -> None:
    """Make a session of a bundle, or of somebody else's table (docs/importing.md).

    Example: workbench import exports/demo-1.bundle --session demo-copy

    Example: workbench import theirs.csv --mapping theirs.yaml --dry-run
    """
    from workbench.cli.context import ask_patiently, put
    from workbench.cli.importing import import_table, must_make_a_session
    from workbench.domain.errors import UsageError
    from workbench.domain.messages import ImportBundle
    from workbench.paths import absolute

    if mapping is None:
        must_make_a_session(bundle)
    if bundle.is_file():
        if signers is not None:
            raise UsageError("is no bundle; --signers is for bundles", where=str(bundle))
        import_table(bundle, session, mapping, spread, dry_run=dry_run)
        return
    if mapping is not None or spread is not None or dry_run:
        raise UsageError(
            "is a bundle; --mapping, --spread and --dry-run are for CSV files", where=str(bundle)
        )
    if signers is not None:
        say_who_signed(bundle, signers)
    reply = ask_patiently(ImportBundle(str(absolute(bundle)), session))
    put(reply.session)


def rescue(
    name: Annotated[
        str, typer.Argument(help="A session that is being measured.", autocompletion=sessions)
    ],
    to: Annotated[
        Path | None, typer.Option(help="Folder; default: where it was before.", file_okay=False)
    ] = None,
) -> None:
    """Write a session again whose file was replaced or removed while it is measured.

    Its run waits meanwhile and holds everything in memory; it goes on with the file that is
    written.

    Example: workbench rescue demo-1 --to /tmp
    """
    from workbench.cli.context import ask, current_workspace, put
    from workbench.domain.housekeeping import RescueSession
    from workbench.paths import absolute

    folder = absolute(to) if to else None
    reply = ask(RescueSession(name, str(folder) if folder else None))
    put(str((folder or current_workspace().sessions) / f"{reply.session}.duckdb"))


def replay(
    name: NameArgument,
    speed: Annotated[float, typer.Option(min=0.1, max=1000, help="Times real time.")] = 10.0,
) -> None:
    """Play a session again on the live screen.

    Example: workbench replay demo-1 --speed 60
    """
    from workbench.cli.context import session_name
    from workbench.cli.screen import open_screen

    open_screen(session=session_name(name), replay_speed=speed)


def attach(
    name: Annotated[
        str | None, typer.Argument(help="A session to open.", autocompletion=sessions)
    ] = None,
) -> None:
    """Open the screens of the engine that runs in this workspace; none is started.

    Example: workbench --workspace lab attach demo-1
    """
    from workbench.cli.context import current_workspace, engine_answers, execute, session_name
    from workbench.cli.screen import open_screen
    from workbench.domain.errors import EngineError

    if not execute(engine_answers()):
        raise EngineError(
            "no engine runs in it",
            where=f"workspace {current_workspace().root}",
            remedy="`workbench` starts one, and `workbench run CAMPAIGN --headless` a campaign",
        )
    open_screen(session=session_name(name) if name else None)


def logs(
    lines: Annotated[int, typer.Option("-n", help="How many lines from the end.", min=1)] = 40,
    path: Annotated[bool, typer.Option("--path", help="Print where the log file is.")] = False,
) -> None:
    """Print the end of the log file.

    Example: workbench logs -n 100
    """
    from workbench.cli.context import current_workspace, put, say
    from workbench.domain.errors import UsageError

    log = current_workspace().log
    if path:
        put(str(log))
        return
    try:
        text = log.read_text(errors="replace")
    except FileNotFoundError:
        say(f"nothing was logged yet in {log}")
        return
    except OSError as error:
        raise UsageError(
            f"the log cannot be read: {error.strerror}",
            where=str(log),
            remedy="Make it a file that you may read, or remove it",
        ) from None
    put("\n".join(text.splitlines()[-lines:]))
