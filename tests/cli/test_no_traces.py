"""What nobody expected is a sentence and the place of the log; a trace only with `--debug`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workbench import cli
from workbench.cli import context, screen
from workbench.domain.errors import LAB_FAILURE, PluginError, UsageError
from workbench.engine.learning.guarded_model import said
from workbench.engine.runs import doctor
from workbench.paths import Workspace
from workbench.sampling import adaptive


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    def fail(_: object) -> None:
        raise ValueError("a bug")

    (tmp_path / "sessions").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(context, "ask", fail)
    return tmp_path


def test_a_command_says_a_sentence(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["workbench", "--workspace", str(broken), "ls"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    told = capsys.readouterr().err
    assert end.value.code == LAB_FAILURE
    assert "Unexpected ValueError: a bug" in told
    assert "Traceback" not in told
    log = Workspace(broken).log
    assert str(log) in told
    assert "Traceback" in log.read_text()


def test_with_debug_it_is_the_trace(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["workbench", "--debug", "--workspace", str(broken), "ls"])
    with pytest.raises(ValueError, match="a bug"):
        cli.main()


def test_a_dumb_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    monkeypatch.setenv("TERM", "dumb")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    with pytest.raises(UsageError, match="TERM=dumb") as refused:
        screen.open_screen()
    assert "--headless" in str(refused.value)


def test_a_sampler_without_its_package_is_no_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive.importlib.util, "find_spec", lambda _: None)
    lacking = doctor._lacking(adaptive.AdaptiveSampler)
    assert lacking is not None
    assert "needs the package 'adaptive'" in lacking[0]
    assert doctor._lacking(object) is None
    with pytest.raises(PluginError) as error:
        adaptive.load_learner("learner1D", "Learner1D", "x")
    # As the sentence about what is set aside goes: "the sampler 'adaptive' needs the package ...".
    assert said(error.value, "adaptive").startswith("needs the package 'adaptive'")
