"""Errors of final models on what samplers bought, held against the second draw, and what of them
is stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

import msgspec

from science import judging, recordings, surfaces
from science.judging import Judge, Point, Problem, Score
from science.plays import MODEL, UNIFORM, VARIANTS, Play, Player, budgets, stages, uniform_grids
from science.stored import MET, Store, version

REACHED = 1.1
"""Times the reference error."""
BUDGET, ITSELF = "budget", "itself"
"""Why a curve ends, beside `MET`: the budget was spent, the sampler ended the play."""


class Curve(msgspec.Struct, frozen=True):
    """Errors of one play and final model at rising budgets.

    Attributes
    ----------
    end : `MET` where the goals were met, by this model or by another on the same play: what this
        one would do with more samples is not known. `BUDGET` where there were no more samples to
        spend, `ITSELF` where the sampler asked for no more, else what stopped the sampler.
    """

    seed: int
    samples: list[int]
    lab_s: list[float]
    scores: list[Score]
    end: str = ""

    @property
    def over(self) -> bool:
        """The sampler ended or failed below its budget: there are no more samples."""
        return self.end not in ("", MET, BUDGET)

    def tells(self, place: int, budget: int | None) -> bool:
        """Whether it holds the error at that budget: None is the one of that place, whatever it
        is. A play that was over has fewer samples than its last budget, also where the goals were
        met there."""
        if place >= len(self.samples):
            return False
        last = self.end not in ("", BUDGET) and place == len(self.samples) - 1
        return budget in (None, self.samples[place]) or (last and self.samples[place] <= budget)

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


class Goals(msgspec.Struct, frozen=True):
    """How far curves have to go: until some model meets `best`, and those of `own` meet theirs."""

    best: float
    own: dict[str, float]

    def wanted(self, found: Mapping[str, Curve]) -> list[str]:
        """Models that are still worth fitting."""
        reached = any(one.held(self.best, 2) is not None for one in found.values())
        all_own = all(model in self.own for model in found)
        return [
            model
            for model, one in found.items()
            if (model in self.own and one.held(self.own[model], 2) is None)
            or (not reached and (all_own or model not in self.own))
        ]


Fitted = tuple[int, float, dict[str, Score]]
"""Samples, lab seconds, errors by model."""


def followed(
    seed: int,
    models: Sequence[str],
    goals: Goals,
    steps: Sequence[int | None],
    begun: Mapping[str, Curve],
    further: Callable[[int, list[str]], Fitted | str],
) -> dict[str, Curve]:
    """Curves of final models at rising budgets, until all goals are met.

    The same, whatever was there before: what is `begun` spares fits and decides nothing.

    Parameters
    ----------
    steps : the budgets; None where the place alone tells which it is.
    further : called with the place of a budget and the models to be fitted there, where `begun`
        does not tell; why the play is over, where it is.
    """
    found = {model: Curve(seed, [], [], []) for model in models}
    wanted, end = goals.wanted(found), BUDGET

    def ended(place: int) -> list[str]:
        return [one.end for one in begun.values() if one.over and len(one.samples) == place]

    for place, budget in enumerate(steps):
        over = ended(place)
        if not wanted or over:
            end = over[0] if over else end
            break
        told = {m: begun[m] for m in wanted if m in begun and begun[m].tells(place, budget)}
        left = [model for model in wanted if model not in told]
        more = further(place, left) if left else (0, 0.0, {})
        if isinstance(more, str):
            end = more
            break
        for model in wanted:
            one, known = found[model], told.get(model)
            one.samples.append(known.samples[place] if known else more[0])
            one.lab_s.append(known.lab_s[place] if known else more[1])
            one.scores.append(known.scores[place] if known else more[2][model])
        wanted = goals.wanted(found)
    else:
        if wanted and steps and found[wanted[0]].samples[-1] < (steps[-1] or 0):
            # Over before the last budget was spent: who plays says why.
            said = next(iter(ended(len(steps))), "") or further(len(steps), [])
            end = said if isinstance(said, str) else end
    return {
        model: msgspec.structs.replace(one, end=end if model in wanted else MET)
        for model, one in found.items()
    }


def steps(given: Problem, sampler: str, most: int) -> list[int | None]:
    """The budgets of a play; how many samples a grid of uniform sampling has is told by playing."""
    if sampler != UNIFORM:
        return list(budgets(most))
    sizes = (len(chosen) * loads for chosen, loads in uniform_grids(given))
    return [None for _ in takewhile(lambda size: size <= most, sizes)]


class Fitting:
    """Plays on and fits, where curves want to go on; asks nothing before."""

    def __init__(
        self, name: str, sampler: str, seed: int, most: int, known: Play | None = None
    ) -> None:
        given = problem(name)
        self.player = None if sampler == UNIFORM else Player(given, sampler, seed, known)
        self._name, self._seed = name, seed
        self._stages = stages(given, self.player, seed, most)
        self._seen: list[tuple[float, list[Point]]] = []

    def __call__(self, place: int, models: list[str]) -> Fitted | str:
        while len(self._seen) <= place:
            following = next(self._stages, None)
            if following is None:
                return (self.player.trouble if self.player else "") or ITSELF
            self._seen.append(following)
        spent, points = self._seen[place]
        judged = judge(self._name)
        table = judged.table(points, f"train-{self._seed}")
        scores = {model: judged.score(judging.factory(model)(), table) for model in models}
        return len(points), spent, scores


NO_PROFILE = ("breakpoint-search",)
"""Samplers that want something else: this one is judged by `science.visits`."""


def samplers() -> tuple[str, ...]:
    """All of profiles that are registered, and the variants of the plays."""
    known = tuple(name for name in judging.samplers() if name not in NO_PROFILE)
    return (*known, *(name for name, registered in VARIANTS.items() if registered in known))


# ---------------------------------------------------------------------------- kept on disk


def world(name: str) -> str:
    """Version of a problem."""
    return version("science.surfaces") if name in surfaces.BY_NAME else recordings.version_of(name)


class Kept(msgspec.Struct, frozen=True):
    """The curve of one seed and final model, and the samples that it could take."""

    seed: int
    most: int
    curve: Curve


class _Unplayed(Exception):
    """These models were not fitted that far."""

    def __init__(self, models: list[str]) -> None:
        super().__init__(models)
        self.models = models


def curves_stored(
    store: Store, name: str, sampler: str, models: Sequence[str], goals: Goals, most: int
) -> dict[int, dict[str, Curve]]:
    """By seed and model, where the same code computed them and as far as the goals want."""
    wanted, found = steps(problem(name), sampler, most), {}
    for seed, begun in _begun(store, name, sampler, models, most).items():
        left = [model for model in models if model in begun]
        while left:
            try:
                found[seed] = followed(seed, left, goals, wanted, begun, _nothing)
                break
            except _Unplayed as those:
                left = [model for model in left if model not in those.models]
    return found


def _nothing(_place: int, models: list[str]) -> Fitted | str:
    raise _Unplayed(models)


def curves_kept(
    store: Store,
    name: str,
    sampler: str,
    seed: int,
    models: Sequence[str],
    goals: Goals,
    most: int,
) -> dict[str, Curve]:
    """Curves; what the same versions computed before is taken from the store."""
    plays = f"plays/{name}/{sampler}/{world(name)}.{_code(sampler)}"
    begun = _begun(store, name, sampler, models, most).get(seed, {})
    played = [p for p in store.lines(plays, Play) if p.seed == seed]
    longest = max(played, key=lambda p: len(p.asks), default=None)
    fitting = Fitting(name, sampler, seed, most, longest)
    wanted = steps(problem(name), sampler, most)
    found = followed(seed, models, goals, wanted, begun, fitting)
    if fitting.player and fitting.player.play != longest and fitting.player.asks:
        store.add(plays, fitting.player.play)
    for model, curve in found.items():
        before = begun.get(model)
        if before is None or _length(curve) > _length(before):
            store.add(key(name, sampler, model), Kept(seed, most, curve))
    return found


def _begun(
    store: Store, name: str, sampler: str, models: Sequence[str], most: int
) -> dict[int, dict[str, Curve]]:
    """What the store has of a sampler by seed and model: the longest curve of each."""
    found: dict[int, dict[str, Curve]] = {}
    for model in models:
        lines = [
            (kept.most >= most, _length(kept.curve), place, kept.curve)
            for place, kept in enumerate(store.lines(key(name, sampler, model), Kept))
        ]
        for *_, curve in sorted(lines, key=lambda line: line[:3]):
            found.setdefault(curve.seed, {})[model] = curve
    return found


def _length(curve: Curve) -> tuple[int, bool]:
    return len(curve.samples), curve.end != MET


def key(name: str, sampler: str, model: str) -> str:
    """Under which curves are stored: versions of the problem, the sampler and the model."""
    return f"curves/{name}/{sampler}/{model}/{world(name)}.{_code(sampler)}.{by(model)}"


def samplers_stored(store: Store, name: str) -> set[str]:
    """Those of which there is a curve on a problem."""
    return {
        sampler
        for sampler in samplers()
        if any(next(store.lines(key(name, sampler, m), Kept), None) for m in judging.models())
    }


def _code(sampler: str) -> str:
    """Version of the plays, of a sampler and of the model behind its dRMSE."""
    module = judging.sampler_module(VARIANTS.get(sampler, sampler))
    return version("science.plays", module, judging.model_module(MODEL))


def by(model: str) -> str:
    """Version of a final model and of how it sees samples."""
    return version("workbench.models.table", "science.judging", judging.model_module(model))


def reference_stored(store: Store, name: str, model: str) -> Score | None:
    """Error of a model that was trained on the whole training set, where it was."""
    return next(store.lines(reference_key(name, model), Score), None)


def reference_kept(store: Store, name: str, model: str) -> Score:
    """Error of a model that was trained on the whole training set of seed 0."""
    known = reference_stored(store, name, model)
    if known is not None:
        return known
    found = reference(name, model)
    store.add(reference_key(name, model), found)
    return found


def reference(name: str, model: str) -> Score:
    """Error of a model that is trained on the whole training set of seed 0."""
    judged = judge(name)
    whole = judging.whole_grid(judged.problem, "train-0")
    return judged.score(judging.factory(model)(), judged.table(whole, "train-0"))


def reference_key(name: str, model: str) -> str:
    return f"references/{name}/{model}/{world(name)}.{by(model)}"
