"""Who drives a campaign: one operator at a time, whom the others see and can ask for control.

Control is a person's, not a connection's: who loses the link and logs in again still drives. It
is free as soon as its driver has no connection left.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.domain import messages
from workbench.domain.errors import NotAllowed
from workbench.domain.events import ControlLock
from workbench.domain.messages import Done, Hello, Request

MOST_HELD = 256
"""Sessions whose driver is known; of those that are not running the oldest are forgotten first."""
ANSWER_S = 30.0
"""How long a driver has to answer; then control passes to who asked."""


def person(who: Hello) -> str:
    """Whose connection it is: of an SSH key, or of an account on this host.

    The terminals of an account (`ann@pts/3`) are one person's.
    """
    return who.identity if who.details else who.identity.partition("@")[0]


@dataclass
class _Held:
    driver: str
    asked_by: str = ""
    passes_at: float | None = None
    passing: asyncio.TimerHandle | None = None


class ControlLocks:
    """By session.

    Parameters
    ----------
    running : whether a session is being measured, or waits for its turn.
    tell : shows a change to those who follow the session.
    """

    def __init__(
        self,
        running: Callable[[str], bool],
        tell: Callable[[ControlLock], None],
        answer_s: float = ANSWER_S,
    ) -> None:
        self._running = running
        self._tell = tell
        self._answer_s = answer_s
        self._held: dict[str, _Held] = {}
        self._present: Counter[str] = Counter()

    # ------------------------------------------------------------------ who is there

    def came(self, who: Hello) -> None:
        """Somebody has connected."""
        self._present[person(who)] += 1

    def left(self, who: Hello) -> None:
        """A connection has ended; with the last of a person's, control is free."""
        name = person(who)
        self._present[name] -= 1
        if self._present[name] > 0:
            return
        del self._present[name]
        for session, held in list(self._held.items()):
            if held.driver == name and held.asked_by:
                self._hand_over(session, held.asked_by)
            elif held.driver == name:
                self._hand_over(session, "")

    # ------------------------------------------------------------------ driving

    def steer(self, request: Request[Any], who: Hello) -> None:
        """Refuse a command for a running campaign that somebody else drives; else drive it."""
        session = getattr(request, "session", None)
        if not session or isinstance(request, messages.AskControl | messages.AnswerControl):
            return
        name, held = person(who), self._held.get(session)
        if not self._running(session):
            self._hand_over(session, name)  # it may start something there
            return
        # Who is in the engine's own process has no connection, and ends the engine anyway.
        if held and held.driver not in ("", name) and name in self._present:
            raise NotAllowed(
                f"{held.driver} drives {session}",
                where=who.identity,
                remedy="Ask for control",
            )
        if held is None or held.driver != name:
            self._hand_over(session, name)

    def launched(self, session: str, who: Hello) -> None:
        """Who starts a campaign drives it."""
        self._hand_over(session, person(who))

    def begun(self, session: str) -> None:
        """Something is measured from now on; those who follow see who drives."""
        if session in self._held:
            self._show(session)

    def ask(self, session: str, who: Hello) -> Done:
        """Somebody wants to drive."""
        self._must_run(session)
        name, held = person(who), self._held.get(session)
        if held is not None and held.driver == name:
            return Done(f"you drive {session} already")
        if held is None or held.driver not in self._present:
            self._hand_over(session, name)
            return Done(f"you drive {session}")
        if held.asked_by and held.asked_by != name:
            raise NotAllowed(f"{held.asked_by} has asked {held.driver} already", where=session)
        if not held.asked_by:
            held.asked_by, held.passes_at = name, time.time() + self._answer_s
            loop = asyncio.get_running_loop()
            held.passing = loop.call_later(self._answer_s, self._hand_over, session, name)
            self._show(session)
        return Done(
            f"{held.driver} drives {session} and is asked; "
            f"without an answer within {self._answer_s:.0f} s it is yours"
        )

    def answer(self, session: str, give: bool, who: Hello) -> Done:
        """The driver gives it, or keeps it."""
        self._must_run(session)
        held = self._held.get(session)
        if held is None or held.driver != person(who):
            raise NotAllowed(f"you do not drive {session}", where=who.identity)
        if give:
            asked_by = held.asked_by
            self._hand_over(session, asked_by)
            return Done(f"{asked_by or 'nobody'} drives {session}")
        self._hand_over(session, held.driver)
        return Done(f"you keep {session}")

    def driver(self, session: str) -> str:
        """Empty where nobody drives it."""
        held = self._held.get(session)
        return held.driver if held is not None else ""

    def _must_run(self, session: str) -> None:
        if not self._running(session):
            self._forget(session)
            raise NotAllowed("is not running, so that nobody drives it", where=session)

    def _hand_over(self, session: str, name: str) -> None:
        self._forget(session)
        self._held[session] = _Held(name)
        if len(self._held) > MOST_HELD:
            ended = (s for s in self._held if s != session and not self._running(s))
            if (oldest := next(ended, None)) is not None:
                self._forget(oldest)
        self._show(session)

    def _forget(self, session: str) -> None:
        held = self._held.pop(session, None)
        if held is not None and held.passing is not None:
            held.passing.cancel()

    def _show(self, session: str) -> None:
        held = self._held[session]
        self._tell(ControlLock(session, held.driver, held.asked_by, held.passes_at))
