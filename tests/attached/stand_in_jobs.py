"""A stand-in for what a cluster does with Jobs: there is no cluster where tests run.

It is the part of `stand_in_cluster` that takes Jobs, has one pod for each and keeps their logs, as
far as the workbench asks for them. Jobs and pods are validated against Kubernetes' own schemas. A
container is a real process of this host whose `/etc/hosts` knows names that the host does not, so
that what is sent, answered and written is real; images, nodes, quotas, evictions are made up.
"""

from __future__ import annotations

import asyncio
import copy
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kubernetes_validate
from aiohttp import web

SCHEMA = "1.37"
NAMESPACE = "load"
SERVICE = "web.shop"
"""A name that only the cluster knows."""
NODE = "node-2"
IMAGE = "registry.example/load:1"
Json = dict[str, Any]
IN_CLUSTER = 'mount --bind "$0" /etc/hosts && exec "$@"'


def status(code: int, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return web.json_response({**body, "message": message}, status=code)


def whole_second(at_s: float) -> str:
    return datetime.fromtimestamp(int(at_s), UTC).isoformat().replace("+00:00", "Z")


def meant(labels: Mapping[str, str], selector: str) -> bool:
    return set(filter(None, selector.split(","))) <= {f"{k}={v}" for k, v in labels.items()}


@dataclass
class StandInJobs:
    """Jobs of one namespace; fields are set by tests while it runs."""

    folder: Path
    programs: str = ""
    """Folder of programs that the image holds."""
    says: str = "runs"
    """Or `no image`, `no room`, `no pod` (a quota lets none be made), `no quota` (nor a Job)."""
    keeps_bytes: int = 1 << 30
    """Of a log: what was written before the last of them is gone, as where a kubelet rotates it."""
    clock_ahead_s: float = 0.0
    collects: bool = True
    """Whether garbage collection takes the pod of a Job that was deleted at once, or leaves it."""
    may_delete_pods: bool = True
    mute: bool = False
    """Whether whoever follows a log is told nothing of what is written from now on."""
    jobs: dict[str, Json] = field(default_factory=dict)
    pods: dict[str, Json] = field(default_factory=dict)
    """By Job."""
    seen: list[Json] = field(default_factory=list)
    """Every Job that was created."""
    began_s: dict[str, float] = field(default_factory=dict)
    """By container: when the last of its processes was started, to the microsecond."""
    _logs: dict[tuple[str, str], list[tuple[float, bytes]]] = field(default_factory=dict)
    _running: dict[str, dict[str, asyncio.subprocess.Process]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def routes(self, router: web.UrlDispatcher) -> None:
        jobs = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
        router.add_post(jobs, self._create)
        router.add_get(jobs, self._list)
        router.add_delete(jobs + "/{name}", self._delete)
        router.add_get(f"/api/v1/namespaces/{NAMESPACE}/pods", self._list_pods)
        router.add_delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{{name}}", self._delete_pod)
        router.add_get(f"/api/v1/namespaces/{NAMESPACE}/pods/{{name}}/log", self._log)
        router.add_get(f"/api/v1/namespaces/{NAMESPACE}/events", self._events)

    @property
    def loads(self) -> list[str]:
        """Jobs that are there and send load."""
        return sorted(
            name
            for name, job in self.jobs.items()
            if job["spec"]["template"]["spec"]["containers"][-1]["name"] == "load"
        )

    # ------------------------------------------------------------------ what tests do to it

    def evict(self) -> None:
        for name, pod in self.pods.items():
            pod["status"] |= {
                "phase": "Failed",
                "reason": "Evicted",
                "message": "The node was low on resource: memory.",
            }
            self._kill(name, signal.SIGKILL)

    def somebody_deletes(self) -> None:
        for name in list(self.jobs):
            self._end(name)

    def end(self) -> None:
        for name in list(self._running):
            self._kill(name, signal.SIGKILL)
        for task in self._tasks:
            task.cancel()

    def guard_dies(self) -> None:
        for those in self._running.values():
            if (process := those.get("guard")) and process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)

    def sending(self) -> bool:
        """Whether any process of a pod is left."""
        return any(
            one.returncode is None for those in self._running.values() for one in those.values()
        )

    def _kill(self, name: str, number: signal.Signals) -> None:
        for process in self._running.get(name, {}).values():
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)

    def _end(self, name: str) -> None:
        """As garbage collection does after a Job was deleted."""
        self.jobs.pop(name, None)
        self._kill(name, signal.SIGTERM)
        self.pods.pop(name, None)

    # ------------------------------------------------------------------ what it serves

    async def _create(self, request: web.Request) -> web.Response:
        job = await request.json()
        kubernetes_validate.validate(job, SCHEMA, strict=True)
        name = job["metadata"]["name"]
        if self.says == "no quota":
            return status(
                403,
                f'jobs.batch "{name}" is forbidden: exceeded quota: few, requested: '
                "count/jobs.batch=1, used: count/jobs.batch=2, limited: count/jobs.batch=2",
            )
        if name in self.jobs:
            return status(409, f'jobs.batch "{name}" already exists')
        job["metadata"]["uid"] = f"6b1c0f4e-0000-4000-9000-{len(self.seen):012d}"
        self.jobs[name] = job
        self.seen.append(copy.deepcopy(job))
        task = asyncio.create_task(self._live(name, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return web.json_response(job, status=201)

    async def _list(self, request: web.Request) -> web.Response:
        selector = request.query.get("labelSelector", "")
        items = [one for one in self.jobs.values() if meant(one["metadata"]["labels"], selector)]
        listed = {"apiVersion": "batch/v1", "kind": "JobList", "metadata": {}, "items": items}
        kubernetes_validate.validate(listed, SCHEMA, strict=True)
        return web.json_response(listed)

    async def _delete(self, request: web.Request) -> web.Response:
        name, options = request.match_info["name"], await request.json()
        assert options["propagationPolicy"] == "Background"
        if name not in self.jobs:
            return status(404, f'jobs.batch "{name}" not found')
        if options["preconditions"]["uid"] != self.jobs[name]["metadata"]["uid"]:
            return status(409, "Precondition failed: UID in precondition")
        if self.collects:
            self._end(name)
        self.jobs.pop(name, None)
        return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    async def _delete_pod(self, request: web.Request) -> web.Response:
        if not self.may_delete_pods:
            return status(403, "pods is forbidden: cannot delete resource")
        wanted, options = request.match_info["name"], await request.json()
        for name, pod in list(self.pods.items()):
            if pod["metadata"]["name"] == wanted:
                assert options["preconditions"]["uid"] == pod["metadata"]["uid"]
                self._end(name)
                return web.json_response(pod)
        return status(404, f'pods "{wanted}" not found')

    async def _list_pods(self, request: web.Request) -> web.Response:
        selector = request.query.get("labelSelector", "")
        items = [one for one in self.pods.values() if meant(one["metadata"]["labels"], selector)]
        listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}
        kubernetes_validate.validate(listed, SCHEMA, strict=True)
        return web.json_response(listed)

    async def _events(self, request: web.Request) -> web.Response:
        uid = request.query["fieldSelector"].removeprefix("involvedObject.uid=")
        event = {
            "metadata": {"name": "one", "namespace": NAMESPACE},
            "involvedObject": {"uid": uid},
            "reason": "FailedCreate",
            "message": 'Error creating: pods "workbench-x" is forbidden: exceeded quota: small',
        }
        items = [event] if self.says == "no pod" else []
        return web.json_response({"kind": "EventList", "apiVersion": "v1", "items": items})

    async def _log(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["name"], request.query["container"]
        if key not in self._logs:
            return status(400, f'container "{key[1]}" in pod "{key[0]}" is waiting to start')
        if request.query.get("follow") in ("true", "True"):
            return await self._followed(request, key)
        lines = self._logs[key]
        held, size = [], 0
        for line in reversed(lines):
            size += len(line[1])
            if size > self.keeps_bytes:
                break
            held.insert(0, line)
        if tail := request.query.get("tailLines"):
            held = held[-int(tail) :]
        stamped = request.query.get("timestamps") in ("true", "True")
        text = b"".join((nanoseconds(at_s) if stamped else b"") + line for at_s, line in held)
        return web.Response(body=text[: int(request.query["limitBytes"])])

    async def _followed(self, request: web.Request, key: tuple[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        told, stamped = 0, request.query.get("timestamps") in ("true", "True")
        with suppress(ConnectionError):  # whoever followed has gone
            while True:
                for at_s, line in [] if self.mute else self._logs[key][told:]:
                    await response.write((nanoseconds(at_s) if stamped else b"") + line)
                    told += 1
                if not any(pod["metadata"]["name"] == key[0] for pod in self.pods.values()):
                    break
                await asyncio.sleep(0.02)
        return response

    # ------------------------------------------------------------------ what becomes of a Job

    async def _live(self, name: str, job: Json) -> None:
        if self.says == "no pod":
            return
        template = job["spec"]["template"]
        pod = self.pods[name] = self._a_pod(name, template)
        if self.says == "no room":
            pod["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/3 nodes are available: 3 Insufficient cpu.",
                }
            ]
            return
        pod["spec"]["nodeName"] = NODE
        await asyncio.sleep(0.1)
        if self.says == "no image":
            for told in pod["status"]["containerStatuses"]:
                waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
                told["state"] = {"waiting": waiting}
            return
        pod["status"]["phase"] = "Running"
        await asyncio.gather(
            *[
                await self._begin(name, container, told)
                for container, told in zip(
                    template["spec"]["containers"], pod["status"]["containerStatuses"], strict=True
                )
            ]
        )
        codes = [
            told["state"]["terminated"]["exitCode"] for told in pod["status"]["containerStatuses"]
        ]
        if pod["status"]["phase"] == "Running":
            pod["status"]["phase"] = "Failed" if any(codes) else "Succeeded"

    def _a_pod(self, name: str, template: Json) -> Json:
        told = [
            {
                "name": one["name"],
                "image": IMAGE,
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"waiting": {"reason": "ContainerCreating"}},
            }
            for one in template["spec"]["containers"]
        ]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-x7k2p",
                "uid": f"7b1c0f4e-0000-4000-9000-{len(self.seen):012d}",
                "namespace": NAMESPACE,
                "labels": copy.deepcopy(template["metadata"]["labels"]),
            },
            "spec": copy.deepcopy(template["spec"]),
            "status": {"phase": "Pending", "conditions": [], "containerStatuses": told},
        }

    async def _begin(self, name: str, container: Json, told: Json) -> Any:
        """Start the process of a container; what waits for its end."""
        hosts = self.folder / "hosts-of-the-cluster"
        hosts.write_text(f"127.0.0.1 localhost {SERVICE}\n")
        argv = [word.replace("$$", "$") for word in container["command"]]
        told["imageID"] = "registry.example/load@sha256:" + "2" * 64
        lines = self._logs[self.pods[name]["metadata"]["name"], container["name"]] = []
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}
        started_s = time.time()
        self.began_s[container["name"]] = started_s
        process = await asyncio.create_subprocess_exec(
            *("unshare", "--mount", "sh", "-c", IN_CLUSTER, str(hosts), *argv),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
        self._running.setdefault(name, {})[container["name"]] = process
        told["state"] = {"running": {"startedAt": whole_second(started_s + self.clock_ahead_s)}}

        async def ended() -> None:
            assert process.stdout is not None
            async for line in process.stdout:
                lines.append((time.time(), line))
            code = await process.wait()
            told["state"] = {
                "terminated": {
                    "exitCode": code if code >= 0 else 128 - code,
                    "reason": "Completed" if code == 0 else "Error",
                    "startedAt": whole_second(started_s + self.clock_ahead_s),
                    "finishedAt": whole_second(time.time()),
                }
            }

        return ended()


def nanoseconds(at_s: float) -> bytes:
    moment = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{moment}000Z ".encode()
