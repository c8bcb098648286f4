"""Which hosts disagree with themselves, and which are other machines than the first, while a
campaign is still measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import ShardOrder
from workbench.domain.lab import HostFacts
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
    tell : hears of hosts that are other machines, from the thread that judges.
    """

    def __init__(
        self, own: Mapping[str, ShardOrder], kpi: str, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._hosts = {order.shard.key: host for host, order in own.items()}
        self._kpi, self._tell = kpi, tell
        self._samples: dict[str, Sequence[Sample]] = {}
        self._first: tuple[str, HostFacts] | None = None
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
            self._samples[self._hosts[key]] = self._read(self._hosts[key], gathered[key])
        if new and len(self._samples) >= LEAST_HOSTS:
            compared = compare_hosts(self._samples, self._kpi)
            self._found = dict(compared.unsteady) if compared is not None else {}
        return self._found

    def _read(self, host: str, gathered: Gathered) -> Sequence[Sample]:
        try:
            piece = read_piece(gathered)
        except (WorkbenchError, OSError) as error:  # told where all is folded
            log.warning("anchor points cannot be read", place=str(gathered.bundle), why=str(error))
            return ()
        facts = piece.created.host
        first, known = self._first or (host, facts)
        self._first = first, known
        if said := unlike(facts, known, first):
            self._tell(f"{host} has {said}: only the factor between them says what that does")
        return piece.samples


def unlike(facts: HostFacts, known: HostFacts, first: str) -> str:
    """What of a host's CPU and kernel is not as on the host `first`; empty: nothing."""
    figures = {
        "CPU": [f"{counted(each.cores, 'core')}, {each.cpu_model}" for each in (facts, known)],
        "kernel": [each.kernel for each in (facts, known)],
    }
    said = [
        f"another {what} ({a}) than {first} ({b})" for what, (a, b) in figures.items() if a != b
    ]
    return " and ".join(said)
