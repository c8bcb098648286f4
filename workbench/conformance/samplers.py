"""What every sampler must do; each check raises `AssertionError` with the sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration, LoadModel, OperatingPoint, PrimaryWorkload
from workbench.domain.samples import Estimate, Finding, Sample, Usage
from workbench.models.base import ProfileModel
from workbench.sampling.base import Ask, Sampler, Space
from workbench.sampling.guard import complaint

Factory = Callable[..., Sampler]
Check = Callable[[Factory], None]

TARGET = "function"
CONFIGURATIONS = tuple(Configuration({"function.vcpu": v}, {}) for v in (0.25, 0.5))
LOAD = LoadModel("open")
PLAN = SamplingPlan("conformance", max_samples=8)
MOST_ASKS = 4 * PLAN.max_samples * len(CONFIGURATIONS)
"""Far more than a plan allows: who asks on never ends."""


RATE = PrimaryWorkload("rate", 50.0, 5000.0)
WHOLE = (
    PrimaryWorkload("flows", 300.0, 3000.0, integer=True),
    PrimaryWorkload("flows", 497.0, 505.0, integer=True),  # few: what is rounded may fall together
)


def _space(primary: PrimaryWorkload = RATE, seed: int = 1) -> Space:
    return Space(
        TARGET,
        CONFIGURATIONS,
        primary,
        LOAD,
        "p95_ms",
        1000.0,
        0.005,
        None,
        seed,
    )


def _made(factory: Factory, space: Space) -> Sampler:
    if "model_factory" in inspect.signature(factory).parameters:
        return factory(space, PLAN, model_factory=_model)
    return factory(space, PLAN)


def _model() -> ProfileModel:
    from workbench.models.gaussian_process import GaussianProcess

    return GaussianProcess()


def answered(ask: Ask, valid: bool = True) -> Sample:
    """What a queue of 2000/s per core would show; without noise."""
    capacity = 2000.0 * ask.configuration.vcpu("function")
    carried = min(ask.wl, capacity)
    over = ask.wl > capacity
    p95 = 500.0 if over else 3.0 / (1.0 - 0.95 * ask.wl / capacity)

    def near(value: float) -> Estimate:
        return Estimate(value, value * 0.95, value * 1.05)

    kpis = {
        "throughput_rps": near(carried),
        "p95_ms": near(p95),
        "mean_ms": near(p95 / 2),
        "loss_pct": near(100.0 * (1.0 - carried / ask.wl)),
    }
    share = min(1.0, carried / capacity)
    usage = {"function": Usage(share * ask.configuration.vcpu("function"), share)}
    return Sample(
        id=f"{ask.configuration.key}@{ask.wl!r}#{ask.repetition}",
        point=OperatingPoint(TARGET, ask.configuration, ask.wl, ask.repetition),
        kpis=kpis,
        usage=usage,
        valid=valid,
        findings=() if valid else (Finding("errors", 1.0, 0.0, "conformance"),),
        labels=("overloaded",) if over else (),
        load_model=LOAD.key,
        kpi_definition="planned",
        generator="conformance 1",
        planned=1000,
        completed=1000,
        errors=0,
        unfinished=0,
        windows=1,
        batches=6,
        throttled_share=0.0,
        straddle_share=0.0,
        started_at=0.0,
        measured_s=4.0,
        lab_s=6.0,
        block=ask.block,
    )


def _played(factory: Factory, space: Space, valid: bool = True) -> list[tuple[Ask, Sample]]:
    sampler = _made(factory, space)
    taken: list[tuple[Ask, Sample]] = []
    while (ask := sampler.ask()) is not None:
        wrong = complaint(ask, space, [s for _, s in taken])
        assert not wrong, f"after {len(taken)} samples it {wrong}"
        assert sampler.ask() == ask, "asked again without news, it asks for something else"
        assert len(taken) < MOST_ASKS, f"it does not end: {MOST_ASKS} asks, {PLAN} allows fewer"
        taken.append((ask, answered(ask, valid)))
        sampler.tell([taken[-1][1]])
    missing = set(space.configurations) - set(sampler.endings)
    assert not missing, f"it asks no more, but does not say how {len(missing)} configurations ended"
    return taken


def asks_within_its_space_and_ends(factory: Factory) -> None:
    """In range, nothing twice, and it ends."""
    assert _played(factory, _space()), "it asks for nothing at all"


def asks_for_whole_loads_where_they_must_be(factory: Factory) -> None:
    """Clients and streams come whole."""
    for primary in WHOLE:
        assert _played(factory, _space(primary)), "it asks for nothing at all"


def ends_when_nothing_is_valid(factory: Factory) -> None:
    """A function that cannot be measured is given up, not measured for ever."""
    _played(factory, _space(), valid=False)


def the_same_asks_for_the_same_samples(factory: Factory) -> None:
    """A campaign is repeated from its seed."""
    first = [ask for ask, _ in _played(factory, _space())]
    again = [ask for ask, _ in _played(factory, _space())]
    assert first == again, "two runs of one seed ask differently; take `space.seed`"


def rebuilt_from_stored_samples(factory: Factory) -> None:
    """A run that is resumed goes on as it would have gone on."""
    space = _space()
    taken = _played(factory, space)
    half = len(taken) // 2
    sampler = _made(factory, space)
    sampler.tell([s for _, s in taken[:half]])
    ask = sampler.ask()
    assert ask == taken[half][0], f"rebuilt from {half} samples it asks for {ask}"


def lets_go_of_what_is_skipped(factory: Factory) -> None:
    """The user wants no more of a configuration."""
    space = _space()
    sampler = _made(factory, space)
    sampler.skip(CONFIGURATIONS[0])
    asked = 0
    while (ask := sampler.ask()) is not None and asked < MOST_ASKS:
        assert ask.configuration != CONFIGURATIONS[0], "it asks for what was skipped"
        sampler.tell([answered(ask)])
        asked += 1
    assert asked < MOST_ASKS, "it does not end after a skip"
    assert CONFIGURATIONS[0] in sampler.endings, "what was skipped has no ending"


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        asks_within_its_space_and_ends,
        asks_for_whole_loads_where_they_must_be,
        ends_when_nothing_is_valid,
        the_same_asks_for_the_same_samples,
        rebuilt_from_stored_samples,
        lets_go_of_what_is_skipped,
    )
}
OPTIONAL: frozenset[str] = frozenset()
