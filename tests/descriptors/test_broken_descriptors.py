"""Every broken descriptor gives located sentences, never a trace.

Each case in `broken/` (`broken_descriptors.py`) begins with what `workbench lint` must say about
it, one line per mistake: `# expect [FILE:]LINE:COLUMN: FIELD: SENTENCE`, the sentence from its
beginning.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from broken_descriptors import BROKEN, FILES

from workbench.descriptors.checking import lint
from workbench.descriptors.document import LARGEST_FILE
from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import DescriptorError, Mistake
from workbench.paths import Workspace

EXPECTED = re.compile(r"# expect (?:(\S+?):)?(\d+):(\d+): (\S+?): (.*)")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_there_are_at_least_forty_of_them() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_broken_descriptor_is_told_off_in_place(path: Path, workspace: Workspace) -> None:
    found = lint(path, workspace=workspace)

    expected = [
        match.groups()
        for line in path.read_text().splitlines()
        if (match := EXPECTED.fullmatch(line))
    ]
    assert expected, f"{path} does not begin with what is expected of it"
    assert len(found) == len(expected), "\n".join(map(str, found))
    for mistake, (file, line, column, field, sentence) in zip(found, expected, strict=True):
        assert Path(mistake.file) == (BROKEN / file if file else path)
        assert (mistake.line, mistake.column) == (int(line), int(column)), mistake
        assert mistake.field == field
        assert mistake.message.startswith(sentence)


def test_a_campaign_with_mistakes_is_refused_with_all_of_them(workspace: Workspace) -> None:
    path = BROKEN / "campaign-several-mistakes.yaml"

    with pytest.raises(DescriptorError) as raised:
        load_campaign(str(path), workspace=workspace)

    assert raised.value.mistakes == lint(path, workspace=workspace)
    assert len(raised.value.mistakes) == 10
    lines = [mistake.line for mistake in raised.value.mistakes]
    assert lines == sorted(lines)
    assert (
        str(raised.value).splitlines()[0].startswith(f"{path}:13:10: targets[0].vnf: is 'hapoxy'")
    )


def _write(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


def _told(path: Path, workspace: Workspace) -> Mistake:
    (mistake,) = lint(path, workspace=workspace)
    with pytest.raises(DescriptorError) as raised:
        load_campaign(str(path), workspace=workspace)
    assert raised.value.mistakes == (mistake,)
    assert (mistake.file, mistake.field) == (str(path), "file")
    return mistake


@pytest.mark.parametrize(
    ("raw", "line", "column", "sentence"),
    [
        pytest.param(b"", 1, 1, "is empty, must hold a descriptor", id="empty"),
        pytest.param(b"kind: campaign\nsummary: \xe9t\xe9\n", 2, 10, "is not UTF-8", id="latin-1"),
        pytest.param(b"\x7fELF\x02\x01\x01\x00\x00", 1, 1, "holds '\\x7f', a char", id="binary"),
        pytest.param(b"kind: campaign\n\x00", 2, 1, "holds '\\x00', a char", id="nul"),
        pytest.param(b"#" * (LARGEST_FILE + 1), 1, 1, "is larger than 64 KiB", id="huge"),
    ],
)
def test_what_is_no_text_is_told_off(
    raw: bytes, line: int, column: int, sentence: str, tmp_path: Path, workspace: Workspace
) -> None:
    mistake = _told(_write(tmp_path / "x.yaml", raw), workspace)

    assert (mistake.line, mistake.column) == (line, column)
    assert mistake.message.startswith(sentence)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path, workspace: Workspace) -> None:
    path = _write(tmp_path / "x.yaml", b"\xef\xbb\xbfkind: chain\nseries: [haproxy]\n")

    assert lint(path, workspace=workspace) == ()


def test_what_is_no_file_is_told_off(tmp_path: Path, workspace: Workspace) -> None:
    fifo = tmp_path / "fifo.yaml"
    os.mkfifo(fifo)
    folder = tmp_path / "folder.yaml"
    folder.mkdir()

    assert _told(fifo, workspace).message == "is not a regular file, must be a YAML file"
    assert _told(folder, workspace).message == "is a folder, must be a YAML file"
    assert _told(tmp_path / "gone.yaml", workspace).message.startswith("does not exist")
    assert _told(tmp_path / ("n" * 300 + ".yaml"), workspace).message.startswith("cannot be read")


def test_a_file_that_is_named_badly_is_told_off(tmp_path: Path, workspace: Workspace) -> None:
    path = tmp_path / "my campaign.yaml"
    path.write_text((BROKEN / "kpi-unknown.yaml").read_text().replace("p100", "p95"))

    (mistake,) = lint(path, workspace=workspace)

    assert mistake.message.startswith("is named 'my campaign', must be named with ASCII letters")


def test_a_build_folder_of_an_impossible_name_is_told_off(
    tmp_path: Path, workspace: Workspace
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"kind: vnf\nbuild: {'x' * 300}\n")

    mistakes = lint(path, workspace=workspace)

    assert [m.message.endswith("but no Dockerfile is there") for m in mistakes] == [True]


def test_a_file_name_with_control_characters_is_shown_without(
    tmp_path: Path, workspace: Workspace
) -> None:
    mistakes = lint(tmp_path / "a\x1b[31m\n\udcff.yaml", workspace=workspace)

    assert [str(m).isprintable() for m in mistakes] == [True]


def test_no_sentence_carries_control_characters(tmp_path: Path, workspace: Workspace) -> None:
    escape = '"\\e[31m\\ud800"'
    path = tmp_path / "x.yaml"
    path.write_text(f"kind: campaign\n{escape}: 1\nkpi: {escape}\nload: {{{escape}: 1}}\n")

    found = lint(path, workspace=workspace)

    assert len(found) >= 4
    for mistake in found:
        assert str(mistake).isprintable(), ascii(str(mistake))
        assert str(mistake).encode("utf-8")


def test_a_name_that_others_are_proposed_is_printable(tmp_path: Path, workspace: Workspace) -> None:
    path = tmp_path / "x.yaml"
    agents = 'agents: {"\\e[2J": {}}\nmanagers: {haproxy: {agent: other}}\n'
    path.write_text(f"kind: campaign\n{agents}", encoding="utf-8")
    told = "\n".join(map(str, lint(path, workspace=workspace)))
    assert r"allowed: \x1b[2J" in told
    assert "\x1b" not in told
