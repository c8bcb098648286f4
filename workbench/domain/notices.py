"""What somebody who is not looking is told of a campaign: that it finished, failed, or drifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from workbench.domain.events import DriftSeen, Event, RunFinished
from workbench.domain.projection import SessionView

Occasion = Literal["finished", "failed", "drifting"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)


@dataclass(frozen=True)
class Notice:
    """One notice, as a webhook gets it as JSON.

    Attributes
    ----------
    text : one line without control characters.
    outcome : of a run that ended: `done`, `budget`, `stopped`, `aborted`, `failed`; else empty.
    at : seconds since the epoch.
    caution : what its figures rest on that nobody measured.
    """

    event: Occasion
    session: str
    campaign: str
    text: str
    at: float
    outcome: str = ""
    samples: int = 0
    invalid: int = 0
    caution: str = ""


def notice_of(event: Event, view: SessionView) -> Notice | None:
    """The notice that an event is worth; None for most."""
    name, fact = view.campaign.name if view.campaign is not None else "", event.fact
    if isinstance(fact, RunFinished):
        counts = f"{fact.samples} samples, {fact.invalid} invalid"
        said = f": {fact.note}" if fact.note else ""
        failed = fact.outcome == "failed"
        return Notice(
            event="failed" if failed else "finished",
            session=view.session,
            campaign=name,
            text=_line(f"{view.session}: run {fact.outcome}, {counts}{said}"),
            at=event.at,
            outcome=fact.outcome,
            samples=fact.samples,
            invalid=fact.invalid,
            caution=view.caution,
        )
    if isinstance(fact, DriftSeen):
        drift = fact.drift
        text = _line(f"{view.session}: {drift.kpi} of {drift.chain} drifts: {drift.note}")
        return Notice("drifting", view.session, name, text, event.at, caution=view.caution)
    return None


LONGEST_LINE = 500


def _line(text: str) -> str:
    line = "".join(c if c.isprintable() else "·" for c in text)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."


def terminal_sequence(notice: Notice, terminal: str, *, in_tmux: bool = False) -> str:
    """What makes a terminal show a desktop notification.

    Parameters
    ----------
    terminal : `TERM`. rxvt and foot know OSC 777, everybody else OSC 9, and who knows neither shows
        nothing.
    in_tmux : wrapped so that tmux passes it on (where `allow-passthrough` is on).
    """
    text = _line(notice.text).replace(";", ",")
    if terminal.startswith(("rxvt", "foot")):
        sequence = f"\x1b]777;notify;workbench;{text}\x07"
    else:
        sequence = f"\x1b]9;workbench: {text}\x07"
    if in_tmux:
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return sequence
