"""`make bench`: what has a target stands in its table."""

from __future__ import annotations

import json

import answers
import pytest
import run


def test_seconds_of_answers_are_held_against_their_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow = answers.Answered(1.0, 0.9), answers.Answered(25.0, 3.0)
    rows = [answers.Row(asked, slow, quick, quick) for asked in answers.QUESTIONS]
    told = [figure for row in rows for figure in row.figures()]
    monkeypatch.setattr(run, "output_of", lambda *arguments: json.dumps(told))
    figures = {figure.what: figure for figure in run.parts(1)["answers"]()}
    wanted = [s for asked in answers.QUESTIONS for s in (asked.cold_s, asked.stored_s) if s]
    assert [figure.target for figure in figures.values()] == wanted
    assert not figures["`recommend`, 1,024 allocations, cold"].holds
    assert figures["`recommend`, 32 allocations, on stored models"].holds
