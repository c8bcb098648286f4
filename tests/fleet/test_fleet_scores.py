"""Models that the hosts of a fleet score: the same figures as the engine's own worker has."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from driving import Workbench
from test_dispatch_shares import FakeFuture

from workbench import __version__
from workbench.cli.lab_fleet import _show
from workbench.computing import still_computes
from workbench.domain import codec
from workbench.domain.errors import DataError, UsageError
from workbench.domain.fleets import Fleet, LabHost
from workbench.domain.questions import ScoreModels
from workbench.fleet import fleet_asking, fleet_lifecycle, fleet_scores, tasks
from workbench.fleet.fleet_scores import HandedScores
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding, HostStanding
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.leases import Lease, Leases
from workbench.fleet.scoring_task import packed, score_packed, scored_alone
from workbench.fleet.security import Secrets, configure, made
from workbench.models.crossvalidation import Row
from workbench.paths import Workspace

HOSTS = "kind: hosts\nhosts: {alpha: {kind: simulated}, beta: {kind: simulated}}\n"
WORDS = (
    "models",
    "demo-real",
    "--target",
    "haproxy",
    "--methods",
    "k-nearest,interpolation",
)


def scored(workbench: Workbench, *more: str) -> list[dict[str, Any]]:
    said = workbench.run(*WORDS, *more, "--json")
    found: list[dict[str, Any]] = json.loads(said.stdout)
    for row in found:
        row.pop("fit_s")
    return found


@pytest.mark.long
def test_hosts_score_models_as_the_own_worker_does(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    here = scored(workbench)
    workbench.run("fleet", "up", "hosts.yaml")
    try:
        there = scored(workbench, "--fleet", "hosts.yaml")
        told = workbench.run(*WORDS, "--fleet", "hosts.yaml").stderr
    finally:
        workbench.run("fleet", "down", "hosts.yaml")
    assert [row["method"] for row in there] == [row["method"] for row in here]
    keys = set(here[0]) & set(there[0])
    assert {"rmse", "coverage", "width", "best"} <= keys
    for one, other in zip(here, there, strict=True):
        assert {k: one[k] for k in ("rmse", "mae", "coverage", "width", "best", "trouble")} == {
            k: other[k] for k in ("rmse", "mae", "coverage", "width", "best", "trouble")
        }
    assert "scored by 2 hosts of the fleet hosts; nothing is stored" in " ".join(told.split())
    assert "(2 of 2)" in told


def test_a_fleet_that_is_not_up_scores_nothing(workbench: Workbench) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    refused = workbench.run(*WORDS, "--fleet", "hosts.yaml", expect=3)
    assert "is not up" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.long
def test_who_asks_leaves_while_hosts_still_score(workbench: Workbench) -> None:
    """The hosts stand still once they were asked, so that no score ever comes."""
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    workbench.run("fleet", "up", "hosts.yaml")
    folder = workbench.root / ".workbench" / "fleet" / "hosts"
    standing = json.loads((folder / "standing.json").read_text())
    pids = [host["pid"] for host in standing["hosts"]]
    try:
        asking = workbench.start(*WORDS, "--fleet", "hosts.yaml")
        assert asking.stderr is not None
        said = next(line for line in asking.stderr if "scores by" in line)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        asking.send_signal(signal.SIGINT)
        _, rest = asking.communicate(timeout=20)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    finally:
        workbench.run("fleet", "down", "hosts.yaml")
    assert said == "2 scores by 2 hosts\n"
    assert asking.returncode == 130
    assert "Traceback" not in rest


@pytest.mark.long
def test_hosts_that_all_died_score_once_they_are_started_again(
    workbench: Workbench,
) -> None:
    (workbench.root / "hosts.yaml").write_text(HOSTS)
    workbench.run("fleet", "up", "hosts.yaml")
    folder = workbench.root / ".workbench" / "fleet" / "hosts"
    standing = json.loads((folder / "standing.json").read_text())
    try:
        asking = workbench.start(*WORDS, "--fleet", "hosts.yaml")
        assert asking.stderr is not None
        next(line for line in asking.stderr if "scores by" in line)
        for host in standing["hosts"]:
            os.kill(host["pid"], signal.SIGKILL)
        _, rest = asking.communicate(timeout=90)
    finally:
        workbench.run("fleet", "down", "hosts.yaml")
    assert asking.returncode == 0, rest
    assert "(2 of 2)" in rest


class FakeHosts:
    """A scheduler of workers that score, each job after a moment; some never do."""

    def __init__(self, *hosts: str, never: str = "") -> None:
        self.there, self.never = dict.fromkeys(hosts, ""), never
        self.at: dict[str, int] = {}
        self.most, self.given = 0, list[tuple[str, str]]()
        self.before = ""
        self.scheduler = SimpleNamespace(identity=self.identity)

    async def identity(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        worker = {"resources": {"lab": 1}, "last_seen": time.time()}
        return {"workers": {f"tls://{host}": {**worker, "name": host} for host in self.there}}

    def submit(self, work: Any, job: bytes, **how: Any) -> FakeFuture:
        assert work is score_packed
        table, method, *more = pickle.loads(job)
        (address,) = how["workers"]
        assert how["resources"] == {"lab": 1}
        assert more == ["point", "scoring of s"]
        self.given.append((address, method))
        self.at[address] = self.at.get(address, 0) + 1
        self.most = max(self.most, self.at[address])
        future = FakeFuture()

        def answer() -> None:
            self.at[address] -= 1
            if not future.done():
                future.set_result(Row(table.target, "p95", method, None, "too few"))

        if address != f"tls://{self.never}":
            asyncio.get_running_loop().call_later(0.02, answer)
        return future

    async def run(self, work: Any, about: Any, *, workers: list[str], **_: Any) -> dict[str, str]:
        if work is tasks.be_posted:
            name = codec.from_plain(codec.loads(about), LabHost).name
            return dict.fromkeys(workers, "0.6.0" if name == "old" else __version__)
        assert (work, about) == (tasks.whom_it_waits_for, "scoring of s")
        return dict.fromkeys(workers, self.before)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_scores, "LOOKING_S", 0.05)
    monkeypatch.setattr("workbench.fleet.host_waits.FIRST_S", 0.01)
    monkeypatch.setattr("workbench.fleet.host_waits.AGAIN_S", 0.01)


def handed(tmp_path: Path, said: list[str], jobs: int = 6) -> HandedScores:
    table: Any = SimpleNamespace(target="haproxy")
    every = [(table, f"method-{n}", "point") for n in range(jobs)]
    return HandedScores("scoring of s", every, Leases(tmp_path), said.append)  # type: ignore[arg-type]


async def ran(scores: HandedScores, client: FakeHosts, *own: str) -> tuple[int, list[str]]:
    hosts, rows = await asyncio.wait_for(scores.run(client, set(own)), 10.0)  # type: ignore[arg-type]
    return hosts, [row.method for row in rows]


ALL = [f"method-{n}" for n in range(6)]


@pytest.mark.usefixtures("quick")
async def test_a_host_has_one_score_at_a_time_so_that_a_campaign_has_its_turn(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    client = FakeHosts("alpha", "beta", "of another fleet")
    assert await ran(handed(tmp_path, said), client, "alpha", "beta") == (2, ALL)
    assert client.most == 1
    assert {address for address, _ in client.given} == {"tls://alpha", "tls://beta"}
    assert said[0] == "6 scores by 2 hosts"
    assert said[-1].endswith("(6 of 6)")


@pytest.mark.usefixtures("quick")
async def test_what_a_host_had_that_is_gone_another_scores(tmp_path: Path) -> None:
    client, said = FakeHosts("alpha", "beta", never="alpha"), list[str]()
    scoring = asyncio.create_task(ran(handed(tmp_path, said), client, "alpha", "beta"))
    await asyncio.sleep(0.3)
    assert not scoring.done()
    del client.there["alpha"]
    assert await scoring == (2, ALL)
    assert ("tls://alpha", "method-0") in client.given
    assert ("tls://beta", "method-0") in client.given
    del client.there["beta"]
    with pytest.raises(FleetError, match="no host that is up"):
        await ran(handed(tmp_path, said), client, "alpha", "beta")


@pytest.mark.usefixtures("quick")
async def test_hosts_that_do_not_come_back_are_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_scores, "LOST_S", 0.2)
    client = FakeHosts("alpha", never="alpha")

    @asynccontextmanager
    async def connected(_: object) -> AsyncIterator[FakeHosts]:
        yield client

    monkeypatch.setattr(fleet_scores, "connected", connected)
    standing = FleetStanding(FLEET, 1, "tls://[::1]:1", Secrets("", ""))
    scoring = asyncio.create_task(fleet_scores._answered(standing, handed(tmp_path, [])))
    await asyncio.sleep(0.2)
    client.there.clear()
    with pytest.raises(FleetError, match=r"fleet hosts lost all its hosts: .* 6 of 6 scores left"):
        await asyncio.wait_for(scoring, 10.0)


def test_a_scheduler_imports_nothing_heavy_to_hand_on_a_score() -> None:
    """It would hear no host meanwhile."""
    job = pickle.dumps((score_packed, packed("table", "pooled")))
    light = (
        "import pickle, sys, workbench.fleet.keeper, distributed; before = set(sys.modules); "
        f"pickle.loads({job!r}); new = set(sys.modules) - before; "
        "sys.exit(str(new - {'workbench.fleet.scoring_task'} or ''))"
    )
    said = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True)
    assert said.stderr.strip() == ""


def test_a_table_that_is_too_large_to_send_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.scoring_task.LARGEST_JOB", 2**20)
    packed(b" " * 2**19)
    with pytest.raises(DataError, match="2 MiB, and a host is sent 1 at most"):
        packed(b" " * 2**21)


@pytest.mark.usefixtures("quick")
async def test_a_host_that_is_held_or_that_a_campaign_has_first_is_given_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It scores once that is over; what is measured there first is no time of the score's."""
    client, said, leases = FakeHosts("alpha"), list[str](), Leases(tmp_path)
    leases.take(Lease("beta", "ann", time.time(), until=time.time() + 600.0))
    with leases.contending("first", 5):
        scoring = asyncio.create_task(ran(handed(tmp_path, said), client, "alpha", "beta"))
        await asyncio.sleep(0.2)
        assert client.given == []
    assert await scoring == (1, ALL)
    assert "alpha gets no work: first goes first (priority 5)" in said

    monkeypatch.setattr(fleet_scores, "PATIENCE_S", 0.3)
    client.never, client.before = "alpha", "s.0123"
    scoring = asyncio.create_task(ran(handed(tmp_path, said, 1), client, "alpha"))
    await asyncio.sleep(0.8)
    assert not scoring.done()
    assert "alpha scores once it is done with s.0123" in said
    client.before = ""
    with pytest.raises(FleetError, match=r"scored: alpha has not answered for 0\.3 s"):
        await scoring


