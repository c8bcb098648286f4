"""What the worker process does: it tells the sampler, fits, looks for breakpoints, asks, judges.

One round trip per sample. The worker keeps the samplers of a few targets between calls; whatever
it has lost (it may be killed at any time) it rebuilds from the stored samples.
"""

from __future__ import annotations

import importlib
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.domain import kpis
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import PluginError
from workbench.domain.lab import BypassCurve, HostNoise
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import Breakpoint, Curve, FittedModel
from workbench.domain.samples import Measurement, Sample
from workbench.engine.learning.guarded import GuardedSampler
from workbench.engine.learning.guarded_model import MODEL, takes_over
from workbench.labs.base import LabCosts
from workbench.measuring.floor import METHOD_FLOOR, VarianceFloor, variance_floor
from workbench.measuring.records import Drive
from workbench.sampling.base import Ask, Costs, Ending, Space

if TYPE_CHECKING:  # its imports take seconds, and the engine only hands these values on
    from workbench.measuring.judging import Terms

OURS = (
    "workbench.measuring.judging",
    "workbench.models.breakpoints",
    "workbench.models.profile",
)
KEPT_SAMPLERS = 4
SATURATED = 0.95
"""Share of the offered load under which what is answered is taken for the capacity."""


@dataclass(frozen=True)
class SamplerQuestion:
    """Tell the sampler of `target` what is new, and ask what comes next.

    `key` names the sampler's state in the worker; `known` is the number of samples that it should
    have been told already, `samples` are those after them.
    """

    key: str
    campaign: Campaign
    target: str
    seed: int
    known: int
    samples: tuple[Sample, ...]
    skipped: tuple[Configuration, ...]
    fit: tuple[Configuration, ...]
    """Configurations whose curve and breakpoints are to be found anew."""
    others: tuple[Sample, ...] = ()
    """Of the session's other targets, for the variance floor; with `known` 0, else kept."""
    noise: HostNoise | None = None
    distrusted: bool = False
    """The campaign's sampler or model has hung: what ships serves in their place."""
    costs: LabCosts | None = None
    """What the lab says that things take; without it samplers weigh what `Costs` assumes."""
    loads: Mapping[Configuration, tuple[float, ...]] = field(default_factory=dict)
    """Of a recorded lab: the loads that there are. Nothing is driven there, so that nobody needs a
    variance floor."""


@dataclass(frozen=True)
class ConfigurationFit:
    """What the samples of one configuration say."""

    configuration: Configuration
    curve: Curve | None
    model: FittedModel | None
    breakpoints: tuple[Breakpoint, ...]
    cpu_s: float
    trouble: str = ""
    """Why no curve or no breakpoints could be found, where that was not foreseen."""
    set_aside: str = ""
    """Why another model than the campaign's was fitted, as a sentence."""


@dataclass(frozen=True)
class Advice:
    """What to measure next, for how long at first and by which floor, who has ended, what was
    fitted."""

    ask: Ask | None
    first_s: float
    endings: Mapping[Configuration, Ending]
    fits: tuple[ConfigurationFit, ...]
    floor: VarianceFloor
    cpu_s: float
    set_aside: tuple[str, ...] = ()
    """Why others than the campaign's sampler and its model serve, as sentences."""


@dataclass
class _State:
    sampler: GuardedSampler
    others: tuple[Sample, ...]
    samples: list[Sample] = field(default_factory=list)
    skipped: set[Configuration] = field(default_factory=set)
    foreseen: dict[Configuration, Ending] = field(default_factory=dict)
    """Configurations that need not be measured."""


_states: OrderedDict[str, _State] = OrderedDict()


def warm() -> None:
    """Import what takes seconds, while the lab deploys."""
    for module in ("scipy.optimize", "scipy.stats", "sklearn.gaussian_process", *OURS):
        importlib.import_module(module)


