"""Following a session in tests: by what happens, never by the clock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workbench.domain.events import (
    Event,
    Progress,
    RunFinished,
    Tick,
)
from workbench.domain.messages import (
    EventPage,
    ListEvents,
    ListSamples,
    RunAccepted,
    RunCampaign,
    SamplePage,
)
from workbench.domain.projection import SessionView
from workbench.domain.samples import Sample
from workbench.link.client import Client, Feed

SMALL = str(Path(__file__).parent / "engine" / "two_configurations.yaml")
"""Two configurations of one function, at most six samples each; models that are soon fitted."""
QUICK_MODELS = (", model: interpolation", "profile_model: interpolation\n")
SLOW = 20.0
"""Lab seconds per second of runs that are interfered with: a sample takes a quarter of a second."""
LONGEST_S = 120
hurried: set[str] = set()
"""Sessions that are only waited for: on an engine of this process (`engine/conftest.py`) their lab
time passes at once, whatever their pace."""


@dataclass
class Watched:
    """A feed, and everything that came out of it."""

    feed: Feed
    events: list[Event] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)

    def __post_init__(self) -> None:
        hurried.discard(self.view.session)

    @property
    def view(self) -> SessionView:
        return self.feed.view

    async def until(self, wanted: Callable[[Event | Tick], bool]) -> Event | Tick:
        """Read on to the first change that is wanted."""
        async with asyncio.timeout(LONGEST_S):
            async for change in self.feed.changes:
                if isinstance(change, Event):
                    self.events.append(change)
                    self.view.apply(change)
                else:
                    self.ticks.append(change)
                if wanted(change):
                    return change
        raise AssertionError("the feed ended before")

    async def fact(self, kind: type, count: int = 1) -> Event:
        """Read on to the next fact of a kind, or the `count`-th."""
        for _ in range(count):
            event = await self.until(lambda c: isinstance(c, Event) and isinstance(c.fact, kind))
        assert isinstance(event, Event)
        return event

    async def phase(self, phase: str) -> None:
        await self.until(lambda c: isinstance(c, Progress) and c.phase == phase)

    async def finish(self, *, hurry: bool = True) -> RunFinished:
        """Read on to the end of the run, which comes as soon as it can."""
        if hurry:
            hurried.add(self.view.session)
        fact = (await self.fact(RunFinished)).fact
        assert isinstance(fact, RunFinished)
        return fact


async def stored_events(client: Client, session: str) -> list[Event]:
    found: list[Event] = []
    while True:
        page = await client.ask(ListEvents(session, after=len(found)))
        assert isinstance(page, EventPage)
        if not page.events:
            return found
        found += page.events


async def stored_samples(client: Client, session: str) -> list[Sample]:
    page = await client.ask(ListSamples(session))
    assert isinstance(page, SamplePage)
    assert page.total == len(page.samples)
    return list(page.samples)


def same(samples: list[Sample], others: list[Sample]) -> bool:
    """The same points in the same order with the same figures, but for the last bits.

    The lab's clock starts anew when a session is resumed, and its differences are rounded anew.
    """
    return [s.point for s in samples] == [o.point for o in others] and all(
        s.valid == o.valid
        and s.kpis.keys() == o.kpis.keys()
        and all(math.isclose(s.kpis[k].value, o.kpis[k].value, rel_tol=1e-9) for k in s.kpis)
        for s, o in zip(samples, others, strict=True)
    )


def kinds(events: list[Event]) -> list[str]:
    return [type(event.fact).__name__ for event in events]


def by_default_models(campaign: str) -> str:
    """The text of such a campaign with the models that ship as defaults: Gaussian processes."""
    for named in QUICK_MODELS:
        assert campaign.count(named) == 1
        campaign = campaign.replace(named, "")
    return campaign


async def start(
    client: Client, session: str, lab: str = "sim", **options: float | int
) -> RunAccepted:
    request = RunCampaign(SMALL, session=session, lab=lab, **options)  # type: ignore[arg-type]
    reply = await client.ask(request)
    assert isinstance(reply, RunAccepted)
    return reply
