"""One trial: a cause injected into a fresh target, load driven, the sample judged and diagnosed."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench_why.causes import HEALTHY, NEIGHBOUR, Cause
from bench_why.injecting import run_inside, spinning
from workbench.descriptors.loading import load_vnf_templates
from workbench.diagnosis.explaining import EXPLAINS, Known, case_of, diagnose
from workbench.diagnosis.readings import Reading, read
from workbench.diagnosis.rules import RULES
from workbench.domain.campaign import Campaign, TargetPlan, WindowPlan
from workbench.domain.diagnoses import Diagnosis
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
)
from workbench.domain.samples import Measurement
from workbench.domain.topology import Series, Target, Vnf
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.measuring.judging import Terms, judge
from workbench.paths import workspace

VCPU = 0.5
DRIVE_S = 5.0
OTHERS_CORES = 0.5
"""Cores used by others from which the host itself is a neighbour, where none was injected."""

FEATURES = {
    "delayed_acks": "delayed acknowledgement",
    "throttled": "quota throttling",
    "cpu_wait_s": "CPU wait by a neighbour",
    "connections_opened": "connection churn",
    "listen_overflows": "listen overflow",
    "tcp_timeouts": "retransmission stall",
    "retransmitted": "retransmission stall",
    "limit_hits": "memory reclaim or OOM",
    "zero_windows": "small window",
    "rx_packets": "offload off",
}
"""What the trivial baseline looks at, and what it then names."""
ALIKE = 1.3
"""Times the functions alone up to which the baseline calls a sample healthy."""


@dataclass(frozen=True)
class Trial:
    """`said`, `second` and `baseline` name causes, empty for none; `others_cores` are those of the
    host, with what was injected; `right` are those that were, none for a healthy one."""

    cause: str
    amount: str
    right: tuple[str, ...]
    tuned: bool
    said: str
    second: str
    baseline: str
    strength: float
    mean_ms: float
    alone_ms: float
    others_cores: float
    collecting_cores: float
    sentence: str

    @property
    def of_the_host(self) -> bool:
        """It says that others use the host, and they did: true, though nobody injected them."""
        there = self.others_cores > OTHERS_CORES
        return there and self.said == NEIGHBOUR and NEIGHBOUR not in self.right

    @property
    def right_first(self) -> bool:
        return self.said in (self.right or (HEALTHY,))

    @property
    def right_among_two(self) -> bool:
        """Of one cause: it is first or second; of two: both are."""
        if not self.right:
            return self.said == HEALTHY
        return set(self.right) <= {self.said, self.second}


def target_of(*names: str) -> Target:
    parts = tuple(Vnf(name, name) for name in names)
    return Target("-".join(names), parts[0] if len(parts) == 1 else Series(parts))


async def measure(cause: Cause, chain: Sequence[str], *, injected: bool) -> list[Measurement]:
    """Samples at a fresh target, one for each drive; nothing of the cause where not `injected`."""
    known = load_vnf_templates(workspace=workspace(None))
    templates = tuple(cause.changed(t) if injected else t for t in known)
    target, load = target_of(*chain), LoadModel("open")
    campaign = Campaign(
        "why",
        (TargetPlan(target, (), PrimaryWorkload("rate", 1, 10_000)),),
        templates,
        (Parameter("filesize_bytes", (cause.filesize_bytes,), "B"),),
        load,
        generator="steady",
    )
    resources = {f"{name}.vcpu": VCPU for name in chain}
    if injected:
        resources |= cause.resources
    configuration = Configuration(resources, {"filesize_bytes": cause.filesize_bytes})
    point = OperatingPoint(target.name, configuration, cause.wl)
    lab = DockerLab(campaign, LabSettings(f"why-{secrets.token_hex(4)}", oversubscribe=True))
    driven = []
    try:
        await lab.open()
        await lab.deploy(target, point.configuration)
        if injected:
            run_inside({f: lab.known_as(f)["container"] for f in chain}, cause.inside)
        for _ in range(cause.drives if injected else 1):
            started = time.time()
            with spinning(cause.niceness if injected else None):
                driven.append((started, await lab.drive(point, DRIVE_S, lambda _: None)))
    finally:
        await lab.close()
    terms = Terms(load, WindowPlan(), None, "p95_ms")
    return [
        judge([drive], point, terms, started_at=started, lab_s=DRIVE_S).measurement
        for started, drive in driven
    ]


async def play(cause: Cause, alone: dict[tuple[str, float, float], Reading]) -> list[Trial]:
    """A trial of each drive; what functions do alone is measured once a load, and kept."""
    for function in cause.chain:
        key = function, cause.wl, cause.filesize_bytes
        if key not in alone:
            alone[key] = await _alone(cause, function)
    measured = await measure(cause, cause.chain, injected=True)
    return [_trial(cause, read(one), alone) for one in measured]


def _trial(cause: Cause, seen: Reading, alone: dict[tuple[str, float, float], Reading]) -> Trial:
    """What is said of one sample."""
    keys = {f: (f, cause.wl, cause.filesize_bytes) for f in cause.chain}
    beside = {f: [alone[key]] for f, key in keys.items() if key in alone}
    names = {function: function for function in cause.chain}
    known = Known(target_of(*cause.chain), [seen], beside, names)
    found = diagnose(known, seen, RULES)
    causes = [v.cause for v in found.verdicts if v.strength >= EXPLAINS]
    return Trial(
        cause.name,
        cause.amount,
        cause.right,
        cause.tuned,
        causes[0] if causes else HEALTHY,
        causes[1] if len(causes) > 1 else HEALTHY,
        baseline(known, seen, found),
        found.verdicts[0].strength if found.verdicts else 0.0,
        found.measured_ms or 0.0,
        found.alone_ms or 0.0,
        seen.amount("host", "others_cores") or 0.0,
        seen.amount("workbench", "collecting_cores") or 0.0,
        found.sentence,
    )


async def _alone(cause: Cause, function: str) -> Reading:
    """A function on its own; again where the sample is invalid, three times at most."""
    for _ in range(3):
        seen = read((await measure(cause, (function,), injected=False))[0])
        if seen.sample.valid:
            break
    return seen


def baseline(known: Known, seen: Reading, found: Diagnosis) -> str:
    """The largest deviation wins: the feature that is most above the function alone.

    A function without a stand-alone sample is held against nothing at all (one in a thousand).
    """
    departure = found.departure
    if departure is not None and departure < ALIKE:
        return HEALTHY
    case = case_of(known, seen)
    best, most = HEALTHY, math.log(ALIKE)
    for name in case.order:
        for feature, cause in FEATURES.items():
            if feature == "throttled":
                used = seen.usage(name)
                now: float | None = used.throttled_share if used else None
                before: float | None = 0.0
            else:
                now = seen.per_request(name, feature)
                before = case.alone_mean(name, feature)
            if now is None or (before is None and feature == "rx_packets"):
                continue
            size = math.log((now + 1e-3) / ((before or 0.0) + 1e-3))
            if size > most:
                best, most = cause, size
    return best
