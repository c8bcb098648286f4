"""`ls`, `show`, `compare`, `samples`, `export`, `import`, `replay`, `logs`: what was measured."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.chains import (
    InsistOption,
    KpiOption,
    ProfilesOption,
    RuleOption,
    compare_with_profiles,
)

if TYPE_CHECKING:
    from workbench.domain.configurations import ConfigurationView
    from workbench.domain.messages import Compared
    from workbench.domain.profiles import Breakpoint
    from workbench.domain.projection import SessionView
    from workbench.domain.samples import Sample
    from workbench.domain.trials import TrialsView

NameArgument = Annotated[str, typer.Argument(help="A session, a recording, or a bundle's folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


class TableFormat(StrEnum):
    """How `samples` prints."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def register(app: typer.Typer) -> None:
    app.command("ls")(list_sessions)
    app.command("show")(show)
    app.command("samples")(samples)
    app.command("compare")(compare)
    app.command("export")(export)
    app.command("import")(import_bundle)
    app.command("replay")(replay)
    app.command("logs")(logs)


def list_sessions(json: JsonOption = False) -> None:
    """List the sessions of the workspace and the recordings that came with the workbench.

    Example: workbench ls --json
    """
    from workbench.cli.context import ask, current_workspace, put, put_json, say
    from workbench.domain.codec import to_plain
    from workbench.domain.messages import ListSessions, SessionList

    reply = ask(ListSessions())
    assert isinstance(reply, SessionList)
    if json:
        put_json(to_plain(reply.sessions))
        return
    if not reply.sessions:
        say(f"no session in {current_workspace().sessions}; start one with `workbench run demo`")
        return
    rows = [
        [
            s.name,
            s.state if s.kind == "session" else s.kind,
            s.lab,
            s.campaign,
            ", ".join(s.targets),
            f"{s.samples}" + (f" ({s.invalid} invalid)" if s.invalid else ""),
            datetime.fromtimestamp(s.changed_at).strftime("%Y-%m-%d %H:%M"),
        ]
        for s in reply.sessions
    ]
    put(table(["session", "state", "lab", "campaign", "targets", "samples", "changed"], rows))


def show(
    name: NameArgument,
    json: JsonOption = False,
    export_svg: Annotated[
        Path | None, typer.Option(help="Write a screen of it as SVG instead.", dir_okay=False)
    ] = None,
    screen: Annotated[str, typer.Option(help="Which screen: live, models, events.")] = "live",
    plot: Annotated[bool, typer.Option("--plot", help="The plot of the screen alone.")] = False,
    size: Annotated[str, typer.Option(help="Columns and rows of the picture.")] = "120x36",
    theme: Annotated[str, typer.Option(help="dark, light, safe, ansi or mono.")] = "light",
) -> None:
    """Explain a session: where it was measured, what was sampled, where each target saturates.

    Example: workbench show demo-1

    Example: workbench show demo-1 --export-svg profile.svg --plot --size 100x30
    """
    from workbench.cli.context import ask, put, put_json, session_name

    if export_svg is not None:
        from workbench.cli.screen import export_picture

        export_picture(session_name(name), export_svg, screen, size, theme, plot=plot)
        return
    from workbench.domain.codec import to_plain
    from workbench.domain.messages import Viewed, ViewSession

    reply = ask(ViewSession(session_name(name)))
    assert isinstance(reply, Viewed)
    if json:
        put_json(to_plain(reply.view))
    else:
        put(explain(reply.view))


def compare(
    first: NameArgument,
    second: Annotated[
        str | None, typer.Argument(help="Another session; none of them with --chain.")
    ] = None,
    json: JsonOption = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 where a difference is visible.")
    ] = False,
    chain: Annotated[
        str | None, typer.Option(help="Compare this chain with its functions' profiles.")
    ] = None,
    kpi: KpiOption = None,
    rule: RuleOption = "",
    profiles: ProfilesOption = None,
    insist: InsistOption = False,
) -> None:
    """Say where two sessions differ, or a chain from what is predicted of it, by more than chance.

    Of two sessions only equal operating points of one host, generator and kind of load are
    compared. With --chain, a chain's samples are held against its functions' profiles; where they
    are better or worse than predicted, beyond both intervals and the host's noise, it exits with 1.

    Example: workbench compare before after

    Example: workbench compare demo-real --chain tinyproxy-haproxy
    """
    from workbench.cli.context import ask, put, put_json, session_name
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING, UsageError
    from workbench.domain.messages import Compared, CompareSessions

    if chain is not None:
        compare_with_profiles(first, second, chain, kpi, rule, profiles, insist=insist, json=json)
        return
    if second is None or kpi or rule or profiles or insist:
        raise UsageError(
            "compares two sessions, or a chain with its functions' profiles",
            where="compare",
            remedy="Give two sessions and none of --kpi, --rule, --profiles, --insist; or one and "
            "--chain",
        )
    reply = ask(CompareSessions(session_name(first), session_name(second)))
    assert isinstance(reply, Compared)
    if json:
        put_json(to_plain(reply))
    else:
        put(_comparison(reply))
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
    from workbench.cli.context import ask, execute, put, put_json, say, session_name
    from workbench.domain.errors import UsageError
    from workbench.domain.messages import Exported, ExportSession
    from workbench.domain.tables import flat_columns_and_rows

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
        reply = ask(
            ExportSession(session_name(name), format.value, str(output.expanduser().absolute()))
        )
        assert isinstance(reply, Exported)
        say(f"wrote {reply.path}")
        return
    taken = execute(_all_samples(session_name(name)))
    columns, rows = flat_columns_and_rows(taken)
    if format is TableFormat.JSON:
        put_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif format is TableFormat.CSV:
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        put(_samples_table(taken))


