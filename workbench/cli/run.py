"""`run`, `resume`: start a campaign and watch it, on a screen or without one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.completion import CampaignArgument, sessions
from workbench.cli.spans import seconds

if TYPE_CHECKING:
    from workbench.domain.messages import ResumeSession, RunCampaign

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


SessionOption = Annotated[
    str | None, typer.Option("--session", help="Its name; default: the campaign and a counter.")
]
LabOption = Annotated[
    str | None,
    typer.Option(
        help="docker, netns, sim or recorded:NAME (a session, bundle or CSV; interpolate=1 and "
        "spread=0.1 may follow, after commas); default: docker where an engine answers."
    ),
]
SeedOption = Annotated[
    int, typer.Option(callback=within("seed"), help="Seed of every random choice.")
]
BUDGET = "Time on the clock (of a simulated lab its own) after which no sample is begun"
BudgetOption = Annotated[str | None, typer.Option(help=f"{BUDGET}: 30m, 2h, 90s.")]
FitOption = Annotated[
    bool,
    typer.Option(
        "--fit", help="Only what this host can give; with --budget, thinned until it fits that."
    ),
]
HeadlessOption = Annotated[
    bool, typer.Option(help="No screen; default where there is no terminal.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One event per line; implies --headless.")]
HttpOption = Annotated[
    str | None,
    typer.Option(help="Serve /status and /metrics at 127.0.0.1:PORT.", metavar="ADDRESS"),
]
PaceOption = Annotated[
    float | None,
    typer.Option(
        callback=within("pace"),
        help="Simulated lab: lab seconds per second; default: 20 on a screen, else no limit.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("resume")(resume)


def run(
    campaign: CampaignArgument = "demo",
    session: SessionOption = None,
    lab: LabOption = None,
    seed: SeedOption = 1,
    budget: BudgetOption = None,
    headless: HeadlessOption = False,
    json: JsonOption = False,
    http: HttpOption = None,
    pace: PaceOption = None,
    fit: FitOption = False,
    oversubscribe: Annotated[
        bool,
        typer.Option(help="Run even if source, sink and functions need more cores than there are."),
    ] = False,
    fleet: Annotated[
        str | None,
        typer.Option(
            help="Over the lab hosts of this hosts file (docs/fleet.md); with :priority=5 behind "
            "it, before campaigns of a lower one there (all have 0).",
            metavar="HOSTS",
        ),
    ] = None,
) -> None:
    """Profile the targets of a campaign.

    Example: workbench run demo --lab sim --seed 7 --headless
    """
    from workbench.domain.messages import RunCampaign

    if fleet is not None:
        _refuse_beside_fleet(json=json, http=http, fit=fit, budget=budget)
        from workbench.cli.lab_fleet import run_over, with_priority
        from workbench.domain.fleets import FleetRun

        hosts, priority = with_priority(fleet)
        asked = FleetRun(
            _absolute(campaign), session, _absolute_recording(lab), seed, pace, oversubscribe,
            priority=priority,
        )  # fmt: skip
        run_over(hosts, asked)
        return
    screen = not (headless or json) and sys.stdout.isatty()
    command = RunCampaign(
        campaign=_absolute(campaign),
        session=session,
        lab=_absolute_recording(lab),
        seed=seed,
        budget_s=seconds(budget),
        oversubscribe=oversubscribe,
        fit=fit,
        pace=pace if pace is not None else (DEMO_PACE if screen else None),
    )
    _start(command, screen=screen, json=json, http=http)


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
    headless: HeadlessOption = False,
    json: JsonOption = False,
    http: HttpOption = None,
    pace: PaceOption = None,
) -> None:
    """Go on with a session where it stood; no stored point is measured again.

    Example: workbench resume demo-1
    """
    from workbench.cli.context import session_name
    from workbench.domain.messages import ResumeSession

    screen = not (headless or json) and sys.stdout.isatty()
    command = ResumeSession(
        session=session_name(session),
        budget_s=seconds(budget),
        pace=pace if pace is not None else (DEMO_PACE if screen else None),
    )
    _start(command, screen=screen, json=json, http=http)


def _start(
    command: RunCampaign | ResumeSession, *, screen: bool, json: bool, http: str | None
) -> None:
    if screen:
        from workbench.cli.screen import open_screen

        open_screen(command=command, http=http)
        return
    from workbench.cli.context import execute
    from workbench.cli.headless import run_headless

    raise typer.Exit(execute(run_headless(command, json=json, http=http)))


def _absolute(name: str) -> str:
    """A file's absolute path, since the engine stands in another folder; a name as it is."""
    looks_like_file = name.endswith((".yaml", ".yml")) or "/" in name
    return str(Path(name).expanduser().absolute()) if looks_like_file else name


def _absolute_recording(lab: str | None) -> str | None:
    if lab is None or not lab.startswith("recorded:"):
        return lab
    from dataclasses import replace

    from workbench.cli.context import session_name
    from workbench.labs.recorded_options import RecordedOptions

    options = RecordedOptions.parse(lab.removeprefix("recorded:"))
    return f"recorded:{replace(options, name=session_name(options.name)).text}"
