"""What a function's `stats` may say, and a hang, garbage, silence or a failure of it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from workbench.domain.errors import LabError
from workbench.domain.topology import VnfTemplate
from workbench.labs.components import hops
from workbench.labs.components.component import Component, Outcome
from workbench.labs.components.target import Deployed

TEMPLATE = VnfTemplate("inspect", passage="router", stats=("inspect", "stats"))
SAID = "dropped_queue_full 3\ndropped_not_taken 0\ninspected 90\ndropped_found 7\n"


class StatingStandIn:
    """Stands in for a container whose function is asked what it counted; it has no interfaces."""

    name, place, template, probe = "inspect", "container inspect", TEMPLATE, None

    def __init__(self, outcome: Outcome | None) -> None:
        self.outcome = outcome
        self.asked: list[tuple[str, ...]] = []

    async def run(self, argv: tuple[str, ...]) -> Outcome:
        self.asked.append(argv)
        if self.outcome is None:
            await asyncio.Event().wait()
            raise AssertionError("nobody sets it")
        return self.outcome


class DeployedStandIn:
    """Stands in for a target of that one function, without mirrors."""

    passive: tuple[Component, ...] = ()
    mirrors: tuple[tuple[Component, Component], ...] = ()

    def __init__(self, component: StatingStandIn) -> None:
        self.components = [component]


async def asked(outcome: Outcome | None) -> hops.Hops:
    component = StatingStandIn(outcome)
    seen = await hops.read(cast(Deployed, DeployedStandIn(component)))
    assert component.asked == [("inspect", "stats")]
    return seen


async def test_what_begins_with_dropped_is_what_the_function_threw_away() -> None:
    seen = await asked(Outcome(0, SAID, ""))
    assert seen.dropped == {
        "inspect: dropped_queue_full": 3,
        "inspect: dropped_not_taken": 0,
        "inspect: dropped_found": 7,
    }


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (None, "has not answered for 0.05 s"),
        (Outcome(1, "", "no inspector listens\n"), "failed: no inspector listens"),
        (Outcome(0, "", ""), "printed nothing"),
        (Outcome(0, "\x00\x1b[2J\ufffd\ufffd", ""), "which is no `NAME COUNT`"),
        (Outcome(0, "dropped_found 18446744073709551616.5", ""), "which is no `NAME COUNT`"),
        (Outcome(0, SAID + "dropped", ""), "'dropped', which is no `NAME COUNT`"),
        (Outcome(0, "dropped 1\n" * 100_000, ""), "printed 100000 lines"),
    ],
    ids=["hangs", "fails", "nothing", "garbage", "fraction", "cut off", "endless"],
)
async def test_what_is_no_count_is_a_sentence_with_its_place(
    outcome: Outcome | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hops, "STATS_TIMEOUT_S", 0.05)
    with pytest.raises(LabError) as raised:
        await asked(outcome)
    said = str(raised.value)
    assert sentence in said
    assert "container inspect, inspect stats" in said
    assert "Correct `stats` of template inspect" in said
