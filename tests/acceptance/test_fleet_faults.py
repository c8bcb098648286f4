"""Two hundred random faults of a fleet: every point is there once, no shard that was finished is
measured again, no process is left.

    pytest --accept acceptance/test_fleet_faults.py --minutes 20 --results faults.json

A campaign runs over three simulated hosts, again and again; its command, scheduler and workers are
killed, stopped or cut off the network at seeded moments. A full disk is a limit on the size of a
worker's files, a clock that is off is the simulated host's own.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from driving import COMMAND, Workbench
from network_cuts import NetworkCuts, why_not
from tally import MakeTally, Tally

CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [20%, 25%, 30%, 35%, 40%, 45%, 50%, 55%, 60%, 65%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [60/s, 240/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: uniform, max_samples: 4, repetitions: 1}
windows: {warmup: 1 s, window: 3 s}
lab: sim
"""
SAMPLES = 10 * 4
HOSTS = ("alpha", "beta", "gamma")
WORKER = "workbench.fleet.lab_worker"
SHORT_KB = 64
"""Files of a worker whose disk is full grow no larger."""
NOTICED_S = 30.0
"""A host that vanished is noticed within that time: by design after 20 s and a look at the
scheduler (`fleet.hearing.VANISHED_S`), so that a busy host has 10 s to spare."""
LONGEST_S = 600.0
AGAIN = 4
"""How often the command may have to be given again, where nobody killed it."""


@dataclass
class FaultyFleet:
    """A workspace, the command that measures there, and what was seen of it."""

    workbench: Workbench
    figures: dict[str, Any]
    cuts: NetworkCuts | None = None
    session: str = ""
    running: subprocess.Popen[str] | None = None
    said: list[tuple[float, str]] = field(default_factory=list)
    manifests: dict[Path, bytes] = field(default_factory=dict)
    given: int = 0
    """How often it gave up in this session, and was given once more."""

    # ------------------------------------------------------------------ the command

    def begin(self, session: str, clocks: dict[str, int]) -> None:
        self.session, self.given = session, 0
        hosts = {
            name: {"kind": "simulated", "clock": clocks.get(name, 0), "speed": speed}
            for name, speed in zip(HOSTS, (1.0, 0.7, 1.4), strict=True)
        }
        (self.workbench.root / "hosts.yaml").write_text(
            json.dumps({"kind": "hosts", "hosts": hosts})
        )
        (self.workbench.root / "faulty.yaml").write_text(CAMPAIGN)
        self.give_command()

    def give_command(self) -> None:
        words = f"run ./faulty.yaml --fleet hosts.yaml --session {self.session} --seed 7 --pace 6"
        self.said = []
        self.running = subprocess.Popen(
            [COMMAND, *words.split()],
            env=self.workbench.environment, cwd=self.workbench.root, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        threading.Thread(target=self._read, args=(self.running, self.said), daemon=True).start()

    @staticmethod
    def _read(running: subprocess.Popen[str], said: list[tuple[float, str]]) -> None:
        assert running.stderr is not None
        with running.stderr:
            for line in running.stderr:
                said.append((time.monotonic(), line.rstrip()))

    @property
    def ended(self) -> bool:
        return self.running is None or self.running.poll() is not None

    def words(self) -> str:
        return "\n".join(line for _, line in self.said)

    def until(self, what: Callable[[], bool], longest_s: float) -> bool:
        """Whether that came before the command ended, or so many seconds."""
        deadline = time.monotonic() + longest_s
        while not what():
            if self.ended or time.monotonic() > deadline:
                return False
            self.look()
            time.sleep(0.05)
        return True

    # ------------------------------------------------------------------ what there is

    @property
    def folder(self) -> Path:
        return self.workbench.root / ".workbench" / "fleet" / "hosts"

    def standing(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder / "standing.json").read_bytes())
        except (OSError, ValueError):
            return {"hosts": [], "pid": 0}
        return found

    def workers(self) -> dict[str, int]:
        """Processes of the hosts that are up."""
        return {
            host["name"]: host["pid"]
            for host in self.standing()["hosts"]
            if host["state"] == "up" and is_worker(host["pid"])
        }

    def missed(self, name: str, pid: int, began: float, keeper: int) -> bool:
        """Whether the command has said since that a host is gone, or the keeper that was there says
        so or has started it again: a command that was given again just now has not seen it yet."""
        if any(at >= began and f"{name} is gone" in line for at, line in list(self.said)):
            return True
        standing = self.standing()
        if standing["pid"] != keeper:  # gone, cleared or another one: it says nothing
            return False
        host = next((host for host in standing["hosts"] if host["name"] == name), None)
        return host is not None and (
            (host["state"] == "lost" and "answered no more" in host.get("note", ""))
            or (host["state"] == "up" and host["pid"] not in (0, pid))
        )

    def look(self) -> None:
        """Remember what is finished; it is to stay as it is."""
        for path in (self.folder / "hosts").glob("*/exports/*.bundle/manifest.json"):
            if path not in self.manifests:
                with suppress(OSError):
                    self.manifests[path] = path.read_bytes()

    def processes(self) -> list[str]:
        """Commands that still run with this workspace."""
        return [f"{pid}: {words}" for pid, words in processes_of(self.workbench.root).items()]

    # ------------------------------------------------------------------ what must hold

    def see_to_the_end(self) -> None:
        """Until the session is whole, the command given again where it gave up."""
        while True:
            assert self.running is not None
            self.until(lambda: False, LONGEST_S)
            assert self.ended, f"hangs: {self.words()}"
            code = self.running.wait()
            if code == 0:
                break
            assert "Traceback" not in self.words(), self.words()
            self.given += 1
            assert self.given <= AGAIN, self.words()
            self.figures["given again"] = self.figures.get("given again", 0) + 1
            self.give_command()
        self.check()
        self.running = None

    def check(self) -> None:
        self.look()
        rows = self.workbench.samples(self.session)
        points = Counter((row["tinyproxy.vcpu"], row["wl"]) for row in rows)
        assert len(points) == SAMPLES, f"{len(points)} points\n{self.words()}"
        assert set(points.values()) == {1}
        assert all(path.read_bytes() == text for path, text in self.manifests.items())
        self.figures["sessions"] = self.figures.get("sessions", 0) + 1
        self.figures["points"] = self.figures.get("points", 0) + len(points)
        again = self.measured_again()
        self.figures["finished shards measured again"] = self.figures.get(
            "finished shards measured again", 0
        ) + len(again)
        assert not again, again
        deadline = time.monotonic() + LONGEST_S / 10
        while left := [each for each in self.processes() if "workbench.fleet" in each]:
            assert time.monotonic() < deadline, left
            time.sleep(0.1)

    def measured_again(self) -> list[str]:
        """Shards that a host began after another one had finished them."""
        hosts = self.folder / "hosts"
        begun = {
            (path.parts[-4], path.name.removesuffix(".campaign.json")): path.stat().st_mtime
            for path in hosts.glob("*/.workbench/shards/*")
        }
        finished = {(path.parts[-4], path.parent.name.removesuffix(".bundle")): path.stat().st_mtime
                    for path in self.manifests}  # fmt: skip
        return [
            f"{shard}: finished on {host}, begun on {other}"
            for (host, shard), done_at in finished.items()
            for (other, same), at in begun.items()
            if same == shard and other != host and at > done_at
        ]


