"""Components that answer as a test says, in place of containers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError
from workbench.domain.logs import ComponentLog, WrittenLine
from workbench.labs.components.component import Component, ComponentMaker, Outcome, Program
from workbench.labs.components.target import Deployed
from workbench.measuring.records import ComponentCounters

Answers = Callable[[Sequence[str]], Outcome | None]
"""What a program leaves, by its command; None: it never ends."""


@dataclass
class AnsweringProgram:
    outcome: Outcome | None

    async def pid(self) -> int:
        return 1

    async def finish(self) -> Outcome:
        if self.outcome is None:
            await asyncio.Event().wait()
            raise AssertionError("nobody sets it")
        return self.outcome


@dataclass
class AnsweringComponent(Component):
    """Its programs leave what `answers` says."""

    answers: Answers = field(kw_only=True)
    halted: int = 0

    @property
    def place(self) -> str:
        return f"container {self.name}"

    async def put(self, files: Mapping[str, str | bytes]) -> None:
        """What is written is of no interest here."""

    async def get(self, path: str) -> bytes:
        return b""

    async def start(self, *, again: bool = False) -> None:
        """It runs."""

    async def begin(self, argv: Sequence[str]) -> Program:
        return AnsweringProgram(self.answers(argv))

    async def halt(self) -> None:
        self.halted += 1

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        """It uses none."""

    async def limit_memory(self, memory_bytes: int) -> None:
        """It holds none."""

    async def counters(self) -> ComponentCounters:
        return ComponentCounters(0.0)

    async def written(self) -> ComponentLog:
        return ComponentLog.of(self.name, [])

    async def last_line(self) -> WrittenLine | None:
        return None

    async def death(self) -> LabError | None:
        return None

    async def remove(self) -> None:
        """Nothing is left of it."""


def of_components(campaign: Campaign, *components: Component) -> Deployed:
    """The first target of a campaign, of these components from the sink to the source."""
    nobody = cast(ComponentMaker, None)
    stages = [[component] for component in components]
    return Deployed(campaign, campaign.targets[0].target, nobody, (), 1, {}, stages)
