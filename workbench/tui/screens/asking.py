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
    """The one question that a screen or dialog waits for; a second one has a ``group`` of its own.

    Attributes
    ----------
    busy : what is waited for; None where nothing is.
    refused : why the last question has no answer; None while one is awaited, or where it has one.
    """

    def __init__(self, asker: Screen[Any], draw: Callable[[], object], group: str = ASKING) -> None:
        self._asker, self._draw, self._group = asker, draw, group
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
        watched = partial(self._watched, work, self.busy)
        begin(self._asker, watched, group=self._group, exclusive=True)

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
        self._asker.workers.cancel_group(self._asker, self._group)
        self._application.say("Cancelled.")

    @property
    def _application(self) -> Application:
        return cast(Application, self._asker.app)

    async def _watched(self, work: Callable[[], Awaitable[None]], busy: Busy) -> None:
        self._draw()
        # Work of its own: what goes wrong in it is the screen's, as in all that it draws.
        begin(self._asker, partial(self._look, busy), group=f"{self._group}: look", exclusive=True)
        try:
            await work()
        finally:
            if self.busy is busy:  # else another question took its place
                self.busy = None
            self._draw()

    async def _look(self, busy: Busy) -> None:
        """Keep saying for how long it is waited for, and what the engine does."""
        answers = True
        while True:
            await asyncio.sleep(LOOK_S)
            if self.busy is busy and answers:
                try:
                    busy.hear(await (await self._application.client()).ask(GetStatus()))
                except (WorkbenchError, OSError):
                    answers = False  # the question itself tells
            if self.busy is not busy:
                return
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
