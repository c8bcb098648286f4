"""Scaling without profiles: paper A, Algorithm 1, as ask and tell.

A caller asks what to measure, measures it on the lab or on a model, and tells what it found:

    while (asked := scaling.ask()) is not None:
        deployment, wl = asked
        scaling.tell(*measured(deployment, wl))

Where the paper leaves something open, this is what is done:

- Lines 3 and 13: the load rises by one of `loads` in every pass; at the last of them, the asked
  one, the algorithm goes on until the limits hold (section 4: *until the SLA is met*). With a
  single load, the default of `GreedyScaling`, it starts there: fewer measurements, to its favour.
- Line 10: scaled is where a limit does not hold. The paper scales at equality, too.
- Nothing over 90 % while a limit fails: the algorithm then changes nothing. At a lower load the
  next pass decides; at the last it would measure the same for ever, so it ends and says so.
- A function at its largest rung gets another instance if it has a balancer, with a balancer that
  starts at its own smallest rung (section 4.1, iteration 5). One without, or with as many
  instances as are allowed, stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from workbench.domain.parameters import Parameter, ParameterValue, Sla
from workbench.domain.recommendations import Deployment, GreedyRun, GreedyStep
from workbench.sla.costs import Cost, VcpuHours, cost_of, options_of
from workbench.sla.performance import Performance
from workbench.sla.replicas import MOST_INSTANCES, Balancer, size

BUSY = 0.9
"""Usage, as a share of the allocation, from which on a function is scaled (line 18)."""
STEP = 0.25
"""Cores of the first rung, and from rung to rung up to one core (section 4.1)."""

Ladder = tuple[Mapping[str, ParameterValue], ...]
"""Allotments of one function, from the smallest to the largest."""


def ladders(resources: Sequence[Parameter]) -> dict[str, Ladder]:
    """The rungs of each function: 25 % steps to 100 %, then whole cores, up to the largest allowed.

    A largest value between two rungs is the last one. Other resources stand at their largest
    value, so that the CPU is what limits. A function with flavors climbs these.
    """
    found: dict[str, Ladder] = {}
    for vnf, options in options_of(resources, _AnyCost()).items():
        allotments = sorted((dict(o.resources) for o in options), key=size)
        largest, key = allotments[-1], f"{vnf}.vcpu"
        if f"{vnf}.flavor" in largest or key not in largest:
            found[vnf] = tuple(allotments)
            continue
        found[vnf] = tuple({**largest, key: cores} for cores in _rungs(float(largest[key])))
    return found


def _rungs(top: float) -> Iterator[float]:
    cores = STEP
    while cores < top:
        yield cores
        cores += STEP if cores < 1.0 else 1.0
    yield top


class _AnyCost:
    """For listing options, whatever they cost."""

    unit = ""

    def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> float:  # noqa: ARG002
        return 0.0


class GreedyScaling:
    """One run of the algorithm.

    Parameters
    ----------
    slas : limits, of which any that fails asks for scaling.
    loads : rising; the last is the load that the limits are asked at.
    rungs : of each function of the chain (`ladders`).
    cost : of what is found.
    balancers : of functions that may have several instances, by function.
    most_instances : of one function.
    """

    def __init__(
        self,
        slas: Sequence[Sla],
        loads: Sequence[float],
        rungs: Mapping[str, Ladder],
        cost: Cost | None = None,
        balancers: Mapping[str, Balancer] | None = None,
        most_instances: int = MOST_INSTANCES,
    ) -> None:
        self._slas, self._loads = tuple(slas), tuple(loads)
        self._cost = cost or VcpuHours()
        self._balancers = balancers or {}
        self._most = most_instances
        self._rungs = dict(rungs)
        self._place = dict.fromkeys(rungs, 0)
        self._count = dict.fromkeys(rungs, 1)
        self._steps: list[GreedyStep] = []
        self._lab_s = 0.0
        self._ended: str | None = None

    def ask(self) -> tuple[Deployment, float] | None:
        """What to measure next and at which load; None where the run has ended."""
        if self._ended is not None:
            return None
        return self._deployment(), self._loads[min(len(self._steps), len(self._loads) - 1)]

    def tell(
        self, kpis: Mapping[str, float], usage: Mapping[str, float], lab_s: float = 0.0
    ) -> None:
        """What was found where `ask` said: KPIs in their units, CPU by function as a share.

        A KPI that cannot be stated is left out: its limit does not hold. A function of several
        instances is told by their mean. `lab_s` is what it took.
        """
        asked = self.ask()
        if asked is None:
            return
        deployment, wl = asked
        met = all(sla.kpi in kpis and sla.holds(kpis[sla.kpi]) for sla in self._slas)
        last = len(self._steps) >= len(self._loads) - 1
        busy = [] if met else [f for f in self._rungs if usage.get(f, 0.0) >= BUSY]
        scaled = tuple(vnf for vnf in busy if self._scale(vnf))
        self._steps.append(
            GreedyStep(
                deployment.allocation,
                deployment.replicas,
                wl,
                dict(kpis),
                dict(usage),
                met,
                scaled,
            )
        )
        self._lab_s += lab_s
        if met and last:
            self._ended = ""
        elif last and busy and not scaled:
            self._ended = f"At the largest allocation and still busy: {', '.join(busy)}."
        elif last and not scaled:
            self._ended = (
                f"No function uses {BUSY:.0%} of its allocation, so that nothing is scaled."
            )

    def result(self, *, on_lab: bool) -> GreedyRun:
        """The run so far; its allocations count as lab iterations if they were `on_lab`."""
        tried = {(*sorted(s.allocation.items()), *sorted(s.replicas.items())) for s in self._steps}
        last = self._steps[-1].deployment if self._steps else self._deployment()
        return GreedyRun(
            tuple(self._steps),
            self._ended == "",
            cost_of(last, self._cost),
            self._cost.unit,
            len(tried) if on_lab else 0,
            self._lab_s,
            self._ended or "",
        )

    def _deployment(self) -> Deployment:
        allocation: dict[str, ParameterValue] = {}
        for vnf, rungs in self._rungs.items():
            allocation.update(rungs[self._place[vnf]])
        return Deployment(allocation, dict(self._count))

    def _scale(self, vnf: str) -> bool:
        """Give a function more; False where there is no more to give."""
        if self._place[vnf] + 1 < len(self._rungs[vnf]):
            self._place[vnf] += 1
            return True
        if vnf not in self._balancers or self._count[vnf] >= self._most:
            return False
        self._count[vnf] += 1
        balancer = self._balancers[vnf]
        name = balancer.vnf.name
        if balancer.resources and name not in self._rungs:
            self._rungs[name] = ladders(balancer.resources)[name]
            self._place[name], self._count[name] = 0, 1
        return True


def on_model(scaling: GreedyScaling, performance: Performance) -> GreedyRun:
    """The run on what a model says: the expected KPIs, and the expected usage."""
    while (asked := scaling.ask()) is not None:
        deployment, wl = asked
        at = np.array([wl])
        kpis = {
            kpi: math.exp(performance.forecast(kpi, [deployment], at).mean[0])
            for kpi in performance.kpis
        }
        (usage,) = performance.usage([deployment], wl)
        scaling.tell(kpis, usage)
    return scaling.result(on_lab=False)
