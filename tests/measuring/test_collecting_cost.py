"""What collecting evidence costs: pairs are kept, and docs/evidence.md says what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from collecting_cost import (
    CHAIN,
    COLLECTING,
    KPIS,
    PAGE,
    figures_of,
    keep_costs,
    published_costs,
    read_costs,
    table,
)
from session_making import measurement

from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate, Measurement


def drive(factor: float, collecting: float | None) -> Measurement:
    made = measurement("haproxy", Configuration({"haproxy.vcpu": 0.5}, {}), 200.0)
    usage = made.sample.usage["haproxy"]
    one = Observation(0, "workbench", "collecting_cores", collecting)
    sample = replace(
        made.sample,
        kpis={name: Estimate(2.0 * factor, 1.9 * factor, 2.1 * factor) for name in KPIS},
        usage={name: replace(usage, cpu_cores=0.1 * factor) for name in CHAIN},
    )
    return replace(made, sample=sample, observations=() if collecting is None else (one,))


def test_throughput_is_among_the_figures_of_each_pair() -> None:
    found = [(True, drive(1.1, 0.01)), (False, drive(1.0, None))]
    found += [(False, drive(1.01, None)), (True, drive(1.09, 0.03))]
    figures = figures_of(found)
    assert set(figures) == {*KPIS, *(f"CPU of {name}, cores" for name in CHAIN), COLLECTING}
    assert figures["throughput_rps"] == [pytest.approx([2.2, 2.0]), pytest.approx([2.18, 2.02])]
    assert figures[COLLECTING] == [[0.01], [0.03]]
    told = table(figures)
    assert "| figure (2 pairs) | without |" in told
    assert "| throughput_rps | 2.01 | 1.090 (" in told
    assert "Collecting took 0.0200 of a core, 0.0300 at most." in told


def test_what_is_kept_is_written_into_the_page(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    assert read_costs(path) == {}
    pairs = {"p95_ms": [[2.0, 1.0], [2.2, 1.1]], COLLECTING: [[0.01]]}
    keep_costs("trace", pairs, path)
    keep_costs("kernel", {"p95_ms": [[1.0, 1.0], [1.1, 1.0]]}, path)
    assert read_costs(path)["trace"] == pairs
    page = PAGE.read_text(encoding="utf-8")
    told = published_costs(page, read_costs(path))
    assert "| p95_ms | 1.049 | 2.000 (2.000 to 2.000) | 6.7% |" in told
    assert published_costs(page, {}) == page
    assert published_costs(page, {"nothing": pairs}) == page, "it has no place for it"


def test_the_docs_have_what_is_kept() -> None:
    page = PAGE.read_text(encoding="utf-8")
    kept = read_costs()
    assert {"perf", "in-band"} <= kept.keys()
    assert all(len(kept[what]["p95_ms"]) == 20 for what in ("perf", "in-band"))
    assert published_costs(page, kept) == page
    assert "`--of trace`" in page
    assert "`--evidence trace" not in page, "is no option of it"
