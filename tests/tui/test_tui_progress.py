"""The line that says how far a session is: its campaign, or the trials after it."""

from __future__ import annotations

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


def line(*facts: Fact, tick: Progress) -> str:
    view = SessionView("s")
    for number, fact in enumerate(facts, 1):
        view.apply(Event(number, float(number), "s", fact))
    return "".join(text for text, _ in present.progress(present.Shown(view, progress=tick), 120))


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
