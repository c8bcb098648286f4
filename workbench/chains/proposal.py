"""A retrained model is a proposal: what it changes, and what it is worth.

Everything here is data: a proposal names its samples, parameters and coefficients, and is fitted
again and checked on load. What became of it is a fold over stored records
(`workbench.domain.retraining`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.chains.alignment import Measured, measured
from workbench.chains.capacity import scales_of
from workbench.chains.composition import ChainForecaster, TwoTerms
from workbench.chains.correction import CPU_OF, SHARED_SD, CorrectedForecaster
from workbench.chains.correction_models import ProfileTerms
from workbench.chains.trend import trained
from workbench.domain import departures, kpis
from workbench.domain.counts import counted
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue, PrimaryWorkload
from workbench.domain.profiles import FittedModel, Setting
from workbench.domain.retraining import HeldOutScores, Proposal, Reach, TermChange
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.crossvalidation import ModelFactory
from workbench.models.forecast import Forecaster
from workbench.models.scores import log_errors, score

CPU = "cpu"
"""Names the parameter of a correction that goes by CPU per request; older ones lack it."""
FIXED = "fixed {}"
"""Names the parameter of a direct model that holds an input's value in production."""
FEWEST_POINTS = 3
"""Operating points from which one can be held out and the rest still be learned from."""
LEAST_TAUGHT = 2
"""Operating points that must be left to learn from."""
SET_ASIDE = (
    "What the canaries teach does not predict those that were left out clearly better than the "
    "profiles do: it is set aside, and the prediction stays what it is, with its own interval."
)
HARMLESS = 0.02
"""Log error that a correction by CPU alone may cost samples that were left out."""
FOLDS = 5
UPPER = 1.0 / 3.0
"""Share of a configuration's loads, the highest, that are left out together."""
SURELY = 1.64
"""Standard errors of the difference that held-out points must be better by: one side, 95 %."""
CLEARLY = 0.1
"""Share of the error before that must be gained."""
COUNTS = 0.05
"""Share of what a function carries that a clear change of its CPU per request must come to: what
windows carry scatters by as much (METHOD.md 6)."""
WITHIN = 1.5
"""Times the noise that a prediction may be off and still be called within it."""
NORMAL_MEDIAN = 1.4826
"""Standard deviation of normal errors, over the median of their size."""


# ------------------------------------------------------------------------- how to retrain


@dataclass(frozen=True)
class Method:
    """A way to make a chain's model of its samples.

    `parameters` are stored with the proposal; `train` raises `DataError` where samples do not do.
    `prediction` is what a correction corrects; None for a model of the samples alone.
    """

    name: str
    train: Callable[[Measured], Forecaster]
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    prediction: Forecaster | None = None

    def learned(self, seen: Measured) -> Forecaster:
        """What samples teach; of a correction where it holds on samples that it was not fitted to,
        else the prediction as it is, with its own interval.

        Raises `DataError` as `train` does, and a correction with fewer than three operating points.
        """
        if self.prediction is None or holds(seen, self, self.prediction):
            return self.train(seen)
        model = self.train(seen)
        # Where nothing queues, response times know nothing of what CPU says.
        by_cpu = isinstance(model, CorrectedForecaster) and any(
            scale.differs_from(1.0) for scale in model.scales.values()
        )
        if by_cpu and holds(seen, self, self.prediction, at_least=-HARMLESS):
            return model
        return self.prediction


def correction(
    prediction: Forecaster, terms: ProfileTerms | None = None, *, shared_sd: float = SHARED_SD
) -> Method:
    """What the chain adds to its prediction (`CorrectedForecaster`)."""

    def train(seen: Measured) -> CorrectedForecaster:
        return CorrectedForecaster(prediction, seen, terms, shared_sd=shared_sd)

    return Method(_correction(terms is not None), train, {"shared_sd": shared_sd}, prediction)


def correction_by_cpu(
    chain: ChainForecaster, *, two_terms: bool, shared_sd: float = SHARED_SD
) -> Method:
    """The same, every function asked at the load at which it was alone as busy as it is here.

    That is read off the samples' CPU per request (`chains.capacity`), whatever the KPI: models of
    two KPIs of the same samples agree on it.
    """

    def train(seen: Measured) -> CorrectedForecaster:
        known = scales_of(chain.graph, chain.parts, seen)
        prediction = chain.scaled(known) if known else chain
        terms = TwoTerms(chain.graph, chain.parts, chain.kpi, known) if two_terms else None
        every = {vnf.name: known.get(vnf.name) for vnf in chain.vnfs}
        return CorrectedForecaster(prediction, seen, terms, shared_sd=shared_sd, scales=every)

    parameters: dict[str, float | str] = {"shared_sd": shared_sd, CPU: "per request"}
    return Method(_correction(two_terms), train, parameters, chain)


