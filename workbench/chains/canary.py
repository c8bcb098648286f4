"""A careful look at the real chain: small loads first, each step checked before the next.

Paper A, 7.3: a rising part of production's workload retrains the model, so that an underestimated
chain hurts few. Ask and tell, like a sampler: no I/O, no clock; the same samples, told in the same
order, lead to the same ask, so that a canary goes on after a crash.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, OperatingPoint, PrimaryWorkload, Sla
from workbench.domain.retraining import (
    AskKind,
    CanaryAsk,
    CanaryEnding,
    CanaryPlan,
    CanaryState,
    CanaryStep,
    CanaryTerms,
    StepVerdict,
)
from workbench.domain.samples import Estimate, Sample
from workbench.models.forecast import Forecaster
from workbench.models.scales import figure, log_kpi
from workbench.models.selection import stated

LEAST_PROBABILITY = 0.5
"""That the next load is within the guards, by the model: a step that is likelier to pass them than
not is not taken."""

Learner = Callable[[Sequence[Sample]], Forecaster]
"""The model's own forecast, from the samples that the canary has kept so far (none at first)."""


def canary_plan(
    chain: str,
    configuration: Configuration,
    primary: PrimaryWorkload,
    terms: CanaryTerms,
) -> CanaryPlan:
    """Loads from the lowest of `primary` to the highest that is allowed.

    That is `share` of the SLA's workload, without one of the campaign's range. In a canary they
    rise in even `steps`, or by `increment` (paper A: 5 concurrent requests) as far as they go;
    online they are drawn at random. Integer loads are rounded, and none comes twice in a canary.

    Raises
    ------
    DataError
        If nothing is allowed: a share outside (0, 1], no steps, an end below the lowest load.
    """
    sla, share, steps, increment = terms.sla, terms.share, terms.steps, terms.increment
    if not 0.0 < share <= 1.0:
        raise DataError(
            f"a share of {share:g} is not above 0 and at most 1", remedy="Give one, such as 0.5"
        )
    if steps < 1 or terms.attempts < 1 or (increment is not None and increment <= 0.0):
        raise DataError("steps, attempts and increment must be above zero", where=chain)
    if sla is not None and sla.wl is not None:
        top = min(share * sla.wl, primary.high)
        whose = f"{share:.0%} of the SLA's workload, {_load(share * sla.wl, primary)},"
    else:
        top = primary.low + share * (primary.high - primary.low)
        whose = f"{share:.0%} of the range"
    if top < primary.low:
        raise DataError(
            f"{whose} lies below the lowest load, {_load(primary.low, primary)}",
            where=chain,
            remedy="Allow a larger share",
        )
    if terms.mode == "online":
        loads = np.random.default_rng(terms.seed).uniform(primary.low, top, steps)
    elif increment is not None:
        loads = np.arange(primary.low, top * (1.0 + 1e-12), increment)
    else:
        loads = np.linspace(primary.low, top, steps)
    values = [math.floor(wl + 0.5) if primary.integer else float(wl) for wl in loads]
    values = [min(wl, math.floor(top)) if primary.integer else wl for wl in values]
    if terms.mode == "canary":
        values = list(dict.fromkeys(values))
    own = (sla,) if sla is not None else ()
    return CanaryPlan(
        chain,
        configuration,
        tuple(map(float, values)),
        own if terms.guards is None else terms.guards,
        terms.mode,
        terms.attempts,
        terms.budget_s,
        terms.sample_s,
    )


