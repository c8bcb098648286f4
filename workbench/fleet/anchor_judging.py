"""Which hosts disagree with themselves, while a campaign is still measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import ShardOrder
from workbench.domain.samples import Sample
from workbench.fleet.dispatched import Gathered
from workbench.fleet.folding import read_piece
from workbench.log import logger
from workbench.models.host_factors import compare_hosts

LEAST_HOSTS = 3
"""Of two hosts that scatter unlike nobody can tell which one is as hosts are."""

log = logger("fleet")


class AnchorJudge:
    """Of one campaign.

    Parameters
    ----------
    own : the anchor points of each host, by its name.
    kpi : the campaign's, unit by name.
    """

    def __init__(self, own: Mapping[str, ShardOrder], kpi: str) -> None:
        self._hosts = {order.shard.key: host for host, order in own.items()}
        self._kpi = kpi
        self._samples: dict[str, Sequence[Sample]] = {}
        self._found: dict[str, str] = {}

    def unsteady(self, gathered: Mapping[str, Gathered]) -> Mapping[str, str]:
        """Hosts that disagree with themselves, with the reason, by the anchor points that have come
        so far; for a thread. Each host's are read once."""
        new = [
            key
            for key, host in self._hosts.items()
            if key in gathered and host not in self._samples
        ]
        for key in new:
            self._samples[self._hosts[key]] = self._read(gathered[key])
        if new and len(self._samples) >= LEAST_HOSTS:
            compared = compare_hosts(self._samples, self._kpi)
            self._found = dict(compared.unsteady) if compared is not None else {}
        return self._found

    def _read(self, gathered: Gathered) -> Sequence[Sample]:
        try:
            return read_piece(gathered).samples
        except (WorkbenchError, OSError) as error:  # told where all is folded
            log.warning("anchor points cannot be read", place=str(gathered.bundle), why=str(error))
            return ()
