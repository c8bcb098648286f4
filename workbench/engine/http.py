"""`/status` and `/metrics` on a loopback address, for the site's own monitoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from aiohttp import web
from prometheus_async.aio.web import server_stats
from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workbench.domain import codec
from workbench.domain.errors import EngineError, UsageError
from workbench.domain.events import Progress, UsageTick
from workbench.domain.messages import EngineStatus
from workbench.engine.sessions.channel import Channel
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
    async def open(cls, address: str, status: Status, measured: Measured) -> HttpDoor:
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
        collector = EngineCollector(status, measured)
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

    def __init__(self, status: Status, measured: Measured) -> None:
        self._status, self._measured = status, measured

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
            yield from _run_metrics(channel)


def _run_metrics(channel: Channel) -> Iterator[Metric]:
    view = channel.view
    session = view.session
    samples = CounterMetricFamily("workbench_samples", "Samples taken.", labels=("session",))
    samples.add_metric((session,), view.samples_taken + view.trial_samples)
    yield samples

    invalid = CounterMetricFamily(
        "workbench_invalid_samples", "Samples that are not valid.", labels=("session", "reason")
    )
    reasons: Counter[str] = Counter()
    for configuration in view.configurations:
        reasons.update(configuration.left_out_reasons)
    points = [point for c in view.configurations for point in c.samples]
    points += [trial.sample for trials in view.trials for trial in trials.samples]
    reasons.update(point.reason for point in points if not point.valid)
    for reason, count in sorted(reasons.items()):
        invalid.add_metric((session, reason), count)
    yield invalid

    progress, usage = channel.last_ticks.get(Progress), channel.last_ticks.get(UsageTick)
    lab = GaugeMetricFamily("workbench_lab_seconds", "Lab time spent.", labels=("session",))
    lab.add_metric((session,), progress.lab_s if isinstance(progress, Progress) else view.lab_s)
    yield lab

    wl = GaugeMetricFamily("workbench_wl", "Load being offered.", labels=("session", "target"))
    if isinstance(progress, Progress) and progress.wl is not None:
        wl.add_metric((session, progress.target), progress.wl)
    yield wl

    kpis = GaugeMetricFamily(
        "workbench_kpi", "KPIs of a target's last sample.", labels=("session", "target", "kpi")
    )
    for target, taken in channel.last_samples.items():
        for name, estimate in taken.kpis.items():
            kpis.add_metric((session, target, name), estimate.value)
    yield kpis

    cpu = GaugeMetricFamily(
        "workbench_cpu_cores", "CPU in use, in cores.", labels=("session", "component")
    )
    if isinstance(usage, UsageTick):
        for component, figures in usage.usage.items():
            cpu.add_metric((session, component), figures.cpu_cores)
    yield cpu
