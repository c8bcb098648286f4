"""A running system that a real Prometheus watches: its figures are ours, and its alerts count."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import Workbench, a_workbench
from running_system import RunningSystem
from site_prometheus import a_prometheus

pytestmark = pytest.mark.needs(
    "prometheus", "prometheus-node-exporter", "prometheus-process-exporter"
)

METRICS = """\
kind: metrics
metrics: [host_cores, served_cores, load_one, 'host:busy_cores', nowhere, broken, many]
definitions:
  host_cores: {template: 'sum(1 - rate(node_cpu_seconds_total{mode="idle"}[{{ window }}]))',
               unit: cores, probe: site}
  busy_cores: {template: 'sum(1 - rate(node_cpu_seconds_total{mode="idle"}[{{ window }}]))',
               unit: cores, probe: site}
  served_cores: {template: 'sum(rate(namedprocess_namegroup_cpu_seconds_total[{{ window }}]))',
                 unit: cores, probe: site}
  load_one: {template: node_load1, unit: processes, probe: site}
  nowhere: {template: no_such_series, unit: things, probe: site}
  broken: {template: 'rate(node_load1)', unit: things, probe: site}
  many: {template: 'rate(node_cpu_seconds_total[{{ window }}])', unit: cores, probe: site}
probes:
  site: {class: prometheus, url: 'http://URL', scrape_interval: 1s, alerts: ALERTS}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with a_prometheus(tmp_path_factory.mktemp("site"), alerting=True) as url:
        yield url


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    (tmp_path / "w").mkdir()
    with a_workbench(tmp_path / "w") as made:
        yield made


BURNER = """
import time
while True:
    end = time.monotonic() + 0.03
    while time.monotonic() < end:
        pass
    time.sleep(0.07)
"""


@pytest.fixture
def busy() -> Iterator[None]:
    """Something to compare: a third of a core that is used all the time."""
    with subprocess.Popen([sys.executable, "-c", BURNER]) as process:
        yield
        process.kill()


def measured(
    workbench: Workbench, system: RunningSystem, site: str, *, alerts: bool
) -> list[dict[str, Any]]:
    """The samples of a session `beside`, as its events have them."""
    folder = workbench.root
    (folder / "metrics").mkdir()
    text = METRICS.replace("http://URL", site).replace("ALERTS", str(alerts).lower())
    (folder / "metrics" / "site.yaml").write_text(text)
    campaign = system.campaign(folder, resources="fixed", samples=2)
    text = campaign.read_text().replace("window: 1.5s, timeout: 6s", "window: 6s, timeout: 8s")
    campaign.write_text(text + "metrics: site\n")
    run = ("run", str(campaign), "--session", "beside", "--headless", "--json")
    events = map(json.loads, workbench.run(*run, expect=None).stdout.splitlines())
    return [event["sample"] for event in events if event["event"] == "SampleTaken"]


@pytest.mark.slow
def test_its_figures_are_columns_that_agree_with_our_own(
    workbench: Workbench, system: RunningSystem, site: str, busy: None
) -> None:
    measured(workbench, system, site, alerts=False)
    # Where a scrape came late there is no figure for that sample, and its evidence says so.
    samples = [s for s in workbench.samples("beside") if s["host_cores"] is not None]
    assert samples
    apart = [abs(s["host_cores"] / s["usage.host.cpu_cores"] - 1) for s in samples]
    # Its readings and ours are up to a second apart: who comes or goes just then is in one of them.
    assert min(apart) < 0.05
    assert max(apart) < 0.25
    # Of a server that takes some hundredths of a core, in clock ticks there.
    served = [abs(s["served_cores"] / s["usage.web.cpu_cores"] - 1) for s in samples]
    assert min(served) < 0.25
    sample = samples[0]
    assert sample["host:busy_cores"] == sample["host_cores"]
    assert sample["host_cores_low"] <= sample["host_cores"] <= sample["host_cores_high"]
    assert "load_one" in sample
    assert "site_metric" in str(sample["labels"])
    assert not {"nowhere", "broken", "many"} & set(sample)
    workbench.run("export", "beside", "--as", "evidence", "--output", str(workbench.root))
    with (workbench.root / "beside.evidence.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["component"] == "the site"]
    found = {row["name"]: row for row in rows}
    assert found["host_cores"]["unit"] == "cores"
    assert found["host_cores"]["value"]
    missing = {name: row["missing"] for name, row in found.items()}
    assert "no series fits" in missing["nowhere"]
    assert "400, bad_data" in missing["broken"]
    assert "range vector" in missing["broken"]
    assert "series where one is due" in missing["many"]
    assert not any(found[name]["value"] for name in ("nowhere", "broken", "many"))


def test_an_alert_that_fires_meanwhile_invalidates_by_name(
    workbench: Workbench, system: RunningSystem, site: str
) -> None:
    sample = measured(workbench, system, site, alerts=True)[0]
    assert not sample["valid"]
    (finding,) = [one for one in sample["findings"] if one["reason"] == "site_alert"]
    assert "alert DiskNearlyFull of the Prometheus at 127.0.0.1" in finding["evidence"]
    assert "severity=page" in finding["evidence"]