def processes_of(workspace: Path) -> dict[int, str]:
    """Commands that run with that workspace, by process."""
    own = f"WORKBENCH_WORKSPACE={workspace}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if own in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if words:
                    found[int(folder.name)] = words
    return found


def workers_of(workspace: Path) -> list[int]:
    return [pid for pid, words in processes_of(workspace).items() if WORKER in words]


def is_worker(pid: int) -> bool:
    with suppress(OSError):
        return WORKER.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


# ---------------------------------------------------------------------- the faults


def worker_killed(fleet: FaultyFleet, dice: random.Random) -> bool:
    workers = fleet.workers()
    if not workers:
        return False
    with suppress(ProcessLookupError):
        os.kill(workers[dice.choice(sorted(workers))], signal.SIGKILL)
        return True
    return False


def host_vanished(fleet: FaultyFleet, dice: random.Random) -> bool:
    """Its connections stay, nothing is reset; half of them come back once that was noticed."""
    workers = fleet.workers()
    if not workers:
        return False
    name, keeper = dice.choice(sorted(workers)), fleet.standing()["pid"]
    try:
        os.kill(workers[name], signal.SIGSTOP)
    except ProcessLookupError:
        return False
    began = time.monotonic()
    noticed = fleet.until(
        lambda: fleet.missed(name, workers[name], began, keeper),
        NOTICED_S,
    )
    took_s = time.monotonic() - began
    if noticed:
        most = max(fleet.figures.get("noticed after s", 0.0), took_s)
        fleet.figures["noticed after s"] = round(most, 1)
    another = fleet.standing()["pid"] != keeper
    assert noticed or fleet.ended or another, f"{name} was not missed: {fleet.words()}"
    if dice.random() < 0.5:
        with suppress(ProcessLookupError):
            os.kill(workers[name], signal.SIGCONT)
    return True


