"""The files in which snapshots stand: one for each screen, renewed section by section."""

from __future__ import annotations

from pathlib import Path

import pytest
import snapshots


def test_a_renewed_snapshot_takes_the_place_of_the_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    (tmp_path / "live-one-80x24-dark.txt").write_text("as they were once\n")
    for name, text in (("live-two", "2\n"), ("live-one-80x24-dark", "1\n"), ("chain-a", "3\n")):
        snapshots.renew(name, text)
    snapshots.renew("live-two", "# 22\n")
    assert {path.name for path in tmp_path.iterdir()} == {"live.txt", "chain.txt"}
    live = tmp_path / "live.txt"
    assert snapshots.sections(live) == {"live-one-80x24-dark": "1\n", "live-two": "# 22\n"}
    assert live.read_text() == "##### live-one-80x24-dark\n1\n##### live-two\n# 22\n"


def test_every_snapshot_stands_in_the_file_of_its_screen() -> None:
    """A file of its own is of before they were packed: renew it, and it goes into the pack."""
    for pack in snapshots.FOLDER.iterdir():
        names = list(snapshots.sections(pack))
        assert names == sorted(names), pack
        assert {snapshots.pack_of(name) for name in names} == {pack}
