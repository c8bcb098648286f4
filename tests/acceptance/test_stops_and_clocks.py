"""An engine that stands still for 90 s, clocks that jump by an hour, a Docker engine that restarts.

    pytest --accept acceptance/test_stops_and_clocks.py --results reliability.json

The clock is the C library's: libfaketime (Debian package `libfaketime`) tells the engine's process
another time of day from one call to the next, as `date -s` would, and leaves its steady clocks
alone, as the kernel does. The Docker engine that restarts is a second one, with folders and a
socket of its own: that of the host is not touched.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio
from driving import COMMAND, REPOSITORY, Workbench
from engine_watching import SLOW, SMALL, Watched, same, stored_samples
from forked_commands import HARDLY_NICE
from host_needs import missing
from tally import MakeTally
from yard import LONGEST_S, Yard, a_yard, below

from workbench.descriptors.loading import load_campaign, load_vnf_templates
from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Event, RunFinished, SampleTaken, UsageTick
from workbench.domain.messages import ResumeSession, RunCampaign
from workbench.engine.process import serving
from workbench.engine.runs import busy_host
from workbench.labs.components import preflight
from workbench.labs.docker.images import build_images
from workbench.labs.programs import Listener
from workbench.link.local import LocalClient
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

STOPPED_S = 90.0
HOUR_S = 3600.0
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
VARIABLE = "LIBFAKETIME"
"""Path of the library, where it is not installed."""


@pytest_asyncio.fixture
async def yard(workbench: Workbench, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
    workbench.variables["DOCKER_HOST"] = f"unix://{workbench.runtime}/none"
    async with a_yard(workbench) as made:
        yield made


def run_of(session: str, pace: float | None) -> RunCampaign:
    return RunCampaign(SMALL, session=session, lab="sim", seed=7, pace=pace)


async def undisturbed(yard: Yard) -> list:  # type: ignore[type-arg]
    client = await yard.engine_up()
    await client.ask(run_of("whole", None))
    async with client.follow("whole") as feed:
        assert (await Watched(feed).finish()).outcome == "done"
    return await stored_samples(client, "whole")


@pytest.mark.slow
@pytest.mark.parametrize("who", ["engine", "engine and worker"])
async def test_an_engine_that_is_stopped_goes_on_where_it_stood(
    yard: Yard, tally: MakeTally, full_length: bool, who: str
) -> None:
    """Followers stay, nothing is measured again, and what asks meanwhile is answered or told."""
    part = f"SIGSTOP of the {who} for {STOPPED_S:g} s"
    counts = tally("stops and clocks", {part: 1})
    whole = await undisturbed(yard)
    client = await yard.engine_up()
    assert yard.engine is not None
    for number in counts.numbers(part):
        session = f"stopped-{number}"
        await client.ask(run_of(session, SLOW))
        async with client.follow(session) as feed:
            watched = Watched(feed)
            await watched.fact(SampleTaken, 2)
            stopped = [yard.engine.pid, *(yard.workers() if "worker" in who else ())]
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                begin = time.monotonic()
                asking = yard.start("ls", "--json")
                if full_length:
                    code, _ = await yard.ended(asking)
                    assert code == 3, "it does not answer, and that is a sentence"
                    assert f"is held by process {yard.engine.pid}" in yard.told[-1]
                await asyncio.sleep(
                    max(0.0, (STOPPED_S if full_length else 1.5) - time.monotonic() + begin)
                )
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
            if not full_length:
                assert (await yard.ended(asking))[0] == 0
            assert (await watched.finish()).outcome == "done"
        await yard.whole(session, watched.events)
        assert same(await stored_samples(client, session), whole)
    counts.keep()


# ---------------------------------------------------------------------- clocks


HARDLY_NICER = [
    sys.executable,
    "-c",
    "from workbench.engine.learning import pool; from workbench.cli import main; "
    f"pool.NICE = {HARDLY_NICE}; main()",
]
"""The command, with workers that get their share of cores on which other tests run."""


@contextmanager
def engine_with_a_clock(
    workbench: Workbench, command: list[str], library: Path, clock: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The engine's process; what stands in the file `clock`, such as +3600, is added to its time
    of day."""
    variables = {
        "LD_PRELOAD": str(library),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_TIMESTAMP_FILE": str(clock),
    }
    process = subprocess.Popen(
        [*command, "engine", "serve"],
        env=workbench.environment | variables,
        cwd=workbench.root,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        _, said = process.communicate()
        assert b"Traceback" not in said, said.decode()


def set_clock(clock: Path, offset_s: float) -> None:
    """In one step: a half-written file would be read as no offset."""
    partial = clock.with_suffix(".partial")
    partial.write_text(f"{offset_s:+.0f}\n", encoding="utf-8")
    partial.rename(clock)


async def connected(workspace: Workspace) -> SocketClient:
    async with asyncio.timeout(LONGEST_S):
        while True:
            try:
                return await SocketClient.connect(workspace.socket, "tester")
            except OSError:
                await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_clocks_that_jump_by_an_hour_change_nothing(
    yard: Yard, tally: MakeTally, full_length: bool
) -> None:
    """In mid-run, and between the engine that is killed and the one that resumes."""
    named = [Path(os.environ[VARIABLE])] if VARIABLE in os.environ else FAKETIME
    if not named:
        missing("libfaketime", f"libfaketime, or {VARIABLE}=its path")
    part = "clock jumps by an hour, forth and back"
    counts = tally("stops and clocks", {part: 40})
    whole = await undisturbed(yard)
    await yard.kill_engine()
    workspace, clock = yard.workspace, yard.workbench.root / "clock"
    command = [str(COMMAND)] if full_length else HARDLY_NICER
    watched, session = None, ""
    announced: list[Event] = []
    offset = 0.0
    for number in counts.numbers(part):
        dice = random.Random(number)
        if not session:
            session, offset, announced = f"jumped-{number}", 0.0, []
            set_clock(clock, 0.0)
        ended = False
        with engine_with_a_clock(yard.workbench, command, named[0], clock):
            client = await connected(workspace)
            begin = time.monotonic()
            if announced:
                await client.ask(ResumeSession(session, pace=4 * SLOW))
            else:
                await client.ask(run_of(session, 4 * SLOW))
            async with client.follow(session) as feed:
                watched = Watched(feed)
                for _ in range(dice.randint(1, 3)):
                    try:
                        async with asyncio.timeout(LONGEST_S):
                            event = await watched.until(_is_sample_or_end)
                    except WorkbenchError:
                        break
                    if isinstance(event, Event) and isinstance(event.fact, RunFinished):
                        ended = True
                        break
                    offset = HOUR_S if offset <= 0 else -HOUR_S  # by one hour, then by two
                    set_clock(clock, offset)
                announced += watched.events
            took_s = time.monotonic() - begin
            times = [event.at for event in watched.events]
            assert all(after >= before for before, after in pairwise(times))
            assert times[-1] - times[0] <= took_s + 1.0, "a jump is no duration"
            for event in watched.events:
                if isinstance(event.fact, SampleTaken):
                    assert 0 < event.fact.sample.lab_s < 600
            await client.close()
        if ended:
            await yard.engine_up()  # with the true clock
            await yard.whole(session, announced)
            assert same(await stored_samples(await yard.engine_up(), session), whole)
            await yard.kill_engine()
            session = ""
    counts.keep()


def _is_sample_or_end(change: object) -> bool:
    return isinstance(change, Event) and isinstance(change.fact, SampleTaken | RunFinished)


# ---------------------------------------------------------------------- a Docker engine restarts

REAL = REPOSITORY / "tests" / "data" / "real.yaml"
IMAGES = ("source", "sink", "haproxy", "tinyproxy", "base")


IN_ITS_OWN_NETWORK = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
"""On the host's it would take away `docker0` and the rules of the host's own engine."""


class OwnDocker:
    """A Docker engine with folders, a socket and a network of its own."""

    def __init__(self, folder: Path) -> None:
        self.socket, self._folder = folder / "d.sock", folder
        self._driver = host_docker("info", "--format", "{{.Driver}}").strip()
        (folder / "daemon.json").write_text("{}", encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, tries: int = 5) -> None:
        folder = self._folder
        argv = (
            *IN_ITS_OWN_NETWORK,
            "dockerd", "--config-file", folder / "daemon.json", "--data-root", folder / "data",
            "--exec-root", folder / "exec", "--pidfile", folder / "pid", "--bridge", "none",
            "--storage-driver", self._driver, "--host", f"unix://{self.socket}",
        )  # fmt: skip
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(list(map(str, argv)), stdout=log, stderr=log)
        deadline = time.monotonic() + LONGEST_S
        while self.ask("version").returncode:
            said = (folder / "log").read_text(encoding="utf-8")[-1000:]
            if self._process.poll() is not None:
                # On a busy host its containerd takes longer than it waits; a service tries again.
                assert tries > 1, f"it did not start: {said}"
                self.start(tries - 1)
                return
            assert time.monotonic() < deadline, f"it does not answer: {said}"
            time.sleep(0.1)

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", "--host", f"unix://{self.socket}", *arguments],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )

    def end(self, number: int = signal.SIGTERM) -> None:
        """A service that is stopped ends its containers; one that is killed leaves them."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(LONGEST_S)

    def sweep(self) -> None:
        """End and unmount what one that was killed has left: all that names its folder."""
        name = str(self._folder)
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended
                if name.encode() in (process / "cmdline").read_bytes():
                    for pid in (*below(int(process.name)), int(process.name)):
                        os.kill(pid, signal.SIGKILL)
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed([place for place in mounted if place.startswith(name)]):
            subprocess.run(["umount", "--lazy", place], capture_output=True)

    def take_images(self) -> None:
        """From the host's Docker engine, so that none is pulled or made."""
        names = host_docker("images", "--format", "{{.Repository}}:{{.Tag}}").split()
        wanted = [name for name in names if name.startswith("vnf-workbench/")]
        wanted = [name for name in wanted if name.split("/")[1].split(":")[0] in IMAGES]
        with subprocess.Popen(["docker", "save", *wanted], stdout=subprocess.PIPE) as saving:
            subprocess.run(
                ["docker", "--host", f"unix://{self.socket}", "load"],
                stdin=saving.stdout,
                check=True,
                capture_output=True,
            )


def host_docker(*arguments: str) -> str:
    return subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, check=True, timeout=LONGEST_S
    ).stdout


