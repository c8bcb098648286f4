"""`workbench watch`: what it cannot do is a sentence; what it prints is documented."""

from __future__ import annotations

import asyncio
import errno
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from documented import fields_of, known
from driving import Workbench

from workbench.cli.session_counters import must_be_carried, told_kpi
from workbench.cli.watch_function import _place, _sla
from workbench.cli.watch_learning import Learned, learned
from workbench.cli.watch_loop import LiveWatch, Orders
from workbench.domain.attaching import Attached, FoundBy
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, UsageError
from workbench.domain.function_watches import HeldOutRates
from workbench.domain.parameters import Sla
from workbench.labs.attached.live_counters import LiveCounters
from workbench.models.counter_contention import ContentionLook
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_watch import AlarmRates, CounterLook, CounterWatch


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


SLA = Sla("p95_ms", 100.0, text="p95<=100ms")


def watching(
    sla: Sla | None = None,
    live: object = None,
    *,
    as_json: bool = False,
    textfile: Path | None = None,
    found_by: FoundBy = "pid",
) -> LiveWatch:
    """A watch whose model says how far a look has strayed by its `apart`."""
    orders = Orders("web", "p95_ms", Attached("web", found_by, "1"), sla, None, textfile, as_json)
    model = SimpleNamespace(strayed=lambda look: look.apart)
    taught = Learned(cast(CounterWatch, model), None, HeldOutRates(40, 2, 3), ())
    here = live or SimpleNamespace(
        over_s=1.0, spanned_s=1.0, found=SimpleNamespace(place="container web", image="a")
    )
    return LiveWatch(orders, taught, cast(LiveCounters, here))


def test_every_field_of_a_line_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    watch = watching(SLA, as_json=True)
    watch._take(CounterLook(why="no such mix"), ContentionLook())
    watch._take(CounterLook(110.0, 60.0, 220.0, apart=-1.0), ContentionLook())
    nothing, unsure = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    documented = known("`watch`")
    assert fields_of(nothing) <= documented
    assert (nothing["value"], nothing["breach"], nothing["alarm"]) == (None, None, False)
    assert unsure["breach"] == pytest.approx(0.61, abs=0.01)
    assert (unsure["alarm"], unsure["window_s"]) == (False, 1.0)
    assert (nothing["state"], unsure["state"]) == ("unknown", "may break")
    assert unsure["held_out"]["silent"] == 2
    assert unsure["held_out"]["broken"] is None


def test_a_figure_that_breaks_the_sla_and_is_not_sure_is_told_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch = watching(SLA)
    for _ in range(10):
        watch._take(CounterLook(110.0, 60.0, 220.0, apart=-1.0), ContentionLook())
    assert not watch.alarm.raised
    watch._take(CounterLook(90.0, 60.0, 220.0, apart=-1.0), ContentionLook())
    for _ in range(2):
        watch._take(CounterLook(300.0, 200.0, 450.0, apart=-1.0), ContentionLook())
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert all("≈ may break p95<=100ms (61%)" in line for line in lines[:10])
    assert "may break" not in lines[10]
    assert "! predicted to break p95<=100ms" in lines[-1]
    assert "alarm: web is predicted to break p95<=100ms" in said.err


def test_others_load_is_alarmed_beside_a_question_mark(capsys: pytest.CaptureFixture[str]) -> None:
    watch = watching()
    unknown = CounterLook(why="outside of what was learned")
    for _ in range(2):
        watch._take(unknown, ContentionLook(True, 5.2, 1.4, "waiting for CPU 5.2 times"))
    assert (
        "web competes with others' load: waiting for CPU 5.2 times; its counters leave what was "
        "learned"
    ) in capsys.readouterr().err
    for _ in range(5):
        watch._take(unknown, ContentionLook(False, 1.0, 0.1, "waiting for CPU 1.0 times"))
    assert "web no longer competes with others' load" in capsys.readouterr().err
    assert not watch.contention.raised


