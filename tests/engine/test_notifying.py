"""A campaign that ends or drifts tells whoever asked; what fails is a sentence, and no more."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from workbench.domain.errors import UsageError
from workbench.domain.events import DriftSeen, Event, Noted, RunFinished
from workbench.domain.notices import Notice, notice_of, terminal_sequence
from workbench.domain.projection import SessionView
from workbench.domain.retraining import Drift
from workbench.engine import notifying
from workbench.engine.notifying import Notifier, ToTell, read, tell

NOTICE = Notice("failed", "demo-1", "demo", "demo-1: run failed; $(touch x)", 1.0, "failed")
VIEW = SessionView("demo-1")
FAILED = RunFinished("failed", 7, 2, 60.0, 50.0, (), "the lab\x1b[31m is gone\nfor good")


class Hook:
    def __init__(self) -> None:
        self.got: list[tuple[object, str | None]] = []
        self.status = 200
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.got.append((await request.json(), request.headers.get("Authorization")))
        return web.Response(status=self.status, headers={"Location": "/elsewhere"})


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    made = Hook()
    app = web.Application()
    app.router.add_post("/hook", made.answer)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    made.url = f"http://127.0.0.1:{server.port}/hook"
    yield made
    await server.close()


def test_what_ends_and_what_drifts_is_worth_a_notice() -> None:
    failed = notice_of(Event(3, 2.0, "demo-1", FAILED), VIEW)
    assert failed is not None
    assert (failed.event, failed.outcome, failed.samples, failed.invalid) == (
        "failed",
        "failed",
        7,
        2,
    )
    assert failed.text == (
        "demo-1: run failed, 7 samples, 2 invalid: the lab·[31m is gone·for good"
    )
    stopped = notice_of(Event(3, 2.0, "demo-1", RunFinished("stopped", 1, 0, 1.0, 1.0, ())), VIEW)
    assert stopped is not None
    assert stopped.event == "finished"
    drift = Drift("tiny-ha", "p95_ms", 9, "above", "x", 2.0, 0.01, "later samples lie above")
    drifting = notice_of(Event(4, 2.0, "demo-1", DriftSeen(drift)), VIEW)
    assert drifting is not None
    assert drifting.event == "drifting"
    assert drifting.text == "demo-1: p95_ms of tiny-ha drifts: later samples lie above"
    assert notice_of(Event(5, 2.0, "demo-1", Noted("info", "nothing")), VIEW) is None


async def test_a_webhook_gets_the_notice_as_json(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_URL", hook.url)
    monkeypatch.setenv("HOOK_TOKEN", "hush")
    assert await tell(ToTell(webhook="${HOOK_URL}", token="${HOOK_TOKEN}"), NOTICE) == ""
    ((body, authorization),) = hook.got
    assert isinstance(body, dict)
    assert (body["event"], body["session"], body["outcome"]) == ("failed", "demo-1", "failed")
    assert authorization == "Bearer hush"


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_webhook_that_refuses_is_a_sentence_without_secrets(
    hook: Hook, status: int
) -> None:
    hook.status = status
    secret = hook.url.replace("http://", "http://user:hush@") + "?key=hush"
    why = await tell(ToTell(webhook=secret), NOTICE)
    assert f"answered {status}" in why
    assert "webhook at 127.0.0.1:" in why
    assert "hush" not in why
    assert len(hook.got) == 1, "no redirect is followed"


async def test_who_is_slow_gone_or_unset_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "TELLING_S", 0.3)
    assert "cannot be reached" in await tell(ToTell(webhook="http://127.0.0.1:9/hush"), NOTICE)
    assert "needs NO_SUCH_HOOK" in await tell(ToTell(webhook="${NO_SUCH_HOOK}"), NOTICE)
    assert "cannot be started" in await tell(ToTell(command=("/no/such/program",)), NOTICE)
    endless = (sys.executable, "-c", "import time; time.sleep(3600)")
    assert "took more than 0.3 s" in await tell(ToTell(command=endless), NOTICE)
    code = (sys.executable, "-c", "raise SystemExit(7)")
    monkeypatch.setattr(notifying, "TELLING_S", 30.0)
    assert "ended with code 7" in await tell(ToTell(command=code), NOTICE)


async def test_a_command_is_an_argument_vector_and_no_shell(tmp_path: Path) -> None:
    into = tmp_path / "told.json"
    program = (
        "import json, sys; json.dump([sys.argv[2:], json.load(sys.stdin)], open(sys.argv[1], 'w'))"
    )
    command = (sys.executable, "-c", program, str(into), "{event}: {text}", "`id`")
    assert await tell(ToTell(command=command), NOTICE) == ""
    arguments, notice = json.loads(into.read_text())
    assert arguments == ["failed: demo-1: run failed; $(touch x)", "`id`"]
    assert notice["campaign"] == "demo"


async def test_the_notifier_tells_each_who_asked_and_warns_of_failures(
    hook: Hook, tmp_path: Path
) -> None:
    file = tmp_path / "notify.toml"
    warned: list[tuple[str, str]] = []

    async def warn(session: str, text: str) -> None:
        warned.append((session, text))

    notifier = Notifier(file, warn)
    notifier.hear(Event(3, 2.0, "demo-1", FAILED), VIEW)
    await notifier.close()
    assert not warned, "nobody asked"
    file.write_text(
        f'[[notify]]\nwebhook = "{hook.url}"\n'
        f'[[notify]]\non = ["finished"]\nwebhook = "{hook.url}"\n'
        '[[notify]]\non = ["failed"]\ncommand = ["/no/such/program"]\n'
        "[[notify]]\nterminal = true\n"
    )
    notifier.hear(Event(3, 2.0, "demo-1", FAILED), VIEW)
    notifier.hear(Event(4, 2.0, "demo-1", Noted("info", "nothing")), VIEW)
    await notifier.close()
    assert len(hook.got) == 1
    ((session, text),) = warned
    assert session == "demo-1"
    assert text.startswith("The notice `failed` was not delivered: command program cannot be")
    file.write_text("nonsense")
    notifier.hear(Event(5, 2.0, "demo-1", FAILED), VIEW)
    await notifier.close()
    assert "notify.toml: cannot be read" in warned[-1][1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("notify = 3", "up to 20 tables"),
        ("other = 1", "up to 20 tables"),
        ("[[notify]]\n", "must have one of webhook, command and terminal"),
        ('[[notify]]\nwebhook = "http://a"\nterminal = true', "must have one of"),
        ('[[notify]]\nwebhook = "ftp://a"', "a webhook that is no URL"),
        ('[[notify]]\nwebhook = "http://a"\ntoken = "hush"', "token as text; write ${NAME}"),
        ('[[notify]]\ncommand = "rm -rf x"', "no list of program and arguments"),
        ('[[notify]]\nterminal = true\non = ["never"]', "no list of finished, failed, drifting"),
        ("[[notify]]\nterminal = true\nshell = 1", "no setting 'shell'"),
        ("x" * 70_000, "larger than 64 KiB"),
    ],
)
def test_a_file_with_mistakes_is_refused_in_a_sentence(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "notify.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read(file)
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_terminals_are_told_in_their_own_way() -> None:
    assert terminal_sequence(NOTICE, "xterm-256color") == (
        "\x1b]9;workbench: demo-1: run failed, $(touch x)\x07"
    )
    assert terminal_sequence(NOTICE, "foot").startswith("\x1b]777;notify;workbench;demo-1")
    wrapped = terminal_sequence(NOTICE, "tmux-256color", in_tmux=True)
    assert wrapped.startswith("\x1bPtmux;\x1b\x1b]9;")
    hostile = Notice("failed", "s", "", "a\x07\x1b]0;title\x07", 1.0)
    assert terminal_sequence(hostile, "xterm").count("\x07") == 1


class Lines:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def error(self, what: str, *, exc_info: BaseException, **others: object) -> None:
        self.errors.append(exc_info)

    def warning(self, what: str, **others: object) -> None:
        """Not asked for."""


async def test_what_nobody_expected_of_a_notice_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Lines()
    monkeypatch.setattr(notifying, "log", log)
    file = tmp_path / "notify.toml"
    file.write_text("nonsense")

    async def warn(session: str, text: str) -> None:
        raise RuntimeError(f"{session} cannot be written")

    notifier = Notifier(file, warn)
    notifier.hear(Event(3, 2.0, "demo-1", FAILED), VIEW)
    await notifier.close()
    await asyncio.sleep(0)  # until who looks at its end has done so
    assert [str(error) for error in log.errors] == ["demo-1 cannot be written"]
    assert not notifier._telling, "nothing is kept of it"


async def test_who_is_told_late_is_waited_for(tmp_path: Path) -> None:
    file, into = tmp_path / "notify.toml", tmp_path / "told"
    program = "import pathlib, sys, time; time.sleep(0.2); pathlib.Path(sys.argv[1]).touch()"
    command = json.dumps([sys.executable, "-c", program, str(into)])
    file.write_text(f"[[notify]]\ncommand = {command}\n")

    async def warn(session: str, text: str) -> None:
        raise AssertionError(text)

    notifier = Notifier(file, warn)
    notifier.hear(Event(3, 2.0, "demo-1", FAILED), VIEW)
    await asyncio.sleep(0)
    await notifier.close()
    assert into.exists()
