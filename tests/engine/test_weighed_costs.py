"""What a sample is worth is weighed against what it costs on the campaign's own lab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from engine_watching import SMALL, Watched
from session_making import campaign

from workbench.domain.campaign import Campaign, SamplingPlan, WindowPlan
from workbench.domain.messages import ResumeSession, RunCampaign
from workbench.domain.parameters import Parameter
from workbench.engine.learning.pool import Pool
from workbench.engine.learning.sampler_worker import Advice, SamplerQuestion, advise, space_of
from workbench.engine.runs.sampler_cost import stand_in
from workbench.labs.base import LabCosts
from workbench.link.socket import SocketClient

CHEAP = LabCosts(deploy_s=3.0, allocate_s=0.02, drive_overhead_s=0.3)
DEAR = replace(CHEAP, allocate_s=600.0)


def pooled() -> Campaign:
    """Eight configurations of one function, and the sampler that weighs seconds."""
    plan = campaign().targets[0]
    vcpus = Parameter("haproxy.vcpu", tuple(0.25 * place for place in range(1, 9)), "cores")
    return replace(
        campaign(),
        targets=(replace(plan, resources=(vcpus,)),),
        sampling=SamplingPlan("pooled", 20, options={"accuracy": 0.0}),
    )


def asked(costs: LabCosts | None, count: int) -> list[Any]:
    """The first asks, answered by what plans are played against."""
    key, told, answers = str(costs), 0, []
    space = space_of(pooled(), "haproxy", 1)
    while len(answers) < count:
        new = tuple(answers[told:])
        question = SamplerQuestion(key, pooled(), "haproxy", 1, told, new, (), (), costs=costs)
        advice = advise(question)
        assert advice is not None
        assert advice.ask is not None
        told = len(answers)
        answers.append(stand_in(advice.ask, space))
    return [answer.point.configuration for answer in answers]


def test_where_a_change_is_dear_the_pooled_sampler_changes_more_rarely() -> None:
    cheap, dear = (asked(costs, 24) for costs in (CHEAP, DEAR))

    def changes(configurations: list[Any]) -> int:
        return sum(one != other for one, other in pairwise(configurations))

    assert changes(dear) < 0.8 * changes(cheap)


def test_a_sample_costs_what_the_plan_counts_for_it() -> None:
    quick = pooled()
    slow = replace(quick, windows=WindowPlan(warmup_s=11.0))
    weighed = space_of(quick, "haproxy", 1, DEAR).costs
    assert (weighed.change_s, weighed.deploy_s) == (600.0, 3.0)
    assert weighed.sample_s > DEAR.drive_overhead_s + quick.windows.warmup_s
    more = space_of(slow, "haproxy", 1, DEAR).costs.sample_s - weighed.sample_s
    assert more == pytest.approx(11.0 - quick.windows.warmup_s)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_run_weighs_what_its_lab_says_and_so_does_its_resumption(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same costs in both: else the same samples would not give the same asks."""
    seen: list[list[LabCosts | None]] = [[], []]
    turn = 0
    plain = Pool.advise

    async def spied(
        pool: Pool, question: SamplerQuestion, everything: Callable[[], SamplerQuestion]
    ) -> Advice:
        seen[turn] += [question.costs, everything().costs]
        return await plain(pool, question, everything)

    monkeypatch.setattr(Pool, "advise", spied)
    lab = "sim:allocate_s=7,deploy_s=11,drive_overhead_s=0.25"
    await client.ask(RunCampaign(SMALL, session="weighed", lab=lab, budget_s=12.0))
    async with client.follow("weighed") as feed:
        watched = Watched(feed)
        assert (await watched.finish()).outcome == "budget"
        turn = 1
        await client.ask(ResumeSession("weighed"))
        assert (await watched.finish()).outcome == "done"
    assert set(seen[0]) == set(seen[1]) == {LabCosts(11.0, 7.0, 0.25)}
