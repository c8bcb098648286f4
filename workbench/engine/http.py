"""`/status` and `/metrics` on a loopback address, for the site's own monitoring."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator

from aiohttp import web
from prometheus_async.aio.web import server_stats
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workbench.domain import codec
from workbench.domain.errors import EngineError, UsageError
from workbench.domain.events import Progress
from workbench.domain.messages import EngineStatus
from workbench.engine.function_watching import ReportedWatches
from workbench.engine.run_metrics import run_metrics
from workbench.engine.sessions.channel import Channel
from workbench.engine.watch_metrics import watch_metrics
from workbench.own_names import OwnNames, address_of, is_loopback

Status = Callable[[], EngineStatus]
Measured = Callable[[], Channel | None]
"""The session that is being measured, if any."""


class HttpDoor:
    """A listener on loopback; it answers and changes nothing."""

    def __init__(self, runner: web.AppRunner, collector: Collector) -> None:
        self._runner = runner
        self._collector = collector
        host, port = runner.addresses[0][:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @classmethod
    async def open(
        cls, address: str, status: Status, measured: Measured, watches: ReportedWatches
    ) -> HttpDoor:
        """Listen at `127.0.0.1:PORT`; port 0 is any free one. Raises for any but loopback."""
        host, port = parse_address(address)
        app = web.Application(middlewares=[OwnNames().only])
        app.router.add_get("/status", _status_of(status, measured))
        app.router.add_get("/metrics", server_stats)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            raise EngineError(
                f"cannot listen: {error.strerror}", where=address, remedy="Choose another port"
            ) from None
        collector = EngineCollector(status, measured, watches)
        REGISTRY.register(collector)
        return cls(runner, collector)

    async def close(self) -> None:
        REGISTRY.unregister(self._collector)
        await self._runner.cleanup()


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:9100`. Raises `UsageError` for what is not loopback."""
    host, port = address_of(address)
    if not is_loopback(host):
        raise UsageError(
            f"{host or 'every interface'} is not loopback, and /metrics has no password",
            where="--http",
            remedy=f"Write 127.0.0.1:{port}; others reach it through an SSH tunnel",
        )
    return host, port


def _status_of(
    status: Status, measured: Measured
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        del request
        plain = codec.to_plain(status())
        channel = measured()
        progress = channel.last_ticks.get(Progress) if channel else None
        plain["progress"] = codec.to_plain(progress) if progress else None
        return web.Response(body=codec.dumps(plain), content_type="application/json")

    return answer


class EngineCollector(Collector):
    """Reads the figures when they are asked for; a run pays nothing for them in between."""

    def __init__(self, status: Status, measured: Measured, watches: ReportedWatches) -> None:
        self._status, self._measured, self._watches = status, measured, watches

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        yield GaugeMetricFamily("workbench_clients", "Connected clients.", status.clients)
        yield GaugeMetricFamily(
            "workbench_loop_lag_p99_seconds",
            "99th percentile of the event loop's lag in the last minute.",
            status.loop_lag_p99_ms / 1000,
        )
        yield GaugeMetricFamily("workbench_queued", "Campaigns that wait.", len(status.queued))
        channel = self._measured()
        yield GaugeMetricFamily("workbench_running", "Campaigns that measure.", int(bool(channel)))
        if channel is not None:
            yield from run_metrics(channel)
        yield from watch_metrics(self._watches, time.time())
