"""A question to the engine that takes its time: what is done for it is told meanwhile, it can be
dropped, and what was refused says why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, cast

from textual.screen import Screen

from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.messages import GetStatus, Request
from workbench.tui.application import Application
from workbench.tui.screens.session import SessionScreen
from workbench.tui.widgets.waiting import Busy
from workbench.tui.workers import begin

R = TypeVar("R")

LOOK_S = 0.5
"""How often the engine is asked what it does for a question."""
ASKING = "asking"
"""Work of a screen that asks and waits."""


class EngineQuestion:
    """The one question that a screen or dialog waits for.

    Attributes
    ----------
    busy : what is waited for; None where nothing is.
    refused : why the last question has no answer; None while one is awaited, or where it has one.
    """

    def __init__(self, asker: Screen[Any], draw: Callable[[], object]) -> None:
        self._asker, self._draw = asker, draw
        self.busy: Busy | None = None
        self.refused: WorkbenchError | None = None

    @property
    def trouble(self) -> str:
        """Why there is no answer, as sentences."""
        return str(self.refused) if self.refused is not None else ""

    @property
    def waits(self) -> bool:
        """Whether it could be dropped: nothing is measured for it."""
        return self.busy is not None and not self.busy.measures

    def begin(
        self, work: Callable[[], Awaitable[None]], words: str, *, measures: bool = False
    ) -> None:
        """Begin ``work`` that asks the engine, in place of what was asked before.

        ``words`` say what is waited for until it ends; ``measures``: the lab is used for it.
        """
        self.busy, self.refused = Busy.of(words, measures=measures), None
        begin(self._asker, partial(self._watched, work, self.busy), group=ASKING, exclusive=True)

    async def answer(self, request: Request[R]) -> R | None:
        """The answer; None where there is none, and `refused` says why."""
        self.refused = None
        try:
            return await (await self._application.client()).ask(request)
        except WorkbenchError as error:
            self.refused = error
        except OSError as error:  # the engine itself does not answer
            self.refused = EngineError(str(error))
        return None

    def drop(self) -> None:
        """Wait no longer; the engine computes no further for it."""
        self.busy = None
        self._asker.workers.cancel_group(self._asker, ASKING)
        self._application.say("Nobody waits for it any more.")

    @property
    def _application(self) -> Application:
        return cast(Application, self._asker.app)

    async def _watched(self, work: Callable[[], Awaitable[None]], busy: Busy) -> None:
        self._draw()
        looking = asyncio.ensure_future(self._look(busy))
        try:
            await work()
        finally:
            looking.cancel()
            if self.busy is busy:  # else another question took its place
                self.busy = None
            self._draw()

    async def _look(self, busy: Busy) -> None:
        """Keep saying what the engine does."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                busy.hear(await (await self._application.client()).ask(GetStatus()))
            except (WorkbenchError, OSError):
                return  # the question itself tells
            self._draw()


class QuestionScreen(SessionScreen):
    """A screen of a session that asks the engine, one question at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.asking = EngineQuestion(self, self.draw)

    @property
    def unanswered(self) -> bool:
        return self.asking.busy is not None

    def action_drop(self) -> None:
        self.asking.drop()
