"""The line that says how far a session is: its campaign, or the trials after it."""

from __future__ import annotations

import pytest
from fake_link import FakeClient, story

from workbench.domain.event_log import LogLine
from workbench.domain.events import (
    Event,
    Fact,
    Progress,
    RunFinished,
    RunStarted,
    TrialsFinished,
    TrialsStarted,
)
from workbench.domain.projection import SessionView
from workbench.tui import present


def line(*facts: Fact, tick: Progress, width: int = 120) -> str:
    view = SessionView("s")
    for number, fact in enumerate(facts, 1):
        view.apply(Event(number, float(number), "s", fact))
    return "".join(text for text, _ in present.progress(present.Shown(view, progress=tick), width))


def test_trials_have_a_line_of_their_own_and_the_campaign_its_last_word_after_them() -> None:
    ended = (RunStarted(False, None), RunFinished("done", 40, 0, 9.0, 60.0, ()))
    tick = Progress("s", "measuring", "chain", None, 300.0, 2, 10, 75.0, None)
    during = line(*ended, TrialsStarted("canary", "ann", None), tick=tick)
    assert "canary: measuring at 300" in during
    assert "2/10 samples" in during
    finished = TrialsFinished("done", 10, 0, 9.0, 15.0)
    after = line(*ended, TrialsStarted("canary", "ann", None), finished, tick=tick)
    assert after.split()[0] == "done"
    assert "/10" not in after


def test_a_run_that_waits_for_a_quiet_host_says_so_in_head_and_progress() -> None:
    note = "has waited 8 s; 90% of this host is busy with others: rustc (process 7) 1.8 cores"
    tick = Progress("s", "waiting", "", None, None, 3, 10, 75.0, 90.0, note=note)
    assert line(RunStarted(False, None), tick=tick).startswith(" waiting, has waited 8 s; 90 % of")
    view = FakeClient().view()
    head = present.header(present.Shown(view, progress=tick), False, "", 120)
    assert " WAITING " in [words for words, _ in head]


def test_where_room_is_short_the_figures_stay_and_what_is_done_is_cut() -> None:
    note = "source to sink, without the functions"
    tick = Progress("s", "measuring", "chain", None, 621.0, 2, 10, 75.0, 90.0, note=note)
    started = RunStarted(False, None)
    assert f"measuring at 621, {note}" in line(started, tick=tick)
    short = line(started, tick=tick, width=60)
    assert len(short) <= 60
    assert short.startswith(" measuring at 621, source")
    assert short.endswith("…  2/10  lab 1:15  ETA 1:30")


def test_lines_name_samples_and_what_was_measured_after_the_campaign() -> None:
    view = FakeClient(story(finished=True)).view()
    item = view.configurations[0]
    sample = item.samples[0]
    line = LogLine(9, 0.0, "warning", f"sample {sample.id} rejected by ann", sample.id)
    name = present.name_of(view, item)
    said = present.log_line(view, line)
    assert said == f"sample of {name} at {sample.wl:g} rejected by ann"


def test_a_line_names_no_configuration_whose_key_another_begins_with() -> None:
    view = FakeClient(story(finished=True)).view()
    item = view.configurations[0]
    for more in ("00", ".5", "e+06"):
        longer = f"{item.target} {item.configuration.key}{more} at 50"
        assert present.log_line(view, LogLine(9, 0.0, "info", longer, "")) == longer
    named = LogLine(9, 0.0, "info", f"{item.target} {item.configuration.key}.", "")
    assert present.log_line(view, named) == f"{present.name_of(view, item)}."


@pytest.mark.parametrize(
    ("clock_s", "width", "said"),
    [
        (None, 120, "ETA 6:00"),
        (350.0, 120, "ETA 6:00"),
        (120.0, 160, "ETA lab 6:00, about 2:00 on the clock"),
        (120.0, 80, "ETA 6:00 (clock 2:00)"),
    ],
)
def test_lab_time_and_the_clock_are_both_said_where_they_differ(
    clock_s: float | None, width: int, said: str
) -> None:
    tick = Progress("s", "measuring", "chain", None, 621.0, 2, 10, 75.0, 360.0, eta_wall_s=clock_s)
    shown = line(RunStarted(False, None), tick=tick, width=width)
    assert shown.endswith(said)
    assert len(shown) <= width


def test_trials_say_what_is_left_of_them() -> None:
    ended = (RunStarted(False, None), RunFinished("done", 40, 0, 9.0, 60.0, ()))
    tick = Progress("s", "measuring", "chain", None, 300.0, 2, 10, 75.0, 48.0)
    assert "ETA 0:48" in line(*ended, TrialsStarted("canary", "ann", None), tick=tick)
