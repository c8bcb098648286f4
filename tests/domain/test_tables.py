"""The flat table: one row per sample, every figure in a column of its own."""

from __future__ import annotations

from session_making import campaign, measurement

from workbench.domain.tables import FACTS, flat_columns_and_rows


def test_every_figure_has_its_column() -> None:
    alone, chain = campaign().targets
    first = measurement("haproxy", campaign().configurations(alone)[0], 100.0).sample
    second = measurement("tiny-ha", campaign().configurations(chain)[0], 200.0, 1, False).sample
    columns, rows = flat_columns_and_rows([first, second])
    assert columns[:7] == [
        "target",
        "ha.flavor",
        "haproxy.vcpu",
        "tiny.vcpu",
        "filesize_bytes",
        "wl",
        "repetition",
    ]
    assert len(set(columns)) == len(columns)
    assert columns[-len(FACTS) :] == list(FACTS)
    one, two = (dict(zip(columns, row, strict=True)) for row in rows)
    assert (one["haproxy.vcpu"], one["tiny.vcpu"], one["ha.flavor"]) == (0.125, None, None)
    assert (two["haproxy.vcpu"], two["tiny.vcpu"], two["ha.flavor"]) == (None, 0.5, "small")
    p95 = first.kpis["p95_ms"]
    assert (one["p95_ms"], one["p95_ms_low"], one["p95_ms_high"]) == (p95.value, p95.low, p95.high)
    assert one["usage.haproxy.cpu_share"] == first.usage["haproxy"].cpu_share
    assert one["usage.tiny.cpu_share"] is None
    assert (one["valid"], one["reason"]) == (True, "")
    assert (two["valid"], two["reason"]) == (False, "source_saturated")
    assert (two["wl"], two["repetition"], two["id"]) == (200.0, 1, second.id)
    assert (one["block"], two["block"]) == (0, 1)
    bypass = ("bypass_throughput_rps", "bypass_mean_ms", "bypass_p95_ms")
    assert [one[name] for name in bypass] == [2600.0, 0.4, 0.7]
    assert [two[name] for name in bypass] == [None] * 3
    stated = columns[: -len(FACTS)]
    kpis = [name for name in stated if name.endswith(("_ms", "_rps", "_pct"))]
    assert kpis == ["p50_ms", "p95_ms", "throughput_rps", "error_pct"]
    components = dict.fromkeys(n.split(".")[1] for n in columns if n.startswith("usage."))
    assert list(components) == ["haproxy", "tiny", "ha", "source", "host"]


def test_no_samples_give_no_rows() -> None:
    columns, rows = flat_columns_and_rows([])
    assert columns == ["target", "wl", "repetition", *FACTS]
    assert rows == []
