"""A KPI that a plug-in adds goes the whole way: sample, store, breakpoint, model, words, export."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from plugged_in import run

from workbench.domain import kpis

KPI = '''
from workbench.domain.kpis import Kpi
from workbench.domain.samples import Estimate

def spread(pool):
    """How far the slow requests are from the usual ones."""
    slow, usual = pool.response.quantile(0.95), pool.response.quantile(0.50)
    if not slow or not usual:
        return None
    ratio = slow / usual
    return Estimate(ratio, 0.9 * ratio, 1.1 * ratio)

def broken(pool):
    raise RuntimeError("no figure today")

SPREAD = Kpi(name="spread_x", unit="x", aliases=("spread",), rank=7, floor=0.01, measure=spread)
BROKEN = Kpi(name="broken_x", unit="x", measure=broken)
'''
CAMPAIGN = """
kind: campaign
targets: [{vnf: haproxy, resource_parameters: [{name: vcpu, values: [25%]}]}]
workload_parameters: [{name: filesize, values: [10kB]}]
primary_workload_parameter: {name: rate, range: [50/s, 1000/s]}
load: {kind: open}
kpi: spread
kpi_max: 40 x
sla: spread<=2.5x
windows: {window: 2s}
sampling: {method: blocks, max_samples: 8}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, and beside it a package that adds two KPIs, one of which never has a figure."""
    home = tmp_path_factory.mktemp("added")
    (home / "spread_kpi.py").write_text(KPI)
    info = home / "spread_kpi-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spread-kpi\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[workbench.kpis]\nspread = spread_kpi:SPREAD\nbroken = spread_kpi:BROKEN\n"
        "absent = no_such_module:KPI\n"
    )
    (home / "spread.yaml").write_text(CAMPAIGN)
    return home


@pytest.mark.slow
def test_a_kpi_of_a_plug_in_goes_the_whole_way(home: Path) -> None:
    lines = run(home, "run", "spread.yaml", "--lab", "sim", "--session", "s", "--json").splitlines()
    events = [json.loads(line) for line in lines]
    samples = [e["sample"] for e in events if e["event"] == "SampleTaken"]
    assert samples
    assert all("spread_x" in s["kpis"] for s in samples if s["valid"])
    assert not any("broken_x" in s["kpis"] for s in samples), "a broken one states nothing"
    words = run(home, "show", "s")
    assert "KPI spread_x" in words
    assert "SLA spread<=2.5x" in words
    scores = run(home, "models", "s", "--json")
    assert "spread_x" in scores
    run(home, "export", "s", "--as", "csv", "--output", str(home / "s.csv"))
    rows = list(csv.DictReader((home / "s.csv").read_text().splitlines()))
    assert {float(r["spread_x_low"]) < float(r["spread_x"]) for r in rows if r["spread_x"]} == {
        True
    }


@pytest.mark.parametrize(
    ("given", "name", "quantile"),
    [("p90", "p90_ms", 0.90), ("p999_ms", "p999_ms", 0.999), ("median", "p50_ms", 0.5)],
)
def test_any_percentile_is_a_kpi(given: str, name: str, quantile: float) -> None:
    kpi = kpis.find(given)
    assert kpi is not None
    assert (kpi.name, kpi.quantile, kpi.kind, kpi.unit) == (name, quantile, "response_time", "ms")


@pytest.mark.parametrize("given", ["p5", "p00", "p00_ms", "latency", "p95_s", ""])
def test_what_is_no_kpi_is_none(given: str) -> None:
    assert kpis.find(given) is None


def test_a_session_may_hold_a_kpi_of_a_plug_in_that_is_gone() -> None:
    gone = kpis.of("handshake_ms")
    assert (gone.unit, gone.short, gone.more_is_better) == ("ms", "handshake", False)
    assert kpis.of("power_w").unit == ""