def network_cut(fleet: FaultyFleet, dice: random.Random) -> bool:
    """Packets of a host are dropped: for seconds, or until that was noticed; then it is back."""
    workers = fleet.workers()
    if fleet.cuts is None or not workers:
        return False
    name, keeper = dice.choice(sorted(workers)), fleet.standing()["pid"]
    if not fleet.cuts.cut(workers[name]):
        return False
    began = time.monotonic()
    try:
        if dice.random() < 0.5:
            fleet.until(lambda: False, dice.uniform(0.5, 15.0))
            return True
        noticed = fleet.until(
            lambda: fleet.missed(name, workers[name], began, keeper),
            NOTICED_S,
        )
        if noticed:
            most = max(fleet.figures.get("cut noticed after s", 0.0), time.monotonic() - began)
            fleet.figures["cut noticed after s"] = round(most, 1)
        another = fleet.standing()["pid"] != keeper
        assert noticed or fleet.ended or another, f"{name} was not missed: {fleet.words()}"
    finally:
        fleet.cuts.mend(workers[name])
    return True


def scheduler_killed(fleet: FaultyFleet, dice: random.Random) -> bool:
    del dice
    pid = fleet.standing()["pid"]
    if not pid:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def command_killed(fleet: FaultyFleet, dice: random.Random) -> bool:
    """And given again, at once or when all it had started is gone."""
    assert fleet.running is not None
    fleet.running.kill()
    fleet.running.wait()
    time.sleep(dice.choice((0.0, 0.5, 5.0)))
    fleet.give_command()
    return True


def disk_full(fleet: FaultyFleet, dice: random.Random) -> bool:
    workers = fleet.workers()
    if not workers:
        return False
    pid = workers[dice.choice(sorted(workers))]
    unlimited = (resource.RLIM_INFINITY,) * 2
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (SHORT_KB * 1024, resource.RLIM_INFINITY))
        fleet.until(lambda: False, dice.uniform(0.5, 6.0))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
    return True


def host_slow(fleet: FaultyFleet, dice: random.Random) -> bool:
    """It stands still for seconds, not for so long that it counts as gone."""
    workers = fleet.workers()
    if not workers:
        return False
    pid = workers[dice.choice(sorted(workers))]
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        fleet.until(lambda: False, dice.uniform(1.0, 10.0))
        os.kill(pid, signal.SIGCONT)
    return True


FAULTS: dict[str, tuple[float, Callable[[FaultyFleet, random.Random], bool]]] = {
    "worker killed": (4.0, worker_killed),
    "host vanished": (1.5, host_vanished),
    "network cut": (2.0, network_cut),
    "scheduler killed": (2.0, scheduler_killed),
    "command killed": (2.0, command_killed),
    "disk full": (2.5, disk_full),
    "host slow": (2.5, host_slow),
}
"""How often beside the others, and what is done; False where there was nothing to do it to."""


@pytest.mark.long
def test_faults(workbench: Workbench, tally: MakeTally) -> None:
    counts = tally("fleet", {"faults": 200})
    fleet = FaultyFleet(workbench, counts.figures)
    if reason := why_not():
        counts.figures["network not cut"] = reason
        inject(fleet, counts)
    else:
        with NetworkCuts(lambda: workers_of(workbench.root)) as fleet.cuts:
            inject(fleet, counts)
    counts.keep()


def inject(fleet: FaultyFleet, counts: Tally) -> None:
    """All faults that are wanted, or as many as there is time for; then nothing may be left."""
    by_kind = Counter(counts.figures.get("by kind", {}))
    for number in counts.numbers("faults"):
        dice = random.Random(number)
        if fleet.running is not None and fleet.ended:
            fleet.see_to_the_end()
        if fleet.running is None:
            clocks = {dice.choice(HOSTS): dice.choice((3600, -3600))} if number % 3 == 0 else {}
            fleet.begin(f"faulty-{number}", clocks)
            if clocks:
                by_kind["clock off"] += 1
                continue
        ready = fleet.until(lambda: len(fleet.workers()) > 0, LONGEST_S / 5)
        if ready:
            fleet.until(lambda: False, dice.uniform(0.0, 4.0))
        kinds = list(FAULTS)
        (kind,) = dice.choices(kinds, [FAULTS[name][0] for name in kinds])
        if fleet.ended or not FAULTS[kind][1](fleet, dice):
            counts.in_vain("faults")
            continue
        by_kind[kind] += 1
        counts.figures["by kind"] = dict(by_kind)
    if fleet.running is not None:
        fleet.see_to_the_end()
    counts.figures["by kind"] = dict(by_kind)
    fleet.workbench.run("engine", "stop", expect=None)
    deadline = time.monotonic() + LONGEST_S / 10
    while left := fleet.processes():
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    counts.figures["processes left"] = 0
