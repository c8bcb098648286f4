"""The API server of a cluster, asked within bounds: every answer that is no answer is a sentence.

`kubernetes_asyncio` finds the way there (kubeconfig, tokens, certificates, exec plugins); objects
stay the plain JSON that the server sent. Nothing of a credential, a header or a whole answer is
logged or quoted.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from workbench.domain.errors import LabError, LabGone

Json = dict[str, Any]

ANSWER_S = 5.0
"""How long one request may take."""
PATIENCE_S = 10.0
"""How long a request is tried again where the server is away, busy or broken."""
START_S = 20.0
"""How long a kubeconfig may take: it may name a command that asks for a token."""
PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0
MOST_BYTES = 16 << 20
"""Of an answer: a kubelet's summary of some hundred pods has one or two."""
QUOTED = 200
"""Characters of a server's own words that are passed on."""
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, INVALID, BUSY = 401, 403, 404, 409, 422, 429
EXTRA = "kubernetes"
MISSING = (
    "the package kubernetes_asyncio is not installed",
    f"Install it: pip install 'vnf-workbench[{EXTRA}]'",
)


class ApiRefused(LabError):
    """The server answered, and not as was asked."""

    status = 0


def installed() -> bool:
    """Whether the extra is there; it is not imported for that."""
    return importlib.util.find_spec("kubernetes_asyncio") is not None


