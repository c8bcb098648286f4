"""What an engine gives a page at a time, read to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from workbench.domain.events import Event
from workbench.domain.messages import ListEvents, ListSamples, SamplePage
from workbench.link.client import Client


async def all_samples(client: Client, session: str) -> SamplePage:
    """All samples of a session in the order they were taken, as if one page held them."""
    page = await client.ask(ListSamples(session))
    samples = list(page.samples)
    while page.samples and len(samples) < page.total:
        page = await client.ask(ListSamples(session, len(samples)))
        samples += page.samples
    return replace(page, samples=tuple(samples), offset=0)


async def events_between(
    client: Client, session: str, after: int, until: int
) -> AsyncIterator[Event]:
    """The events with numbers above `after`, up to `until`, in order."""
    while after < until:
        page = await client.ask(ListEvents(session, after))
        for event in page.events:
            if event.seq <= until:
                yield event
        if not page.events:
            return
        after = page.events[-1].seq
