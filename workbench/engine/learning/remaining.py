"""How long a question has been computed, and about how long it still takes.

`scoring.patiently` reports every piece of work to the question that it is done for, whoever asked
for it in between; how long each kind takes is learned as it is done.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

USUAL_S: Mapping[str, float] = MappingProxyType(
    {"row_of": 0.4, "fit_to_all": 0.2, "judge": 1.0, "compared_with": 1.0, "proposed": 3.0}
)
"""Seconds of a piece of work before one of its kind was done here."""
OTHERS_S = 0.5
LATEST = 0.3
"""Weight of the latest in what is learned."""


class Remaining:
    """Of one question.

    Parameters
    ----------
    took : seconds by kind of work, shared by all questions of an engine.
    """

    def __init__(self, took: dict[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self._took, self._clock = took, clock
        self._began = clock()
        self._left: Counter[str] = Counter()
        self._under_way: list[tuple[str, float]] = []

    def at_least(self, work: str, count: int = 1, usual_s: float | None = None) -> None:
        """So many pieces of that kind are still to be begun, or more; `usual_s` is what one takes
        where none was done here yet."""
        self._left[work] = max(self._left[work], count)
        if usual_s is not None:
            self._took.setdefault(work, usual_s)

    def less(self, work: str) -> None:
        """A piece need not be done: it is known."""
        self._left[work] = max(0, self._left[work] - 1)

    @contextmanager
    def doing(self, work: str) -> Iterator[None]:
        """A piece, for as long as the body runs."""
        piece = work, self._clock()
        self.less(work)
        self._under_way.append(piece)
        try:
            yield
        except BaseException:
            self._under_way.remove(piece)
            raise
        self._under_way.remove(piece)
        took = self._clock() - piece[1]
        before = self._took.get(work, took)
        self._took[work] = LATEST * took + (1.0 - LATEST) * before

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._began

    @property
    def eta_s(self) -> float:
        """About; pieces that are done beside each other count so.

        A piece that is late is expected to need as long again as it is late, and others of its
        kind as long as it has taken: nobody reads "1 s to go" for half a minute.
        """
        now = self._clock()
        passed = [(work, now - since) for work, since in self._under_way]
        slowest = {work: max(took for w, took in passed if w == work) for work, _ in passed}
        left = sum(
            count * max(self._usual(work), slowest.get(work, 0.0))
            for work, count in self._left.items()
        )
        left += sum(abs(self._usual(work) - took) for work, took in passed)
        return left / max(1, len(self._under_way))

    def _usual(self, work: str) -> float:
        return self._took.get(work) or USUAL_S.get(work, OTHERS_S)


_current: ContextVar[Remaining | None] = ContextVar("remaining", default=None)


@contextmanager
def counted_for(remaining: Remaining) -> Iterator[None]:
    """What the body does, and whatever tasks it starts, is done for this question."""
    token = _current.set(remaining)
    try:
        yield
    finally:
        _current.reset(token)


def expect(work: str, count: int = 1, usual_s: float | None = None) -> None:
    """`Remaining.at_least` of the question that this is done for, if there is one."""
    if (remaining := _current.get()) is not None:
        remaining.at_least(work, count, usual_s)


def skip(work: str) -> None:
    """`Remaining.less` likewise."""
    if (remaining := _current.get()) is not None:
        remaining.less(work)


@contextmanager
def doing(work: str) -> Iterator[None]:
    """`Remaining.doing` likewise."""
    remaining = _current.get()
    if remaining is None:
        yield
        return
    with remaining.doing(work):
        yield
