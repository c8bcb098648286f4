"""`show NAME --logs`: everything that the functions of a session wrote and that was kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from workbench.cli.context import ask, put, put_json, say
from workbench.domain.codec import event_to_plain
from workbench.domain.event_log import lines_written
from workbench.domain.events import Event, LogWritten
from workbench.domain.messages import ListEvents


def put_logs(session: str, *, json: bool) -> None:
    """Every line with its time and who wrote it; as JSON the events, one a line."""
    silent = True
    for event in _written(session):
        silent = False
        if json:
            put_json(event_to_plain(event))
            continue
        assert isinstance(event.fact, LogWritten)
        for line in lines_written(event.seq, event.at, event.fact):
            at = datetime.fromtimestamp(line.at).strftime("%m-%d %H:%M:%S")
            # A line feed in it would begin a line that nobody wrote.
            text = line.text.replace("\n", "·")
            put(f"{at} {event.fact.target} {line.component}: {text}")
    if silent:
        say(f"nothing that a function of {session} wrote is stored")


def _written(session: str) -> Iterator[Event]:
    after = 0
    while True:
        page = ask(ListEvents(session, after, kinds=(LogWritten.__name__,)))
        if not page.events:
            return
        yield from page.events
        after = page.events[-1].seq
