"""What a campaign over a fleet was begun with: the command that goes on with it need not say it
again, and must not say anything else, since all of it would be measured again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from workbench import files
from workbench.domain import codec
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.fleets import Fleet, FleetRun
from workbench.fleet.fleet_standing import FleetFolder
from workbench.log import logger
from workbench.paths import Workspace
from workbench.store.catalogue import check_name, session_path

log = logger("fleet")


def keep_begun(kept: Path, asked: FleetRun) -> None:
    """Write it down in the run's folder. Raises `OSError`."""
    files.make_folder(kept)
    files.write_own(kept / "begun.json", codec.dumps(codec.to_plain(asked)))


def as_begun(asked: FleetRun, fleet: Fleet, workspace: Workspace) -> FleetRun:
    """What is asked for; where that goes on with a session, what was not said is as it was begun.

    Hosts, priority and share are as asked for now.

    Raises
    ------
    UsageError : the session was begun with another campaign, seed, lab or pace, or by the fleet of
        another hosts file.
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
