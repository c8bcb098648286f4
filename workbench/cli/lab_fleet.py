"""`fleet up`, `status`, `hold`, `release`, `down`; `run --fleet`, `ls --fleet`: many lab hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.command_groups import WholeSentences
from workbench.cli.completion import sessions

if TYPE_CHECKING:
    from workbench.domain.fleets import Fleet, FleetRun
    from workbench.domain.questions import ModelsScored, ScoreModels
    from workbench.fleet.fleet_runs import FleetOutcome
    from workbench.fleet.fleet_standing import FleetStanding, HostStanding
    from workbench.fleet.leases import Lease

MOST_PRIORITY = 100
STOPPING = "Stopping: the fleet that came up for this ends, which takes a moment."
HostsArgument = Annotated[
    Path, typer.Argument(help="The hosts file.", metavar="HOSTS", dir_okay=False)
]
SchedulerOption = Annotated[
    str,
    typer.Option(
        help="Use this running Dask scheduler instead of starting one.",
        metavar="tls://HOST:PORT",
    ),
]
fleet_app = typer.Typer(
    cls=WholeSentences,
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


def read_fleet(path: Path, scheduler: str = "", *, is_started: bool = False) -> Fleet:
    from workbench.cli.context import current_workspace
    from workbench.descriptors.lab_hosts import load_fleet

    return load_fleet(
        path, workspace=current_workspace(), scheduler=scheduler, is_started=is_started
    )


@fleet_app.command()
def up(hosts: HostsArgument = Path("hosts.yaml"), scheduler: SchedulerOption = "") -> None:
    """Start the hosts of a hosts file, and keep them up until `fleet down`.

    A host that waits in the queue of Slurm is not waited for.
    With --scheduler they go to a Dask scheduler that exists, whose certificates the file names.

    Example: workbench fleet up hosts.yaml
    """
    from workbench.cli.context import current_workspace, execute, say

    needed()
    fleet = read_fleet(hosts, scheduler, is_started=True)
    from workbench.fleet.fleet_lifecycle import come_up

    standing = execute(come_up(fleet, current_workspace(), say))
    _show(standing.hosts, fleet.name)
    if any(host.state != "up" for host in standing.hosts):
        raise typer.Exit(1)


@fleet_app.command()
def status(hosts: HostsArgument = Path("hosts.yaml")) -> None:
    """Which hosts of a fleet are up, and what they measure or score.

    Example: workbench fleet status hosts.yaml
    """
    from workbench.cli.context import current_workspace, say
    from workbench.fleet.fleet_standing import FleetFolder

    needed()
    fleet = read_fleet(hosts)
    standing = FleetFolder.of(current_workspace(), fleet.name).read()
    if standing is None:
        for said in _leases(fleet.name).values():
            say(said)
        say(f"the fleet {fleet.name} is not up; {fleet.command('up')} starts it")
        _tell_who_waits(fleet.name)
        raise typer.Exit(1)
    for said in _changed(standing.fleet, fleet):
        say(said)
    _show(standing.hosts, fleet.name, _at_what(standing))
    if not standing.any_up:
        _tell_who_waits(fleet.name)


@fleet_app.command()
def down(hosts: HostsArgument = Path("hosts.yaml")) -> None:
    """End the hosts of a fleet; what they have measured is kept.

    Not while a campaign is measured with them: stop that first.

    Example: workbench fleet down hosts.yaml
    """
    from workbench.cli.context import current_workspace, execute, say

    needed()
    fleet = read_fleet(hosts)
    from workbench.fleet.fleet_lifecycle import go_down

    ended = execute(go_down(current_workspace(), fleet, say))
    say(f"the fleet {fleet.name} {'is down' if ended else 'was not up'}")


@fleet_app.command()
def hold(
    host: Annotated[str, typer.Argument(help="A host of the file.")],
    hosts: HostsArgument = Path("hosts.yaml"),
    for_: Annotated[
        str | None,
        typer.Option("--for", help="How long: 30m, 2h; default: until this command is ended."),
    ] = None,
    why: Annotated[str, typer.Option(help="What for; others read it.")] = "",
) -> None:
    """Take a host for yourself: no campaign of this workspace gives it anything meanwhile.

    What it measures now, it measures to the end. Without --for the command stays, and the host is
    free when it ends, however it ends.

    Example: workbench fleet hold lab-a --for 2h --why "new cable"
    """
    from workbench.cli.context import current_workspace, execute, say
    from workbench.cli.spans import seconds

    needed()
    fleet = read_fleet(hosts)
    _must_have(fleet, host)
    longest_s = seconds(for_, "--for")
    from workbench.cli.holding import until_interrupted
    from workbench.fleet.fleet_asking import well

    lease = _take(fleet, host, longest_s, why)
    try:
        trouble = execute(well(fleet, current_workspace(), host))
        if trouble:
            say(f"warning: {host}: {trouble}")
        say(f"{host} is {lease.told}")
        if longest_s is None:
            say("ctrl+c gives it back")
            until_interrupted()
    finally:
        if longest_s is None:
            _released(fleet, host, lease.pid)


@fleet_app.command()
def release(
    host: Annotated[str, typer.Argument(help="A host of the file.")],
    hosts: HostsArgument = Path("hosts.yaml"),
) -> None:
    """Give a host back that you hold.

    Example: workbench fleet release lab-a
    """
    from workbench.cli.context import say

    needed()
    fleet = read_fleet(hosts)
    _must_have(fleet, host)
    say(f"{host} is free" if _released(fleet, host) else f"{host} was not held")


@fleet_app.command()
def prefer(
    session: Annotated[
        str,
        typer.Argument(
            help="Session of a campaign that this fleet measures now.", autocompletion=sessions
        ),
    ],
    hosts: HostsArgument = Path("hosts.yaml"),
    priority: Annotated[
        int,
        typer.Option(
            min=-MOST_PRIORITY, max=MOST_PRIORITY, help="Higher goes first; the default is 0."
        ),
    ] = 1,
) -> None:
    """Have a campaign go before others on the same fleet, from the next shard on.

    Example: workbench fleet prefer table2-3 --priority 5
    """
    from workbench.cli.context import current_workspace, say

    needed()
    fleet = read_fleet(hosts)
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.fleet.leases import Leases

    Leases(FleetFolder.of(current_workspace(), fleet.name).leases).prefer(session, priority)
    say(f"{session} has priority {priority}")


def _changed(up: Fleet, file: Fleet) -> Iterator[str]:
    """In what a fleet that is up is not what its file says now."""
    was, now = ({host.name: host for host in fleet.hosts} for fleet in (up, file))
    told = {
        "added": [name for name in now if name not in was],
        "removed": [name for name in was if name not in now],
        "changed": [name for name in now if name in was and now[name] != was[name]],
    }
    said = [f"{', '.join(names)} {how}" for how, names in told.items() if names]
    if up.listen != file.listen:
        said.append(f"listens at {up.listen}")
    if up.ports != file.ports:
        said.append("ports changed")
    if said:
        yield (
            f"warning: the hosts file has changed since the fleet {file.name} came up "
            f"({'; '.join(said)}); {file.command('down')} and {file.command('up')} take that over"
        )


def _must_have(fleet: Fleet, host: str) -> None:
    from workbench.domain.errors import UsageError
    from workbench.domain.naming import nearest

    names = [one.name for one in fleet.hosts]
    if host not in names:
        near = nearest(host, names)
        raise UsageError(
            f"has no host {host!r}",
            where=fleet.name,
            remedy=(f"Did you mean {near}? " if near else "")
            + f"Choose one of: {', '.join(names)}",
        )


def _take(fleet: Fleet, host: str, longest_s: float | None, why: str) -> Lease:
    import os
    import time

    from workbench.cli.context import current_workspace, say
    from workbench.domain.errors import UsageError
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.fleet.leases import LONGEST_S, Lease, Leases
    from workbench.probes.process import started
    from workbench.probes.this_machine import this_machine

    if longest_s is not None and longest_s > LONGEST_S:
        raise UsageError(
            "is over 30 days",
            where="--for",
            remedy="Hold it for less time, and hold it again after that",
        )
    now = time.time()
    lease = Lease(host, _who(), now, why[:200], None if longest_s is None else now + longest_s)
    if longest_s is None:
        process = os.getpid(), started(os.getpid()), this_machine()
        lease = Lease(host, _who(), now, why[:200], None, *process)
    before = Leases(FleetFolder.of(current_workspace(), fleet.name).leases).take(lease)
    if before is not None:
        say(f"{host} was {before.told}; that is replaced")
    return lease


def _released(fleet: Fleet, host: str, pid: int = 0) -> bool:
    from workbench.cli.context import current_workspace
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.fleet.leases import Leases

    leases = Leases(FleetFolder.of(current_workspace(), fleet.name).leases)
    return leases.give_back(host, _who(), pid) is not None


def _who() -> str:
    """A person, at whatever terminal."""
    from workbench.cli.context import identity

    return identity().partition("@")[0]


def _leases(fleet: str) -> dict[str, str]:
    """Hosts that are held, in words; says which leases ended by themselves."""
    from workbench.cli.context import current_workspace, say
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.fleet.leases import Leases

    held, over = Leases(FleetFolder.of(current_workspace(), fleet).leases).held()
    for said in over:
        say(said)
    return {host: f"{host} is {lease.told}" for host, lease in held.items()}


def _tell_who_waits(fleet: str) -> None:
    """Campaigns that go on once a host is up."""
    from workbench.cli.context import current_workspace, say
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.fleet.leases import Leases

    for each in Leases(FleetFolder.of(current_workspace(), fleet).leases).measuring():
        say(f"{each.session} ({each.process}) waits until a host is up")


def _at_what(standing: FleetStanding) -> dict[str, str]:
    """What hosts measure or score now; nobody is asked where nobody uses the fleet."""
    from workbench.cli.context import current_workspace, execute, say
    from workbench.domain.errors import WorkbenchError
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.fleet.leases import Leases

    folder = FleetFolder.of(current_workspace(), standing.fleet.name)
    if not Leases(folder.leases).measuring():
        return {}
    from workbench.fleet.fleet_asking import at_what

    async def found() -> dict[str, str]:
        try:
            return await at_what(standing)
        except WorkbenchError as error:
            say(f"warning: what its hosts are at is not known: {error.what}")
            return {}

    return execute(found())


def _show(hosts: Sequence[HostStanding], fleet: str, busy: Mapping[str, str] | None = None) -> None:
    from workbench.cli.context import put
    from workbench.cli.tables import fitted, terminal_columns
    from workbench.domain.answer_tables import AnswerTable

    held = _leases(fleet)

    def row(h: HostStanding) -> tuple[str, str, int, str]:
        at = (busy or {}).get(h.name, "")
        states = (h.state, "busy" if at else "", "held" if h.name in held else "")
        held_by = held.get(h.name, "").removeprefix(f"{h.name} is ")
        notes = (at and f"busy with {at}", held_by, h.note)
        return h.name, ", ".join(filter(None, states)), h.starts, "; ".join(filter(None, notes))

    rows = tuple(map(row, hosts))
    table = AnswerTable.of(("host", "state", "starts", "note"), rows)
    put(fitted(table, terminal_columns(), ("note",)))


def list_of_hosts(hosts: Path, *, json: bool) -> None:
    """What `ls --fleet` does."""
    from workbench.cli.context import current_workspace, execute, put, put_json, say
    from workbench.cli.tables import fitted, terminal_columns
    from workbench.domain import session_tables
    from workbench.domain.codec import to_plain

    needed()
    fleet = read_fleet(hosts)
    from workbench.fleet.fleet_asking import sessions_of_hosts

    found = execute(sessions_of_hosts(fleet, current_workspace()))
    for host, known in found.items():
        for one in known if not isinstance(known, str) else ():
            for trouble in one.troubles:
                say(f"warning: {one.name} on {host}: {trouble}")
    if json:
        put_json(to_plain(found))
        return
    put(fitted(session_tables.sessions_by_host(found), terminal_columns(), ("targets", "campaign")))


@contextmanager
def _logged(fleet: Fleet) -> Iterator[None]:
    """What is logged meanwhile goes into a file of the fleet's, never to the terminal."""
    from workbench.cli.context import current_workspace
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.log import open_log, without_log

    try:
        close = open_log(FleetFolder.of(current_workspace(), fleet.name).commands_log)
    except OSError:
        close = without_log()
    try:
        yield
    finally:
        close()


