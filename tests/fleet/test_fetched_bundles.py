"""What a host sends of a shard that it measured: kept as it is, or the shard has failed there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from test_dispatch_shares import HOSTS, FakeClient, manifest_of

from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.fleets import LabHost, ShardOrder, ShardResult
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.fetched_bundles import NotFetched, store_fetched
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.ledger import Ledger, LedgerLine
from workbench.fleet.open_shards import Hand, OpenShard
from workbench.fleet.patience import TRIES
from workbench.fleet.tasks import WantedPiece, piece_of
from workbench.paths import Workspace
from workbench.sampling.shards import split
from workbench.store.bundle import MANIFEST, digest_of

GOOD = {MANIFEST: manifest_of(samples=b"PAR1"), "samples.parquet": b"PAR1"}


@dataclass
class Sends(FakeClient):
    """A host that measures whatever it is asked for, and sends these files for it."""

    sent: object
    digest: str
    finds: bytes | None = b"[]"
    """What it answers when it is asked what it has finished; None: all of it."""
    key: str = ""
    """Of its answers; empty: as it was asked."""
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("")

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        self.asked.append(work)
        if work == "send_piece":
            if isinstance(self.sent, Exception):
                raise self.sent
            wanted = codec.from_plain(codec.loads(argument), WantedPiece)
            return self.sent if wanted.offset == 0 else {}
        if work == "measure_shard":
            order = codec.from_plain(codec.loads(argument), ShardOrder)
            return codec.dumps(codec.to_plain(self._result(order.shard.key, order.session, 3)))
        if work == "find_shards":
            keys = codec.loads(argument)
            found = [codec.to_plain(self._result(key, s, 0)) for s, key in keys.items()]
            return codec.dumps(found) if self.finds is None else self.finds
        return await super()._answer(work, argument, address)

    def _result(self, key: str, session: str, taken: int) -> ShardResult:
        wall_s = 0.1 if taken else 0.0
        return ShardResult(
            self.key or key, "alpha", session, "there", self.digest, 3, taken, 9.0, wall_s=wall_s
        )


@pytest.fixture
def digest(tmp_path: Path) -> str:
    """Of the good bundle."""
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / MANIFEST).write_bytes(GOOD[MANIFEST])
    return digest_of(tmp_path / "good")


def run(
    tmp_path: Path,
    client: FakeClient,
    monkeypatch: pytest.MonkeyPatch,
    hosts: tuple[str, ...] = HOSTS[:1],
    tell: Callable[[str], None] = lambda _: None,
    bound: str = "",
) -> Dispatch:
    """Two shards, to the end."""
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    dispatch = Dispatch(client, orders(tmp_path), {}, Ledger(tmp_path / "kept", {}), tell)  # type: ignore[arg-type]
    dispatch.hosts = {name: LabHost(name, "simulated") for name in hosts}
    dispatch.bind({order.shard.key: bound for order in orders(tmp_path)})
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert len(dispatch.gathered) + len(dispatch.set_aside) == 2
    return dispatch


def orders(tmp_path: Path) -> list[ShardOrder]:
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    shards = split(campaign, 1, run="r", lab="sim", seed=1)[:2]
    return [ShardOrder("r", shard, (), "sim") for shard in shards]


def why(dispatch: Dispatch) -> str:
    """Of all shards that were set aside."""
    return "\n".join(each for s in dispatch.set_aside.values() for each in s.failures.values())


def test_a_bundle_is_kept_as_it_was_sent(
    tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatch = run(tmp_path, Sends(GOOD, digest), monkeypatch)
    assert not dispatch.set_aside
    for found in dispatch.gathered.values():
        assert {path.name: path.read_bytes() for path in found.bundle.iterdir()} == GOOD


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({**GOOD, "..": b""}, "a file called '..', which no bundle has"),
        ({**GOOD, "": b""}, "a file called ''"),
        ({**GOOD, "../samples.parquet": b""}, "a file called '../samples.parquet'"),
        ({**GOOD, ".hidden": b""}, "a file called '.hidden'"),
        ({**GOOD, "text": "text"}, "a file called 'text'"),
        ({**GOOD, "large": b"x" * 4096}, "a bundle of more than 0 MiB"),
        ({f"{number}": b"" for number in range(101)}, "at most 100 files"),
        (None, "no bundle"),
    ],
)
def test_what_is_no_bundle_has_failed_with_the_reason(
    sent: object, said: str, tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.fetched_bundles.LARGEST_BUNDLE", 4096)
    dispatch = run(tmp_path, Sends(sent, digest), monkeypatch)
    assert not dispatch.gathered
    assert said in why(dispatch)
    assert all(said in each for each in dispatch.missing(orders(tmp_path)))
    written = {path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert written <= {"ledger.jsonl", MANIFEST}


def test_a_bundle_comes_in_pieces_of_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more of it is in memory at once; what was cut off before is not gone on with."""
    for module in ("tasks", "fetched_bundles"):
        monkeypatch.setattr(f"workbench.fleet.{module}.PIECE", 8)
    there, here = tmp_path / "there.bundle", tmp_path / "kept" / "here.bundle"
    contents = {"a": b"0123456", "b": b"", "c": b"x" * 33, "d": b"", MANIFEST: b"{" * 24}
    for folder in (there, here):
        folder.mkdir(parents=True)
    (here / "old").write_bytes(b"of before")
    for name, content in contents.items():
        (there / name).write_bytes(content)
    asked: list[int] = []
    order: list[str] = []

    async def ask(offset: int) -> object:
        asked.append(offset)
        piece = piece_of(there, offset)
        order.extend(name for name, content in piece.items() if content)
        assert sum(map(len, piece.values())) <= 8
        return piece

    asyncio.run(store_fetched(here, "alpha", ask))
    assert {path.name: path.read_bytes() for path in here.iterdir()} == contents
    assert asked == list(range(0, 65, 8))  # the last has nothing more
    assert order == sorted(order, key=[*contents].index)
    assert list(here.parent.iterdir()) == [here]

    async def cut_off(offset: int) -> object:
        if offset:
            raise NotFetched("is gone")
        return {MANIFEST: b"12345678"}

    with pytest.raises(NotFetched):
        asyncio.run(store_fetched(here, "alpha", cut_off))
    assert (here / MANIFEST).read_bytes() == contents[MANIFEST]
    assert list(here.parent.iterdir()) == [here]

    async def without_end(offset: int) -> object:
        asked.append(offset)
        return {"a": b"12345678"}

    monkeypatch.setattr("workbench.fleet.fetched_bundles.LARGEST_BUNDLE", 80)
    with pytest.raises(FleetError, match="a bundle of more than"):
        asyncio.run(store_fetched(here, "alpha", without_end))
    assert asked[-1] == 80

    async def at_once(_: int) -> object:
        return {"a": b"123456789"}

    with pytest.raises(FleetError, match="more of a bundle at once"):
        asyncio.run(store_fetched(here, "alpha", at_once))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.patience.KEPT_PAUSE_S", 0.02)
    monkeypatch.setattr("workbench.fleet.patience.KEPT_S", 0.2)


