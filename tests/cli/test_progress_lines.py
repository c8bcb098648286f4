"""Without a screen: how far the opening of a lab and a run are, at a rate that can be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from workbench.cli import headless
from workbench.cli.context import LinesApart
from workbench.domain.errors import EngineError
from workbench.domain.events import Event, Noted, Progress, RunFinished
from workbench.domain.lab import OHA_LATER
from workbench.domain.messages import Request, RunAccepted, RunCampaign
from workbench.link.local import LocalClient

TICK = Progress(
    *("s", "measuring", "tinyproxy", None, 400.0, 12, 80, 130.0, 300.0),
    wall_s=200.0,
    eta_wall_s=420.0,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_in_a_pipe_a_question_that_takes_long_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = LinesApart(clock)
    for second in range(35):
        clock.now = float(second)
        lines.show(f"{second} s: fitting" if second != 20 else "")
    told = capsys.readouterr().err.splitlines()
    assert told == [f"{second} s: fitting" for second in (10, 21, 31)]


def test_what_is_made_ready_is_told_at_once_and_then_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    opening = headless.Opening(clock)
    for second in range(0, 40):
        clock.now = second / 2
        opening.tell("demo: opening the lab" if second < 3 else f"demo: image {second // 10} of 3")
    opening.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "demo: opening the lab (0 s so far)",
        "demo: image 0 of 3 (2 s so far)",
    ]
    assert len(lines) == 5
    capsys.readouterr()
    for second in range(100):
        clock.now = 20 + second / 2
        opening.tell("demo: image 3 of 3")
    assert len(capsys.readouterr().err.splitlines()) == 5, "it goes on: every ten seconds"


def test_a_run_says_how_far_it_is_after_ten_silent_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = headless._Lines(clock)
    for second in range(25):
        clock.now = float(second)
        lines.tick(TICK)
    said = (
        "measuring tinyproxy at 400, 12 of 80 samples, 3.3 min so far, about 7.0 min, "
        "5.0 min of lab time to go"
    )
    assert capsys.readouterr().out.splitlines() == [said, said]


def test_what_a_run_waits_for_is_told_once_and_then_with_how_far_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = headless._Lines(clock)
    for second in range(15):
        clock.now = float(second)
        note = f"has waited {second} s; the host is busy: rustc"
        lines.tick(replace(TICK, phase="waiting", target="", wl=None, note=note))
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "warning: has waited 2 s; the host is busy: rustc"
    assert told[1].startswith("waiting, 12 of 80 samples, ")
    assert told[1].endswith("has waited 12 s; the host is busy: rustc")
    assert len(told) == 2


@pytest.mark.parametrize("here", [True, False])
async def test_what_becomes_of_oha_is_said_before_how_the_run_ended(
    here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line is what happened and what to do."""
    busy = "others kept this host busy; `workbench resume s` goes on"
    facts = (
        Noted("warning", f"this session measures with steady: oha is missing, and {OHA_LATER}"),
        RunFinished("budget", 4, 0, 20.0, 20.0, (), busy),
    )
    told: list[str] = []

    class Elsewhere:
        async def ask(self, request: Request) -> RunAccepted:
            return RunAccepted("s")

    class Here(Elsewhere, LocalClient):
        def __init__(self) -> None:
            """No engine is needed."""

    @asynccontextmanager
    async def client_of(own: object) -> AsyncIterator[Elsewhere]:
        yield Here() if here else Elsewhere()

    @asynccontextmanager
    async def telling(*arguments: object, **options: object) -> AsyncIterator[None]:
        yield

    async def changes(client: object, session: str) -> AsyncIterator[Event]:
        for seq, fact in enumerate(facts, 1):
            yield Event(seq, float(seq), "s", fact)

    for name, stand_in in (
        *(("client_of", client_of), ("telling", telling), ("_changes", changes)),
        *(("put", told.append), ("say", told.append)),
    ):
        monkeypatch.setattr(headless, name, stand_in)
    await headless.run_headless(RunCampaign("demo"), json=False, http=None)
    *_, about_oha, last = told
    assert ("`workbench images build`" in about_oha) is here
    assert ("is being built for later sessions" in about_oha) is not here
    assert busy in last


@pytest.mark.parametrize("error", [None, EngineError("the link broke"), ValueError("a defect")])
async def test_whatever_ends_a_run_its_bar_is_closed(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the terminal is left without its cursor."""
    closed: list[bool] = []

    class Report(headless._JsonLines):
        def close(self) -> None:
            closed.append(True)

    class Elsewhere:
        async def ask(self, request: Request) -> RunAccepted:
            return RunAccepted("s")

    @asynccontextmanager
    async def client_of(own: object) -> AsyncIterator[Elsewhere]:
        yield Elsewhere()

    @asynccontextmanager
    async def telling(*arguments: object, **options: object) -> AsyncIterator[None]:
        yield

    async def changes(client: object, session: str) -> AsyncIterator[Event]:
        if error is not None:
            raise error
        for event in ():
            yield event

    for name, stand_in in (
        *(("client_of", client_of), ("telling", telling), ("_changes", changes)),
        ("_report", lambda session, json: Report()),
    ):
        monkeypatch.setattr(headless, name, stand_in)
    with pytest.raises(type(error or EngineError(""))):
        await headless.run_headless(RunCampaign("demo"), json=False, http=None)
    assert closed
