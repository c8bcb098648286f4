"""A campaign on the real lab of which only its course matters, not what it measures."""

from __future__ import annotations

from pathlib import Path

SHORT = """\
kind: campaign
summary: tinyproxy at a quarter of a core, few clients, for tests
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {{vnf: tinyproxy, name: vcpu, values: [25%]}}
workload_parameters:
  - {{name: filesize, values: [10 kB]}}
primary_workload_parameter: {{name: concurrent, range: [2, {most}]}}
load: {{kind: closed}}
kpi: p95
kpi_max: 1000 ms
sampling: {{method: uniform, max_samples: {samples}}}
windows: {{warmup: 0.5 s, window: 2 s, timeout: 4 s, request_timeout: 5 s}}
"""
"""Few clients, as each load is also driven past the function first. A point that does not settle
says so early; samples need not be valid. Whoever interferes has two seconds of each for that."""


def short_campaign(folder: Path, samples: int) -> Path:
    """Its file, with so many samples."""
    path = folder / "short.yaml"
    path.write_text(SHORT.format(most=1 + samples, samples=samples), encoding="utf-8")
    return path
