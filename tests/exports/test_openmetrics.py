"""A session for a Prometheus: read by its client's strict parser, and by promtool."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from session_making import EPOCH, closed_session, facts

from workbench.domain.observations import Observation
from workbench.exports.openmetrics import export_openmetrics
from workbench.store.session_file import SessionFile

Series = dict[tuple[str, frozenset[tuple[str, str]]], list[tuple[float, float]]]


async def exported(folder: Path) -> Path:
    await closed_session(folder / "demo-1.duckdb")
    session = await SessionFile.open(folder / "demo-1.duckdb", read_only=True)
    (written,) = await export_openmetrics(session, folder / "exports")
    await session.close()
    return written


def read(path: Path) -> Series:
    found: Series = defaultdict(list)
    for family in text_string_to_metric_families(path.read_text()):
        for sample in family.samples:
            assert sample.timestamp is not None
            labels = frozenset(sample.labels.items())
            found[sample.name, labels].append((float(sample.timestamp), sample.value))
    return found


def of(found: Series, name: str, **labels: str) -> list[tuple[float, float]]:
    """The only series of that name that has these labels."""
    (own,) = [s for (n, has), s in found.items() if n == name and labels.items() <= set(has)]
    return own


async def test_every_series_is_in_order_and_counters_only_grow(tmp_path: Path) -> None:
    path = await exported(tmp_path)
    assert path == tmp_path / "exports" / "demo-1.openmetrics"
    found = read(path)
    for (name, _), series in found.items():
        times = [at for at, _ in series]
        assert times == sorted(set(times))
        assert times[0] >= EPOCH
        if name.endswith("_total"):
            assert [value for _, value in series] == sorted(value for _, value in series)
    assert of(found, "workbench_samples_total")[-1][1] == 12
    assert of(found, "workbench_valid_samples")[-1][1] == 11
    assert of(found, "workbench_invalid_samples_total", reason="source_saturated")[-1][1] == 1
    assert {label for (n, has), _ in found.items() for k, label in has if k == "lab"} == {"sim"}


async def test_counters_hold_what_the_windows_of_the_samples_hold(tmp_path: Path) -> None:
    found = read(await exported(tmp_path))
    place = {"namespace": "demo-1", "pod": "haproxy", "container": "haproxy"}
    taken = [m.sample for _, m in facts() if m and m.sample.point.target == "haproxy"]
    spent = sum(sample.usage["haproxy"].cpu_cores * sample.measured_s for sample in taken)
    cpu = of(found, "container_cpu_usage_seconds_total", **place)
    assert (cpu[0][1], cpu[-1][1]) == (0.0, pytest.approx(spent))
    assert len(cpu) == 2 * len(taken)
    throttled = of(found, "container_cpu_cfs_throttled_seconds_total", **place)
    assert throttled[-1][1] == pytest.approx(0.25 * len(taken))
    sent = of(found, "container_network_transmit_bytes_total", **place)
    assert sent[-1][1] == pytest.approx(80.25e6 / 8 * 6.0 * len(taken))


async def test_what_is_not_known_is_not_there(tmp_path: Path) -> None:
    names_of = defaultdict(set)
    for name, labels in read(await exported(tmp_path)):
        names_of[dict(labels).get("container", "")].add(name)
    assert names_of["source"] == {"container_cpu_usage_seconds_total"}
    assert not any("pressure" in name or "periods" in name for name in names_of["haproxy"])
    # Its allocation is a flavor: whether that sets a quota is not said here.
    assert "container_cpu_cfs_throttled_seconds_total" not in names_of["ha"]


async def test_evidence_is_added_over_the_windows_and_left_out_where_one_lacks_it(
    tmp_path: Path,
) -> None:
    from workbench.exports.openmetrics import SessionHistory

    await closed_session(tmp_path / "demo-1.duckdb")
    session = await SessionFile.open(tmp_path / "demo-1.duckdb", read_only=True)
    (first, *_) = await session.measurements()
    history = SessionHistory(await session.view())
    await session.close()
    seen = [
        Observation(0, "haproxy", "pressure_cpu_s", 0.25),
        Observation(1, "haproxy", "pressure_cpu_s", 0.5),
        Observation(0, "haproxy", "pressure_io_s", 0.25),
        Observation(1, "haproxy", "pressure_io_s", None, "lost in mid-drive"),
        Observation(0, "haproxy", "thread_cpu_s", 1.0, "thread 1"),
    ]
    from dataclasses import replace

    history.extend((replace(first, observations=tuple(seen)),))
    history.conclude()
    text = "".join(history.lines())
    waiting = [line for line in text.splitlines() if line.startswith("container_pressure_")]
    assert [line.split("{")[0] for line in waiting] == [
        "container_pressure_cpu_waiting_seconds_total"
    ] * 2
    assert [float(line.split("} ")[1].split()[0]) for line in waiting] == [0.0, 0.75]


@pytest.mark.needs("promtool")
async def test_promtool_makes_blocks_of_it(tmp_path: Path) -> None:
    path = await exported(tmp_path)
    blocks = tmp_path / "blocks"
    made = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(path), str(blocks)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    (blocks / "wal").mkdir()  # as of any Prometheus
    wanted = '{__name__="container_cpu_usage_seconds_total"}'
    asked = ["promtool", "tsdb", "dump", "--match", wanted]
    dumped = subprocess.run(
        [*asked, str(blocks)], capture_output=True, text=True, timeout=60, check=True
    )
    lines = [line for line in dumped.stdout.splitlines() if 'container="haproxy"' in line]
    cpu = of(read(path), "container_cpu_usage_seconds_total", container="haproxy", pod="haproxy")
    assert [float(line.split()[-2]) for line in lines] == pytest.approx([v for _, v in cpu])