async def test_a_worker_of_another_version_scores_nothing_and_is_told(tmp_path: Path) -> None:
    """Workers that somebody else starts were seen by no keeper."""
    hosts = [LabHost("old", "dask"), LabHost("new", "slurm"), LabHost("gone", "dask")]
    said: list[str] = []
    client: Any = FakeHosts("old", "new", "alpha")
    fit = await handed(tmp_path, said).fit(client, [*hosts, LabHost("alpha", "ssh")])
    assert fit == {"new", "gone", "alpha"}
    assert said == [
        f"old gets no work: has workbench 0.6.0, this is {__version__}; install the same there"
    ]


FLEET = Fleet("hosts", (LabHost("alpha", "simulated"),))


async def test_a_fleet_does_not_end_while_its_hosts_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with the last campaign nor by `fleet down`; it ends with the last that scores."""
    workspace, ended = Workspace(tmp_path), list[int]()
    folder = FleetFolder.of(workspace, "hosts")

    async def end(pid: int) -> None:
        ended.append(pid)

    monkeypatch.setattr(fleet_lifecycle, "_end_keeper", end)
    monkeypatch.setattr("workbench.fleet.fleet_standing.is_keeper", lambda pid: pid == os.getpid())
    using = fleet_scores._using(FLEET, workspace, "demo-real", print)
    with pytest.raises(FleetError, match="is not up"):
        await using.__aenter__()
    folder.write(FleetStanding(FLEET, os.getpid(), "tls://[::1]:1", Secrets("", "")))
    async with fleet_scores._using(FLEET, workspace, "demo-real", print) as (_, name):
        assert name == "scoring of demo-real"
        async with fleet_scores._using(FLEET, workspace, "demo-real", print) as (_, other):
            assert other == "scoring of demo-real, 2"
            folder.let_stay(True)
        folder.let_stay(False)
        assert [each.session for each in Leases(folder.leases).measuring()] == [name]
        told: list[str] = []
        with monkeypatch.context() as another_process:
            another_process.setattr(fleet_lifecycle.os, "getpid", lambda: 0)
            await fleet_lifecycle.end_after(workspace, FLEET, told.append)
            with pytest.raises(UsageError, match=f"{name} .* is measured with it"):
                await fleet_lifecycle.go_down(workspace, FLEET, print)
        assert told == [
            f"the fleet hosts stays up: {name} (process {os.getpid()}) is measured with it"
        ]
        assert ended == []
    assert ended == [os.getpid()]
    assert not Leases(folder.leases).measuring()


async def test_a_host_that_scores_says_so_to_who_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that a campaign waits for it, and `fleet status` shows it."""
    heard: list[str] = []
    queue = SimpleNamespace(held_by="another", waiting=())
    engine: Any = SimpleNamespace(workspace=None, queue=queue)
    host = HostEngine(engine, LabHost("alpha", "simulated"))

    def row_of(*_: object) -> Row:
        heard.extend(host.waits_for(each) for each in ("s.0123", "", "scoring of demo-real"))
        return Row("haproxy", "p95", "pooled", None)

    monkeypatch.setattr("workbench.engine.learning.scoring.row_of", row_of)
    nothing: Any = None
    scored_alone(nothing, "pooled", "point", "scoring of demo-real")
    assert heard == ["scoring of demo-real", "scoring of demo-real", ""]
    assert host.waits_for("s.0123") == ""

    async def asked(*_: object) -> dict[str, object]:
        return {"alpha": "scoring of demo-real\x1b", "beta": "", "gamma": OSError()}

    monkeypatch.setattr(fleet_asking, "asked", asked)
    busy = await fleet_asking.at_what(None)  # type: ignore[arg-type]
    assert busy == {"alpha": "scoring of demo-real·"}
    monkeypatch.setattr("workbench.cli.lab_fleet._leases", lambda _: {})
    _show([HostStanding("alpha", "up"), HostStanding("beta", "up")], "hosts", busy)
    lines = capsys.readouterr().out.splitlines()
    assert "busy with scoring of demo-real" in next(line for line in lines if "alpha" in line)
    assert "up, busy" in next(line for line in lines if "alpha" in line)
    assert "busy" not in next(line for line in lines if "beta" in line)