def _correction(two_terms: bool) -> str:
    return "correction-two-terms" if two_terms else "correction-offset"


def direct(
    name: str, factory: ModelFactory, fixed: Mapping[str, ParameterValue] | None = None
) -> Method:
    """A profile model of the chain's samples alone, as in paper A; `name` is the model's own.

    `fixed` are inputs that it is to do without, with the values that they have in production.
    """

    def train(seen: Measured) -> Forecaster:
        return trained(factory, seen, fixed)

    return Method(name, train, {FIXED.format(key): value for key, value in (fixed or {}).items()})


def fixed_of(parameters: Mapping[str, Setting]) -> dict[str, ParameterValue]:
    """The inputs that a stored method does without."""
    start = FIXED.format("")
    return {
        k.removeprefix(start): v
        for k, v in parameters.items()
        if k.startswith(start) and isinstance(v, int | float | str)
    }


# ------------------------------------------------------------------------- the proposal


def propose(
    chain: str,
    samples: Sequence[Sample],
    method: Method,
    current: Forecaster,
    *,
    kpi_max: float,
    primary: PrimaryWorkload,
    based_on: int = 0,
    held_out: Sequence[Sample] = (),
    shared_sd: float = SHARED_SD,
) -> Proposal:
    """Retrain, and say what it is worth on points that were held out.

    Those are `held_out` where given; else each operating point once, said by a model that was
    trained without it (leave one load out). `current`, what is in force now, says the same points.

    Parameters
    ----------
    samples : to train on; `align` chooses them.
    current : the prediction, or the accepted model of version `based_on`. Samples that the latter
        was trained on flatter it: give others to hold out.
    shared_sd : log standard deviation of what samples of one deployment share.

    Raises
    ------
    DataError
        If no sample states the KPI, or there are fewer than three operating points; those of the
        method.
    """
    kpi = current.kpi
    seen = measured(chain, samples, kpi=kpi, kpi_max=kpi_max, primary=primary)
    model = method.learned(seen)
    set_aside = method.prediction is not None and model is method.prediction
    if held_out:
        test = measured(chain, held_out, kpi=kpi, kpi_max=kpi_max, primary=primary)
        after = model.forecast(test.points).mean
    elif set_aside:
        test, after = seen, model.forecast(seen.points).mean
    else:
        test, after = seen, left_out(seen, method)
    before = current.forecast(test.points).mean
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        raise DataError("says what is not finite", where=f"{chain}, {kpi}, {method.name}")
    noise = math.hypot(test.noise, shared_sd)
    taught = method.train(seen) if set_aside else model
    changes = _changes(taught, current)
    gain, statement = _worth(kpi, test, before, after, model, noise)
    if evidence := " ".join(_capacities(taught, changes)):
        # Where nothing queues, response times know nothing of capacity.
        contradicted = set_aside or (not gain and _is_worse(kpi, test, before, after))
        statement = _with_capacity(evidence, statement, gain, contradicted)
        gain = gain or not contradicted
    if set_aside:
        gain, statement = False, f"{statement} {SET_ASIDE}"
    sample_ids = seen.table.sample_ids
    return Proposal(
        id=_key(chain, kpi, based_on, method, sample_ids),
        chain=chain,
        kpi=kpi,
        based_on=based_on,
        model=FittedModel(method.name, method.parameters, sample_ids, _coefficients(model)),
        changes=changes,
        held_out="given" if held_out else "leave-one-load-out",
        before=_scores(kpi, test, before),
        after=_scores(kpi, test, after),
        noise=noise,
        gain=gain,
        statement=statement,
        reach=_reach(seen),
    )


