"""What is waited for, for how long, and why no answer came: lines above an answer."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from textual.app import ComposeResult
from textual.containers import Vertical

from workbench.domain.durations import duration
from workbench.domain.messages import EngineStatus
from workbench.tui.text import plain, wrapped
from workbench.tui.widgets.rows import Rows, fit


@dataclass
class Busy:
    """A question that the engine has not answered yet."""

    words: str
    measures: bool
    """On the lab."""
    since: float
    doing: str = ""
    """What the engine does for it now, in its own words."""
    to_go: str = ""
    """How long still, in words."""

    @classmethod
    def of(cls, words: str, *, measures: bool) -> Busy:
        return cls(words, measures, monotonic())

    @property
    def text(self) -> str:
        return self._with()

    def restart(self) -> None:
        """Count from now: what came before is told elsewhere, such as a canary that measures."""
        self.since = monotonic()

    def ended_by(self, key: str, besides: str = "") -> str:
        """The same, and the key that cancels it; `besides` is to be known meanwhile."""
        return self._with(f"{key} {'stops' if self.measures else 'cancels'}", besides)

    def _with(self, key: str = "", besides: str = "") -> str:
        """Times first: what the engine does may be cut off."""
        passed = duration(monotonic() - self.since)
        times = ", ".join(filter(None, (passed, self.to_go, key)))
        told = " · ".join(filter(None, (f"{self.words} ({times})", besides)))
        return f"{told}: {plain(self.doing)}" if self.doing else told

    def hear(self, status: EngineStatus) -> None:
        """What the engine says that it does."""
        self.doing, self.to_go = status.preparing or status.scoring, status.to_go


class Waiting(Vertical):
    """A line while something is waited for, sentences where it failed; else no line at all."""

    DEFAULT_CSS = "Waiting { height: auto; }"

    def compose(self) -> ComposeResult:
        yield Rows(id="busy")
        yield Rows(id="trouble")

    def tell(self, busy: Busy | None, trouble: str, width: int, key: str) -> None:
        """`key` cancels what is waited for."""
        line, why = self.query_one("#busy", Rows), self.query_one("#trouble", Rows)
        line.display, why.display = busy is not None, bool(trouble)
        self.display = line.display or why.display
        line.show(
            [((fit(f" … {busy.ended_by(key)}", width), "accent"),)] if busy is not None else []
        )
        said = [words for part in trouble.splitlines() for words in wrapped(part, width - 4)]
        why.styles.height = max(1, len(said))
        why.show([((f" {' ' if i else '!'} {words}", "bad"),) for i, words in enumerate(said)])
