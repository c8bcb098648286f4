"""`run`, `resume`: start a campaign and watch it, on a screen or without one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.completion import campaigns, sessions
from workbench.cli.option_values import with_values
from workbench.cli.spans import seconds

if TYPE_CHECKING:
    from workbench.domain.fleets import FleetRun
    from workbench.domain.messages import ResumeSession, RunCampaign

DEMO, DEFAULT_SEED = "demo", 1
"""What is run where nothing else is said."""
DEMO_PACE = 20.0
"""Lab seconds per second of a simulated campaign that somebody watches."""


def within(field: str) -> Callable[[float | None], float | None]:
    """What the engine asks of that field of a request, for an option of a command."""

    def check(value: float | None) -> float | None:
        from workbench.domain import limits
        from workbench.domain.errors import UsageError

        if value is not None:
            try:
                limits.check(field, value)
            except UsageError as error:
                raise typer.BadParameter(f"{error.what}. {error.remedy}.") from None
        return value

    return check


LabOption = Annotated[
    str | None,
    typer.Option(
        help="docker, netns, vm, sim or recorded:NAME (a session, bundle or CSV; interpolate=1 and "
        "spread=0.1 may follow, after commas); default: docker where an engine answers."
    ),
]
SeedOption = Annotated[
    int, typer.Option(callback=within("seed"), help="Seed of every random choice.")
]
BUDGET = "Wall-clock time (in a simulated lab: simulated time) after which no sample is begun"
BudgetOption = Annotated[str | None, typer.Option(help=f"{BUDGET}: 30m, 2h, 90s.")]
FitOption = Annotated[
    bool,
    typer.Option(
        "--fit", help="Leave out what this host lacks; with --budget, thin the grid until it fits."
    ),
]


@dataclass(frozen=True)
class WatchedGiven:
    """How a run is watched: on a screen, as lines, over HTTP; and how fast a simulated one goes."""

    headless: Annotated[
        bool, typer.Option(help="No screen; default where there is no terminal.")
    ] = False
    json: Annotated[
        bool, typer.Option("--json", help="One event per line; implies --headless.")
    ] = False
    http: Annotated[
        str | None,
        typer.Option(help="Serve /status and /metrics at 127.0.0.1:PORT.", metavar="ADDRESS"),
    ] = None
    pace: Annotated[
        float | None,
        typer.Option(
            callback=within("pace"),
            help="Simulated lab: lab seconds per second; default: 20 on a screen, else (and with "
            "--fleet) no limit.",
        ),
    ] = None

    @property
    def screen(self) -> bool:
        return not (self.headless or self.json) and sys.stdout.isatty()

    @property
    def kept_pace(self) -> float | None:
        return self.pace if self.pace is not None else (DEMO_PACE if self.screen else None)


@dataclass(frozen=True)
class RunGiven:
    """Where a campaign runs, and how much of it."""

    lab: LabOption = None
    seed: Annotated[
        int | None,
        typer.Option(
            callback=within("seed"), help="Seed of every random choice.", show_default="1"
        ),
    ] = None
    budget: BudgetOption = None
    fit: FitOption = False
    oversubscribe: Annotated[
        bool,
        typer.Option(help="Run even if source, sink and functions need more cores than there are."),
    ] = False
    fleet: Annotated[
        Path | None,
        typer.Option(
            help="Over the lab hosts of this hosts file, on the screen Hosts; the run goes on "
            "without it (docs/fleet.md).",
            metavar="HOSTS",
        ),
    ] = None
    share: Annotated[
        int | None,
        typer.Option(min=1, help="With --fleet: at most so many hosts at the same time."),
    ] = None
    scheduler: Annotated[
        str,
        typer.Option(
            help="With --fleet: use this running Dask scheduler (tls://HOST:PORT).", metavar="URL"
        ),
    ] = ""
    priority: Annotated[
        int,
        typer.Option(
            min=-100,
            max=100,
            help="With --fleet: before or after other campaigns on it; higher goes first.",
        ),
    ] = 0


def register(app: typer.Typer) -> None:
    app.command("run")(with_values(run))
    app.command("resume")(with_values(resume))


def run(
    campaign: Annotated[
        str | None,
        typer.Argument(
            help="A campaign's name or file.", autocompletion=campaigns, show_default="demo"
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="Its name; default: the campaign and a counter.")
    ] = None,
    *,
    given: RunGiven,
    watched: WatchedGiven,
) -> None:
    """Profile the targets of a campaign.

    Example: workbench run demo --lab sim --seed 7 --headless
    """
    from workbench.domain.errors import UsageError
    from workbench.domain.messages import RunCampaign

    if given.fleet is not None:
        _refuse_beside_fleet(
            json=watched.json, http=watched.http, fit=given.fit, budget=given.budget
        )
        from workbench.cli.lab_fleet import run_over

        asked = _of_fleet(campaign, session, given, watched.pace)
        run_over(given.fleet, asked, given.scheduler, screen=watched.screen)
        return
    for name in ("scheduler", "share"):
        if getattr(given, name):
            raise UsageError("is of a fleet", where=f"--{name}", remedy="Give --fleet as well")
    if given.priority:
        raise UsageError(
            "is of campaigns that share a fleet", where="--priority", remedy="Give --fleet as well"
        )
    command = RunCampaign(
        campaign=_absolute(campaign or DEMO),
        session=session,
        lab=_absolute_recording(given.lab),
        seed=DEFAULT_SEED if given.seed is None else given.seed,
        budget_s=seconds(given.budget),
        oversubscribe=given.oversubscribe,
        fit=given.fit,
        pace=watched.kept_pace,
    )
    _start(command, watched)


def _of_fleet(
    campaign: str | None, session: str | None, given: RunGiven, pace: float | None
) -> FleetRun:
    """What a fleet is asked for, and how: a session that it goes on with says what was not."""
    from workbench.cli.context import settings
    from workbench.domain.fleets import FleetRun

    campaigns_own = {"--lab": given.lab, "--seed": given.seed, "--pace": pace}
    of_fleet = {
        "--fleet": given.fleet,
        "--scheduler": given.scheduler or None,
        "--share": given.share,
        "--priority": given.priority or None,
    }
    return FleetRun(
        _absolute(campaign or DEMO),
        session,
        _absolute_recording(given.lab),
        DEFAULT_SEED if given.seed is None else given.seed,
        pace,
        given.oversubscribe,
        priority=given.priority,
        share=given.share,
        named=campaign or "",
        options=_as_typed(campaigns_own) + ("--oversubscribe",) * given.oversubscribe,
        fleet_options=_as_typed(of_fleet),
        workspace=str(settings.workspace or ""),
    )


def _as_typed(options: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(
        word
        for name, value in options.items()
        if value is not None
        for word in (name, f"{value:.15g}" if isinstance(value, float) else str(value))
    )


def _refuse_beside_fleet(**given: object) -> None:
    """Raise `UsageError` for what a campaign over a fleet does not know yet."""
    from workbench.domain.errors import UsageError

    for name, value in given.items():
        if value:
            raise UsageError(
                "is not known to a campaign over a fleet", where=f"--{name}", remedy="Leave it out"
            )


def resume(
    session: Annotated[
        str, typer.Argument(help="An interrupted or stopped session.", autocompletion=sessions)
    ],
    budget: BudgetOption = None,
    *,
    watched: WatchedGiven,
) -> None:
    """Go on with a session where it stood; no stored point is measured again.

    Example: workbench resume demo-1
    """
    from workbench.cli.context import session_name
    from workbench.domain.messages import ResumeSession

    command = ResumeSession(
        session=session_name(session), budget_s=seconds(budget), pace=watched.kept_pace
    )
    _start(command, watched)


def _start(command: RunCampaign | ResumeSession, watched: WatchedGiven) -> None:
    if watched.screen:
        from workbench.cli.screen import open_screen

        open_screen(command=command, http=watched.http)
        return
    from workbench.cli.context import execute
    from workbench.cli.headless import run_headless

    raise typer.Exit(execute(run_headless(command, json=watched.json, http=watched.http)))


def _absolute(name: str) -> str:
    """A file's absolute path, since the engine stands in another folder; a name as it is."""
    from workbench import paths

    looks_like_file = name.endswith((".yaml", ".yml")) or "/" in name
    return str(paths.absolute(name)) if looks_like_file else name


def _absolute_recording(lab: str | None) -> str | None:
    if lab is None or not lab.startswith("recorded:"):
        return lab
    from dataclasses import replace

    from workbench.cli.context import session_name
    from workbench.labs.recorded_options import RecordedOptions

    options = RecordedOptions.parse(lab.removeprefix("recorded:"))
    return f"recorded:{replace(options, name=session_name(options.name)).text}"
