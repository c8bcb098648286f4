"""What a campaign over a fleet was begun with: the command that goes on with it need not say it
again, and must not say anything else, since all of it would be measured again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from workbench import files, locks
from workbench.domain import codec
from workbench.domain.campaign import Campaign
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.fleets import Fleet, FleetRun
from workbench.domain.messages import Viewed, ViewSession
from workbench.fleet.fleet_standing import FleetError, FleetFolder
from workbench.log import logger
from workbench.paths import Workspace
from workbench.store.catalogue import check_name, session_path

POLL_S = 0.1
LONGEST_S = 120.0
"""Until another command has begun its session: it may start the engine for that."""

log = logger("fleet")
Asks = Callable[[ViewSession], Awaitable[Viewed]]


@asynccontextmanager
async def only_one_begins(folder: FleetFolder) -> AsyncIterator[None]:
    """Nobody else begins a run of that fleet meanwhile: two that are given the same name would
    write over what the other is begun with. Raises `FleetError` after a while."""
    lock = folder.beginning
    try:
        async with asyncio.timeout(LONGEST_S):
            while not lock.take(locks.own(folder.root)):  # noqa: ASYNC110 - it rings no bell
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        who = f"process {holder.pid}" if (holder := lock.holder()) else "another process"
        raise FleetError(
            f"another run is still being begun, by {who}",
            where=folder.root.name,
            remedy="Try again later, or end that process",
        ) from None
    except OSError as error:
        raise _not_kept(folder.root, error) from error
    try:
        yield
    finally:
        lock.free()


def must_keep_begun(kept: Path, asked: FleetRun) -> None:
    """Write it down in the run's folder, before anything is measured. Raises `FleetError` where it
    cannot be kept, nor was before: nobody could say later what goes on with the run."""
    try:
        keep_begun(kept, asked)
    except OSError as error:
        before = _read(kept)
        if before is None or before.id != asked.id:
            raise _not_kept(kept, error) from error


def keep_begun(kept: Path, asked: FleetRun) -> None:
    """The same. Raises `OSError`."""
    files.make_folder(kept)
    files.write_own(kept / "begun.json", codec.dumps(codec.to_plain(asked)))


def new_id() -> str:
    """Of a run that nobody has begun."""
    return token_hex(8)


async def id_of_run(
    asked: FleetRun, campaign: Campaign, name: str, kept: Path, asks: Asks | None
) -> str:
    """By what its hosts know the shards of a run: as it is kept with what the run was begun with;
    where that is lost, as its session says.

    Parameters
    ----------
    kept : the run's folder.
    asks : how the session is looked at; None: where nothing is kept the run is a new one.

    Raises
    ------
    UsageError : all that is left of the run is its session, of another campaign or seed.
    """
    begun = _read(kept)
    if begun is not None:
        return begun.id
    if asks is None:
        return new_id()
    view = (await asks(ViewSession(name))).view
    same = (view.campaign and _plain(view.campaign), view.seed) == (_plain(campaign), asked.seed)
    if view.fleet is not None and not same:
        raise UsageError(
            "was begun with another campaign or seed than these",
            where=name,
            remedy=f"Give the whole command that `workbench show {name}` tells, or choose another "
            "--session",
        )
    return view.fleet.run if view.fleet is not None else ""


def _plain(campaign: Campaign) -> bytes:
    return codec.dumps(codec.to_plain(campaign))


def _not_kept(place: Path, error: OSError) -> FleetError:
    return FleetError(
        f"what the run is begun with cannot be kept: {error.strerror or error}",
        where=str(place),
        remedy="Make room there, and let it be read and written; nothing was measured",
    )


def as_begun(asked: FleetRun, fleet: Fleet, workspace: Workspace) -> FleetRun:
    """What is asked for; where that goes on with a session, what was not said is as it was begun.

    Hosts, priority and share are as asked for now.

    Raises
    ------
    UsageError : the session was begun with another campaign, seed, lab or pace, or by the fleet of
        another hosts file; or no campaign is named, and nothing says what it was begun with.
    """
    name = asked.session
    if name is None:
        return asked
    check_name(name)
    if not session_path(workspace, name).exists():
        return asked
    begun = _read(FleetFolder.of(workspace, fleet.name).run(name))
    if begun is None:
        _refuse_other_fleet(asked, name, workspace)
        if not asked.named:
            raise UsageError(
                "no campaign is named, and nothing is kept here of what it was begun with",
                where=name,
                remedy="Choose another --session; to go on with one that a fleet has not measured "
                f"whole, give the whole command that `workbench show {name}` tells",
            )
        return asked
    differ = list(_contradictions(begun, asked))
    if differ:
        raise UsageError(
            f"was begun with {', '.join(differ)}",
            where=name,
            remedy=f"Go on with `{begun.command(name)}`, or choose another --session",
        )
    return replace(
        begun,
        session=name,
        priority=asked.priority,
        share=asked.share,
        fleet_options=asked.fleet_options,
        workspace=asked.workspace,
    )


def _contradictions(begun: FleetRun, asked: FleetRun) -> list[str]:
    """What was said now and is not what was said then, in words."""
    found = []
    if asked.named and not _same_campaign(asked.campaign, begun.campaign):
        found.append(f"campaign {begun.named or begun.campaign} and not {asked.named}")
    if "--seed" in asked.options and asked.seed != begun.seed:
        found.append(f"seed {begun.seed} and not {asked.seed}")
    for option, then, now in (
        ("--lab", begun.lab, asked.lab),
        ("--pace", begun.pace, asked.pace),
    ):
        if now is not None and now != then:
            found.append(f"{option} {then}" if then is not None else f"no {option}")
            found[-1] += f" and not {now}"
    if asked.oversubscribe and not begun.oversubscribe:
        found.append("no --oversubscribe")
    return found


def _same_campaign(one: str, other: str) -> bool:
    """Of the same name, or the same file by whatever path."""
    with suppress(OSError):
        return one == other or Path(one).samefile(other)
    return False


def _refuse_other_fleet(asked: FleetRun, name: str, workspace: Workspace) -> None:
    """Its hosts have what was measured, and those of another fleet would measure it again."""
    for folder in sorted(FleetFolder.of(workspace, "any").root.parent.glob("*/")):
        begun = _read(FleetFolder(folder).run(name))
        if begun is not None:
            raise UsageError(
                f"was begun with {' '.join(begun.fleet_options)} and not "
                f"{' '.join(asked.fleet_options)}",
                where=name,
                remedy=f"Go on with `{begun.command(name)}`, or choose another --session",
            )


def _read(kept: Path) -> FleetRun | None:
    try:
        return codec.from_plain(codec.loads((kept / "begun.json").read_bytes()), FleetRun)
    except OSError:
        return None
    except WorkbenchError as error:
        log.warning("what a run was begun with cannot be read", run=kept.name, why=str(error))
        return None
