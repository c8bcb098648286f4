"""How a campaign is cut into shards for a fleet: once, and kept until all of it is measured.

Where a cut follows from how many hosts there are, a command that goes on with another hosts file
would cut otherwise, under other keys, and measure again what is finished.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workbench import files
from workbench.descriptors.loading import LoadedCampaign
from workbench.domain import codec
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.fleets import Fleet, FleetRun, Shard, ShardOrder
from workbench.fleet.ledger import Ledger
from workbench.log import logger
from workbench.sampling.shards import (
    ShardPiece,
    anchor,
    beginning,
    cut_again,
    of_run,
    planned_in_one_place,
    split,
    whole,
)

IN_VAIN = "anchors.json"

log = logger("fleet")


@dataclass(frozen=True)
class CampaignCut:
    """The shards of a campaign, by what each holds.

    Attributes
    ----------
    of : digest of the campaign, lab and seed that were cut.
    in_one_place : whether all hosts are planned for together, so that shards are beginnings.
    pieces : what each shard holds, in the order in which they are handed out.
    """

    of: str
    in_one_place: bool
    pieces: tuple[ShardPiece, ...]


@dataclass(frozen=True)
class CutOrders:
    """What a fleet is to measure.

    Attributes
    ----------
    cut : that it follows from.
    shards : for any host.
    own : of each host, by name, its anchor points; those of hosts that have measured for this run
        and are in the hosts file no more come last. Empty where there was ever one host alone.
    whole : where all hosts are planned for in one place, what each shard is in whole, by its key.
    """

    cut: CampaignCut
    shards: tuple[ShardOrder, ...]
    own: dict[str, ShardOrder]
    whole: dict[str, ShardOrder] = field(default_factory=dict)


def cut_orders(
    loaded: LoadedCampaign, asked: FleetRun, fleet: Fleet, name: str, kept: Path
) -> CutOrders:
    """A campaign's orders for a fleet, for a thread.

    Parameters
    ----------
    name : of the run.
    kept : the run's folder: where a cut of this very campaign lies there, shards are as it says,
        whatever hosts there are now and whatever size is asked for.
    """
    campaign, seed, lab = loaded.campaign, asked.seed, asked.lab or loaded.campaign.lab
    cut, found = _cut(loaded, asked, len(fleet.hosts), name, kept)
    shards = [of_run(shard, asked.id) for shard in found]

    def order(shard: Shard) -> ShardOrder:
        return ShardOrder(
            name, shard, loaded.descriptors, lab or None, asked.pace, asked.oversubscribe
        )

    present = [host.name for host in fleet.hosts]
    measured = {result.host for result in Ledger(kept, {}).finished.values()}
    hosts = [*present, *sorted(measured - set(present))]
    own: dict[str, ShardOrder] = {}
    if len(hosts) > 1:
        times = _anchors_in_vain(kept)
        anchors = (
            anchor(campaign, host=host, run=name, lab=lab, seed=seed, again=times.get(host, 0))
            for host in hosts
        )
        own = {host: order(of_run(a, asked.id)) for host, a in zip(hosts, anchors, strict=True)}
    wholes: dict[str, ShardOrder] = {}
    if cut.in_one_place:
        wholes = {
            shard.key: order(of_run(whole(campaign, shard, run=name, lab=lab, seed=seed), asked.id))
            for shard in shards
        }
    return CutOrders(cut, tuple(map(order, shards)), own, wholes)


def keep_cut(kept: Path, cut: CampaignCut) -> None:
    """Have the same command cut alike from now on. Raises `OSError`."""
    files.make_folder(kept)
    files.write_own(_path(kept), codec.dumps(codec.to_plain(cut)))


def measure_anchors_again(kept: Path, hosts: Collection[str]) -> dict[str, int]:
    """Have the same command measure the anchor points of these hosts anew, which told nothing; how
    often each has measured them by now."""
    known = _anchors_in_vain(kept)
    times = {host: known.get(host, 0) + 1 for host in hosts}
    if not times:
        return times
    try:
        files.make_folder(kept)
        files.write_own(kept / IN_VAIN, codec.dumps(known | times))
    except OSError as error:  # then it finds what there is, and says the same
        log.warning("anchor points that told nothing are not kept", why=str(error))
    return times


def _anchors_in_vain(kept: Path) -> dict[str, int]:
    """How often each host has measured anchor points that told nothing."""
    try:
        return codec.from_plain(codec.loads((kept / IN_VAIN).read_bytes()), dict[str, int])
    except OSError:
        return {}
    except WorkbenchError as error:
        log.warning("which anchor points told nothing cannot be read", why=str(error))
        return {}


def must_be_as_begun(kept: Path, cut: CampaignCut, session: str) -> None:
    """Raise `UsageError` where what is asked for is not what the session was begun with: all of it
    would be measured again."""
    known = _read(_path(kept))
    if known is not None and known.of != cut.of:
        raise UsageError(
            "was begun with a campaign, a lab or a seed other than these: the campaign's file was "
            "changed since, or another seed was given then",
            where=session,
            remedy="Give what it was begun with, or choose another --session",
        )


def _cut(
    loaded: LoadedCampaign, asked: FleetRun, hosts: int, name: str, kept: Path
) -> tuple[CampaignCut, tuple[Shard, ...]]:
    campaign, seed, lab = loaded.campaign, asked.seed, asked.lab or loaded.campaign.lab
    of = hashlib.blake2b(
        codec.dumps([codec.to_plain(campaign), name, lab, seed]), digest_size=16
    ).hexdigest()
    known = _read(_path(kept))
    if known is not None and known.of == of:
        what = beginning(campaign) if known.in_one_place else campaign
        return known, cut_again(what, known.pieces, run=name, lab=lab, seed=seed)
    in_one_place, size = planned_in_one_place(campaign, hosts), asked.size
    if in_one_place and size is None:  # each shard is deployed once more in every round
        total = sum(len(campaign.configurations(plan)) for plan in campaign.targets)
        size = -(-total // hosts)
    what = beginning(campaign) if in_one_place else campaign
    shards = split(what, hosts, run=name, lab=lab, seed=seed, size=size)
    return CampaignCut(of, in_one_place, _pieces(shards)), shards


def _pieces(shards: Iterable[Shard]) -> tuple[ShardPiece, ...]:
    return tuple(ShardPiece(shard.target, shard.configurations) for shard in shards)


def _read(path: Path) -> CampaignCut | None:
    try:
        return codec.from_plain(codec.loads(path.read_bytes()), CampaignCut)
    except OSError:
        return None
    except WorkbenchError as error:
        log.warning("what shards were cut cannot be read", path=str(path), why=str(error))
        return None


def _path(kept: Path) -> Path:
    return kept / "cut.json"
