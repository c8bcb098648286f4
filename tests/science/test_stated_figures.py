"""What docs/chain-science.md claims of coverage, harm and refusals is what its tables hold."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from workbench.chains.handover import AT_MS, MEASURED, HandoverRisk

PAGE = Path(__file__).parents[2] / "docs" / "chain-science.md"


@cache
def part(name: str) -> str:
    """The text between the markers of a table."""
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(f"<!-- bench-chains: {name} -->")[2].partition("<!-- end -->")[0]


def rows(name: str) -> list[list[str]]:
    lines = (line for line in part(name).splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][1:]


def claimed(what: str) -> str:
    """The last cell of a row of *What falls short*."""
    (line,) = [
        x for x in PAGE.read_text(encoding="utf-8").splitlines() if x.startswith(f"| {what}")
    ]
    return line.strip("| ").split("|")[-1].strip()


@pytest.mark.parametrize("kpi", sorted(MEASURED))
def test_the_risk_that_ships_is_the_one_that_was_published(kpi: str) -> None:
    (line,) = [line for line in part("risk").splitlines() if line.startswith(f"- {kpi}: ")]
    added, below, above = re.findall(r"HandoverRisk\(([\d.]+), \(([^)]*)\), \(([^)]*)\)", line)[0]
    told = [tuple(float(x) for x in ends.split(",") if x.strip()) for ends in (below, above)]
    at = AT_MS if "AT_MS" in line else ()
    assert HandoverRisk(float(added), *told, at) == MEASURED[kpi]
    covers = re.findall(r"covers ([\d.]+)%", line)[0]
    name = kpi.removesuffix("_ms").removesuffix("_rps")
    assert re.search(rf"{name}\b.*?{re.escape(covers)}", claimed("interval of a chain")), covers


def test_harm_is_what_its_table_adds_up_to() -> None:
    worse, draws, most = 0, 0, 0.0
    for row in rows("harm"):
        found = re.fullmatch(r"(\d+) of (\d+), ([\d.]+)", row[-1])
        assert found is not None
        worse, draws = worse + int(found[1]), draws + int(found[2])
        most = max(most, float(found[3]))
    assert claimed("accepted corrections") == f"{worse} of {draws} draws, there {most:g} times"


def test_low_load_is_what_its_table_adds_up_to() -> None:
    told = []
    for kpi in ("mean", "p95", "p99"):
        own = [r for r in rows("low-load") if r[1:3] == ["tinyproxy-haproxy", f"{kpi}_ms"]]
        good, drawn = (sum(int(r[-1].split(" of ")[k]) for r in own) for k in (0, 1))
        told.append((f"{kpi} {good}", drawn))
    ((of),) = {drawn for _, drawn in told}
    assert claimed("low load") == f"{', '.join(x for x, _ in told)} of {of} draws"


def test_refusals_are_what_their_table_adds_up_to() -> None:
    share, asked, missed = {}, 0, {}
    for stage in ("before", "canaries", "lab"):
        own = [r for r in rows("held-out") if r[1] == stage and "second" not in r[0]]
        parts, (total,) = own[:-1], own[-1:]
        assert total[0] == "all, own host"
        asked = sum(int(r[2]) for r in parts)
        refused, wrong = (sum(int(r[k].split()[0]) for r in parts) for k in (3, 4))
        assert (int(total[2]), int(total[3].split()[0])) == (asked, refused)
        share[stage], missed[stage] = (refused, f"{refused / asked:.0%}".replace("%", " %")), wrong
    said = claimed("SLAs refused")
    refused, per_cent = share["canaries"]
    assert said.startswith(f"{per_cent} ({refused} of {asked}; {share['before'][1]} before")
    assert f"{share['lab'][1]} after the lab" in said
    assert ("none missed" in said) is not missed["canaries"]
