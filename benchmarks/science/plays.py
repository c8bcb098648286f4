"""What a play is: who is asked with which options, its budgets, its uniform grids, its lab seconds.

All that decides what samplers ask and what it costs stands here: `METHOD_VERSION` is part of the
version under which curves are stored.

A play is the list of a sampler's asks on one training draw; final models are fitted to its
prefixes at the budgets. Uniform sampling is no such list: as in paper B (6.1) its number of samples
is chosen in advance, one value per parameter, then two, and so forth, so that each of its budgets
is a grid of its own.
"""

from __future__ import annotations

import inspect
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from science.judging import Point, Problem
from workbench import plugins
from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration, ParameterValue
from workbench.domain.samples import Sample
from workbench.sampling.base import Sampler, Space
from workbench.sampling.uniform import even_loads

METHOD_VERSION = 1
"""Raised by hand when plays ask, end or cost otherwise."""
UNIFORM = "uniform"
PER_CONFIGURATION = 20
"""Samples that a sampler may take of a configuration (`max_samples`)."""
MODEL = "interpolation"
"""Behind the dRMSE of samplers that use one: a GP per ask would take hours and, in logs, stops at
the same places."""
ENDLESS: Mapping[str, ParameterValue] = {"accuracy": 0.0}
"""Options of the plays: `pooled` goes to its budget, not to an accuracy of breakpoints. Samplers of
the papers end by the rules of the papers, which are part of them."""
VARIANTS = {"heuristic-endless": "heuristic", "bisection-endless": "bisection"}
"""Those samplers without their own end: `epsilon` 0, so that no change of RMSE is small enough, of
a configuration or over all. They go on until no load is left to bisect, or to `PER_CONFIGURATION`
samples of each configuration."""
SMALLEST, FACTOR = 16, 1.5
THINKING_S = 400.0
"""Seconds of CPU that a sampler may think about all asks of a play."""
Asked = tuple[int, float, int, int]
"""Number of the configuration, load, repetition, block."""


def budgets(most: int) -> tuple[int, ...]:
    """Numbers of samples at which models are fitted: 16, then half more each."""
    found, size = [], float(SMALLEST)
    while size < most:
        found.append(round(size))
        size *= FACTOR
    return (*found, most)


class Play(msgspec.Struct, frozen=True):
    """What a sampler asked under one seed: configuration (its number), load, repetition, block."""

    seed: int
    asks: list[Asked]
    ended: bool
    """It had no more to ask; else it was stopped at the budget."""
    ask_s: float
    """Seconds of CPU per ask and tell, mean."""
    trouble: str = ""


class Player:
    """A sampler under one seed, asked as far as somebody wants to see."""

    def __init__(self, given: Problem, sampler: str, seed: int, known: Play | None = None) -> None:
        self.given, self.seed = given, seed
        self.asks = list(known.asks) if known else []
        self.ended = known.ended if known else False
        self.trouble = known.trouble if known else ""
        self._spent = known.ask_s * len(known.asks) if known else 0.0
        self._sampler_name = sampler
        self._sampler: Sampler | None = None
        self._number = {c: place for place, c in enumerate(given.configurations)}

    @property
    def play(self) -> Play:
        mean = self._spent / max(len(self.asks), 1)
        return Play(self.seed, self.asks, self.ended, mean, self.trouble)

    def upto(self, count: int) -> int:
        """Ask until so many samples are taken or the sampler ends; how many there are."""
        if len(self.asks) >= count or self.ended:
            return len(self.asks)
        try:
            self._go_on(count)
        except Exception as error:  # noqa: BLE001 - any sampler of any package
            self.trouble = f"{type(error).__name__}: {error}"[:300]
            self.ended = True
        return len(self.asks)

    def _go_on(self, count: int) -> None:
        sampler = self._sampler = self._sampler or self._rebuilt()
        while len(self.asks) < count:
            if self._spent > THINKING_S:
                self.trouble = f"stopped after {THINKING_S:.0f} s of thinking"
                self.ended = True
                return
            begin = time.process_time()
            ask = sampler.ask()
            self._spent += time.process_time() - begin
            if ask is None:
                self.ended = True
                return
            place = self._number[ask.configuration]
            self.asks.append((place, ask.wl, ask.repetition, ask.block))
            sample = self._sample(self.asks[-1])
            begin = time.process_time()
            sampler.tell([sample])
            self._spent += time.process_time() - begin

    def _sample(self, asked: Asked) -> Sample:
        place, wl, repetition, block = asked
        configuration = self.given.configurations[place]
        draw = f"train-{self.seed}"
        return self.given.measure(configuration, wl, draw=draw, repetition=repetition, block=block)

    def _rebuilt(self) -> Sampler:
        """The sampler, told what was stored: the same tells give the same asks."""
        sampler = sampler_of(self._sampler_name, self.given.space(self.seed))
        if self.asks:
            sampler.tell([self._sample(asked) for asked in self.asks])
        return sampler


