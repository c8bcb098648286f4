"""A stand-in for a Kubernetes API server and a kubelet: there is no cluster where tests run.

It serves one pod, its node and what its kubelet counts, as far as the workbench asks for them; and
Jobs (`stand_in_jobs`).
Pods, lists, nodes and patches are validated against Kubernetes' own schemas; the kubelet's summary
has none. What it does with a resize is what the enhancement proposal (KEP-1287) says; it proves how
the workbench takes answers, and nothing of how a real kubelet behaves. The pod may front a real
process in a control group: then a resize sets its quota, and what is counted is what it used.
"""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kubernetes_validate
from aiohttp import web
from running_system import RunningSystem
from stand_in_jobs import StandInJobs, status

from workbench.labs.cluster import ClusterLab
from workbench.labs.cluster.cpu_amounts import cores_of
from workbench.probes import cgroup

SCHEMA = "1.37"
NODE, NAMESPACE, POD, CONTAINER = "node-1", "shop", "web-7d4b9", "app"
TOKEN = "token-of-the-stand-in"
Json = dict[str, Any]
Pods = Callable[[Path], ClusterLab]
"""Makes a lab of a campaign's file."""
CAMPAIGN = """\
kind: campaign
attach:
  web:
    pod: shop/app=web
    container: app
    url: http://{{address}}:{port}/
    max_load: 150/s
    guard: {guard}
    when_wrong: {when_wrong}
targets:
  - vnf: web
    resource_parameters: [{{name: vcpu, values: [{vcpu}]}}]
primary_workload_parameter: {{name: rate, range: [20/s, 100/s]}}
load: {{kind: open, connections: 16}}
sampling: {{max_samples: {samples}}}
windows: {{warmup: 0.3s, window: 1.5s, timeout: 6s, request_timeout: 2s}}
"""


def pod_campaign(
    folder: Path,
    port: int,
    guard: str = "none",
    when_wrong: str = "end",
    vcpu: str = "35%",
    samples: int = 2,
) -> Path:
    path = folder / "pods.yaml"
    path.write_text(
        CAMPAIGN.format(port=port, guard=guard, when_wrong=when_wrong, vcpu=vcpu, samples=samples)
    )
    return path


def a_pod(limit: str = "800m", request: str = "100m") -> Json:
    resources: Json = {"requests": {"cpu": request}} if request else {}
    if limit:
        resources["limits"] = {"cpu": limit}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": POD,
            "namespace": NAMESPACE,
            "uid": "6b1c0f4e-0000-4000-8000-000000000001",
            "labels": {"app": "web"},
            "generation": 1,
            "resourceVersion": "100",
        },
        "spec": {
            "nodeName": NODE,
            "containers": [
                {
                    "name": CONTAINER,
                    "image": "registry.example/web:1",
                    "resources": resources,
                    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                },
                {"name": "sidecar", "image": "registry.example/log:1"},
            ],
        },
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "qosClass": "Burstable",
            "conditions": [],
            "containerStatuses": [
                {
                    "name": CONTAINER,
                    "image": "registry.example/web:1",
                    "imageID": "registry.example/web@sha256:" + "1" * 64,
                    "containerID": "containerd://" + "a" * 64,
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {}},
                    "resources": copy.deepcopy(resources),
                }
            ],
        },
    }


