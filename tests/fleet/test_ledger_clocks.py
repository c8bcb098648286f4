"""A host's clock that was set between two shards, as the ledger has it."""

from __future__ import annotations

from pathlib import Path

from test_dispatch_shares import first_shard, manifest_of

from workbench.domain.fleets import ShardOrder, ShardResult
from workbench.fleet.ledger import Ledger, LedgerLine
from workbench.store.bundle import MANIFEST, digest_of


def test_each_shard_has_the_clock_of_when_it_was_measured(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / MANIFEST).write_bytes(manifest_of())
    digest = digest_of(tmp_path / "it")
    order = ShardOrder("r", first_shard(tmp_path), (), "sim")
    key = order.shard.key
    result = ShardResult(key, "alpha", order.session, str(tmp_path / "it"), digest, 3, 3, 9.0)
    first = Ledger(tmp_path / "kept", {})
    first.write(LedgerLine(key, "alpha", result, 3600.0))
    first.write(LedgerLine("begun", "alpha", ahead_s=3600.0))
    first.write(LedgerLine("later", "alpha"))  # its clock was set right by then
    begun = ShardResult("begun", "alpha", "s", taken=0)
    assert first.clock_of(begun, 5.0) == 3600.0, "who wrote it knows it, too"

    ledger = Ledger(tmp_path / "kept", {"alpha": tmp_path})
    found = ledger.recalled(order)
    assert found is not None
    assert found.ahead_s == 3600.0
    # Of what it finished without saying so: as it was begun there, else as the clock is now.
    before = ShardResult("begun", "alpha", "s", taken=0)
    assert ledger.clock_of(before, 5.0) == 3600.0
    assert ledger.clock_of(ShardResult("begun", "beta", "s", taken=0), 5.0) == 5.0
    assert ledger.clock_of(ShardResult("begun", "alpha", "s", taken=3), 5.0) == 5.0
    assert ledger.clock_of(ShardResult("later", "alpha", "s", taken=0), 5.0) == 0.0
