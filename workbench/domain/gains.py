"""What more vCPU brought: how much more each function carried from one allocation to the next.

Of stand-alone profiles. Paper B calls it hard to see without looking where more vCPU brings
nothing, and where flavors overlap ("Optimized Sampling Strategies", section 5, Fig. 3c and d).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from workbench.domain.configurations import ConfigurationView
from workbench.domain.kpis import THROUGHPUT
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView

NEAR_THE_TOP = 0.9
"""Share of the highest throughput from which samples of a closed loop count as what is carried."""
WORTH = 0.05
"""Gain under which, by all of its interval, more vCPU brings nothing."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True)
class Gain:
    """What a function carried more with `after` than with `before` vCPUs, all else being equal.

    Attributes
    ----------
    gain, low, high : relative, with its 95 % interval: 0.02 is 2 % more.
    names : the flavors that they are of; empty where they are of none.
    keys : of the two configurations (`ConfigurationView.key`).
    """

    vnf: str
    before: float
    after: float
    gain: float
    low: float
    high: float
    names: tuple[str, str]
    keys: tuple[str, str]
    elsewhere: str = ""
    """The workload, where a function was profiled under several."""

    @property
    def is_nothing(self) -> bool:
        """Whether it brought next to nothing; or perhaps nothing, and surely less than half of
        what it costs. An interval that allows for more says nothing."""
        little = self.high < 0.5 * (self.after / self.before - 1)
        return self.high <= WORTH or (self.low <= 0.0 and little)

    @property
    def text(self) -> str:
        """`the third vCPU of haproxy adds 2 % [-3, 6] and costs 50 % more`."""
        if all(self.names):
            what = f"flavor {self.names[1]} of {self.vnf} over {self.names[0]}"
        elif self.after - self.before == 1 and self.after == int(self.after) <= len(_ORDINALS):
            what = f"the {_ORDINALS[int(self.after) - 1]} vCPU of {self.vnf}"
        else:
            what = f"{self.vnf} with {self.after:g} vCPU instead of {self.before:g}"
        low, high = 100 * self.low, 100 * self.high
        costs = f"costs {100 * (self.after / self.before - 1):.0f} % more vCPU"
        at = f" ({self.elsewhere})" if self.elsewhere else ""
        return f"{what} adds {100 * self.gain:.0f} % [{low:.0f}, {high:.0f}] and {costs}{at}"


def gains(view: SessionView) -> Iterator[Gain]:
    """Of every function that was profiled alone, from each allocation to the next larger one."""
    if view.campaign is None:
        return
    is_open = view.campaign.load.kind == "open"
    for plan in view.campaign.targets:
        if len(plan.target.vnfs) != 1:
            continue
        vnf = plan.target.vnfs[0].name
        groups: dict[str, dict[float, ConfigurationView]] = defaultdict(dict)
        for shown in view.configurations:
            vcpu = shown.configuration.vcpu(vnf)
            if shown.target == plan.target.name and vcpu > 0:
                groups[_rest(shown.configuration, vnf)][vcpu] = shown
        for own in groups.values():
            elsewhere = _workload(next(iter(own.values())).configuration) if len(groups) > 1 else ""
            yield from _steps(vnf, own, elsewhere, is_open)


def nothing_gained(view: SessionView) -> tuple[Gain, ...]:
    """Those that brought nothing, as far as can be seen."""
    return tuple(gain for gain in gains(view) if gain.is_nothing)


def _steps(
    vnf: str, own: Mapping[float, ConfigurationView], elsewhere: str, is_open: bool
) -> Iterator[Gain]:
    carried = [(vcpu, own[vcpu], _carried(own[vcpu], is_open)) for vcpu in sorted(own)]
    known = [(vcpu, shown, found) for vcpu, shown, found in carried if found]
    for (before, less, (first, sd)), (after, more, (second, other_sd)) in pairwise(known):
        half = 1.96 * math.hypot(sd, other_sd)
        ratio = second - first
        yield Gain(
            vnf,
            before,
            after,
            math.expm1(ratio),
            math.expm1(ratio - half),
            math.expm1(ratio + half),
            (_flavor(less.configuration, vnf), _flavor(more.configuration, vnf)),
            (less.key, more.key),
            elsewhere,
        )


def _carried(shown: ConfigurationView, is_open: bool) -> tuple[float, float] | None:
    """Log of what a configuration carries at most, and its standard deviation.

    Capacity where its rule found one in requests or packets per second (an open loop); in a closed
    loop the mean of the throughputs next to the highest, of at least two loads: it is flat there.
    """
    if is_open:
        found = next((b for b in shown.breakpoints if b.rule == "capacity"), None)
        if not (found and found.wl and found.low and found.high):
            return None
        return math.log(found.wl), math.log(found.high / found.low) / (2 * 1.96)
    valid = [s for s in shown.samples if s.valid]
    rates = [(s.wl, e) for s in valid if (e := s.kpis.get(THROUGHPUT)) and e.low > 0]
    if not rates:
        return None
    top = max(e.value for _, e in rates)
    near = [(wl, e) for wl, e in rates if e.value >= NEAR_THE_TOP * top]
    if len({wl for wl, _ in near}) < 2:
        return None
    sds = [math.log(e.high / e.low) / (2 * 1.96) for _, e in near]
    return fmean(math.log(e.value) for _, e in near), fmean(sds)


def _flavor(configuration: Configuration, vnf: str) -> str:
    return str(configuration.resources.get(f"{vnf}.flavor", ""))


def _rest(configuration: Configuration, vnf: str) -> str:
    """Everything but the function's vCPU; a flavor's other resources go with its name."""
    flavored = bool(_flavor(configuration, vnf))
    out = {f"{vnf}.vcpu", f"{vnf}.flavor"}
    left = {
        k: v
        for k, v in configuration.resources.items()
        if k not in out and not (flavored and k.startswith(f"{vnf}."))
    }
    return Configuration(left, configuration.workload).key


def _workload(configuration: Configuration) -> str:
    return Configuration({}, configuration.workload).key