async def test_a_campaign_has_its_turn_after_the_fit_that_a_host_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a real scheduler and worker: it hears meanwhile what it waits for."""
    from distributed import Client, Scheduler, Worker

    configure()
    began, goes_on, order = threading.Event(), threading.Event(), list[str]()

    def row_of(table: Any, method: str, *_: object) -> Row:
        order.append(method)
        began.set()
        assert goes_on.wait(20.0)
        return Row(table.target, "p95", method, None, "too few")

    class Asked(HostEngine):
        def waits_for(self, session: str) -> str:
            if session == "s.0123":
                order.append("campaign")
            return super().waits_for(session)

    monkeypatch.setattr("workbench.engine.learning.scoring.row_of", row_of)
    engine: Any = SimpleNamespace(workspace=None, queue=SimpleNamespace(waiting=(), held_by=""))
    tasks.be(Asked(engine, FLEET.hosts[0]))
    secrets = made()
    given: dict[str, Any] = {"security": secrets.security(), "dashboard": False}
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address=":0", protocol="tls", **given) as at,
        Worker(
            at.address, name="alpha", nthreads=1, resources={"lab": 1},
            local_directory=str(tmp_path), **given,
        ) as worker,
        Client(at.address, security=given["security"], asynchronous=True) as campaign,
    ):  # fmt: skip
        standing = FleetStanding(FLEET, os.getpid(), at.address, secrets)
        scoring = asyncio.create_task(fleet_scores._answered(standing, handed(tmp_path, [])))
        assert await asyncio.to_thread(began.wait, 20.0)
        assert await fleet_asking.at_what(standing) == {"alpha": "scoring of s"}
        asked = campaign.submit(
            tasks.whom_it_waits_for, "s.0123", workers=[worker.address], resources={"lab": 1}
        )
        while len(worker.state.tasks) < 2:  # noqa: ASYNC110 - it rings no bell
            await asyncio.sleep(0.01)
        goes_on.set()
        _, rows = await scoring
        assert await asked == ""
    tasks.be(None)
    assert [row.method for row in rows] == ALL
    assert order == ["method-0", "campaign", *ALL[1:]]


async def test_a_score_with_which_hosts_are_lost_again_and_again_is_named(tmp_path: Path) -> None:
    """One that takes all of a host's memory would end each of them in turn, for ever."""
    scores = handed(tmp_path, [], jobs=2)
    first: list[int] = []
    for address in ("tls://alpha", "tls://beta"):
        index = scores._left.popleft()
        first.append(index)
        scores._busy[asyncio.create_task(asyncio.sleep(60.0))] = 0, address  # type: ignore[assignment, arg-type]
        scores._drop_gone({})
    assert first == [0, 1], "others are scored first"
    scores._busy[asyncio.create_task(asyncio.sleep(60.0))] = 0, "tls://gamma"  # type: ignore[assignment, arg-type]
    with pytest.raises(FleetError, match="could not have method-0 of haproxy scored: its host"):
        scores._drop_gone({})


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("what", ["table_for", "packed"])
def test_who_leaves_does_not_wait_for_what_is_computed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Nor does the loop at its end, as it would for `asyncio.to_thread`."""
    began, goes_on = threading.Event(), threading.Event()

    def compute(*_: object) -> bytes:
        began.set()
        assert goes_on.wait(5.0)
        return b""

    async def material(*_: object) -> SimpleNamespace:
        own = {"haproxy": ["sample"]}
        return SimpleNamespace(targets=lambda _: own, of=own.get, campaign=None, kpi="p95")

    monkeypatch.setattr(fleet_scores, what, compute)
    monkeypatch.setattr(fleet_scores, "_material", material)
    asked, nothing = ScoreModels("s"), cast("Any", None)

    async def leave() -> None:
        work = (
            fleet_scores._scored(asked, nothing, nothing, nothing)
            if what == "table_for"
            else ran(handed(tmp_path, []), FakeHosts("alpha"), "alpha")
        )
        scoring = asyncio.create_task(work)
        assert await asyncio.to_thread(began.wait, 30.0)
        scoring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scoring

    try:
        asyncio.run(leave())
        assert still_computes()
    finally:
        goes_on.set()
