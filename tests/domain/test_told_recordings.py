"""What the list says of the recordings that ship with the workbench."""

from __future__ import annotations

from driving import REPOSITORY

from workbench.domain.recordings import FIRST, RECORDINGS


def test_each_recording_that_ships_is_told_in_a_word_and_a_sentence() -> None:
    shipped = {folder.name for folder in (REPOSITORY / "sessions" / "recorded").iterdir()}
    assert shipped == set(RECORDINGS)
    assert RECORDINGS[FIRST].word == "start here"
    assert all(one.shows.endswith(".") and one.word for one in RECORDINGS.values())
