"""A resource that a plug-in adds goes the whole way: lint, lab, answer, price, who refuses it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from plugged_in import run

from workbench.domain import resources

CACHE = '''
from dataclasses import replace

from workbench.domain.resources import MEMORY, Resource

CACHE = Resource(
    key="cache_mbps", name="cache", quantity="a rate of reading", unit="MB/s",
    units={"MB/s": 1, "kB/s": 1e-3}, example="20MB/s", examples="20MB/s, 50MB/s", most=1e5,
    shown=lambda rate: f"{rate:g} MB/s of cache", price="cache_mbps", priced_unit="MB/s",
    simulated_s=lambda rate, answer_bytes: answer_bytes * 1e-6 / rate,
)
"""Each answer is read from it."""
LICENCES = Resource(
    key="licences", name="licences", quantity="a number", unit="licences", units={"": 1},
    example="4", examples="4", most=100, shown="{:g} licences".format, price="licence",
    priced_unit="licence",
)
"""Nobody simulates these."""
TAKEN = Resource(**{**vars(MEMORY), "most": 1})
'''
CAMPAIGN = """
kind: campaign
targets:
  - vnf: haproxy
    resource_parameters:
      - {name: vcpu, values: [100%]}
      - {name: cache, values: [1000 kB/s, 20 MB/s]}
workload_parameters: [{name: filesize, values: [10kB]}]
primary_workload_parameter: {name: rate, range: [20/s, 400/s]}
load: {kind: open}
kpi: mean
kpi_max: 20s
windows: {window: 2s}
sampling: {method: blocks, max_samples: 8}
"""
PRICES = "kind: prices\ncurrency: EUR\nper_hour: {vcpu: 0.1, cache_mbps: 0.01}\n"
ANSWER_S = 0.8 * 10_000 * 1e-6 / 1.0
"""What an answer of 10 kB takes from one of 1 MB/s, on the fastest start of a simulated host."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, and beside it a package that adds three resources, one under a taken name."""
    home = tmp_path_factory.mktemp("added")
    (home / "cache_resource.py").write_text(CACHE)
    info = home / "cache_resource-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cache-resource\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[workbench.resources]\ncache = cache_resource:CACHE\nlicences = cache_resource:LICENCES\n"
        "taken = cache_resource:TAKEN\nabsent = no_such_module:RESOURCE\n"
    )
    (home / "cache.yaml").write_text(CAMPAIGN)
    (home / "prices.yaml").write_text(PRICES)
    return home


@pytest.mark.slow
def test_a_resource_of_a_plug_in_goes_the_whole_way(home: Path) -> None:
    run(home, "run", "cache.yaml", "--lab", "sim", "--session", "s", "--json")
    run(home, "export", "s", "--as", "csv", "--output", str(home / "s.csv"))
    rows = list(csv.DictReader((home / "s.csv").read_text().splitlines()))
    means = [(float(r["haproxy.cache_mbps"]), float(r["mean_ms"])) for r in rows if r["mean_ms"]]
    slow, fast = (min(mean for at, mean in means if at == rate) for rate in (1.0, 20.0))
    assert slow > 1000.0 * ANSWER_S > 2.0 * fast, "the slower one binds on the simulated lab"
    mean = ("--chain", "haproxy", "--at", "rate=40/s, filesize=10kB")
    told = run(home, "predict", "s", *mean, "--allocate", "haproxy=100%, haproxy.cache=20MB/s")
    assert "haproxy.cache_mbps" in told
    sla = ("--sla", "mean<=9ms @ rate=100/s, filesize=10kB")
    asked = ("recommend", "s", "--chain", "haproxy", *sla, "--cost", "./prices.yaml")
    found = json.loads(run(home, *asked, "--json"))
    assert found["allocation"]["haproxy.cache_mbps"] == 20.0
    assert found["cost"] == pytest.approx(0.1 + 0.01 * 20)


def test_its_mistakes_are_told_and_who_cannot_set_it_refuses_it(home: Path) -> None:
    (home / "bad.yaml").write_text(CAMPAIGN.replace("20 MB/s]", "20 Mbit/s]"))
    assert "is not a unit of a rate of reading; allowed: MB/s, kB/s" in run(
        home, "lint", "bad.yaml", expect=2
    )
    (home / "bad.yaml").write_text(CAMPAIGN.replace("name: cache", "name: caches"))
    assert "allowed: bandwidth, cache, disk, flavor, licences, memory, vcpu" in run(
        home, "lint", "bad.yaml", expect=2
    )
    licences = "{name: licences, values: [2, 4]}"
    text = CAMPAIGN.replace("{name: cache, values: [1000 kB/s, 20 MB/s]}", licences)
    (home / "licences.yaml").write_text(text)
    told = run(home, "run", "licences.yaml", "--lab", "sim", "--session", "l", expect=3)
    assert "licences is not simulated" in told


def test_a_session_may_hold_a_resource_of_a_plug_in_that_is_gone() -> None:
    assert resources.of("haproxy.cache_mbps") is None
    assert resources.shown("haproxy.cache_mbps", 20.0) == "cache_mbps 20"
    assert resources.shown("haproxy.memory_bytes", 2.0**26) == "64 MiB"