def advise(question: SamplerQuestion) -> Advice | None:
    """Answer a question; None if the worker does not know what it should: ask again in full."""
    begin = time.process_time()
    state = _states.get(question.key)
    if question.known == 0:
        space = space_of(question.campaign, question.target, question.seed, question.costs)
        if question.loads:
            recorded = tuple(c for c in space.configurations if question.loads.get(c))
            space = replace(space, configurations=recorded, loads=question.loads)
        sampler = GuardedSampler(question.campaign, space, distrusted=question.distrusted)
        state = _states[question.key] = _State(sampler, question.others)
        state.foreseen = _leave_out(question)
        for configuration in state.foreseen:
            sampler.skip(configuration)
    elif state is None or len(state.samples) != question.known:
        return None
    _states.move_to_end(question.key)
    while len(_states) > KEPT_SAMPLERS:
        _states.popitem(last=False)

    if question.samples:
        state.sampler.tell(question.samples)
        state.samples.extend(question.samples)
    for configuration in question.skipped:
        if configuration not in state.skipped:
            state.sampler.skip(configuration)
            state.skipped.add(configuration)
    ours = question.distrusted or bool(state.sampler.model_set_aside)
    model = MODEL if ours else question.campaign.sampling.model
    fits = tuple(_fit(question, state.samples, where, model) for where in question.fit)
    ask = state.sampler.ask()
    return Advice(
        ask,
        _first_s(question, state.samples, ask) if ask else 0.0,
        {**state.sampler.endings, **state.foreseen},
        fits,
        METHOD_FLOOR
        if question.loads
        else variance_floor((*state.others, *state.samples), question.noise),
        time.process_time() - begin,
        tuple(filter(None, (state.sampler.set_aside, state.sampler.model_set_aside))),
    )


def _leave_out(question: SamplerQuestion) -> dict[Configuration, Ending]:
    """Configurations of a policy's chain whose forecast is sure enough, and why."""
    plan = question.campaign.target_plan(question.target)
    if not plan.sure_to or question.samples:
        return {}
    from workbench.chains.foreseen import foreseen

    forecasts = foreseen(question.campaign, plan, question.others, question.noise)
    return {
        configuration: Ending("skipped", forecast.note(plan.sure_to))
        for configuration, forecast in forecasts.items()
        if forecast.within <= plan.sure_to
    }


@dataclass(frozen=True)
class JudgedBy:
    """What the judge is told besides the campaign.

    `floor` is `measuring.floor.variance_floor(samples of the session, noise of the lab)`.
    """

    bypass: BypassCurve | None = None
    floor: VarianceFloor = METHOD_FLOOR
    block: int = 0


NOTHING_SEEN = JudgedBy()


def judge_drives(
    campaign: Campaign,
    drives: Sequence[Drive],
    point: OperatingPoint,
    started_at: float,
    lab_s: float,
    by: JudgedBy = NOTHING_SEEN,
) -> tuple[Measurement, bool, float]:
    """What was measured so far, whether that settles the point, and else how long to go on."""
    from workbench.measuring.judging import judge

    given = terms(campaign, by)
    judgement = judge(drives, point, given, started_at=started_at, lab_s=lab_s)
    return judgement.measurement, judgement.settled, judgement.next_s


def terms(campaign: Campaign, by: JudgedBy = NOTHING_SEEN) -> Terms:
    """What `measuring` needs to know of a campaign, and of what its session has seen so far."""
    from workbench.measuring.judging import Terms

    return Terms(
        load=campaign.load,
        windows=campaign.windows,
        sla=campaign.sla,
        kpi=campaign.kpi,
        variance_floor=by.floor,
        bypass=by.bypass,
        block=by.block,
    )


def space_of(campaign: Campaign, target: str, seed: int, costs: LabCosts | None = None) -> Space:
    """What a sampler may ask about, and what that costs on a lab of those costs."""
    plan = campaign.target_plan(target)
    return Space(
        target=target,
        configurations=campaign.configurations(plan),
        primary=plan.primary,
        load=campaign.load,
        kpi=campaign.kpi,
        kpi_max=campaign.kpi_max,
        loss_goal=campaign.loss_goal,
        sla=campaign.sla,
        seed=seed,
        costs=_weighed(campaign, plan, costs) if costs else Costs(),
    )


def _weighed(campaign: Campaign, plan: TargetPlan, costs: LabCosts) -> Costs:
    """Lab seconds as samplers weigh them, of a sample in the geometric middle of the range.

    Of the descriptor and the lab's own word alone: a sampler that is rebuilt in another run of the
    session must ask the same, so nothing that was measured may count.
    """
    primary = plan.primary
    middle = math.sqrt(max(primary.low * primary.high, 0.0))
    point = OperatingPoint(plan.target.name, campaign.configurations(plan)[0], middle)
    return Costs(costs.allocate_s, costs.deploy_s, visit_s(campaign, point, costs))


def visit_s(campaign: Campaign, point: OperatingPoint, costs: LabCosts) -> float:
    """Lab seconds of a sample: start and stop of the generator, warm-up and one window."""
    from workbench.measuring.judging import first_drive_s

    return costs.drive_overhead_s + first_drive_s(point, terms(campaign))


