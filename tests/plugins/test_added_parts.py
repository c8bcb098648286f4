"""A generator, a chain rule and an export that one plug-in adds, driven on the simulated lab.

The simulated lab makes its requests itself, so that a generator's part there is to be chosen, asked
what it is unable to do, and named when it refuses; `tests/netns` and `tests/docker` run generators.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugged_in import run

PARTS = '''
import json

from workbench.chains.base import functions_of
from workbench.traffic.hey import Hey


class Patient(Hey):
    """As hey, but it sends no more than 500 requests per second."""

    name = "patient"

    def unable(self, load, kpis, most):
        return "patient sends at most 500 requests/s" if most > 500 else None


class Doubled:
    """Twice the sum of what the functions take on their own."""

    name = "doubled"

    def refusal(self, kpi, load):
        return "" if kpi == "mean_ms" else f"doubled knows nothing of {kpi}"

    def needs(self, kpi):
        return (kpi,)

    def compose(self, graph, kpi, figures):
        return 2.0 * sum(figures.loaded(vnf.name, kpi) for vnf in functions_of(graph))


class Added(Doubled):
    """The same once: what `doubled` is held against."""

    name = "once"

    def compose(self, graph, kpi, figures):
        return 0.5 * super().compose(graph, kpi, figures)


async def export_lines(source, destination):
    """One line of JSON per sample."""
    path = destination / f"{source.name}.jsonl"
    samples = await source.samples()
    path.write_text("".join(json.dumps(s.point.wl) + "\\n" for s in samples))
    return (path,)
'''
ENTRY_POINTS = """
[workbench.traffic]
patient = added_parts:Patient
[workbench.chain_rules]
doubled = added_parts:Doubled
once = added_parts:Added
[workbench.exports]
lines = added_parts:export_lines
"""
CAMPAIGN = """
kind: campaign
targets:
  - {vnf: haproxy, resource_parameters: [{name: vcpu, values: [25%]}]}
  - {vnf: tinyproxy, resource_parameters: [{name: vcpu, values: [25%]}]}
workload_parameters: [{name: filesize, values: [10kB]}]
primary_workload_parameter: {name: rate, range: [50/s, 400/s]}
load: {kind: open, generator: patient}
kpi: mean
kpi_max: 20s
windows: {window: 2s}
sampling: {method: blocks, max_samples: 4}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, and beside it a package with the three parts."""
    home = tmp_path_factory.mktemp("parts")
    (home / "added_parts.py").write_text(PARTS)
    info = home / "added_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: added-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (home / "pair.yaml").write_text(CAMPAIGN)
    return home


def predicted(home: Path, rule: str) -> float:
    given = ("--chain", "haproxy-tinyproxy", "--at", "rate=100/s, filesize=10kB", "--rule", rule)
    answer = json.loads(run(home, "predict", "s", *given, "--json"))
    return float(answer[0]["value"]["value"])


@pytest.mark.slow
def test_parts_of_a_plug_in_go_the_whole_way(home: Path) -> None:
    run(home, "run", "pair.yaml", "--lab", "sim", "--session", "s", "--json")
    assert predicted(home, "doubled") == pytest.approx(2.0 * predicted(home, "once"))
    formats = " ".join(run(home, "export", "--help").split())
    assert "lines One line of JSON per sample" in formats
    run(home, "export", "s", "--as", "lines", "--output", str(home))
    loads = [float(line) for line in (home / "s.jsonl").read_text().splitlines()]
    assert len(loads) >= 8
    assert all(50.0 <= wl <= 400.0 for wl in loads)


def test_a_generator_of_a_plug_in_is_asked_what_it_is_unable_to_do(home: Path) -> None:
    (home / "fast.yaml").write_text(CAMPAIGN.replace("400/s", "4000/s"))
    told = run(home, "lint", "fast.yaml", expect=2)
    assert "load.generator: is patient, which cannot measure this" in told
    assert "patient sends at most 500 requests/s" in told
    run(home, "lint", "pair.yaml")


def test_what_a_rule_of_a_plug_in_refuses_is_its_own_sentence(home: Path) -> None:
    given = ("--chain", "haproxy-tinyproxy", "--at", "rate=100/s, filesize=10kB")
    told = run(home, "predict", "demo-real", *given, "--rule", "doubled", "--kpi", "p95", expect=2)
    assert "doubled knows nothing of p95_ms" in told
