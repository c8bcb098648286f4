"""Screen 0 by keys: the answer, its evidence, and from where it is asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from fake_link import (
    SESSION,
    FakeClient,
    opened,
    redrawn,
    screen_text,
    story,
    until,
)
from snapshots import check
from textual.pilot import Pilot
from why_link import NO_SAMPLES, ORDER, SLOW, WhyClient, explained

from workbench.domain.deviations import CARRIED
from workbench.domain.diagnoses import EvidenceRow
from workbench.domain.observations import Observation
from workbench.domain.questions import Diagnose
from workbench.domain.sample_review import RequestPoint
from workbench.domain.samples import LatencyHistogram, Window
from workbench.tui.evidence_rows import evidence_lines
from workbench.tui.plots.sparkline import bars, over
from workbench.tui.screens.why import why_rows

SIZES = [((80, 24), "dark"), ((160, 50), "dark"),
         pytest.param((80, 24), "mono", marks=pytest.mark.long),
         pytest.param((60, 15), "dark", marks=pytest.mark.long)]  # fmt: skip


async def answered(pilot: Pilot[None], shown: str = "acknowledges late") -> str:
    await until(pilot, lambda: shown in screen_text(pilot.app), shown)
    return await redrawn(pilot)


@pytest.mark.parametrize(("size", "theme"), SIZES)
async def test_the_screen_as_it_was_looked_at(
    size: tuple[int, int], theme: str, tmp_path: Path
) -> None:
    async with opened(WhyClient(), size, screen="why", theme=theme) as pilot:
        await answered(pilot)
        await check(pilot, "why-causes", tmp_path)
        await pilot.press("v")
        await check(pilot, "why-evidence", tmp_path)
        if size[1] < 24 or theme != "dark":
            return
        await pilot.press("tab")
        await answered(pilot, "Cannot tell")
        await check(pilot, "why-not-collected", tmp_path)
        await pilot.press("question_mark")
        await check(pilot, "why-help", tmp_path)


async def test_the_sentence_comes_first_then_what_to_do_and_how_sure_it_is() -> None:
    async with opened(WhyClient(), (100, 40), screen="why") as pilot:
        text = " ".join((await answered(pilot)).split())
        order = (
            "acknowledges late: 1.0 per request",
            "→ Set TCP_NODELAY",
            "right in 80 of 80 bench trials",
            "◀ 1",
            "≠ rival: a timer",
            "told apart by the same load",
            "Not judged",
        )
        at = [text.index(words) for words in order]
        assert at == sorted(at)
        assert "in 30 of 33 samples" in text


async def test_what_would_tell_most_is_measured_by_a_key_that_asks_first() -> None:
    client = WhyClient()
    async with opened(client, (80, 40), screen="why") as pilot:
        text = " ".join((await answered(pilot)).split())
        assert f"+ to find out, measure {ORDER}, at 440: which of both it is" in text
        await pilot.press("f5")
        await until(pilot, lambda: f"Measure {ORDER}" in screen_text(pilot.app), "the question")
        assert not any(isinstance(request, RequestPoint) for request in client.asked)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(client.asked[-1], RequestPoint), "the request")
        (proposed,) = explained(client.whys()[-1]).experiments
        place = proposed.target, proposed.configuration, proposed.wl
        assert client.asked[-1] == RequestPoint(SESSION, *place, pace=20.0)
        await pilot.press("tab")
        await answered(pilot, "Cannot tell")
        await pilot.press("f5")
        assert "No point of this campaign would tell more" in await redrawn(pilot)


async def test_an_outlier_on_compare_is_asked_about_where_it_departs_most() -> None:
    client = WhyClient()
    async with opened(client, (120, 40), screen="compare") as pilot:
        await pilot.press("tab")
        await until(pilot, lambda: "120" in screen_text(pilot.app) and _curves(pilot), "curves")
        await pilot.press("0")
        await answered(pilot)
        sample = client.whys()[-1].sample
        assert sample.startswith(f"{SLOW}/"), "a sample of the line under the cursor"
        assert pilot.app.screen.choice.sample == sample


def _curves(pilot: Pilot[None]) -> bool:
    return pilot.app.screen.asking.busy is None and pilot.app.screen.answer is not None


async def test_a_sample_on_live_and_the_next_ones_by_key_are_asked_about() -> None:
    client = WhyClient()
    async with opened(client) as pilot:
        await pilot.press("G", "left", "left", "0")
        await answered(pilot)
        first = client.whys()[-1]
        assert first == Diagnose(SESSION, SLOW, sample=pilot.app.screen.choice.sample)
        await pilot.press("right")
        await until(pilot, lambda: len(client.whys()) == 2, "the next sample")
        assert client.whys()[-1].sample != first.sample
        await answered(pilot)
        await pilot.press("left")
        await answered(pilot)
        assert len(client.whys()) == 2, "what was answered is kept"
        await pilot.press("enter")
        assert pilot.app.screen.NAME == "live"
        assert pilot.app.screen.here.id == first.sample


async def test_without_a_sample_the_breakpoint_of_the_chosen_configuration_is_asked_about() -> None:
    client = WhyClient()
    async with opened(client) as pilot:
        await pilot.press("G", "0")
        await answered(pilot)
        selected = pilot.app.screen.shown.selected(pilot.app.screen.choice)
        wl = next(b.wl for b in selected.breakpoints if b.rule == "sla")
        valid = [s for s in selected.samples if s.valid]
        nearest = min(valid, key=lambda s: abs(s.wl - wl))
        assert client.whys()[-1].sample == nearest.id


async def test_a_line_of_events_is_asked_about() -> None:
    client = WhyClient()
    async with opened(client, screen="events") as pilot:
        await pilot.press("k", "k", "k")
        while not pilot.app.screen.here.sample:
            await pilot.press("k")
        sample = pilot.app.screen.here.sample
        await pilot.press("0")
        await until(pilot, client.whys, "the question")
        assert client.whys()[-1].sample == sample


async def test_what_is_asked_can_be_dropped_and_a_refusal_says_what_to_do() -> None:
    client = WhyClient()
    client.gate.clear()
    async with opened(client, screen="why") as pilot:
        await until(pilot, lambda: "reading the evidence" in screen_text(pilot.app), "what it does")
        await pilot.press("escape")
        await answered(pilot, "Cancelled.")
        assert client.dropped
        client.gate.set()
        client.refuses_why = NO_SAMPLES
        await pilot.press("ctrl+r")
        assert "Measure it first" in await answered(pilot, "has no samples")
        client.refuses_why = None
        client.notes = ("rule 'odd' failed: ValueError: a strength of 7",)
        await pilot.press("ctrl+r")
        await answered(pilot)
        await pilot.press("G")
        assert "rule 'odd' failed" in await redrawn(pilot)


async def test_a_replay_says_that_the_answer_is_of_the_whole_session() -> None:
    async with opened(WhyClient(), replay_speed=1000.0, screen="why") as pilot:
        text = await answered(pilot, "of the whole session")
        assert "REPLAY" in text


async def test_nothing_measured_says_what_shows_it() -> None:
    async with opened(FakeClient(story()[:2]), screen="why") as pilot:
        assert "Nothing was measured yet" in await redrawn(pilot)
        assert "4 shows what is being measured" in screen_text(pilot.app)


async def test_another_question_takes_the_place_of_one_that_is_asked() -> None:
    client = WhyClient()
    client.gate.clear()
    async with opened(client, screen="why") as pilot:
        await until(pilot, client.whys, "the first question")
        await pilot.press("tab")
        await until(pilot, lambda: len(client.whys()) == 2, "the second")
        client.gate.set()
        await answered(pilot, "Cannot tell")
        assert client.dropped == client.whys()[:1]
        await asyncio.sleep(0)
        assert "Not waited" not in screen_text(pilot.app)


def test_what_changed_most_stands_first_and_missing_is_not_zero() -> None:
    rows = why_rows.evidence_rows(explained(Diagnose(SESSION, SLOW)), 100, False)
    lines = ["".join(words for words, _ in row) for row in rows]
    haproxy = lines.index(" → haproxy")
    assert "late acknowledgements" in lines[haproxy + 1]
    assert lines[haproxy + 1].rstrip().endswith("new")
    assert "mean response time" in lines[haproxy + 2]
    assert lines[haproxy + 2].rstrip().endswith("×64")
    assert not any("major faults, per request" in line for line in lines)
    assert "major faults: no control group" in lines[-1]


def test_a_load_is_no_effect_of_the_chain() -> None:
    """At 552 requests/s alone and at 100 here it is not 0.181 times what it was."""
    told = EvidenceRow("haproxy", CARRIED, "requests/s", 552.0, 100.0)
    found = replace(explained(Diagnose(SESSION, SLOW)), rows=(told,))
    lines = [
        "".join(words for words, _ in row) for row in why_rows.evidence_rows(found, 100, False)
    ]
    assert lines[1].rstrip().endswith("≠ load")
    assert "its figures differ by the load, too" in " ".join(lines)


def test_curves_of_a_figure_share_a_scale_from_nothing() -> None:
    assert bars((0.0, 0.5, None, 1.0), 1.0, False) == "▁▅ █"
    assert bars((0.0, 0.0), 0.0, True) == ".."
    assert over(((10.0, 1.0), (1000.0, 2.0)), 10.0, 1000.0, 3) == [1.0, None, 2.0]
    assert over(((10.0, 1.0),), 10.0, 10.0, 2) == [1.0, None], "one load alone"
    row = EvidenceRow("a", "x", "1", None, 2.0, "", (), ((5.0, 2.0),))
    spans = why_rows._evidence_row(row, (5.0, 50.0), 5.0, 80, False)
    assert ("█", "badge") in spans
    assert "–" in "".join(words for words, _ in spans)


def test_the_evidence_of_a_sample_names_what_was_nothing_and_what_is_missing() -> None:
    empty = LatencyHistogram(1.01, (), ())
    windows = [Window(float(i), 1.0 + 2 * i, 1, 1, 0, 0, empty, empty) for i in range(2)]
    seen = [
        *(Observation(i, "haproxy", "delayed_acks", 60.0) for i in range(2)),
        *(Observation(i, "haproxy", "threads", 2.0 + 4 * i) for i in range(2)),
        *(Observation(i, "haproxy", "retransmitted", 0.0) for i in range(2)),
        Observation(0, "haproxy", "disk_bytes", None, "no control group"),
        Observation(1, "haproxy", "disk_bytes", 4.0),
        *(Observation(0, "host", "core_busy_s", v, f"core {v:g}") for v in (1.0, 4.0, 3.0, 2.0)),
    ]
    lines = [" ".join(line.split()) for line in evidence_lines(seen, windows)]
    assert lines == [
        "evidence, over all windows",
        "haproxy",
        "acknowledged late 120 segments",
        "threads 5 threads",
        "nothing of: sent again",
        "not known: read from and written to disks: no control group",
        "host",
        "not idle, by core 10 s (core 4 4, core 3 3, core 2 2)",
    ]
    assert "none was collected" in evidence_lines((), windows)[0]
