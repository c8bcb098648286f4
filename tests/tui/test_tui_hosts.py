"""The screen Hosts: what each lab host does, live, after the end, and in a replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_link import START, FakeClient, opened, redrawn, screen_text, story, until
from snapshots import check

from workbench.domain import session_tables
from workbench.domain.errors import SessionReplaced
from workbench.domain.events import Event, Fact, RunFinished
from workbench.domain.fleets import FleetSeen, HostsCompared, HostSeen
from workbench.domain.profiles import HostFactor
from workbench.domain.projection import SessionView
from workbench.tui.replaying.replay import Replay
from workbench.tui.screens.fleet_hosts import host_rows

ALPHA = HostSeen("alpha", "measuring", "tinyproxy, 2 configurations", START + 40, 1, 8, 60.0, 3.0,
                 60.0, 0.021)  # fmt: skip
BETA = HostSeen("beta", "lost", shards=2, samples=16, lab_s=130.0, wall_s=7.0, measured_s=130.0,
                note="was killed by signal 9")  # fmt: skip
GAMMA = HostSeen("gamma", "held", note="held by ann until 2026-11-26 01:00: new cable")
HOSTS = (ALPHA, BETA, GAMMA, HostSeen("delta", "starting"))
SEEN = FleetSeen(HOSTS, 12, 3, 0, 180.0)
COMPARED = HostsCompared(
    "alpha",
    (HostFactor("p95_ms", 1.42, 1.31, 1.54, 4, host="beta"),
     HostFactor("throughput_rps", 0.7, 0.68, 0.73, 4, host="beta")),
    {"beta": "p95_ms of its own deployments scatters by 40%, on the hosts between by 3%"},
)  # fmt: skip
DONE = RunFinished("done", 30, 0, 100.0, 500.0, ())


def before_samples(*facts: Fact) -> list[Event]:
    """A session that a fleet measures: planned and begun, no sample yet."""
    head = story()[:3]
    return [*head, *(Event(4 + i, START + 60 + i, "demo-1", f) for i, f in enumerate(facts))]


@pytest.mark.parametrize(
    ("size", "theme"), [((80, 24), "dark"), ((160, 50), "dark"), ((60, 18), "dark"),
                        ((80, 24), "mono")],
)  # fmt: skip
async def test_hosts_as_they_stand(size: tuple[int, int], theme: str, tmp_path: Path) -> None:
    client = FakeClient(before_samples(SEEN))
    async with opened(client, size, screen="hosts", theme=theme) as pilot:
        shown = await redrawn(pilot)
        assert "1 of 4 hosts · 3 of 12 shards measured" in shown
        for words in ("▶ measuring", "× lost", "■ held", "· starting", "×20", "2.1%"):
            assert words in shown, words
        await check(pilot, "hosts", tmp_path)


async def test_anchor_points_are_told_apart_from_the_campaign_s_own() -> None:
    host = replace(ALPHA, shards=3, samples=29, anchors=1, anchor_samples=4, anchor_lab_s=20.0)
    client = FakeClient(before_samples(FleetSeen((host,), 12, 5, anchors=4, anchors_measured=3)))
    async with opened(client, (120, 30), screen="hosts") as pilot:
        shown = await redrawn(pilot)
        assert "2 of 8 shards and 3 of 4 of anchor points measured" in shown
        assert "alpha: 2 shards and its anchor points in 1:00 of lab time" in shown
        (row,) = [line.split() for line in shown.splitlines() if "▶ measuring" in line]
        assert row[3:5] == ["2", "25"]


async def test_what_changes_is_shown_and_the_rest_stays() -> None:
    client = FakeClient(before_samples(SEEN))
    async with opened(client, (100, 30), screen="hosts") as pilot:
        await redrawn(pilot)
        back = replace(BETA, does="measuring", shard="haproxy, 1 configuration", since=START + 70,
                       note="")  # fmt: skip
        client.tell(FleetSeen((back,), 12, 4, 0, 90.0))
        shown = await redrawn(pilot)
        assert "2 of 4 hosts · 4 of 12 shards measured" in shown
        assert "haproxy, 1 configuration" in shown
        assert "held by ann" in shown
        await pilot.press("j")
        assert "haproxy, 1 configuration since" in await redrawn(pilot)
        waits = replace(back, does="waiting", note="waits for its turn there: ann measures first")
        client.tell(FleetSeen((waits,), 12, 4, 0, 90.0))
        shown = await redrawn(pilot)
        assert "2 of 4 hosts" in shown
        assert "· waiting" in shown
        assert "ann measures first" in shown


async def test_hosts_that_are_given_nothing_say_why_and_rounds_have_no_end() -> None:
    queued = HostSeen("delta", "queued", note="its job 7 waits in the queue of Slurm")
    out = replace(ALPHA, does="out", shard="", since=None, note="disagrees with itself")
    client = FakeClient(before_samples(FleetSeen((out, queued), 12, 3, in_rounds=True)))
    async with opened(client, (160, 30), screen="hosts") as pilot:
        shown = await redrawn(pilot)
        assert "0 of 2 hosts" in shown
        assert "to go: unknown (in rounds)" in shown
        for words in ("■ out", "disagrees with itself", "· queued", "waits in the queue of Slurm"):
            assert words in shown, words
        (legend,) = [line for line in pilot.app.screen.legend() if line.startswith("· ")]
        dots = [does for does, (sign, _) in host_rows.SIGNS.items() if sign == "·"]
        assert all(f"{does}: " in legend for does in dots)


@pytest.mark.parametrize("in_rounds", [False, True])
def test_an_end_that_nobody_knows_is_said_within_80_cells(in_rounds: bool) -> None:
    seen = FleetSeen(HOSTS, 120, 113, 0, None, in_rounds)
    view = SessionView("demo-1")
    for event in before_samples(seen):
        view.apply(event)
    ((words, _),) = host_rows.summary_row(view, 80)
    assert words.rstrip().endswith("to go: unknown (in rounds)" if in_rounds else "unknown yet")


def test_a_run_whose_hosts_are_all_lost_is_seen_to_wait() -> None:
    lost = tuple(replace(host, does="lost", shard="") for host in HOSTS)
    view = SessionView("demo-1")
    for event in before_samples(FleetSeen(lost, 120, 113, 0, None, in_rounds=True)):
        view.apply(event)
    ((words, _),) = host_rows.summary_row(view, 80)
    assert words.rstrip().endswith("waits until a host is back")


def test_after_the_end_no_host_waits_for_anything() -> None:
    queued = HostSeen("delta", "queued", note="its job 7 waits in the queue of Slurm")
    view = SessionView("demo-1")
    for event in before_samples(FleetSeen((queued, BETA), 12, 3), DONE):
        view.apply(event)
    assert [(line.host.does, line.host.note) for line in host_rows.host_lines(view)] == [
        ("idle", ""), ("lost", BETA.note)
    ]  # fmt: skip


STOPPED = RunFinished("stopped", 0, 0, 0.0, 0.0, (), "was stopped by ann")
COMMAND = "workbench run demo --fleet hosts.yaml --session demo-1 --seed 7"


def test_what_is_stopped_lies_on_its_hosts_and_says_how_it_goes_on() -> None:
    for state, ended in (("stopped", (STOPPED,)), ("interrupted", ())):
        view = SessionView("demo-1")
        for event in before_samples(replace(SEEN, command=COMMAND), *ended):
            view.apply(event)
        view.state = state  # of one whose command is gone no event tells
        said = [*session_tables.about(view), session_tables.ending(view)]
        told = f"Session demo-1: {state}, 3 of 12 shards measured, whose samples lie on the hosts"
        assert told in said
        assert "Lab sim, over 4 hosts: alpha, beta, gamma, delta" in said
        assert "Lab time 3.2 min so far" in said
        assert f"go on with `{COMMAND}`" in said[-1]
        assert not [line for line in said if "0 cores" in line or "resume" in line]
        does = [line.host.does for line in host_rows.host_lines(view)]
        assert does == ["idle", "lost", "idle", "idle"]
        assert "4 hosts · 3 of 12 shards measured" in str(host_rows.summary_row(view, 80))


async def test_the_bar_of_what_is_stopped_counts_shards_and_r_says_the_command() -> None:
    events = before_samples(replace(SEEN, command=COMMAND), STOPPED)
    async with opened(FakeClient(events), (100, 30), screen="hosts") as pilot:
        shown = await redrawn(pilot)
        assert "3 of 12 shards measured, on its hosts  lab 3:10" in shown
        assert "0/80" not in shown
        assert "held" not in shown
        why = pilot.app.screen.why_not("resume")
        assert why == f"A fleet measures it: `{COMMAND}` goes on where it stood."


async def test_after_the_end_hosts_are_at_rest_and_compared() -> None:
    events = before_samples(SEEN, COMPARED, DONE)
    async with opened(FakeClient(events), (100, 30), screen="hosts") as pilot:
        shown = await redrawn(pilot)
        assert "to go" not in shown
        assert "▶" not in shown
        assert "the host that the others are compared with" in shown
        await pilot.press("j")
        shown = await redrawn(pilot)
        assert "×1.420 of alpha (1.310 to 1.540)" in shown
        assert "disagrees with itself" in shown


async def test_a_replay_shows_the_hosts_as_they_stood() -> None:
    events = before_samples(SEEN, FleetSeen((replace(ALPHA, does="idle", shard="", since=None),),
                                            12, 12))  # fmt: skip
    async with opened(FakeClient(events), (100, 30), replay_speed=1000.0, screen="hosts") as pilot:
        await until(pilot, lambda: "12 of 12 shards" in screen_text(pilot.app), "the end")
        replay = pilot.app.opened.replay
        assert isinstance(replay, Replay)
        replay.go_to(4)  # the event by which three shards were measured
        await until(pilot, lambda: "3 of 12 shards" in screen_text(pilot.app), "the hosts before")
        assert "▶ measuring" in screen_text(pilot.app)


async def test_a_session_of_one_host_says_so() -> None:
    async with opened(FakeClient(), (80, 24), screen="hosts") as pilot:
        assert "measured by one host" in await redrawn(pilot)


async def test_a_session_that_is_folded_is_followed_on() -> None:
    client = FakeClient(before_samples(SEEN))
    async with opened(client, (100, 30), screen="hosts") as pilot:
        await redrawn(pilot)
        client.events = story(finished=True)
        client.die(SessionReplaced("holds all samples of its hosts now", where="demo-1"))
        await until(pilot, lambda: "64/80 samples" in screen_text(pilot.app), "all samples")
        assert pilot.app.opened.lost == ""
