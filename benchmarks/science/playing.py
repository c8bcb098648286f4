"""Plays samplers on problems and holds what they bought against the second draw.

A play is the list of a sampler's asks on one training draw; every final model is fitted to its
prefixes at the budgets of `BUDGETS`. Uniform sampling is no such list: as in paper B (6.1) its
number of samples is chosen in advance, one value per parameter, then two, and so forth, so that
each of its budgets is a grid of its own.
"""

from __future__ import annotations

import inspect
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from science import judging, recordings, surfaces
from science.judging import Judge, Point, Problem, Score
from science.stored import Store, digest
from workbench import plugins
from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.sampling.base import Sampler
from workbench.sampling.uniform import even_loads

UNIFORM = "uniform"
REACHED = 1.1
"""Times the reference error."""
PER_CONFIGURATION = 20
"""Samples that a sampler may take of a configuration (`max_samples`)."""
MODEL = "interpolation"
"""Behind the dRMSE of samplers that use one: a GP per ask would take hours and, in logs, stops at
the same places."""
ENDLESS = {"accuracy": 0.0}
"""Options of the plays: they go to their budgets, not to an accuracy of breakpoints."""
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


class Curve(msgspec.Struct, frozen=True):
    """Errors of one play and final model at rising budgets."""

    seed: int
    samples: list[int]
    lab_s: list[float]
    scores: list[Score]

    def held(self, error: float, seen: int = 1) -> int | None:
        """Place of the first budget from which the error holds, also at the next budget if there
        is one: one lucky fit is no result. `seen` budgets must be there."""
        good = [score.rmse <= error for score in self.scores]
        for place in range(len(good) - seen + 1):
            if all(good[place : place + 2]):
                return place
        return None

    def reaches(self, error: float) -> tuple[float, float]:
        """Samples and lab seconds that the error takes, interpolated in logs between the budget
        from which it holds and the one before; infinite where it never holds."""
        place = self.held(error)
        if place is None:
            return math.inf, math.inf
        share = 1.0
        if place and math.isfinite(self.scores[place - 1].rmse):
            above, below = (math.log(self.scores[p].rmse) for p in (place - 1, place))
            if above > math.log(error) > below:
                share = (above - math.log(error)) / (above - below)

        def between(values: Sequence[float]) -> float:
            before = math.log(values[max(place - 1, 0)])
            return math.exp(before + share * (math.log(values[place]) - before))

        return between(self.samples), between(self.lab_s)


@lru_cache(maxsize=8)
def problem(name: str) -> Problem:
    """A surface or a recording by its name."""
    return surfaces.BY_NAME[name] if name in surfaces.BY_NAME else recordings.by_name(name)


@lru_cache(maxsize=2)
def judge(name: str) -> Judge:
    return judging.judge_of(problem(name))


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
        kind = plugins.load("samplers", self._sampler_name)
        plan = SamplingPlan(
            self._sampler_name, max_samples=PER_CONFIGURATION, model=MODEL, options=ENDLESS
        )
        sampler: Sampler = kind(self.given.space(self.seed), plan, **sampler_arguments(kind))
        if self.asks:
            sampler.tell([self._sample(asked) for asked in self.asks])
        return sampler


def sampler_arguments(kind: Any) -> dict[str, Any]:
    """The model behind dRMSE, for samplers that take one."""
    if "model_factory" in inspect.signature(kind).parameters:
        return {"model_factory": plugins.load("models", MODEL)}
    return {}


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


class Goals(msgspec.Struct, frozen=True):
    """How far curves have to go: until some model meets `best`, and those of `own` meet theirs."""

    best: float
    own: dict[str, float]

    def wanted(self, found: Mapping[str, Curve]) -> list[str]:
        """Models that are still worth fitting."""
        reached = any(one.held(self.best, 2) is not None for one in found.values())
        return [
            model
            for model, one in found.items()
            if (not reached and model not in self.own)
            or (model in self.own and one.held(self.own[model], 2) is None)
            or (model in self.own and not reached and len(self.own) == len(found))
        ]

    def of(self, model: str) -> Goals:
        """Those that the curve of one model goes by."""
        return Goals(self.best, {m: error for m, error in self.own.items() if m == model})

    def cover(self, other: Goals) -> bool:
        """Whether what goes as far as these goes as far as the others."""
        return self.best <= other.best and all(
            self.own.get(model, math.inf) <= error for model, error in other.own.items()
        )