def in_the_way(tmp_path: Path) -> list[Path]:
    """Files where the folders of the bundles are to be."""
    (tmp_path / "kept").mkdir()
    paths = [tmp_path / "kept" / f"{order.shard.key}.bundle" for order in orders(tmp_path)]
    for path in paths:
        path.write_text("")
    return paths


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("finds", [b"[]", None], ids=["measured now", "measured before"])
def test_what_cannot_be_stored_here_ends_the_campaign_and_is_measured_once(
    finds: bytes | None, tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {path.stem for path in in_the_way(tmp_path)}
    client = Sends(GOOD, digest, finds)
    words = r"2 shards measured and not here: what \w+ measured cannot be stored here"
    with pytest.raises(FleetError, match=words) as told:
        run(tmp_path, client, monkeypatch, HOSTS)
    assert any(key in str(told.value) for key in keys)
    assert "the same command goes on" in str(told.value)
    assert client.asked.count("measure_shard") == (2 if finds else 0)
    assert client.asked.count("send_piece") > 4  # it is tried again


@pytest.mark.usefixtures("soon")
def test_what_is_measured_is_stored_once_there_is_room(
    tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks, client = in_the_way(tmp_path), Sends(GOOD, digest)
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        if sum("and not here yet: " in line for line in said) == 2:
            while blocks:
                blocks.pop().unlink()

    dispatch = run(tmp_path, client, monkeypatch, HOSTS, tell)
    assert not dispatch.set_aside
    assert client.asked.count("measure_shard") == 2
    assert all(found.wall_s > 0 for found in dispatch.gathered.values())


class SendsLate(Sends):
    """Its disk hangs until it has been asked for so many bundles."""

    hangs = 1

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        if work == "send_piece" and self.hangs:
            self.hangs -= 1
            await asyncio.sleep(20.0)
        return await super()._answer(work, argument, address)


@pytest.mark.parametrize("finds", [b"[]", None], ids=["measured now", "measured before"])
def test_a_host_that_does_not_send_what_it_measured_is_not_waited_for_without_end(
    finds: bytes | None, tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.SENDING_S", 0.1)
    said: list[str] = []
    client = SendsLate(GOOD, digest, finds)
    dispatch = run(tmp_path, client, monkeypatch, tell=said.append)
    assert len(dispatch.gathered) == 2
    assert said.count("alpha did not send what it measured within 0.1 s") == 1


class SendsAfterAnother(Sends):
    """It measures for another campaign before it sends anything; then its disk may hang."""

    busy, hangs = True, False

    async def run(self, work: Any, argument: Any, *, workers: list[str], **_: Any) -> Any:
        del work, argument
        return dict.fromkeys(workers, "s of ann" if self.busy else "")

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        if work == "send_piece" and self.busy:
            await asyncio.sleep(0.6)
            self.busy = False
            if self.hangs:
                await asyncio.sleep(20.0)
        return await super()._answer(work, argument, address)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_host_that_measures_for_another_campaign_first_has_not_failed_to_send(
    hangs: bool, tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.SENDING_S", 0.3)
    monkeypatch.setattr("workbench.fleet.host_waits.FIRST_S", 0.01)
    monkeypatch.setattr("workbench.fleet.host_waits.AGAIN_S", 0.02)
    said: list[str] = []
    client = SendsAfterAnother(GOOD, digest)
    client.hangs = hangs
    dispatch = run(tmp_path, client, monkeypatch, tell=said.append)
    assert len(dispatch.gathered) == 2
    assert said.count("alpha did not send what it measured within 0.3 s") == hangs


def test_a_host_of_which_something_is_gathered_loses_nothing_in_a_row(
    tmp_path: Path, digest: str
) -> None:
    client: Any = Sends(GOOD, digest)
    (order, *_) = orders(tmp_path)
    dispatch = Dispatch(client, [order], {}, Ledger(tmp_path / "kept", {}), lambda _: None)
    hand = Hand("alpha", "tls://alpha", losses=TRIES - 1)
    result = client._result(order.shard.key, order.session, 0)
    asyncio.run(dispatch._gather_found(hand, OpenShard(order), result))
    assert order.shard.key in dispatch.gathered
    assert hand.losses == 0


@pytest.mark.usefixtures("soon")
def test_a_host_out_of_service_is_given_nothing_and_hands_over_what_it_has(
    tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    blocks, client = in_the_way(tmp_path), Sends(GOOD, digest, None)
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        while "and not here yet: " in text and blocks:
            blocks.pop().unlink()

    ledger = Ledger(tmp_path / "kept", {})
    for order in orders(tmp_path):
        ledger.write(LedgerLine(order.shard.key, "alpha"))
    ledger = Ledger(tmp_path / "kept", {})
    dispatch = Dispatch(client, orders(tmp_path), {}, ledger, tell)  # type: ignore[arg-type]
    dispatch.hosts = {"alpha": LabHost("alpha", "simulated")}
    dispatch.unsteady, dispatch._judged = lambda _: {"alpha": "p95 scatters"}, -1
    asyncio.run(asyncio.wait_for(dispatch.run(), 10.0))
    assert said[0] == "alpha gets no work: disagrees with itself: p95 scatters"
    assert len(dispatch.gathered) == 2
    assert "measure_shard" not in client.asked


@pytest.mark.usefixtures("soon")
def test_what_a_host_does_not_hand_over_is_set_aside_and_measured_by_no_other(
    tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Sends(ValueError("it is larger than 512 MiB"), digest)
    dispatch = run(tmp_path, client, monkeypatch, HOSTS)
    assert client.asked.count("measure_shard") == len(dispatch.set_aside) == 2
    assert why(dispatch).count("it is larger than 512 MiB") == 2
    assert why(dispatch).count("and not here") == 2


@pytest.mark.usefixtures("soon")
def test_planned_points_that_a_host_does_not_hand_over_are_not_measured_again(
    tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set aside, they would be, with all that they go on with."""
    client = Sends(OSError("no space left"), digest)
    with pytest.raises(FleetError, match="2 shards measured and not here: OSError: no space left"):
        run(tmp_path, client, monkeypatch, HOSTS, bound="alpha")
    assert client.asked.count("measure_shard") == 2


@dataclass
class SendsDamaged(Sends):
    """Until it has been asked for the shard as often as this, it sends something else."""

    damaged: object = None
    asks: int = 99

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        answer = await super()._answer(work, argument, address)
        asks = self.asked.count("measure_shard") + (self.finds is None)
        return self.damaged if work == "send_piece" and asks < self.asks else answer


DAMAGED = ({}, {MANIFEST: b"{}"}, {**GOOD, "samples.parquet": b"PAR"}, {MANIFEST: GOOD[MANIFEST]})


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("damaged", DAMAGED)
def test_what_is_sent_damaged_is_asked_for_again_and_measured_by_no_other(
    damaged: object, tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SendsDamaged(GOOD, digest, damaged=damaged)
    dispatch = run(tmp_path, client, monkeypatch, HOSTS)
    assert why(dispatch).count("what it sent is not what it measured") == 2
    assert why(dispatch).count("and not here") == 2
    assert client.asked.count("measure_shard") > 2  # which exports it again
    assert len(dispatch.set_aside) == 2


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("finds", [b"[]", None], ids=["measured now", "measured before"])
def test_what_is_exported_again_counts_once(
    finds: bytes | None, tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SendsDamaged(GOOD, digest, finds, damaged=DAMAGED[2], asks=3)
    dispatch = run(tmp_path, client, monkeypatch)
    assert not dispatch.set_aside
    for found in dispatch.gathered.values():
        assert found.result.taken == (3 if finds else 0)
        assert {path.name: path.read_bytes() for path in found.bundle.iterdir()} == GOOD

    # One that this disk has lost some of since is fetched again.
    (found, other) = dispatch.gathered.values()
    (found.bundle / "samples.parquet").write_bytes(b"PAR")
    ledger = Ledger(tmp_path / "kept", {})
    assert ledger.recalled(found.order) is None
    assert ledger.recalled(other.order) is not None
    run(tmp_path, Sends(GOOD, digest, None), monkeypatch)
    assert (found.bundle / "samples.parquet").read_bytes() == b"PAR1"


@pytest.mark.parametrize("finds", [b"{", b"7", b"[7]"])
def test_a_host_whose_answer_cannot_be_read_is_asked_once(
    finds: bytes, tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Sends(GOOD, digest, finds)
    assert len(run(tmp_path, client, monkeypatch).set_aside) == 2
    assert client.asked.count("find_shards") == 1
    assert "measure_shard" not in client.asked


def test_an_answer_for_another_shard_is_none(
    tmp_path: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatch = run(tmp_path, Sends(GOOD, digest, key="../outside"), monkeypatch)
    assert "another shard" in why(dispatch)
    assert not (tmp_path / "outside.bundle").exists()
