"""What later sessions can use is made while nothing is measured, and gives way to what is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest
from engine_watching import LONGEST_S

from workbench import plugins
from workbench.domain.errors import LabError
from workbench.engine.runs import idle_work
from workbench.engine.runs.idle_work import IdleWork


class Making:
    """A lab that says what it makes, and makes it when it is told to."""

    begun = 0
    done: asyncio.Event
    fails = False
    left = 0

    @classmethod
    async def prepare(cls, say: Callable[[str], None]) -> None:
        cls.begun += 1
        say(f"oha: crate {cls.begun} of 200")
        try:
            await cls.done.wait()
        except asyncio.CancelledError:
            cls.left += 1
            raise
        if cls.fails:
            raise LabError("no network")


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> type[Making]:
    found = plugins._found
    point = EntryPoint("making", f"{__name__}:Making", "workbench.labs")
    registered = {**found("labs"), "making": point}
    monkeypatch.setattr(
        plugins, "_found", lambda group: registered if group == "labs" else found(group)
    )
    monkeypatch.setattr(idle_work, "QUIET_S", 0.002)
    Making.begun, Making.left, Making.fails, Making.done = 0, 0, False, asyncio.Event()
    return Making


async def until(wanted: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONGEST_S):
        while not wanted():  # noqa: ASYNC110 - what is watched rings no bell
            await asyncio.sleep(0)


async def test_it_is_made_when_nothing_is_measured_and_left_for_what_is(lab: type[Making]) -> None:
    measuring = True
    work = IdleWork(lambda: not measuring, poll_s=0.001)
    work.after("making:of something")
    looks = 0

    def looked() -> bool:
        nonlocal looks
        looks += 1
        return looks > 50

    await until(looked)
    assert (lab.begun, work.doing) == (0, "")
    measuring = False
    await until(lambda: work.doing == "oha: crate 1 of 200")
    measuring = True
    await until(lambda: lab.left == 1)
    await until(lambda: work.doing == "")
    assert work.pending, "it is begun anew"
    measuring = False
    await until(lambda: work.doing == "oha: crate 2 of 200")
    lab.done.set()
    await until(lambda: not work.pending)
    assert work.doing == ""
    work.after("making")
    assert not work.pending, "a lab is asked once"


async def test_what_fails_is_not_tried_again_and_a_lab_without_any_is_left_alone(
    lab: type[Making],
) -> None:
    lab.fails = True
    lab.done.set()
    work = IdleWork(lambda: True, poll_s=0.001)
    work.after("making")
    work.after("sim")
    await until(lambda: not work.pending)
    assert lab.begun == 1


async def test_an_engine_that_ends_leaves_it(lab: type[Making]) -> None:
    work = IdleWork(lambda: True, poll_s=0.001)
    work.after("making")
    await until(lambda: work.doing != "")
    await work.stop()
    assert (lab.left, work.pending, work.doing) == (1, False, "")