class Canary:
    """Walks a plan on the real chain.

    A step is kept if its sample is valid, states the guarded KPIs and holds them. An invalid sample
    is asked for again, as often as the plan allows. Where a guarded KPI passes its limit, on a
    valid sample or not, or only grows because the chain is overloaded, the canary ends and asks to
    restore the load of the last kept step; with none, there is nothing to go back to but no load.
    Before a step the model forecasts its KPI: a canary ends below a load that would likelier than
    not pass a guard, one that takes loads at random leaves that one out.

    Parameters
    ----------
    plan : CanaryPlan
    learner : Learner, optional
        Makes the model from the samples kept so far; without it only measurements are checked.
    earlier : sequence of Sample
        Samples of the chain that are none of this canary: they only say which repetitions exist.
    """

    def __init__(
        self,
        plan: CanaryPlan,
        learner: Learner | None = None,
        earlier: Sequence[Sample] = (),
    ) -> None:
        self.plan = plan
        self._learner = learner
        self._forecaster: Forecaster | None = None
        self._in_force: Forecaster | None = None
        self._taken: Counter[float] = Counter()
        for sample in earlier:
            self._count(sample.point)
        self._place, self._attempt = 0, 0
        self._steps: list[CanaryStep] = []
        self._kept: list[Sample] = []
        self._spent_s: list[float] = []
        self._skipped: list[float] = []
        self._ending: CanaryEnding | None = None
        self._pending: CanaryAsk | None = None
        self._learn()
        self._in_force = self._forecaster
        self._advance()

    # ------------------------------------------------------------------ what is to be known

    @property
    def forecaster(self) -> Forecaster | None:
        """The model of what was kept so far."""
        return self._forecaster

    @property
    def steps(self) -> tuple[CanaryStep, ...]:
        """What every measurement came to, in their order."""
        return tuple(self._steps)

    @property
    def kept(self) -> tuple[Sample, ...]:
        """Samples to retrain the model with."""
        return tuple(self._kept)

    @property
    def spent_s(self) -> float:
        """Lab seconds so far."""
        return sum(self._spent_s)

    @property
    def ending(self) -> CanaryEnding | None:
        """Why there are no more steps; a restoring ask may still be open. None while it goes on."""
        return self._ending

    def ask(self) -> CanaryAsk | None:
        """The next measurement; None when nothing is left. Asking again changes nothing."""
        return self._pending

    def tell(self, samples: Sequence[Sample]) -> None:
        """Samples in the order they were taken, each the answer to the ask before it.

        A lab that has no such load answers with its nearest.

        Raises
        ------
        DataError
            If a sample is of another chain or configuration, or nothing was asked for.
        """
        for sample in samples:
            self._tell(sample)

    # ------------------------------------------------------------------ one sample

    def _tell(self, sample: Sample) -> None:
        ask, point = self._pending, sample.point
        if ask is None:
            raise DataError("the canary had ended", where=f"sample {sample.id}")
        if (point.target, point.configuration) != (ask.point.target, ask.point.configuration):
            raise DataError(
                f"is of {point.target} at {point.configuration.key}, where "
                f"{ask.point.target} at {ask.point.configuration.key} was asked for",
                where=f"sample {sample.id}",
            )
        self._count(point)
        self._spent_s.append(sample.lab_s)
        passed = self._passed(sample)
        if ask.kind == "restore":
            still = f"back at {figure(point.wl)}, {passed}" if passed else ""
            self._step(ask, sample, "restored", still)
            self._pending = None
            return
        if passed:
            self._step(ask, sample, "guard", passed)
            self._trip(f"{passed} at {figure(point.wl)}")
            return
        if not sample.valid or not all(stated(sample, g.kpi) for g in self.plan.guards):
            self._step(ask, sample, "invalid", self._why_invalid(sample))
            self._attempt += 1
        else:
            self._step(ask, sample, "kept")
            self._kept.append(sample)
            self._learn()
            self._place, self._attempt = self._place + 1, 0
        self._advance()

    def _step(self, ask: CanaryAsk, sample: Sample, verdict: StepVerdict, note: str = "") -> None:
        kpi = self._forecaster.kpi if self._forecaster is not None else ""
        value, wl = sample.kpis.get(kpi), sample.point.wl
        before: Estimate | None = None
        if self._in_force is not None:
            before = self._in_force.forecast([(self.plan.configuration, wl)]).estimate()
        self._steps.append(
            CanaryStep(ask.number, sample.id, wl, verdict, ask.forecast, note, value, before)
        )

    def _passed(self, sample: Sample) -> str:
        """Which guard a sample has passed, as a phrase; empty if none."""
        for guard in self.plan.guards:
            estimate = sample.kpis.get(guard.kpi)
            if estimate is None:
                continue
            if not guard.holds(estimate.value):
                return f"{_told(guard.kpi, estimate.value)} is past the guard of {_text(guard)}"
            # A bound under an upper limit says nothing; that the chain falls behind says enough.
            if sample.valid and stated(sample, guard.kpi) is None and guard.direction == "<=":
                name = kpis.of(guard.kpi).short
                return f"{name} grew for as long as it was watched (guard {_text(guard)})"
        return ""

    def _why_invalid(self, sample: Sample) -> str:
        if not sample.valid:
            return f"{sample.reason}: {sample.findings[0].evidence}" if sample.findings else ""
        guards = self.plan.guards
        missing = [kpis.of(g.kpi).short for g in guards if stated(sample, g.kpi) is None]
        return f"does not state {', '.join(missing)}"

    # ------------------------------------------------------------------ what comes next

    def _advance(self) -> None:
        """Find the next ask, or why there is none."""
        self._pending = None
        while self._place < len(self.plan.loads):
            wl = self.plan.loads[self._place]
            if self._attempt >= self.plan.attempts:
                last = self._steps[-1].note
                self._end("invalid", f"{self._attempt} samples at {figure(wl)} are invalid: {last}")
                return
            cost = self._spent_s[-1] if self._spent_s else self.plan.sample_s
            budget = self.plan.budget_s
            if budget is not None and self.spent_s + cost > budget:
                self._end(
                    "budget",
                    f"{self.spent_s:.0f} s of {budget:.0f} s are spent, and a step costs about "
                    f"{cost:.0f} s",
                )
                return
            forecast, foreseen = self._foreseen(wl)
            if foreseen and self.plan.mode == "canary":
                self._end("foreseen", f"The model says {foreseen} at {figure(wl)}")
                return
            if foreseen:
                self._skipped.append(wl)
                self._place += 1
                continue
            self._pending = self._asked("step", wl, forecast)
            return
        count = len(self.plan.loads)
        note = "The only load is measured" if count == 1 else f"All {count} loads are measured"
        if self._skipped:
            note = f"{len(self._kept)} loads are measured, {len(self._skipped)} were left out: "
            note += "the model says that they pass a guard"
        self._end("done", note)

    def _trip(self, why: str) -> None:
        self._pending = None
        if not self._kept:
            self._end("guard", f"{why}, before any was within it: the chain gets no load")
            return
        back = self._kept[-1].point.wl
        self._ending = CanaryEnding("guard", f"{why}: back to {figure(back)}", back)
        self._pending = self._asked("restore", back, None)

    def _asked(self, kind: AskKind, wl: float, forecast: Estimate | None) -> CanaryAsk:
        number, loads = self._place + 1, len(self.plan.loads)
        if kind == "restore":
            why = "the guard was passed: the last load within it again"
        else:
            why = f"step {number} of {loads}"
            if self._attempt:
                why += f", attempt {self._attempt + 1} of {self.plan.attempts}"
        point = OperatingPoint(self.plan.chain, self.plan.configuration, wl, self._taken[_key(wl)])
        return CanaryAsk(kind, number, point, forecast, why)

    def _end(self, state: CanaryState, note: str) -> None:
        self._ending = CanaryEnding(state, note)

    def _learn(self) -> None:
        if self._learner is not None:
            self._forecaster = self._learner(self.kept)

    def _foreseen(self, wl: float) -> tuple[Estimate | None, str]:
        """What the model says of a load, and which guard it would pass; empty if none."""
        if self._forecaster is None:
            return None, ""
        kpi = self._forecaster.kpi
        said = self._forecaster.forecast([(self.plan.configuration, wl)])
        expected = said.estimate()
        for guard in self.plan.guards:
            if guard.kpi != kpi:
                continue
            below = float(said.probability_below(log_kpi(kpi, guard.limit))[0])
            holds = below if guard.direction == "<=" else 1.0 - below
            if holds < LEAST_PROBABILITY:
                return expected, f"{_told(kpi, expected.value)} (guard {_text(guard)})"
        return expected, ""

    def _count(self, point: OperatingPoint) -> None:
        same = (self.plan.chain, self.plan.configuration)
        if (point.target, point.configuration) == same:
            key = _key(point.wl)
            self._taken[key] = max(self._taken[key], point.repetition + 1)


def _key(wl: float) -> float:
    """Loads as sample ids name them."""
    return float(f"{wl:.6g}")


def _load(wl: float, primary: PrimaryWorkload) -> str:
    return f"{figure(wl)} {primary.unit}".rstrip()


def _told(kpi: str, value: float) -> str:
    """`p95 303 ms`."""
    known = kpis.of(kpi)
    return f"{known.short} {figure(value)} {known.unit}".rstrip()


def _text(guard: Sla) -> str:
    """`p95 <= 200 ms`."""
    known = kpis.of(guard.kpi)
    return f"{known.short} {guard.direction} {guard.limit:g} {known.unit}".rstrip()
