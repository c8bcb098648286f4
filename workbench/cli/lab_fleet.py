"""`fleet up`, `fleet status`, `fleet down`; `run --fleet`: one campaign over many lab hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workbench.domain.fleets import Fleet, FleetRun
    from workbench.fleet.fleet_runs import FleetOutcome
    from workbench.fleet.fleet_standing import HostStanding

HostsArgument = Annotated[
    Path, typer.Argument(help="The hosts file.", metavar="HOSTS", dir_okay=False)
]
fleet_app = typer.Typer(
    help="Lab hosts that share a campaign (extra `fleet`): start, look at and end them.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    app.add_typer(fleet_app, name="fleet")


def needed() -> None:
    """Raise `UsageError` with the pip command where the extra is missing."""
    from importlib.util import find_spec

    from workbench.domain.errors import UsageError

    try:
        found = find_spec("distributed")
    except ValueError:  # somebody put something else in its place
        found = None
    if found is None:
        raise UsageError(
            "a fleet is kept by the package 'dask[distributed]', which is not installed",
            remedy="Install it with `pip install 'vnf-workbench[fleet]'`, here and on every host",
        )


def read_fleet(path: Path) -> Fleet:
    from workbench.cli.context import current_workspace
    from workbench.descriptors.lab_hosts import load_fleet

    return load_fleet(path, workspace=current_workspace())


@fleet_app.command()
def up(hosts: HostsArgument = Path("hosts.yaml")) -> None:
    """Start the hosts of a hosts file, and keep them up until `fleet down`.

    Example: workbench fleet up hosts.yaml
    """
    from workbench.cli.context import current_workspace, execute, say

    needed()
    fleet = read_fleet(hosts)
    from workbench.fleet.fleet_runs import come_up

    standing = execute(come_up(fleet, current_workspace(), say))
    _show(standing.hosts)
    if any(host.state != "up" for host in standing.hosts):
        raise typer.Exit(1)


@fleet_app.command()
def status(hosts: HostsArgument = Path("hosts.yaml")) -> None:
    """Which hosts of a fleet are up.

    Example: workbench fleet status hosts.yaml
    """
    from workbench.cli.context import current_workspace, say
    from workbench.fleet.fleet_standing import FleetFolder

    needed()
    fleet = read_fleet(hosts)
    standing = FleetFolder.of(current_workspace(), fleet.name).read()
    if standing is None:
        say(f"the fleet {fleet.name} is not up; `workbench fleet up {hosts}` starts it")
        raise typer.Exit(1)
    _show(standing.hosts)


@fleet_app.command()
def down(hosts: HostsArgument = Path("hosts.yaml")) -> None:
    """End the hosts of a fleet; what they have measured is kept.

    Example: workbench fleet down hosts.yaml
    """
    from workbench.cli.context import current_workspace, execute, say

    needed()
    fleet = read_fleet(hosts)
    from workbench.fleet.fleet_runs import go_down

    ended = execute(go_down(current_workspace(), fleet.name))
    say(f"the fleet {fleet.name} {'is down' if ended else 'was not up'}")


def _show(hosts: Sequence[HostStanding]) -> None:
    from workbench.cli.context import put
    from workbench.cli.tables import table

    rows = [[h.name, h.state, str(h.starts), h.note] for h in hosts]
    put(table(["host", "state", "starts", "note"], rows))


def run_over(hosts: Path, asked: FleetRun) -> None:
    """What `run --fleet` does."""
    from workbench.cli.context import current_workspace, execute, say

    needed()
    fleet = read_fleet(hosts)
    from workbench.fleet.fleet_runs import run_over_fleet

    outcome = execute(run_over_fleet(asked, fleet, current_workspace(), say))
    _tell(outcome)
    if outcome.note:
        raise typer.Exit(1)


def _tell(outcome: FleetOutcome) -> None:
    from workbench.cli.context import put
    from workbench.domain.counts import counted
    from workbench.domain.durations import duration
    from workbench.domain.fleets import told

    if outcome.compared is not None:
        put(told(outcome.compared))
    most = max(outcome.lab_s.values())
    whole = sum(outcome.lab_s.values())
    anchors = outcome.anchor_samples
    put(
        f"{outcome.session}: {counted(outcome.samples, 'sample')}"
        + (f" and {anchors} at anchor points" if anchors else "")
        + f" in {duration(outcome.wall_s)}; "
        f"{duration(whole)} of lab time over {counted(len(outcome.lab_s), 'host')}, the longest "
        f"{duration(most)}"
    )
    if outcome.note:
        put(f"not measured: {outcome.note}")
    put(f"See it with `workbench show {outcome.session}`")
