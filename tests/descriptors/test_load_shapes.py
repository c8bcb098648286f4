"""Loads whose rate varies in descriptors: shapes, bursts, recorded traces, and their mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain import load_shapes
from workbench.domain.campaign import Campaign
from workbench.domain.errors import DescriptorError
from workbench.paths import Workspace


def loaded(folder: Path, load: str = "", more: str = "", primary: str = "rate") -> Campaign:
    path = folder / "varying.yaml"
    path.write_text(
        "kind: campaign\ntargets:\n  - vnf: haproxy\n"
        f"primary_workload_parameter: {{name: {primary}, range: [10, 500]}}\n"
        + (f"load: {load}\n" if load else "")
        + more,
        encoding="utf-8",
    )
    return load_campaign(str(path), workspace=Workspace(folder)).campaign


def bursts(duty: str, period: str = "") -> str:
    given = f"workload_parameters:\n  - {{name: duty, values: [{duty}]}}\n"
    return given + (f"  - {{name: period, values: [{period}]}}\n" if period else "")


SPIKES = "{kind: open, shape: {kind: spikes, factor: 3, duration: 1s, period: 5s}}"


def test_shapes(tmp_path: Path) -> None:
    assert loaded(tmp_path, SPIKES).load.shape == load_shapes.spikes(3, 1, 5)
    sine = loaded(tmp_path, "{kind: open, shape: {kind: sine, amplitude: 50%, period: 2s}}")
    assert sine.load.shape == load_shapes.sine(0.5, 2)
    steps = loaded(tmp_path, "{kind: open, shape: {kind: steps, factors: [1, 2.5], duration: 1s}}")
    assert steps.load.shape == load_shapes.steps((1, 2.5), 1)
    assert loaded(tmp_path, "", bursts("10%, 50%", "200ms")).load.key == "open-bursts"
    assert loaded(tmp_path, "", bursts("100%")).load.shape is None


def test_a_recorded_trace(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("time_s,rate\n0,10\n0.5,0\n\n1,30\n", encoding="utf-8")
    shape = loaded(tmp_path, "{kind: open, shape: {kind: trace, file: rates.csv}}").load.shape
    assert shape == load_shapes.trace((10, 0, 30), 0.5)
    assert [factor for _, factor in shape.segments] == pytest.approx([0.75, 0.0, 2.25])


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("0,1\n1,2\n5,3\n6,1", r"rates.csv:4:1: time_s: is 4 s after line 3.*fill the gap"),
        ("0,1\n2,2\n1,3", r"rates.csv:4:1: time_s: is 1, not after the 2 of line 3"),
        ("-1,1\n0,2", r"rates.csv:2:1: time_s: is '-1', must be a number of at least 0"),
        ("0,1\n1,-2", r"rates.csv:3:3: rate: is '-2', must be a number of at least 0"),
        ("0,1\n1,nan", r"rates.csv:3:3: rate: is 'nan', must be a number"),
        ("0,1\n1", r"rates.csv:3:1: file: has 1 cells"),
        ("0,0\n1,0", r"rates.csv:1:1: file: has no rate above 0"),
        ("0,1\n1000,1", r"rates.csv:1:1: file: lasts 2000 s"),
        ("0,1", r"rates.csv:1:1: file: has 1 rows"),
    ],
)
def test_a_trace_that_is_wrong_is_told_in_its_place(
    tmp_path: Path, rows: str, sentence: str
) -> None:
    (tmp_path / "rates.csv").write_text(f"time_s,rate\n{rows}\n", encoding="utf-8")
    with pytest.raises(DescriptorError, match=sentence):
        loaded(tmp_path, "{kind: open, shape: {kind: trace, file: rates.csv}}")


def test_a_trace_that_is_none(tmp_path: Path) -> None:
    load = "{kind: open, shape: {kind: trace, file: rates.csv}}"
    with pytest.raises(DescriptorError, match=r"rates.csv:1:1: file: does not exist"):
        loaded(tmp_path, load)
    (tmp_path / "rates.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DescriptorError, match="is no CSV in UTF-8"):
        loaded(tmp_path, load)
    (tmp_path / "rates.csv").write_text("seconds;rate\n", encoding="utf-8")
    with pytest.raises(DescriptorError, match=r"must begin with time_s,rate"):
        loaded(tmp_path, load)


@pytest.mark.parametrize(
    ("load", "more", "primary", "sentence"),
    [
        ("", bursts("50%, 100%"), "rate", "constant load and never fitted together with bursts"),
        ("", bursts("5%"), "rate", "must be 10% to 100%"),
        ("", bursts("50%", "100s"), "rate", "must be 0.05 s to 60 s"),
        ("", bursts("50%", "20s"), "rate", r"timeout.*4 cycles of 20 s: 100 s"),
        ("", "workload_parameters: [{name: period, values: [1s]}]", "rate", "give duty too"),
        ("", bursts("50%"), "concurrent", "due at a rate, and concurrent is varied"),
        (SPIKES, bursts("50%"), "rate", "load says already when requests are due"),
        ("{kind: open, generator: oha}", bursts("50%"), "rate", "oha sends at a constant rate"),
        ("{kind: closed, shape: {kind: sine, amplitude: 50%, period: 2s}}", "", "concurrent",
         "belongs to a load of kind open"),
        ("{kind: open, shape: {kind: sine, factor: 3, period: 2s}}", "", "rate",
         r"amplitude: is missing.*\n.*factor: is not of sine"),
        ("{kind: open, shape: {kind: spikes, factor: 3, duration: 4s, period: 5s}}", "", "rate",
         "at most half of the period"),
        ("", "kpi: recovery\nkpi_max: 10s", "rate", "takes load of spikes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_sentence(
    tmp_path: Path, load: str, more: str, primary: str, sentence: str
) -> None:
    with pytest.raises(DescriptorError, match=sentence):
        loaded(tmp_path, load, more, primary)