def refitted(
    proposal: Proposal,
    samples: Sequence[Sample],
    method: Method,
    *,
    kpi_max: float,
    primary: PrimaryWorkload,
) -> Forecaster:
    """The model of a stored proposal, fitted again to the same samples and checked.

    Raises
    ------
    DataError
        If the method is another, a sample is missing, or other coefficients come out.
    """
    where = f"{proposal.chain}, {proposal.kpi}, proposal {proposal.id}"
    if method.name != proposal.model.method:
        raise DataError(f"was made by {proposal.model.method}, not by {method.name}", where=where)
    by_id = {s.id: s for s in samples}
    missing = [name for name in proposal.model.sample_ids if name not in by_id]
    if missing:
        raise DataError(
            f"has lost {counted(len(missing), 'sample')} that it rests on: {missing[0]}",
            where=where,
            remedy="Open the session that it was made in",
        )
    own = [by_id[name] for name in proposal.model.sample_ids]
    seen = measured(proposal.chain, own, kpi=proposal.kpi, kpi_max=kpi_max, primary=primary)
    model = method.learned(seen)
    found, stored = np.array(_coefficients(model)), np.array(proposal.model.coefficients)
    if found.shape != stored.shape or not np.allclose(found, stored, rtol=1e-6, atol=1e-9):
        raise DataError(
            "gives other coefficients than those that are stored",
            where=where,
            remedy="The profiles or the program have changed; retrain the chain's model",
        )
    return model


def left_out(seen: Measured, method: Method) -> Floats:
    """Log KPI of each sample, by a model that was trained without its operating point."""
    points = seen.table.points
    numbers = np.unique(points)
    if len(numbers) < FEWEST_POINTS:
        raise _too_few(seen, len(numbers))
    said = np.empty(len(seen))
    for number in numbers:
        out = points == number
        model = method.train(seen.take(~out))
        said[out] = model.forecast(seen.take(out).points).mean
    return said


def holds(
    seen: Measured, method: Method, otherwise: Forecaster, *, at_least: float | None = None
) -> bool:
    """Whether a method predicts samples that it was not fitted to clearly better than `otherwise`.

    Operating points are left out in turns (`FOLDS`), and once all of the highest loads together,
    since a canary goes to half of what is asked about: it must be better there, too. "Clearly" is
    by more than their noise: as for a proposal (`SURELY`, `CLEARLY`); else by `at_least`, a log
    error.

    Raises `DataError` with fewer than three operating points.
    """
    numbers = np.unique(seen.table.points)
    if len(numbers) < FEWEST_POINTS:
        raise _too_few(seen, len(numbers))
    _, place = np.unique(seen.table.points, return_inverse=True)
    loads = seen.table.X[:, -1]
    upper = np.zeros(len(seen), dtype=bool)
    for number in np.unique(seen.table.configurations):
        own = seen.table.configurations == number
        upper |= own & (loads > np.quantile(loads[own], 1.0 - UPPER))
    said, above = np.full(len(seen), np.nan), np.full(len(seen), np.nan)
    folds = [place % FOLDS == number for number in range(min(FOLDS, len(numbers)))]
    for out, told in [(fold, said) for fold in folds] + [(upper, above)]:
        left = len(np.unique(seen.table.points[~out]))
        if not out.any() or left < LEAST_TAUGHT:
            continue
        try:
            told[out] = method.train(seen.take(~out)).forecast(seen.take(out).points).mean
        except DataError:
            return False
    before = otherwise.forecast(seen.points).mean
    if not np.isfinite(said).all():
        return False
    better = _gained(seen, before, said)
    error = float(better.std(ddof=1)) / math.sqrt(len(better))
    was = float(_errors(seen, before).mean())
    least = max(SURELY * error, CLEARLY * was) if at_least is None else at_least
    judged = np.isfinite(above)
    beyond = float(_gained(seen, before, above)[judged].mean()) if judged.any() else math.inf
    return float(better.mean()) > least and beyond > min(least, 0.0)


def _gained(seen: Measured, before: Floats, after: Floats) -> Floats:
    """By how much the log errors of samples are smaller, shape (n,)."""
    return np.asarray(_errors(seen, before) - _errors(seen, after))


def _errors(seen: Measured, said: Floats) -> Floats:
    return log_errors(seen.table.y, said, kpis.of(seen.table.kpi).score_floor)


def _too_few(seen: Measured, points: int) -> DataError:
    return DataError(
        f"{counted(len(seen), 'sample')} at {counted(points, 'operating point')}: "
        "none can be held out",
        where=f"{seen.table.target}, {seen.table.kpi}",
        remedy=f"Measure at {FEWEST_POINTS} loads at least",
    )


def _scores(kpi: str, test: Measured, said: Floats) -> HeldOutScores:
    found = score(kpi, test.table.y, said)
    return HeldOutScores(found.n, found.rmse, found.mae, found.mad, found.mape, found.log_error)


