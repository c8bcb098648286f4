"""`workbench watch`: what it cannot do is a sentence; what it prints is documented."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from documented import known
from driving import Workbench

from workbench.cli.session_counters import must_be_carried, told_kpi
from workbench.cli.watch_function import _place, _sla
from workbench.cli.watch_loop import LiveWatch, Orders
from workbench.domain.attaching import Attached
from workbench.domain.campaign import Campaign
from workbench.domain.errors import UsageError
from workbench.labs.attached.live_counters import LiveCounters
from workbench.models.counter_contention import ContentionLook
from workbench.models.counter_watch import CounterLook, CounterWatch


def test_a_session_that_has_nothing_to_teach_is_refused(workbench: Workbench) -> None:
    nowhere = workbench.run("watch", "demo-real", "haproxy", expect=2)
    assert "where haproxy runs is not known" in nowhere.stderr
    assert "workbench discover" in nowhere.stderr
    strange = workbench.run("watch", "demo-real", "varnish", "--at", "pid:1", expect=2)
    assert "has no samples of varnish" in strange.stderr
    chain = workbench.run(
        "watch", "chain-real", "tinyproxy-haproxy", "--at", "container:web", expect=2
    )
    assert "is a chain" in chain.stderr
    assert "--chain tinyproxy-haproxy" in chain.stderr


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
    with pytest.raises(UsageError, match="nothing can stand behind @"):
        _sla("p95<=100ms @ rate=300/s")
    with pytest.raises(UsageError, match="but its limit is"):
        _sla("throughput<=100/s")


def test_every_field_of_a_line_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = Orders("web", "p95_ms", Attached("web", "pid", "1"), None, None, None, json=True)
    nothing: Any = None
    line = LiveWatch(orders, nothing, nothing).plain(
        CounterLook(why="no such mix"), ContentionLook()
    )
    assert line["value"] is None
    documented = known("`watch`")
    assert set(line) <= documented


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


def test_a_watch_that_cannot_read_tells_so_and_withdraws_its_alarm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sla = _sla("p95<=100ms")
    orders = Orders("web", "p95_ms", Attached("web", "pid", "1"), sla, None, None, json=False)

    class Refusing:
        found = SimpleNamespace(place="process 1")

        def read(self) -> dict[str, float]:
            raise PermissionError(1, "Operation not permitted")

    watch = LiveWatch(orders, cast(CounterWatch, None), cast(LiveCounters, Refusing()))
    for _ in range(2):
        watch._take(CounterLook(120.0, 110.0, 130.0), ContentionLook())
    assert watch.alarm.raised
    for _ in range(12):
        asyncio.run(watch._look())
    assert not watch.alarm.raised
    said = capsys.readouterr()
    assert "p95 ? (its counters cannot be read: Operation not permitted)" in said.out
    assert "no longer known to break" in said.err


def test_counters_that_stay_away_from_what_was_learned_are_a_drift(
    capsys: pytest.CaptureFixture[str],
) -> None:
    orders = Orders("web", "p95_ms", Attached("web", "pid", "1"), None, None, None, json=False)
    model = cast(CounterWatch, SimpleNamespace(apart_sd=1.0))
    watch = LiveWatch(orders, model, cast(LiveCounters, SimpleNamespace(over_s=2.0)))
    for _ in range(60):
        watch._take(CounterLook(2.0, 1.0, 4.0, apart=0.9), ContentionLook())
    assert not watch.drifted, "as far as what was learned"
    for _ in range(60):
        watch._take(CounterLook(2.0, 1.0, 4.0, apart=8.0), ContentionLook())
    assert watch.drifted
    assert capsys.readouterr().err.count("drift: the counters of web") == 1
    assert watch.plain(CounterLook(), ContentionLook())["drift"] is True


def test_a_rate_is_told_in_what_the_load_consists_of() -> None:
    packets = cast(Campaign, SimpleNamespace(load=SimpleNamespace(unit="packets")))
    must_be_carried(packets, "throughput_pps")
    must_be_carried(packets, "p95_ms")
    with pytest.raises(UsageError, match="packets/s of this session"):
        must_be_carried(packets, "throughput_rps")