@pytest.fixture
def own_docker(
    full_length: bool,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OwnDocker]:
    if not full_length:
        pytest.skip("a Docker engine of its own; run by make accept")
    if os.geteuid() != 0:
        pytest.skip("a Docker engine of its own needs root")
    folder = Path(tempfile.mkdtemp(prefix="wb-"))
    made = OwnDocker(folder)
    made.start()
    try:
        # The host's Docker engine makes what is missing: this one reaches no network. Nor does it
        # build oha, which takes minutes and would be another source.
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        workspace = Workspace(tmp_path_factory.mktemp("workspace"))
        wanted = [t for t in load_vnf_templates(workspace=workspace) if t.name in IMAGES]
        campaign = load_campaign(str(REAL), workspace=workspace).campaign
        listener, packages = Listener(print, print), preflight.packages(campaign)
        building = build_images(wanted, listener=listener, builds_oha=False, packages=packages)
        asyncio.run(building)
        made.take_images()
        yield made
    finally:
        made.end()
        made.sweep()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.docker
@pytest.mark.needs("dockerd")
async def test_a_docker_engine_that_restarts_in_mid_run_costs_no_sample(
    own_docker: OwnDocker, tally: MakeTally, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on, or ends with a sentence and is resumed; nothing is measured twice."""
    runtime = tempfile.mkdtemp(prefix="wb-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{own_docker.socket}")
    # A host that others keep busy makes a run wait: what it waits for here is the Docker engine.
    monkeypatch.setattr(busy_host, "STREAK", sys.maxsize)
    part = "restarts of the Docker engine"
    counts = tally("stops and clocks", {part: 10})
    outcomes = counts.figures.setdefault("runs after a restart of the Docker engine", {})
    for number in counts.numbers(part):
        session = f"restarted-{number}"
        dice = random.Random(number)
        async with serving(Workspace(tmp_path)) as engine:
            client = LocalClient(engine, "tester")
            await client.ask(RunCampaign(str(REAL), session=session, lab="docker"))
            finished, restarted, announced = None, False, set[str]()
            later = dice.randint(1, 3)
            while finished is None or finished.outcome != "done":
                async with client.follow(session) as feed:
                    async for change in feed.changes:
                        if isinstance(change, UsageTick) and not restarted:
                            later -= 1
                            if later <= 0:
                                restarted = True
                                how = dice.choice((signal.SIGTERM, signal.SIGKILL))
                                await asyncio.to_thread(own_docker.end, how)
                                await asyncio.sleep(dice.random() * 5)
                                await asyncio.to_thread(own_docker.start)
                        if isinstance(change, Event):
                            if isinstance(change.fact, SampleTaken):
                                assert change.fact.sample.id not in announced
                                announced.add(change.fact.sample.id)
                            if isinstance(change.fact, RunFinished):
                                finished = change.fact
                                break
                assert finished is not None
                assert "nexpected" not in finished.note, finished.note
                outcomes[finished.outcome] = outcomes.get(finished.outcome, 0) + 1
                if finished.outcome != "done":
                    assert finished.outcome == "failed"
                    assert finished.note
                    await client.ask(ResumeSession(session))
            assert restarted
            stored = [sample.id for sample in await stored_samples(client, session)]
            assert sorted(stored) == sorted(announced)
        left = own_docker.ask("ps", "--all", "--quiet").stdout.split()
        assert left == [], "what the restart left is removed"
    shutil.rmtree(runtime)
    counts.keep()
