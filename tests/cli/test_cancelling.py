"""Ctrl-C in a command that waits for an answer ends the computing, wherever the engine runs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from workbench.cli import context
from workbench.domain.messages import EngineStatus, GetStatus
from workbench.domain.questions import ChainQuery, CompareChain


class Engine:
    """Answers no question, and sends Ctrl-C instead."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.dropped: list[Any] = []

    async def ask(self, request: Any) -> Any:
        self.asked.append(request)
        match request:
            case GetStatus():
                return EngineStatus("", "", 1, 0.0, "", (), 0, scoring="a model", scoring_s=2.0)
        os.kill(os.getpid(), signal.SIGINT)
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:  # of which the link tells the engine
            self.dropped.append(request)
            raise


def test_ctrl_c_cancels_what_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()

    @asynccontextmanager
    async def running() -> AsyncIterator[Engine]:
        yield engine

    monkeypatch.setattr(context, "any_client", running)
    with pytest.raises(KeyboardInterrupt):
        context.ask_patiently(CompareChain(ChainQuery("demo-1", "a-b")))
    assert engine.dropped == [CompareChain(ChainQuery("demo-1", "a-b"))]


def test_a_terminal_is_told_for_how_long_and_how_long_still() -> None:
    def status(**figures: Any) -> EngineStatus:
        return EngineStatus("", "", 1, 0.0, "", (), 0, **figures)

    assert context._waited_for(status()) == ""
    told = status(scoring="haproxy, p95_ms: pooled (2 of 5)", scoring_s=3.2, scoring_eta_s=7.4)
    said = "3 s: haproxy, p95_ms: pooled (2 of 5), about 7 s to go"
    assert context._waited_for(told) == said
    assert context._waited_for(status(preparing="s: an image")) == "s: an image"