async def _all_samples(name: str) -> list[Sample]:
    from workbench.cli.context import any_client

    async with any_client() as client:
        return [sample async for sample in _pages(client, name)]


async def _pages(client: Any, name: str) -> AsyncIterator[Sample]:
    from workbench.domain.messages import ListSamples, SamplePage

    offset = 0
    while True:
        page = await client.ask(ListSamples(name, offset=offset))
        assert isinstance(page, SamplePage)
        for sample in page.samples:
            yield sample
        offset += len(page.samples)
        if not page.samples or offset >= page.total:
            return


def export(
    name: NameArgument,
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            help="csv, parquet, bundle; of a recommendation json, csv, md, html, kustomize, helm, "
            "compose, tosca; or a plugin's format.",
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
    """
    from workbench.cli.context import ask, put, session_name
    from workbench.domain.messages import Exported, ExportRecommendation, ExportSession

    destination = str(output.expanduser().absolute()) if output else None
    session = session_name(name)
    reply = ask(
        ExportSession(session, as_, destination)
        if recommendation is None
        else ExportRecommendation(session, recommendation, as_, destination)
    )
    assert isinstance(reply, Exported)
    put(reply.path)


def import_bundle(
    bundle: Annotated[
        Path, typer.Argument(help="A bundle's folder.", exists=True, file_okay=False)
    ],
    session: Annotated[str | None, typer.Option(help="Its name; default: the bundle's.")] = None,
) -> None:
    """Make a session of a bundle.

    Example: workbench import exports/demo-1.bundle --session demo-copy
    """
    from workbench.cli.context import ask, put
    from workbench.domain.messages import ImportBundle, RunAccepted

    reply = ask(ImportBundle(str(bundle.expanduser().absolute()), session))
    assert isinstance(reply, RunAccepted)
    put(reply.session)


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


def logs(
    lines: Annotated[int, typer.Option("-n", help="How many lines from the end.", min=1)] = 40,
    path: Annotated[bool, typer.Option("--path", help="Print where the log file is.")] = False,
) -> None:
    """Print the end of the log file.

    Example: workbench logs -n 100
    """
    from workbench.cli.context import current_workspace, put, say

    log = current_workspace().log
    if path:
        put(str(log))
        return
    try:
        text = log.read_text(errors="replace")
    except FileNotFoundError:
        say(f"nothing was logged yet in {log}")
        return
    put("\n".join(text.splitlines()[-lines:]))


# ------------------------------------------------------------------------------- as text


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Columns that line up; what Rich would print without its colours, wide or piped."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [headings, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _comparison(compared: Compared) -> str:
    """Figures side by side, visible differences first, then what else is to be known."""
    order = ("lower", "higher", "no_visible_difference", "not_comparable")
    rows = [
        [
            d.target,
            d.configuration.key,
            d.figure if d.wl is None else f"{d.figure} at {d.wl:.4g}",
            _figure(d.first),
            _figure(d.second),
            "-" if d.ratio is None else f"{d.ratio:.3f} [{d.low:.3f}, {d.high:.3f}]",
            f"{d.floor:.1%}",
            d.verdict.replace("_", " ") + (f": {d.note}" if d.note else ""),
        ]
        for d in sorted(compared.differences, key=lambda d: order.index(d.verdict))
    ]
    headings = ["target", "configuration", "figure", compared.first, compared.second]
    lines = [table([*headings, "ratio", "floor", "verdict"], rows)] if rows else []
    claimed = sum(d.verdict in ("lower", "higher") for d in compared.differences)
    judged = sum(d.ratio is not None for d in compared.differences)
    lines += ["", *(f"Note: {warning}" for warning in compared.warnings)]
    lines.append(
        f"{claimed} of {judged} figures differ visibly. A figure whose ratio is within the floor "
        "is no difference; of figures that are the same one in twenty is claimed at most."
    )
    return "\n".join(lines)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def explain(view: SessionView) -> str:
    """A session in words and tables."""
    lines = [_header(view), ""]
    targets = list(dict.fromkeys(c.target for c in view.configurations))
    for target in targets:
        own = [c for c in view.configurations if c.target == target]
        lines.append(target)
        lines.append(_configurations_table(own))
        lines.append("")
    if view.trials:
        lines += ["Measured after the campaign:", _trials_table(view.trials), ""]
    notes = [line.text for line in view.log if line.level != "info"][-10:]
    if notes:
        lines += ["Warnings and errors (the last ten):", *(f"  {note}" for note in notes), ""]
    lines.append(_ending(view))
    return "\n".join(lines)


def _header(view: SessionView) -> str:
    campaign, host = view.campaign, view.host
    parts = [f"Session {view.session}: {view.state}, {view.samples_taken} samples"]
    invalid = sum(c.invalid for c in view.configurations)
    if invalid:
        parts[0] += f" ({invalid} not valid)"
    if campaign:
        load = campaign.load.key
        parts.append(
            f"Campaign {campaign.name} ({load}), KPI {campaign.kpi}, sampler "
            f"{campaign.sampling.method}, seed {view.seed}"
            + (f", SLA {campaign.sla.text}" if campaign.sla and campaign.sla.text else "")
        )
    if host:
        parts.append(
            f"Lab {view.lab}: {host.cores} cores, {host.cpu_model}, kernel {host.kernel}, "
            f"cgroup {host.cgroup}, engine {host.engine}"
        )
    if view.noise:
        parts.append(f"Smallest visible difference of this host: {view.noise.in_words()}")
    elif host and view.lab.partition(":")[0] != "recorded":
        parts.append(
            "The noise of this host was not measured (`workbench doctor --measure`): "
            "`workbench compare` takes general figures"
        )
    parts.append(f"Lab time {view.lab_s / 60:.1f} min so far")
    return "\n".join(parts)


def _configurations_table(views: list[ConfigurationView]) -> str:
    from workbench.domain.profiles import BREAKPOINT_RULES

    rows = []
    for view in views:
        by_rule = {b.rule: b for b in view.breakpoints}
        rows.append(
            [
                allocation(view),
                view.state,
                str(view.taken) + (f" ({view.invalid} invalid)" if view.invalid else ""),
                *(breakpoint_text(by_rule.get(rule)) for rule in BREAKPOINT_RULES),
            ]
        )
    return table(["configuration", "state", "samples", *BREAKPOINT_RULES], rows)


def _trials_table(trials: list[TrialsView]) -> str:
    rows = [
        [
            one.purpose,
            ", ".join(dict.fromkeys(taken.target for taken in one.samples)) or "-",
            str(len(one.samples)) + (f" ({one.invalid} invalid)" if one.invalid else ""),
            f"{one.lab_s / 60:.1f} min",
            one.by or "-",
            one.outcome + (f" ({one.note})" if one.note else ""),
        ]
        for one in trials
    ]
    return table(["purpose", "target", "samples", "lab time", "by", "outcome"], rows)


def allocation(view: ConfigurationView) -> str:
    """The allocation in per cent of a core, and other parameters as they are."""
    texts = []
    for key, value in view.configuration.resources.items():
        vnf, _, parameter = key.rpartition(".")
        is_cpu = parameter == "vcpu" and not isinstance(value, str)
        texts.append(f"{vnf} {float(value):.4g} vCPU" if is_cpu else f"{key}={value}")
    return ", ".join(texts)


def breakpoint_text(found: Breakpoint | None) -> str:
    """`8120 [7900, 8400]`, or why there is none."""
    if found is None:
        return "-"
    if found.state != "found" or found.wl is None:
        return found.state.replace("_", " ")
    if found.low is None or found.high is None:
        return f"{found.wl:.4g}"
    return f"{found.wl:.4g} [{found.low:.4g}, {found.high:.4g}]"


def _samples_table(taken: list[Sample]) -> str:
    """What a sample was taken for, its interval beside it, and what else was carried."""
    from workbench.domain.tables import COMMON

    of_packets = any("throughput_pps" in sample.kpis for sample in taken)
    kpi, rates = (
        ("loss_pct", {"throughput_pps": "packets/s", "jitter_ms": "jitter_ms"})
        if of_packets
        else ("p95_ms", {"throughput_rps": "requests/s"})
    )
    rows = []
    for sample in taken:
        stated = sample.kpis.get(kpi)
        rows.append(
            [
                sample.point.target,
                sample.point.configuration.key,
                f"{sample.point.wl:.4g}",
                f"{stated.value:.3g} [{stated.low:.3g}, {stated.high:.3g}]" if stated else "-",
                *(_figure(sample.kpi(name)) for name in rates),
                " ".join(
                    f"{vnf}={usage.cpu_share:.0%}"
                    for vnf, usage in sample.usage.items()
                    if vnf not in COMMON
                ),
                f"{sample.throttled_share:.0%}",
                "yes" if sample.valid else sample.reason,
                sample.purpose,
                " ".join(sample.labels),
            ]
        )
    headings = ["target", "configuration", "wl", kpi, *rates.values(), "usage", "throttled"]
    return table([*headings, "valid", "purpose", "labels"], rows)


def _ending(view: SessionView) -> str:
    if view.finished:
        text = f"The run ended: {view.finished.outcome}"
        text += f" ({view.finished.note})" if view.finished.note else ""
        text += f"; {view.finished.measured_s / 60:.1f} min of lab time, "
        return text + f"{view.finished.wall_s / 60:.1f} min on the wall clock."
    if view.state == "interrupted":
        return f"Its engine ended before the run did; go on with `workbench resume {view.session}`."
    return f"The session is {view.state}."
