"""Who answers which request: each one has a handler, and it returns what the request promises."""

from __future__ import annotations

import sys
from typing import Any, get_type_hints

import pytest

from workbench.domain.messages import (
    REQUESTS,
    Command,
    Done,
    EngineStatus,
    GetStatus,
    Hello,
    PauseRun,
    Request,
)
from workbench.domain.questions import ChainQuery, CompareChain, PlanCanary, RetrainChain
from workbench.domain.requests import sessions_of
from workbench.engine.handlers import HANDLERS
from workbench.link.local import LocalClient

HANDLED = list(HANDLERS.by_kind.items())


def test_every_request_has_a_handler() -> None:
    assert {kind for kind, _ in HANDLED} == set(REQUESTS)


@pytest.mark.parametrize(("kind", "handler"), HANDLED, ids=[kind.__name__ for kind, _ in HANDLED])
def test_a_handler_takes_its_request_and_returns_its_reply(kind: type[Any], handler: Any) -> None:
    module = sys.modules[handler.answer.__module__]
    hints = get_type_hints(handler.answer, vars(module))
    assert (hints["request"], hints["return"]) == (kind, kind.reply)


def test_commands_and_exports_change_something() -> None:
    changing = {kind.__name__ for kind, handler in HANDLED if handler.changes}
    commands = {kind.__name__ for kind in REQUESTS if issubclass(kind, Command)}
    assert changing == {*commands, "ExportSession", "ExportRecommendation"}
    confined = {kind.__name__ for kind, handler in HANDLED if handler.of_the_host}
    fleets = {"BeginFleetSession", "ReportFleet", "EndFleetSession"}
    assert confined == {"StopEngine", "ReapStrays", "ImportBundle", "ReportLook", *fleets}


async def test_a_reply_to_something_else_is_refused_in_a_sentence() -> None:
    class Confused:
        share = None

        async def handle(self, request: Request[Any], who: Hello) -> Any:
            return Done("as you like")

    client = LocalClient(Confused(), "ann")  # type: ignore[arg-type]
    assert (await client.ask(PauseRun("demo-1"))).note == "as you like"
    with pytest.raises(Exception, match="the engine answered GetStatus with Done"):
        await client.ask(GetStatus())
    assert GetStatus.reply is EngineStatus


def test_what_a_request_is_about_is_its_sessions() -> None:
    query = ChainQuery("demo-1", "a-b", profiles="demo-2")
    assert sessions_of(CompareChain(query)) == ("demo-1", "demo-2")
    assert sessions_of(PlanCanary(RetrainChain("demo-3"))) == ("demo-3",)
    assert sessions_of(GetStatus()) == ()
