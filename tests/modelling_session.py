"""A small finished session, and a pool that hands over as a pipe would, for tests of models."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from session_making import EPOCH, campaign, created, facts, measurement

from workbench.domain.events import SampleTaken, SessionCreated
from workbench.domain.projection import SessionView
from workbench.engine.learning.pool import Pool
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace
from workbench.store.session_file import SessionFile

P = ParamSpec("P")
T = TypeVar("T")

SESSION, TARGET = "small", "haproxy"
"""The target has eight samples at four loads of two configurations; p95 is a power law."""
SMALL, LARGE = campaign().configurations(campaign().targets[0])
CHEAP = ("interpolation", "curve-fit")
"""Methods that are compared where how well they do is not the point."""


class InlinePool(Pool):
    """Answers in this process; what crosses to a worker and back is pickled all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.asked.append(work.__name__)
        given = pickle.loads(pickle.dumps((args, kwargs)))
        result: T = pickle.loads(pickle.dumps(work(*given[0], **given[1])))
        return result


def first(profile_model: str = "auto") -> SessionCreated:
    """A campaign that samples with the cheapest model there is."""
    sampling = replace(campaign().sampling, model="interpolation")
    return replace(
        created(), campaign=replace(campaign(), sampling=sampling, profile_model=profile_model)
    )


def make_workspace(root: Path, created: SessionCreated) -> Workspace:
    """A workspace with the session in it, closed."""
    workspace = Workspace(root)
    workspace.sessions.mkdir(parents=True, exist_ok=True)
    asyncio.run(write_session(workspace.sessions / f"{SESSION}.duckdb", created))
    return workspace


async def write_session(path: Path, created: SessionCreated) -> None:
    """The session as a file, closed."""
    file = await SessionFile.create(path, created, at=EPOCH)
    stored = [
        file.append(fact, at=EPOCH + number, measurement=taken)
        for number, (fact, taken) in enumerate(facts())
    ]
    await asyncio.gather(*stored)  # one commit, or a few
    await file.close()


async def stored_view(workspace: Workspace, until: int | None = None) -> SessionView:
    """What another engine would find in the file."""
    file = await SessionFile.open(workspace.sessions / f"{SESSION}.duckdb", read_only=True)
    try:
        return await file.view(until)
    finally:
        await file.close()


async def measure_more(library: Library, wl: float) -> None:
    async with library.writing(SESSION) as channel:
        taken = measurement(TARGET, LARGE, wl)
        await channel.record(SampleTaken(taken.sample), taken)
