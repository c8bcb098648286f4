"""A campaign under one seed, as the engine runs it: its bench, its sampler, its judge, one process.

What `engine.profiling.Profiler` does around them is left out: events, pauses, faults, curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.engine.learning.sampler_worker import Advice, SamplerQuestion, advise, space_of
from workbench.engine.runs.measurement import LabDriver
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab, SimulationOptions
from workbench.measuring.floor import METHOD_FLOOR, VarianceFloor
from workbench.models.breakpoints import RuleTerms, find_breakpoints

P = ParamSpec("P")
T = TypeVar("T")


class Here:
    """Stands in for `engine.pool.Pool`: the work is done in this process, at once."""

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs)


def bench_of(campaign: Campaign, seed: int, options: SimulationOptions) -> LabDriver:
    """The engine's own bench over a simulated lab."""
    lab = SimulatedLab(campaign, LabSettings("benchmark", seed=seed), options=options)
    pool: Any = Here()
    return LabDriver(lab, campaign, pool, lambda *_: None, lambda _: None)


async def visit(
    bench: LabDriver,
    plan: TargetPlan,
    point: OperatingPoint,
    first_s: float,
    floor: VarianceFloor = METHOD_FLOOR,
    block: int = 0,
) -> Sample:
    """One sample as the engine takes it: another block is another deployment."""
    if (bench.target, bench.block) != (point.target, block):
        await bench.deploy(plan.target, point.configuration, block)
    if bench.lacks_bypass(point):
        await bench.measure_bypass(point)
    return (await bench.measure(point, first_s, floor)).sample


async def play(
    campaign: Campaign, plan: TargetPlan, seed: int, options: str
) -> tuple[list[Sample], float]:
    """All samples of a target that the campaign's sampler asks for, in their order, and the
    lab's seconds."""
    bench = bench_of(campaign, seed, SimulationOptions.parse(options))
    await bench.lab.open()
    ask = asking(campaign, plan, seed, f"{plan.target.name}/{campaign.sampling}/{seed}/{options}")
    samples: list[Sample] = []
    while (advice := ask(samples)).ask is not None:
        wanted = advice.ask
        point = OperatingPoint(plan.target.name, wanted.configuration, wanted.wl, wanted.repetition)
        samples.append(await visit(bench, plan, point, advice.first_s, advice.floor, wanted.block))
    await bench.lab.close()
    return samples, bench.lab_s


def asking(
    campaign: Campaign, plan: TargetPlan, seed: int, key: str
) -> Callable[[list[Sample]], Advice]:
    """Tells the sampler what is new, and asks; nothing is fitted on the way."""
    told = 0

    def ask(samples: list[Sample]) -> Advice:
        nonlocal told
        question = SamplerQuestion(
            key=key,
            campaign=campaign,
            target=plan.target.name,
            seed=seed,
            known=told,
            samples=tuple(samples[told:]),
            skipped=(),
            fit=(),
        )
        advice = advise(question)
        assert advice is not None  # what it should know, it was told in this process
        told = len(samples)
        return advice

    return ask


def conclude(
    campaign: Campaign, plan: TargetPlan, samples: Sequence[Sample]
) -> Mapping[Configuration, tuple[Breakpoint, ...]]:
    """The breakpoints of every configuration, by the rules as they are now."""
    space = space_of(campaign, plan.target.name, 0)
    return {
        configuration: find_breakpoints(
            plan.target.name,
            configuration,
            samples,
            RuleTerms(
                primary=space.primary,
                load=space.load,
                kpi=space.kpi,
                kpi_max=space.kpi_max,
                loss_goal=space.loss_goal,
                sla=space.sla,
            ),
        )
        for configuration in campaign.configurations(plan)
    }
