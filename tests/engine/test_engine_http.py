"""`/status` and `/metrics`: on loopback, in mid-run."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from engine_watching import SLOW, SMALL, Watched

from workbench.domain.errors import UsageError
from workbench.domain.events import SampleTaken
from workbench.domain.messages import RunCampaign, StopRun
from workbench.engine.core import Engine
from workbench.engine.http import parse_address
from workbench.link.local import LocalClient
from workbench.paths import Workspace

FOREIGN = (
    {"Host": "rebound.example"},
    {"Host": "127.0.0.1.rebound.example"},
    {"Host": "localhost", "Origin": "http://elsewhere.example"},
    {"Host": "192.0.2.1"},
    {"Host": "localhost@rebound.example"},
    {"Host": ""},
)


async def test_figures_of_a_run_are_there_while_it_runs(root: Path) -> None:
    engine = Engine(Workspace(root), http="127.0.0.1:0")
    await engine.start()
    client = LocalClient(engine, "tester")
    try:
        await client.ask(RunCampaign(SMALL, session="scraped", lab="sim", pace=SLOW))
        async with client.follow("scraped") as feed, aiohttp.ClientSession() as http:
            watched = Watched(feed)
            taken = (await watched.fact(SampleTaken)).fact
            await watched.phase("measuring")
            base = f"http://{engine.status().http}"
            async with http.get(f"{base}/status") as answer:
                status = await answer.json()
            assert status["running"] == "scraped"
            assert status["progress"]["target"] == "tinyproxy"
            async with http.get(f"{base}/metrics") as answer:
                text = await answer.text()
            for page in ("status", "metrics"):
                for headers in FOREIGN:
                    async with http.get(f"{base}/{page}", headers=headers) as answer:
                        assert answer.status == 403, headers
                        assert "web --name" not in await answer.text()
                for name in ("localhost:9464", f"127.0.0.1:{base.rpartition(':')[2]}", "[::1]"):
                    async with http.get(f"{base}/{page}", headers={"Host": name}) as answer:
                        assert answer.status == 200, name
            async with http.get(
                f"{base}/metrics", headers={"Accept": "application/openmetrics-text"}
            ) as answer:
                open_metrics = await answer.text()
            await client.ask(StopRun("scraped", abort=True))
            await watched.finish()
    finally:
        await engine.close()
    assert isinstance(taken, SampleTaken)
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert float(figures['workbench_samples_total{session="scraped"}']) >= 1
    assert float(figures['workbench_lab_seconds{session="scraped"}']) > 0
    assert float(figures['workbench_wl{session="scraped",target="tinyproxy"}']) >= 50
    assert 'workbench_cpu_cores{component="tinyproxy",session="scraped"}' in figures
    p95 = figures['workbench_kpi{kpi="p95_ms",session="scraped",target="tinyproxy"}']
    assert float(p95) == pytest.approx(taken.sample.kpis["p95_ms"].value)
    assert (
        'workbench_session_info{campaign="two_configurations",lab="sim",session="scraped"}'
        in figures
    )
    assert float(figures['workbench_valid_samples{session="scraped"}']) >= 0
    place = 'container="tinyproxy",lab="sim",namespace="scraped",pod="tinyproxy"'
    for name in (
        "cpu_usage_seconds_total",
        "cpu_cfs_periods_total",
        "network_receive_bytes_total",
        "memory_working_set_bytes",
    ):
        assert float(figures[f"container_{name}{{{place}}}"]) > 0
    throttled = float(figures[f"container_cpu_cfs_throttled_periods_total{{{place}}}"])
    assert throttled <= float(figures[f"container_cpu_cfs_periods_total{{{place}}}"])
    assert "container_pressure" not in text, "the simulated lab counts none"
    assert "workbench_loop_lag_p99_seconds" in figures
    assert open_metrics.rstrip().endswith("# EOF")


@pytest.mark.parametrize("address", ["0.0.0.0:9100", ":9100", "192.0.2.1:80", "lab.example:80"])
def test_any_other_address_than_loopback_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="loopback"):
        parse_address(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="not an address"):
        parse_address(address)


def test_loopback_by_any_name() -> None:
    assert parse_address("localhost:1") == ("localhost", 1)
    assert parse_address("[::1]:65535") == ("::1", 65535)
