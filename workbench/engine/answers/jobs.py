"""Questions that take seconds to minutes: what is computed for each, and by which worker process.

The worker is one of their own: a campaign's sampler must not wait behind them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from workbench.domain.gains import nothing_gained
from workbench.domain.lab import ASSUMED
from workbench.domain.messages import Request
from workbench.domain.projection import SessionView
from workbench.domain.questions import Recommended
from workbench.domain.requests import sessions_of
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.remaining import Remaining, counted_for
from workbench.engine.learning.scoring import Say
from workbench.engine.sessions.library import Library

R = TypeVar("R")


@dataclass(eq=False)
class Answering:
    """A question that is being answered.

    Attributes
    ----------
    doing : what is computed for it, as a sentence.
    """

    remaining: Remaining
    doing: str = ""


def to_be_said(view: SessionView, reply: object) -> Iterator[str]:
    """Beside an answer that rests on a session: what nobody measured of its figures, and of an
    allocation where more vCPU brought nothing."""
    if view.host and (assumed := view.host.details.get(ASSUMED)):
        yield assumed
    if isinstance(reply, Recommended):
        found = reply.recommendation.chosen or reply.recommendation.closest
        functions = {key.rpartition(".")[0] for key in found.allocation} if found else set()
        yield from (gain.text for gain in nothing_gained(view) if gain.vnf in functions)


class Jobs:
    """Questions under way.

    Parameters
    ----------
    disturbs : whether more than one worker would disturb who measures on this host.

    Attributes
    ----------
    pool : the worker of questions.
    """

    def __init__(self, library: Library, disturbs: Callable[[], bool] = lambda: True) -> None:
        cores = len(os.sched_getaffinity(0))
        self.pool = Pool(lambda: cores > 1 and not disturbs())
        self._answering: list[Answering] = []
        self._took: dict[str, float] = {}
        """Seconds by kind of work; see `Remaining`."""
        self._library = library

    @property
    def latest(self) -> Answering | None:
        """The question that was asked last, of those that something is computed for."""
        return next((one for one in reversed(self._answering) if one.doing), None)

    @contextmanager
    def begun(self, last: str = "") -> Iterator[Say]:
        """One question, for as long as the body runs, which says what it computes.

        `last` is the last and longest piece of its work, as the worker knows it.
        """
        one = Answering(Remaining(self._took))
        if last:
            one.remaining.at_least(last)

        def say(text: str) -> None:
            one.doing = text

        self._answering.append(one)
        try:
            with counted_for(one.remaining):
                yield say
        finally:
            self._answering.remove(one)

    async def with_assumptions(self, reply: R, request: Request[Any]) -> R:
        """The reply, and what its figures rest on that nobody measured."""
        notes = getattr(reply, "notes", None)
        if notes is None:
            return reply
        new: dict[str, None] = {}
        for session in sessions_of(request):
            async with self._library.borrow(session) as channel:
                new |= dict.fromkeys(to_be_said(channel.view, reply))
        said = tuple(text for text in new if text not in notes)
        whole: Any = reply
        noted: R = replace(whole, notes=(*said, *notes)) if said else reply
        return noted

    async def close(self) -> None:
        await self.pool.close()