@dataclass
class StandIn:
    """The stand-in, in a thread of its own; fields are set by tests while it runs."""

    folder: Path
    folders: cgroup.CgroupFolders | None = None
    """Of the real process behind the pod; None: there is none, and CPU is made up."""
    quota: Path | None = None
    pod: Json | None = field(default_factory=a_pod)
    kubelet_says: str = "given"
    """Or `Deferred`, `Infeasible`, `in progress`."""
    refuses: dict[str, list[int]] = field(default_factory=dict)
    """By `get`, `list`, `patch`, `watch`, `proxy`, `post`, `delete`, `log`: statuses of the next
    answers."""
    slow_s: float = 0.0
    look_s: float = 0.4
    clock_ahead_s: float = 0.0
    summary_lacks_it: bool = False
    jobs: StandInJobs = field(init=False)
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    _runner: web.AppRunner | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _cut: int = 0
    _looked: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        self.jobs = StandInJobs(self.folder)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.start()

    # ------------------------------------------------------------------ what tests do to it

    def start(self) -> None:
        self._do(self._start())

    def stop(self) -> None:
        """It dies: nothing listens, and connections are cut."""
        self._do(self._stop())

    def end(self) -> None:
        self.stop()
        self._do(self._end_jobs())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut_watches(self) -> None:
        self._cut += 1
        self.bump()

    def bump(self, change: Callable[[Json], None] | None = None, spec: bool = False) -> None:
        """Change the pod, and tell whoever watches."""

        async def changed() -> None:
            if self.pod is not None:
                if change is not None:
                    change(self.pod)
                metadata = self.pod["metadata"]
                metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
                metadata["generation"] += int(spec)
                kubernetes_validate.validate(self.pod, SCHEMA, strict=True)
            self._changed.set()
            self._changed = asyncio.Event()

        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._loop.create_task(changed())
        else:
            self._do(changed())

    def somebody_sets(self, limit: str) -> None:
        def change(pod: Json) -> None:
            pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": limit}

        self.bump(change, spec=True)

    def restart_container(self) -> None:
        def change(pod: Json) -> None:
            told = pod["status"]["containerStatuses"][0]
            told["restartCount"] += 1
            told["containerID"] = "containerd://" + "b" * 64
            told["lastState"] = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}

        self.bump(change)

    def recreate(self) -> None:
        """Another pod of the same name, as its controller makes it: with the manifest's CPU."""

        def change(pod: Json) -> None:
            fresh = a_pod()
            fresh["metadata"]["uid"] = "6b1c0f4e-0000-4000-8000-000000000002"
            fresh["metadata"]["resourceVersion"] = pod["metadata"]["resourceVersion"]
            pod.clear()
            pod.update(fresh)

        self.bump(change)
        self._apply()

    @property
    def cpu(self) -> Json:
        """What the pod's spec wants of its container's CPU."""
        assert self.pod is not None
        resources: Json = self.pod["spec"]["containers"][0]["resources"]
        return resources

    def kubeconfig(self) -> Path:
        path = self.folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stand-in",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "stand-in", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(json.dumps(config))
        return path

    def _do(self, what: Any) -> None:
        future: Future[None] = asyncio.run_coroutine_threadsafe(what, self._loop)
        future.result(timeout=30)

    async def _end_jobs(self) -> None:
        self.jobs.end()
        await asyncio.sleep(0.05)  # until the loop has seen those end

    # ------------------------------------------------------------------ what it serves

    async def _start(self) -> None:
        application = web.Application(middlewares=[self._first])
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        application.router.add_get(pods, self._list)
        application.router.add_get(pods + "/{name}", self._get)
        application.router.add_patch(pods + "/{name}/resize", self._resize)
        application.router.add_get(f"/api/v1/nodes/{NODE}", self._node)
        proxy = f"/api/v1/nodes/{NODE}/proxy"
        application.router.add_get(f"{proxy}/stats/summary", self._summary)
        application.router.add_get(f"{proxy}/metrics/resource", self._metrics)
        self.jobs.routes(application.router)
        self._runner = web.AppRunner(application, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        runner, self._runner = self._runner, None
        self._cut += 1
        self._changed.set()
        self._changed = asyncio.Event()
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _first(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append((request.method, request.path))
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return status(401, "Unauthorized")
        kind = request.method.lower()
        kind = "watch" if request.query.get("watch") in ("true", "True") else kind
        kind = "list" if kind == "get" and request.path.endswith("/pods") else kind
        kind = "proxy" if "/proxy/" in request.path else kind
        kind = "log" if request.path.endswith("/log") else kind
        if self.slow_s:
            await asyncio.sleep(self.slow_s)
        if self.refuses.get(kind):
            code = self.refuses[kind].pop(0)
            answer = status(code, f"the stand-in was told to answer {code}")
            if code == 429:
                answer.headers["Retry-After"] = "1"
            return answer
        found: web.StreamResponse = await handler(request)
        return found

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") in ("true", "True"):
            return await self._watch(request)
        wanted = request.query.get("labelSelector", "")
        labels = {f"{k}={v}" for k, v in self.pod["metadata"]["labels"].items()} if self.pod else ()
        items = [self.pod] if self.pod and set(wanted.split(",")) <= set(labels) else []
        listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}
        kubernetes_validate.validate(listed, SCHEMA, strict=True)
        return web.json_response(listed)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        assert request.query["fieldSelector"] == f"metadata.name={POD}"
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        seen = request.query.get("resourceVersion", "")
        with suppress(ConnectionError):  # whoever watched has gone
            async for event in self._events(seen):
                await response.write(json.dumps(event).encode() + b"\n")
        return response

    async def _events(self, seen: str) -> AsyncIterator[Json]:
        begun = self._cut
        while self._cut == begun:
            pod = self.pod
            if pod is None:
                yield {"type": "DELETED", "object": a_pod()}
                return
            if pod["metadata"]["resourceVersion"] != seen:
                seen = pod["metadata"]["resourceVersion"]
                yield {"type": "MODIFIED", "object": copy.deepcopy(pod)}
                continue
            await self._changed.wait()

    async def _get(self, request: web.Request) -> web.Response:
        if self.pod is None or request.match_info["name"] != POD:
            return status(404, f'pods "{request.match_info["name"]}" not found')
        return web.json_response(self.pod)

    async def _resize(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/strategic-merge-patch+json"
        patch = await request.json()
        whole = {"apiVersion": "v1", "kind": "Pod", **patch}
        kubernetes_validate.validate(whole, SCHEMA, strict=True)
        if self.pod is None:
            return status(404, "pods not found")
        if patch["metadata"]["uid"] != self.pod["metadata"]["uid"]:
            return status(409, "Precondition failed: UID in precondition")
        (one,) = patch["spec"]["containers"]
        if set(one) != {"name", "resources"} or one["name"] != CONTAINER:
            return status(422, "only resources of a container that is there may be resized")
        given = one["resources"]
        if cores_of(given["requests"]["cpu"]) > cores_of(given["limits"]["cpu"]):
            return status(422, "requests must be less than or equal to cpu limit")
        self._resized(self.pod, given)
        await asyncio.sleep(0)
        return web.json_response(self.pod)

    def _resized(self, pod: Json, given: Json) -> None:
        spec = pod["spec"]["containers"][0]["resources"]
        changed = spec != given
        spec.update(copy.deepcopy(given))
        pod["metadata"]["generation"] += int(changed)
        told = pod["status"]["containerStatuses"][0]
        held = told["resources"] == spec  # what it has already is given, whatever else is asked
        says = "given" if held else self.kubelet_says
        pod["status"]["conditions"] = []
        if says == "given":
            told["resources"] = copy.deepcopy(spec)
            self._apply()
        else:
            kind = "PodResizeInProgress" if says == "in progress" else "PodResizePending"
            condition = {"type": kind, "status": "True", "message": "Node didn't have enough cpu"}
            condition |= {} if says == "in progress" else {"reason": says}
            condition["observedGeneration"] = pod["metadata"]["generation"]
            pod["status"]["conditions"] = [condition]
        self.bump()

    def _apply(self) -> None:
        """The process behind the pod gets what the pod has."""
        if self.quota is None or self.pod is None:
            return
        cores = cores_of(self.cpu["limits"]["cpu"])
        period = 50_000
        text = str(round(cores * period))
        self.quota.write_text(f"{text} {period}" if self.quota.name == "cpu.max" else text)

    async def _node(self, request: web.Request) -> web.Response:
        names = "architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion"
        names += " machineID operatingSystem osImage systemUUID"
        info = dict.fromkeys(names.split(), "stand-in")
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE},
            "status": {
                "capacity": {"cpu": "2", "memory": "4194304Ki"},
                "allocatable": {"cpu": "1900m", "memory": "4Gi"},
                "nodeInfo": {**info, "kubeletVersion": "v1.35.0-stand-in"},
            },
        }
        kubernetes_validate.validate(node, SCHEMA, strict=True)
        return web.json_response(node)

    def _look(self) -> tuple[float, float]:
        """As a kubelet: now and then, and the same figure in between."""
        now = time.time() + self.clock_ahead_s
        if now - self._looked[0] >= self.look_s:
            used = cgroup.read(self.folders).cpu_s if self.folders else now % 1e6 * 0.25
            self._looked = now, used
        return self._looked

    async def _summary(self, request: web.Request) -> web.Response:
        at, used = self._look()
        moment = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
        uid = self.pod["metadata"]["uid"] if self.pod else ""
        container = {
            "name": CONTAINER,
            "cpu": {"time": moment, "usageCoreNanoSeconds": round(used * 1e9)},
            "memory": {"time": moment, "workingSetBytes": 20 << 20},
        }
        reference = {"name": POD, "namespace": NAMESPACE, "uid": uid}
        pod = {"podRef": reference, "network": {"rxBytes": 1, "txBytes": 2}}
        pod["containers"] = [] if self.summary_lacks_it else [container]
        return web.json_response({"node": {"nodeName": NODE}, "pods": [pod]})

    async def _metrics(self, request: web.Request) -> web.Response:
        at, used = self._look()
        labels = f'{{container="{CONTAINER}",namespace="{NAMESPACE}",pod="{POD}"}}'
        lines = (
            "# TYPE container_cpu_usage_seconds_total counter",
            f"container_cpu_usage_seconds_total{labels} {used!r} {round(at * 1000)}",
            "# TYPE container_memory_working_set_bytes gauge",
            f"container_memory_working_set_bytes{labels} 2.097152e+07 {round(at * 1000)}",
        )
        return web.Response(text="\n".join(lines) + "\n")


def fronting(system: RunningSystem, folder: Path) -> StandIn:
    """A stand-in whose pod is a real process in a control group."""
    mounts = cgroup.parse_mounts(Path("/proc/self/mountinfo").read_text())
    folders = cgroup.locate(mounts, dict.fromkeys(mounts, system.path))
    return StandIn(folder, folders, system.quota)
