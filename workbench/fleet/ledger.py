"""Who began and who finished which shard, on disk: a command that goes on knows it before any host
is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workbench import files
from workbench.domain import codec
from workbench.domain.errors import WorkbenchError
from workbench.domain.fleets import ShardOrder, ShardResult
from workbench.fleet.dispatched import Gathered
from workbench.log import logger
from workbench.store.bundle import is_whole

log = logger("fleet")


@dataclass(frozen=True)
class LedgerLine:
    """A shard was given to a host; with `result`, that has finished it."""

    key: str
    host: str
    result: ShardResult | None = None
    ahead_s: float = 0.0
    """Of the host's clock then."""


@dataclass
class Ledger:
    """Of one campaign.

    Attributes
    ----------
    kept : its folder, which has the bundles that were fetched as well.
    local : exports folders of the hosts whose files are read where they lie, by name.
    begun : by key, the host that a shard was given to last.
    finished : by key.
    ahead_s : by key, of the clock of the host that was given it last, when it was.
    """

    kept: Path
    local: Mapping[str, Path]
    begun: dict[str, str] = field(default_factory=dict)
    finished: dict[str, ShardResult] = field(default_factory=dict)
    ahead_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return
        for text in lines:
            try:
                line = codec.from_plain(codec.loads(text), LedgerLine)
            except WorkbenchError:  # who wrote it was killed
                continue
            self.begun[line.key] = line.host
            self.ahead_s[line.key] = line.ahead_s
            if line.result is not None:
                self.finished[line.key] = line.result

    def write(self, line: LedgerLine) -> None:
        """What cannot be written is found out from the hosts, later."""
        self.begun[line.key], self.ahead_s[line.key] = line.host, line.ahead_s
        try:
            files.make_folder(self.kept)
            with open(self._path, "ab", opener=files.opener) as file:
                file.write(b"\n" + codec.dumps(codec.to_plain(line)))
        except OSError as error:
            log.warning("ledger not written", shard=line.key, why=str(error))

    def recalled(self, order: ShardOrder) -> Gathered | None:
        """A shard that is known to be finished, and whose bundle is as it was, for a thread."""
        result = self.finished.get(order.shard.key)
        if result is None:
            return None
        here = result.host in self.local
        bundle = Path(result.place) if here else self.kept / f"{result.key}.bundle"
        if not is_whole(bundle, result.digest):  # its host is asked for it again
            return None
        return Gathered(order, result, bundle, ahead_s=self.ahead_s.get(result.key, 0.0))

    def clock_of(self, result: ShardResult, now_s: float) -> float:
        """By how much a shard's host was ahead when it measured it, seconds; `now_s`: it is now,
        which is all that is known of what was measured just now, or begun by another."""
        if result.taken or self.begun.get(result.key) != result.host:
            return now_s
        return self.ahead_s[result.key]

    @property
    def _path(self) -> Path:
        return self.kept / "ledger.jsonl"
