"""What the sentences of several rules share."""

from __future__ import annotations

from workbench.diagnosis.base import Case
from workbench.diagnosis.readings import Reading


def beside_alone(case: Case, component: str, name: str, what: str) -> list[str]:
    alone = case.alone_mean(component, name)
    return [] if alone is None else [f"on its own: {alone:.2f} {what}"]


def not_cpu(case: Case) -> str:
    """What is known of CPU, where it is not the cause."""
    used = max((case.seen.sample.usage[n].cpu_share for n in case.order), default=0.0)
    waits = [wait_share(case.seen, name) for name in case.order]
    known = [wait for wait in waits if wait is not None]
    waited = f", waiting at most {max(known):.0%} of a request" if known else ""
    return f"not CPU (usage at most {used:.0%}{waited})"


def wait_share(seen: Reading, name: str) -> float | None:
    """Waiting for CPU as a share of what a request takes; None where it is not known."""
    waited = seen.per_request(name, "cpu_wait_s")
    return None if waited is None or not seen.mean_s else min(1.0, waited / seen.mean_s)


def most_throttled(case: Case) -> tuple[str, float]:
    shares = {n: u.throttled_share for n in case.order if (u := case.seen.usage(n)) is not None}
    name = max(shares, key=lambda one: shares[one], default="")
    return name, shares.get(name, 0.0)
