"""`workbench watch`: what it cannot do is a sentence; what it prints is documented."""

from __future__ import annotations

from typing import Any

import pytest
from documented import known
from driving import Workbench

from workbench.cli.session_counters import told_kpi
from workbench.cli.watch_function import _place, _sla
from workbench.cli.watch_loop import LiveWatch, Orders
from workbench.domain.attaching import Attached
from workbench.domain.errors import UsageError
from workbench.models.counter_contention import ContentionLook
from workbench.models.counter_watch import CounterLook


def test_a_session_that_has_nothing_to_teach_is_refused(workbench: Workbench) -> None:
    nowhere = workbench.run("watch", "demo-real", "haproxy", expect=2)
    assert "where haproxy runs is not known" in nowhere.stderr
    assert "workbench discover" in nowhere.stderr
    strange = workbench.run("watch", "demo-real", "varnish", "--at", "pid:1", expect=2)
    assert "has no samples of varnish" in strange.stderr


@pytest.mark.parametrize(
    ("at", "says"),
    [("web", "must be one of"), ("pod:a/b", "must be one of"), ("pid:x", "no number"),
     ("container:", "must be one of")],
)  # fmt: skip
def test_a_place_that_is_none_is_a_sentence(at: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _place(at, "web", ())


def test_where_a_campaign_attached_it_is_known() -> None:
    attached = Attached("web", "container", "shop-web-1")
    assert _place("", "web", (attached,)) is attached
    assert _place("cgroup:/a", "web", (attached,)) == Attached("web", "cgroup", "/a")


def test_only_kpis_that_a_window_states_are_told() -> None:
    assert told_kpi("throughput") == "throughput_rps"
    assert told_kpi("p99") == "p99_ms"
    assert told_kpi("throughput_pps") == "throughput_pps", "of packets"
    with pytest.raises(UsageError, match="is not told from counters"):
        told_kpi("loss")
    with pytest.raises(UsageError, match="is not told from counters"):
        told_kpi("")
    assert _sla("p95") is None
    sla = _sla("p95<=100ms")
    assert sla is not None
    assert (sla.kpi, sla.limit) == ("p95_ms", 100.0)
    with pytest.raises(UsageError, match="but its limit is"):
        _sla("throughput<=100/s")


def test_every_field_of_a_line_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = Orders("web", "p95_ms", Attached("web", "pid", "1"), None, None, None, json=True)
    nothing: Any = None
    line = LiveWatch(orders, nothing, nothing).plain(
        CounterLook(why="no such mix"), ContentionLook()
    )
    assert line["value"] is None
    assert set(line) <= known("`watch`") | {"why"}


def test_others_load_is_alarmed_beside_a_question_mark(capsys: pytest.CaptureFixture[str]) -> None:
    orders = Orders("web", "p95_ms", Attached("web", "pid", "1"), None, None, None, json=False)
    nothing: Any = None
    watch = LiveWatch(orders, nothing, nothing)
    unknown = CounterLook(why="outside of what was learned")
    for _ in range(2):
        watch._take(unknown, ContentionLook(True, 5.2, 1.4, "waiting for CPU 5.2 times"))
    assert "web is slowed by another's load: waiting for CPU 5.2 times; its counters leave what " \
        "was learned" in capsys.readouterr().err  # fmt: skip
    for _ in range(5):
        watch._take(unknown, ContentionLook(False, 1.0, 0.1, "waiting for CPU 1.0 times"))
    assert "web is no longer slowed by others" in capsys.readouterr().err
    assert not watch.contention.raised