def run_over(hosts: Path, asked: FleetRun, scheduler: str = "", *, screen: bool = False) -> None:
    """What `run --fleet` does, on a screen or as lines."""
    from workbench.cli.context import current_workspace, execute
    from workbench.cli.fleet_screen import watch_over

    needed()
    fleet = read_fleet(hosts, scheduler, is_started=True)
    from workbench.fleet.begun_runs import as_begun

    with _logged(fleet):
        asked = as_begun(asked, fleet, current_workspace())
        outcome = None if screen else execute(_told(fleet, asked))
    if outcome is None:
        watch_over(fleet, asked)
        return
    _tell(outcome)
    if outcome.note:
        raise typer.Exit(1)


async def _told(fleet: Fleet, asked: FleetRun) -> FleetOutcome:
    """What comes of it; Ctrl-C stops it as `s` on its screen does."""
    from workbench.cli.context import (
        current_workspace,
        identity,
        interruptible,
        say,
        started_client,
    )
    from workbench.cli.fleet_screen import keep_short, output_of
    from workbench.fleet.fleet_reports import StopAsked
    from workbench.fleet.fleet_runs import run_over_fleet

    stop, workspace = StopAsked(), current_workspace()
    output = output_of(workspace, fleet.name, asked.session) if asked.session else None

    def tell(text: str) -> None:
        if output is not None:
            keep_short(output)
        say(text)

    with interruptible(STOPPING, lambda: stop.ask(identity())):
        return await run_over_fleet(asked, fleet, workspace, tell, lambda: started_client(), stop)


def scored_over(hosts: Path, asked: ScoreModels) -> ModelsScored:
    """What `models --fleet` does."""
    from workbench.cli.context import current_workspace, execute, say, started_client

    needed()
    fleet = read_fleet(hosts, is_started=True)
    from workbench.fleet.fleet_scores import scored_by_fleet

    with _logged(fleet):
        return execute(
            scored_by_fleet(asked, fleet, current_workspace(), lambda: started_client(), say)
        )


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
        f"{duration(whole - outcome.anchor_lab_s)} of lab time"
        + (f" and {duration(outcome.anchor_lab_s)} at anchor points" if anchors else "")
        + f" over {counted(len(outcome.lab_s), 'host')}, at most {duration(most)} on one of them"
    )
    if outcome.note:
        put(outcome.note)
    put(f"See it with `workbench show {outcome.session}`")
