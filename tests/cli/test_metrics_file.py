"""The file of `watch --textfile`: nobody else's, and one watch at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.cli.metrics_file import kept_alone
from workbench.domain.errors import UsageError


def test_it_is_taken_away_at_the_end_with_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "haproxy.prom"
    for _ in range(2):
        with kept_alone(path):
            path.write_text('workbench_watch_value{kpi="p95_ms"} 1.0\n')
        assert list(tmp_path.iterdir()) == []


def test_what_a_watch_left_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "haproxy.prom"
    path.write_text('workbench_watch_value{kpi="p95_ms"} 1.0\n')
    with kept_alone(path):
        path.write_text("")
    assert not path.exists()


def test_a_file_of_somebody_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("precious\n")
    with pytest.raises(UsageError, match="no watch has written it"), kept_alone(path):
        pass
    assert path.read_text() == "precious\n"


def test_a_device_or_pipe_is_refused_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(UsageError, match="is no regular file"), kept_alone(path):
            pass
    assert pipe.is_fifo()


def test_two_watches_do_not_share_one(tmp_path: Path) -> None:
    path = tmp_path / "haproxy.prom"
    with kept_alone(path):
        with pytest.raises(UsageError, match="another watch writes it"), kept_alone(path):
            pass
        path.write_text("workbench_watch_value 1.0\n")
    assert not path.exists()


def test_where_nothing_can_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "haproxy.prom"
    with pytest.raises(UsageError, match="cannot be written: Not a directory"), kept_alone(path):
        pass
    missing = tmp_path / "missing" / "haproxy.prom"
    with pytest.raises(UsageError, match="No such file or directory"), kept_alone(missing):
        pass
    assert not missing.parent.exists()