class ClusterApi:
    """One API server, by a context of the user's kubeconfig."""

    def __init__(self, core: Any, batch: Any, place: str, patience_s: float = PATIENCE_S) -> None:
        self._core, self._batch = core, batch
        self.place = place
        """Its address, as a sentence names it."""
        self.patience_s = patience_s

    @classmethod
    @asynccontextmanager
    async def connected(
        cls, context: str = "", kubeconfig: str = "", patience_s: float = PATIENCE_S
    ) -> AsyncIterator[ClusterApi]:
        """By a kubeconfig (or its usual place) and one of its contexts (or the current one).

        Raises `LabError` where the extra or the kubeconfig is missing or cannot be used.
        """
        if not installed():
            raise LabError(MISSING[0], remedy=MISSING[1])
        # A second of imports: not on the event loop, and on nobody's way who attaches to no pod.
        kube = await asyncio.to_thread(importlib.import_module, "kubernetes_asyncio")
        yaml = importlib.import_module("yaml")
        where = kubeconfig or the_kubeconfig()
        settings = kube.client.Configuration()
        try:
            async with asyncio.timeout(START_S):
                if where:
                    await kube.config.load_kube_config(
                        where, context or None, settings, persist_config=False
                    )
                else:
                    kube.config.load_incluster_config(client_configuration=settings)
        except TimeoutError:
            raise LabError(
                f"its kubeconfig gave no credentials within {START_S:g} s", where=where
            ) from None
        except (kube.config.ConfigException, yaml.YAMLError, *UNUSABLE) as error:
            raise LabError(
                f"it cannot be used ({type(error).__name__})",
                where=where or "the service account of this pod",
                remedy="See that `kubectl get pods` works with it; KUBECONFIG names another",
            ) from None
        settings.safe_chars_for_path_param = "/"  # of the way through a node's proxy
        parts = urlsplit(str(settings.host))
        client = kube.client.ApiClient(configuration=settings)
        try:
            place = f"API server {parts.hostname}:{parts.port or 443}"
            core, batch = kube.client.CoreV1Api(client), kube.client.BatchV1Api(client)
            yield cls(core, batch, place, patience_s)
        finally:
            await client.close()

    # ------------------------------------------------------------------ what is asked

    async def pods(self, namespace: str, selector: str) -> list[Json]:
        """Pods of a label selector, whatever their phase."""
        answer = await self._json(
            f"list pods in {namespace}",
            self._core.list_namespaced_pod,
            namespace,
            label_selector=selector,
            limit=500,
        )
        return list(answer.get("items") or ())

    async def pod(self, namespace: str, name: str) -> Json:
        """Raises `ApiRefused` with status 404 where there is none."""
        return await self._json(
            f"get pod {namespace}/{name}", self._core.read_namespaced_pod, name, namespace
        )

    async def node(self, name: str) -> Json:
        return await self._json(f"get node {name}", self._core.read_node, name)

    async def resize(self, namespace: str, name: str, body: Json) -> Json:
        """Patch the subresource `resize` of a pod; the pod as it is then."""
        return await self._json(
            f"patch pods/resize of {namespace}/{name}",
            self._core.patch_namespaced_pod_resize,
            name,
            namespace,
            body,
        )

    async def summary(self, node: str) -> Json:
        """The kubelet's `/stats/summary`, through the server's proxy."""
        return await self._json(
            f"get nodes/proxy of {node} (stats/summary)",
            self._core.connect_get_node_proxy_with_path,
            node,
            "stats/summary",
        )

    async def resource_metrics(self, node: str) -> str:
        """The kubelet's `/metrics/resource`, through the server's proxy."""
        answer = await self._ask(
            f"get nodes/proxy of {node} (metrics/resource)",
            self._core.connect_get_node_proxy_with_path,
            (node, "metrics/resource"),
            {},
        )
        return answer.decode(errors="replace")

    async def changes(self, namespace: str, name: str, since: str) -> AsyncIterator[Json]:
        """What the server says of one pod from a version on: events of a watch, until it ends.

        Raises `LabError` where it breaks; ends where the server ends it.
        """
        what = f"watch pod {namespace}/{name}"
        lines = self._lines(
            what,
            self._core.list_namespaced_pod,
            namespace,
            field_selector=f"metadata.name={name}",
            resource_version=since,
            watch=True,
            timeout_seconds=WATCH_S,
        )
        async for line in lines:
            try:
                event = _object(line)
            except ValueError as error:
                raise self._away(what, error) from None
            yield event

    # ------------------------------------------------------------------ Jobs of ours

    async def create_job(self, namespace: str, body: Json) -> Json:
        """Raises `ApiRefused`, with status 409 where there is one of that name: an answer that was
        lost is asked for again."""
        return await self._json(
            f"create a Job in {namespace}", self._batch.create_namespaced_job, namespace, body
        )

    async def jobs(self, namespace: str, selector: str) -> list[Json]:
        answer = await self._json(
            f"list Jobs in {namespace}",
            self._batch.list_namespaced_job,
            namespace,
            label_selector=selector,
            limit=500,
        )
        return list(answer.get("items") or ())

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """Delete that very Job, and its pods with it; gone already is no error."""
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            await self._json(
                f"delete Job {namespace}/{name}",
                self._batch.delete_namespaced_job,
                name,
                namespace,
                body=body,
            )
        except ApiRefused as refused:
            if refused.status not in (NOT_FOUND, CONFLICT):
                raise

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete that very pod; gone already, or not allowed, is no error."""
        try:
            await self._json(
                f"delete pod {namespace}/{name}",
                self._core.delete_namespaced_pod,
                name,
                namespace,
                body={"preconditions": {"uid": uid}},
            )
        except ApiRefused as refused:
            if refused.status not in (NOT_FOUND, CONFLICT, FORBIDDEN):
                raise

    async def events(self, namespace: str, uid: str) -> list[Json]:
        """What was said of one object."""
        answer = await self._json(
            f"list events in {namespace}",
            self._core.list_namespaced_event,
            namespace,
            field_selector=f"involvedObject.uid={uid}",
            limit=50,
        )
        return list(answer.get("items") or ())

    async def log(
        self, namespace: str, pod: str, container: str, most_bytes: int, **options: Any
    ) -> bytes:
        """What a container of a pod wrote, `most_bytes` of it at most."""
        return await self._ask(
            f"read the log of pod {namespace}/{pod}",
            self._core.read_namespaced_pod_log,
            (pod, namespace),
            {"container": container, "limit_bytes": most_bytes, **options},
            bounds=(max(ANSWER_S, LOG_S), most_bytes + 1),
        )

    async def log_lines(
        self, namespace: str, pod: str, container: str, **options: Any
    ) -> AsyncIterator[bytes]:
        """What a container has written and writes, line by line, until it ends or this breaks.

        The last line lacks its end where it is torn. Raises `LabError`, also where the container
        has not begun (400).
        """
        lines = self._lines(
            f"follow the log of pod {namespace}/{pod}",
            self._core.read_namespaced_pod_log,
            pod,
            namespace,
            container=container,
            follow=True,
            **options,
        )
        async for line in lines:
            yield line

    async def _lines(
        self, what: str, method: Any, *arguments: Any, **options: Any
    ) -> AsyncIterator[bytes]:
        """Lines of an answer that goes on."""
        # The server ends a watch before the socket is taken for dead.
        timeout = aiohttp.ClientTimeout(sock_connect=ANSWER_S, sock_read=WATCH_S + ANSWER_S)
        asked = {**options, "_preload_content": False, "_request_timeout": timeout}
        try:
            async with asyncio.timeout(ANSWER_S):
                response = await method(*arguments, **asked)
            try:
                if response.status != 200:
                    raise self._refused(what, response.status, await _body(response, MOST_BYTES))
                while line := await response.content.readline():
                    yield line
            finally:
                response.close()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._away(what, error) from None

    # ------------------------------------------------------------------ how it is asked

    async def _json(self, what: str, method: Any, *arguments: Any, **options: Any) -> Json:
        answer = await self._ask(what, method, arguments, options)
        try:
            return _object(answer)
        except ValueError:
            raise LabError(
                f"it answered something that is no JSON object when asked to {what}",
                where=self.place,
                remedy="See whether a proxy answers in its place",
            ) from None

    async def _ask(
        self,
        what: str,
        method: Any,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
        bounds: tuple[float, int] | None = None,
    ) -> bytes:
        """One answer, tried again where that may help; all of this may be asked twice.

        Parameters
        ----------
        bounds : seconds and bytes that it may take; None: those of every answer.
        """
        answer_s, most_bytes = bounds or (ANSWER_S, MOST_BYTES)
        latest_s = time.monotonic() + self.patience_s
        pause_s = PAUSE_S
        while True:
            after_s = 0.0
            try:
                async with asyncio.timeout(answer_s):
                    response = await method(*arguments, **options, _preload_content=False)
                    try:
                        answer = await _body(response, most_bytes)
                    finally:
                        response.release()
                if 200 <= response.status < 300:
                    return answer
                error: LabError = self._refused(what, response.status, answer)
                if response.status != BUSY and response.status < 500:
                    raise error
                after_s = _seconds(response.headers.get("Retry-After", ""))
            except (aiohttp.ClientError, OSError, ValueError) as reason:
                error = self._away(what, reason, answer_s)
            wait_s = max(pause_s, after_s)
            if time.monotonic() + wait_s > latest_s:
                raise error
            await asyncio.sleep(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _away(self, what: str, reason: Exception, answer_s: float = ANSWER_S) -> LabGone:
        if isinstance(reason, TimeoutError):
            said = f"it did not answer within {answer_s:g} s"
        elif isinstance(reason, ValueError):
            said = "its answer is longer than is read, or is not JSON"
        else:
            said = f"it cannot be reached ({type(reason).__name__})"
        return LabGone(
            f"{said} when asked to {what}",
            where=self.place,
            remedy="See that `kubectl get --raw /readyz` answers from here",
        )

    def _refused(self, what: str, status: int, body: bytes) -> ApiRefused:
        message = ""
        with suppress(ValueError):
            message = " ".join(str(_object(body).get("message", "")).split())[:QUOTED]
        said, remedy = REFUSALS.get(status, (f"it failed with {status}", "Ask who runs it"))
        error = ApiRefused(
            f"{said} when asked to {what}" + (f": {message}" if message else ""),
            where=self.place,
            remedy=remedy,
        )
        error.status = status
        return error


WATCH_S = 60
LOG_S = 60.0
"""How long a whole log may take."""
UNUSABLE = (ValueError, LookupError, TypeError, AttributeError, OSError, RuntimeError)
"""What comes of a kubeconfig that is none: files that are missing, commands that fail."""
REFUSALS = {
    UNAUTHORIZED: (
        "it does not accept the credentials of the kubeconfig (401)",
        "Log in again, and see that `kubectl auth whoami` answers",
    ),
    FORBIDDEN: (
        "it does not allow that (403)",
        "Ask for a role that may (docs/attach.md has it); `kubectl auth can-i` tells",
    ),
    NOT_FOUND: ("it has no such thing (404)", "See `kubectl get pods`"),
    CONFLICT: ("somebody changed it at the same time (409)", "Try again"),
    INVALID: ("it takes that for invalid (422)", "Choose values that the pod may have"),
    BUSY: ("it has too much to do (429)", "Try again later"),
}
"""By status: what it means, and what to do about it."""


def the_kubeconfig() -> str:
    """The file that `kubectl` would use; empty inside of a pod that has none."""
    if named := os.environ.get("KUBECONFIG"):
        return named
    usual = Path("~/.kube/config").expanduser()
    if not usual.exists() and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return ""
    return str(usual)


async def _body(response: Any, most_bytes: int) -> bytes:
    """Raises `ValueError` where it is longer than is read."""
    parts, size = [], 0
    while part := await response.content.read(1 << 16):
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            raise ValueError("too long")
    return b"".join(parts)


def _object(text: bytes) -> Json:
    """Raises `ValueError`."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0