def sampler_of(name: str, space: Space) -> Sampler:
    """A sampler of the plays, with its plan and, where it takes one, the model behind dRMSE."""
    registered = VARIANTS.get(name, name)
    kind = plugins.load("samplers", registered)
    plan = SamplingPlan(registered, max_samples=PER_CONFIGURATION, model=MODEL, options=ENDLESS)
    if name in VARIANTS:
        plan = replace(plan, epsilon=0.0)
    takes_model = "model_factory" in inspect.signature(kind).parameters
    known = {"model_factory": plugins.load("models", MODEL)} if takes_model else {}
    sampler: Sampler = kind(space, plan, **known)
    return sampler


def lab_seconds(given: Problem, visits: Iterable[tuple[Configuration, int]]) -> list[float]:
    """What a play has cost after each visit (configuration and block): visits, changes and
    deployments."""
    total, found = 0.0, []
    before: tuple[Configuration, int] | None = None
    for now in visits:
        if before is None or before[1] != now[1]:
            total += given.costs.deploy_s
        elif before[0] != now[0]:
            total += given.costs.change_s
        total += given.costs.sample_s
        found.append(total)
        before = now
    return found


def uniform_grids(given: Problem) -> Iterator[tuple[tuple[Configuration, ...], int]]:
    """Configurations and numbers of loads: as many values of every parameter as of the load,
    until a parameter has no more (paper B, 6.1 and Fig. 5)."""
    parameters: dict[str, list[object]] = {}
    for configuration in given.configurations:
        for key, one in (*configuration.resources.items(), *configuration.workload.items()):
            if one not in parameters.setdefault(key, []):
                parameters[key].append(one)
    most = len(given.grid_loads())
    widest = max(len(values) for values in parameters.values())
    steps = [*range(2, widest + 1), *_up(widest, most)]
    for count in steps:
        kept = {key: _even(values, count) for key, values in parameters.items()}
        chosen = tuple(
            configuration
            for configuration in given.configurations
            if all(
                one in kept[key]
                for key, one in (*configuration.resources.items(), *configuration.workload.items())
            )
        )
        if chosen:
            yield chosen, min(count, most)


def _up(low: int, high: int) -> list[int]:
    found, size = [], float(low)
    while round(size * 1.25) < high:
        size *= 1.25
        found.append(round(size))
    return [*found, high] if high > low else []


def _even(values: list[object], count: int) -> list[object]:
    """At most `count` of the values, first and last among them, evenly by place."""
    if count >= len(values):
        return values
    last = len(values) - 1
    return [values[round(i * last / (count - 1))] for i in range(count)]


def uniform_points(
    given: Problem, configurations: Sequence[Configuration], loads: int, seed: int
) -> list[Point]:
    """What `UniformSampler` asks of these configurations, in its order; a test holds the two
    together. (It is quadratic in its points, which no campaign notices and 22,000 points do.)"""
    wanted = even_loads(given.primary, loads)
    known = given.space(seed).loads
    points = [(c, wl) for c in configurations for wl in wanted]
    random.Random(f"{seed}/{given.target}/0").shuffle(points)
    if known:
        points = list(dict.fromkeys((c, _nearest(known[c], wl)) for c, wl in points))
    return [(c, wl, 0) for c, wl in points]


def _nearest(loads: Sequence[float], wl: float) -> float:
    return min(loads, key=lambda known: abs(math.log(known / wl)))


def stages(
    given: Problem, player: Player | None, seed: int, most: int
) -> Iterator[tuple[float, list[Point]]]:
    """Lab seconds and the points visited, at each budget; without a player: uniform."""
    if player is None:
        for configurations, loads in uniform_grids(given):
            if len(configurations) * loads > most:
                return
            points = uniform_points(given, configurations, loads, seed)
            yield lab_seconds(given, ((c, 0) for c, *_ in points))[-1], points
        return
    own = given.configurations
    for budget in budgets(most):
        count = player.upto(budget)
        if count:
            visited = player.asks[:budget]
            spent = lab_seconds(given, ((own[place], block) for place, _, _, block in visited))
            yield spent[-1], [(own[place], wl, again) for place, wl, again, _ in visited]
        if count < budget:
            return
