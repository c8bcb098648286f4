"""What a full disk leaves of files that were to be replaced, or lines that were to be added."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from workbench.audit import AuditLog
from workbench.files import write_whole


def test_a_file_is_replaced_whole_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = tmp_path / "values.yaml"
    write_whole(values, "replicas: 1\n")

    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:4])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(values, "replicas: 2\n")
    assert values.read_text() == "replicas: 1\n"
    assert [*tmp_path.iterdir()] == [values], "no half file"


def test_a_line_that_fits_in_part_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path / "audit.log")
    log.write("login", who="ann")
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, line: write(file, line[:10]))
        log.write("login", who="bob")
    log.write("login", who="cid")
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert [line["who"] for line in lines] == ["ann", "cid"]