def curves(
    judged: Judge,
    player: Player | None,
    seed: int,
    models: Sequence[str],
    goals: Goals,
    most: int,
    known: Mapping[str, Curve],
) -> dict[str, Curve]:
    """Errors of final models at rising budgets, until all goals are met.

    What is `known` of further models counts for the goals.
    """
    found = {**known, **{model: Curve(seed, [], [], []) for model in models}}
    for spent, points in stages(judged.problem, player, seed, most):
        wanted = [model for model in goals.wanted(found) if model not in known]
        if not wanted:
            break
        table = judged.table(points, f"train-{seed}")
        for model in wanted:
            one = found[model]
            one.samples.append(len(points))
            one.lab_s.append(spent)
            one.scores.append(judged.score(judging.factory(model)(), table))
    return found


# ---------------------------------------------------------------------------- kept on disk


def world(name: str) -> str:
    """Digest of a problem."""
    if name in surfaces.BY_NAME:
        return digest("science.surfaces", "science.families")
    return recordings.digest_of(name)


class Kept(msgspec.Struct, frozen=True):
    """The curve of one seed and final model, and how far it goes."""

    seed: int
    goals: Goals
    most: int
    curve: Curve


def curves_stored(
    store: Store, name: str, sampler: str, model: str, goals: Goals, most: int
) -> dict[int, Curve]:
    """Those of the store by their seeds, where the same code computed them and as far."""
    return {
        kept.seed: kept.curve
        for kept in store.lines(_key(name, sampler, model), Kept)
        if kept.goals.cover(goals.of(model)) and kept.most >= most
    }


def curves_kept(
    store: Store,
    name: str,
    sampler: str,
    seed: int,
    models: Sequence[str],
    goals: Goals,
    most: int,
) -> dict[str, Curve]:
    """Curves, from the store where they were computed by the same code and as far."""
    code = _code(sampler)
    plays = f"plays/{name}/{sampler}-{world(name)}-{code}"
    known: dict[str, Curve] = {}
    for model in models:
        by_seed = curves_stored(store, name, sampler, model, goals, most)
        if seed in by_seed:
            known[model] = by_seed[seed]
    left = [model for model in models if model not in known]
    if not left:
        return known
    played = [p for p in store.lines(plays, Play) if p.seed == seed]
    longest = max(played, key=lambda p: len(p.asks), default=None)
    player = None if sampler == UNIFORM else Player(problem(name), sampler, seed, longest)
    found = curves(judge(name), player, seed, left, goals, most, known)
    if player and (longest is None or player.play != longest):
        store.add(plays, player.play)
    for model in left:
        kept = Kept(seed, goals.of(model), most, found[model])
        store.add(_key(name, sampler, model), kept)
    return {model: found[model] for model in models}


def _key(name: str, sampler: str, model: str) -> str:
    return f"curves/{name}/{sampler}-{model}-{world(name)}-{_code(sampler)}-{by(model)}"


def _code(sampler: str) -> str:
    """Digest of a sampler and of the model behind its dRMSE."""
    return digest(judging.sampler_module(sampler), judging.model_module(MODEL))


def by(model: str) -> str:
    """Digest of a final model and of how it sees samples."""
    return digest("workbench.models.table", "science.judging", judging.model_module(model))


def reference_kept(store: Store, name: str, model: str) -> Score:
    """Error of a model that was trained on the whole training set of seed 0."""
    key = f"references/{name}/{model}/{world(name)}-{by(model)}"
    for known in store.lines(key, Score):
        return known
    judged = judge(name)
    whole = judging.whole_grid(judged.problem, "train-0")
    found = judged.score(judging.factory(model)(), judged.table(whole, "train-0"))
    store.add(key, found)
    return found