def _fit(
    question: SamplerQuestion, samples: Sequence[Sample], configuration: Configuration, method: str
) -> ConfigurationFit:
    from workbench.models.breakpoints import RuleTerms, find_breakpoints

    campaign, target = question.campaign, question.target
    space = space_of(campaign, target, question.seed)
    begin = time.process_time()
    curve = model = None
    breakpoints: tuple[Breakpoint, ...] = ()
    trouble = set_aside = ""
    try:
        breakpoints = find_breakpoints(
            target,
            configuration,
            samples,
            RuleTerms(
                primary=space.primary,
                load=space.load,
                kpi=space.kpi,
                kpi_max=space.kpi_max,
                loss_goal=space.loss_goal,
                sla=space.sla,
                noise=question.noise,
            ),
        )
        try:
            breaks_at = next((b.wl for b in breakpoints if b.rule == "cpu"), None)
            curve, model = _curve(question, samples, configuration, method, breaks_at)
        except plugins.FAILURES as error:
            if method == MODEL:
                raise
            curve, model = _curve(question, samples, configuration, MODEL)
            set_aside = takes_over(method, error)
    except Exception as error:  # noqa: BLE001 - samples are kept whatever a model makes of them
        trouble = f"{type(error).__name__}: {error}"
    cpu_s = time.process_time() - begin
    return ConfigurationFit(configuration, curve, model, breakpoints, cpu_s, trouble, set_aside)


def refit(
    campaign: Campaign,
    target: str,
    seed: int,
    samples: tuple[Sample, ...],
    configuration: Configuration,
    noise: HostNoise | None,
) -> ConfigurationFit:
    """What the samples of a configuration say, whoever changed them; `samples` are the target's."""
    question = SamplerQuestion(
        "", campaign, target, seed, 0, samples, (), (configuration,), noise=noise
    )
    return _fit(question, samples, configuration, campaign.sampling.model)


def _curve(
    question: SamplerQuestion,
    samples: Sequence[Sample],
    configuration: Configuration,
    method: str,
    breaks_at: float | None = None,
) -> tuple[Curve | None, FittedModel | None]:
    from workbench.models.profile import CurveTerms, fit_profile

    campaign, target = question.campaign, question.target
    primary = campaign.target_plan(target).primary
    terms = CurveTerms(primary, campaign.kpi, campaign.kpi_max, breaks_at)
    factory = plugins.load("models", method)
    curve, model = fit_profile(target, configuration, samples, terms, method, factory)
    if curve and not all(map(math.isfinite, (*curve.mean, *curve.low, *curve.high))):
        raise PluginError("predicts what is not finite")
    return curve, model


def _first_s(question: SamplerQuestion, samples: Sequence[Sample], ask: Ask) -> float:
    point = OperatingPoint(question.target, ask.configuration, ask.wl, ask.repetition)
    return first_s(question.campaign, samples, point)


def first_s(campaign: Campaign, samples: Sequence[Sample], point: OperatingPoint) -> float:
    """Seconds of the first drive at a point, from what was seen near it: samples of its target."""
    from workbench.measuring.judging import first_drive_s
    from workbench.models.selection import BOUND_LABELS

    near = min(
        (
            s
            for s in samples
            if s.valid
            and s.point.configuration == point.configuration
            # Times in overload grow for as long as one watches: they say nothing of a response.
            and BOUND_LABELS.isdisjoint(s.labels)
        ),
        key=lambda s: abs(math.log(s.point.wl / point.wl)),
        default=None,
    )
    rate = near.kpi(kpis.THROUGHPUT) if near else None
    response_ms = near.kpi(kpis.MEAN) if near else None
    if near and rate and campaign.load.kind == "open":
        if rate < SATURATED * near.point.wl:
            rate, response_ms = min(point.wl, rate), None  # a growing backlog has no mean
        else:
            rate = point.wl
    if near and rate and response_ms and campaign.load.kind == "closed":
        # Fewer clients wait less: n/X - Z at least, if they still find all of it saturated.
        think_ms = 1000.0 * campaign.load.think_time_s
        least_ms = max(1000.0 * point.wl / rate - think_ms, 1.0)
        response_ms = min(response_ms, least_ms)
    return first_drive_s(
        point,
        terms(campaign),
        expected_rate=rate,
        expected_response_s=response_ms / 1000 if response_ms else None,
    )