def _worth(
    kpi: str, test: Measured, before: Floats, after: Floats, model: Forecaster, noise: float
) -> tuple[bool, str]:
    """Whether held-out points are clearly better, and a sentence."""
    floor = kpis.of(kpi).score_floor
    was, now = (log_errors(test.table.y, said, floor) for said in (before, after))
    better = was - now
    error = float(better.std(ddof=1)) / math.sqrt(len(better)) if len(better) > 1 else 0.0
    changes = not isinstance(model, CorrectedForecaster) or model.changes_anything
    gain = changes and float(better.mean()) > max(SURELY * error, CLEARLY * float(was.mean()))
    # The root mean square is steadier in few samples, the median where one of them is wild.
    typical = min(float(np.sqrt(np.mean(np.square(was)))), NORMAL_MEDIAN * float(np.median(was)))
    if gain:
        return True, departures.worth(len(was), _median(was), _median(now))
    if typical <= WITHIN * noise:
        return False, (
            f"The model in force is {departures.off(typical)}, already within the noise "
            f"({math.expm1(noise):.0%} between samples): nothing can be gained."
        )
    return False, (
        "The samples do not show a better model. "
        f"{departures.worth(len(was), _median(was), _median(now))} More loads may."
    )


def _capacities(model: Forecaster, changes: Sequence[TermChange]) -> Iterator[str]:
    """Of each function whose CPU per request clearly differs from what was predicted before."""
    if not isinstance(model, CorrectedForecaster):
        return
    before = {change.name: change.before for change in changes if change.configuration is None}
    for name, scale in model.scales.items():
        was = before[CPU_OF.format(name)]
        ratio, (low, high) = scale.factor, scale.interval
        carries = was / ratio - 1.0
        if not scale.differs_from(was) or abs(carries) < COUNTS:
            continue
        yield (
            f"{name} needs {ratio:.2f} ({low:.2f} to {high:.2f}) times the CPU per request that it "
            f"needs alone: it carries {abs(carries):.0%} {'more' if carries > 0.0 else 'less'} "
            f"than was predicted before."
        )


def _is_worse(kpi: str, test: Measured, before: Floats, after: Floats) -> bool:
    """Whether held-out points are clearly worse."""
    floor = kpis.of(kpi).score_floor
    worse = log_errors(test.table.y, after, floor) - log_errors(test.table.y, before, floor)
    error = float(worse.std(ddof=1)) / math.sqrt(len(worse)) if len(worse) > 1 else math.inf
    return float(worse.mean()) > max(SURELY * error, CLEARLY)


def _with_capacity(evidence: str, statement: str, gain: bool, contradicted: bool) -> str:
    if gain:
        return f"{statement} {evidence}"
    if contradicted:
        return f"{statement} Their CPU says otherwise: {evidence}"
    return f"{evidence} Response times cannot show it at loads where nothing queues."


def _median(errors: Floats) -> float:
    return float(np.median(errors))


def _coefficients(model: Forecaster) -> tuple[float, ...]:
    """What a fit has learned, as floats that JSON can say."""
    if isinstance(model, CorrectedForecaster):
        found = model.coefficients
    else:
        found = np.ravel(getattr(getattr(model, "model", None), "coefficients_", ()))
    return tuple(float(value) for value in found)


def _changes(model: Forecaster, current: Forecaster) -> tuple[TermChange, ...]:
    """Terms of a correction; before are those of the model in force, where it has them."""
    if not isinstance(model, CorrectedForecaster):
        return ()
    known = current.changes() if isinstance(current, CorrectedForecaster) else ()
    was = {(change.name, change.configuration): change.after for change in known}
    return tuple(
        replace(change, before=was.get((change.name, change.configuration), change.before))
        for change in model.changes()
    )


def _reach(seen: Measured) -> tuple[Reach, ...]:
    highest: dict[Configuration, float] = {}
    for configuration, wl in seen.points:
        highest[configuration] = max(wl, highest.get(configuration, wl))
    return tuple(Reach(configuration, wl) for configuration, wl in highest.items())


def _key(chain: str, kpi: str, based_on: int, method: Method, sample_ids: tuple[str, ...]) -> str:
    settings = sorted(f"{name}={value}" for name, value in method.parameters.items())
    text = "\n".join((chain, kpi, str(based_on), method.name, *settings, *sorted(sample_ids)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
