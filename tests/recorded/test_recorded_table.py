"""Samples from a CSV: an export comes back, others' tables work, mistakes are located."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from session_making import campaign, make_session

from workbench.domain.errors import DescriptorError, LabError
from workbench.domain.samples import Estimate, Sample
from workbench.labs.base import LabSettings
from workbench.labs.recorded import RecordedLab
from workbench.labs.recorded.intervals import ASSUMED_INTERVAL, FROM_REPETITIONS
from workbench.labs.recorded.table import read_table
from workbench.measuring.judging import sample_id


def table(tmp_path: Path, text: str, spread: float | None = 0.24) -> tuple[Sample, ...]:
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, campaign(), spread).samples


async def test_an_exported_table_comes_back_but_for_its_windows(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    path = tmp_path / "s.csv"
    await session.write_samples(path, "csv")
    stored = await session.samples()
    await session.close()
    completed = read_table(path, campaign())
    found = completed.samples
    assert completed.says == "", "every figure states its interval"
    for sample, original in zip(found, stored, strict=True):
        labels = (*original.labels, "without_windows")
        expected = replace(original, id=sample_id(original.point), labels=labels)
        # A table has no room for evidence.
        expected = replace(expected, findings=sample.findings, remarks=())
        assert sample == expected
        assert sample.reason == original.reason
    assert {s.bypass is None for s in found} == {True, False}, "with and without a bypass"
    lab = RecordedLab(campaign(), LabSettings(session="t", argument=str(path)))
    assert (await lab.open()).lab == "recorded"
    for sample in found:
        assert (await lab.recall(sample.point)).sample == sample
    assert (await lab.deploy(campaign().targets[0].target, found[0].point.configuration)).path


def test_target_wl_one_kpi_and_what_varies_are_enough(tmp_path: Path) -> None:
    first, second, third = table(
        tmp_path,
        "target,wl,p95_ms,haproxy.vcpu\nhaproxy,100,8.5,0.125\nhaproxy,200,20,0.125\n\n"
        "haproxy,100,9,0.125\n",
    )
    configuration = campaign().configurations(campaign().targets[0])[0]
    assert first.point.configuration == configuration  # the one file size is the campaign's
    assert first.kpis["p95_ms"].value == 8.5
    assert first.kpis["p95_ms"].low < 8.5 / 1.5
    assert first.kpis["p95_ms"].high > 8.5 * 1.5
    assert first.labels == ("without_windows", ASSUMED_INTERVAL)
    assert (first.valid, first.load_model, first.kpi_definition) == (True, "open-constant", "none")
    assert [s.point.repetition for s in (first, second, third)] == [0, 0, 1]


def rows(*p95s: float) -> str:
    """One row per figure, at two loads in turns."""
    lines = [f"haproxy,{100 * (1 + n % 2)},{p95},0.125" for n, p95 in enumerate(p95s)]
    return "\n".join([HEAD, *lines])


async def test_an_interval_that_nobody_stated_or_repeated_is_asked_for(tmp_path: Path) -> None:
    text = rows(8.0, 20.0, 8.8)
    with pytest.raises(LabError, match=r"p95_ms without interval.*spread=0\.24"):
        table(tmp_path, text, None)
    one, other, _ = table(tmp_path, text, 0.1)
    for sample, value in ((one, 8.0), (other, 20.0)):
        assert sample.kpis["p95_ms"].high / value == pytest.approx(math.exp(0.196))
        assert ASSUMED_INTERVAL in sample.labels
    lab = RecordedLab(
        campaign(), LabSettings(session="t", argument=f"{tmp_path / 'mine.csv'},spread=0.1")
    )
    (said,) = (await lab.open()).caveats
    assert "p95_ms are assumed, not measured: a log-sd of 0.1" in said


def test_a_recordings_own_repetitions_say_how_far_passes_differ(tmp_path: Path) -> None:
    text = rows(*(level * noise for noise in (1.1, 1 / 1.1) * 3 for level in (8.0, 20.0)))
    samples = table(tmp_path, text, None)
    # Six of each load at +-log 1.1: the sum of squares has ten degrees of freedom.
    sd = math.log(1.1) * math.sqrt(12 / 10)
    for sample in samples:
        estimate = sample.kpis["p95_ms"]
        assert math.log(estimate.high / estimate.low) == pytest.approx(2 * 1.96 * sd)
        assert sample.labels == ("without_windows", FROM_REPETITIONS)


def test_quotes_and_bounds_are_understood(tmp_path: Path) -> None:
    (sample,) = table(
        tmp_path,
        'target,"wl",p95_ms,p95_ms_low,p95_ms_high,haproxy.vcpu,labels,valid\n'
        '"haproxy",1e2,8,7.5,9,0.25,"throttled;mine, really",true\n',
    )
    assert sample.kpis == {"p95_ms": Estimate(8.0, 7.5, 9.0)}
    assert sample.labels == ("throttled", "mine, really", "without_windows")


HEAD = "target,wl,p95_ms,haproxy.vcpu"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "1:1: table: is empty"),
        (f"{HEAD}\n", "1:1: table: has no rows"),
        ("wl,p95_ms,haproxy.vcpu\n1,2,3\n", "1:1: target: is missing"),
        ("target,wl,p95_ms\nhaproxy,1,2\n", "1:1: haproxy.vcpu: is missing"),
        ("target,wl,haproxy.vcpu\nhaproxy,1,2\n", "1:1: table: has no KPI"),
        (f"{HEAD},colour\nhaproxy,1,2,3,red\n", "1:31: colour: is neither a column"),
        (f"{HEAD},wl\nhaproxy,1,2,3,4\n", "1:31: wl: is the name of two columns"),
        (f"{HEAD},usage.ha.size\nhaproxy,1,2,3,4\n", "1:31: usage.ha.size: is no usage"),
        (f"{HEAD}\nhaproxy,1,2\n", "2:1: line: has 3 cells under 4 names"),
        (f"{HEAD}\nhaproxy,many,2,0.125\n", "2:9: wl: is 'many', not a number"),
        (f"{HEAD}\nhaproxy,0,2,0.125\n", "2:9: wl: is 0; allowed is a finite number"),
        (f"{HEAD}\nhaproxy,nan,2,0.125\n", "2:9: wl: is nan; allowed is a finite number"),
        (f"{HEAD}\n,1,2,0.125\n", "2:1: target: is empty"),
        (f"{HEAD}\nhaproxy,1,,0.125\n", "2:1: line: states no KPI"),
        (f'{HEAD}\n"ha,proxy",1,-2,0.125\n', "2:14: p95_ms: is -2; allowed"),
        (f'{HEAD}\n"haproxy,1,2,0.125\n', "2:1: line: is not CSV"),
        (
            f"{HEAD},p95_ms_low,p95_ms_high\nhaproxy,1,2,0.125,3,1\n",
            "2:19: p95_ms_low: is above p95_ms_high",
        ),
        (
            f"{HEAD},repetition\nhaproxy,1,2,0.125,0\nhaproxy,1,3,0.125,0\n",
            "3:19: repetition: is 0 for a second row of the same point",
        ),
        (f"{HEAD},repetition\nhaproxy,1,2,0.125,0.5\n", "2:19: repetition: is 0.5, not a whole"),
        (f"{HEAD},valid\nhaproxy,1,2,0.125,maybe\n", "2:19: valid: is 'maybe'; allowed are true"),
        (
            f"{HEAD},valid,reason\nhaproxy,1,2,0.125,false,weather\n",
            "2:25: reason: is 'weather'; allowed are little, source_saturated",
        ),
        (
            f"{HEAD},kpi_definition\nhaproxy,1,2,0.125,guess\n",
            "2:19: kpi_definition: is 'guess'; allowed are request, planned",
        ),
    ],
)
def test_mistakes_are_located(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DescriptorError) as refused:
        table(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'mine.csv'}:{says}")


def test_all_mistakes_of_a_file_come_at_once(tmp_path: Path) -> None:
    with pytest.raises(DescriptorError) as refused:
        table(tmp_path, f"{HEAD}\nhaproxy,x,y,0.125\nhaproxy,1,2,0.125\nhaproxy,1\n")
    assert [(m.line, m.field) for m in refused.value.mistakes] == [
        (2, "wl"),
        (2, "p95_ms"),
        (4, "line"),
    ]


async def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot be read"):
        read_table(tmp_path / "none.csv", campaign())
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00target")
    with pytest.raises(LabError, match="UTF-8"):
        read_table(tmp_path / "binary.csv", campaign())
