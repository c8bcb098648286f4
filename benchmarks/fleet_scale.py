"""What a fleet gains and costs: `python benchmarks/fleet_scale.py [--hosts 16] [--light 256]`.

With `--hosts` a campaign is measured by one simulated host, then by that many, each a process with
an engine of its own: the longest lab time of a host, anchor points included, over 1/N of one
host's; `--results FILE` keeps the figures as JSON.
With `--light` workers that measure nothing are attached to a scheduler, and what it burns is told.
With `--at-rest` a fleet of simulated hosts comes up: what its keeper and each worker burn then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from workbench.descriptors.lab_hosts import load_fleet
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.fleets import FleetRun
from workbench.engine.runs.planning import bypasses_s, make_plan
from workbench.fleet.fleet_runs import FleetOutcome, run_over_fleet
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.security import configure, made
from workbench.labs.base import LabCosts
from workbench.paths import Workspace
from workbench.probes.process import PROC, parse_stat_cpu_s
from workbench.sampling.shards import anchor, split

GOAL = 1.15
"""Of 1/N of one host's lab time."""
CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {{vnf: tinyproxy, name: vcpu, values: [{shares}]}}
workload_parameters:
  - {{name: filesize, values: [{sizes}]}}
primary_workload_parameter: {{name: rate, range: [50/s, 300/s], scale: log}}
load: {{kind: open, arrivals: constant, connections: 32}}
kpi: p95
sampling: {{method: uniform, max_samples: {samples}, repetitions: 1, model: curve-fit}}
windows: {{warmup: 1 s, window: 3 s}}
lab: sim
"""
LONGEST_UP_S, SETTLING_S = 600.0, 30.0
"""In which a fleet of processes on these cores comes up, and for which it is left alone then."""
PER_PROCESS = 16
"""Light workers that share a process."""


def campaign(configurations: int, samples: int) -> str:
    sizes = 8
    shares = configurations // sizes
    return CAMPAIGN.format(
        shares=", ".join(f"{20 + i}%" for i in range(shares)),
        sizes=", ".join(f"{i + 1} kB" for i in range(sizes)),
        samples=samples,
    )


def measured(folder: Path, hosts: int, asked: FleetRun) -> FleetOutcome:
    """What came of it, whole: lab time by host, and the time on the wall, s."""
    path = folder / f"of{hosts}.yaml"
    path.write_text(f"kind: hosts\nhosts: {{h: {{kind: simulated, count: {hosts}}}}}\n")
    workspace = Workspace(folder / f"workspace-{hosts}")
    fleet = load_fleet(path, workspace=workspace)
    outcome = asyncio.run(
        run_over_fleet(asked, fleet, workspace, lambda text: print(f"  {text}", flush=True))
    )
    assert not outcome.note, outcome.note
    assert len(outcome.lab_s) == hosts, sorted(outcome.lab_s)
    return outcome


def speed_up(
    hosts: int, configurations: int, samples: int, pace: float, results: Path | None
) -> None:
    with tempfile.TemporaryDirectory(prefix="fleet-") as name:
        folder = Path(name)
        path = folder / "scale.yaml"
        path.write_text(campaign(configurations, samples))
        one = measured(folder, 1, FleetRun(str(path), session="one"))
        many = measured(folder, hosts, FleetRun(str(path), session="many", pace=pace))
    assert one.samples == many.samples == configurations * samples
    one_s, many_s = max(one.lab_s.values()), max(many.lab_s.values())
    ratio = many_s / (one_s / hosts)
    if results is not None:
        figures = {
            "hosts": hosts, "configurations": configurations, "samples": many.samples,
            "samples at anchor points": many.anchor_samples, "pace": pace,
            "one host: lab s": one_s, "one host: wall s": one.wall_s,
            "lab s by host": many.lab_s, "longest: lab s": many_s, "wall s": many.wall_s,
            "ratio": ratio, "goal": GOAL, "holds": ratio <= GOAL,
        }  # fmt: skip
        results.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"{configurations} configurations, {samples} samples of each")
    print(f"one host {one_s:.0f} s of lab time (simulated in {one.wall_s:.0f} s)")
    print(f"{hosts} hosts: the longest {many_s:.0f} s (at pace {pace:g} in {many.wall_s:.0f} s)")
    print(
        f"{ratio:.3f} of 1/{hosts} (goal: at most {GOAL}): {'holds' if ratio <= GOAL else 'missed'}"
    )


def planned(hosts: int, configurations: int, samples: int) -> None:
    """The same from plans alone, nothing measured: shards go to whoever is free first."""
    costs = LabCosts(5.0, 0.5, 0.3)  # as of the simulated lab
    with tempfile.TemporaryDirectory(prefix="fleet-") as name:
        path = Path(name) / "scale.yaml"
        path.write_text(campaign(configurations, samples))
        whole = load_campaign(str(path), workspace=Workspace(Path(name))).campaign
    one_s = make_plan(whole, "sim", costs).lab_s
    first = anchor(whole, host="h", run="r", lab="sim", seed=1).campaign
    spent = [lab_s(first, costs)] * hosts
    shards = split(whole, hosts, run="r", lab="sim", seed=1)
    for shard in shards:
        spent.sort()
        spent[0] += lab_s(shard.campaign, costs)
    ratio = max(spent) / (one_s / hosts)
    verdict = "holds" if ratio <= GOAL else "missed"
    print(
        f"planned: {configurations} configurations of {samples} samples, one host {one_s:.0f} s of "
        f"lab time; {hosts} hosts with {len(shards)} shards and anchor points {max(spent):.0f} s: "
        f"{ratio:.3f} times 1/{hosts} (goal: at most {GOAL}): {verdict}"
    )


def lab_s(campaign: Campaign, costs: LabCosts) -> float:
    """Of a shard, whose configurations share one workload and so one bypass curve."""
    plan = make_plan(campaign, "sim", costs)
    kinds = max(1, math.prod(len(parameter.values) for parameter in campaign.workload))
    bypass_s = bypasses_s(campaign, "sim", costs)
    return plan.lab_s - bypass_s + bypass_s / kinds


# ------------------------------------------------------------------------- scheduler alone

WORKERS = """
import asyncio, json, sys
from distributed import Worker
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.security import Secrets, configure
async def main():
    told = json.loads(sys.stdin.readline())
    configure()
    security = Secrets(told["certificate"], told["key"]).security()
    workers = [Worker(told["address"], name=f"{told['first'] + i}", nthreads=1,
        resources={"lab": 1},
        security=security, dashboard=False, local_directory=told["folder"])
        for i in range(told["count"])]
    await asyncio.gather(*workers)
    await asyncio.to_thread(sys.stdin.read)
    await asyncio.gather(*(worker.close() for worker in workers))
