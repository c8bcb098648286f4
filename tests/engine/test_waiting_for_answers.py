"""Questions that take their time: how far they are, how long still, and how they are cancelled."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from modelling_session import SESSION, TARGET, InlinePool, first, make_workspace

from workbench.domain.messages import EngineStatus, Hello
from workbench.domain.questions import Recommend, RetrainChain, ScoreModels, measures
from workbench.engine.answers.jobs import Jobs
from workbench.engine.handlers import HANDLERS
from workbench.engine.handlers.registry import Services
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.remaining import Remaining, counted_for, doing, expect, skip
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace

ME = Hello(0, "", "me")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("made"), first())


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# ------------------------------------------------------------------- how long


def test_what_is_left_is_told_by_what_its_kind_took() -> None:
    clock, took = Clock(), dict[str, float]()
    asked = Remaining(took, clock)
    with counted_for(asked):
        expect("row_of", 4)
        expect("row_of", 3)  # known already
        expect("judge")
        took["judge"] = 2.0
        expect("tried", usual_s=7.0)
        assert asked.eta_s == pytest.approx(4 * 0.4 + 2.0 + 7.0)
        skip("tried")
        with doing("row_of"):
            clock.now = 5.0
            took["row_of"] = 5.0
        assert asked.elapsed_s == 5.0
        assert asked.eta_s == pytest.approx(3 * 5.0 + 2.0)
        skip("row_of")
        assert asked.eta_s == pytest.approx(2 * 5.0 + 2.0)
        with doing("row_of"), doing("row_of"):
            assert asked.eta_s == pytest.approx((2 * 5.0 + 2.0) / 2), "two beside each other"
            clock.now = 9.0
            assert asked.eta_s == pytest.approx((2 * 1.0 + 2.0) / 2)
        expect("judge", 2)
        with doing("judge"):
            late = 90.0 - 2.0
            clock.now += 2.0
            assert asked.eta_s == pytest.approx(2.0), "the other one"
            clock.now += late
            assert asked.eta_s == pytest.approx(late + 90.0), "late, and so will be the other one"
        skip("judge")
    expect("row_of")  # done for nobody
    assert asked.eta_s == 0.0


def test_a_status_says_how_long_still_after_a_second() -> None:
    def said(elapsed_s: float, eta_s: float) -> str:
        status = EngineStatus(
            "", "", 1, 0.0, "", (), 0, scoring="x", scoring_s=elapsed_s, scoring_eta_s=eta_s
        )
        return status.computing

    assert said(0.5, 20.0) == "x"
    assert said(1.5, 20.0) == "x, about 20 s to go"
    assert said(9.0, 0.0) == "x"


# ------------------------------------------------------------------- the end of it


class StuckPool(InlinePool):
    """Its worker never answers; who waits for it is heard."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_for = asyncio.Event()

    async def run(self, work: Any, *args: Any, **kwargs: Any) -> Any:
        self.waited_for.set()
        await asyncio.Event().wait()


async def test_what_nobody_waits_for_is_computed_no_further(library: Library) -> None:
    jobs = Jobs(library)
    jobs.pool = stuck = StuckPool()
    services = cast(Services, SimpleNamespace(library=library, jobs=jobs))
    question = ScoreModels(SESSION, TARGET)
    mine = asyncio.ensure_future(HANDLERS.answer(services, question, ME))
    await stuck.waited_for.wait()
    assert jobs._answering
    mine.cancel()
    with pytest.raises(asyncio.CancelledError):
        await mine
    assert not jobs._answering


@pytest.mark.parametrize(
    ("request_", "on_lab"),
    [
        (Recommend("s", ()), False),
        (Recommend("s", (), verify=True), True),
        (RetrainChain("s", steps=0), False),
        (RetrainChain("s"), True),
    ],
)
def test_what_is_measured_is_not_cancelled_but_stopped(request_: Any, on_lab: bool) -> None:
    assert measures(request_) is on_lab


# ------------------------------------------------------------------- two workers


async def test_a_second_worker_computes_where_it_may() -> None:
    for may, lanes in ((True, 2), (False, 1)):
        pool = Pool(lambda may=may: may)  # type: ignore[misc]
        seen: set[int] = set()
        under_way = most = 0

        async def work(pool: Pool = pool, seen: set[int] = seen) -> None:
            nonlocal under_way, most
            async with pool.lane() as lane:
                under_way += 1
                most = max(most, under_way)
                seen.add(id(lane))
                await asyncio.sleep(0)
                under_way -= 1

        await asyncio.gather(*(work() for _ in range(6)))
        assert (len(seen), most) == (lanes, lanes)
        assert id(pool) in seen
        await pool.close()