def test_a_watch_that_cannot_read_tells_so_and_withdraws_its_alarm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Refusing:
        found, over_s, spanned_s = SimpleNamespace(place="process 1"), 1.0, None

        def read(self) -> dict[str, float]:
            raise PermissionError(1, "Operation not permitted")

    watch = watching(SLA, Refusing())
    for _ in range(2):
        watch._take(CounterLook(120.0, 110.0, 130.0, apart=-1.0), ContentionLook())
    assert watch.alarm.raised
    for _ in range(12):
        asyncio.run(watch._look())
    assert not watch.alarm.raised
    said = capsys.readouterr()
    assert "p95 ? (its counters cannot be read: Operation not permitted)" in said.out
    assert "no longer predicted to break" in said.err


def test_counters_that_stay_away_from_what_was_learned_are_a_drift(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also while there are figures; `apart` is what the model makes of it (`watching`)."""
    watch = watching()
    for _ in range(60):
        watch._take(CounterLook(2.0, 1.0, 4.0, apart=0.4), ContentionLook())
    assert not watch.drifted, "as far as nine of ten held-out windows, and half an sd more"
    for _ in range(60):
        watch._take(CounterLook(2.0, 1.0, 4.0, apart=0.9), ContentionLook())
    assert watch.drifted
    said = capsys.readouterr()
    assert said.err.count("drift: the counters of web") == 1
    assert "?" not in said.out


async def test_another_image_under_the_same_name_ends_the_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def find(attached: Attached) -> SimpleNamespace:
        return SimpleNamespace(place="container web", image="b")

    monkeypatch.setattr("workbench.cli.watch_loop.find", find)
    watch = watching(found_by="container")
    with pytest.raises(LabError, match="another image runs there now") as raised:
        await watch._again("its process 7 has ended")
    assert "watch it with that session" in raised.value.remedy


def test_a_full_disk_is_said_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def full(path: str, registry: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    watch, look = watching(textfile=tmp_path / "web.prom"), CounterLook(2.0, 1.0, 4.0, apart=-1.0)
    with monkeypatch.context() as disk:
        disk.setattr("workbench.engine.watch_metrics.write_to_textfile", full)
        for _ in range(3):
            watch._take(look, ContentionLook())
    assert capsys.readouterr().err.count("cannot be written: No space left on device") == 1
    watch._take(look, ContentionLook())
    written = (tmp_path / "web.prom").read_text()
    assert "workbench_watch_value" in written
    assert 'what="silent"} 0.05' in written


def test_what_a_session_cannot_teach_of_others_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of windows alone it has too few for a test, or for holding some of them out."""
    stub = SimpleNamespace(
        rows=SimpleNamespace(group_count=6), features=("rx_packets",), chosen="line",
        score=SimpleNamespace(mape=0.1, within_5=0.5, coverage=0.95),
        rates=lambda sla, allowance: AlarmRates(36, 1, 2),
    )  # fmt: skip
    monkeypatch.setattr("workbench.models.counter_watch.CounterWatch", lambda rows: stub)
    draw, each = np.random.default_rng(0), np.repeat(np.arange(4), 5)
    load = draw.uniform(500.0, 5000.0, len(each))
    wait = 1e-4 * load * np.where(each % 2, 30.0, 1.0)
    rows = CounterRows(
        ("rx_packets", "cpu_wait_s"), np.column_stack([load, wait]), load, each, each % 2
    )
    taught = learned(rows, None, "throughput_rps", 3.5)
    assert taught.test is not None
    assert (taught.rates.silent, taught.rates.strayed, taught.rates.alone) == (1, 2, None)
    assert taught.accuracy[-1] == (
        "how often a look is wrong about others' load is not known, with an experiment held out: 5 "
        "windows in which nobody competed, where 6 are needed"
    )
    assert "windows of 2 experiments alone count as independent, which is too good" in "".join(
        taught.accuracy
    )
    few = learned(rows.taken(np.flatnonzero(each > 0)), None, "throughput_rps", 3.5)
    assert few.test is None
    assert few.accuracy[-1].startswith(
        "others' load is not told: 5 windows in which nobody competed, where 6 are needed (Measure"
    )


def test_a_rate_is_told_in_what_the_load_consists_of() -> None:
    packets = cast(Campaign, SimpleNamespace(load=SimpleNamespace(unit="packets")))
    must_be_carried(packets, "throughput_pps")
    must_be_carried(packets, "p95_ms")
    with pytest.raises(UsageError, match="packets/s of this session"):
        must_be_carried(packets, "throughput_rps")