asyncio.run(main())
"""
SCHEDULER = """
import asyncio, json, sys
from distributed import Scheduler
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.security import Secrets, configure
async def main():
    told = json.loads(sys.stdin.readline())
    configure()
    security = Secrets(told["certificate"], told["key"]).security()
    where = {"host": "127.0.0.1", "port": 0, "protocol": "tls"}
    async with Scheduler(**where, security=security, dashboard=False) as it:
        print(it.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


def child(code: str, told: dict[str, object]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json.dumps(told) + "\n")
    process.stdin.flush()
    return process


async def light(hosts: int, seconds: float) -> None:
    """CPU and memory of a scheduler with that many workers: at rest, and with a task each 2 s."""
    from distributed import Client

    configure()
    secrets = made()
    told: dict[str, object] = {"certificate": secrets.certificate, "key": secrets.key}
    scheduler = child(SCHEDULER, told)
    assert scheduler.stdout is not None
    address = scheduler.stdout.readline().strip()
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        told |= {"address": address, "folder": folder}
        children = [
            child(WORKERS, {**told, "first": first, "count": min(PER_PROCESS, hosts - first)})
            for first in range(0, hosts, PER_PROCESS)
        ]
        try:
            async with Client(
                address, security=secrets.security(), asynchronous=True, set_as_default=False
            ) as client:
                await client.wait_for_workers(hosts, timeout=300)
                empty_s = cpu_s(scheduler.pid)
                await asyncio.sleep(seconds)
                rest = (cpu_s(scheduler.pid) - empty_s) / seconds
                began, begun_s, tasks = time.monotonic(), cpu_s(scheduler.pid), 0
                names = [str(i) for i in range(hosts)]
                while time.monotonic() - began < seconds:
                    futures = [
                        client.submit(len, b"x", key=f"{name}-{tasks}", workers=[name], pure=False)
                        for name in names
                    ]
                    await asyncio.gather(*futures)
                    tasks += 1
                    await asyncio.sleep(2.0)
                took = time.monotonic() - began
                busy = (cpu_s(scheduler.pid) - begun_s) / took
                memory = memory_mib(scheduler.pid)
        finally:
            for process in (*children, scheduler):
                assert process.stdin is not None
                process.stdin.close()
            for process in (*children, scheduler):
                process.wait(60)
    each = 1000.0 / hosts
    print(
        f"{hosts:4} hosts: scheduler {rest:.3f} cores at rest ({rest * each:.2f} ms/s a host), "
        f"{busy:.3f} with {tasks * hosts / took:.0f} tasks/s ({busy * each:.2f} ms/s a host), "
        f"{memory:.0f} MiB"
    )


# ------------------------------------------------------------------------- whole fleets at rest


def at_rest(hosts: int, seconds: float) -> None:
    """CPU and memory of a fleet's keeper, scheduler included, and of its workers."""
    with tempfile.TemporaryDirectory(prefix="fleet-") as name:
        path = Path(name) / "hosts.yaml"
        path.write_text(f"kind: hosts\nhosts: {{h: {{kind: simulated, count: {hosts}}}}}\n")
        workbench = [sys.executable, "-m", "workbench"]
        given = {"env": {**os.environ, "WORKBENCH_WORKSPACE": name}, "stdout": subprocess.DEVNULL}
        subprocess.run([*workbench, "fleet", "up", str(path)], **given)  # the keeper goes on
        try:
            latest = time.monotonic() + LONGEST_UP_S
            while (up := hosts_up(name)) < hosts:
                if time.monotonic() > latest:
                    sys.exit(f"{up} of {hosts} hosts came up in {LONGEST_UP_S:g} s")
                time.sleep(1.0)
            time.sleep(SETTLING_S)
            workers = processes_of("workbench.fleet.lab_worker", name)
            assert len(workers) == hosts, workers
            keeper = processes_of("workbench.fleet.keeper", name)
            assert len(keeper) == 1, keeper
            before = cpu_s(keeper[0]), sum(map(cpu_s, workers))
            time.sleep(seconds)
            kept, worked = cpu_s(keeper[0]) - before[0], sum(map(cpu_s, workers)) - before[1]
            print(
                f"{hosts} hosts at rest: keeper {1e3 * kept / seconds:.0f} ms/s "
                f"({1e3 * kept / seconds / hosts:.2f} a host), {memory_mib(keeper[0]):.0f} MiB; "
                f"a worker {1e3 * worked / seconds / hosts:.1f} ms/s, "
                f"{memory_mib(workers[0]):.0f} MiB"
            )
        finally:
            subprocess.run([*workbench, "fleet", "down", str(path)], check=True, **given)


def hosts_up(workspace: str) -> int:
    """As its keeper sees them."""
    standing = FleetFolder.of(Workspace(Path(workspace)), "hosts").read()
    return 0 if standing is None else sum(host.state == "up" for host in standing.hosts)


def processes_of(module: str, workspace: str) -> list[int]:
    """Processes that run a module for that workspace."""
    found = []
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if module.encode() not in command:
                continue
            if workspace.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def cpu_s(pid: int) -> float:
    return parse_stat_cpu_s((PROC / str(pid) / "stat").read_text())


def memory_mib(pid: int) -> float:
    lines = (PROC / str(pid) / "status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--hosts", type=int, default=0)
    asked.add_argument("--configurations", type=int, default=480)
    asked.add_argument("--samples", type=int, default=10)
    asked.add_argument("--pace", type=float, default=4.0)
    asked.add_argument("--planned", action="store_true", help="plans only: nothing is measured")
    asked.add_argument("--results", type=Path, help="JSON file for what `--hosts` measured")
    asked.add_argument("--light", type=int, nargs="*", default=[])
    asked.add_argument("--at-rest", type=int, nargs="*", default=[])
    asked.add_argument("--seconds", type=float, default=20.0)
    given = asked.parse_args()
    for hosts in given.light:
        asyncio.run(light(hosts, given.seconds))
    for hosts in given.at_rest:
        at_rest(hosts, given.seconds)
    if given.hosts and given.planned:
        planned(given.hosts, given.configurations, given.samples)
    elif given.hosts:
        speed_up(given.hosts, given.configurations, given.samples, given.pace, given.results)


if __name__ == "__main__":
    main()
